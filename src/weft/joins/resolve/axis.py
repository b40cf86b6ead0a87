"""The line on which the times or numbers of both sides lie, and how rows near on it find each other.

Whole axes (times, dates, integers) are counted in longs: microseconds, days or ones.  A
distance that is no whole number of steps is rounded inwards, which changes no answer: no
value lies between two steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from decimal import Decimal as Number
from functools import reduce
from typing import Literal, NamedTuple

from weft.core.types import DATE, DOUBLE, LONG, Decimal, DType, common_type
from weft.errors import JoinTypeError
from weft.joins.resolve.resolved import Amount, Overlap, ResolvedJoin, SameWindow, Side, Within

AxisKind = Literal["whole", "decimal", "double"]
Step = int | Number | float
"""A distance on an axis: steps of a whole axis, a Decimal or a double."""

DAY = 86_400_000_000
_WHOLE_END = 1 << 64
_ROOMY = Context(prec=2200)


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
        """A distance that is longer than that of any two values; None where infinity is a value."""
        if isinstance(self.dtype, Decimal):
            return 2 * Number(10) ** (self.dtype.precision - self.dtype.scale)
        return Number(_WHOLE_END) if self.kind == "whole" else None


def axis_of(join: ResolvedJoin) -> Axis:
    """Return the axis of a join by time or by ranges.

    All columns that are compared meet in one type; decimals that no type holds exactly are
    refused, because rounding would move the ends of ranges.
    """
    found = reduce(_met, _compared(join))
    if found.is_temporal or isinstance(found, Decimal):
        return Axis(found)
    return Axis(LONG if found.is_integer else DOUBLE)


def _compared(join: ResolvedJoin) -> tuple[DType, ...]:
    match = join.match
    assert isinstance(match, Within | Overlap | SameWindow)  # noqa: S101  # the callers' own branch
    left, right = [match.left], [match.right]
    if isinstance(match, Overlap):
        left += [i for i in (match.left_end,) if i is not None]
        right += [i for i in (match.right_end,) if i is not None]
    return (*(join.left.fields[i].dtype for i in left), *(join.right.fields[i].dtype for i in right))


def _met(a: DType, b: DType) -> DType:
    found = common_type(a, b)
    if found is None:
        raise JoinTypeError(
            f"no type holds the values of both {a} and {b} exactly", help="cast the order columns to one type"
        )
    return found


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
        """How partners are found."""
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
        return (
            float(self.upper) - float(self.lower)
            if isinstance(self.upper, float)
            else float(_EXACT.subtract(Number(self.upper), Number(self.lower)))
        )


def reach_of(match: Within, axis: Axis) -> Reach:
    """Return the bounds of a match on its axis; one that is past all values is open or never met."""
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


class Way(NamedTuple):
    """A plan by name, the reason for it, and what a reader should know of its cost."""

    name: str
    reason: str
    cost: str


_READS_TWICE = "; a full join reads both sides twice"


def way_of(join: ResolvedJoin) -> Way:
    """Return how an interval or window join is run.

    >>> from weft.core.types import Schema
    >>> s = Schema.of(k="long", t="timestamp")
    >>> m = Within(left=1, right=1, lower=0, upper=3_600_000_000)
    >>> way_of(ResolvedJoin(how="left", left=s, right=s, keys=(), match=m, output=())).name
    'bins'
    """
    match = join.match
    if isinstance(match, Within):
        return _way_within(join, match)
    if isinstance(match, Overlap):
        return _way_overlap(join, match)
    assert isinstance(match, SameWindow)  # noqa: S101  # nothing else is near in time
    return _way_window(join, match)


def _way_within(join: ResolvedJoin, match: Within) -> Way:
    way = reach_of(match, axis_of(join)).way
    full = _READS_TWICE if join.how == "full" else ""
    if way == "never":
        return Way("equi", "no value lies between the bounds", "nothing matches")
    if way == "equal":
        return Way("equi", "both bounds are the same, so the times must be equal", "as a join by keys")
    if way == "bins":
        copied = "left" if join.how == "right" else "right"
        return Way(
            "bins",
            "both bounds are given: time is cut into bins of four times their distance, one more equal key",
            f"the {copied} side is copied 1.25 times; about five rows are tested for each that matches{full}",
        )
    return _unbinned(join, "a bound is open, so a row may match at any distance and bins would not help")


def _unbinned(join: ResolvedJoin, why: str) -> Way:
    if join.keys:
        return Way("equi", f"{why}: joined by keys alone", "all pairs of rows of a key are tested")
    return Way("equi", f"{why}, and there is no key: a nested loop", "all pairs of rows are tested")


def _way_overlap(join: ResolvedJoin, match: Overlap) -> Way:
    point = point_side(match)
    full = _READS_TWICE if join.how == "full" else ""
    measured = "; their lengths are measured first, which reads them once more"
    if point is not None and join.how != "full" and join.how in _POINT_KEPT[point]:
        return Way(
            "bins",
            "times in ranges: ranges are copied into bins of four times their mean length, one more equal key",
            f"ranges are copied about 1.25 times{measured}",
        )
    if point is None and join.how == "inner":
        return Way(
            "bins",
            "two ranges: both are copied into bins of four times their mean length, a pair counts in the bin "
            "where the later one starts",
            f"both sides are copied about 1.25 times{measured}",
        )
    return Way(
        "levels",
        "each row of a side that is kept lies in one bin, ranges of about one length on a level of bins",
        f"the other side is copied 1.25 times and more for each level of lengths{measured}{full}",
    )


_POINT_KEPT: dict[Side, tuple[str, ...]] = {
    "left": ("inner", "left", "semi", "anti"),
    "right": ("inner", "right"),
}


def _way_window(join: ResolvedJoin, match: SameWindow) -> Way:
    if match.kind == "tumbling":
        return Way("equi", "the start of the window is one more equal key", "as a join by keys")
    if match.kind == "session":
        where = "of a key" if join.keys else "of all rows, in one task: there is no key"
        return Way(
            "sessions",
            f"sessions {where} are found by sorting the times of both sides",
            "each side is shuffled and sorted together with the times of the other, then joined by session",
        )
    full = _READS_TWICE if join.how == "full" else ""
    return Way(
        "bins",
        "rows that share a sliding window are less than its size apart",
        f"one side is copied 1.25 times, not once for each window{full}",
    )
