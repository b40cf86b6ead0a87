"""Counts about rows: matches while a job runs, rows of each key, and whether rows are sorted."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Sequence
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame

from weft.core.names import fold, quote
from weft.errors import ArgumentError, ColumnCollisionError
from weft.expr.spark.frames import functions_of, observation_of, window_of
from weft.joins.resolve.resolved import ResolvedJoin
from weft.joins.spark.sides import Sides

_TIMEOUT = 3.0


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

    def get(self, timeout: float = _TIMEOUT) -> dict[str, int]:
        """Return the counts of the first action on the joined relation.

        Spark reports them shortly after the action has ended.

        Parameters
        ----------
        timeout
            The seconds to wait for the counts before an error is raised; 3 by default.
        """
        if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not timeout >= 0:
            raise ArgumentError(
                f"timeout must be a number of seconds, not {timeout!r}", help="write for example get(timeout=5)"
            )
        if self._observation is None:
            raise ArgumentError("this MatchStats counts no join yet", help="pass it as stats= to a join method")
        counts = self._wait(timeout)
        if not counts:
            raise ArgumentError("no action has run on the joined relation yet", help="run one, then call get() again")
        return {name: int(value) for name, value in counts.items()}

    def _wait(self, timeout: float) -> dict[str, Any]:
        """Return the counts, or an empty dictionary when they do not come in time."""
        # In a thread, because `get` of a classic Observation blocks until an action has run.
        if self._waiter is None:
            self._waiter = threading.Thread(target=self._read, daemon=True)
            self._waiter.start()
        self._waiter.join(timeout)
        counts, done = self._counts, not self._waiter.is_alive()
        if done and not counts:  # a Connect session returns nothing at once: the next call reads again
            self._waiter = None
        return counts

    def _read(self) -> None:
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
    ours = sides.left.groupBy(*(key.alias(n) for key, n in zip(sides.keys("left"), keys, strict=True)))
    theirs = sides.right.groupBy(*(key.alias(f"r{n}") for key, n in zip(sides.keys("right"), keys, strict=True)))
    count = F.count(F.lit(1))
    # Null-safe, so that NULL is one row of the report, whether or not NULL keys match.
    met = reduce(lambda a, b: a & b, (F.col(n).eqNullSafe(F.col(f"r{n}")) for n in keys))
    both = ours.agg(count.alias("ln")).join(theirs.agg(count.alias("rn")), met, "full_outer")
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
    """Run a job and return whether the rows ascend by the columns, NULLs first.

    A row's number counts partitions first and rows second.  Each partition is checked on its own, then
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
