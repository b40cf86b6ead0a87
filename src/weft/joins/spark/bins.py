"""Bins: what is near or overlaps shares a bin, so that a hash or merge join finds it.

One side, the anchored one, puts each row into ONE bin, that of its start.  The other side is
copied into every bin in which the start of a partner may lie.  No pair meets twice, so nothing
is made distinct, and the anchored side may be preserved: each of its rows is there once,
matched or not.

Before::

    l LEFT JOIN r ON l.start <= r.t AND r.t <= l.start + reach

After::

    (SELECT *, floor(start / width) AS bin FROM l) l
    LEFT JOIN
    (SELECT *, explode(sequence(floor((t - reach) / width), floor(t / width))) AS bin FROM r) r
    ON l.bin = r.bin AND l.start <= r.t AND r.t <= l.start + reach

A bin is computed from a double.  That may put neighbours together, but keeps their order,
which is all that is needed: a start between two places has a bin between theirs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from weft.joins.resolve.resolved import Side
from weft.joins.spark.equi import SPARK_HOW
from weft.joins.spark.sides import Sides

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType

    from pyspark.sql import Column, DataFrame

_FAR = 2.0**60
BIN = {"left": "__weft_left_bin", "right": "__weft_right_bin"}


@dataclass(frozen=True, slots=True)
class Stretch:
    """From where to where a row reaches, as doubles; `end` is None for a point and NULL for no end.

    `first` is where a partner may start at the earliest, if that is not `start`.  A row that is
    not `valid` holds no time and meets nothing.
    """

    start: Column
    end: Column | None = None
    first: Column | None = None
    valid: Column | None = None

    def of_valid(self, frame: DataFrame) -> DataFrame:
        """Return the rows of a frame that may meet others."""
        return frame if self.valid is None else frame.filter(self.valid)


class Bins(Protocol):
    """A way to bin two sides."""

    def anchored(self, frame: DataFrame, side: Side, stretch: Stretch) -> DataFrame:
        """Return the frame with one bin for each row, NULL for a row that meets nothing."""

    def spread(self, frame: DataFrame, side: Side, stretch: Stretch) -> DataFrame:
        """Return the frame with a copy of each row for every bin where a partner may start."""

    def met(self) -> Column:
        """Return the condition that two rows share a bin."""


@dataclass(frozen=True, slots=True)
class FixedBins:
    """Bins of a width that is known before the data is.

    Where values are not `whole` they may be infinite, NaN or too many widths away to be counted;
    those share the outermost bins.
    """

    F: ModuleType
    width: float
    whole: bool

    def anchored(self, frame: DataFrame, side: Side, stretch: Stretch) -> DataFrame:
        """Return the frame with the bin of each start."""
        return frame.withColumn(BIN[side], self._bin(stretch.start))

    def spread(self, frame: DataFrame, side: Side, stretch: Stretch) -> DataFrame:
        """Return the frame with a copy for every bin from the first to the end."""
        first = self._bin(stretch.start if stretch.first is None else stretch.first)
        last = self._bin(stretch.start if stretch.end is None else stretch.end)
        return copied(self.F, frame, BIN[side], first, last)

    def met(self) -> Column:
        """Return the condition that two rows share a bin."""
        found: Column = self.F.col(BIN["left"]) == self.F.col(BIN["right"])
        return found

    def _bin(self, at: Column) -> Column:
        F, number = self.F, at / self.F.lit(self.width)
        if not self.whole:
            # NULL is passed over by greatest and least, so it is kept from them.
            inside = F.least(F.greatest(number, F.lit(-_FAR)), F.lit(_FAR))
            number = F.when(at.isNotNull(), inside)
        found: Column = F.floor(number)
        return found


def copied(F: ModuleType, frame: DataFrame, name: str, first: Column, last: Column) -> DataFrame:
    """Return the frame with a copy for every number from `first` to `last`, none when one is NULL."""
    upwards = F.when(first <= last, F.sequence(first, last))
    return frame.withColumn(name, F.explode(upwards))


@dataclass(frozen=True, slots=True)
class Placed:
    """Both sides with their stretches, and the exact condition that two rows meet."""

    sides: Sides
    left: Stretch
    right: Stretch
    meets: Column

    def anchored(self, anchor: Side, bins: Bins) -> Sides:
        """Return the sides with one bin for each row of `anchor` and copies of the other side."""
        if anchor == "left":
            left = bins.anchored(self.sides.left, "left", self.left)
            right = bins.spread(self.sides.right, "right", self.right)
        else:
            left = bins.spread(self.sides.left, "left", self.left)
            right = bins.anchored(self.sides.right, "right", self.right)
        return replace(self.sides, left=left, right=right)


def join_by_bins(placed: Placed, how: str, bins: Mapping[Side, Bins], *, inner: Side = "left") -> DataFrame:
    """Join the sides so that each row of a preserved side comes out once.

    `bins` are by the side that they anchor; `inner` is the one to anchor when none is preserved.
    """
    if how == "full":
        return _full(placed, bins)
    preserved: dict[str, Side] = {"inner": inner, "right": "right"}
    anchor = preserved.get(how, "left")
    sides = placed.anchored(anchor, bins[anchor])
    return sides.left.join(sides.right, _condition(placed, bins[anchor].met()), SPARK_HOW[how])


def _full(placed: Placed, bins: Mapping[Side, Bins]) -> DataFrame:
    """Return the left join and, below it, the right rows that have no partner."""
    columns = placed.sides.left.columns, placed.sides.right.columns
    first = join_by_bins(placed, "left", bins).select(*columns[0], *columns[1])
    sides = placed.anchored("right", bins["right"])
    lonely = sides.right.join(sides.left, _condition(placed, bins["right"].met()), "left_anti")
    return first.unionByName(lonely.select(*columns[1]), allowMissingColumns=True)


def _condition(placed: Placed, met: Column) -> Column:
    said = placed.sides.condition()
    return met & placed.meets if said is None else said & met & placed.meets


def join_by_keys(sides: Sides, how: str, meets: Column) -> DataFrame:
    """Join by keys, predicates and the exact condition alone."""
    said = sides.condition()
    return sides.left.join(sides.right, meets if said is None else said & meets, SPARK_HOW[how])
