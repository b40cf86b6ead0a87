"""Natural joins: shared names are keys, aliases are keyword arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, cast

from weft.errors import ArgumentError, JoinKeyWarning, WeftError
from weft.plan.natural import NaturalKeys, natural_keys
from weft.plan.resolve_join import Inference
from weft.relations.frame import Frame
from weft.relations.joining import a_relation, join_frames, settled_projection
from weft.relations.methods import like
from weft.relations.notices import notice
from weft.spec.join import JoinSpec, Keys, alias_pairs, checked_predicates
from weft.spec.words import a_bool

if TYPE_CHECKING:
    from weft.spark.stats import MatchStats
    from weft.spec.predicates import JoinPredicate
    from weft.spec.projection import JoinProjection
    from weft.spec.words import How, Relationship, Unmatched

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
    need_keys: bool = True,
) -> NaturalKeys:
    """Return the keys of a natural join, with hints where a column is named like a parameter."""
    if isinstance(exclude_shared, str) or not isinstance(exclude_shared, Sequence):
        raise ArgumentError(f"exclude_shared must be a sequence of column names, not {exclude_shared!r}")
    said = alias_pairs(aliases, keys)
    return natural_keys(
        left.schema,
        right.schema,
        aliases=said[: len(aliases)],
        keys=said[len(aliases) :],
        exclude_shared=exclude_shared,
        strict=strict,
        parameters=PARAMETERS,
        need_keys=need_keys,
    )


def _checked(left: Frame, name: str, check: Any) -> Any:
    """Run a parameter check; if the left side has a column of that name, say how to alias it."""
    try:
        return check()
    except WeftError as cause:
        if name not in left.schema:
            raise
        hint = f"to alias column {name!r} use keys={{{name!r}: ...}}"
        raise type(cause)(
            cause.message, code=cause.code, help="\n".join(filter(None, (cause.help, hint)))
        ) from None


def _natural(left: Any, other: object, how: How, options: dict[str, Any], aliases: dict[str, Any]) -> Any:
    right = a_relation(other, f"natural_{how}")
    _checked(left, "strict", lambda: a_bool(options["strict"], "strict"))
    for name in ("project", "suffixes"):
        values = {"project": None, "suffixes": None, name: options[name]}
        _checked(left, name, lambda values=values: settled_projection(**values))
    project = settled_projection(options["project"], options["suffixes"])
    predicates = _checked(left, "predicates", lambda: checked_predicates(options["predicates"], "predicates"))
    found = _checked(
        left,
        "keys",
        lambda: infer(
            left,
            right,
            strict=options["strict"],
            keys=options["keys"],
            exclude_shared=options["exclude_shared"],
            aliases=aliases,
        ),
    )
    promises = {n: options[n] for n in ("nulls_equal", "relationship", "unmatched")}
    for name, value in promises.items():
        _checked(left, name, lambda name=name, value=value: JoinSpec(found.pairs, **{name: value}))
    spec = JoinSpec(found.pairs, predicates, **promises)
    for note in found.notes:
        notice(note, JoinKeyWarning)
    inference = Inference(origins=found.origins, dropped=found.dropped, displaced=found.displaced)
    return join_frames(
        left, right, spec, how=how, project=project, inference=inference, stats=options["stats"]
    )


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

    Parameters
    ----------
    other
        The right relation.
    strict
        False drops aliases that name no column, with a `JoinKeyWarning`.
    project, suffixes
        Columns and names of the result; ``suffixes=("", "_r")`` is short for
        ``project=JoinProjection(suffixes=("", "_r"))``.
    predicates
        Further conditions, in order; see `ColumnPredicate` and `ExpressionPredicate`.
    keys
        Aliases as a mapping or pairs, for names that are no Python keyword.
    exclude_shared
        Shared columns that are not keys.
    nulls_equal, relationship, unmatched
        See `JoinSpec`.
    stats
        A `MatchStats` that counts matches while the job runs.
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
        """Pairs of rows whose shared columns are equal."""
        given = (
            strict, project, predicates, suffixes, keys, exclude_shared,
            nulls_equal, relationship, unmatched, stats,
        )  # fmt: skip
        options = dict(zip(PARAMETERS, given, strict=True))
        return cast("Self", _natural(self, other, "inner", options, key_aliases))

    natural_left = like(
        natural_inner, "natural_left", "Every left row, with its matches or with NULLs.", _sibling("left")
    )
    natural_right = like(
        natural_inner,
        "natural_right",
        "Every right row; keys of unmatched ones stand under the left names.",
        _sibling("right"),
    )
    natural_full = like(
        natural_inner, "natural_full", "Every row of both sides, keys coalesced.", _sibling("full")
    )
    natural_semi = like(
        natural_inner,
        "natural_semi",
        "Left rows that have a match, each once, left columns only.",
        _sibling("semi"),
    )
    natural_anti = like(
        natural_inner, "natural_anti", "Left rows that have no match, left columns only.", _sibling("anti")
    )
