"""The axis on which the times or numbers of both sides are compared, and bounds on it.

Values of whole axes (times, dates, integers) are longs: microseconds, days or ones.  A distance
that is not a whole number of steps is rounded inwards, which changes no result, because there is
no value between two steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from decimal import Decimal as Number
from functools import reduce
from typing import Literal

from weft.core.types import DATE, DOUBLE, LONG, Decimal, DType, common_type
from weft.errors import JoinTypeError
from weft.joins.resolve.resolved import Amount, Overlap, ResolvedJoin, SameWindow, Side, Within

AxisKind = Literal["whole", "decimal", "double"]
Step = int | Number | float
"""A distance on an axis: steps of a whole axis, a Decimal or a double."""

DAY = 86_400_000_000
_WHOLE_END = 1 << 64
_ROOMY = Context(prec=2200)  # a distance has up to 1000 digits on either side of its point


@dataclass(frozen=True, slots=True)
class Axis:
    """The type in which values are compared, and how they are counted."""

    dtype: DType

    @property
    def kind(self) -> AxisKind:
        """Whether values are whole steps, exact decimals or binary fractions."""
        if isinstance(self.dtype, Decimal):
            return "decimal"
        return "double" if self.dtype == DOUBLE else "whole"

    @property
    def unit(self) -> int:
        """How many microseconds a step is, 1 for numbers."""
        return DAY if self.dtype == DATE else 1

    def steps(self, distance: Amount, *, up: bool) -> Step:
        """Return a distance in steps, rounded up or down to a step.

        >>> Axis(LONG).steps(Number("-1.5"), up=True), Axis(DATE).steps(2 * DAY, up=False)
        (-1, 2)
        """
        exact = _ROOMY.divide(Number(distance), Number(self.unit))
        if self.kind == "double":
            return float(exact)
        scale = self.dtype.scale if isinstance(self.dtype, Decimal) else 0
        rounding = ROUND_CEILING if up else ROUND_FLOOR
        rounded = exact.quantize(Number(1).scaleb(-scale), rounding=rounding, context=_ROOMY)
        return rounded if isinstance(self.dtype, Decimal) else int(rounded)

    @property
    def longest(self) -> Number | None:
        """A distance greater than that of any two values; None if infinity is a value."""
        if isinstance(self.dtype, Decimal):
            return 2 * Number(10) ** (self.dtype.precision - self.dtype.scale)
        return Number(_WHOLE_END) if self.kind == "whole" else None


def find_axis(join: ResolvedJoin) -> Axis:
    """Return the axis of a join by time or by ranges.

    All compared columns have one common type; decimals without an exact common type are an error,
    because rounding would move the ends of ranges.
    """
    dtype = reduce(_common_type, _compared(join))
    if dtype.is_temporal or isinstance(dtype, Decimal):
        return Axis(dtype)
    return Axis(LONG if dtype.is_integer else DOUBLE)


def _compared(join: ResolvedJoin) -> tuple[DType, ...]:
    match = join.match
    assert isinstance(match, Within | Overlap | SameWindow)  # noqa: S101  # the callers' own branch
    left, right = [match.left], [match.right]
    if isinstance(match, Overlap):
        left += [i for i in (match.left_end,) if i is not None]
        right += [i for i in (match.right_end,) if i is not None]
    return (*(join.left.fields[i].dtype for i in left), *(join.right.fields[i].dtype for i in right))


def _common_type(a: DType, b: DType) -> DType:
    dtype = common_type(a, b)
    if dtype is None:
        raise JoinTypeError(
            f"no type holds the values of both {a} and {b} exactly", help="cast the order columns to one type"
        )
    return dtype


ReachWay = Literal["never", "equal", "bins", "open"]
_LONGEST_BINNED = 1e280  # past it a sum of doubles may be infinite while its bin is not the last
_EXACT = Context(prec=100)


@dataclass(frozen=True, slots=True)
class Reach:
    """The bounds of a `Within` in steps of its axis; None is open."""

    lower: Step | None
    upper: Step | None
    never: bool = False

    @property
    def way(self) -> ReachWay:
        """The way to join: not at all, by equal values, by bins, or by comparing the pairs of a key."""
        if self.never:
            return "never"
        if self.lower is None or self.upper is None or abs(self.length) > _LONGEST_BINNED:
            return "open"
        return "equal" if self.lower == self.upper else "bins"

    @property
    def length(self) -> float:
        """How far the bounds are apart, infinite when one is open."""
        if self.lower is None or self.upper is None:
            return math.inf
        if isinstance(self.upper, float):
            return self.upper - float(self.lower)
        return float(_EXACT.subtract(Number(self.upper), Number(self.lower)))


def measure_reach(match: Within, axis: Axis) -> Reach:
    """Return the bounds of a match on its axis; a bound beyond all values is open or never satisfied."""
    # Bounds beyond all values are removed first: in steps they would not fit a long.
    most = axis.longest
    low, high = match.lower, match.upper
    if most is not None:
        if (low is not None and low >= most * axis.unit) or (high is not None and high <= -most * axis.unit):
            return Reach(None, None, never=True)
        low = None if low is None or low <= -most * axis.unit else low
        high = None if high is None or high >= most * axis.unit else high
    lower = None if low is None else axis.steps(low, up=True)
    upper = None if high is None else axis.steps(high, up=False)
    return Reach(lower, upper, never=lower is not None and upper is not None and lower > upper)


def point_side(match: Overlap) -> Side | None:
    """Return the side that has times and no ranges, None when both have ranges."""
    if match.left_end is None:
        return "left"
    return "right" if match.right_end is None else None
