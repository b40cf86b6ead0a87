"""Several as-of joins of one left side as one plan: what they must share, and where columns come from.

Each part is resolved against the result of the previous parts, so names and checks are those of a chain.
One plan is possible if all parts have the same left keys and the same left order column; then the match
of a part does not depend on the other parts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from weft.core.names import format_list
from weft.core.types import DType, Schema, common_type
from weft.errors import ColumnCollisionError, JoinSpecError
from weft.expr import Typed
from weft.joins.choose import ASOF, Choice, identifies_right
from weft.joins.resolve.join import resolve_join
from weft.joins.resolve.predicates import fold_order_conditions
from weft.joins.resolve.resolved import AsOf, ResolvedJoin, Slot
from weft.joins.spec.asof import AsofSpec
from weft.joins.spec.projection import JoinProjection

_SUFFIXES = re.compile(r"pass suffixes=(\(.*?\))")
PartRequest = tuple[AsofSpec, Schema, JoinProjection | None]
"""A part as requested: the spec, the schema of its right side and its projection."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a column of a result comes from: the left side (part 0), or a part and its output column."""

    part: int
    column: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One of several as-of joins, as a step of a chain and as a join of the left side itself."""

    number: int
    chained: ResolvedJoin
    direct: ResolvedJoin
    origins: tuple[Origin, ...]
    """Of the columns of the result after this part."""

    @property
    def match(self) -> AsOf:
        """The match of the part, in columns of the left side itself."""
        assert isinstance(self.direct.match, AsOf)  # noqa: S101  # a part is an as-of join
        return self.direct.match


def resolve_several(left: Schema, requests: Sequence[PartRequest]) -> tuple[Part, ...]:
    """Resolve each part as in a chain; raises if one plan cannot run all parts."""
    parts: list[Part] = []
    schema, origins = left, tuple(Origin(0, i) for i in range(len(left)))
    for number, (spec, right, project) in enumerate(requests, start=1):
        join = _resolved(spec, schema, right, project, number)
        if join.computed_left or join.computed_right:
            raise _not_shared(number, "its order is an expression; add it as a column with with_columns")
        direct = _direct(fold_order_conditions(join), left, origins, number)
        if join.how in ("semi", "anti"):
            raise _not_shared(number, f"a {join.how} join adds no column")
        if identifies_right(join):
            raise _not_shared(number, "it keeps or counts right rows, which the one plan does not identify")
        refusal = ASOF["union"](direct)  # the plan for several parts is a union of all sides
        if refusal is not None:
            raise _not_shared(number, refusal)
        before = origins
        origins = tuple(
            before[c.left] if c.source == "left" and c.left is not None else Origin(number, i)
            for i, c in enumerate(join.output)
        )
        parts.append(Part(number=number, chained=join, direct=direct, origins=origins))
        _check_shared(parts[0], parts[-1])
        schema = join.schema
    return tuple(parts)


def _resolved(spec: AsofSpec, left: Schema, right: Schema, project: JoinProjection | None, number: int) -> ResolvedJoin:
    """Resolve a part; the help of a collision names the projection of the part, because the call has no suffixes."""
    try:
        return resolve_join(spec, left, right, project=project)
    except ColumnCollisionError as cause:
        diagnostics = [
            replace(d, help=_SUFFIXES.sub(rf"give part {number} a third value: JoinProjection(suffixes=\1)", d.help))
            for d in cause.diagnostics
        ]
        raise ColumnCollisionError(diagnostics) from None


def choose_several(parts: Sequence[Part]) -> Choice:
    """Return the choice of the one plan for all parts."""
    ways = {part.match.direction for part in parts}
    sorts = "one sort" if len(ways) == 1 and "nearest" not in ways else "two sorts"
    return Choice(
        "union",
        f"{len(parts)} right sides have the same left keys and order: one plan joins them all",
        f"one shuffle and {sorts} of all sides together; a key's rows stay in one task",
    )


def _not_shared(number: int, why: str) -> JoinSpecError:
    return JoinSpecError(
        f"part {number} cannot share one plan with the others: {why}",
        code="W0130",
        help=f"leave part {number} out and chain it: .asof_join(other, spec)",
    )


def _direct(join: ResolvedJoin, left: Schema, origins: Sequence[Origin], number: int) -> ResolvedJoin:
    """Return the join with columns of the left side itself in place of columns of the chain."""

    def place(index: int) -> int:
        origin = origins[index]
        if origin.part:
            name = join.left.fields[index].name
            raise _not_shared(number, f"it reads {name!r}, a column that part {origin.part} adds")
        return origin.column

    match = join.match
    assert isinstance(match, AsOf)  # noqa: S101  # resolved from an AsofSpec
    known = None if match.known is None else (place(match.known[0]), match.known[1])
    return replace(
        join,
        left=left,
        keys=tuple(replace(k, left=place(k.left)) for k in join.keys),
        match=replace(match, left=place(match.left), known=known),
        conditions=tuple(replace(c, typed=_moved(c.typed, place)) for c in join.conditions),
    )


def _moved(typed: Typed, place: Callable[[int], int]) -> Typed:
    slot = typed.slot
    if isinstance(slot, Slot) and slot.side == "left":
        slot = Slot("left", place(slot.index))
    return replace(typed, slot=slot, args=tuple(_moved(a, place) for a in typed.args))


def _check_shared(first: Part, other: Part) -> None:
    """Raise unless both parts have the same left columns, compared in the same types."""
    left = first.direct.left
    orders = [(p.match.left, _axis(p)) for p in (first, other)]
    if orders[0] != orders[1]:
        (a, x), (b, y) = ((left.fields[i].name, dtype) for i, dtype in orders)
        raise _not_shared(
            other.number, f"its order is left.{b} compared as {y}, that of part 1 is left.{a} compared as {x}"
        )
    # Keys are compared as a set: each spec may list them in its own order.
    keys = [sorted((k.left, str(k.dtype)) for k in p.direct.keys) for p in (first, other)]
    if keys[0] != keys[1]:
        mine, theirs = (
            format_list([f"{left.fields[i].name} ({dtype})" for i, dtype in pairs]) for pairs in reversed(keys)
        )
        raise _not_shared(other.number, f"its left keys are {mine}, those of part 1 are {theirs}")


def _axis(part: Part) -> DType:
    join, match = part.direct, part.match
    own = join.left.fields[match.left].dtype
    return common_type(own, join.right.fields[match.right].dtype) or own
