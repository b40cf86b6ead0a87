"""Redrive: late rows are matched with the rows that are still in the state.

A late row matches rows of the other side: those that wait or have matched, and expired rows that are kept for this
purpose (`retention`).  The result is corrections: a pair that was not emitted, and the retraction of a row that was
emitted as unmatched.  A late row that matches a waiting row of an outer side is deferred, because that row may still
be emitted as unmatched.  The state is read and never changed.

An evicted row took part until its eviction: its pairs with rows of that batch or earlier were emitted already, and
only those with later rows are corrections.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.streams.kernel.emit import Output, Pairs, UnmatchedRows
from weft.streams.kernel.keys import number_keys
from weft.streams.kernel.pairs import Matching, find_candidates
from weft.streams.kernel.segments import DEAD, Flags, Longs, Segment, build_segment, combine_table
from weft.streams.kernel.spec import GONE, MATCHED, PADDED, JoinTask, Side
from weft.streams.kernel.transition import GroupState

OTHER_SIDE: Mapping[Side, Side] = {"left": "right", "right": "left"}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RedriveResult:
    """Corrections from the late rows of one side of a group: `plus` to add, `minus` to retract.

    `taken` are the positions of the late rows that matched; the others stay as they are.
    `taken_back` are fingerprints of the rows in `minus`.
    """

    plus: Output
    minus: Output
    taken: Longs
    taken_back: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Matches:
    """The matches of one stored segment: pairs of positions in two small segments."""

    late: Segment
    there: Segment  # its rows are those of the stored segment, in their order
    flags: Flags
    pairs: tuple[tuple[Longs, Longs], ...]  # late, there


def find_corrections(
    task: JoinTask,
    state: GroupState,
    side: Side,
    rows: Any,
    times: Longs,
    before: Mapping[str, int],
    paired_until: Longs | None = None,
) -> RedriveResult:
    """Match late rows with the state; `before` counts the fingerprints of rows that were retracted already.

    `paired_until` is for each row the last batch in which it took part, -1 for rows that never did.
    """
    other = state.side(OTHER_SIDE[side])
    late = _LateRows(combine_table(rows), times, paired_until)
    matches = [
        part
        for segment, flags in zip(other.segments, other.flags, strict=True)
        if (part := _match_late(task, side, late, segment, flags)) is not None
    ]
    # Found over all segments first: a late row is deferred as a whole, with its matches in other segments.
    off = _find_deferred(task, side, matches)
    plus: list[Pairs | UnmatchedRows] = []
    alone: list[Pairs | UnmatchedRows] = []
    taken: list[Longs] = [np.empty(0, dtype=np.int64)]
    # By count: rows with equal content have one fingerprint, and each of them is retracted once.
    spent = Counter(before)
    retracted: list[str] = []
    for part in matches:
        kept = tuple(_exclude(part, pair, off) for pair in part.pairs)
        left, right = (part.late, part.there) if side == "left" else (part.there, part.late)
        matching = Matching(task=task, left=left, right=right)
        plus.append(Pairs(matching=matching, known=tuple(_orient(side, p) for p in kept)))
        taken.extend(part.late.places(late) for late, _ in kept)
        block, names = _find_padded(OTHER_SIDE[side], part, kept, spent)
        retracted.extend(names)
        if block is not None:
            alone.append(block)
    return RedriveResult(
        plus=_output(task, state, plus),
        minus=_output(task, state, alone),
        taken=np.unique(np.concatenate(taken)),
        taken_back=tuple(retracted),
    )


def _output(task: JoinTask, state: GroupState, blocks: list[Pairs | UnmatchedRows]) -> Output:
    return Output(task=task, left=state.left.schema, right=state.right.schema, blocks=tuple(blocks))


@dataclass(frozen=True, slots=True, eq=False)
class _LateRows:
    """Late rows with their times."""

    rows: Any
    times: Longs
    paired_until: Longs | None

    def is_new(self, task: JoinTask, late: Longs, segment: Segment, there: Longs) -> NDArray[np.bool_] | None:
        """Return which pairs of late and stored rows were not emitted yet; None if none was."""
        if self.paired_until is None:
            return None
        until = self.paired_until[late]
        if task.final:
            # Which stored rows had expired by then is unknown: the end of the input decides.
            return np.asarray(until < 0)
        return np.asarray(segment.batch_of(there) > until)


def _match_late(task: JoinTask, side: Side, late_rows: _LateRows, segment: Segment, flags: Flags) -> _Matches | None:
    """Return the rows of a stored segment that late rows match, None if there are none."""
    rows, times = late_rows.rows, late_rows.times
    places = np.flatnonzero((flags & GONE) == 0)
    if not len(places) or not len(times):
        return None
    # Rejected rows are stored without a hash, so all hashes are 0 here and the keys are numbered by their values.
    late = Segment(hashes=np.zeros_like(times), times=times, rows=rows, batch=segment.batch)
    stored = replace(segment, hashes=np.zeros_like(segment.times))
    numbers = number_keys(task.keys, [(late, np.arange(len(times))), (stored, places)])
    mine = build_segment(numbers[: len(times)], times, rows, None, segment.batch)
    theirs = build_segment(numbers[len(times) :], segment.times[places], segment.rows, places, segment.batch)
    probe, start, stop = find_candidates(task, side, mine, None, theirs)
    if not len(probe):
        return None
    matching = Matching(
        task=task,
        left=mine if side == "left" else theirs,
        right=theirs if side == "left" else mine,
        probe_side=side,
        probe=probe,
        start=start,
        stop=stop,
    )
    pairs = []
    for pair in matching.chunks():
        one, other = _orient(side, pair)
        new = late_rows.is_new(task, mine.places(one), segment, theirs.places(other))
        if new is not None:
            one, other = one[new], other[new]
        if len(one):
            pairs.append((one, other))
    return _Matches(late=mine, there=theirs, flags=flags, pairs=tuple(pairs)) if pairs else None


def _orient(side: Side, pair: tuple[Longs, Longs]) -> tuple[Longs, Longs]:
    """Return (left, right) as (late, other), and the other way round."""
    return pair if side == "left" else (pair[1], pair[0])


def _find_deferred(task: JoinTask, side: Side, matches: list[_Matches]) -> set[int]:
    """Return the late rows that match a row which may still be emitted as unmatched."""
    if not task.side(OTHER_SIDE[side]).outer:
        return set()
    deferred: set[int] = set()
    for part in matches:
        for late, there in part.pairs:
            flags = part.flags[part.there.places(there)]
            deferred.update(part.late.places(late[(flags & (DEAD | MATCHED)) == 0]).tolist())
    return deferred


def _exclude(part: _Matches, pair: tuple[Longs, Longs], off: set[int]) -> tuple[Longs, Longs]:
    late, there = pair
    stays = ~np.isin(part.late.places(late), list(off))
    return late[stays], there[stays]


def _find_padded(
    side: Side, part: _Matches, pairs: tuple[tuple[Longs, Longs], ...], spent: Counter[str]
) -> tuple[UnmatchedRows | None, list[str]]:
    """Return the rows that were emitted as unmatched and not yet retracted."""
    matched = np.unique(np.concatenate([there for _, there in pairs]))
    padded = matched[(part.flags[part.there.places(matched)] & PADDED) != 0]
    kept, names = [], []
    for place in padded.tolist():
        name = _fingerprint(side, part.there, place)
        if spent[name] > 0:
            spent[name] -= 1
            continue
        kept.append(place)
        names.append(name)
    if not kept:
        return None, []
    places = np.array(kept, dtype=np.int64)
    rows = combine_table(part.there.rows)
    return UnmatchedRows(side=side, rows=rows, places=part.there.places(places), times=part.there.times[places]), names


def _fingerprint(side: Side, segment: Segment, place: int) -> str:
    """Return a string that is equal for rows with equal content."""
    row = segment.rows.slice(int(segment.places(np.array([place]))[0]), 1).to_pylist()
    # Stored with the corrections of a run, so that a later run does not retract the same row again.
    content = repr((side, int(segment.times[place]), row))
    return hashlib.blake2b(content.encode(), digest_size=12).hexdigest()
