"""Conditions of a join by what they read: one side, both, or the order pair alone."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import cast

from weft.expr import Typed
from weft.joins.resolve.resolved import AsOf, ResolvedJoin, ResolvedPredicate, Slot

_MICROSECOND = dt.timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Conditions:
    """The conjuncts of all predicates, sorted by the sides they read."""

    left: tuple[Typed, ...] = ()
    right: tuple[Typed, ...] = ()
    pair: tuple[Typed, ...] = ()


def split(join: ResolvedJoin) -> Conditions:
    """Return the conjuncts of a join's predicates; one that reads no column counts to the right side."""
    found: dict[str, list[Typed]] = {"left": [], "right": [], "pair": []}
    for typed in join.predicates:
        for part in conjuncts(typed):
            sides = {slot.side for slot in part.slots if isinstance(slot, Slot)}
            found["pair" if len(sides) == 2 else next(iter(sides), "right")].append(part)
    return Conditions(tuple(found["left"]), tuple(found["right"]), tuple(found["pair"]))


def conjuncts(typed: Typed) -> Iterator[Typed]:
    """Yield the parts that must all be true for `typed` to be true."""
    if typed.op == "and":
        for arg in typed.args:
            yield from conjuncts(arg)
    else:
        yield typed


def folded(join: ResolvedJoin) -> ResolvedJoin:
    """Return the same as-of join with comparisons of the order pair folded into the match.

    Before::

        nearest, tolerance 5s, left.t >= right.u

    After::

        backward, tolerance 5s

    What does not fold stays a condition; the rows are the same either way.
    """
    match = join.match
    if not isinstance(match, AsOf):
        return join
    kept: list[ResolvedPredicate] = []
    for condition in join.conditions:
        rest = []
        for part in conjuncts(condition.typed):
            narrowed = _narrowed(match, part)
            if narrowed is None:
                rest.append(part)
            else:
                match = narrowed
        kept.extend(replace(condition, typed=part) for part in rest)
    return replace(join, match=match, conditions=tuple(kept))


def _narrowed(match: AsOf, part: Typed) -> AsOf | None:
    """Return the match that says `part` too, or None when it cannot."""
    bound = _order_bound(match, part)
    if bound is None:
        return None
    op, offset = bound  # left op right + offset
    if offset == 0:
        if op in (">=", ">") and match.direction in ("backward", "nearest"):
            return replace(match, direction="backward", allow_exact=match.allow_exact and op == ">=")
        if op in ("<=", "<") and match.direction in ("forward", "nearest"):
            return replace(match, direction="forward", allow_exact=match.allow_exact and op == "<=")
        return None
    if op == "<=" and offset > 0 and match.direction == "backward":
        return replace(match, tolerance=_smaller(match, offset))
    if op == ">=" and offset < 0 and match.direction == "forward":
        return replace(match, tolerance=_smaller(match, -offset))
    return None


def _smaller(match: AsOf, bound: int) -> int:
    return bound if match.tolerance is None else min(int(match.tolerance), bound)


def _order_bound(match: AsOf, part: Typed) -> tuple[str, int] | None:
    """Return ``(op, offset)`` when `part` says ``left op right + offset`` of the order pair."""
    if part.op not in ("<", "<=", ">", ">=") or len(part.args) != 2:
        return None
    first, second = part.args
    mirrored = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
    op = part.op
    if first.slot == Slot("right", match.right) and second.slot == Slot("left", match.left):
        first, second, op = second, first, mirrored[op]
    if first.slot != Slot("left", match.left):
        return None
    if second.slot == Slot("right", match.right):
        return op, 0
    if (
        second.op == "time+"
        and second.args[0].slot == Slot("right", match.right)
        and second.args[1].op == "lit"
    ):
        return op, cast("dt.timedelta", second.args[1].value) // _MICROSECOND
    return None
