"""One side during a batch: its segments, its new rows, their flags, expiry and limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from weft.streams.kernel.emit import UnmatchedRows
from weft.streams.kernel.gate import Admitted, RejectRows, format_rows
from weft.streams.kernel.keys import number_keys, rank_by_content
from weft.streams.kernel.pairs import expiry_threshold
from weft.streams.kernel.segments import DEAD, Flags, Longs, Segment
from weft.streams.kernel.spec import (
    EXPIRED,
    FOREVER,
    GONE,
    MATCHED,
    NEVER,
    PADDED,
    Clock,
    Counters,
    JoinTask,
    KernelProblem,
    Side,
    SideStats,
    SideTask,
)

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class StateFile:
    """A file of the state with its checksum; `count` is the number of flags in it."""

    path: str
    sum: str = ""
    count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SideState:
    """The state of one side of a group between two batches.

    `flags` has an array for each segment; `sessions` too, with the start and the end of the session
    that each row was in after the last batch.  `seen` are the keys by which duplicates are detected, with
    their times.  `stored` are the flags as the files have them, None for a segment of which no file has any.
    A file is None until it is written.
    """

    schema: Any
    segments: tuple[Segment, ...] = ()
    flags: tuple[Flags, ...] = ()
    sessions: tuple[Longs, ...] | None = None
    seen: Any = None
    counters: Counters = field(default_factory=Counters)
    stats: SideStats = field(default_factory=SideStats)
    stored: tuple[Flags | None, ...] = ()
    flag_files: tuple[StateFile, ...] = ()
    session_file: StateFile | None = None
    seen_file: StateFile | None = None


@dataclass(slots=True, eq=False)
class ActiveSide:
    """One side during a batch; the last part holds the new rows."""

    side: Side
    task: SideTask
    before: SideState
    admitted: Admitted
    parts: list[Segment] = field(default_factory=list)
    flags: list[Flags] = field(default_factory=list)
    sessions: list[Longs] = field(default_factory=list)
    changed: list[bool] = field(default_factory=list)
    rejects: list[RejectRows] = field(default_factory=list)
    unmatched: int = 0
    evicted: int = 0
    evicted_all: int = 0
    limit_hits: int = 0
    expired: int = 0
    lookups: int = 0
    matches: int = 0
    sessions_changed: bool = False

    @classmethod
    def of(cls, side: Side, task: SideTask, before: SideState, admitted: Admitted) -> ActiveSide:
        """Return a side with its old and new rows, before the batch is processed."""
        fresh = admitted.segment
        active = cls(side, task, before, admitted, rejects=list(admitted.rejects))
        active.parts = [*before.segments, fresh]
        active.flags = [*before.flags, np.zeros(len(fresh), dtype=np.uint8)]
        active.changed = [False] * len(before.segments) + [True]
        if before.sessions is not None:
            active.sessions = [*before.sessions, np.stack((fresh.times, fresh.times))]
        return active

    @classmethod
    def over(cls, side: Side, task: SideTask, states: Sequence[SideState]) -> ActiveSide:
        """Return the rows of a side that several tasks have stored, without new ones."""
        nothing: Any = None  # no row arrives
        active = cls(side, task, SideState(schema=None), nothing)
        active.parts = [segment for state in states for segment in state.segments]
        active.flags = [flags for state in states for flags in state.flags]
        active.changed = [False] * len(active.parts)
        return active

    @property
    def fresh(self) -> int:
        """Index of the part with the new rows."""
        return len(self.parts) - 1

    def live(self, part: int) -> Mask | None:
        """Return which rows of a part can still match; None if all can."""
        dead = self.flags[part] & DEAD
        return np.asarray(dead == 0) if dead.any() else None

    def live_places(self, part: int, mask: Mask) -> Longs:
        """Return the positions of the rows of a mask that can still match."""
        live = self.live(part)
        return np.flatnonzero(mask if live is None else mask & live)

    def set(self, part: int, places: Longs | Mask, bits: int) -> None:
        """Set bits of some rows' flags."""
        # Copied once: the array belongs to the state before the batch, and may be a read-only file in memory.
        if not self.changed[part]:
            self.flags[part] = self.flags[part].copy()
            self.changed[part] = True
        self.flags[part][places] |= bits

    def matched(self) -> int:
        """Return how many rows matched for the first time in this batch, counted from the flags."""
        count = 0
        for part, flags in enumerate(self.flags):
            if self.changed[part]:
                count += int(np.count_nonzero(flags & MATCHED))
                if part < self.fresh:
                    count -= int(np.count_nonzero(self.before.flags[part] & MATCHED))
        return count


