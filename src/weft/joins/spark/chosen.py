"""The right row that an as-of plan chooses: which rows qualify, how the row is packed, when it has ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame

from weft.core.names import RIGHT, internal_name
from weft.expr.spark.columns import compile_expr
from weft.joins.resolve.predicates import split_conditions
from weft.joins.resolve.resolved import AsOf, Side, order_index
from weft.joins.spark.order import Axis
from weft.joins.spark.sides import LEFT_HERE, RIGHT_HERE, Sides

CHOSEN = "__weft_chosen"


def pack_left(sides: Sides) -> Column:
    """Return all left columns as one struct."""
    return sides.F.struct(*sides.names("left"))


def pack_right(sides: Sides) -> Column:
    """Return all right columns as one struct; it is not NULL even when every column is."""
    return sides.F.struct(*sides.names("right"))


def can_match(sides: Sides, match: AsOf, side: Side) -> Column:
    """Return whether a row can match at all: its keys, its times, and the predicates on its side."""
    F = sides.F
    needed = [order_index(match, side)]
    if match.known is not None:
        needed.append(match.known[side == "right"])
    if not sides.join.nulls_equal:
        needed.extend(key.index(side) for key in sides.join.keys)
    holds = [sides.column_of(side, i).isNotNull() for i in dict.fromkeys(needed)]
    conditions = split_conditions(sides.join)
    # False instead of NULL: the left rows for which this is not true are kept, with a negated test of it.
    holds.extend(
        F.coalesce(compile_expr(c, sides.column, F), F.lit(False))
        for c in (conditions.left if side == "left" else conditions.right)
    )
    return reduce(lambda a, b: a & b, holds)


def is_over(sides: Sides, match: AsOf, field: Callable[[int], Column]) -> Column | None:
    """Whether the chosen row is a tombstone or its state has ended; None if the spec has neither."""
    F = sides.F
    over: Column | None = None
    if match.tombstone is not None:
        over = F.coalesce(field(match.tombstone), F.lit(False))
    if match.until is not None:
        ended = F.coalesce(Axis.of(sides, match).left >= field(match.until), F.lit(False))
        over = ended if over is None else over | ended
    return over


def finish(frame: DataFrame, sides: Sides, match: AsOf, *, besides: Sequence[str] = ()) -> DataFrame:
    """Return the joined rows under their positional names, with the markers of both sides.

    `frame` has every left column under its positional name and the chosen right row, or
    NULL, in ``CHOSEN``.  A tombstone, or a state that has ended, cancels the choice.  The
    columns `besides` are passed through.
    """
    F = sides.F
    chosen = F.col(CHOSEN)
    over = is_over(sides, match, lambda index: chosen.getField(internal_name(RIGHT, index)))
    if over is not None:
        frame = frame.withColumn(CHOSEN, F.when(~over, chosen))
    if sides.join.how == "inner" and not sides.join.unmatched:  # the check of `unmatched` needs the row
        frame = frame.filter(chosen.isNotNull())
    rights = [chosen.getField(name).alias(name) for name in sides.names("right")]
    marks = [F.lit(True).alias(LEFT_HERE), F.when(chosen.isNotNull(), F.lit(True)).alias(RIGHT_HERE)]
    return frame.select(*sides.names("left"), *rights, *marks, *besides)
