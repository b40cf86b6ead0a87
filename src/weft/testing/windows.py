"""Windows of a time: tumbling and sliding ones on the epoch grid, sessions made by events."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from weft.joins.resolve.resolved import SameWindow
from weft.testing.values import Position, is_nan


class Window(NamedTuple):
    """A stretch of an axis, from `start` to just before `end`."""

    start: Position
    end: Position


def windows_of(
    match: SameWindow, time: Position | None, events: Sequence[Position] = ()
) -> tuple[Window, ...]:
    """Return the windows that hold `time`, first one first.

    `events` are the times of both sides under one key; sessions alone need them.

    >>> minutes = SameWindow(left=0, right=0, kind="sliding", size=60, slide=30, gap=None, per_window=False)
    >>> windows_of(minutes, 95)
    (Window(start=60, end=120), Window(start=90, end=150))
    """
    if time is None or is_nan(time):
        return ()
    if match.kind == "session":
        return (_session(time, events, match.gap or 0),)
    size = match.size or 0
    slide = size if match.kind == "tumbling" else match.slide or size
    found = []
    number = math.floor(time / slide) if isinstance(time, float) else time // slide
    while number * slide + size > time:
        found.append(Window(number * slide, number * slide + size))
        number -= 1
    return tuple(reversed(found))


def _session(time: Position, events: Sequence[Position], gap: int) -> Window:
    """Return the burst of events around `time`: each at most `gap` after the one before it."""
    first = last = time
    for event in sorted(events):
        if event > last and event - last <= gap:
            last = event
    for event in sorted(events, reverse=True):
        if event < first and first - event <= gap:
            first = event
    return Window(first, last + gap)


def shared_windows(
    match: SameWindow, left: Position | None, right: Position | None, events: Sequence[Position] = ()
) -> tuple[Window, ...]:
    """Return the windows that hold both times, first one first."""
    others = windows_of(match, right, events)
    return tuple(window for window in windows_of(match, left, events) if window in others)
