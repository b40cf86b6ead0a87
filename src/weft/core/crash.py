"""Points at which a test may end the process as a power cut would; without WEFT_CRASH_AT they do nothing.

CRASH is the same in the input of a test: the row at which a run dies and is started again.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from enum import Enum
from typing import Final, Literal

CrashPoint = Literal[
    "snapshot_written",
    "running",
    "operation",
    "staged",
    "before_publish",
    "marked",
    "exchanged",
    "exchanged_back",
    "renamed_away",
    "renamed_in",
    "tables_prepared",
    "tables_committed",
    "before_commit",
    "after_commit",
    "before_cleanup",
    "stream_heartbeat",
    "stream_kernel",
    "stream_staged",
    "stream_counted",
    "stream_manifest",
    "stream_renaming",
    "stream_renamed",
    "stream_cleaned",
    "stream_flush",
    "stream_sealed",
]

STREAM_POINTS: tuple[CrashPoint, ...] = (
    "stream_heartbeat",
    "stream_kernel",
    "stream_staged",
    "stream_counted",
    "stream_manifest",
    "stream_renaming",
    "stream_renamed",
    "stream_cleaned",
    "stream_flush",
    "stream_sealed",
)
"""The points of a batch of a stream, in the order in which a batch reaches them."""

VARIABLE = "WEFT_CRASH_AT"
"""``<point>`` or ``<point>:<n>``: the process ends when it reaches the point for the n-th time."""

_passed: Counter[str] = Counter()


def crash_point(name: CrashPoint) -> None:
    """End this process without any clean-up when the environment asks for it here."""
    asked, _, count = os.environ.get(VARIABLE, "").partition(":")
    if asked != name:
        return
    _passed[name] += 1
    if _passed[name] == int(count or 1):
        os.kill(os.getpid(), signal.SIGKILL)


class Crash(Enum):
    """The type of `CRASH`, which is its one value."""

    CRASH = "crash"

    def __repr__(self) -> str:
        return "CRASH"


CRASH: Final = Crash.CRASH
"""A crash is a value in the input: ``[rows, rows, CRASH, rows]`` must give what the input without it gives.

>>> [1, CRASH, 2]
[1, CRASH, 2]
"""