def expire_rows(task: JoinTask, working: ActiveSide, clock: Clock) -> list[UnmatchedRows]:
    """Expire rows that can no longer match; return those of an outer side that never matched."""
    blocks = []
    outer, keeps = working.task.outer, working.task.retention > 0
    for part, segment in enumerate(working.parts):
        over = _expired_mask(task, working, part, clock, 0)
        if over is not None:
            flags = working.flags[part]
            over &= (flags & DEAD) == 0
            lonely = np.flatnonzero(over & ((flags & MATCHED) == 0))
            working.expired += int(np.count_nonzero(over))
            working.unmatched += len(lonely)
            if over.any():
                # An expired row stays for `join.retention`, so that late rows can be matched with it afterwards.
                working.set(part, over, EXPIRED if keeps else GONE)
            if outer and len(lonely):
                working.set(part, lonely, PADDED)
                rows, places, times = segment.rows, segment.places(lonely), segment.times[lonely]
                blocks.append(UnmatchedRows(side=working.side, rows=rows, places=places, times=times))
        if keeps:
            gone = _expired_mask(task, working, part, clock, working.task.retention)
            gone = None if gone is None else gone & ((working.flags[part] & DEAD) == EXPIRED)
            if gone is not None and gone.any():
                working.set(part, gone, GONE)
    return blocks


def _expired_mask(task: JoinTask, working: ActiveSide, part: int, clock: Clock, extra: int) -> Mask | None:
    """Return which rows of a part expired at least `extra` ago; None if none did."""
    segment = working.parts[part]
    if not len(segment):
        return None
    if task.reach.kind == "session":
        mark, times = clock.least, working.sessions[part][1]
        below = mark if mark in (NEVER, FOREVER) else max(NEVER, mark - task.reach.gap - extra)
    else:
        below, times = expiry_threshold(task, working.side, clock, extra), segment.times
        if segment.least >= below:
            return None
    if below == FOREVER:
        return np.ones(len(segment), dtype=np.bool_)
    return np.asarray(times < below)


def apply_limits(working: ActiveSide, keys: tuple[str, ...]) -> None:
    """Evict rows until the limits of the side hold: the oldest by (time, batch, content) first."""
    limits = working.task.limits
    # Keys first: rows that they lose no longer count against the limit of the side.
    if limits.max_rows_per_key is not None:
        _limit_keys(working, keys, limits.max_rows_per_key)
    if limits.max_state_rows is not None:
        held = _LiveRows(working)
        surplus = len(held.times) - limits.max_state_rows
        if surplus > 0:
            _evict(working, held, held.oldest_first()[:surplus], "join.max_state_rows", limits.max_state_rows)


class _LiveRows:
    """The live rows of a side, all parts in turn."""

    def __init__(self, working: ActiveSide) -> None:
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
        # Rows with equal times are ranked by content, so that a repeated batch evicts the same rows.
        tied = np.zeros(len(order), dtype=np.bool_)
        tied[1:] |= equal
        tied[:-1] |= equal
        some = order[tied]
        ranks = rank_by_content(self.rows(some))
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


def _limit_keys(working: ActiveSide, keys: tuple[str, ...], most: int) -> None:
    held = _LiveRows(working)
    if not len(held.times):
        return
    numbers = number_keys(keys, held.pieces)
    counts = np.bincount(numbers)
    if counts.max() <= most:
        return
    order = held.oldest_first(numbers)
    # Within each key the order is from old to new, so the first `count - most` rows are evicted.
    firsts = np.cumsum(counts) - counts
    nth = np.arange(len(order)) - firsts[numbers[order]]
    surplus = order[nth < np.maximum(counts - most, 0)[numbers[order]]]
    _evict(working, held, surplus, "join.max_rows_per_key", most)


def _evict(working: ActiveSide, held: _LiveRows, chosen: Longs, option: str, most: int) -> None:
    if working.task.limits.eviction == "fail":
        raise KernelProblem(
            "W2209",
            f"{working.task.name} has {format_rows(len(chosen))} more than '{option}' = '{most}' allows",
            "nothing of the batch is committed; increase the limit, narrow the bound of the join, "
            "or evict the oldest rows with 'join.eviction' = 'oldest'",
        )
    working.limit_hits += 1
    working.evicted_all += len(chosen)
    for part in np.unique(held.part[chosen]).tolist():
        places = np.sort(held.places[chosen[held.part[chosen] == part]])
        matched = np.asarray((working.flags[part][places] & MATCHED) != 0)
        working.rejects.append(RejectRows.of(working.side, "EVICTED", working.parts[part], places, matched))
        # The ledger counts every row once, and those with a match were counted when they matched.
        working.evicted += int(np.count_nonzero(~matched))
        working.set(part, places, GONE)
