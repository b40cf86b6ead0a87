"""As-of by a kernel over Arrow tables, one coarse hash partition of both sides at a time.

Before::

    left ASOF right  keys k

After::

    cogroup(left by hash(k) % n, right by hash(k) % n) -> binary search in numpy

Nothing is sorted in the JVM, which is the dearest step of the union plan; rows are copied to
Python and back instead.  A task holds its share of both sides in memory, so the number of
groups follows ``spark.sql.shuffle.partitions``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from weft.core.names import LEFT, RIGHT, internal
from weft.core.types import BOOLEAN, DATE, Decimal, DType, Field, Struct
from weft.plan.conditions import split
from weft.plan.resolved import AsOf, ResolvedKey, Side, Slot
from weft.spark import asof_search
from weft.spark.chosen import is_over, usable_left, usable_right
from weft.spark.hashing import balanced_group
from weft.spark.order import Axis, tie_slots
from weft.spark.shipping import sent_by_value
from weft.spark.sides import LEFT_HERE, RIGHT_HERE, Sides
from weft.spark.types import to_spark

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

_GROUP, _USABLE, _TIME, _KEY = "__weft_group", "__weft_usable", "__weft_time", "__weft_key"
_DAY = 86_400_000_000


@dataclass(frozen=True, slots=True)
class _Sent:
    """What is sent of one side: a frame, and the columns of the join among its columns."""

    frame: DataFrame
    columns: tuple[int, ...]
    names: tuple[str, ...]

    def at(self, name: str) -> int:
        """Return the position of a column of the frame."""
        return self.names.index(name)


def lower(sides: Sides, match: AsOf) -> DataFrame:
    """Return the joined rows under positional names; no job runs."""
    ties = tuple(s.index for s in tie_slots(sides.join, match))
    left = _sent(sides, match, "left", [c.left for c in sides.join.output if c.left is not None])
    needed = [c.right for c in sides.join.output if c.right is not None]
    extra = [i for i in (match.tombstone, match.until) if i is not None]
    right = _sent(sides, match, "right", [*needed, *extra, *ties])
    search = _search(sides, match, left, right, ties)
    joined = (
        left.frame.groupBy(_GROUP)
        .cogroup(right.frame.groupBy(_GROUP))
        .applyInArrow(
            sent_by_value(asof_search, asof_search.cogrouped(search)),
            cast("StructType", to_spark(_result(sides, left, right))),
        )
    )
    return _finished(joined, sides, match, left, right)


def _sent(sides: Sides, match: AsOf, side: Side, wanted: Sequence[int]) -> _Sent:
    """Return the frame of a side: its group, its keys and time in comparable form, and columns."""
    F = sides.F
    conditions = split(sides.join)
    frame = sides.left if side == "left" else sides.right
    usable = (usable_left if side == "left" else usable_right)(sides, match, conditions)
    if side == "right":
        frame, usable = frame.filter(usable), F.lit(True)
    columns = tuple(dict.fromkeys(wanted)) or (0,)
    keys = [_key_column(sides, side, key) for key in sides.join.keys]
    axis = Axis.of(sides, match)
    time = _time_column(sides, axis, axis.left if side == "left" else axis.right)
    prefix = LEFT if side == "left" else RIGHT
    partitions = int(frame.sparkSession.conf.get("spark.sql.shuffle.partitions", "200") or 200)
    frame = frame.select(
        balanced_group(F, F.xxhash64(*keys), partitions).alias(_GROUP),
        usable.alias(_USABLE),
        time.alias(_TIME),
        *(key.alias(f"{_KEY}{n}") for n, key in enumerate(keys)),
        *(sides.column(Slot(side, i)) for i in columns),
    )
    named = (_GROUP, _USABLE, _TIME, *(f"{_KEY}{n}" for n in range(len(keys))))
    return _Sent(frame, columns, (*named, *(internal(prefix, i) for i in columns)))


def _key_column(sides: Sides, side: Side, key: ResolvedKey) -> Column:
    F = sides.F
    column = (
        sides.left_column(key.left, key.dtype) if side == "left" else sides.right_column(key.right, key.dtype)
    )
    if not key.dtype.is_fraction:
        return column
    nan = F.lit(float("nan"))
    whole: Column = F.when(F.isnan(column), nan).otherwise(column + F.lit(0.0))  # -0.0 becomes 0.0
    return whole.cast(to_spark(key.dtype))


def _time_column(sides: Sides, axis: Axis, column: Column) -> Column:
    """Return the order value as something of 64 bits that sorts alike."""
    if isinstance(axis.dtype, Decimal):
        shift = Decimal(axis.dtype.scale + 1, 0)
        power: Column = sides.F.lit(10**axis.dtype.scale).cast(to_spark(shift))
        return (column * power).cast("long")
    if axis.dtype.is_integer:
        return column.cast("long")
    return column.cast("double") if axis.dtype.is_fraction else column


def _tolerance(match: AsOf, dtype: DType) -> int | None:
    """Return the tolerance in the unit of the time column."""
    if match.tolerance is None:
        return None
    if isinstance(dtype, Decimal):
        return int(match.tolerance * 10**dtype.scale // 1)
    return int(match.tolerance) // _DAY if dtype == DATE else int(match.tolerance // 1)


def _search(
    sides: Sides, match: AsOf, left: _Sent, right: _Sent, ties: tuple[int, ...]
) -> asof_search.Search:
    keys = range(len(sides.join.keys))
    dtype = Axis.of(sides, match).dtype
    return asof_search.Search(
        left_keys=tuple(left.at(f"{_KEY}{n}") for n in keys),
        right_keys=tuple(right.at(f"{_KEY}{n}") for n in keys),
        left_time=left.at(_TIME),
        right_time=right.at(_TIME),
        usable=left.at(_USABLE),
        ties=tuple(right.at(internal(RIGHT, i)) for i in ties),
        skip_nulls=tuple(right.at(internal(RIGHT, i)) for i in match.skip_nulls if i in right.columns),
        backward=match.direction in ("backward", "nearest"),
        forward=match.direction in ("forward", "nearest"),
        allow_exact=match.allow_exact,
        tolerance=_tolerance(match, dtype),
        tie_backward=match.nearest_tie == "backward",
        keep_unmatched=sides.join.how == "left" or bool(sides.join.unmatched),
        left_out=tuple(left.at(internal(LEFT, i)) for i in left.columns),
        right_out=tuple(right.at(internal(RIGHT, i)) for i in right.columns),
        names=tuple(f.name for f in _result(sides, left, right).fields),
    )


def _result(sides: Sides, left: _Sent, right: _Sent) -> Struct:
    lefts = (Field(internal(LEFT, i), sides.join.left.fields[i].dtype) for i in left.columns)
    rights = (Field(internal(RIGHT, i), sides.join.right.fields[i].dtype) for i in right.columns)
    return Struct((*lefts, *rights, Field(RIGHT_HERE, BOOLEAN)))


def _finished(joined: DataFrame, sides: Sides, match: AsOf, left: _Sent, right: _Sent) -> DataFrame:
    """Return the rows with their marks; a tombstone or an ended state undoes the match."""
    F = sides.F
    over = is_over(sides, match, lambda i: F.col(internal(RIGHT, i)))
    here = F.col(RIGHT_HERE)
    if over is not None:
        here = here & ~over
        rights = [F.when(here, F.col(internal(RIGHT, i))).alias(internal(RIGHT, i)) for i in right.columns]
        joined = joined.select(*(internal(LEFT, i) for i in left.columns), *rights, here.alias(RIGHT_HERE))
        if sides.join.how == "inner" and not sides.join.unmatched:
            joined = joined.filter(F.col(RIGHT_HERE))
    marks = {LEFT_HERE: F.lit(True), RIGHT_HERE: F.when(F.col(RIGHT_HERE), F.lit(True))}
    return joined.withColumns(marks)
