"""Names that the store gives out: ids of runs in the order of time."""

from __future__ import annotations

import uuid

_SHORT = 13


def run_id(now_ms: int, random: bytes) -> str:
    """Return a UUID of version 7: milliseconds since 1970, then chance; texts sort by time.

    >>> run_id(1_763_200_000_000, bytes(10))
    '019a86e8-e000-7000-8000-000000000000'
    """
    value = (now_ms & (1 << 48) - 1) << 80 | int.from_bytes(random[:10], "big")
    value = value & ~(0xF << 76) | 0x7 << 76  # the version
    value = value & ~(0x3 << 62) | 0x2 << 62  # the variant
    return str(uuid.UUID(int=value))


def short_id(run: str) -> str:
    """Return the start of a run's id that people read and type: its whole time, to the millisecond.

    >>> short_id("019a86f6-3800-7000-8000-000000000000")
    '019a86f6-3800'
    """
    return run[:_SHORT]
