"""The right row that an as-of plan chose: who may be chosen, how it is carried, when it is over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import TYPE_CHECKING

from weft.core.names import LEFT, RIGHT, internal_name
from weft.expr.spark.columns import compile_expr
from weft.joins.resolve.predicates import Conditions
from weft.joins.resolve.resolved import AsOf, Slot
from weft.joins.spark.order import Axis
from weft.joins.spark.sides import LEFT_HERE, RIGHT_HERE, Sides

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

CHOSEN = "__weft_chosen"


def packed_left(sides: Sides) -> Column:
    """Return all left columns as one struct."""
    return _struct(sides, LEFT, len(sides.join.left))


def packed_right(sides: Sides) -> Column:
    """Return all right columns as one struct; it is not NULL even when every column is."""
    return _struct(sides, RIGHT, len(sides.join.right))


def _struct(sides: Sides, prefix: str, count: int) -> Column:
    packed: Column = sides.F.struct(*(sides.F.col(internal_name(prefix, i)) for i in range(count)))
    return packed


def usable_left(sides: Sides, match: AsOf, conditions: Conditions) -> Column:
    """Whether a left row can match at all: keys, times and left predicates."""
    return _usable(sides, match, conditions.left, "left")


def usable_right(sides: Sides, match: AsOf, conditions: Conditions) -> Column:
    """Whether a right row can be chosen at all: keys, times and right predicates."""
    return _usable(sides, match, conditions.right, "right")


def _usable(sides: Sides, match: AsOf, conditions: tuple[object, ...], side: str) -> Column:
    F = sides.F
    needed = [match.left if side == "left" else match.right]
    if match.known is not None:
        needed.append(match.known[side == "right"])
    if not sides.join.nulls_equal:
        needed.extend(k.left if side == "left" else k.right for k in sides.join.keys)
    holds = [
        sides.column(Slot("left" if side == "left" else "right", i)).isNotNull()
        for i in dict.fromkeys(needed)
    ]
    holds.extend(
        F.coalesce(compile_expr(c, sides.column, F), F.lit(False))  # type: ignore[arg-type]  # a Typed tree
        for c in conditions
    )
    return reduce(lambda a, b: a & b, holds)


def is_over(sides: Sides, match: AsOf, field: Callable[[int], Column]) -> Column | None:
    """Whether the chosen row is a tombstone or its state has ended; None when neither can be."""
    F = sides.F
    over: Column | None = None
    if match.tombstone is not None:
        over = F.coalesce(field(match.tombstone), F.lit(False))
    if match.until is not None:
        ended = F.coalesce(Axis.of(sides, match).left >= field(match.until), F.lit(False))
        over = ended if over is None else over | ended
    return over


def finished(frame: DataFrame, sides: Sides, match: AsOf, *, besides: Sequence[str] = ()) -> DataFrame:
    """Return the joined rows under their positional names, with the marks of both sides.

    `frame` has every left column under its positional name and the chosen right row, or
    NULL, in ``CHOSEN``.  A tombstone or a state that has ended undoes the choice.  Columns
    `besides` those stay as they are.
    """
    F = sides.F
    chosen: Column = F.col(CHOSEN)

    def field(index: int) -> Column:
        return chosen.getField(internal_name(RIGHT, index))

    over = is_over(sides, match, field)
    if over is not None:
        frame = frame.withColumn(CHOSEN, F.when(~over, chosen))
    if sides.join.how == "inner" and not sides.join.unmatched:  # an unmatched row must be seen to fail
        frame = frame.filter(chosen.isNotNull())
    rights = [field(i).alias(internal_name(RIGHT, i)) for i in range(len(sides.join.right))]
    lefts = [F.col(internal_name(LEFT, i)) for i in range(len(sides.join.left))]
    marks = [F.lit(True).alias(LEFT_HERE), F.when(chosen.isNotNull(), F.lit(True)).alias(RIGHT_HERE)]
    return frame.select(*lefts, *rights, *marks, *besides)
