"""Order columns of a join as Spark columns: compared, subtracted, measured, exactly.

Timestamps are subtracted as microseconds, because Spark would subtract what clocks show in the
session's zone.  Other times are subtracted as times, so that one without zone never passes through the
session's zone; the difference is an interval and intervals compare exactly.

Decimals of 38 digits have no type for their difference, which may have 39: Spark would drop the last
digit or fail.  It is made of two parts instead, which compare like the number they stand for::

    decimal(38,0)   5 * 10**37 - -6 * 10**37  ->  (11 * 10**18, 0)       in units of 10**19, and the rest
    decimal(38,20)  1.5 - 0.75                ->  (0, 0.75)              in ones, and the fraction
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import Context
from decimal import Decimal as Number

from pyspark.sql import Column

from weft.core.types import (
    DATE,
    LONG,
    MAX_PRECISION,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Decimal,
    DType,
    Scalar,
    as_decimal,
    common_type,
)
from weft.errors import JoinTypeError
from weft.expr.spark.columns import negate_exact
from weft.expr.spark.types import literal, to_spark
from weft.joins.resolve.axis import Axis as Line
from weft.joins.resolve.resolved import Amount, AsOf, ResolvedJoin, Slot
from weft.joins.spark.sides import Sides

_LONG_END = (1 << 63) - 1
_SCALE_KEPT = 6  # Spark keeps this many fraction digits when a result would need more than 38 digits
_MOST_SPLIT = 35
_UNIT = 10**19
_ROOMY = Context(prec=2200)  # a tolerance has up to 1000 digits on either side of its point


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
        """Return how far apart two values are: microseconds, an interval without a zone, a number or its parts."""
        F = self.sides.F
        if self.dtype.is_fraction:
            # Infinity minus infinity is NaN, but two equal times have no distance.
            apart = F.abs(left - right)
            far = F.isnan(left) | F.isnan(right)
            return F.when(left == right, F.lit(0.0)).when(far, F.lit(float("inf"))).otherwise(apart)
        if self.dtype == TIMESTAMP:
            # Spark subtracts timestamps by what clocks show, an hour off where summer time begins or ends.
            left, right = F.unix_micros(left), F.unix_micros(right)
            return F.abs(left - right)
        if self._is_split:
            return self._split_distance(left, right)
        wide = to_spark(_wide(self.dtype))
        left, right = left.cast(wide), right.cast(wide)
        if isinstance(self.dtype, Decimal):  # abs, like the minus sign, rounds decimals to 34 digits
            return F.when(left < right, right - left).otherwise(left - right)
        return F.abs(left - right)

    def within(self, gap: Column, tolerance: Amount) -> Column:
        """Whether a distance is at most the tolerance."""
        F = self.sides.F
        if self.dtype == TIMESTAMP:
            limit: Column = F.lit(min(int(tolerance), _LONG_END)).cast("long")
        elif self.dtype.is_temporal:
            limit = F.lit(dt.timedelta(microseconds=min(int(tolerance), _LONG_END)))
        elif self.dtype.is_fraction:
            limit = F.lit(float(tolerance))
        else:
            limit = self._limit(tolerance)
        return gap <= limit

    def nearness(self, left: Column, right: Column) -> list[Column]:
        """Return columns that are greater, the first one first, the nearer two values are."""
        F, gap = self.sides.F, self.distance(left, right)
        if self._is_split:
            whole = negate_exact(F, gap["whole"], Decimal(MAX_PRECISION, 0))
            return [whole, negate_exact(F, gap["rest"], self._rest)]
        if isinstance(self.dtype, Decimal):
            return [negate_exact(F, gap, Decimal(self.dtype.precision + 1, self.dtype.scale))]
        return [-gap]

    @property
    def _is_split(self) -> bool:
        return isinstance(self.dtype, Decimal) and self.dtype.precision == MAX_PRECISION

    @property
    def _unit(self) -> int:
        """What the first part of a distance counts: so large that differences of both parts have a type."""
        assert isinstance(self.dtype, Decimal)  # noqa: S101  # the callers' own branch
        if self.dtype.scale > _MOST_SPLIT:
            raise JoinTypeError(
                f"{self.dtype} has no room for a distance", help="cast the order columns to fewer digits"
            )
        return _UNIT if self.dtype.scale <= _SCALE_KEPT else 1

    @property
    def _rest(self) -> Decimal:
        """The type of the second part: Spark compares two distances only when their types are equal."""
        scale = self.dtype.scale if isinstance(self.dtype, Decimal) else 0
        return Decimal(scale + (2 if self._unit == 1 else len(str(_UNIT)) + 1), scale)

    def _split_distance(self, left: Column, right: Column) -> Column:
        F, unit = (self.sides.F, literal(self.sides.F, Number(self._unit), Decimal(len(str(self._unit)), 0)))
        one, none = literal(F, Number(1), Decimal(1, 0)), literal(F, Number(0), Decimal(1, 0))
        scale, narrow = self._rest.scale, to_spark(self._rest)

        def parts(value: Column) -> tuple[Column, Column]:
            rest = value % unit
            whole = (value - rest).cast(to_spark(self.dtype))
            whole = whole if self._unit == 1 else whole / unit
            return whole.cast(f"decimal({MAX_PRECISION - scale if self._unit == 1 else 20},0)"), rest.cast(narrow)

        big, small = parts(F.greatest(left, right)), parts(F.least(left, right))
        rest = (big[1] - small[1]).cast(narrow)  # more than minus one unit, and less than two
        carried = F.when(rest < none, none - one).when(rest >= unit, one).otherwise(none)
        whole = (big[0] - small[0] + carried).cast(f"decimal({MAX_PRECISION},0)")
        inside = F.when(rest < none, rest + unit).when(rest >= unit, rest - unit).otherwise(rest)
        there = left.isNotNull() & right.isNotNull()  # greatest and least skip NULL
        return F.when(there, F.struct(whole.alias("whole"), inside.cast(narrow).alias("rest")))

    def _limit(self, tolerance: Amount) -> Column:
        """Return a tolerance in the form of a distance; one that is longer than all is as long as the longest."""
        F, line = self.sides.F, Line(self.dtype if isinstance(self.dtype, Decimal) else LONG)
        longest = line.longest
        assert longest is not None  # noqa: S101  # of numbers that are not fractions
        steps = Number(line.steps(min(Number(tolerance), longest), up=False))
        if not self._is_split:
            wide = _wide(self.dtype)
            assert isinstance(wide, Decimal)  # noqa: S101  # of numbers that are not fractions
            room = Decimal(min(wide.precision + 2, MAX_PRECISION), wide.scale)
            limit: Column = literal(F, steps, room)
            return limit
        scale = self._rest.scale
        # In last digits, as integers: Python's own context rounds decimals to 28 digits.
        whole, rest = divmod(int(steps.scaleb(scale, _ROOMY)), self._unit * 10**scale)
        return F.struct(
            literal(F, Number(whole), Decimal(MAX_PRECISION, 0)).alias("whole"),
            literal(F, Number(rest).scaleb(-scale, _ROOMY), self._rest).alias("rest"),
        )

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
        return dtype  # a difference has one digit more, which there is room for below 38
    if dtype.is_integer:
        return Decimal(as_decimal(dtype if isinstance(dtype, Scalar) else LONG).precision + 1, 0)
    return dtype


def is_known_in_time(sides: Sides, match: AsOf) -> Column | None:
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
    """Return the right columns that decide ties, most important first, each once."""
    # Keys and the time itself are equal among the rows of a tie, so they are left out.
    known = () if match.known is None else (match.known[1],)
    every = (i for i, f in enumerate(join.right.fields) if f.dtype.is_orderable)
    equal = {match.right, *(k.right for k in join.keys)}
    return tuple(Slot("right", i) for i in dict.fromkeys((*known, *match.tie_break, *every)) if i not in equal)
