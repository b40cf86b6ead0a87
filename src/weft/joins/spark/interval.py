"""Interval joins: a right time near a left one, a time in a range, two ranges that overlap.

Before::

    l LEFT JOIN r ON l.k = r.k AND r.t BETWEEN l.t - 1h AND l.t + 2h

After: left ranges are 3 h long, bins are 12 h wide, and a right row is in one bin or in two::

    (SELECT *, floor((t - 1h) / 12h) AS bin FROM l) l
    LEFT JOIN
    (SELECT *, explode(sequence(floor((t - 3h) / 12h), floor(t / 12h))) AS bin FROM r) r
    ON l.k = r.k AND l.bin = r.bin AND r.t BETWEEN l.t - 1h AND l.t + 2h

How each join keeps every row of a preserved side once (see `weft.joins.spark.bins`)::

    inner             a point is anchored where there is one, ranges are copied into their bins;
                      of two ranges both are copied, and a pair counts in the bin of its later start
    left, semi, anti  the left side is anchored
    right             the right side is anchored
    full              the left join, and below it the right rows of an anti join with the right
                      side anchored
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame

from weft.joins.resolve.axis import Axis, Reach, find_axis, measure_reach, point_side
from weft.joins.resolve.resolved import Overlap, ResolvedJoin, SameWindow, Side, Within
from weft.joins.spark import axis as on_axis
from weft.joins.spark.axis import Places
from weft.joins.spark.bins import Bins, FixedBins, MeasuredBins, Placed, Stretch, join_by_bins, join_by_touched_bins
from weft.joins.spark.contracts import guard_promises
from weft.joins.spark.equi import prepare_sides, project_output, widen_how
from weft.joins.spark.sides import SIDES, Functions, Sides

_ROUNDED = 2.0**-50  # the greatest relative error of a value that is rounded to a double
_SLACK = 1.02
_WIDTH = 4.0  # measured: a copy of a row costs as much as a test of many pairs


def lower(left: DataFrame, right: DataFrame, join: ResolvedJoin, *, observation: Any = None) -> DataFrame:
    """Return the joined frame; no job runs."""
    sides = prepare_sides(left, right, join, observation)
    how = widen_how(join)
    if isinstance(join.match, Within):
        joined = _near(sides, how, join.match)
    else:
        assert isinstance(join.match, Overlap)  # noqa: S101  # the chooser's branch
        joined = _overlapping(sides, how, join.match)
    return project_output(guard_promises(joined, sides), sides, observation)


def _near(sides: Sides, how: str, match: Within) -> DataFrame:
    places = Places(sides, find_axis(sides.join))
    reach = measure_reach(match, places.axis)
    if reach.way == "never":
        return sides.join_frames(sides.F.lit(False), how)
    bounds = Bounds.of(places, match, reach)
    if reach.way == "bins":
        return join_near(places, bounds, how, bounds.meets, reach)
    return places.sides.join_frames(bounds.equal if reach.way == "equal" else bounds.meets, how)


@dataclass(frozen=True, slots=True)
class Bounds:
    """A right value and the bounds that a left row sets for it, in a form that compares."""

    at: Column
    low: Column | None
    high: Column | None

    @classmethod
    def of(cls, places: Places, match: Within | SameWindow, reach: Reach) -> Bounds:
        """Return the bounds of a reach; values that are expensive to compute become columns of a side."""
        F, axis = places.sides.F, places.axis
        left, right = places.value("left", match.left), places.value("right", match.right)
        at, low, high = on_axis.comparable(F, right, axis), None, None
        if reach.lower is not None:
            # Outward past the last value every value is within; inward, or for one exact value, none is.
            outward = reach.lower < 0 and reach.way != "equal"
            shift = on_axis.move_clamped if outward else on_axis.move
            low = shift(F, left, reach.lower, axis)
        if reach.upper is not None:
            shift = on_axis.move_clamped if reach.upper > 0 else on_axis.move
            high = shift(F, left, reach.upper, axis)
        # Sums of decimals are long expressions: computed once per row, not once per pair.
        if axis.kind == "decimal":
            low = None if low is None else places.kept("left", "low", low)
            high = None if high is None else places.kept("left", "high", high)
            at = places.kept("right", "at", at)
        return cls(at, low, high)

    @property
    def equal(self) -> Column:
        """The condition that the right value is the only one in the bounds."""
        assert self.low is not None  # noqa: S101  # both bounds are given
        return self.at == self.low

    @property
    def meets(self) -> Column:
        """The condition that the right value is within the bounds."""
        parts = [] if self.low is None else [self.at >= self.low]
        parts += [] if self.high is None else [self.at <= self.high]
        return reduce(operator.and_, parts)


def join_near(places: Places, bounds: Bounds, how: str, meets: Column, reach: Reach) -> DataFrame:
    """Join pairs for which `meets` is true; all of them are within the bounds."""
    F, axis = places.sides.F, places.axis
    assert bounds.low is not None and bounds.high is not None  # noqa: S101, PT018  # both are given
    if axis.kind == "whole":
        earliest = on_axis.move_clamped(F, bounds.at, -int(reach.length), axis)
        left = Stretch(bounds.low.cast("double"), bounds.high.cast("double"))
        right = Stretch(bounds.at.cast("double"), first=earliest.cast("double"))
        return join_by_bins(Placed(places.sides, left, right, meets), how, _both(places, reach))
    low, high, at = (_as_double(F, place, axis) for place in (bounds.low, bounds.high, bounds.at))
    left = Stretch(low, _widened(F, high, 1, 0), first=_widened(F, low, -1, 0))
    right = Stretch(at, _widened(F, at, 1, 0), first=_widened(F, at, -1, reach.length * _SLACK))
    return join_by_bins(Placed(places.sides, left, right, meets), how, _both(places, reach))


def _both(places: Places, reach: Reach) -> dict[Side, Bins]:
    bins = FixedBins(places.sides.F, _WIDTH * reach.length, places.axis.kind == "whole")
    return {"left": bins, "right": bins}


def _as_double(F: Functions, place: Column, axis: Axis) -> Column:
    return on_axis.split_coordinate(place) if on_axis.is_split(axis) else on_axis.coordinate(F, place, axis)


def _widened(F: Functions, at: Column, sign: int, by: float) -> Column:
    """Return a value moved by a distance and by the greatest rounding error; infinity stays."""
    size = F.abs(at)
    return F.when(
        size < F.lit(math.inf), at + F.lit(float(sign)) * (size * F.lit(_ROUNDED) + F.lit(float(by)))
    ).otherwise(at)


def _overlapping(sides: Sides, how: str, match: Overlap) -> DataFrame:
    places = Places(sides, find_axis(sides.join))
    left, right = Range.of(places, "left", match), Range.of(places, "right", match)
    placed = Placed(
        places.sides,
        left.stretch(places),
        right.stretch(places),
        left.starts_before_end(right) & right.starts_before_end(left),
    )
    point = point_side(match)
    if point is None and how == "inner":
        return join_by_touched_bins(placed)
    bins = {side: MeasuredBins.of(placed, side) for side in SIDES}
    return join_by_bins(placed, how, bins, inner=point or "left")


@dataclass(frozen=True, slots=True)
class Range:
    """The exact range of a row, or its time when `end` is None; a NULL start is before all values if `opens`."""

    start: Column
    end: Column | None
    closed: bool
    opens: bool

    @classmethod
    def of(cls, places: Places, side: Side, match: Overlap) -> Range:
        """Return the range between two columns of a side."""
        start, end = (match.left, match.left_end) if side == "left" else (match.right, match.right_end)
        first = places.value(side, start, "start")
        last = None if end is None else places.value(side, end, "end")
        return cls(first, last, match.closed, match.opens(side))

    def stretch(self, places: Places) -> Stretch:
        """Return the range as doubles; it is valid when it holds a time."""
        F, axis = places.sides.F, places.axis
        start, valid = on_axis.coordinate(F, self.start, axis), self.start.isNotNull()
        if self.end is None:
            return Stretch(start, valid=valid)
        holds = self.end.isNull() | (self.end >= self.start if self.closed else self.end > self.start)
        end = on_axis.coordinate(F, self.end, axis)
        if not self.opens:
            return Stretch(start, end, valid=valid & holds)
        return Stretch(F.coalesce(start, F.lit(-math.inf)), end, valid=~valid | holds)

    def starts_before_end(self, other: Range) -> Column:
        """Return the condition that this range starts before the other one ends."""
        if other.end is None:
            before = self.start <= other.start
        else:
            before = other.end.isNull() | (self.start <= other.end if self.closed else self.start < other.end)
        return self.start.isNull() | before if self.opens else before
