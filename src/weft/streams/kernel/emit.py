"""The output of a batch, built while it is iterated.

::

    kind  time  [window_start  window_end]  left  right
    0     t     ...                         {..}  {..}     a pair; t is the later of both times
    1     t     ...                         {..}  NULL     an unmatched left row
    2     t     ...                         NULL  {..}     an unmatched right row

Until then only positions of rows are kept.  If even these are too many, the pairs are computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from weft.streams.kernel.keys import row_widths
from weft.streams.kernel.pairs import Matching, expand_ranges, first_window, shared_windows, shift
from weft.streams.kernel.segments import Longs
from weft.streams.kernel.spec import LEFT_UNMATCHED, NEVER, PAIR, RIGHT_UNMATCHED, JoinTask, Side

MAX_KNOWN_PAIRS = 8_000_000
"""The maximum number of pairs of a batch that are kept until the output is read; more are computed again."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pairs:
    """Matching rows of two segments; without `known` they are computed again when the output is read."""

    matching: Matching
    known: tuple[tuple[Longs, Longs], ...] | None

    def chunks(self) -> Iterable[tuple[Longs, Longs]]:
        """Return the pairs piece by piece."""
        return self.matching.chunks() if self.known is None else self.known


PairPiece = tuple[int, int, Matching, Longs, Longs]
"""The numbers of a left and a right segment, and pairs of their rows."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DeferredPairs:
    """Pairs of several segments that are computed again when the output is read."""

    find: Callable[[], Iterator[PairPiece]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UnmatchedRows:
    """Unmatched rows of one side; `places` are their positions in `rows`."""

    side: Side
    rows: Any
    places: Longs
    times: Longs


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Output:
    """All rows that one batch of one group emits; can be iterated repeatedly."""

    task: JoinTask
    left: Any  # Arrow schemas of the children
    right: Any
    blocks: tuple[Pairs | DeferredPairs | UnmatchedRows, ...] = ()

    def __iter__(self) -> Iterator[Any]:
        for block in self.blocks:
            if isinstance(block, UnmatchedRows):
                yield from self._alone(block)
            elif isinstance(block, DeferredPairs):
                for _, _, matching, left, right in block.find():
                    yield from self._pairs(matching, left, right)
            else:
                for left, right in block.chunks():
                    yield from self._pairs(block.matching, left, right)

    @property
    def schema(self) -> Any:
        """Arrow schema of the output."""
        windows = [("window_start", pa.int64()), ("window_end", pa.int64())] if self.task.window_columns else []
        sides = [("left", pa.struct(list(self.left))), ("right", pa.struct(list(self.right)))]
        return pa.schema([("kind", pa.int8()), ("time", pa.int64()), *windows, *sides])

    def _alone(self, block: UnmatchedRows) -> Iterator[Any]:
        # In pieces: an Arrow string column holds at most 2 GiB.
        for piece in row_widths(block.rows.columns, block.places).pieces(len(block.places)):
            places, times = block.places[piece], block.times[piece]
            here = _struct(block.rows, places)
            absent = pa.nulls(len(places), pa.struct(list(self.right if block.side == "left" else self.left)))
            sides = (here, absent) if block.side == "left" else (absent, here)
            kind = LEFT_UNMATCHED if block.side == "left" else RIGHT_UNMATCHED
            windows = first_window(self.task.reach, times) if self.task.window_columns else None
            yield self._batch(kind, times, windows, *sides)

    def _pairs(self, matching: Matching, left: Longs, right: Longs) -> Iterator[Any]:
        reach = self.task.reach
        each = row_widths(matching.left.rows.columns, matching.left.places(left))
        each += row_widths(matching.right.rows.columns, matching.right.places(right))
        for piece in each.pieces(len(left)):
            ours, theirs = left[piece], right[piece]
            if not self.task.window_columns and not reach.per_window:
                yield self._pair_batch(matching, ours, theirs, None)
                continue
            start, last = shared_windows(matching, ours, theirs)
            if not reach.per_window:
                yield self._pair_batch(matching, ours, theirs, start)
                continue
            slide = reach.slide or reach.size
            none = np.zeros(len(ours), dtype=np.int64)
            # A pair in many short slides becomes many rows, so the pieces are cut again.
            for pair, number in expand_ranges(np.arange(len(ours)), none, (last - start) // slide + 1):
                for cut in each.at(pair + piece.start).pieces(len(pair)):
                    some, nth = pair[cut], number[cut]
                    yield self._pair_batch(matching, ours[some], theirs[some], start[some] + nth * slide)

    def _pair_batch(self, matching: Matching, left: Longs, right: Longs, windows: Longs | None) -> Any:
        times = np.maximum(matching.left.times[left], matching.right.times[right])
        return self._batch(
            PAIR,
            times,
            windows,
            _struct(matching.left.rows, matching.left.places(left)),
            _struct(matching.right.rows, matching.right.places(right)),
        )

    def _batch(self, kind: int, times: Longs, windows: Longs | None, left: Any, right: Any) -> Any:
        unknown = times == NEVER  # rows of a table, and rows without an event time
        mask = unknown if unknown.any() else None
        columns = [pa.array(np.full(len(times), kind, dtype=np.int8)), pa.array(times, mask=mask)]
        if self.task.window_columns and windows is not None:
            columns += [pa.array(windows, mask=mask), pa.array(shift(windows, self.task.reach.size), mask=mask)]
        return pa.RecordBatch.from_arrays([*columns, left, right], schema=self.schema)


def exceeds_known_pairs(pairs: int) -> bool:
    """Return whether so many pairs are computed again instead of being kept."""
    return pairs > MAX_KNOWN_PAIRS


def _struct(rows: Any, places: Longs) -> Any:
    # Rows of a segment have one chunk in each column, see `combine_table`.
    index = pa.array(places)
    children = [column.chunk(0).take(index) for column in rows.columns]
    return pa.StructArray.from_arrays(children, fields=list(rows.schema))
