"""The two frames of a join under positional names, and the way back to real names."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column, DataFrame

from weft.core.names import LEFT, RIGHT, internal_name
from weft.core.types import Scalar
from weft.expr.spark.columns import compile_expr
from weft.expr.spark.frames import functions_of
from weft.expr.spark.types import to_spark
from weft.joins.resolve.resolved import OutputColumn, ResolvedJoin, Slot

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from weft.core.types import DType

LEFT_HERE = "__weft_left_here"
RIGHT_HERE = "__weft_right_here"


@dataclass(frozen=True, slots=True)
class Sides:
    """Both frames with every column renamed by position.

    Positional names cannot meet each other, so self-joins, dots, backticks and names
    that differ in case need no further care, in classic and Connect sessions alike.
    The last key of `sliced` sides is the number of a time slice.
    """

    join: ResolvedJoin
    left: DataFrame
    right: DataFrame
    F: ModuleType
    sliced: bool = False

    @classmethod
    def of(cls, left: DataFrame, right: DataFrame, join: ResolvedJoin) -> Sides:
        """Rename the columns of both frames."""
        return cls(
            join,
            left.toDF(*(internal_name(LEFT, i) for i in range(len(join.left)))),
            right.toDF(*(internal_name(RIGHT, i) for i in range(len(join.right)))),
            functions_of(left),
        )

    def column(self, slot: Hashable) -> Column:
        """Return the renamed column of a slot."""
        assert isinstance(slot, Slot)  # noqa: S101  # predicates of a join hold nothing else
        found: Column = self.F.col(internal_name(LEFT if slot.side == "left" else RIGHT, slot.index))
        return found

    def left_column(self, index: int, dtype: DType | None = None) -> Column:
        """Return a left column, cast when it is compared as another type."""
        return self._cast(Slot("left", index), dtype)

    def right_column(self, index: int, dtype: DType | None = None) -> Column:
        """Return a right column, cast when it is compared as another type."""
        return self._cast(Slot("right", index), dtype)

    def _cast(self, slot: Slot, dtype: DType | None) -> Column:
        own = (self.join.left if slot.side == "left" else self.join.right).fields[slot.index].dtype
        column = self.column(slot)
        return column if dtype is None or dtype == own else column.cast(to_spark(dtype))

    def spread(self, keys: Sequence[Column]) -> Column:
        """Return a number that is equal where the keys are; slices of one key have numbers in a row.

        Keys whose equal values differ in their bytes are left to the other keys.
        """
        plain = [
            column
            for key, column in zip(self.join.keys, keys, strict=True)
            if not key.dtype.is_nested and not (isinstance(key.dtype, Scalar) and key.dtype.collation)
        ]
        if not self.sliced:
            hashed: Column = self.F.xxhash64(*plain) if plain else self.F.lit(0)
            return hashed
        before = self.F.xxhash64(*plain[:-1]) if plain[:-1] else self.F.lit(0)
        # Halved, so that the sum has room.
        number: Column = self.F.shiftright(before, 1) + plain[-1]
        return number

    def condition(self) -> Column | None:
        """Return keys and predicates as one condition, None for a cross join."""
        return self.condition_on(
            (self.left_column(key.left, key.dtype), self.right_column(key.right, key.dtype))
            for key in self.join.keys
        )

    def condition_on(self, keys: Iterable[tuple[Column, Column]]) -> Column | None:
        """Return the predicates and that each two keys are equal, as the join says NULLs are."""
        whole: Column | None = None
        for left, right in keys:
            equal = left.eqNullSafe(right) if self.join.nulls_equal else left == right
            whole = equal if whole is None else whole & equal
        for typed in self.join.predicates:
            holds = compile_expr(typed, self.column, self.F)
            whole = holds if whole is None else whole & holds
        return whole

    def output(self) -> list[Column]:
        """Return the columns of the result under their real names."""
        return [self._output_column(c).alias(c.name, **self._metadata(c)) for c in self.join.output]

    def _metadata(self, column: OutputColumn) -> dict[str, Any]:
        """Return the comment and other metadata that a computed column would lose."""
        if column.source != "coalesced" or column.left is None:
            return {}
        said = self.left.schema.fields[column.left].metadata
        return {"metadata": said} if said else {}

    def _output_column(self, column: OutputColumn) -> Column:
        if column.source == "indicator":
            return self.indicator()
        if column.source == "coalesced":
            assert column.left is not None and column.right is not None  # noqa: S101, PT018  # by construction
            both = (
                self.left_column(column.left, column.dtype),
                self.right_column(column.right, column.dtype),
            )
            merged: Column = self.F.coalesce(*both)
            return merged
        if column.left is not None:
            return self.left_column(column.left)
        assert column.right is not None  # noqa: S101  # by construction
        return self.right_column(column.right)

    def indicator(self) -> Column:
        """Return which sides a joined row has; needs the two markers."""
        left, right = self.F.col(LEFT_HERE), self.F.col(RIGHT_HERE)
        told: Column = (
            self.F.when(left.isNull(), "right_only").when(right.isNull(), "left_only").otherwise("both")
        )
        return told


_MASK = 0xFFFFFFFF
_EVEN_UP_TO = 256


def balanced_group(functions: ModuleType, hashed: Column, partitions: int) -> Column:
    """Return a group number of which Spark's shuffle puts exactly one into each partition.

    Spark hashes the group number again to find its partition, and a few numbers hashed into as
    many partitions leave some empty and others double.  So the numbers are chosen beforehand.
    """
    slot = functions.pmod(hashed, functions.lit(partitions)).cast("int")
    if partitions > _EVEN_UP_TO:
        return slot  # type: ignore[no-any-return]  # functions is whichever module fits the frame
    numbers = functions.array(*(functions.lit(n) for n in numbers_by_partition(partitions)))
    group: Column = functions.element_at(numbers, slot + functions.lit(1))
    return group


@cache
def numbers_by_partition(partitions: int) -> tuple[int, ...]:
    """Return one integer for each partition that Spark's hash partitioning sends there.

    >>> [spark_hash(n) % 4 for n in numbers_by_partition(4)]
    [0, 1, 2, 3]
    """
    found: dict[int, int] = {}
    number = 0
    while len(found) < partitions:
        found.setdefault(spark_hash(number) % partitions, number)
        number += 1
    return tuple(found[p] for p in range(partitions))


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
