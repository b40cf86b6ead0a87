"""Bins whose width comes from the data, measured when the job runs and not before.

A scalar subquery counts the ranges by the power of two of their length.  With bins four times as
wide as the mean length, all copies together are about 1.25 times the rows, and a row is tested
against about five times the partners it has, whatever the lengths are: of 1000 ranges of a
second and one of a year, the one is copied often, the others are not.

The subquery uses counts, minima and maxima only, which come out the same in whatever order rows
are read.  It must: both sides ask it, and each may get an answer of its own.  For the same
reason a join that reads its inputs more than once wants times that do not change between reads.

Ends are cut at the last start of all ranges, so that an open end, or one in the year 9999, is not
copied into bins where nothing begins.  What lies outside is moved to the edge; it stays in order.

Levels.  Where the anchored side has ranges, each lies in one bin of its level, which is as wide as
the ranges of that level are long; the other side is copied into the bins of every level::

    level 0   |__|__|__|__|__|__|__|__|__|     short ranges
    level 1   |_______________________|___     up to 16 times as long
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from weft.joins.resolve.resolved import Side
from weft.joins.spark.bins import BIN, Placed, Stretch, copied

if TYPE_CHECKING:
    from types import ModuleType

    from pyspark.sql import Column, DataFrame

_MEASURED = "__weft_measured"
_FIRST_BIN = {"left": "__weft_left_first", "right": "__weft_right_first"}
_LEVEL = {"left": "__weft_left_level", "right": "__weft_right_level"}
_NO_END = 5000  # two to this power is infinite
_NO_LENGTH = -5000  # and to this one zero
_MOST_BINS = float(1 << 20)
_LONGEST = 1e300
_GROWTH = 16.0
_WIDTH = 4.0  # measured: a copy of a row costs as much as a test of many pairs
_SLACK = 1.02  # more than rounding can take away


def measured(F: ModuleType, ranges: DataFrame) -> DataFrame:
    """Return one row with one struct: first start, span of all starts, bin size, number of levels.

    `ranges` has the columns start, end (doubles) and anchored (whether levels are for this row).
    """
    start, end = F.col("start"), F.col("end")
    infinite = F.lit(math.inf)
    length = end - start
    power = (
        F.when(end.isNull() | (length == infinite), F.lit(_NO_END))
        .when(length > 0, F.floor(F.log2(length)))
        .otherwise(F.lit(_NO_LENGTH))
    )
    groups = (
        ranges.filter((start < infinite) & (start > -infinite))
        .groupBy(power.cast("double").alias("power"), F.col("anchored"))
        .agg(F.count(F.lit(1)).alias("n"), F.min(start).alias("low"), F.max(start).alias("high"))
    )
    found = groups.agg(
        F.struct(
            F.coalesce(F.min("low"), F.lit(0.0)).alias("low"),
            # Less than infinite, so that nothing below overflows.
            F.coalesce(F.least(F.max("high") - F.min("low"), F.lit(_LONGEST)), F.lit(0.0)).alias("span"),
            F.sum("n").alias("n"),
            F.sort_array(F.collect_list(F.struct("power", "n"))).alias("lengths"),
            F.coalesce(F.max(F.when(F.col("anchored"), F.col("power"))), F.lit(float(_NO_LENGTH))).alias(
                "longest"
            ),
        ).alias("found")
    )
    low, span, n, lengths, longest = (F.col("found")[x] for x in ("low", "span", "n", "lengths", "longest"))

    def cut(power: Column) -> Column:
        length: Column = F.least(F.pow(F.lit(2.0), power) * F.lit(1.5), span)
        return length

    # Sorted first: doubles added up in another order may give another sum.
    total = F.aggregate(lengths, F.lit(0.0), lambda sum_, x: sum_ + x["n"] * cut(x["power"]))
    wanted = F.greatest(F.lit(_WIDTH) * total / n, span / F.lit(_MOST_BINS))
    sized = found.withColumn("size", F.when(wanted > 0, wanted).otherwise(F.lit(1.0)))
    size = F.col("size")
    most = F.least(F.pow(F.lit(2.0), longest + F.lit(1)), span) + F.lit(2.0) * size
    levels = _level(F, most, size) + F.lit(1)
    return sized.select(
        F.struct(low.alias("low"), span.alias("span"), size.alias("size"), levels.alias("levels")).alias(
            "measured"
        )
    )


def _level(F: ModuleType, length: Column, size: Column) -> Column:
    """Return the first level whose ranges may be as long as `length`."""
    ratio = length * F.lit(_SLACK) / size
    found: Column = F.when(ratio <= F.lit(1.0), F.lit(0).cast("long")).otherwise(
        F.ceil(F.log(ratio) / F.lit(math.log(_GROWTH)))
    )
    return found


@dataclass(frozen=True, slots=True)
class MeasuredBins:
    """Bins of a measured width; `levels` when the anchored side has ranges."""

    F: ModuleType
    measures: DataFrame
    levels: bool

    @classmethod
    def of(cls, placed: Placed, anchor: Side | None) -> MeasuredBins:
        """Return the bins of two sides; no side is anchored when all rows are to be copied."""
        stretches: dict[Side, Stretch] = {"left": placed.left, "right": placed.right}
        F = placed.sides.F
        found: list[DataFrame] = []
        for side, stretch in stretches.items():
            if stretch.end is None:
                continue
            frame = placed.sides.left if side == "left" else placed.sides.right
            columns = stretch.start.alias("start"), stretch.end.alias("end")
            found.append(stretch.of_valid(frame).select(*columns, F.lit(side == anchor).alias("anchored")))
        levels = anchor is not None and stretches[anchor].end is not None
        return cls(F, measured(F, reduce(lambda a, b: a.unionByName(b), found)), levels)

    def anchored(self, frame: DataFrame, side: Side, stretch: Stretch) -> DataFrame:
        """Return the frame with level and bin of each row."""
        frame, F = self._measuring(frame), self.F
        at = self._inside(stretch.start)
        if not self.levels:
            return frame.withColumn(BIN[side], F.when(stretch.valid, F.floor(at / self._size()))).drop(
                _MEASURED
            )
        level = _level(F, self._end(stretch) - at, self._size())
        frame = frame.withColumn(_LEVEL[side], F.when(stretch.valid, level))
        return frame.withColumn(BIN[side], F.floor(at / self._width(side))).drop(_MEASURED)

    def spread(self, frame: DataFrame, side: Side, stretch: Stretch) -> DataFrame:
        """Return the frame with a copy for every bin of every level where a partner may start."""
        frame, F = self._measuring(stretch.of_valid(frame)), self.F
        first, last = self._inside(stretch.start), self._end(stretch)
        if not self.levels:
            size = self._size()
            return copied(F, frame, BIN[side], F.floor(first / size), F.floor(last / size)).drop(_MEASURED)
        top = F.col(_MEASURED)["levels"] - F.lit(1)
        frame = copied(F, frame, _LEVEL[side], F.lit(0).cast("long"), top)
        width = self._width(side)
        start = F.floor((first - self._reach(side)) / width)
        return copied(F, frame, BIN[side], start, F.floor(last / width)).drop(_MEASURED)

    def spread_both(self, frame: DataFrame, side: Side, stretch: Stretch) -> DataFrame:
        """Return the frame with a copy for every bin that a row touches, and the first of them."""
        frame = self._measuring(stretch.of_valid(frame))
        size = self._size()
        frame = frame.withColumn(_FIRST_BIN[side], self.F.floor(self._inside(stretch.start) / size))
        last = self.F.floor(self._end(stretch) / size)
        return copied(self.F, frame, BIN[side], self.F.col(_FIRST_BIN[side]), last).drop(_MEASURED)

    def met(self) -> Column:
        """Return the condition that two rows share a level and a bin."""
        F = self.F
        found: Column = F.col(BIN["left"]) == F.col(BIN["right"])
        return found & (F.col(_LEVEL["left"]) == F.col(_LEVEL["right"])) if self.levels else found

    def met_first(self) -> Column:
        """Return the condition that two rows share a bin and no earlier one: that of the later start."""
        F = self.F
        first = F.greatest(F.col(_FIRST_BIN["left"]), F.col(_FIRST_BIN["right"]))
        found: Column = (F.col(BIN["left"]) == F.col(BIN["right"])) & (F.col(BIN["left"]) == first)
        return found

    def _measuring(self, frame: DataFrame) -> DataFrame:
        return frame.withColumn(_MEASURED, self.measures.scalar())

    def _size(self) -> Column:
        found: Column = self.F.col(_MEASURED)["size"]
        return found

    def _reach(self, side: Side) -> Column:
        found: Column = self._size() * self.F.pow(self.F.lit(_GROWTH), self.F.col(_LEVEL[side]))
        return found

    def _width(self, side: Side) -> Column:
        found: Column = self._reach(side) * self.F.lit(_WIDTH)
        return found

    def _inside(self, at: Column) -> Column:
        """Return how far after the first start a place is, at most at the edges; NaN is greatest."""
        F, known = self.F, self.F.col(_MEASURED)
        found: Column = F.least(F.greatest(at - known["low"], F.lit(-2.0) * known["size"]), known["span"])
        return found

    def _end(self, stretch: Stretch) -> Column:
        if stretch.end is None:
            return self._inside(stretch.start)
        found: Column = self.F.when(stretch.end.isNull(), self.F.col(_MEASURED)["span"]).otherwise(
            self._inside(stretch.end)
        )
        return found


def join_by_touched_bins(placed: Placed) -> DataFrame:
    """Join two sides of ranges, each copied into the bins that it touches.

    A pair that shares several bins counts in one of them, the bin of the later start.
    """
    bins = MeasuredBins.of(placed, None)
    left = bins.spread_both(placed.sides.left, "left", placed.left)
    right = bins.spread_both(placed.sides.right, "right", placed.right)
    said = placed.sides.condition()
    met = bins.met_first() & placed.meets
    return left.join(right, met if said is None else said & met, "inner")
