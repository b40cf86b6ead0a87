"""Whether rows stand in order: one pass that looks at neighbours, across partitions too.

A row's number counts partitions first and rows second.  Each partition is checked for itself, then
the last row of each against the first row of the next one that has rows::

    partition 0:  1 2 3      last 3
    partition 1:  (empty)
    partition 2:  2 5        first 2 < 3, so the rows are not sorted
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from weft.core.names import quote
from weft.expr.spark.frames import functions_of, window_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PARTITION_SHIFT = 33  # monotonically_increasing_id keeps the partition in its upper bits


def is_sorted(df: DataFrame, names: Sequence[str]) -> bool:
    """Run a job that says whether the rows ascend by the columns, NULLs first."""
    F, window = functions_of(df), window_of(df)
    # A struct compares field by field with NULL lowest and NaN highest, as an ascending sort does.
    key = F.struct(*(F.col(quote(n)).alias(f"k{i}") for i, n in enumerate(names)))
    rows = df.select(key.alias("key"), F.monotonically_increasing_id().alias("row"))
    rows = rows.withColumn("part", F.shiftright("row", _PARTITION_SHIFT))
    before = F.lag("key").over(window.partitionBy("part").orderBy("row"))
    parts = (
        rows.withColumn("fell", F.coalesce(before > F.col("key"), F.lit(False)))
        .groupBy("part")
        .agg(
            F.bool_or("fell").alias("fell"),
            F.min_by("key", "row").alias("first"),
            F.max_by("key", "row").alias("last"),
        )
    )
    # One row per partition is left, so a window without partitions is small.
    last = F.lag("last").over(window.partitionBy(F.lit(0)).orderBy("part"))
    borders = parts.select((F.col("fell") | F.coalesce(last > F.col("first"), F.lit(False))).alias("fell"))
    return not borders.agg(F.coalesce(F.bool_or("fell"), F.lit(False))).collect()[0][0]
