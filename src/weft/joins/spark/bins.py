"""Bins of time: rows that are near or overlap share a bin, so that a hash or merge join finds them.

Each row of one side, the anchored one, is in ONE bin, that of its start.  The other side is copied
into every bin in which a match may start.  No pair is found twice, so no distinct is needed, and
the anchored side may be preserved: each of its rows is there once, matched or not.

Before::

    l LEFT JOIN r ON l.start <= r.t AND r.t <= l.start + reach

After::

    (SELECT *, floor(start / width) AS bin FROM l) l
    LEFT JOIN
    (SELECT *, explode(sequence(floor((t - reach) / width), floor(t / width))) AS bin FROM r) r
    ON l.bin = r.bin AND l.start <= r.t AND r.t <= l.start + reach

A bin is computed from a double.  Rounding may make neighbours equal, but it keeps their order,
which is all that is needed: a start between two values has a bin between their bins.

The width of a bin follows from the bounds of the join (`FixedBins`), or from the data, which are
measured when the job runs (`MeasuredBins`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce

from pyspark.sql import Column, DataFrame

from weft.joins.resolve.resolved import Side
from weft.joins.spark.sides import SIDES, Functions, Sides

_FAR = 2.0**60
BIN = {"left": "__weft_left_bin", "right": "__weft_right_bin"}


@dataclass(frozen=True, slots=True)
class Stretch:
    """The start and end of a row as doubles; `end` is None for a point, and NULL for an open end.

    `first` is the earliest start of a match, if that is not `start`.  A row that is not `valid`
    matches nothing.
    """

    start: Column
    end: Column | None = None
    first: Column | None = None
    valid: Column | None = None

    def filter_valid(self, frame: DataFrame) -> DataFrame:
        """Return the rows of a frame that may match."""
        return frame if self.valid is None else frame.filter(self.valid)


@dataclass(frozen=True, slots=True)
class FixedBins:
    """Bins of a width that follows from the join.

    Values that are not `whole` may be infinite, NaN or too large for a bin number; those share the
    outermost bins.
    """

    F: Functions
    width: float
    whole: bool

    def anchored(self, frame: DataFrame, side: Side, stretch: Stretch) -> DataFrame:
        """Return the frame with one bin for each row: that of its start."""
        return frame.withColumn(BIN[side], self._bin(stretch.start))

    def spread(self, frame: DataFrame, side: Side, stretch: Stretch) -> DataFrame:
        """Return the frame with a copy for every bin from the first to the end."""
        first = self._bin(stretch.start if stretch.first is None else stretch.first)
        last = self._bin(stretch.start if stretch.end is None else stretch.end)
        return copy_into(self.F, frame, BIN[side], first, last)

    def met(self) -> Column:
        """Return the condition that two rows share a bin."""
        return self.F.col(BIN["left"]) == self.F.col(BIN["right"])

    def _bin(self, at: Column) -> Column:
        F, number = self.F, at / self.F.lit(self.width)
        if not self.whole:
            # `greatest` and `least` ignore NULL, so a NULL needs the test below.
            inside = F.least(F.greatest(number, F.lit(-_FAR)), F.lit(_FAR))
            number = F.when(at.isNotNull(), inside)
        return F.floor(number)


def copy_into(F: Functions, frame: DataFrame, name: str, first: Column, last: Column) -> DataFrame:
    """Return the frame with a copy for every number from `first` to `last`, none when one is NULL."""
    upwards = F.when(first <= last, F.sequence(first, last))
    return frame.withColumn(name, F.explode(upwards))


@dataclass(frozen=True, slots=True)
class Placed:
    """Both sides with their stretches, and the exact condition of a match."""

    sides: Sides
    left: Stretch
    right: Stretch
    meets: Column

    def anchored(self, anchor: Side, bins: Bins) -> Sides:
        """Return the sides with one bin for each row of `anchor` and copies of the other side."""
        sides = self.sides
        for side, stretch in zip(SIDES, (self.left, self.right), strict=True):
            place = bins.anchored if side == anchor else bins.spread
            sides = sides.with_frame(side, place(sides.frame(side), side, stretch))
        return sides


def join_by_bins(placed: Placed, how: str, bins: Mapping[Side, Bins], *, inner: Side = "left") -> DataFrame:
    """Join the sides; each unmatched row of a preserved side appears once.

    `bins` are by the side that they anchor; `inner` is the side to anchor when none is preserved.
    """
    if how == "full":
        return _full(placed, bins)
    preserved: dict[str, Side] = {"inner": inner, "right": "right"}
    anchor = preserved.get(how, "left")
    sides = placed.anchored(anchor, bins[anchor])
    return sides.join_frames(bins[anchor].met() & placed.meets, how)


def _full(placed: Placed, bins: Mapping[Side, Bins]) -> DataFrame:
    """Return the left join and, below it, the unmatched right rows."""
    columns = placed.sides.left.columns, placed.sides.right.columns
    first = join_by_bins(placed, "left", bins).select(*columns[0], *columns[1])
    anchored = placed.anchored("right", bins["right"])
    # Not a full join by bins: a right row is copied into several bins, and each copy could be unmatched.
    # The right rows without a match come from an anti join with the sides exchanged.
    exchanged = replace(anchored, left=anchored.right, right=anchored.left)
    unmatched = exchanged.join_frames(bins["right"].met() & placed.meets, "anti")
    return first.unionByName(unmatched.select(*columns[1]), allowMissingColumns=True)


_MEASURED = "__weft_measured"
_FIRST_BIN = {"left": "__weft_left_first", "right": "__weft_right_first"}
_LEVEL = {"left": "__weft_left_level", "right": "__weft_right_level"}
_NO_END = 5000  # two to this power is infinite
_NO_LENGTH = -5000  # and to this one zero
_MOST_BINS = float(1 << 20)
_LONGEST = 1e300
_GROWTH = 16.0
_WIDTH = 4.0  # measured: a copy of a row costs as much as a test of many pairs
_SLACK = 1.02  # more than rounding can subtract


def measure(F: Functions, ranges: DataFrame) -> DataFrame:
    """Return one row with one struct: first start, span of all starts, bin size, number of levels.

    `ranges` has the columns start, end (doubles) and anchored (whether levels are for this row).
    """
    start, end = F.col("start"), F.col("end")
    infinite = F.lit(math.inf)
    finite = F.when(start > -infinite, start)  # an open start is a length, not a place
    length = end - start
    power = (
        F.when(end.isNull() | (length == infinite), F.lit(_NO_END))
        .when(length > 0, F.floor(F.log2(length)))
        .otherwise(F.lit(_NO_LENGTH))
    )
    groups = (
        ranges.filter(start < infinite)
        .groupBy(power.cast("double").alias("power"), F.col("anchored"))
        .agg(F.count(F.lit(1)).alias("n"), F.min(finite).alias("low"), F.max(finite).alias("high"))
    )
    totals = groups.agg(
        F.struct(
            F.coalesce(F.min("low"), F.lit(0.0)).alias("low"),
            # Finite, so that nothing below overflows.
            F.coalesce(F.least(F.max("high") - F.min("low"), F.lit(_LONGEST)), F.lit(0.0)).alias("span"),
            F.sum("n").alias("n"),
            F.sort_array(F.collect_list(F.struct("power", "n"))).alias("lengths"),
            F.coalesce(F.max(F.when(F.col("anchored"), F.col("power"))), F.lit(float(_NO_LENGTH))).alias("longest"),
        ).alias("totals")
    )
    low, span, n, lengths, longest = (F.col("totals")[x] for x in ("low", "span", "n", "lengths", "longest"))

    # A length counts as 1.5 times its power of two, but not as more than the span in which ranges start.
    def cut(power: Column) -> Column:
        return F.least(F.pow(F.lit(2.0), power) * F.lit(1.5), span)

    # Sorted first: the sum of doubles depends on their order.
    total = F.aggregate(lengths, F.lit(0.0), lambda sum_, x: sum_ + x["n"] * cut(x["power"]))
    width = F.greatest(F.lit(_WIDTH) * total / n, span / F.lit(_MOST_BINS))
    sized = totals.withColumn("size", F.when(width > 0, width).otherwise(F.lit(1.0)))
    size = F.col("size")
    most = F.least(F.pow(F.lit(2.0), longest + F.lit(1)), span) + F.lit(2.0) * size
    levels = _level(F, most, size) + F.lit(1)
    return sized.select(
        F.struct(low.alias("low"), span.alias("span"), size.alias("size"), levels.alias("levels")).alias("measured")
    )


def _level(F: Functions, length: Column, size: Column) -> Column:
    """Return the first level whose ranges may be as long as `length`."""
    ratio = length * F.lit(_SLACK) / size
    return F.when(ratio <= F.lit(1.0), F.lit(0).cast("long")).otherwise(F.ceil(F.log(ratio) / F.lit(math.log(_GROWTH))))


@dataclass(frozen=True, slots=True)
class MeasuredBins:
    """Bins of a measured width; `levels` when the anchored side has ranges.

    A scalar subquery counts the ranges by the power of two of their length.  With bins four times as
    wide as the mean length, all copies together are about 1.25 times the rows, and a row is tested
    against about five times its matches, whatever the lengths are: of 1000 ranges of a second and
    one of a year, only the long one is copied often.

    The subquery uses only counts, minima and maxima, which do not depend on the order of rows.  This
    is necessary because each side may run the subquery on its own.  For the same reason the times of
    a frame must not change between two reads of it.

    Ends are cut at the last start of all ranges, so that an open end, or one in the year 9999, is not
    copied into bins where nothing starts.  Values outside are moved to the edge, which keeps the order.

    Levels.  Ranges of the anchored side are in one bin of their level, and the bins of a level are as
    wide as its ranges are long; the other side is copied into the bins of every level::

        level 0   |__|__|__|__|__|__|__|__|__|     short ranges
        level 1   |_______________________|___     up to 16 times as long
    """

    F: Functions
    measures: DataFrame
    levels: bool

    @classmethod
    def of(cls, placed: Placed, anchor: Side | None) -> MeasuredBins:
        """Return the bins of two sides; no side is anchored when all rows are to be copied."""
        stretches: dict[Side, Stretch] = {"left": placed.left, "right": placed.right}
        F = placed.sides.F
        ranges: list[DataFrame] = []
        for side, stretch in stretches.items():
            if stretch.end is not None:
                columns = stretch.start.alias("start"), stretch.end.alias("end")
                rows = stretch.filter_valid(placed.sides.frame(side))
                ranges.append(rows.select(*columns, F.lit(side == anchor).alias("anchored")))
        levels = anchor is not None and stretches[anchor].end is not None
        return cls(F, measure(F, reduce(lambda a, b: a.unionByName(b), ranges)), levels)

    def anchored(self, frame: DataFrame, side: Side, stretch: Stretch) -> DataFrame:
        """Return the frame with level and bin of each row, NULL for a row that matches nothing."""
        frame, F = self._measuring(frame), self.F
        at = self._inside(stretch.start)
        if not self.levels:
            return frame.withColumn(BIN[side], F.when(stretch.valid, F.floor(at / self._size()))).drop(_MEASURED)
        level = _level(F, self._end(stretch) - at, self._size())
        frame = frame.withColumn(_LEVEL[side], F.when(stretch.valid, level))
        return frame.withColumn(BIN[side], F.floor(at / self._width(side))).drop(_MEASURED)

    def spread(self, frame: DataFrame, side: Side, stretch: Stretch) -> DataFrame:
        """Return the frame with a copy for every bin of every level where a match may start."""
        frame, F = self._measuring(stretch.filter_valid(frame)), self.F
        first, last = self._inside(stretch.start), self._end(stretch)
        if not self.levels:
            size = self._size()
            return copy_into(F, frame, BIN[side], F.floor(first / size), F.floor(last / size)).drop(_MEASURED)
        top = F.col(_MEASURED)["levels"] - F.lit(1)
        frame = copy_into(F, frame, _LEVEL[side], F.lit(0).cast("long"), top)
        width = self._width(side)
        start = F.floor((first - self._reach(side)) / width)
        return copy_into(F, frame, BIN[side], start, F.floor(last / width)).drop(_MEASURED)

    def spread_both(self, frame: DataFrame, side: Side, stretch: Stretch) -> DataFrame:
        """Return the frame with a copy for every bin that a row touches, and the first of them."""
        frame = self._measuring(stretch.filter_valid(frame))
        size = self._size()
        frame = frame.withColumn(_FIRST_BIN[side], self.F.floor(self._inside(stretch.start) / size))
        last = self.F.floor(self._end(stretch) / size)
        return copy_into(self.F, frame, BIN[side], self.F.col(_FIRST_BIN[side]), last).drop(_MEASURED)

    def met(self) -> Column:
        """Return the condition that two rows share a level and a bin."""
        F = self.F
        met = F.col(BIN["left"]) == F.col(BIN["right"])
        return met & (F.col(_LEVEL["left"]) == F.col(_LEVEL["right"])) if self.levels else met

    def met_first(self) -> Column:
        """Return the condition that two rows share a bin and no earlier one: that of the later start."""
        F = self.F
        first = F.greatest(F.col(_FIRST_BIN["left"]), F.col(_FIRST_BIN["right"]))
        return (F.col(BIN["left"]) == F.col(BIN["right"])) & (F.col(BIN["left"]) == first)

    def _measuring(self, frame: DataFrame) -> DataFrame:
        return frame.withColumn(_MEASURED, self.measures.scalar())

    def _size(self) -> Column:
        return self.F.col(_MEASURED)["size"]

    def _reach(self, side: Side) -> Column:
        return self._size() * self.F.pow(self.F.lit(_GROWTH), self.F.col(_LEVEL[side]))

    def _width(self, side: Side) -> Column:
        return self._reach(side) * self.F.lit(_WIDTH)

    def _inside(self, at: Column) -> Column:
        """Return the distance from the first start, moved to the edges if it is outside; NaN is greatest."""
        F, known = self.F, self.F.col(_MEASURED)
        return F.least(F.greatest(at - known["low"], F.lit(-2.0) * known["size"]), known["span"])

    def _end(self, stretch: Stretch) -> Column:
        if stretch.end is None:
            return self._inside(stretch.start)
        return self.F.when(stretch.end.isNull(), self.F.col(_MEASURED)["span"]).otherwise(self._inside(stretch.end))


Bins = FixedBins | MeasuredBins


def join_by_touched_bins(placed: Placed) -> DataFrame:
    """Join two sides of ranges, each copied into the bins that it touches.

    A pair that shares several bins counts in one of them, the bin of the later start.
    """
    bins = MeasuredBins.of(placed, None)
    left = bins.spread_both(placed.sides.left, "left", placed.left)
    right = bins.spread_both(placed.sides.right, "right", placed.right)
    return replace(placed.sides, left=left, right=right).join_frames(bins.met_first() & placed.meets, "inner")
