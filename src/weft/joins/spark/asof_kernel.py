"""As-of by a kernel over Arrow tables, one small hash group of both sides at a time.

Before::

    left ASOF right  keys k

After::

    cogroup(left by group(hash(k)), right by group(hash(k))) -> binary search in numpy

The JVM does not sort rows by key and time, which is the most expensive step of the union plan;
instead rows are sent to Python and back.  A key or time that is also a column of the result is sent
once.  A task holds one group of both sides at a time.  There are as many groups as shuffle
partitions, and a group of more than ``HELD`` bytes (a heavy key) is an error with advice.  The result
of a group is bounded too: if its right values have more bytes than the group and than ``PIECE``, or than
``WHOLE``, a right row is returned once with a list of its left rows, and Spark unfolds the list row by row.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Context
from decimal import Decimal as Number
from typing import cast

from pyspark.sql import Column, DataFrame
from pyspark.sql.types import StructType

from weft.core.names import LEFT, RIGHT, internal_name
from weft.core.types import BOOLEAN, DATE, LONG, Array, Decimal, DType, Field, Struct
from weft.expr.spark.types import to_spark
from weft.joins.resolve.axis import Axis as Line
from weft.joins.resolve.predicates import split_conditions
from weft.joins.resolve.resolved import AsOf, ResolvedKey, Side, Slot, order_index
from weft.joins.spark import asof_result, asof_search
from weft.joins.spark.chosen import can_match, is_over
from weft.joins.spark.order import Axis, tie_slots
from weft.joins.spark.sides import LEFT_HERE, RIGHT_HERE, Sides, balanced_group, count_partitions
from weft.joins.spark.workers import ship_by_value

_GROUP, _TIME, _KEY, _USABLE = "__weft_group", "__weft_time", "__weft_key", "__weft_usable"
_FARTHEST = (1 << 64) - 1
_ROOMY = Context(prec=2200)
_FIRST_KEY = 2  # after the group and the time
HELD = 2 * 1024**3
"""How many bytes of both sides together one group may have."""
WHOLE = 128 * 1024**2
"""How many bytes the right values of plain rows may have, and the left rows in a list beside a large right row."""
PIECE = 16 * 1024**2
"""How many bytes of a result are sent to Spark at once, unless a single row has more."""
_MANY, _PLAIN = "__weft_folded", "__weft_plain"


@dataclass(frozen=True, slots=True)
class _Layout:
    """Columns of each side that the kernel returns, their positions, and those that are sent only to be returned."""

    left: dict[int, int]
    right: dict[int, int]
    left_sent: tuple[int, ...]
    right_sent: tuple[int, ...]

    @classmethod
    def of(cls, sides: Sides, match: AsOf) -> _Layout:
        join = sides.join
        ties = [s.index for s in tie_slots(join, match)]
        extra = [i for i in (match.tombstone, match.until) if i is not None]
        lefts = [c.left for c in join.output if c.left is not None]
        if match.until is not None:  # compared with the left time after the choice
            lefts.append(match.left)
        rights = [*(c.right for c in join.output if c.right is not None), *extra, *ties]
        count = len(_compared(sides))
        # At least one column of each side, because a table without columns has no number of rows.
        left, left_sent = _assign_positions(lefts or [0], _shared_positions(sides, "left", match), count)
        right, right_sent = _assign_positions(rights or [0], _shared_positions(sides, "right", match), count)
        return cls(left, right, left_sent, right_sent)


def _assign_positions(returned: list[int], shared: dict[int, int], keys: int) -> tuple[dict[int, int], tuple[int, ...]]:
    """Return the position of each returned column, and the columns that are sent only to be returned."""
    sent = tuple(i for i in dict.fromkeys(returned) if i not in shared)
    positions = shared | {i: _FIRST_KEY + keys + n for n, i in enumerate(sent)}
    return {i: positions[i] for i in dict.fromkeys(returned)}, sent


def _shared_positions(sides: Sides, side: Side, match: AsOf) -> dict[int, int]:
    """Return the columns of a side that are sent anyway, as a key or as the time."""
    fields, dtype = sides.join.schema_of(side).fields, Axis.of(sides, match).dtype
    positions, order = {}, order_index(match, side)
    if fields[order].dtype == dtype and dtype.is_temporal:
        positions[order] = _FIRST_KEY - 1
    for n, key in enumerate(_compared(sides)):
        index = key.index(side)
        if fields[index].dtype == key.dtype and not key.dtype.is_fraction:
            positions[index] = _FIRST_KEY + n
    return positions


def _compared(sides: Sides) -> tuple[ResolvedKey, ...]:
    """Return the keys that a group compares.

    The number of a time slice only assigns a row to a group.  Slices of one key that share a group may
    see each other's rows, but no row of another slice is nearer than the match in the own slice.
    """
    return sides.join.keys[:-1] if sides.sliced else sides.join.keys


def lower(sides: Sides, match: AsOf) -> DataFrame:
    """Return the joined rows under positional names; no job runs."""
    layout = _Layout.of(sides, match)
    left, right = _sent(sides, match, "left", layout), _sent(sides, match, "right", layout)
    joined = (
        left.groupBy(_GROUP)
        .cogroup(right.groupBy(_GROUP))
        .applyInArrow(
            ship_by_value((asof_search, asof_result), asof_search.join_group(_search(sides, match, layout))),
            cast("StructType", to_spark(_result(sides, layout))),
        )
    )
    return _finished(_unfolded(joined, sides, layout), sides, match, layout)


def _unfolded(joined: DataFrame, sides: Sides, layout: _Layout) -> DataFrame:
    """Return a row for each left row, also of those that came in a list beside their right row."""
    F = sides.F
    rights = [internal_name(RIGHT, i) for i in layout.right]
    # Computed before the list is exploded: otherwise Spark would keep the whole list beside each of its rows.
    plain = joined.withColumn(_PLAIN, F.col(_MANY).isNull())
    every = plain.select(
        *(internal_name(LEFT, i) for i in layout.left), *rights, RIGHT_HERE, _PLAIN, F.inline_outer(_MANY)
    )
    lefts = [
        F.when(F.col(_PLAIN), F.col(internal_name(LEFT, i))).otherwise(F.col(f"f{n}")).alias(internal_name(LEFT, i))
        for n, i in enumerate(layout.left)
    ]
    return every.select(*lefts, *rights, RIGHT_HERE)


def _sent(sides: Sides, match: AsOf, side: Side, layout: _Layout) -> DataFrame:
    """Return the rows of a side as they are sent: group, time, keys, its own columns, usable."""
    F = sides.F
    ours = side == "left"
    usable = can_match(sides, match, side)
    frame = sides.left if ours else sides.right.filter(usable)
    keys = [_key_column(sides, side, key) for key in sides.join.keys]
    hashed = sides.spread(keys)
    if ours:
        hashed = F.when(usable, hashed).otherwise(sides.hash_left_row())
    axis = Axis.of(sides, match)
    return frame.select(
        balanced_group(F, hashed, count_partitions(frame)).alias(_GROUP),
        _time_column(sides, axis, axis.left if ours else axis.right).alias(_TIME),
        *(key.alias(f"{_KEY}{n}") for n, key in enumerate(keys[: len(_compared(sides))])),
        *(sides.column(Slot(side, i)) for i in (layout.left_sent if ours else layout.right_sent)),
        *((usable.alias(_USABLE),) if ours and split_conditions(sides.join).left else ()),
    )


def _key_column(sides: Sides, side: Side, key: ResolvedKey) -> Column:
    """Return a key with one bit pattern for each value: the kernel and the hash compare bits, Spark compares values."""
    F = sides.F
    column = sides.column_of(side, key.index(side), key.dtype)
    if not key.dtype.is_fraction:
        return column
    nan = F.lit(float("nan"))
    whole = F.when(F.isnan(column), nan).otherwise(column + F.lit(0.0))  # -0.0 becomes 0.0
    return whole.cast(to_spark(key.dtype))


def _time_column(sides: Sides, axis: Axis, column: Column) -> Column:
    """Return the order value as something of 64 bits that sorts alike."""
    if isinstance(axis.dtype, Decimal):
        shift = Decimal(axis.dtype.scale + 1, 0)
        power = sides.F.lit(10**axis.dtype.scale).cast(to_spark(shift))
        return (column * power).cast("long")
    if axis.dtype.is_integer:
        return column.cast("long")
    return column.cast("double") if axis.dtype.is_fraction else column


def _tolerance(match: AsOf, dtype: DType) -> int | None:
    """Return the tolerance in the unit of the time column."""
    if match.tolerance is None:
        return None
    scale = dtype.scale if isinstance(dtype, Decimal) else 0
    line = Line(dtype if isinstance(dtype, Decimal) or dtype == DATE else LONG)
    steps = Number(line.steps(match.tolerance, up=False))
    return min(int(steps.scaleb(scale, _ROOMY)), _FARTHEST)


def _search(sides: Sides, match: AsOf, layout: _Layout) -> asof_result.Search:
    keys = tuple(range(_FIRST_KEY, _FIRST_KEY + len(_compared(sides))))
    return asof_result.Search(
        left_keys=keys,
        right_keys=keys,
        left_time=_FIRST_KEY - 1,
        right_time=_FIRST_KEY - 1,
        usable=_FIRST_KEY + len(keys) + len(layout.left_sent) if split_conditions(sides.join).left else None,
        nulls_equal=sides.join.nulls_equal,
        ties=tuple(layout.right[s.index] for s in tie_slots(sides.join, match)),
        skip_nulls=tuple(layout.right[i] for i in match.skip_nulls if i in layout.right),
        backward=match.direction in ("backward", "nearest"),
        forward=match.direction in ("forward", "nearest"),
        allow_exact=match.allow_exact,
        tolerance=_tolerance(match, Axis.of(sides, match).dtype),
        tie_backward=match.nearest_tie == "backward",
        keep_unmatched=sides.join.how == "left" or bool(sides.join.unmatched),
        left_out=tuple(layout.left.values()),
        right_out=tuple(layout.right.values()),
        names=tuple(f.name for f in _result(sides, layout).fields),
        most=HELD,
        whole=WHOLE,
        piece=PIECE,
    )


def _result(sides: Sides, layout: _Layout) -> Struct:
    lefts = [Field(internal_name(LEFT, i), sides.join.left.fields[i].dtype) for i in layout.left]
    rights = (Field(internal_name(RIGHT, i), sides.join.right.fields[i].dtype) for i in layout.right)
    folded = Struct(tuple(Field(f"f{n}", field.dtype) for n, field in enumerate(lefts)))
    return Struct((*lefts, *rights, Field(RIGHT_HERE, BOOLEAN), Field(_MANY, Array(folded))))


def _finished(joined: DataFrame, sides: Sides, match: AsOf, layout: _Layout) -> DataFrame:
    """Return the rows with their markers; a tombstone or an ended state cancels the match."""
    F = sides.F
    over = is_over(sides, match, lambda i: F.col(internal_name(RIGHT, i)))
    here = F.col(RIGHT_HERE)
    if over is not None:
        here = here & ~over
        rights = [F.when(here, F.col(internal_name(RIGHT, i))).alias(internal_name(RIGHT, i)) for i in layout.right]
        joined = joined.select(*(internal_name(LEFT, i) for i in layout.left), *rights, here.alias(RIGHT_HERE))
        if sides.join.how == "inner" and not sides.join.unmatched:
            joined = joined.filter(F.col(RIGHT_HERE))
    # The kernel returns false where the other plans have NULL.
    markers = {LEFT_HERE: F.lit(True), RIGHT_HERE: F.when(F.col(RIGHT_HERE), F.lit(True))}
    return joined.withColumns(markers)
