"""A side at work: its segments, the rows that have just come, and the flags as they change."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from weft.streams.kernel.emit import Alone
from weft.streams.kernel.gate import Admitted
from weft.streams.kernel.reach import over_below
from weft.streams.kernel.rejects import RejectRows
from weft.streams.kernel.segments import DEAD, Flags, Longs, Segment
from weft.streams.kernel.spec import (
    FOREVER,
    GONE,
    MATCHED,
    NEVER,
    OVER,
    PADDED,
    Clock,
    Counters,
    JoinTask,
    Side,
    SideStats,
    SideTask,
)

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SideState:
    """What one side of a group holds between two batches.

    `flags` has an array for each segment; `sessions` too, with the start and the end of the session
    that each row was in after the last batch.  `seen` are the keys that duplicates are told by, with
    their times.  The paths say where each lies on disk; an empty one is to be written.
    """

    schema: Any
    segments: tuple[Segment, ...] = ()
    flags: tuple[Flags, ...] = ()
    sessions: tuple[Longs, ...] | None = None
    seen: Any = None
    counters: Counters = field(default_factory=Counters)
    stats: SideStats = field(default_factory=SideStats)
    flags_path: str = ""
    sessions_path: str = ""
    seen_path: str = ""

    @property
    def live(self) -> int:
        """How many rows can still meet others."""
        return sum(int(np.count_nonzero((flags & DEAD) == 0)) for flags in self.flags)


@dataclass(slots=True, eq=False)
class Working:
    """One side during a batch; the last part are the rows that have just come."""

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
    def of(cls, side: Side, task: SideTask, before: SideState, admitted: Admitted) -> Working:
        """Return a side with its old and new rows, nothing decided yet."""
        fresh = admitted.segment
        found = cls(side, task, before, admitted, rejects=list(admitted.rejects))
        found.parts = [*before.segments, fresh]
        found.flags = [*before.flags, np.zeros(len(fresh), dtype=np.uint8)]
        found.changed = [False] * len(before.segments) + [True]
        if before.sessions is not None:
            found.sessions = [*before.sessions, np.stack((fresh.times, fresh.times))]
        return found

    @property
    def fresh(self) -> int:
        """Place of the part with the rows that have just come."""
        return len(self.parts) - 1

    def live(self, part: int) -> Mask | None:
        """Return which rows of a part can still meet others; None when all can."""
        dead = self.flags[part] & DEAD
        return np.asarray(dead == 0) if dead.any() else None

    def set(self, part: int, places: Longs | Mask, bits: int) -> None:
        """Set bits of some rows' flags."""
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


def leave(task: JoinTask, working: Working, clock: Clock) -> list[Alone]:
    """Let rows go that can meet nothing more; return those of an outer side that never met any."""
    blocks = []
    outer, keeps = working.task.outer, working.task.retention > 0
    for part, segment in enumerate(working.parts):
        over = _over(task, working, part, clock, 0)
        if over is not None:
            flags = working.flags[part]
            over &= (flags & DEAD) == 0
            lonely = np.flatnonzero(over & ((flags & MATCHED) == 0))
            working.expired += int(np.count_nonzero(over))
            working.unmatched += len(lonely)
            if over.any():
                working.set(part, over, OVER if keeps else GONE)
            if outer and len(lonely):
                working.set(part, lonely, PADDED)
                blocks.append(_alone(working.side, segment, lonely))
        if keeps:
            gone = _over(task, working, part, clock, working.task.retention)
            gone = None if gone is None else gone & ((working.flags[part] & DEAD) == OVER)
            if gone is not None and gone.any():
                working.set(part, gone, GONE)
    return blocks


def _over(task: JoinTask, working: Working, part: int, clock: Clock, extra: int) -> Mask | None:
    """Return which rows of a part have had their time, `extra` ago; None when none has."""
    segment = working.parts[part]
    if not len(segment):
        return None
    if task.reach.kind == "session":
        mark, times = clock.least, working.sessions[part][1]
        below = mark if mark in (NEVER, FOREVER) else max(NEVER, mark - task.reach.gap - extra)
    else:
        below, times = over_below(task, working.side, clock, extra), segment.times
        if segment.least >= below:
            return None
    if below == FOREVER:
        return np.ones(len(segment), dtype=np.bool_)
    return np.asarray(times < below)


def _alone(side: Side, segment: Segment, places: Longs) -> Alone:
    return Alone(side=side, rows=segment.rows, places=segment.places(places), times=segment.times[places])


def rejected(working: Working, part: int, places: Longs) -> RejectRows:
    """Return rows that a limit drops, with whether they had matched."""
    segment = working.parts[part]
    return RejectRows(
        side=working.side,
        reason="EVICTED",
        times=segment.times[places],
        matched=np.asarray((working.flags[part][places] & MATCHED) != 0),
        raw=None,
        rows=segment.rows.take(pa.array(segment.places(places))),
    )
