"""CRASH: the point in an input at which a run dies and is started again."""

from __future__ import annotations

from enum import Enum
from typing import Final


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
