"""Natural joins: shared names are keys, aliases are keyword arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self, cast

from weft.core.findings import ErrorCollector
from weft.errors import JoinKeyWarning, WeftError
from weft.joins.relation.arguments import check_arguments, copy_signature, warn_caller
from weft.joins.relation.frame import Frame
from weft.joins.relation.joining import check_relation, join_frames, resolve_projection
from weft.joins.resolve.join import check_conditions
from weft.joins.resolve.natural import NaturalKeys, infer_natural_keys
from weft.joins.spark.stats import MatchStats
from weft.joins.spec.asof import AsofOrder, check_column_names
from weft.joins.spec.join import JoinSpec, Keys, check_predicates, read_alias_pairs
from weft.joins.spec.predicates import JoinPredicate
from weft.joins.spec.projection import JoinProjection
from weft.joins.spec.values import How, Relationship, Unmatched

DEFAULTS: Mapping[str, Any] = {
    "strict": True,
    "project": None,
    "predicates": None,
    "suffixes": None,
    "keys": None,
    "exclude_shared": (),
    "nulls_equal": False,
    "relationship": None,
    "unmatched": None,
    "stats": None,
}
PARAMETERS = tuple(DEFAULTS)


def infer(
    left: Frame,
    right: Frame,
    *,
    strict: bool,
    keys: Keys,
    exclude_shared: Sequence[str],
    aliases: Mapping[str, Any],
    order: AsofOrder | None = None,
    parameters: Sequence[str] = PARAMETERS,
) -> NaturalKeys:
    """Return the keys of a natural join; `parameters` are suggestions for a misspelt keyword."""
    check_column_names(exclude_shared, "exclude_shared")
    pairs = read_alias_pairs(aliases, keys, parameters)
    return infer_natural_keys(
        left.schema,
        right.schema,
        aliases=pairs[: len(aliases)],
        keys=pairs[len(aliases) :],
        exclude_shared=exclude_shared,
        strict=strict,
        order=order,
        parameters=parameters,
    )


def _natural(left: Any, other: object, how: How, options: dict[str, Any], aliases: dict[str, Any]) -> Any:
    right = check_relation(other, f"natural_{how}")
    mistakes = ErrorCollector()
    check_arguments(left, options, mistakes)
    # `infer` reads the aliases again; here their errors are reported together with those of the options.
    with mistakes.collect():
        read_alias_pairs(aliases, None, PARAMETERS)
    mistakes.raise_all()
    project = resolve_projection(options["project"], options["suffixes"])
    predicates = check_predicates(options["predicates"], "predicates")
    try:
        keys = infer(left, right, aliases=aliases, **{n: options[n] for n in ("strict", "keys", "exclude_shared")})
    except WeftError as cause:
        # Keys cannot be inferred; errors in predicates are reported with them.
        mistakes.add(cause)
        if predicates:
            check_conditions(JoinSpec((), predicates), left.schema, right.schema, mistakes)
        mistakes.raise_all()
        raise
    promises = {n: options[n] for n in ("nulls_equal", "relationship", "unmatched")}
    spec = JoinSpec(keys.pairs, predicates, **promises)
    for note in keys.notes:
        warn_caller(note, JoinKeyWarning)
    return join_frames(left, right, spec, how=how, project=project, inference=keys, stats=options["stats"])


def _sibling(how: How) -> Callable[..., Any]:
    def call(self: Any, other: object, /, **named: Any) -> Any:
        options = {name: named.pop(name, default) for name, default in DEFAULTS.items()}
        return _natural(self, other, how, options, named)

    return call


class NaturalJoins(Frame):
    """The ``natural_*`` methods.

    All take the same arguments.  Keys are the columns that both sides share, in left
    column order; ``left_name="right_name"`` adds a pair, or replaces the right column of a
    shared key.  Right keys are not repeated in the result; a right column with the name of
    a left one is an error unless `suffixes` or `project` renames it.
    """

    __slots__ = ()

    def natural_inner(
        self,
        other: Frame,
        /,
        *,
        strict: bool = True,
        project: JoinProjection | None = None,
        predicates: Sequence[JoinPredicate] | None = None,
        suffixes: tuple[str, str] | None = None,
        keys: Keys = None,
        exclude_shared: Sequence[str] = (),
        nulls_equal: bool = False,
        relationship: Relationship | None = None,
        unmatched: Unmatched | None = None,
        stats: MatchStats | None = None,
        **key_aliases: str,
    ) -> Self:
        """Pairs of rows whose shared columns are equal.

        ``orders.natural_inner(customers, customer_ref="id", suffixes=("", "_customer"))``

        Parameters
        ----------
        other
            The right relation.  Required.
        strict
            True (default) makes an alias of an unknown column an error; False drops it with a `JoinKeyWarning`.
        project, suffixes
            The columns of the result, a `JoinProjection`; ``suffixes=("", "_r")`` is short for
            ``project=JoinProjection(suffixes=("", "_r"))``.  None by default: all left columns, then the right ones
            without the keys.  Columns with the same name are an error.
        predicates
            Further conditions: a sequence of `ColumnPredicate` and `ExpressionPredicate`.  None by default.
        keys
            Aliases as a mapping ``{"left name": "right name"}`` or as pairs, for names that are not valid keywords.
            None by default.
        exclude_shared
            Columns that both relations have and that are not keys.  Empty by default.
        nulls_equal
            Whether a NULL key matches a NULL key.  False by default.
        relationship
            How many matches a row may have: ``"m:1"`` (a left row has at most one), ``"1:m"``, ``"1:1"`` or
            ``"m:m"``.  Otherwise the job fails.  None (default) checks nothing.
        unmatched
            The side whose rows must all have a match: ``"left"``, ``"right"``, ``"both"``, or ``"error"`` for the
            side that the join keeps.  Otherwise the job fails.  None (default) checks nothing.
        stats
            A `MatchStats` that counts matches while the job runs.  None by default.
        **key_aliases
            ``left_name="right_name"`` adds a pair of keys, or replaces the right column of a shared key.

        Returns
        -------
        Relation
            The joined rows.  No job runs until they are read.
        """
        given = (
            strict, project, predicates, suffixes, keys, exclude_shared,
            nulls_equal, relationship, unmatched, stats,
        )  # fmt: skip
        options = dict(zip(PARAMETERS, given, strict=True))
        return cast("Self", _natural(self, other, "inner", options, key_aliases))

    natural_left = copy_signature(
        natural_inner, "natural_left", "Every left row, with its matches or with NULLs.", _sibling("left")
    )
    natural_right = copy_signature(
        natural_inner,
        "natural_right",
        "Every right row; the keys of unmatched rows are in the left key columns.",
        _sibling("right"),
    )
    natural_full = copy_signature(
        natural_inner, "natural_full", "Every row of both sides, keys coalesced.", _sibling("full")
    )
    natural_semi = copy_signature(
        natural_inner, "natural_semi", "Left rows that have a match, each once, left columns only.", _sibling("semi")
    )
    natural_anti = copy_signature(
        natural_inner, "natural_anti", "Left rows that have no match, left columns only.", _sibling("anti")
    )
