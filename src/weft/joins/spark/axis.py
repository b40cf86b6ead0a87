"""Values on an axis as Spark columns: exact to compare, as doubles to put into bins.

A timestamp is its microseconds since 1970, a date its days.  A timestamp without zone is
put together from its date and clock parts, because a cast to `timestamp` would read it in
the session's zone, where one hour of the year is missing and another comes twice.

A decimal of 37 or 38 digits has no room for a sum, and Spark would round it; such a value
is compared as the pair of its whole part and its fraction.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from decimal import ROUND_FLOOR, Context
from decimal import Decimal as Number
from types import ModuleType
from typing import Any

from pyspark.sql import Column

from weft.core.types import DATE, TIMESTAMP, TIMESTAMP_NTZ, Decimal, DType
from weft.errors import JoinTypeError
from weft.expr.spark.types import literal, to_spark
from weft.joins.resolve.axis import DAY, Axis, Step
from weft.joins.resolve.resolved import Side
from weft.joins.spark.sides import Sides

_LONG_END = (1 << 63) - 1
_SUMMED = 36
_SCALE_KEPT = 6
_MOST_SPLIT = 35
_SECOND = 1_000_000
_ROOMY = Context(prec=100)
_ZERO = Number(0)


def value(F: ModuleType, column: Column, own: DType, axis: Axis) -> Column:
    """Return a column of type `own` as an exact value of the axis."""
    met = column if own == axis.dtype else column.cast(to_spark(axis.dtype))
    found: Column = met
    if axis.dtype == TIMESTAMP:
        found = F.unix_micros(met)
    elif axis.dtype == TIMESTAMP_NTZ:
        found = _local_micros(F, met)
    elif axis.dtype == DATE:
        found = F.unix_date(met).cast("long")
    return found


def is_cheap(own: DType, axis: Axis) -> bool:
    """Whether `value` costs so little that computing it again for each pair beats shuffling it."""
    return axis.dtype != TIMESTAMP_NTZ and (own == axis.dtype or axis.kind == "whole")


def _local_micros(F: ModuleType, moment: Column) -> Column:
    """Return the microseconds from 1970 to what a clock without zone shows."""
    days = F.unix_date(moment.cast("date")).cast("long")
    minutes = F.hour(moment).cast("long") * F.lit(60) + F.minute(moment)
    seconds = F.date_part(F.lit("SECOND"), moment)
    found: Column = (
        days * F.lit(DAY) + minutes * F.lit(60 * _SECOND) + (seconds * F.lit(_SECOND)).cast("long")
    )
    return found


def coordinate(F: ModuleType, place: Column, axis: Axis) -> Column:
    """Return a place as a double, in the same order, though neighbours may fall together.

    NaN is greater than all numbers and lies with infinity.
    """
    if axis.kind == "double":
        found: Column = F.when(F.isnan(place), F.lit(float("inf"))).otherwise(place)
        return found
    return place.cast("double")


def split_coordinate(place: Column) -> Column:
    """Return a pair of whole part and fraction as a double, right but for rounding."""
    return place["whole"].cast("double") + place["part"].cast("double")


def comparable(F: ModuleType, exact: Column, axis: Axis) -> Column:
    """Return a value in the form that `moved` gives, so that the two compare."""
    return _split(F, exact, axis) if is_split(axis) else exact


def moved(F: ModuleType, exact: Column, by: Step, axis: Axis) -> Column:
    """Return a value `by` steps further on; past the last value it is NULL, which meets nothing."""
    if axis.kind == "whole":
        assert isinstance(by, int)  # noqa: S101  # steps of a whole axis
        while by:
            part = max(min(by, _LONG_END), -_LONG_END)
            exact, by = F.try_add(exact, F.lit(part).cast("long")), by - part
        return exact
    if axis.kind == "double":
        further: Column = exact + F.lit(float(by))
        return further
    if is_split(axis):
        return _split(F, exact, axis, Number(by))
    return _sum(F, exact, Number(by), axis)


def moved_as_far_as_can_be(F: ModuleType, exact: Column, by: Step, axis: Axis) -> Column:
    """Return a value `by` steps further on, or the last one there is."""
    found = moved(F, exact, by, axis)
    if axis.kind == "double" or is_split(axis):
        return found
    last: Any = F.lit(_LONG_END if by > 0 else -_LONG_END - 1).cast("long")
    if isinstance(axis.dtype, Decimal):
        if axis.dtype.precision <= _SUMMED:
            return found
        nines = Number(10**38 - 1).scaleb(-axis.dtype.scale, _ROOMY)
        last = literal(F, nines if by > 0 else nines.copy_negate(), Decimal(38, axis.dtype.scale))
    whole: Column = F.coalesce(found, F.when(exact.isNotNull(), last))
    return whole


def _sum(F: ModuleType, exact: Column, by: Number, axis: Axis) -> Column:
    assert isinstance(axis.dtype, Decimal)  # noqa: S101  # the branch of the caller
    room = Decimal(min(axis.dtype.precision + 1, 38), axis.dtype.scale)
    found: Column = F.try_add(exact, literal(F, by, room))
    return found


def is_split(axis: Axis) -> bool:
    """Whether sums on the axis are pairs of whole part and fraction."""
    dtype = axis.dtype
    return isinstance(dtype, Decimal) and dtype.precision > _SUMMED and dtype.scale > _SCALE_KEPT


def _split(F: ModuleType, exact: Column, axis: Axis, by: Number = _ZERO) -> Column:
    """Return whole part and fraction of ``exact + by``; pairs compare like the numbers they stand for."""
    assert isinstance(axis.dtype, Decimal)  # noqa: S101  # the branch of the caller
    scale = axis.dtype.scale
    if scale > _MOST_SPLIT:
        raise JoinTypeError(
            f"{axis.dtype} has no room for a distance", help="cast the order columns to fewer digits"
        )
    one, none = literal(F, Number(1), Decimal(1, 0)), literal(F, Number(0), Decimal(1, 0))
    by_whole = by.to_integral_value(rounding=ROUND_FLOOR)
    by_part = literal(F, _ROOMY.subtract(by, by_whole), Decimal(scale + 1, scale))
    rest = exact % one
    # Casts after each sum: Spark makes room for digits that are not there, and takes it from the last ones.
    fraction = (F.when(rest < none, rest + one).otherwise(rest) + by_part).cast(
        f"decimal({scale + 2},{scale})"
    )
    carried = fraction >= one
    whole = F.floor(exact).cast("decimal(38,0)") + literal(F, by_whole, Decimal(36, 0))
    found: Column = F.when(
        exact.isNotNull(),
        F.struct(
            (whole + F.when(carried, one).otherwise(none)).cast("decimal(38,0)").alias("whole"),
            F.when(carried, fraction - one)
            .otherwise(fraction)
            .cast(f"decimal({scale + 1},{scale})")
            .alias("part"),
        ),
    )
    return found


@dataclass(slots=True)
class Places:
    """Two sides and an axis; `sides` gains a column for each value that is dear to compute."""

    sides: Sides
    axis: Axis
    _known: dict[str, Column] = field(default_factory=dict)

    def value(self, side: Side, index: int, role: str = "start") -> Column:
        """Return the exact value of a column on the axis."""
        schema = self.sides.join.left if side == "left" else self.sides.join.right
        own = schema.fields[index].dtype
        column = self.sides.left_column(index) if side == "left" else self.sides.right_column(index)
        found = value(self.sides.F, column, own, self.axis)
        return found if is_cheap(own, self.axis) else self.kept(side, role, found)

    def kept(self, side: Side, role: str, column: Column) -> Column:
        """Return a column that is computed once, in the frame of its side; a role is kept once."""
        name = f"__weft_{side}_{role}"
        if name not in self._known:
            if side == "left":
                self.sides = replace(self.sides, left=self.sides.left.withColumn(name, column))
            else:
                self.sides = replace(self.sides, right=self.sides.right.withColumn(name, column))
            self._known[name] = self.sides.F.col(name)
        return self._known[name]
