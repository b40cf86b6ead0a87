"""Points at which a test may end the process as a power cut would; without WEFT_CRASH_AT they do nothing."""

from __future__ import annotations

import os
import signal
from collections import Counter
from typing import Literal

CrashPoint = Literal[
    "snapshot_written",
    "running",
    "operation",
    "staged",
    "before_publish",
    "renamed_away",
    "renamed_in",
    "before_commit",
    "after_commit",
    "before_cleanup",
]

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
