"""MatchStats: how many rows matched, counted while the job runs."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from weft.errors import ArgumentError
from weft.spark.frames import observation_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class MatchStats:
    """Row counts of one join, filled by the first action on its result.

    Counts are taken by a Spark Observation, so no extra job runs.  `get` waits until an
    action has run (on Connect it raises instead) and returns ``rows`` and, unless the join is
    semi or anti, ``matched``, ``left_only`` and ``right_only``, all counted in rows of the result.

    ::

        stats = weft.MatchStats()
        enriched = orders.natural_left(customers, stats=stats)
        enriched.df.write.parquet(path)
        stats.get()  # {'rows': 100, 'matched': 97, 'left_only': 3, 'right_only': 0}
    """

    def __init__(self) -> None:
        self._observation: Any = None

    def attach(self, *frames: DataFrame) -> Any:
        """Return a fresh Observation for a join of `frames`; a MatchStats serves one join."""
        if any(df.isStreaming for df in frames):
            raise ArgumentError(
                "a MatchStats cannot count a stream: each micro-batch has counts of its own",
                help="observe the joined frame: relation.df.observe(name, ...) with a StreamingQueryListener",
            )
        if self._observation is not None:
            raise ArgumentError(
                "this MatchStats already counts another join", help="make a new one for each join"
            )
        self._observation = observation_of(frames[0], f"weft_{uuid.uuid4().hex}")
        return self._observation

    def get(self) -> dict[str, int]:
        """Return the counts; waits for the first action on the joined relation."""
        if self._observation is None:
            raise ArgumentError(
                "this MatchStats counts no join yet", help="pass it as stats= to a join method"
            )
        counts = self._observation.get
        if not counts:  # a Connect session does not wait
            raise ArgumentError(
                "no action has run on the joined relation yet", help="run one, then ask again"
            )
        return {name: int(value) for name, value in counts.items()}
