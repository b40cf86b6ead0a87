"""Limits over several tasks: the oldest rows of all of them are evicted, by (time, batch, content)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from weft.streams.kernel.gate import RejectRows
from weft.streams.kernel.segments import DEAD
from weft.streams.kernel.spec import MATCHED, Entry, JoinTask, Side
from weft.streams.kernel.state_files import SIDES, JoinFolder, open_state, range_of_entry, save_state
from weft.streams.kernel.transition import GroupState, count_keys
from weft.streams.kernel.working import ActiveSide, SideState, apply_limits


def evict_oldest(
    place: JoinFolder, task: JoinTask, entries: Mapping[int, Entry], *, watermark: int
) -> list[dict[str, Any]]:
    """Evict the oldest rows of a join until its limits hold; return for each task a report of what changed."""
    states = [open_state(place, [entry], range_of_entry(entry), task, None, None) for entry in entries.values()]
    after, rejects = list(states), [list[RejectRows]() for _ in states]
    for side in SIDES:
        if task.side(side).limits.max_state_rows is not None:
            after = _evict_side(task, side, after, rejects)
    reports = []
    for place_of, (number, entry) in enumerate(entries.items()):
        before, state, keys = states[place_of], after[place_of], range_of_entry(entry)
        _, report = save_state(place, before, state, rejects[place_of], watermark=watermark, keys=keys, task=number)
        reports.append(report)
    return reports


def _evict_side(
    task: JoinTask, side: Side, states: list[GroupState], rejects: list[list[RejectRows]]
) -> list[GroupState]:
    sides = [state.side(side) for state in states]
    # Each part of this side is a segment of one of the tasks.
    owners = [number for number, mine in enumerate(sides) for _ in mine.segments]
    if not owners:
        return states
    # The limit on the rows of a key is enforced by the task that has the key.
    limits = replace(task.side(side).limits, max_rows_per_key=None)
    working = ActiveSide.over(side, replace(task.side(side), limits=limits), sides)
    apply_limits(working, task.keys)
    evicted = dict(zip([p for p, is_changed in enumerate(working.changed) if is_changed], working.rejects, strict=True))
    for part, rows in evicted.items():
        rejects[owners[part]].append(rows)
    found = []
    for number, (state, mine) in enumerate(zip(states, sides, strict=True)):
        flags = tuple(f for f, owner in zip(working.flags, owners, strict=True) if owner == number)
        found.append(_replace_side(state, side, _count_evicted(mine, flags, hits=0 if number else working.limit_hits)))
    return found


def _replace_side(state: GroupState, side: Side, mine: SideState) -> GroupState:
    return replace(state, left=mine) if side == "left" else replace(state, right=mine)


def _count_evicted(before: SideState, flags: tuple[Any, ...], *, hits: int) -> SideState:
    """Return a side with other flags, and the counts that follow from them."""
    gone = [(old & DEAD == 0) & (now & DEAD != 0) for old, now in zip(before.flags, flags, strict=True)]
    evicted = sum(int(np.count_nonzero(rows)) for rows in gone)
    waiting = sum(
        int(np.count_nonzero(rows & (old & MATCHED == 0))) for rows, old in zip(gone, before.flags, strict=True)
    )
    live = [np.asarray(now & DEAD == 0) for now in flags]
    counters, stats = before.counters, before.stats
    size = sum(int(np.count_nonzero(rows)) for rows in live)
    return replace(
        before,
        flags=flags,
        counters=replace(counters, evicted=counters.evicted + waiting, waiting=counters.waiting - waiting),
        stats=replace(
            stats,
            records_evicted=evicted,
            limit_hits=hits,
            current_size=size,
            peak_size=size,
            current_keys=count_keys([s.hashes[rows] for s, rows in zip(before.segments, live, strict=True)]),
        ),
    )
