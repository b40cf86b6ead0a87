"""Keys with more rows than a task should have, and the times at which their rows are cut.

A sample of both sides is taken by a hash of the rows: those with the smallest hashes, a fixed
number of them.  A key that has more of it than its share of a slice is heavy and gets as many
slices as it needs; the times that cut it into equal parts are read off the sorted sample::

    sample of key A:  1 2 2 5 6 7 9 9      four slices, cut at 2, 6, 9
    slice number:     0 1 1 1 2 2 3 3      rows of one time are never parted

The sample follows from values alone, so it comes out the same in whatever order rows are read.
It must: several places of the plan ask for it, and each may get an answer of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, cast

from weft.core.types import BINARY, STRING, Array, Field, Struct
from weft.plan.conditions import split
from weft.plan.resolved import AsOf, Side, Slot
from weft.spark.chosen import usable_left, usable_right
from weft.spark.frames import window_of
from weft.spark.order import Axis
from weft.spark.sides import Sides
from weft.spark.types import to_spark

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

    from weft.core.types import Schema
    from weft.plan.facts import Facts

PER_PARTITION = 2
_MOST_SLICES = 1024
_SAMPLED_PER_SLICE = 64
_LEAST_SAMPLED, _MOST_SAMPLED = 1 << 15, 1 << 18
_HASHED_BESIDES = 4
_WIDE = (STRING, BINARY)
_KEY, _TIME, _SIDE, _HASH, _TIMES, _PARTS, _BASE = (
    "__weft_cut_key",
    "__weft_cut_time",
    "__weft_cut_side",
    "__weft_cut_hash",
    "__weft_cut_times",
    "__weft_cut_parts",
    "__weft_cut_base",
)
CUTS, SLICE, LAST = "__weft_cuts", "__weft_slice", "__weft_last_slice"


@dataclass(frozen=True, slots=True)
class Slicing:
    """How the rows of a join are cut by time; with facts, where they say, without a sample."""

    sides: Sides
    match: AsOf
    partitions: int
    facts: Facts | None = None

    @classmethod
    def of(cls, sides: Sides, match: AsOf, facts: Facts | None = None) -> Slicing:
        """Return the slicing for the shuffle partitions of the session."""
        session = sides.left.sparkSession
        partitions = int(session.conf.get("spark.sql.shuffle.partitions", "200") or 200)
        return cls(sides, match, partitions, facts)

    @property
    def wanted(self) -> int:
        """How many slices all rows together are worth."""
        return min(PER_PARTITION * self.partitions, _MOST_SLICES)

    @property
    def most_sampled(self) -> int:
        """How many rows a sample has at most."""
        return max(_LEAST_SAMPLED, min(self.wanted * _SAMPLED_PER_SLICE, _MOST_SAMPLED))

    def rows(self, side: Side) -> DataFrame:
        """Return the rows of a side; right rows that can never be chosen are left out."""
        if side == "left":
            return self.sides.left
        return self.sides.right.filter(usable_right(self.sides, self.match, split(self.sides.join)))

    def keys(self, side: Side) -> list[Column]:
        """Return the equal keys of a side in the types in which they are compared."""
        pick = self.sides.left_column if side == "left" else self.sides.right_column
        return [pick(k.left if side == "left" else k.right, k.dtype) for k in self.sides.join.keys]

    def time(self, side: Side) -> Column:
        """Return the order value of a side in the common type."""
        axis = Axis.of(self.sides, self.match)
        return axis.left if side == "left" else axis.right

    def sample(self) -> DataFrame:
        """Return up to a fixed number of rows of both sides: keys, time, side and hash."""
        usable = usable_left(self.sides, self.match, split(self.sides.join))
        ours = self._hashed(self.rows("left").filter(usable), "left")
        both = ours.unionAll(self._hashed(self.rows("right"), "right"))
        return both.orderBy(_HASH, _TIME).limit(self.most_sampled)

    def _hashed(self, frame: DataFrame, side: Side) -> DataFrame:
        F = self.sides.F
        keys, time = self.keys(side), self.time(side)
        besides = [self.sides.column(Slot(side, i)) for i in self._told_apart_by(side)]
        return frame.select(
            *(key.alias(f"{_KEY}{i}") for i, key in enumerate(keys)),
            time.alias(_TIME),
            F.lit(side).alias(_SIDE),
            F.xxhash64(*keys, time, *besides).alias(_HASH),
        )

    def _told_apart_by(self, side: Side) -> list[int]:
        """Return a few columns, narrow ones first, that rows of one key and time may differ in.

        Rows with one hash are taken or left together, and many of them would spoil the sample.
        """
        schema: Schema = self.sides.join.left if side == "left" else self.sides.join.right
        flat = [i for i, f in enumerate(schema.fields) if f.dtype.is_orderable and not f.dtype.is_nested]
        return sorted(flat, key=lambda i: schema.fields[i].dtype in _WIDE)[:_HASHED_BESIDES]

    def heavy(self) -> DataFrame:
        """Return the heavy keys, each with the times at which its rows are cut."""
        keys = [f"{_KEY}{i}" for i in range(len(self.sides.join.keys))]
        if self.facts is not None:
            return self._told(self.facts, keys)
        return self._counted().filter(self.sides.F.col(_PARTS) > 1).select(*keys, self._cuts().alias(CUTS))

    def _told(self, facts: Facts, keys: list[str]) -> DataFrame:
        F, session = self.sides.F, self.sides.left.sparkSession
        dtypes = [k.dtype for k in self.sides.join.keys]
        time = Array(Axis.of(self.sides, self.match).dtype)
        fields = [Field(name, dtype) for name, dtype in zip(keys, dtypes, strict=True)]
        rows = [(*key.values, list(key.cuts)) for key in facts.heavy]
        schema = cast("StructType", to_spark(Struct((*fields, Field(CUTS, time)))))
        # Sorted again: two times of the hour that comes twice a year may have changed places in Python.
        return session.createDataFrame(rows, schema).withColumn(CUTS, F.sort_array(CUTS))

    def surveyed(self) -> DataFrame:
        """Return one row: sampled rows of each side, the greatest hash, and the heavy keys."""
        F = self.sides.F
        heavy = F.struct(
            *(F.col(f"{_KEY}{i}") for i in range(len(self.sides.join.keys))),
            F.size(_TIMES).alias("rows"),
            self._cuts().alias("cuts"),
        )
        return self._counted().agg(
            F.sum("left_rows").alias("left_rows"),
            F.sum("right_rows").alias("right_rows"),
            F.max("reached").alias("reached"),
            F.collect_list(F.when(F.col(_PARTS) > 1, heavy)).alias("heavy"),
        )

    def _counted(self) -> DataFrame:
        """Return the keys of the sample: their rows, sorted times and how many parts these are worth."""
        F = self.sides.F
        # A stage of its own: what a broadcast waits for has to end within a set time.
        sample = self.sample().repartition(1)
        ours = F.col(_SIDE) == F.lit("left")
        grouped = sample.groupBy(*(f"{_KEY}{i}" for i in range(len(self.sides.join.keys)))).agg(
            F.sort_array(F.collect_list(_TIME)).alias(_TIMES),
            F.count_if(ours).alias("left_rows"),
            F.count_if(~ours).alias("right_rows"),
            F.max(_HASH).alias("reached"),
        )
        count = F.size(_TIMES)
        total = F.greatest(F.sum(count).over(window_of(sample).partitionBy(F.lit(0))), F.lit(1))
        return grouped.withColumn(_PARTS, F.ceil(count * F.lit(self.wanted) / total).cast("int"))

    def _cuts(self) -> Column:
        F = self.sides.F
        times, parts = F.col(_TIMES), F.col(_PARTS)
        cuts: Column = F.transform(
            F.sequence(F.lit(1), parts - F.lit(1)),
            lambda i: F.get(times, F.floor(i * F.size(times) / parts).cast("int")),
        )
        return F.array_distinct(cuts)  # type: ignore[no-any-return]  # F is whichever module fits the frame

    def sliced(self, side: Side, heavy: DataFrame, *, others: bool = True) -> DataFrame:
        """Return the rows of a side with the number of their slice and of the last one of their key.

        Rows of `others` than heavy keys have slice 0 and no last one.
        """
        F = self.sides.F
        how = "left_outer" if others else "inner"
        joined = self.rows(side).join(F.broadcast(heavy), self.equal(side, _KEY), how)
        cuts, time = F.col(CUTS), self.time(side)
        stride = math.isqrt(self.wanted) + 1

        def passed(place: Column) -> Column:
            here: Column = F.when(F.get(cuts, place) <= time, F.lit(1)).otherwise(F.lit(0))
            return here

        # Two short rows of comparisons: first every stride-th cut, then the cuts between two of those.
        strides = [passed(F.lit(stride * (i + 1) - 1)) for i in range(self.wanted // stride + 1)]
        base = reduce(lambda a, b: a + b, strides) * F.lit(stride)
        between = [passed(F.col(_BASE) + F.lit(i)) for i in range(stride - 1)]
        number = reduce(lambda a, b: a + b, between, F.col(_BASE))
        return joined.withColumn(_BASE, base).withColumns({SLICE: number, LAST: F.size(cuts)})

    def equal(self, side: Side, prefix: str) -> Column:
        """Return that the keys of a side equal the columns of that prefix; true without keys."""
        F = self.sides.F
        pairs = [(key, F.col(f"{prefix}{i}")) for i, key in enumerate(self.keys(side))]
        nulls = self.sides.join.nulls_equal
        same: Column = reduce(
            lambda whole, pair: whole & (pair[0].eqNullSafe(pair[1]) if nulls else pair[0] == pair[1]),
            pairs,
            F.lit(True),
        )
        return same
