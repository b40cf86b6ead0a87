"""Reach: which times of the other side a row can meet, and when no more can come.

Every kind of join but the session becomes one closed range of times a row::

    interval   left t: [t + lower, t + upper]          right t: [t - upper, t - lower]
    windows    [start of the first window with t, end of the last one)
    table      every time

and "no more can come" becomes one threshold: rows below it are over.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from weft.streams.kernel.spec import FOREVER, NEVER, Clock, JoinTask, Reach, Side

Longs = NDArray[np.int64]


def moved(times: Longs, by: int) -> Longs:
    """Return times moved by a distance; past the ends of time they stay at the end.

    >>> moved(np.array([1, FOREVER]), 5).tolist() == [6, FOREVER]
    True
    """
    if by == 0:
        return times
    if by > 0:
        return np.asarray(np.minimum(times, FOREVER - by) + by)
    return np.asarray(np.maximum(times, NEVER - by) + by)


def first_window(reach: Reach, times: Longs) -> Longs:
    """Return the start of the first window that holds each time.

    >>> first_window(Reach(kind="sliding", size=60, slide=30), np.array([45, -1, 60])).tolist()
    [0, -60, 30]
    """
    slide = reach.slide or reach.size
    return np.asarray((moved(times, -reach.size) // slide + 1) * slide)


def last_window(reach: Reach, times: Longs) -> Longs:
    """Return the start of the last window that holds each time.

    >>> last_window(Reach(kind="tumbling", size=60), np.array([59, 60, -1])).tolist()
    [0, 60, -60]
    """
    slide = reach.slide or reach.size
    return np.asarray(times // slide * slide)


def reached(reach: Reach, times: Longs, side: Side) -> tuple[Longs, Longs]:
    """Return the least and the greatest time of the other side that rows of `side` meet.

    >>> [a.tolist() for a in reached(Reach(kind="interval", lower=-1, upper=2), np.array([5]), "right")]
    [[3], [6]]
    """
    if reach.kind == "interval":
        low, high = (reach.lower, reach.upper) if side == "left" else (-reach.upper, -reach.lower)
        return moved(times, low), moved(times, high)
    if reach.kind == "table":
        return np.full(len(times), NEVER), np.full(len(times), FOREVER)
    return first_window(reach, times), moved(last_window(reach, times), reach.size - 1)


def over_below(task: JoinTask, side: Side, clock: Clock, extra: int = 0) -> int:
    """Return the time below which rows of `side` can meet nothing more, `extra` after that has come.

    ``FOREVER`` means that every row is over.  Sessions end as a whole and are not asked here.
    """
    reach = task.reach
    if reach.kind == "table":  # rows of the stream only pass by, those of the table stay to the end
        return FOREVER if side == "left" or clock.least == FOREVER else NEVER
    if reach.kind == "interval":
        if side == "left":
            return _shifted(clock.right, -reach.upper - extra)
        mine = _shifted(clock.left, reach.lower - extra)
        # A left row that matches this one may be waiting to close.
        return min(mine, _shifted(clock.right, reach.lower - reach.upper - extra)) if task.final else mine
    other = clock.right if side == "left" else clock.left
    mark = clock.least if task.final else other
    if mark in (NEVER, FOREVER):
        return mark
    slide = reach.slide or reach.size
    return max(NEVER, ((mark - reach.size - extra) // slide + 1) * slide)


def _shifted(clock: int, by: int) -> int:
    if clock in (NEVER, FOREVER):
        return clock
    return max(NEVER, min(FOREVER - 1, clock + by))
