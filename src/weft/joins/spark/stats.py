"""Counts about rows: matches while a job runs, rows of each key, and whether rows are sorted."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

from weft.core.names import fold, quote
from weft.errors import ArgumentError, ColumnCollisionError
from weft.expr.spark.frames import functions_of, observation_of, window_of
from weft.joins.resolve.resolved import ResolvedJoin
from weft.joins.spark.sides import Sides

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


_PATIENCE = 3.0


class MatchStats:
    """Row counts of one join, filled by the first action on its result.

    Counts are taken by a Spark Observation, so no extra job runs.  `get` raises when no
    action has run, and otherwise returns ``rows`` and, unless the join is semi or anti,
    ``matched``, ``left_only`` and ``right_only``, all counted in rows of the result.

    ::

        stats = weft.MatchStats()
        enriched = orders.natural_left(customers, stats=stats)
        enriched.df.write.parquet(path)
        stats.get()  # {'rows': 100, 'matched': 97, 'left_only': 3, 'right_only': 0}
    """

    def __init__(self) -> None:
        self._observation: Any = None
        self._waiter: threading.Thread | None = None
        self._counts: dict[str, Any] = {}

    def attach(self, *frames: DataFrame) -> Any:
        """Return a fresh Observation for a join of `frames`; a MatchStats serves one join."""
        if any(df.isStreaming for df in frames):
            raise ArgumentError(
                "a MatchStats cannot count a stream: each micro-batch has counts of its own",
                help="observe the joined frame: relation.df.observe(name, ...) with a StreamingQueryListener",
            )
        if self._observation is not None:
            raise ArgumentError("this MatchStats already counts another join", help="make a new one for each join")
        self._observation = observation_of(frames[0], f"weft_{uuid.uuid4().hex}")
        return self._observation

    def get(self, timeout: float = _PATIENCE) -> dict[str, int]:
        """Return the counts of the first action on the joined relation.

        Spark tells them a moment after the action has ended; `timeout` is how many seconds
        to wait for that before raising.
        """
        if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not timeout >= 0:
            raise ArgumentError(
                f"timeout must be a number of seconds, not {timeout!r}", help="for example get(timeout=5)"
            )
        if self._observation is None:
            raise ArgumentError("this MatchStats counts no join yet", help="pass it as stats= to a join method")
        counts = self._told(timeout)
        if not counts:
            raise ArgumentError("no action has run on the joined relation yet", help="run one, then ask again")
        return {name: int(value) for name, value in counts.items()}

    def _told(self, timeout: float) -> dict[str, Any]:
        """Return the counts, or nothing when they do not come in time.

        Asking a classic Observation before an action has run never returns, so a thread asks.
        """
        if self._waiter is None:
            self._waiter = threading.Thread(target=self._ask, daemon=True)
            self._waiter.start()
        self._waiter.join(timeout)
        found, asked = self._counts, not self._waiter.is_alive()
        if asked and not found:  # a Connect session answers at once, with nothing: ask anew next time
            self._waiter = None
        return found

    def _ask(self) -> None:
        self._counts = dict(self._observation.get)


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


_PARTITION_SHIFT = 33  # monotonically_increasing_id keeps the partition in its upper bits


def is_sorted(df: DataFrame, names: Sequence[str]) -> bool:
    """Run a job that says whether the rows ascend by the columns, NULLs first.

    A row's number counts partitions first and rows second.  Each partition is checked for itself, then
    the last row of each against the first row of the next one that has rows::

        partition 0:  1 2 3      last 3
        partition 1:  (empty)
        partition 2:  2 5        first 2 < 3, so the rows are not sorted
    """
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
            F.bool_or("fell").alias("fell"), F.min_by("key", "row").alias("first"), F.max_by("key", "row").alias("last")
        )
    )
    # One row per partition is left, so a window without partitions is small.
    last = F.lag("last").over(window.partitionBy(F.lit(0)).orderBy("part"))
    borders = parts.select((F.col("fell") | F.coalesce(last > F.col("first"), F.lit(False))).alias("fell"))
    return not borders.agg(F.coalesce(F.bool_or("fell"), F.lit(False))).collect()[0][0]
