"""Order columns of a join as Spark columns: compared, subtracted, measured, exactly.

Timestamps are subtracted as microseconds, because Spark would subtract what clocks show in the
session's zone.  Other times are subtracted as times, so that one without zone never passes through the
session's zone; the difference is an interval and intervals compare exactly.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weft.core.types import (
    DATE,
    LONG,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Decimal,
    DType,
    Scalar,
    as_decimal,
    common_type,
)
from weft.plan.resolved import Amount, AsOf, ResolvedJoin, Slot
from weft.spark.sides import Sides
from weft.spark.types import to_spark

if TYPE_CHECKING:
    from pyspark.sql import Column


_LONG_END = (1 << 63) - 1


def axis_type(join: ResolvedJoin, left: int, right: int) -> DType:
    """Return the type in which two order columns are compared."""
    a, b = join.left.fields[left].dtype, join.right.fields[right].dtype
    return common_type(a, b) or a


@dataclass(frozen=True, slots=True)
class Axis:
    """The order pair of an as-of join."""

    sides: Sides
    match: AsOf
    dtype: DType

    @classmethod
    def of(cls, sides: Sides, match: AsOf) -> Axis:
        """Return the axis of a join."""
        return cls(sides, match, axis_type(sides.join, match.left, match.right))

    @property
    def left(self) -> Column:
        """The left order value in the common type."""
        return self.sides.left_column(self.match.left, self.dtype)

    @property
    def right(self) -> Column:
        """The right order value in the common type."""
        return self.sides.right_column(self.match.right, self.dtype)

    def distance(self, left: Column, right: Column) -> Column:
        """Return how far apart two values are: microseconds, an interval without a zone, or a number."""
        F = self.sides.F
        if self.dtype.is_fraction:
            apart = F.abs(left - right)
            far = F.isnan(left) | F.isnan(right)
            gap: Column = F.when(left == right, F.lit(0.0)).when(far, F.lit(float("inf"))).otherwise(apart)
            return gap
        if self.dtype == TIMESTAMP:
            # Spark subtracts timestamps by what clocks show, an hour off where summer time begins or ends.
            left, right = F.unix_micros(left), F.unix_micros(right)
            elapsed: Column = F.abs(left - right)
            return elapsed
        wide = to_spark(_wide(self.dtype))
        apart = left.cast(wide) - right.cast(wide)
        size: Column = F.abs(apart)
        return size

    def within(self, gap: Column, tolerance: Amount) -> Column:
        """Whether a distance is at most the tolerance."""
        F = self.sides.F
        if self.dtype == TIMESTAMP:
            limit: Column = F.lit(min(int(tolerance), _LONG_END)).cast("long")
        elif self.dtype.is_temporal:
            limit = F.lit(dt.timedelta(microseconds=int(tolerance)))
        else:
            limit = F.lit(float(tolerance) if self.dtype.is_fraction else tolerance)
        return gap <= limit

    def in_reach(self) -> Column:
        """Whether direction, exactness and tolerance allow the right value for the left one."""
        left, right, match = self.left, self.right, self.match
        both = left.isNotNull() & right.isNotNull()
        if match.direction == "backward":
            allowed = right <= left if match.allow_exact else right < left
        elif match.direction == "forward":
            allowed = right >= left if match.allow_exact else right > left
        else:
            allowed = both if match.allow_exact else left != right
        if match.tolerance is not None:
            allowed = allowed & self.within(self.distance(left, right), match.tolerance)
        return both & allowed


def _wide(dtype: DType) -> DType:
    """Return a type in which two values of `dtype` subtract without overflow."""
    if dtype == DATE:
        return TIMESTAMP_NTZ  # midnight, without a zone
    if isinstance(dtype, Decimal):
        return Decimal(38, dtype.scale)
    if dtype.is_integer:
        return Decimal(as_decimal(dtype if isinstance(dtype, Scalar) else LONG).precision + 1, 0)
    return dtype


def known_in_time(sides: Sides, match: AsOf) -> Column | None:
    """Whether the right row was known when the left row asks; None without a second axis."""
    if match.known is None:
        return None
    left, right = known_pair(sides, match)
    return right <= left


def known_pair(sides: Sides, match: AsOf) -> tuple[Column, Column]:
    """Return both knowledge times in their common type."""
    if match.known is None:
        return sides.F.lit(None), sides.F.lit(None)
    dtype = axis_type(sides.join, *match.known)
    return sides.left_column(match.known[0], dtype), sides.right_column(match.known[1], dtype)


def tie_slots(join: ResolvedJoin, match: AsOf) -> tuple[Slot, ...]:
    """Return the right columns that settle ties, most important first, each once.

    Keys and the time itself are equal among the rows of a tie, so they are left out.
    """
    known = () if match.known is None else (match.known[1],)
    every = (i for i, f in enumerate(join.right.fields) if f.dtype.is_orderable)
    equal = {match.right, *(k.right for k in join.keys)}
    return tuple(
        Slot("right", i) for i in dict.fromkeys((*known, *match.tie_break, *every)) if i not in equal
    )
