"""How many rows each key has on either side, before a join multiplies them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING

from weft.core.names import fold
from weft.errors import ColumnCollisionError
from weft.joins.resolve.resolved import ResolvedJoin
from weft.joins.spark.sides import Sides

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

COUNTS = ("left_count", "right_count", "pair_count", "shared")


def fan_out(left: DataFrame, right: DataFrame, join: ResolvedJoin, names: Sequence[str]) -> DataFrame:
    """Return one row per key of either side with its counts; NULL keys pair with nothing."""
    named = [join.left.fields[join.left.index(n)].name for n in names]
    taken = [fold(n) for n in (*named, *COUNTS)]
    if len(set(taken)) < len(taken):
        raise ColumnCollisionError(
            "a key column repeats or has the name of a count",
            help=f"rename it; the report has the columns {', '.join(COUNTS)}",
        )
    sides = Sides.of(left, right, join)
    F = sides.F
    keys = [f"k{i}" for i in range(len(join.keys))]
    ours = sides.left.groupBy(
        *(sides.left_column(k.left, k.dtype).alias(n) for k, n in zip(join.keys, keys, strict=True))
    ).agg(F.count(F.lit(1)).alias("ln"))
    theirs = sides.right.groupBy(
        *(sides.right_column(k.right, k.dtype).alias(f"r{n}") for k, n in zip(join.keys, keys, strict=True))
    ).agg(F.count(F.lit(1)).alias("rn"))
    met = reduce(lambda a, b: a & b, (F.col(n).eqNullSafe(F.col(f"r{n}")) for n in keys))
    both = ours.join(theirs, met, "full_outer")
    ln, rn = F.coalesce(F.col("ln"), F.lit(0)), F.coalesce(F.col("rn"), F.lit(0))
    null = reduce(lambda a, b: a | b, (F.coalesce(F.col(n), F.col(f"r{n}")).isNull() for n in keys))
    matches = (ln > 0) & (rn > 0) & (F.lit(join.nulls_equal) | ~null)
    shown = [F.coalesce(F.col(n), F.col(f"r{n}")).alias(name) for n, name in zip(keys, named, strict=True)]
    return both.select(
        *shown,
        ln.alias("left_count"),
        rn.alias("right_count"),
        F.when(matches, ln * rn).otherwise(F.lit(0).cast("long")).alias("pair_count"),
        matches.alias("shared"),
    )
