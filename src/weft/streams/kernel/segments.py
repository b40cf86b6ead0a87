"""Segments: immutable rows of one side, sorted by (hash, time), and the search in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from weft.streams.kernel.spec import EXPIRED, GONE

Longs = NDArray[np.int64]


def sort_order(hashes: Longs, times: Longs) -> Longs:
    """Return the order of rows by (hash, time).

    >>> sort_order(np.array([2, 1, 2]), np.array([5, 9, 3])).tolist()
    [1, 2, 0]
    """
    order = np.argsort(hashes)
    ordered = hashes[order]
    if len(ordered) < 2:
        return order
    equal = ordered[1:] == ordered[:-1]
    if not equal.any():
        return order
    # Only runs of equal hashes need the second key; most keys occur once a batch.
    in_run = np.zeros(len(ordered), dtype=np.bool_)
    in_run[1:] = equal
    in_run[:-1] |= equal
    places = np.flatnonzero(in_run)
    some = order[places]
    order[places] = some[np.lexsort((times[some], hashes[some]))]
    return order


def find_ranges(hashes: Longs, times: Longs, probes: Longs, low: Longs, high: Longs) -> tuple[Longs, Longs, Longs]:
    """Return (probe, start, stop): the probes that have candidates, and their ranges in the sorted rows.

    Rows are sorted by (hash, time).  Probes without candidates are left out.

    >>> parts = find_ranges(
    ...     np.array([7, 7, 9]), np.array([1, 5, 5]), np.array([9, 7]), np.array([0, 2]), np.array([9, 9])
    ... )
    >>> [part.tolist() for part in parts]
    [[0, 1], [2, 1], [3, 2]]
    """
    if not len(hashes) or not len(probes):
        none = np.empty(0, dtype=np.int64)
        return none, none, none
    # First the rows of each hash, then, for all probes at once, the part of them whose times are in the range.
    first = np.searchsorted(hashes, probes)
    probe = np.flatnonzero(hashes[np.minimum(first, len(hashes) - 1)] == probes)
    if not len(probe):
        return probe, probe, probe
    first = first[probe]
    last = np.searchsorted(hashes, probes[probe], side="right")
    start = _bisect(times, first, last, low[probe], after=False)
    stop = _bisect(times, start, last, high[probe], after=True)
    some = stop > start
    return (probe, start, stop) if some.all() else (probe[some], start[some], stop[some])


def _bisect(times: Longs, first: Longs, last: Longs, targets: Longs, *, after: bool) -> Longs:
    """Return for each range [first, last) the position of the first time >= its target.

    With `after`, the first time > its target.  Each pass halves all ranges at once.
    """
    low, high = first.copy(), last.copy()
    while True:
        open_ = low < high
        if not open_.any():
            return low
        middle = (low + high) >> 1
        values = times[np.minimum(middle, len(times) - 1)]
        goes_up = open_ & ((values <= targets) if after else (values < targets))
        low = np.where(goes_up, middle + 1, low)
        high = np.where(open_ & ~goes_up, middle, high)


Flags = NDArray[np.uint8]

DEAD = EXPIRED | GONE
MAX_SEGMENTS = 8
"""More segments than this are merged, because each probe searches every segment."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Segment:
    """Rows in the order of (hash, time).

    The children of row `i` are row ``order[i]`` of `rows`, or row `i` if `order` is None: new rows
    keep the order of arrival, and only rows that stay are rewritten in order.  `batches` is the batch
    of each row once rows of several batches are merged.  `path` is empty until the segment is on disk, `start` is the
    position of its first row in the file, which other tasks may share, and `sum` the checksum of the file.
    """

    hashes: Longs
    times: Longs
    rows: Any
    batch: int
    order: Longs | None = None
    batches: NDArray[np.int32] | None = None
    path: str = ""
    start: int = 0
    sum: str = ""
    least: int = 0
    greatest: int = 0
    bytes: int = 0

    def __len__(self) -> int:
        return len(self.hashes)

    def child(self, name: str, places: Longs | None = None) -> Any:
        """Return a child column of the rows at some positions, or of all rows."""
        column = self.rows.column(name)
        if places is None and self.order is None:
            return combine_column(column)
        return combine_column(column).take(pa.array(self.places(places)))

    def places(self, places: Longs | None) -> Longs:
        """Return the positions of rows of this segment in `rows`."""
        if places is None:
            places = np.arange(len(self.hashes))
        return places if self.order is None else self.order[places]

    def batch_of(self, places: Longs) -> NDArray[np.int32]:
        """Return the batch in which each row arrived."""
        if self.batches is None:
            return np.full(len(places), self.batch, dtype=np.int32)
        return self.batches[places]


