"""Keys with more rows than a task should have, and the times at which their rows are cut.

The sample of both sides is a fixed number of rows with the smallest hashes.  A key with more sampled
rows than a slice should have is heavy and is cut into as many slices as it needs; the times that cut
it into equal parts are read from the sorted sample::

    sample of key A:  1 2 2 5 6 7 9 9      four slices, cut at 2, 6, 9

A cut is moved back to the time of a right row if the slices stay even, so that no slice needs right
rows from outside it.

The sample depends only on values, not on the order in which rows are read.  This is necessary because
the plan contains the sample several times, and each copy is computed on its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from pyspark.sql import Column, DataFrame
from pyspark.sql.types import StructType

from weft.core.types import BINARY, BOOLEAN, LONG, STRING, TIMESTAMP, Array, DType, Field, Scalar, Schema, Struct
from weft.expr.spark.frames import window_of
from weft.expr.spark.types import to_spark
from weft.joins.facts import Facts
from weft.joins.resolve.resolved import AsOf, Side, Slot, order_index
from weft.joins.spark.chosen import can_match
from weft.joins.spark.order import Axis
from weft.joins.spark.sides import Sides, count_partitions

PER_PARTITION = 2
# The plan has a comparison for about two square roots of this number, and the table is broadcast.
_MOST_SLICES = 1024
_SAMPLED_PER_SLICE = 64
_LEAST_SAMPLED, _MOST_SAMPLED = 1 << 15, 1 << 18
_RIGHTS_PER_CUT = 4
_MOST_SHARES = 3
_VARYING_TYPES = ("double", "float", "long", "timestamp", "timestamp_ntz", "integer", "date", "short", "byte")
_WIDE = (STRING, BINARY)
HASHES = 1 << 64
"""How many values a hash has; half of them are negative."""
_ROUND_TRIPS = frozenset(
    "boolean byte short integer long float double string binary date timestamp timestamp_ntz".split()
)
KEY, CUTS, CARRIED = "__weft_cut_key", "__weft_cuts", "__weft_needs_carried"
_TIME, _SIDE, _HASH, _BEFORE = "__weft_cut_time", "__weft_cut_side", "__weft_cut_hash", "__weft_cut_before"
_TIMES, _PARTS, _EVEN = "__weft_cut_times", "__weft_cut_parts", "__weft_cut_even"


@dataclass(frozen=True, slots=True)
class Survey:
    """A sample of both sides of a join: its heavy keys and where to cut them."""

    sides: Sides
    match: AsOf
    partitions: int
    share: float = 1.0
    """The share of the rows, those with the smallest hashes, from which the sample is taken."""

    @classmethod
    def of(cls, sides: Sides, match: AsOf, share: float = 1.0) -> Survey:
        """Return the survey for the shuffle partitions of the session."""
        return cls(sides, match, count_partitions(sides.left), share)

    @property
    def slices(self) -> int:
        """The number of slices that all rows together get."""
        return min(PER_PARTITION * self.partitions, _MOST_SLICES)

    @property
    def most_sampled(self) -> int:
        """How many rows a sample has at most."""
        return max(_LEAST_SAMPLED, min(self.slices * _SAMPLED_PER_SLICE, _MOST_SAMPLED))

    def rows(self, side: Side) -> DataFrame:
        """Return the rows of a side; right rows that can never be chosen are left out."""
        if side == "left":
            return self.sides.left
        return self.sides.right.filter(can_match(self.sides, self.match, "right"))

    def time(self, side: Side) -> Column:
        """Return the order value of a side in the common type."""
        axis = Axis.of(self.sides, self.match)
        return axis.left if side == "left" else axis.right

    @property
    def key_names(self) -> list[str]:
        """Names of the keys in what this class returns."""
        return [f"{KEY}{i}" for i in range(len(self.sides.join.keys))]

    def sample(self) -> DataFrame:
        """Return up to a fixed number of rows of both sides: keys, time, side and hash."""
        usable = can_match(self.sides, self.match, "left")
        ours = self._hashed(self.rows("left").filter(usable), "left")
        both = ours.unionAll(self._hashed(self.rows("right"), "right"))
        if self.share < 1.0:  # most rows are not sorted
            most = int(HASHES * self.share) - HASHES // 2
            both = both.filter(self.sides.F.col(_HASH) <= self.sides.F.lit(most).cast("bigint"))
        return both.orderBy(_HASH, _TIME, _SIDE).limit(self.most_sampled)

    def _hashed(self, frame: DataFrame, side: Side) -> DataFrame:
        F = self.sides.F
        # The hash decides which rows are sampled, so it may only depend on values that two reads agree on.
        keys, time = self.sides.keys(side), self.time(side)
        if self._axis.is_fraction:  # -0.0 and 0.0 are one time, and would be two cuts
            time = (time + F.lit(0.0)).cast(to_spark(self._axis))
        besides = [self.sides.column(Slot(side, i)) for i in self._varying_column(side)]
        return frame.select(
            *(key.alias(name) for key, name in zip(keys, self.key_names, strict=True)),
            time.alias(_TIME),
            F.lit(side).alias(_SIDE),
            F.xxhash64(*keys, time, *besides).alias(_HASH),
        )

    def _varying_column(self, side: Side) -> list[int]:
        """Return the column, if any, that is most likely to differ in rows of one key and time.

        Rows with equal hashes are sampled together or not at all, and many of them would distort the
        sample.  More columns would cost more reads.
        """
        schema: Schema = self.sides.join.schema_of(side)
        mine = {order_index(self.match, side), *(k.index(side) for k in self.sides.join.keys)}
        flat = [
            i
            for i, f in enumerate(schema.fields)
            if i not in mine and f.dtype.is_orderable and not f.dtype.is_nested and f.dtype != BOOLEAN
        ]
        return sorted(flat, key=lambda i: _rank_type(schema.fields[i].dtype))[:1]

    def table(self) -> DataFrame:
        """Return the heavy keys with their cuts, and whether their slices need right rows of other slices."""
        heavy = self._counted().filter(self.sides.F.col(_PARTS) > 1)
        return self._cut(heavy).select(*self.key_names, CUTS, CARRIED)

    def one_row(self) -> DataFrame:
        """Return one row: sampled rows of each side, the greatest hash, and the heavy keys."""
        F = self.sides.F
        dtypes = [k.dtype for k in self.sides.join.keys]
        heavy = F.struct(
            *(self._sent(F.col(n), d).alias(n) for n, d in zip(self.key_names, dtypes, strict=True)),
            F.size(_TIMES).alias("rows"),
            self._sent_times(F.col(CUTS)).alias("cuts"),
            F.col(CARRIED).alias("carried"),
        )
        # Keys with one part are dropped here: most keys are, and the row goes to the driver.
        counts = ("left_rows", "right_rows")
        keys = self._cut(self._counted()).select(*counts, "reached", F.when(F.col(_PARTS) > 1, heavy).alias("heavy"))
        sums = [F.sum(side).alias(side) for side in counts]
        return keys.agg(*sums, F.max("reached").alias("reached"), F.collect_list("heavy").alias("heavy"))

    def _cut(self, counted: DataFrame) -> DataFrame:
        """Return the keys of the sample with their cuts: at right rows, or at even parts if that is necessary."""
        F = self.sides.F
        cut = counted.withColumns({_EVEN: self._at_parts(_TIMES), CUTS: self._at_parts(_BEFORE)})
        cut = cut.withColumn(CARRIED, self._needs_carried())
        cuts = F.when(F.col(CARRIED), F.col(_EVEN)).otherwise(F.col(CUTS))
        return cut.withColumn(CUTS, F.array_distinct(F.array_compact(cuts)))

    def _counted(self) -> DataFrame:
        """Return the keys of the sample: their rows, sorted times and number of parts.

        Each time comes with the time of the last right row up to it, NULL before the first one.
        """
        F = self.sides.F
        # A separate stage: a broadcast has a timeout for what it waits for.
        sample = self.sample().repartition(1)
        window = window_of(sample)
        keys, theirs = self.key_names, F.col(_SIDE) == F.lit("right")
        upto = (
            window.partitionBy(*keys or (F.lit(0),))
            .orderBy(_TIME, F.col(_SIDE).desc())
            .rowsBetween(window.unboundedPreceding, window.currentRow)
        )
        before = F.last(F.when(theirs, F.col(_TIME)), ignorenulls=True).over(upto)
        both = F.sort_array(F.collect_list(F.struct(F.col(_TIME).alias("at"), F.col(_BEFORE).alias("before"))))
        grouped = (
            sample.withColumn(_BEFORE, before)
            .groupBy(*keys)
            .agg(
                both.alias(_TIMES),
                F.count_if(~theirs).alias("left_rows"),
                F.count_if(theirs).alias("right_rows"),
                F.max(_HASH).alias("reached"),
            )
        )
        grouped = grouped.withColumns({_BEFORE: F.col(_TIMES)["before"], _TIMES: F.col(_TIMES)["at"]})
        count = F.size(_TIMES)
        total = F.greatest(F.sum(count).over(window.partitionBy(F.lit(0))), F.lit(1))
        parts = F.ceil(count * F.lit(self.slices) / total).cast("int")
        return grouped.withColumn(_PARTS, F.greatest(parts, F.lit(1)))

    def _at_parts(self, times: str) -> Column:
        """Return the times at which one part ends and the next begins."""
        F = self.sides.F
        parts = F.col(_PARTS)
        return F.transform(
            F.sequence(F.lit(1), F.greatest(parts - F.lit(1), F.lit(1))),  # a key of one part is left whole
            lambda i: F.get(F.col(times), F.floor(i * F.size(times) / parts).cast("int")),
        )

    def _needs_carried(self) -> Column:
        """Whether slices of a key need right rows of other slices, because not every cut is at a right row.

        This is so if right rows are too few, or so far from the left rows that slices would be uneven.
        """
        F, match = self.sides.F, self.match
        if match.skip_nulls or (match.direction == "nearest" and not match.allow_exact):
            return F.lit(True)
        few = F.col("right_rows") < F.col(_PARTS) * F.lit(_RIGHTS_PER_CUT)

        def uneven(i: Column) -> Column:
            further = i + F.lit(_MOST_SHARES - 1)
            same = F.get(F.col(CUTS), i).eqNullSafe(F.get(F.col(CUTS), further))
            return same & (F.get(F.col(_EVEN), i) < F.get(F.col(_EVEN), further))

        places = F.sequence(F.lit(0), F.size(_EVEN))
        return few | F.coalesce(F.exists(places, uneven), F.lit(False))

    def can_be_sent(self) -> bool:
        """Whether key values and times are unchanged after a round trip through Python."""
        dtypes = [*(k.dtype for k in self.sides.join.keys), self._axis]
        return not any(d.is_nested or (isinstance(d, Scalar) and d.name not in _ROUND_TRIPS) for d in dtypes)

    @property
    def _axis(self) -> DType:
        return Axis.of(self.sides, self.match).dtype

    def _sent(self, column: Column, dtype: DType) -> Column:
        """Return a value as it is sent to Python, where local times of the repeated autumn hour would be ambiguous."""
        F = self.sides.F
        if not self.can_be_sent():
            return column.cast("string")
        return F.unix_micros(column) if dtype == TIMESTAMP else column

    def _sent_times(self, cuts: Column) -> Column:
        F = self.sides.F
        if not self.can_be_sent():
            return F.array().cast("array<string>")
        if self._axis != TIMESTAMP:
            return cuts
        return F.transform(cuts, F.unix_micros)

    def table_of(self, facts: Facts) -> DataFrame:
        """Return the heavy keys of facts in the form of `table`."""
        F, session = self.sides.F, self.sides.left.sparkSession
        dtypes = [k.dtype for k in self.sides.join.keys]
        fields = [Field(n, _kept(d)) for n, d in zip(self.key_names, dtypes, strict=True)]
        schema = Struct((*fields, Field(CUTS, Array(_kept(self._axis))), Field(CARRIED, Scalar("boolean"))))
        rows = [(*key.values, list(key.cuts), key.carried) for key in facts.heavy]
        frame = session.createDataFrame(rows, cast("StructType", to_spark(schema)))
        back = {n: F.timestamp_micros(n) for n, d in zip(self.key_names, dtypes, strict=True) if d == TIMESTAMP}
        if self._axis == TIMESTAMP:
            back[CUTS] = F.transform(CUTS, F.timestamp_micros)
        return frame.withColumns(back) if back else frame


def _rank_type(dtype: DType) -> int:
    """Return a rank that is lower for types whose values differ more and are read faster."""
    name = dtype.name if isinstance(dtype, Scalar) else ""
    if dtype in _WIDE:
        return len(_VARYING_TYPES) + 1
    return _VARYING_TYPES.index(name) if name in _VARYING_TYPES else len(_VARYING_TYPES)


def _kept(dtype: DType) -> DType:
    return LONG if dtype == TIMESTAMP else dtype
