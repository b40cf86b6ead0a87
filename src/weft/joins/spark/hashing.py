"""Groups of rows by a hash, spread evenly over shuffle partitions."""

from __future__ import annotations

from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column

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
    numbers = functions.array(*(functions.lit(n) for n in even_numbers(partitions)))
    group: Column = functions.element_at(numbers, slot + functions.lit(1))
    return group


@cache
def even_numbers(partitions: int) -> tuple[int, ...]:
    """Return one integer for each partition that Spark's hash partitioning sends there.

    >>> [spark_hash(n) % 4 for n in even_numbers(4)]
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