def combine_column(column: Any) -> Any:
    """Return a column as one contiguous array."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def combine_table(rows: Any) -> Any:
    """Return a table whose columns have one chunk each; `take` is fastest on such columns."""
    if all(column.num_chunks == 1 for column in rows.columns):
        return rows
    arrays = [column.combine_chunks() if column.num_chunks else pa.array([], column.type) for column in rows.columns]
    return pa.table(arrays, schema=rows.schema)


def build_segment(hashes: Longs, times: Longs, rows: Any, kept: Longs | None, batch: int) -> Segment:
    """Return new rows as a segment without copying them; `kept` are the positions of those that take part."""
    order = sort_order(hashes, times)
    return Segment(
        hashes=hashes[order],
        times=times[order],
        rows=rows,
        batch=batch,
        order=order if kept is None else kept[order],
        least=int(times.min()) if len(times) else 0,
        greatest=int(times.max()) if len(times) else 0,
    )


def materialize(segment: Segment, kept: Longs | None) -> Segment:
    """Return the rows of a segment that stay, in order and as a copy."""
    if kept is None and segment.order is None:
        return segment
    places = np.arange(len(segment)) if kept is None else kept
    times = segment.times[places]
    rows = _take(segment.rows, segment.places(places))
    return Segment(
        hashes=segment.hashes[places],
        times=times,
        rows=rows,
        batch=segment.batch,
        batches=None if segment.batches is None else segment.batches[places],
        least=int(times.min()),
        greatest=int(times.max()),
        bytes=rows.nbytes + 16 * len(places),  # a hash and a time of 8 bytes each
    )


def _take(rows: Any, places: Longs) -> Any:
    index = pa.array(places)
    return pa.table([combine_column(column).take(index) for column in rows.columns], schema=rows.schema)


def merge_segments(segments: Sequence[Segment]) -> tuple[Segment, Longs]:
    """Return one segment with the rows of several, and the order in which their rows were merged."""
    hashes = np.concatenate([s.hashes for s in segments])
    times = np.concatenate([s.times for s in segments])
    # Kept for each row: the order of eviction and redrive depend on the batch of a row.
    batches = np.concatenate([s.batch_of(np.arange(len(s))) for s in segments])
    order = sort_order(hashes, times)
    rows = combine_table(pa.concat_tables([s.rows for s in segments]))
    rows = _take(rows, order)
    one = Segment(
        hashes=hashes[order],
        times=times[order],
        rows=rows,
        batch=segments[-1].batch,
        batches=batches[order],
        least=min(s.least for s in segments),
        greatest=max(s.greatest for s in segments),
        bytes=rows.nbytes + 20 * len(order),  # and 4 bytes for the batch
    )
    return one, order


def find_merge_start(sizes: Sequence[int]) -> int:
    """Return the first segment to merge, so that each row is rewritten a logarithmic number of times.

    The newest four are merged, with each older one of at most twice the size of all that follow it.

    >>> find_merge_start([900, 100, 10, 10, 10, 10, 10, 10, 10])
    1
    """
    first = max(0, len(sizes) - 4)
    total = sum(sizes[first:])
    while first > 0 and sizes[first - 1] <= 2 * total:
        first -= 1
        total += sizes[first]
    return first
