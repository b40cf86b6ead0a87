"""The two frames of a join under positional names, and hash groups of their rows."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

from pyspark.sql import Column, DataFrame

from weft.core.names import LEFT, RIGHT, internal_name
from weft.core.types import DType, Scalar
from weft.expr.spark.columns import compile_expr
from weft.expr.spark.frames import functions_of
from weft.expr.spark.types import to_spark
from weft.joins.resolve.resolved import OutputColumn, ResolvedJoin, Side, Slot


class Functions(ModuleType):
    """`pyspark.sql.functions` of a classic or a Connect session, as type checkers see it."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Callable[..., Column]: ...

        def broadcast(self, df: DataFrame) -> DataFrame:
            """Mark a frame for a broadcast join."""


LEFT_HERE = "__weft_left_here"
RIGHT_HERE = "__weft_right_here"
SPARK_HOW = {
    "inner": "inner",
    "left": "left_outer",
    "right": "right_outer",
    "full": "full_outer",
    "semi": "left_semi",
    "anti": "left_anti",
}
SIDES: tuple[Side, Side] = ("left", "right")
OTHER: dict[Side, Side] = {"left": "right", "right": "left"}


@dataclass(frozen=True, slots=True)
class Sides:
    """Both frames with every column renamed by position.

    Positional names cannot collide, so self-joins, dots, backticks and names that differ in
    case need no special treatment, in classic and Connect sessions alike.  The last key of
    `sliced` sides is the number of a time slice.
    """

    join: ResolvedJoin
    left: DataFrame
    right: DataFrame
    F: Functions
    sliced: bool = False

    @classmethod
    def of(cls, left: DataFrame, right: DataFrame, join: ResolvedJoin) -> Sides:
        """Rename the columns of both frames."""
        sides = cls(join, left, right, cast("Functions", functions_of(left)))
        return replace(sides, left=sides._renamed("left", left), right=sides._renamed("right", right))

    def _renamed(self, side: Side, frame: DataFrame) -> DataFrame:
        """Return the frame of a side under positional names, with the orders that are computed."""
        names, own = self.names(side), self.join.own_columns(side)
        frame = frame.toDF(*names[: len(own)])
        computed = zip(names[len(own) :], self.join.computed(side), strict=True)

        def column(slot: Any) -> Column:
            return self.F.col(names[slot[1]])

        added = {name: compile_expr(typed, column, self.F) for name, typed in computed}
        return frame.withColumns(added) if added else frame  # Connect takes no empty mapping

    def names(self, side: Side) -> list[str]:
        """Return the names of the columns of a side, in order."""
        prefix = LEFT if side == "left" else RIGHT
        return [internal_name(prefix, i) for i in range(len(self.join.schema_of(side)))]

    def column(self, slot: Hashable) -> Column:
        """Return the renamed column of a slot."""
        assert isinstance(slot, Slot)  # noqa: S101  # predicates of a join hold nothing else
        return self.F.col(internal_name(LEFT if slot.side == "left" else RIGHT, slot.index))

    def column_of(self, side: Side, index: int, dtype: DType | None = None) -> Column:
        """Return a column of a side, cast when it is compared as another type."""
        own = self.join.schema_of(side).fields[index].dtype
        column = self.column(Slot(side, index))
        return column if dtype is None or dtype == own else column.cast(to_spark(dtype))

    def left_column(self, index: int, dtype: DType | None = None) -> Column:
        """Return a left column, cast when it is compared as another type."""
        return self.column_of("left", index, dtype)

    def right_column(self, index: int, dtype: DType | None = None) -> Column:
        """Return a right column, cast when it is compared as another type."""
        return self.column_of("right", index, dtype)

    def keys(self, side: Side) -> list[Column]:
        """Return the equal keys of a side in the types in which they are compared."""
        return [self.column_of(side, key.index(side), key.dtype) for key in self.join.keys]

    def frame(self, side: Side) -> DataFrame:
        """Return the frame of a side."""
        return self.left if side == "left" else self.right

    def with_frame(self, side: Side, frame: DataFrame) -> Sides:
        """Return the sides with another frame on one of them."""
        return replace(self, left=frame) if side == "left" else replace(self, right=frame)

    def join_frames(self, met: Column, how: str) -> DataFrame:
        """Join the frames on keys, predicates and one more condition; `how` is the name in Weft."""
        condition = self.condition()
        return self.left.join(self.right, met if condition is None else condition & met, SPARK_HOW[how])

    def spread(self, keys: Sequence[Column]) -> Column:
        """Return a hash of the keys; the slices of one key get consecutive numbers.

        Nested and collated keys do not count: equal values of theirs may have different bytes.
        """
        plain = [
            column
            for key, column in zip(self.join.keys, keys, strict=True)
            if not key.dtype.is_nested and not (isinstance(key.dtype, Scalar) and key.dtype.collation)
        ]
        if not self.sliced:
            return self.F.xxhash64(*plain) if plain else self.F.lit(0)
        before = self.F.xxhash64(*plain[:-1]) if plain[:-1] else self.F.lit(0)
        # Halved, so that the sum does not overflow.
        return self.F.shiftright(before, 1) + plain[-1]

    def hash_left_row(self) -> Column:
        """Return a hash of a left row that cannot match: its keys are mostly NULL, and would be one group."""
        # Maps and variants have no hash.
        hashable = [i for i, f in enumerate(self.join.left.fields) if f.dtype.is_orderable] or [0]
        return self.F.xxhash64(*(self.left_column(i) for i in hashable))

    def condition(self) -> Column | None:
        """Return keys and predicates as one condition, None for a cross join."""
        return self.condition_on(zip(self.keys("left"), self.keys("right"), strict=True))

    def condition_on(self, keys: Iterable[tuple[Column, Column]]) -> Column | None:
        """Return the condition that each pair of keys is equal and every predicate is true."""
        whole: Column | None = None
        for left, right in keys:
            equal = self.equal(left, right)
            whole = equal if whole is None else whole & equal
        for typed in self.join.predicates:
            holds = compile_expr(typed, self.column, self.F)
            whole = holds if whole is None else whole & holds
        return whole

    def equal(self, left: Column, right: Column) -> Column:
        """Return whether two key columns are equal; two NULLs are if the join says ``nulls_equal``."""
        return left.eqNullSafe(right) if self.join.nulls_equal else left == right

    def output(self) -> list[Column]:
        """Return the columns of the result under their real names."""
        return [self._output_column(c).alias(c.name, **self._metadata(c)) for c in self.join.output]

    def _metadata(self, column: OutputColumn) -> dict[str, Any]:
        """Return the comment and other metadata that a computed column would lose."""
        if column.source != "coalesced" or column.left is None:
            return {}
        metadata = self.left.schema.fields[column.left].metadata
        return {"metadata": metadata} if metadata else {}

    def _output_column(self, column: OutputColumn) -> Column:
        if column.source == "indicator":
            return self.indicator()
        if column.source == "coalesced":
            assert column.left is not None and column.right is not None  # noqa: S101, PT018  # by construction
            left = self.left_column(column.left, column.dtype)
            return self.F.coalesce(left, self.right_column(column.right, column.dtype))
        if column.left is not None:
            return self.left_column(column.left)
        assert column.right is not None  # noqa: S101  # by construction
        return self.right_column(column.right)

    def indicator(self) -> Column:
        """Return ``both``, ``left_only`` or ``right_only`` for a joined row; needs the two markers."""
        left, right = self.F.col(LEFT_HERE), self.F.col(RIGHT_HERE)
        return self.F.when(left.isNull(), "right_only").when(right.isNull(), "left_only").otherwise("both")


