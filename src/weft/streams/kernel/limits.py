"""Limits: how many rows a side may hold, and which go when there are more."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from weft.streams.kernel.keys import content_ranks, key_numbers
from weft.streams.kernel.segments import Longs
from weft.streams.kernel.spec import GONE, MATCHED, KernelProblem
from weft.streams.kernel.working import Working, rejected


def hold(working: Working, keys: tuple[str, ...]) -> None:
    """Drop rows until the limits of the side hold: the oldest by (time, batch, content) first."""
    task = working.task
    if task.max_per_key is not None:
        _hold_keys(working, keys, task.max_per_key)
    if task.max_rows is not None:
        held = _Held(working)
        surplus = len(held.times) - task.max_rows
        if surplus > 0:
            _drop(working, held, held.oldest_first()[:surplus], "join.max_state_rows", task.max_rows)


class _Held:
    """The live rows of a side, all parts in turn."""

    def __init__(self, working: Working) -> None:
        places = []
        for part, segment in enumerate(working.parts):
            mask = working.live(part)
            places.append(np.arange(len(segment)) if mask is None else np.flatnonzero(mask))
        self.pieces = list(zip(working.parts, places, strict=True))
        self.places = np.concatenate(places)
        self.part = np.repeat(np.arange(len(places)), [len(p) for p in places])
        self.times = np.concatenate([s.times[p] for s, p in self.pieces])
        self.batches = np.concatenate([s.batch_of(p) for s, p in self.pieces])

    def oldest_first(self, numbers: Longs | None = None) -> Longs:
        """Return the order of rows by ([key,] time, batch, content)."""
        first = np.zeros(len(self.times), dtype=np.int64) if numbers is None else numbers
        order = np.lexsort((self.batches, self.times, first))
        sorted_ = [column[order] for column in (first, self.times, self.batches)]
        equal = np.logical_and.reduce([column[1:] == column[:-1] for column in sorted_])
        if not equal.any():
            return order
        tied = np.zeros(len(order), dtype=np.bool_)
        tied[1:] |= equal
        tied[:-1] |= equal
        some = order[tied]
        ranks = content_ranks(self.rows(some))
        order[tied] = some[np.lexsort((ranks, self.batches[some], self.times[some], first[some]))]
        return order

    def rows(self, some: Longs) -> pa.Table:
        """Return the children of some rows, in their order."""
        tables, where = [], []
        for part, (segment, _) in enumerate(self.pieces):
            mine = np.flatnonzero(self.part[some] == part)
            tables.append(segment.rows.take(pa.array(segment.places(self.places[some[mine]]))))
            where.append(mine)
        back = np.argsort(np.concatenate(where))
        return pa.concat_tables(tables).combine_chunks().take(pa.array(back))


def _hold_keys(working: Working, keys: tuple[str, ...], most: int) -> None:
    held = _Held(working)
    if not len(held.times):
        return
    numbers = key_numbers(keys, held.pieces)
    counts = np.bincount(numbers)
    if counts.max() <= most:
        return
    order = held.oldest_first(numbers)
    # Within each key the order is from old to young, so the first `count - most` go.
    firsts = np.cumsum(counts) - counts
    nth = np.arange(len(order)) - firsts[numbers[order]]
    surplus = order[nth < np.maximum(counts - most, 0)[numbers[order]]]
    _drop(working, held, surplus, "join.max_rows_per_key", most)


def _drop(working: Working, held: _Held, chosen: Longs, option: str, most: int) -> None:
    if working.task.evict == "fail":
        raise KernelProblem(
            "W2209",
            f"{working.task.name} holds {len(chosen)} rows more than '{option}' = '{most}' allows",
            "nothing of the batch is committed; raise the limit, narrow the bound of the join, "
            "or let the oldest rows go with 'join.eviction' = 'oldest'",
        )
    working.limit_hits += 1
    working.evicted_all += len(chosen)
    for part in np.unique(held.part[chosen]):
        places = np.sort(held.places[chosen[held.part[chosen] == part]])
        working.rejects.append(rejected(working, int(part), places))
        working.evicted += int(np.count_nonzero((working.flags[part][places] & MATCHED) == 0))
        working.set(int(part), places, GONE)
