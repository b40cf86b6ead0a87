"""MatchStats: how many rows matched, counted while the job runs."""

from __future__ import annotations

import threading
import uuid
from typing import TYPE_CHECKING, Any

from weft.errors import ArgumentError
from weft.expr.spark.frames import observation_of

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
            raise ArgumentError(
                "this MatchStats already counts another join", help="make a new one for each join"
            )
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
            raise ArgumentError(
                "this MatchStats counts no join yet", help="pass it as stats= to a join method"
            )
        counts = self._told(timeout)
        if not counts:
            raise ArgumentError(
                "no action has run on the joined relation yet", help="run one, then ask again"
            )
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
