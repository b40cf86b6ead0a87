"""Natural joins: shared names are keys, aliases are keyword arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, cast

from weft.core.findings import ErrorCollector
from weft.errors import JoinKeyWarning, WeftError
from weft.joins.relation.arguments import check_arguments, copy_signature, warn_caller
from weft.joins.relation.frame import Frame
from weft.joins.relation.joining import check_relation, join_frames, resolve_projection
from weft.joins.resolve.join import Inference, check_conditions
from weft.joins.resolve.natural import NaturalKeys, infer_natural_keys
from weft.joins.spec.asof import AsofOrder, check_column_names
from weft.joins.spec.join import JoinSpec, Keys, check_predicates, read_alias_pairs

if TYPE_CHECKING:
    from weft.joins.spark.stats import MatchStats
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
    need_keys: bool = True,
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
        need_keys=need_keys,
    )


def _natural(left: Any, other: object, how: How, options: dict[str, Any], aliases: dict[str, Any]) -> Any:
    right = check_relation(other, f"natural_{how}")
    mistakes = ErrorCollector()
    check_arguments(left, options, mistakes)
    with mistakes.collect():
        read_alias_pairs(aliases, None, PARAMETERS)
    mistakes.raise_all()
    project = resolve_projection(options["project"], options["suffixes"])
    predicates = check_predicates(options["predicates"], "predicates")
    try:
        found = infer(left, right, aliases=aliases, **{n: options[n] for n in ("strict", "keys", "exclude_shared")})
    except WeftError as cause:
        # Keys cannot be inferred; errors in predicates are reported with them.
        mistakes.add(cause)
        if predicates:
            check_conditions(JoinSpec((), predicates), left.schema, right.schema, mistakes)
        mistakes.raise_all()
        raise
    promises = {n: options[n] for n in ("nulls_equal", "relationship", "unmatched")}
    spec = JoinSpec(found.pairs, predicates, **promises)
    for note in found.notes:
        warn_caller(note, JoinKeyWarning)
    inference = Inference(origins=found.origins, dropped=found.dropped, displaced=found.displaced)
    return join_frames(left, right, spec, how=how, project=project, inference=inference, stats=options["stats"])


def _sibling(how: How) -> Callable[..., Any]:
    def call(self: Any, other: object, /, **named: Any) -> Any:
        options = {name: named.pop(name, default) for name, default in DEFAULTS.items()}
        return _natural(self, other, how, options, named)

    return call


class NaturalJoins(Frame):
    """The ``natural_*`` methods.

    All take the same arguments.  Keys are the columns that both sides share, in left
    column order; ``left_name="right_name"`` adds a pair, or replaces the partner of a
    shared column.  Right keys are not repeated in the result; a right column that collides
    with a left one is an error unless `suffixes` or `project` settles it.
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
            The right relation.
        strict
            True (default) refuses aliases that name no column; False drops them, with a `JoinKeyWarning`.
        project, suffixes
            Columns and names of the result, a `JoinProjection`; ``suffixes=("", "_r")`` is short for
            ``project=JoinProjection(suffixes=("", "_r"))``.  By default all left columns, then the right ones
            without the keys; a right column with the name of a left one is an error.
        predicates
            Further conditions, in order; see `ColumnPredicate` and `ExpressionPredicate`.
        keys
            Aliases as a mapping ``{"left name": "right name"}`` or as pairs, for names that cannot be
            written as a keyword.
        exclude_shared
            Shared columns that are not keys.
        nulls_equal
            True lets a NULL key equal a NULL key; False by default.
        relationship
            A promise about matches: ``"m:1"`` (each left row has at most one), ``"1:m"``, ``"1:1"`` or ``"m:m"``.
            The job fails when the data breaks it.  None (default) promises nothing.
        unmatched
            Which side must have a match for every row: ``"left"``, ``"right"``, ``"both"``, or ``"error"`` for the
            side that the join keeps.  The job fails otherwise.  None (default) checks nothing.
        stats
            A `MatchStats` that counts matches while the job runs.
        **key_aliases
            ``left_name="right_name"`` adds a pair of keys, or replaces the partner of a shared column.

        Returns
        -------
        Relation
            The joined rows; nothing runs until they are needed.
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
