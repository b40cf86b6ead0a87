"""The transition: one batch of one group, a pure function of state, rows and clocks.

::

    gate     malformed rows, rows without a time, late rows and duplicates; rows with a NULL key
    store    the remaining rows, next to those of earlier batches
    probe    new left rows against all right rows, new right rows against old left rows; flags
             (EMIT FINAL: rows and windows that close now probe instead)
    expire   rows that can no longer match; unmatched ones of an outer side are emitted
    limits   the oldest rows are evicted until the limits hold
    compact  remaining rows are written in order; many small segments become one

The same values give the same set of rows, in whatever order they arrive.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from weft.streams.kernel.emit import DeferredPairs, Output, Pairs, UnmatchedRows, exceeds_known_pairs
from weft.streams.kernel.gate import Arrivals, RejectRows, admit
from weft.streams.kernel.pairs import Matching, expiry_threshold, find_candidates, first_window, last_window, shift
from weft.streams.kernel.segments import (
    DEAD,
    MAX_SEGMENTS,
    Flags,
    Longs,
    Segment,
    find_merge_start,
    materialize,
    merge_segments,
)
from weft.streams.kernel.session import match_sessions
from weft.streams.kernel.spec import (
    FOREVER,
    GONE,
    MATCHED,
    MAX_GROUP_BYTES,
    NEVER,
    Clock,
    Counters,
    JoinTask,
    KernelProblem,
    Side,
    SideStats,
)
from weft.streams.kernel.working import ActiveSide, SideState, apply_limits, expire_rows


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupState:
    """The state of a join for one group of keys, those of a range of hashes, after a batch."""

    left: SideState
    right: SideState
    clock: Clock
    batch: int

    def side(self, side: Side) -> SideState:
        """Return the state of a side."""
        return self.left if side == "left" else self.right


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StepResult:
    """The result of one batch of a group."""

    state: GroupState
    out: Output
    rejects: tuple[RejectRows, ...]


def empty_state(task: JoinTask, left_schema: Any, right_schema: Any) -> GroupState:
    """Return the state of a group before its first batch."""
    sessions: tuple[Longs, ...] | None = () if task.reach.kind == "session" else None
    return GroupState(
        left=SideState(schema=left_schema, sessions=sessions),
        right=SideState(schema=right_schema, sessions=sessions),
        clock=Clock(left=NEVER, right=NEVER),
        batch=-1,
    )


def step(
    task: JoinTask,
    state: GroupState,
    left: Arrivals,
    right: Arrivals,
    clock: Clock,
    *,
    batch: int,
    watermark: int,
    wall_clock: int,
) -> StepResult:
    """Process one batch of a group; `watermark` is ``NEVER`` while there is none."""
    sides = []
    arrived: tuple[tuple[Side, Arrivals], ...] = (("left", left), ("right", right))
    for side, arrivals in arrived:
        before, rules = state.side(side), task.side(side)
        admitted = admit(
            side,
            rules,
            arrivals,
            before.seen,
            timed=task.reach.kind != "table",
            batch=batch,
            watermark=watermark,
            wall_clock=wall_clock,
        )
        sides.append(ActiveSide.of(side, rules, before, admitted))
    ours, theirs = sides
    blocks: list[Pairs | DeferredPairs | UnmatchedRows] = [*_emit_null_keys(ours), *_emit_null_keys(theirs)]
    if task.reach.kind == "session":  # not a range of times: other rows of the key decide which rows match
        blocks += match_sessions(task, ours, theirs, clock)
    else:
        blocks += _match_rows(task, ours, theirs, state.clock, clock)
    # Matching comes before expiry, so that a row still matches the rows that arrive in the batch in which it expires;
    # limits come last, so that nothing is evicted that leaves the state anyway.
    blocks += expire_rows(task, ours, clock)
    blocks += expire_rows(task, theirs, clock)
    for working in sides:
        apply_limits(working, task.keys)
    return StepResult(
        state=GroupState(
            left=_finish_side(ours, len(left)),
            right=_finish_side(theirs, len(right)),
            clock=clock,
            batch=batch,
        ),
        out=Output(task=task, left=state.left.schema, right=state.right.schema, blocks=tuple(blocks)),
        rejects=(*ours.rejects, *theirs.rejects),
    )


def _emit_null_keys(working: ActiveSide) -> Iterator[UnmatchedRows]:
    """Yield the rows of an outer side that match nothing because their key or time is NULL."""
    admitted = working.admitted
    working.unmatched += len(admitted.alone)
    if working.task.outer and len(admitted.alone):
        yield UnmatchedRows(
            side=working.side, rows=admitted.rows, places=admitted.alone, times=admitted.times[admitted.alone]
        )


def _match_rows(task: JoinTask, left: ActiveSide, right: ActiveSide, before: Clock, clock: Clock) -> Iterator[Pairs]:
    """Yield the pairs to emit in this batch and set the flags of their rows."""
    remembered = 0
    # Masks of now: pairs may be computed again when the output is read, after rows have expired.
    live = ([left.live(p) for p in range(len(left.parts))], [right.live(p) for p in range(len(right.parts))])
    for here, there, side, places, (after, until) in _probes(task, left, right, before, clock):
        probing = left if side == "left" else right
        stored, part = (right, there) if side == "left" else (left, here)
        segment = probing.parts[here if side == "left" else there]
        probe, start, stop = find_candidates(task, side, segment, places, stored.parts[part])
        if not len(probe):
            continue
        matching = Matching(
            task=task,
            left=left.parts[here],
            right=right.parts[there],
            probe_side=side,
            probe=probe,
            start=start,
            stop=stop,
            live_left=live[0][here],
            live_right=live[1][there],
            after=after,
            until=until,
        )
        remembered += matching.candidates
        known = []
        for one, other in matching.chunks():
            if len(one):
                left.set(here, one, MATCHED)
                right.set(there, other, MATCHED)
                left.matches += len(one)
                right.matches += len(one)
                if not exceeds_known_pairs(remembered):
                    known.append((one, other))
        if known or exceeds_known_pairs(remembered):
            yield Pairs(matching=matching, known=None if exceeds_known_pairs(remembered) else tuple(known))


Probe = tuple[int, int, Side, Longs | None, tuple[int, int]]


def _probes(task: JoinTask, left: ActiveSide, right: ActiveSide, before: Clock, clock: Clock) -> Iterator[Probe]:
    """Yield (left part, right part, side that probes, its rows, ends of windows): each pair of parts once."""
    if not task.final:
        # New left rows against all right rows, also the new ones; new right rows against old left rows only.
        left.lookups += len(left.parts[left.fresh])
        right.lookups += len(right.parts[right.fresh])
        for part in range(len(right.parts)):
            yield left.fresh, part, "left", None, (NEVER, FOREVER)
        for part in range(left.fresh):
            yield part, right.fresh, "right", None, (NEVER, FOREVER)
        return
    until = FOREVER if task.reach.kind == "interval" else clock.least
    for here in range(len(left.parts)):
        places = _closing(task, left.parts[here], before, clock, is_new=here == left.fresh)
        if not len(places):
            continue
        left.lookups += len(places)
        for there in range(len(right.parts)):
            # Windows that closed in an earlier batch have emitted their pairs, except those of rows that are new.
            is_new = here == left.fresh or there == right.fresh
            after = NEVER if is_new or task.reach.kind == "interval" else before.least
            yield here, there, "left", places, (after, until)


def _closing(task: JoinTask, segment: Segment, before: Clock, clock: Clock, *, is_new: bool) -> Longs:
    """Return the left rows that expire in this batch, or are in a window that closes."""
    if not len(segment):
        return np.empty(0, dtype=np.int64)
    if task.reach.kind == "interval":
        below = expiry_threshold(task, "left", clock)
        return np.flatnonzero(segment.times < below) if below != FOREVER else np.arange(len(segment))
    if clock.least in (NEVER, FOREVER):
        return np.arange(len(segment) if clock.least == FOREVER else 0)
    size = task.reach.size
    closes = shift(first_window(task.reach, segment.times), size) <= clock.least
    if not is_new:
        closes &= shift(last_window(task.reach, segment.times), size) > before.least
    return np.flatnonzero(closes)


def _finish_side(working: ActiveSide, came: int) -> SideState:
    """Return the state of the side after the batch, with its counters."""
    matched = working.matched()  # before compaction: it compares flags part by part
    parts, laid = _compact(working)
    flags = [part.flags for part in parts]
    before, admitted = working.before, working.admitted
    same_seen = admitted.seen is before.seen
    live = sum(int(np.count_nonzero((f & DEAD) == 0)) for f in flags)
    waiting = sum(int(np.count_nonzero((f & (DEAD | MATCHED)) == 0)) for f in flags)
    old = before.counters
    counters = Counters(
        in_=old.in_ + came,
        matched=old.matched + matched,
        waiting=waiting,
        unmatched=old.unmatched + working.unmatched,
        late=old.late + admitted.late,
        rejected=old.rejected + admitted.rejected,
        evicted=old.evicted + working.evicted,
    )
    return SideState(
        schema=before.schema,
        segments=tuple(part.segment for part in parts),
        flags=tuple(flags),
        sessions=None if before.sessions is None else tuple(p.spans for p in parts if p.spans is not None),
        seen=admitted.seen,
        counters=counters,
        stats=_update_stats(working, parts, live),
        stored=tuple(part.stored for part in parts),
        flag_files=before.flag_files,
        session_file=None if laid or working.sessions_changed else before.session_file,
        seen_file=before.seen_file if same_seen else None,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """A segment with the flags of its rows, the stored ones, and, in a session join, the spans of their sessions."""

    segment: Segment
    flags: Flags
    spans: Longs | None
    stored: Flags | None = None

    def keep(self, places: Longs | None) -> _Part:
        """Return some of the rows in order, or all with None."""
        spans = self.spans if places is None or self.spans is None else self.spans[:, places]
        segment = materialize(self.segment, places)
        flags = self.flags if places is None else self.flags[places]
        return _Part(segment, flags, spans, self.stored if segment is self.segment else None)


def _compact(working: ActiveSide) -> tuple[list[_Part], bool]:
    """Return the parts that stay: empty ones are dropped, sparse ones rewritten, many merged; and whether any changed."""
    parts: list[_Part] = []
    changed = False
    for number, segment in enumerate(working.parts):
        spans = working.sessions[number] if working.sessions else None
        stored = working.before.stored[number] if number < working.fresh else None
        part = _Part(segment, working.flags[number], spans, stored)
        gone = (part.flags & GONE) != 0
        stay = len(segment) - int(np.count_nonzero(gone))
        if not stay:
            changed = changed or number < working.fresh
            continue
        # An old segment is a file: it is written again only when that removes more than half of its rows.
        is_sparse = number == working.fresh or 2 * stay < len(segment)
        kept = np.flatnonzero(~gone) if stay < len(segment) and is_sparse else None
        changed = changed or kept is not None or segment.order is not None
        parts.append(part.keep(kept))
    return (_merge(parts), True) if len(parts) > MAX_SEGMENTS else (parts, changed)


def _merge(parts: list[_Part]) -> list[_Part]:
    """Make one part of the newest ones, without the rows that are gone."""
    first = find_merge_start([len(part.segment) for part in parts])
    merged = []
    for part in parts[first:]:
        gone = (part.flags & GONE) != 0
        merged.append(part.keep(np.flatnonzero(~gone) if gone.any() else None))
    segment, order = merge_segments([part.segment for part in merged])
    flags = np.concatenate([part.flags for part in merged])[order]
    spans = [part.spans for part in merged if part.spans is not None]
    one = _Part(segment, flags, np.concatenate(spans, axis=1)[:, order] if spans else None)
    return [*parts[:first], one]


def _update_stats(working: ActiveSide, parts: list[_Part], live: int) -> SideStats:
    old, admitted = working.before.stats, working.admitted
    greatest = [t for t in (old.max_time, admitted.max_time) if t is not None]
    least = [t for t in (old.min_time, admitted.min_time) if t is not None]
    return replace(
        old,
        records_stored=old.records_stored + len(working.parts[working.fresh]),
        records_expired=old.records_expired + working.expired,
        records_evicted=old.records_evicted + working.evicted_all,
        lookups=old.lookups + working.lookups,
        matches_found=old.matches_found + working.matches,
        current_size=live,
        peak_size=max(old.peak_size, live),
        current_keys=_count_live_keys(parts),
        current_bytes=sum(part.segment.bytes for part in parts),
        missing_key_count=old.missing_key_count + admitted.missing_keys,
        missing_time_count=old.missing_time_count + admitted.missing_times,
        limit_hits=old.limit_hits + working.limit_hits,
        min_time=min(least, default=None),
        max_time=max(greatest, default=None),
        max_lateness=max(old.max_lateness, admitted.max_lateness),
    )


def _count_live_keys(parts: list[_Part]) -> int:
    live = [(part.flags & DEAD) == 0 for part in parts]
    return count_keys(
        [p.segment.hashes if rows.all() else p.segment.hashes[rows] for p, rows in zip(parts, live, strict=True)]
    )


def count_keys(hashes: list[Longs]) -> int:
    """Return the number of distinct keys of rows, by their hashes; those of each segment are in order."""
    distinct = sorted((_drop_repeats(mine) for mine in hashes if len(mine)), key=len)
    if not distinct:
        return 0
    # Each segment is in order already, so only the smaller ones are sorted together and looked up in the largest.
    largest, rest = distinct[-1], distinct[:-1]
    if not rest:
        return len(largest)
    others = _drop_repeats(np.sort(np.concatenate(rest)))
    place = np.minimum(np.searchsorted(largest, others), len(largest) - 1)
    return len(largest) + int(np.count_nonzero(largest[place] != others))


def _drop_repeats(hashes: Longs) -> Longs:
    """Return sorted hashes without repeats."""
    return hashes[np.append(True, hashes[1:] != hashes[:-1])] if len(hashes) > 1 else hashes


def check_size(state: GroupState, left: Arrivals, right: Arrivals, *, tasks: int, most: int = MAX_GROUP_BYTES) -> None:
    """Raise W2211 if the state of a group and its new rows are larger than a task may hold."""
    size = left.rows.nbytes + right.rows.nbytes
    size += sum(arrivals.raw.nbytes for arrivals in (left, right) if arrivals.raw is not None)
    size += sum(segment.bytes for side in (state.left, state.right) for segment in side.segments)
    if size > most:
        suggested = tasks * -(-2 * size // most)
        raise KernelProblem(
            "W2211",
            f"a group of keys has {size:,} bytes of state and new rows; the maximum for a task is {most:,}",
            f"if the job sets 'groups', allow '{suggested}' or more; read less in each batch ('max.files.per.trigger'); "
            "if one key has most of the rows, narrow the bound of the join",
        )
