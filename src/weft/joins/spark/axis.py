"""Values on an axis as Spark columns: exact to compare, as doubles to put into bins.

A timestamp is microseconds since 1970, a date is days.  A timestamp without time zone is computed
from its date and clock parts, because a cast to `timestamp` would read it in the session time zone,
where one hour of the year is missing and another occurs twice.

Spark would round the sum of decimals of 37 or 38 digits; such a value is compared as the pair of its
whole part and its fraction.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import ROUND_FLOOR, Context
from decimal import Decimal as Number
from typing import Any

from pyspark.sql import Column

from weft.core.types import DATE, TIMESTAMP, TIMESTAMP_NTZ, Decimal, DType
from weft.errors import JoinTypeError
from weft.expr.spark.types import literal, to_spark
from weft.joins.resolve.axis import DAY, Axis, Step
from weft.joins.resolve.resolved import Side
from weft.joins.spark.sides import Functions, Sides

_LONG_END = (1 << 63) - 1
_SUMMED = 36  # decimals up to this precision have a type for their sum with a distance
_SCALE_KEPT = 6  # Spark keeps this many fraction digits when a sum would need more than 38 digits
_MOST_SPLIT = 35
_SECOND = 1_000_000
_ROOMY = Context(prec=100)
_ZERO = Number(0)


def value(F: Functions, column: Column, own: DType, axis: Axis) -> Column:
    """Return a column of type `own` as an exact value of the axis."""
    met = column if own == axis.dtype else column.cast(to_spark(axis.dtype))
    if axis.dtype == TIMESTAMP:
        return F.unix_micros(met)
    if axis.dtype == TIMESTAMP_NTZ:
        return _local_micros(F, met)
    return F.unix_date(met).cast("long") if axis.dtype == DATE else met


def is_cheap(own: DType, axis: Axis) -> bool:
    """Whether computing `value` again for each pair costs less than shuffling it."""
    return axis.dtype != TIMESTAMP_NTZ and (own == axis.dtype or axis.kind == "whole")


def _local_micros(F: Functions, moment: Column) -> Column:
    """Return the microseconds from 1970 to what a clock without zone shows."""
    days = F.unix_date(moment.cast("date")).cast("long")
    minutes = F.hour(moment).cast("long") * F.lit(60) + F.minute(moment)
    seconds = F.date_part(F.lit("SECOND"), moment)
    return days * F.lit(DAY) + minutes * F.lit(60 * _SECOND) + (seconds * F.lit(_SECOND)).cast("long")


def coordinate(F: Functions, place: Column, axis: Axis) -> Column:
    """Return a value as a double that keeps the order; neighbours may become equal.

    NaN is greater than all numbers and becomes infinity.
    """
    if axis.kind == "double":
        return F.when(F.isnan(place), F.lit(float("inf"))).otherwise(place)
    return place.cast("double")


def split_coordinate(place: Column) -> Column:
    """Return a pair of whole part and fraction as a double, exact except for rounding."""
    return place["whole"].cast("double") + place["part"].cast("double")


def comparable(F: Functions, exact: Column, axis: Axis) -> Column:
    """Return a value in the form that `move` returns, so that the two can be compared."""
    return _split(F, exact, axis) if is_split(axis) else exact


def move(F: Functions, exact: Column, by: Step, axis: Axis) -> Column:
    """Return a value moved by a number of steps; NULL, which matches nothing, past the last value."""
    if axis.kind == "whole":
        assert isinstance(by, int)  # noqa: S101  # steps of a whole axis
        # A distance may be up to twice as long as the axis, and a literal holds one long.
        while by:
            part = max(min(by, _LONG_END), -_LONG_END)
            exact, by = F.try_add(exact, F.lit(part).cast("long")), by - part
        return exact
    if axis.kind == "double":
        return exact + F.lit(float(by))
    if is_split(axis):
        return _split(F, exact, axis, Number(by))
    assert isinstance(axis.dtype, Decimal)  # noqa: S101  # the only kind that is left
    room = Decimal(min(axis.dtype.precision + 1, 38), axis.dtype.scale)
    return F.try_add(exact, literal(F, Number(by), room))


def move_clamped(F: Functions, exact: Column, by: Step, axis: Axis) -> Column:
    """Return a value moved by a number of steps, or the last value of the axis."""
    target = move(F, exact, by, axis)
    if axis.kind == "double" or is_split(axis):
        return target
    last: Any = F.lit(_LONG_END if by > 0 else -_LONG_END - 1).cast("long")
    if isinstance(axis.dtype, Decimal):
        if axis.dtype.precision <= _SUMMED:
            return target
        nines = Number(10**38 - 1).scaleb(-axis.dtype.scale, _ROOMY)
        last = literal(F, nines if by > 0 else nines.copy_negate(), Decimal(38, axis.dtype.scale))
    return F.coalesce(target, F.when(exact.isNotNull(), last))


def is_split(axis: Axis) -> bool:
    """Whether sums on the axis are pairs of whole part and fraction."""
    dtype = axis.dtype
    return isinstance(dtype, Decimal) and dtype.precision > _SUMMED and dtype.scale > _SCALE_KEPT


def _split(F: Functions, exact: Column, axis: Axis, by: Number = _ZERO) -> Column:
    """Return whole part and fraction of ``exact + by``; pairs compare like the numbers."""
    assert isinstance(axis.dtype, Decimal)  # noqa: S101  # the branch of the caller
    scale = axis.dtype.scale
    if scale > _MOST_SPLIT:
        raise JoinTypeError(f"{axis.dtype} has no room for a distance", help="cast the order columns to fewer digits")
    one, none = literal(F, Number(1), Decimal(1, 0)), literal(F, Number(0), Decimal(1, 0))
    by_whole = by.to_integral_value(rounding=ROUND_FLOOR)
    by_part = literal(F, _ROOMY.subtract(by, by_whole), Decimal(scale + 1, scale))
    rest = exact % one
    # A cast after each sum: Spark would widen the whole part of the type and drop digits of the fraction.
    fraction = (F.when(rest < none, rest + one).otherwise(rest) + by_part).cast(f"decimal({scale + 2},{scale})")
    carried = fraction >= one
    whole = F.floor(exact).cast("decimal(38,0)") + literal(F, by_whole, Decimal(36, 0))
    return F.when(
        exact.isNotNull(),
        F.struct(
            (whole + F.when(carried, one).otherwise(none)).cast("decimal(38,0)").alias("whole"),
            F.when(carried, fraction - one).otherwise(fraction).cast(f"decimal({scale + 1},{scale})").alias("part"),
        ),
    )


@dataclass(slots=True)
class Places:
    """Two sides and an axis; `sides` gets a column for each value that is expensive to compute."""

    sides: Sides
    axis: Axis
    _known: dict[str, Column] = field(default_factory=dict)

    def value(self, side: Side, index: int, role: str = "start") -> Column:
        """Return the exact value of a column on the axis."""
        own = self.sides.join.schema_of(side).fields[index].dtype
        exact = value(self.sides.F, self.sides.column_of(side, index), own, self.axis)
        return exact if is_cheap(own, self.axis) else self.kept(side, role, exact)

    def kept(self, side: Side, role: str, column: Column) -> Column:
        """Return a column that is computed once, in the frame of its side."""
        name = f"__weft_{side}_{role}"
        if name not in self._known:
            frame = self.sides.frame(side).withColumn(name, column)
            self.sides = self.sides.with_frame(side, frame)
            self._known[name] = self.sides.F.col(name)
        return self._known[name]
