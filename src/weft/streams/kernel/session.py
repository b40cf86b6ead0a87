"""Sessions: rows of one key, both sides together, in which each step is at most the gap.

Only keys with new rows, or whose session ends, are processed.  Each row stores the session that it was in
after the last batch; pairs of two old rows in one such session were emitted already, so a merge of sessions
adds only the pairs across them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from weft.streams.kernel.emit import DeferredPairs, PairPiece, Pairs, exceeds_known_pairs
from weft.streams.kernel.keys import number_keys
from weft.streams.kernel.pairs import Matching, cut_candidates, evaluate_residual, expand_ranges, shift
from weft.streams.kernel.segments import Longs, Segment
from weft.streams.kernel.spec import FOREVER, MATCHED, NEVER, Clock, JoinTask
from weft.streams.kernel.working import ActiveSide

Mask = NDArray[np.bool_]


@dataclass(slots=True, eq=False)
class _SessionRows:
    """Chosen rows of both sides, all parts in turn."""

    pieces: list[tuple[Segment, Longs]]
    is_left: Mask
    part: Longs
    places: Longs
    is_new: Mask
    start: Longs  # of the session of the last batch, or the row's time
    end: Longs

    @classmethod
    def of(cls, sides: tuple[ActiveSide, ActiveSide], chosen: list[list[Longs]]) -> _SessionRows:
        pieces, is_left, part, is_new, spans = [], [], [], [], []
        for working, places in zip(sides, chosen, strict=True):
            for number, mine in enumerate(places):
                pieces.append((working.parts[number], mine))
                is_left.append(np.full(len(mine), working.side == "left"))
                part.append(np.full(len(mine), number, dtype=np.int64))
                is_new.append(np.full(len(mine), number == working.fresh))
                spans.append(working.sessions[number][:, mine])
        both = np.concatenate(spans, axis=1)
        return cls(
            pieces=pieces,
            is_left=np.concatenate(is_left),
            part=np.concatenate(part),
            places=np.concatenate([places for _, places in pieces]),
            is_new=np.concatenate(is_new),
            start=both[0],
            end=both[1],
        )


def match_sessions(task: JoinTask, left: ActiveSide, right: ActiveSide, clock: Clock) -> list[Pairs | DeferredPairs]:
    """Update the sessions, set flags and return the pairs to emit in this batch."""
    sides = (left, right)
    touched = _touched_rows(sides)
    numbers = np.empty(0, dtype=np.int64) if touched is None else _assign_sessions(task, sides, touched)
    rows = _closing_rows(task, sides, clock) if task.final else touched
    if rows is None:
        return []
    if task.final:
        # A session is identified by its key and its start, which every row stores.
        keys = number_keys(task.keys, rows.pieces)
        _, inverse = np.unique(np.stack((keys, rows.start)), axis=1, return_inverse=True)
        numbers = inverse.reshape(-1)
    find = partial(_iter_pairs, task, (tuple(left.parts), tuple(right.parts)), rows, numbers)
    known: list[Pairs | DeferredPairs] = []
    count = 0
    for here, there, matching, one, other in find():
        left.set(here, one, MATCHED)
        right.set(there, other, MATCHED)
        count += len(one)
        if not exceeds_known_pairs(count):
            known.append(Pairs(matching=matching, known=((one, other),)))
    left.matches += count
    right.matches += count
    return [DeferredPairs(find=find)] if exceeds_known_pairs(count) else known


def _touched_rows(sides: tuple[ActiveSide, ActiveSide]) -> _SessionRows | None:
    """Return the live rows of every key that has a new row."""
    # By hash: a key that only shares the hash is processed in vain, which changes nothing.
    hashes = np.unique(np.concatenate([w.parts[w.fresh].hashes for w in sides]))
    if not len(hashes):
        return None
    chosen = []
    for working in sides:
        mine = []
        for number, segment in enumerate(working.parts):
            place = np.minimum(np.searchsorted(hashes, segment.hashes), len(hashes) - 1)
            touched = hashes[place] == segment.hashes
            mine.append(working.live_places(number, touched))
        chosen.append(mine)
    return _SessionRows.of(sides, chosen)


def _closing_rows(task: JoinTask, sides: tuple[ActiveSide, ActiveSide], clock: Clock) -> _SessionRows | None:
    """Return the live rows of every session that is over."""
    mark = clock.least
    if mark == NEVER:
        return None
    below = FOREVER if mark == FOREVER else max(NEVER, mark - task.reach.gap)
    chosen = []
    for working in sides:
        mine = []
        for number, spans in enumerate(working.sessions):
            over = spans[1] < below if mark != FOREVER else np.ones(spans.shape[1], dtype=np.bool_)
            mine.append(working.live_places(number, over))
        chosen.append(mine)
    rows = _SessionRows.of(sides, chosen)
    return rows if len(rows.places) else None


def _assign_sessions(task: JoinTask, sides: tuple[ActiveSide, ActiveSide], rows: _SessionRows) -> Longs:
    """Return the number of each row's session and store its start and end.

    A session of the last batch stays together even if a row that connected it was evicted.
    """
    keys = number_keys(task.keys, rows.pieces)
    order = np.lexsort((rows.start, keys))
    key, start, end = keys[order], rows.start[order], rows.end[order]
    # Running greatest end within each key: ranks of ends are lifted by the key.
    # Ranks instead of times, which the lift could move beyond int64.
    ends, rank = np.unique(end, return_inverse=True)
    reach = np.maximum.accumulate(key * len(ends) + rank.reshape(-1))
    furthest = ends[reach - key * len(ends)]
    cut = np.ones(len(order), dtype=np.bool_)
    cut[1:] = (key[1:] != key[:-1]) | (start[1:] > shift(furthest[:-1], task.reach.gap))
    number = np.cumsum(cut) - 1
    firsts = np.flatnonzero(cut)
    lasts = np.append(firsts[1:], len(order)) - 1
    numbers = np.empty(len(order), dtype=np.int64)
    numbers[order] = number
    _store_sessions(sides, rows, start[firsts][numbers], furthest[lasts][numbers])
    return numbers


def _store_sessions(sides: tuple[ActiveSide, ActiveSide], rows: _SessionRows, start: Longs, end: Longs) -> None:
    for working in sides:
        mine = rows.is_left == (working.side == "left")
        for number in range(len(working.parts)):
            here = np.flatnonzero(mine & (rows.part == number))
            if len(here):
                spans = working.sessions[number].copy()  # the old array belongs to the state before the batch
                spans[:, rows.places[here]] = start[here], end[here]
                working.sessions[number] = spans
                working.sessions_changed = True


def _new_pairs(rows: _SessionRows, numbers: Longs) -> Iterator[tuple[Longs, Longs]]:
    """Yield the pairs of one session in which a row is new, or which a merge of sessions created."""
    everyone = np.arange(len(numbers))
    ours, theirs = everyone[rows.is_left], everyone[~rows.is_left]
    new_left, old_left = ours[rows.is_new[ours]], ours[~rows.is_new[ours]]
    new_right, old_right = theirs[rows.is_new[theirs]], theirs[~rows.is_new[theirs]]
    yield from _cross_pairs(numbers, new_left, theirs)
    yield from _cross_pairs(numbers, old_left, new_right)
    # Old rows that were apart before and are in one session now: a new row has closed the gap between them.
    merged = _is_merged(rows, numbers)
    for one, other in _cross_pairs(numbers, old_left[merged[old_left]], old_right[merged[old_right]]):
        apart = rows.start[one] != rows.start[other]
        yield one[apart], other[apart]


def _is_merged(rows: _SessionRows, numbers: Longs) -> Mask:
    """Return which rows are in a session that several old sessions merged into."""
    count = int(numbers.max()) + 1
    least, greatest = np.full(count, FOREVER), np.full(count, NEVER)
    old = ~rows.is_new
    np.minimum.at(least, numbers[old], rows.start[old])
    np.maximum.at(greatest, numbers[old], rows.start[old])
    return np.asarray((least < greatest)[numbers])


def _cross_pairs(numbers: Longs, ours: Longs, theirs: Longs) -> Iterator[tuple[Longs, Longs]]:
    """Yield every pair of one row each with equal numbers."""
    if not len(ours) or not len(theirs):
        return
    theirs = theirs[np.argsort(numbers[theirs], kind="stable")]
    ordered = numbers[theirs]
    start = np.searchsorted(ordered, numbers[ours])
    stop = np.searchsorted(ordered, numbers[ours], side="right")
    some = stop > start
    for one, place in expand_ranges(ours[some], start[some], stop[some]):
        yield one, theirs[place]


Segments = tuple[Segment, ...]


def _iter_pairs(
    task: JoinTask, sides: tuple[Segments, Segments], rows: _SessionRows, numbers: Longs
) -> Iterator[PairPiece]:
    """Yield the pairs to emit in this batch by segments, after the residual condition."""
    everyone = np.arange(len(numbers))
    if task.final:
        pairs = _cross_pairs(numbers, everyone[rows.is_left], everyone[~rows.is_left])
    else:
        pairs = _new_pairs(rows, numbers)
    left, right = sides
    for ours, theirs in pairs:
        # Output and flags are by segment, so the pairs are split by the two segments of their rows.
        code = rows.part[ours] * len(right) + rows.part[theirs]
        for number in np.unique(code):
            mine = np.flatnonzero(code == number)
            here, there = divmod(int(number), len(right))
            one, other = rows.places[ours[mine]], rows.places[theirs[mine]]
            matching = Matching(task=task, left=left[here], right=right[there])
            for own, others in _filter_pairs(matching, one, other):
                yield here, there, matching, own, others


def _filter_pairs(matching: Matching, one: Longs, other: Longs) -> Iterator[tuple[Longs, Longs]]:
    """Yield the pairs for which the residual condition is true, if there are any."""
    residual, left, right = matching.task.residual, matching.left, matching.right
    if residual is None:
        yield one, other
        return
    for piece in cut_candidates(matching.task, left, one, right, other):
        true = evaluate_residual(residual, left, one[piece], right, other[piece])
        if true.any():
            yield one[piece][true], other[piece][true]
