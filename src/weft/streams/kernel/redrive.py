"""Redrive: rows that came too late, looked up in the state that is still there.

A late row meets rows of the other side that the state holds: those that wait or have matched, and those that
are over and stay for this (`retention`).  What it changes are corrections: a pair that was not given, and the
padded row of a partner, which was given and is wrong now.  A row that meets a partner which waits on an outer
side is put off: the padded row of the partner may come yet.  The state is read and not changed.

A row that a limit evicted took part until then: its pairs with rows that had come by that batch are given already,
and only those with later rows are corrections.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
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
    """What late rows of one side of a group change: `plus` to add, `minus` to take back.

    `taken` are the places of the late rows that met somebody; the others stay as they are.
    `taken_back` are fingerprints of the partners whose padded row is in `minus`.
    """

    plus: Output
    minus: Output
    taken: Longs
    taken_back: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Part:
    """The partners of one segment: pairs of places in both of its small segments."""

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
    """Look late rows up; `before` counts the fingerprints of partners that were taken back already.

    `paired_until` is for each row the batch up to which it took part and gave pairs, -1 for rows that gave none.
    """
    other = state.side(OTHER_SIDE[side])
    late = _Late(combine_table(rows), times, paired_until)
    found = [
        part
        for segment, flags in zip(other.segments, other.flags, strict=True)
        if (part := _met(task, side, late, segment, flags)) is not None
    ]
    off = _put_off(task, side, found)
    plus: list[Pairs | UnmatchedRows] = []
    alone: list[Pairs | UnmatchedRows] = []
    taken: list[Longs] = [np.empty(0, dtype=np.int64)]
    spent = Counter(before)
    told: list[str] = []
    for part in found:
        kept = tuple(_without(part, pair, off) for pair in part.pairs)
        plus.append(Pairs(matching=_matching(task, side, part), known=tuple(_sided(side, p) for p in kept)))
        taken.extend(part.late.places(late) for late, _ in kept)
        block, names = _padded(OTHER_SIDE[side], part, kept, spent)
        told.extend(names)
        if block is not None:
            alone.append(block)
    return RedriveResult(
        plus=_output(task, state, plus),
        minus=_output(task, state, alone),
        taken=np.unique(np.concatenate(taken)),
        taken_back=tuple(told),
    )


def _output(task: JoinTask, state: GroupState, blocks: list[Pairs | UnmatchedRows]) -> Output:
    return Output(task=task, left=state.left.schema, right=state.right.schema, blocks=tuple(blocks))


@dataclass(frozen=True, slots=True, eq=False)
class _Late:
    """Rows that are looked up."""

    rows: Any
    times: Longs
    paired_until: Longs | None

    def is_new(self, task: JoinTask, late: Longs, segment: Segment, there: Longs) -> NDArray[np.bool_] | None:
        """Return which pairs of late rows and stored rows were not given yet; None when none was."""
        if self.paired_until is None:
            return None
        until = self.paired_until[late]
        if task.final:
            # Which partners were over by then is not known any more: the end of the input decides.
            return np.asarray(until < 0)
        return np.asarray(segment.batch_of(there) > until)


def _met(task: JoinTask, side: Side, given: _Late, segment: Segment, flags: Flags) -> _Part | None:
    """Return the rows of a stored segment that late rows meet, None when they meet none."""
    rows, times = given.rows, given.times
    places = np.flatnonzero((flags & GONE) == 0)
    if not len(places) or not len(times):
        return None
    none = np.zeros(len(times), dtype=np.int64)
    late = Segment(hashes=none, times=times, rows=rows, batch=segment.batch)
    # Late rows carry no hash: numbers of their keys do its work.
    stored = Segment(
        hashes=np.zeros(len(segment), dtype=np.int64),
        times=segment.times,
        rows=segment.rows,
        batch=segment.batch,
    )
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
        one, other = _sided(side, pair)
        new = given.is_new(task, mine.places(one), segment, theirs.places(other))
        if new is not None:
            one, other = one[new], other[new]
        if len(one):
            pairs.append((one, other))
    return _Part(late=mine, there=theirs, flags=flags, pairs=tuple(pairs)) if pairs else None


def _sided(side: Side, pair: tuple[Longs, Longs]) -> tuple[Longs, Longs]:
    """Return (left, right) as (late, other), and the other way round."""
    return pair if side == "left" else (pair[1], pair[0])


def _matching(task: JoinTask, side: Side, part: _Part) -> Matching:
    none = np.empty(0, dtype=np.int64)
    left, right = (part.late, part.there) if side == "left" else (part.there, part.late)
    return Matching(task=task, left=left, right=right, probe_side=side, probe=none, start=none, stop=none)


def _put_off(task: JoinTask, side: Side, found: list[_Part]) -> set[int]:
    """Return the late rows that meet a partner whose padded row may come yet."""
    if not task.side(OTHER_SIDE[side]).outer:
        return set()
    waits: set[int] = set()
    for part in found:
        for late, there in part.pairs:
            flags = part.flags[part.there.places(there)]
            waits.update(part.late.places(late[(flags & (DEAD | MATCHED)) == 0]).tolist())
    return waits


def _without(part: _Part, pair: tuple[Longs, Longs], off: set[int]) -> tuple[Longs, Longs]:
    late, there = pair
    stays = ~np.isin(part.late.places(late), list(off))
    return late[stays], there[stays]


def _padded(
    side: Side, part: _Part, pairs: tuple[tuple[Longs, Longs], ...], spent: Counter[str]
) -> tuple[UnmatchedRows | None, list[str]]:
    """Return the partners whose padded row was given and not yet taken back."""
    met = np.unique(np.concatenate([there for _, there in pairs]))
    padded = met[(part.flags[part.there.places(met)] & PADDED) != 0]
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
    return UnmatchedRows(
        side=side, rows=rows, places=part.there.places(places), times=part.there.times[places]
    ), names


def _fingerprint(side: Side, segment: Segment, place: int) -> str:
    """Return a text that rows with equal content share."""
    row = segment.rows.slice(int(segment.places(np.array([place]))[0]), 1).to_pylist()
    told = repr((side, int(segment.times[place]), row))
    return hashlib.blake2b(told.encode(), digest_size=12).hexdigest()
