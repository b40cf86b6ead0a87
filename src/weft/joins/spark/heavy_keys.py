"""Keys with more rows than a task should have, and the times at which their rows are cut.

A sample of both sides is taken by a hash of the rows: those with the smallest hashes, a fixed
number of them.  A key that has more of it than its share of a slice is heavy and gets as many
slices as it needs; the times that cut it into equal parts are read off the sorted sample::

    sample of key A:  1 2 2 5 6 7 9 9      four slices, cut at 2, 6, 9

A cut is moved back to the time of a right row where that leaves the slices even, so that no slice
needs to be told of right rows outside it.

The sample follows from values alone, so it comes out the same in whatever order rows are read.
It must: several places of the plan ask for it, and each may get an answer of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from weft.core.types import BINARY, BOOLEAN, LONG, STRING, TIMESTAMP, Array, DType, Field, Scalar, Struct
from weft.expr.spark.frames import window_of
from weft.expr.spark.types import to_spark
from weft.joins.resolve.predicates import split_conditions
from weft.joins.resolve.resolved import AsOf, Side, Slot
from weft.joins.spark.chosen import usable_left, usable_right
from weft.joins.spark.order import Axis
from weft.joins.spark.sides import Sides

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

    from weft.core.types import Schema
    from weft.joins.facts import Facts

PER_PARTITION = 2
_MOST_SLICES = 1024
_SAMPLED_PER_SLICE = 64
_LEAST_SAMPLED, _MOST_SAMPLED = 1 << 15, 1 << 18
_RIGHTS_PER_CUT = 4
_MOST_SHARES = 3
_TELLING = ("double", "float", "long", "timestamp", "timestamp_ntz", "integer", "date", "short", "byte")
_WIDE = (STRING, BINARY)
HASHES = 1 << 64
"""How many values a hash has; half of them are negative."""
_BACK_AND_FORTH = frozenset(
    "boolean byte short integer long float double string binary date timestamp timestamp_ntz".split()
)
KEY, CUTS, TOLD = "__weft_cut_key", "__weft_cuts", "__weft_must_be_told"
_TIME, _SIDE, _HASH, _BEFORE, _TIMES, _PARTS, _EVEN = (
    "__weft_cut_time",
    "__weft_cut_side",
    "__weft_cut_hash",
    "__weft_cut_before",
    "__weft_cut_times",
    "__weft_cut_parts",
    "__weft_cut_even",
)


@dataclass(frozen=True, slots=True)
class Survey:
    """A look at both sides of a join: its heavy keys and where to cut them."""

    sides: Sides
    match: AsOf
    partitions: int
    share: float = 1.0
    """Which share of the rows the sample is taken from: of all, those with the smallest hashes."""

    @classmethod
    def of(cls, sides: Sides, match: AsOf, share: float = 1.0) -> Survey:
        """Return the survey for the shuffle partitions of the session."""
        session = sides.left.sparkSession
        return cls(sides, match, int(session.conf.get("spark.sql.shuffle.partitions", "200") or 200), share)

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
        return self.sides.right.filter(
            usable_right(self.sides, self.match, split_conditions(self.sides.join))
        )

    def keys(self, side: Side) -> list[Column]:
        """Return the equal keys of a side in the types in which they are compared."""
        pick = self.sides.left_column if side == "left" else self.sides.right_column
        return [pick(k.left if side == "left" else k.right, k.dtype) for k in self.sides.join.keys]

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
        usable = usable_left(self.sides, self.match, split_conditions(self.sides.join))
        ours = self._hashed(self.rows("left").filter(usable), "left")
        both = ours.unionAll(self._hashed(self.rows("right"), "right"))
        if self.share < 1.0:  # spares most rows the sort
            most = int(HASHES * self.share) - HASHES // 2
            both = both.filter(self.sides.F.col(_HASH) <= self.sides.F.lit(most).cast("bigint"))
        return both.orderBy(_HASH, _TIME, _SIDE).limit(self.most_sampled)

    def _hashed(self, frame: DataFrame, side: Side) -> DataFrame:
        F = self.sides.F
        keys, time = self.keys(side), self.time(side)
        if self._axis.is_fraction:  # -0.0 and 0.0 are one time, and would be two cuts
            time = (time + F.lit(0.0)).cast(to_spark(self._axis))
        besides = [self.sides.column(Slot(side, i)) for i in self._told_apart_by(side)]
        return frame.select(
            *(key.alias(name) for key, name in zip(keys, self.key_names, strict=True)),
            time.alias(_TIME),
            F.lit(side).alias(_SIDE),
            F.xxhash64(*keys, time, *besides).alias(_HASH),
        )

    def _told_apart_by(self, side: Side) -> list[int]:
        """Return the column, if there is one, that is most likely to differ in rows of one key and time.

        Rows with one hash are taken or left together, and many of them would spoil the sample; each
        column costs a read.
        """
        schema: Schema = self.sides.join.left if side == "left" else self.sides.join.right
        mine = {k.left if side == "left" else k.right for k in self.sides.join.keys}
        mine.add(self.match.left if side == "left" else self.match.right)
        flat = [
            i
            for i, f in enumerate(schema.fields)
            if i not in mine and f.dtype.is_orderable and not f.dtype.is_nested and f.dtype != BOOLEAN
        ]
        return sorted(flat, key=lambda i: _telling(schema.fields[i].dtype))[:1]

    def table(self) -> DataFrame:
        """Return the heavy keys: each with its cuts, and whether slices must be told of right rows."""
        heavy = self._counted().filter(self.sides.F.col(_PARTS) > 1)
        return self._cut(heavy).select(*self.key_names, CUTS, TOLD)

    def one_row(self) -> DataFrame:
        """Return one row: sampled rows of each side, the greatest hash, and the heavy keys."""
        F = self.sides.F
        dtypes = [k.dtype for k in self.sides.join.keys]
        heavy = F.struct(
            *(self._sent(F.col(n), d).alias(n) for n, d in zip(self.key_names, dtypes, strict=True)),
            F.size(_TIMES).alias("rows"),
            self._sent_times(F.col(CUTS)).alias("cuts"),
            F.col(TOLD).alias("told"),
        )
        counts = ("left_rows", "right_rows")
        keys = self._cut(self._counted()).select(
            *counts, "reached", F.when(F.col(_PARTS) > 1, heavy).alias("heavy")
        )
        sums = [F.sum(side).alias(side) for side in counts]
        return keys.agg(*sums, F.max("reached").alias("reached"), F.collect_list("heavy").alias("heavy"))

    def _cut(self, counted: DataFrame) -> DataFrame:
        """Return keys of the sample with their cuts: at right rows, or where parts are even if that needs to be."""
        F = self.sides.F
        found = counted.withColumns({_EVEN: self._at_parts(_TIMES), CUTS: self._at_parts(_BEFORE)})
        found = found.withColumn(TOLD, self._must_be_told())
        cuts = F.when(F.col(TOLD), F.col(_EVEN)).otherwise(F.col(CUTS))
        return found.withColumn(CUTS, F.array_distinct(F.array_compact(cuts)))

    def _counted(self) -> DataFrame:
        """Return the keys of the sample: their rows, sorted times and how many parts these are worth.

        Beside each time stands that of the last right row up to it, NULL before the first one.
        """
        F = self.sides.F
        # A stage of its own: what a broadcast waits for has to end within a set time.
        sample = self.sample().repartition(1)
        window = window_of(sample)
        keys, theirs = self.key_names, F.col(_SIDE) == F.lit("right")
        upto = (
            window.partitionBy(*keys or [F.lit(0)])
            .orderBy(_TIME, F.col(_SIDE).desc())
            .rowsBetween(window.unboundedPreceding, window.currentRow)
        )
        before = F.last(F.when(theirs, F.col(_TIME)), ignorenulls=True).over(upto)
        both = F.sort_array(
            F.collect_list(F.struct(F.col(_TIME).alias("at"), F.col(_BEFORE).alias("before")))
        )
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
        parts = F.ceil(count * F.lit(self.wanted) / total).cast("int")
        return grouped.withColumn(_PARTS, F.greatest(parts, F.lit(1)))

    def _at_parts(self, times: str) -> Column:
        """Return the times at which one part ends and the next begins."""
        F = self.sides.F
        parts = F.col(_PARTS)
        cuts: Column = F.transform(
            F.sequence(F.lit(1), F.greatest(parts - F.lit(1), F.lit(1))),  # a key of one part is left whole
            lambda i: F.get(F.col(times), F.floor(i * F.size(times) / parts).cast("int")),
        )
        return cuts

    def _must_be_told(self) -> Column:
        """Whether slices of a key need right rows of other slices, which a right row at each cut spares them.

        Right rows are too few for that, or lie apart from the left ones: a slice would get too much.
        """
        F, match = self.sides.F, self.match
        if match.skip_nulls or (match.direction == "nearest" and not match.allow_exact):
            told: Column = F.lit(True)
            return told
        few = F.col("right_rows") < F.col(_PARTS) * F.lit(_RIGHTS_PER_CUT)

        def uneven(i: Column) -> Column:
            further = i + F.lit(_MOST_SHARES - 1)
            same = F.get(F.col(CUTS), i).eqNullSafe(F.get(F.col(CUTS), further))
            wide: Column = same & (F.get(F.col(_EVEN), i) < F.get(F.col(_EVEN), further))
            return wide

        places = F.sequence(F.lit(0), F.size(_EVEN))
        found: Column = few | F.coalesce(F.exists(places, uneven), F.lit(False))
        return found

    def can_be_sent(self) -> bool:
        """Whether key values and times come back from Python as they were."""
        dtypes = [*(k.dtype for k in self.sides.join.keys), self._axis]
        return not any(
            d.is_nested or (isinstance(d, Scalar) and d.name not in _BACK_AND_FORTH) for d in dtypes
        )

    @property
    def _axis(self) -> DType:
        return Axis.of(self.sides, self.match).dtype

    def _sent(self, column: Column, dtype: DType) -> Column:
        """Return a value as it goes to Python; a local time there does not tell the two hours of autumn apart."""
        F = self.sides.F
        if not self.can_be_sent():
            return column.cast("string")
        return F.unix_micros(column) if dtype == TIMESTAMP else column

    def _sent_times(self, cuts: Column) -> Column:
        F = self.sides.F
        if not self.can_be_sent():
            return F.array().cast("array<string>")  # type: ignore[no-any-return]  # F is any
        if self._axis != TIMESTAMP:
            return cuts
        return F.transform(cuts, F.unix_micros)  # type: ignore[no-any-return]  # F is any

    def told(self, facts: Facts) -> DataFrame:
        """Return the heavy keys of facts in the form of `table`."""
        F, session = self.sides.F, self.sides.left.sparkSession
        dtypes = [k.dtype for k in self.sides.join.keys]
        fields = [Field(n, _kept(d)) for n, d in zip(self.key_names, dtypes, strict=True)]
        schema = Struct((*fields, Field(CUTS, Array(_kept(self._axis))), Field(TOLD, Scalar("boolean"))))
        rows = [(*key.values, list(key.cuts), key.told) for key in facts.heavy]
        frame = session.createDataFrame(rows, cast("StructType", to_spark(schema)))
        back = {
            n: F.timestamp_micros(n) for n, d in zip(self.key_names, dtypes, strict=True) if d == TIMESTAMP
        }
        if self._axis == TIMESTAMP:
            back[CUTS] = F.transform(CUTS, F.timestamp_micros)
        return frame.withColumns(back) if back else frame


def _telling(dtype: DType) -> int:
    """Return a rank that is lower for types whose values differ more and are read faster."""
    name = dtype.name if isinstance(dtype, Scalar) else ""
    if dtype in _WIDE:
        return len(_TELLING) + 1
    return _TELLING.index(name) if name in _TELLING else len(_TELLING)


def _kept(dtype: DType) -> DType:
    return LONG if dtype == TIMESTAMP else dtype
