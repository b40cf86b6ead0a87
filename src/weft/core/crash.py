"""Points at which a test can kill the process; without WEFT_CRASH_AT they do nothing.

CRASH is the counterpart in the input of a test: the run is killed there and started again.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from enum import Enum
from typing import Final, Literal, get_args

StreamPoint = Literal[
    "stream_heartbeat", "stream_kernel", "stream_staged", "stream_counted", "stream_manifest", "stream_renaming",
    "stream_renamed", "stream_cleaned", "stream_flush", "stream_sealed",
]  # fmt: skip
RunPoint = Literal[
    "snapshot_written", "running", "operation", "staged", "before_publish", "marked", "exchanged", "exchanged_back",
    "renamed_away", "renamed_in", "tables_prepared", "tables_committed", "before_commit", "after_commit",
    "before_cleanup",
]  # fmt: skip
CrashPoint = RunPoint | StreamPoint

STREAM_POINTS: tuple[StreamPoint, ...] = get_args(StreamPoint)
"""The points of a batch of a stream, in the order in which a batch reaches them."""

VARIABLE = "WEFT_CRASH_AT"
"""``<point>`` or ``<point>:<n>``: the process ends when it reaches the point for the n-th time."""

_passed: Counter[str] = Counter()


def crash_point(name: CrashPoint) -> None:
    """Kill this process, without any clean-up, when WEFT_CRASH_AT names this point."""
    point, _, count = os.environ.get(VARIABLE, "").partition(":")
    if point != name:
        return
    _passed[name] += 1
    if _passed[name] == int(count or 1):
        # Not an exception, which would run `finally` blocks: a killed process cleans up nothing.
        os.kill(os.getpid(), signal.SIGKILL)


class Crash(Enum):
    """The type of `CRASH`, its only value."""

    CRASH = "crash"

    def __repr__(self) -> str:
        return "CRASH"


CRASH: Final = Crash.CRASH
"""A crash is a value in the input: ``[rows, rows, CRASH, rows]`` must give the result of the input without it.

>>> [1, CRASH, 2]
[1, CRASH, 2]
"""
