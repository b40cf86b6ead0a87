"""The as-of plans by name, and which join each one refuses."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from weft.plan.conditions import split
from weft.plan.resolved import AsOf, ResolvedJoin


def _union_refuses(join: ResolvedJoin) -> str | None:
    match = join.match
    if not isinstance(match, AsOf):
        return "the union plan refuses joins that are not as-of joins"
    if split(join).pair:
        return "the union plan refuses predicates that compare a left with a right column"
    if match.known is None:
        return None
    if match.direction != "backward":
        return f"the union plan refuses a second time axis with direction {match.direction!r}"
    if match.known[0] != match.left:
        return "the union plan refuses two independent cut-offs: no one order serves both axes"
    left, right = join.left.fields[match.left].dtype, join.right.fields[match.right].dtype
    known = join.right.fields[match.known[1]].dtype
    if len({left, right, known}) > 1:
        return f"the union plan refuses a knowledge time of type {known} beside {left} and {right}"
    return None


def _rank_refuses(join: ResolvedJoin) -> str | None:
    if not isinstance(join.match, AsOf):
        return "the rank plan refuses joins that are not as-of joins"
    return None


ASOF: Mapping[str, Callable[[ResolvedJoin], str | None]] = {"union": _union_refuses, "rank": _rank_refuses}
"""Plan names and what each refuses: a sentence, or None when it serves the join."""


def asof_strategies() -> tuple[str, ...]:
    """Return the names that ``strategy=`` of an as-of join takes, besides ``"auto"``."""
    return tuple(ASOF)