def count_partitions(df: DataFrame) -> int:
    """Return the number of shuffle partitions of the session."""
    return int(df.sparkSession.conf.get("spark.sql.shuffle.partitions", "200") or 200)


def rank(F: Functions, columns: Iterable[Column]) -> Column:
    """Return columns as one struct, which compares as the first of them that differs."""
    return F.struct(*(column.alias(f"p{n}") for n, column in enumerate(columns)))


_MASK = 0xFFFFFFFF
_EVEN_UP_TO = 256  # with more partitions, a few empty ones matter less than an array of that many numbers in the plan


def balanced_group(functions: ModuleType, hashed: Column, partitions: int) -> Column:
    """Return a group number for each row; Spark's shuffle sends each group to a partition of its own.

    Spark hashes the group number again to find its partition.  Consecutive numbers would leave some
    partitions empty and give others two groups, so numbers that hash to different partitions are used.
    """
    F = cast("Functions", functions)
    # pmod, because a hash may be negative.
    return balanced_number(functions, F.pmod(hashed, F.lit(partitions)).cast("int"), partitions)


def balanced_number(functions: ModuleType, slot: Column, partitions: int) -> Column:
    """Return for each partition, numbered from 0, a number that Spark's shuffle sends there."""
    F = cast("Functions", functions)
    if partitions > _EVEN_UP_TO:
        return slot
    return F.element_at(F.array(*map(F.lit, numbers_by_partition(partitions))), slot + F.lit(1))


@cache
def numbers_by_partition(partitions: int) -> tuple[int, ...]:
    """Return for each partition one integer that Spark's hash partitioning sends to it.

    >>> [spark_hash(n) % 4 for n in numbers_by_partition(4)]
    [0, 1, 2, 3]
    """
    numbers: dict[int, int] = {}
    for number in itertools.count():
        numbers.setdefault(spark_hash(number) % partitions, number)
        if len(numbers) == partitions:
            break
    return tuple(numbers[p] for p in range(partitions))


def spark_hash(number: int) -> int:
    """Return Spark's Murmur3 hash of an integer, signed, with its seed 42."""
    k = (number & _MASK) * 0xCC9E2D51 & _MASK
    k = (k << 15 | k >> 17) & _MASK
    k = k * 0x1B873593 & _MASK
    h = 42 ^ k
    h = (h << 13 | h >> 19) & _MASK
    h = (h * 5 + 0xE6546B64) & _MASK
    h ^= 4
    h ^= h >> 16
    h = h * 0x85EBCA6B & _MASK
    h ^= h >> 13
    h = h * 0xC2B2AE35 & _MASK
    h ^= h >> 16
    return h - (1 << 32) if h & 0x80000000 else h
