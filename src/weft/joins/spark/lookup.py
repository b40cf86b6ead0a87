"""Sorted arrays of values by key, broadcast to another frame, whose rows find their place in them.

Before::

    count(values <= at)

After::

    c25 = if(values[2^25 - 1] <= at, 2^25, 0)
    c24 = if(values[c25 | 2^24 - 1] <= at, c25 | 2^24, c25)
    ...
    c0  = if(values[c1] <= at, c1 | 1, c1)

Each halving is a projection of its own, because each reads the one before it twice.  Spark does
not collapse those, and compiles them all into the loop of the join that brings the array, so that
the array is looked at where it lies and not copied.  Past the end of the array ``get`` is NULL,
which is not before anything, so arrays of all sizes take the same steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_HALVINGS = 26  # 2^26 values, each with a row of its own, are more than a row of Spark holds


def key_names(count: int) -> list[str]:
    """Return the names that the keys of a table to look up have."""
    return [f"__weft_key{n}" for n in range(count)]


def looked_up(
    F: ModuleType,
    frame: DataFrame,
    keys: Sequence[Column],
    table: DataFrame,
    *,
    nulls_equal: bool,
    keep: bool = False,
) -> DataFrame:
    """Return the rows of a frame with the table's row of their keys; the table is broadcast.

    Rows whose keys the table does not have are dropped unless they are to `keep`.  Without a
    key the table has one row.
    """
    if not keys:
        return frame.crossJoin(F.broadcast(table))
    names = key_names(len(keys))
    equal = [
        key.eqNullSafe(F.col(name)) if nulls_equal else key == F.col(name)
        for key, name in zip(keys, names, strict=True)
    ]
    met = reduce(lambda a, b: a & b, equal)
    return frame.join(F.broadcast(table), met, "left_outer" if keep else "inner").drop(*names)


def counted(
    F: ModuleType, frame: DataFrame, name: str, *, values: str, at: str, inclusive: bool
) -> DataFrame:
    """Return the frame with the number of `values` before `at`, or not after it when `inclusive`.

    `values` names a column of ascending arrays without NULLs.  The number is 0 where one of
    both is NULL.
    """
    count: Column = F.lit(0)
    for bit in reversed(range(_HALVINGS)):
        probed = F.get(F.col(values), count.bitwiseOR(F.lit((1 << bit) - 1)))
        before = probed <= F.col(at) if inclusive else probed < F.col(at)
        # The function `if` makes shorter code than CASE, and the JVM does not compile long methods.
        further = F.call_function("if", before, count.bitwiseOR(F.lit(1 << bit)), count)
        frame = frame.withColumn(name, further)
        count = F.col(name)
    # Spark moves filters below projections and writes out what they name there: 2^26 copies of the first
    # step.  Below one that is not deterministic it moves nothing.
    return frame.withColumn(name, F.call_function("if", F.spark_partition_id() >= F.lit(0), count, F.lit(0)))
