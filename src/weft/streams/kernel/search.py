"""Search: where the rows of one key and a range of times lie in sorted rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Longs = NDArray[np.int64]


def sorted_order(hashes: Longs, times: Longs) -> Longs:
    """Return the order of rows by (hash, time).

    >>> sorted_order(np.array([2, 1, 2]), np.array([5, 9, 3])).tolist()
    [1, 2, 0]
    """
    order = np.argsort(hashes)
    ordered = hashes[order]
    if len(ordered) < 2:
        return order
    equal = ordered[1:] == ordered[:-1]
    if not equal.any():
        return order
    # Only runs of one hash need the second key; most keys come once a batch.
    in_run = np.zeros(len(ordered), dtype=np.bool_)
    in_run[1:] = equal
    in_run[:-1] |= equal
    places = np.flatnonzero(in_run)
    some = order[places]
    order[places] = some[np.lexsort((times[some], hashes[some]))]
    return order


def ranges(hashes: Longs, times: Longs, wanted: Longs, low: Longs, high: Longs) -> tuple[Longs, Longs, Longs]:
    """Return (probe, start, stop): the probes with candidates, and where these lie in the sorted rows.

    Rows are sorted by (hash, time).  Probes that find nothing are left out.

    >>> found = ranges(
    ...     np.array([7, 7, 9]), np.array([1, 5, 5]), np.array([9, 7]), np.array([0, 2]), np.array([9, 9])
    ... )
    >>> [part.tolist() for part in found]
    [[0, 1], [2, 1], [3, 2]]
    """
    if not len(hashes) or not len(wanted):
        none = np.empty(0, dtype=np.int64)
        return none, none, none
    first = np.searchsorted(hashes, wanted)
    probe = np.flatnonzero(hashes[np.minimum(first, len(hashes) - 1)] == wanted)
    if not len(probe):
        return probe, probe, probe
    first = first[probe]
    last = np.searchsorted(hashes, wanted[probe], side="right")
    start = _bisected(times, first, last, low[probe], after=False)
    stop = _bisected(times, start, last, high[probe], after=True)
    some = stop > start
    return (probe, start, stop) if some.all() else (probe[some], start[some], stop[some])


def _bisected(times: Longs, first: Longs, last: Longs, wanted: Longs, *, after: bool) -> Longs:
    """Return in each [first, last) the place before the first time that is not below `wanted`.

    With `after`, the first that is above it.  One pass halves all the ranges at once.
    """
    low, high = first.copy(), last.copy()
    while True:
        open_ = low < high
        if not open_.any():
            return low
        middle = (low + high) >> 1
        seen = times[np.minimum(middle, len(times) - 1)]
        goes_up = open_ & ((seen <= wanted) if after else (seen < wanted))
        low = np.where(goes_up, middle + 1, low)
        high = np.where(open_ & ~goes_up, middle, high)
