"""Pairs: which times can match, and how ranges of candidates become matching pairs, vectorised.

Every kind of join except the session join becomes one closed range of times for each row::

    interval   left t: [t + lower, t + upper]          right t: [t - upper, t - lower]
    windows    [start of the first window with t, end of the last one)
    table      every time

and the end of a row's life becomes one threshold: rows below it are expired.  The residual, the condition besides
keys and time, is evaluated on the remaining pairs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from weft.streams.kernel.keys import MAX_PIECE_ROWS, compare_keys, row_widths
from weft.streams.kernel.segments import Longs, Segment, find_ranges
from weft.streams.kernel.spec import FOREVER, NEVER, Clock, JoinTask, KernelProblem, Reach, Residual, Side

_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
    "and": pc.and_kleene,
    "or": pc.or_kleene,
}
_TYPES: dict[str, Any] = {
    "string": pa.string(),
    "binary": pa.binary(),
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "null": pa.null(),
}
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")


def arrow_type(name: str) -> Any:
    """Return the Arrow type for the name of a Weft type.

    >>> arrow_type("decimal(10,2)")
    Decimal128Type(decimal128(10, 2))
    """
    exact = _DECIMAL.fullmatch(name)
    if exact:
        return pa.decimal128(int(exact[1]), int(exact[2]))
    if name not in _TYPES:
        message = f"a condition of the join compares values of type {name}, which the kernel does not support"
        raise KernelProblem("W2201", message, "keep the checkpoint and report it as a defect of Weft")
    return _TYPES[name]


def evaluate_residual(
    residual: Residual, left: Segment, left_places: Longs, right: Segment, right_places: Longs
) -> NDArray[np.bool_]:
    """Return for which pairs of rows the condition is true; NULL counts as false."""
    if residual.program is not None:
        known: dict[tuple[str, str], Any] = {}

        def child(side: str, name: str) -> Any:
            if (side, name) not in known:
                segment, places = (left, left_places) if side == "left" else (right, right_places)
                known[side, name] = segment.child(name, places)
            return known[side, name]

        result = _evaluate(residual.program, child)
        if isinstance(result, pa.Scalar):  # a condition of literals alone
            return np.full(len(left_places), result.as_py() is True, dtype=np.bool_)
        return np.asarray(result.fill_null(fill_value=False).to_numpy(zero_copy_only=False), dtype=np.bool_)
    if residual.rows is None:
        return np.ones(len(left_places), dtype=np.bool_)
    results = residual.rows(_to_dicts(left, left_places), _to_dicts(right, right_places))
    return np.fromiter((one is True for one in results), dtype=np.bool_, count=len(left_places))


def list_refs(code: tuple[Any, ...] | None, side: str) -> Iterator[str]:
    """Yield the children of a side that prefix code names.

    >>> list(list_refs(("<", ("ref", "left", "v"), ("ref", "right", "w")), "left"))
    ['v']
    """
    if not code:
        return
    if code[0] == "ref":
        if code[1] == side:
            yield code[2]
    elif code[0] != "lit":
        for operand in code[1:]:
            yield from list_refs(operand, side)


def _to_dicts(segment: Segment, places: Longs) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = segment.rows.take(pa.array(segment.places(places))).to_pylist()
    return rows


def _evaluate(code: tuple[Any, ...], child: Callable[[str, str], Any]) -> Any:
    """Run prefix code and return a column or a scalar."""
    word = code[0]
    if word == "ref":
        return child(code[1], code[2])
    if word == "lit":
        return pa.scalar(code[1], arrow_type(code[2]))
    operands = [_evaluate(operand, child) for operand in code[1:]]
    if word == "isnull":
        return pc.is_null(operands[0])
    if word in ("and", "or", "not"):  # Arrow's null type has no logic; a literal NULL is an unknown boolean
        operands = [o.cast(pa.bool_()) if pa.types.is_null(o.type) else o for o in operands]
    elif all(pa.types.is_null(o.type) for o in operands):
        return pa.scalar(None, pa.bool_())
    return pc.invert(operands[0]) if word == "not" else _OPERATIONS[word](*operands)


def shift(times: Longs, by: int) -> Longs:
    """Return times shifted by a distance, clipped to the range of int64.

    >>> shift(np.array([1, FOREVER]), 5).tolist() == [6, FOREVER]
    True
    """
    if by == 0:
        return times
    if by > 0:
        return np.asarray(np.minimum(times, FOREVER - by) + by)
    return np.asarray(np.maximum(times, NEVER - by) + by)


def first_window(reach: Reach, times: Longs) -> Longs:
    """Return the start of the first window that holds each time.

    >>> first_window(Reach(kind="sliding", size=60, slide=30), np.array([45, -1, 60])).tolist()
    [0, -60, 30]
    """
    slide = reach.slide or reach.size
    return np.asarray((shift(times, -reach.size) // slide + 1) * slide)


def last_window(reach: Reach, times: Longs) -> Longs:
    """Return the start of the last window that holds each time.

    >>> last_window(Reach(kind="tumbling", size=60), np.array([59, 60, -1])).tolist()
    [0, 60, -60]
    """
    slide = reach.slide or reach.size
    return np.asarray(times // slide * slide)


def matching_range(reach: Reach, times: Longs, side: Side) -> tuple[Longs, Longs]:
    """Return the least and the greatest time of the other side that rows of `side` match.

    >>> [a.tolist() for a in matching_range(Reach(kind="interval", lower=-1, upper=2), np.array([5]), "right")]
    [[3], [6]]
    """
    if reach.kind == "interval":
        low, high = (reach.lower, reach.upper) if side == "left" else (-reach.upper, -reach.lower)
        return shift(times, low), shift(times, high)
    if reach.kind == "table":
        return np.full(len(times), NEVER), np.full(len(times), FOREVER)
    return first_window(reach, times), shift(last_window(reach, times), reach.size - 1)


def expiry_threshold(task: JoinTask, side: Side, clock: Clock, extra: int = 0) -> int:
    """Return the time below which rows of `side` can no longer match, and could not for at least `extra`.

    ``FOREVER`` means that every row is expired.  Sessions expire as a whole and are not covered here.
    """
    reach = task.reach
    if reach.kind == "table":  # rows of the stream are never kept, those of the table stay to the end
        return FOREVER if side == "left" or clock.least == FOREVER else NEVER
    # A row expires by the clock of the other side: only rows of that side can still match it.
    if reach.kind == "interval":
        if side == "left":
            return _shifted(clock.right, -reach.upper - extra)
        mine = _shifted(clock.left, reach.lower - extra)
        # A left row that matches this one may not have expired yet, and its pairs are emitted only then.
        return min(mine, _shifted(clock.right, reach.lower - reach.upper - extra)) if task.final else mine
    other = clock.right if side == "left" else clock.left
    mark = clock.least if task.final else other
    if mark in (NEVER, FOREVER):
        return mark
    slide = reach.slide or reach.size
    return max(NEVER, ((mark - reach.size - extra) // slide + 1) * slide)


def _shifted(clock: int, by: int) -> int:
    if clock in (NEVER, FOREVER):
        return clock
    return max(NEVER, min(FOREVER - 1, clock + by))  # FOREVER itself means that the input has ended


MAX_CHUNK = 2_000_000
"""The maximum number of candidates that are examined together."""

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Matching:
    """Candidates of two segments: the range of rows for each probe, and the other conditions on a pair.

    `live` masks leave out rows that are expired or removed (None: all are live).  Under EMIT FINAL only windows whose
    end is in ``(after, until]`` count.  Without candidates it only names the segments of pairs that are known.
    """

    task: JoinTask
    left: Segment
    right: Segment
    probe_side: Side = "left"
    probe: Longs = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    start: Longs = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    stop: Longs = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    live_left: Mask | None = None
    live_right: Mask | None = None
    after: int = NEVER
    until: int = FOREVER

    @property
    def candidates(self) -> int:
        """The number of pairs that are examined."""
        return int((self.stop - self.start).sum())

    def chunks(self) -> Iterator[tuple[Longs, Longs]]:
        """Yield the matching pairs as positions in the left and in the right segment."""
        for probe, row in expand_ranges(self.probe, self.start, self.stop):
            left, right = (probe, row) if self.probe_side == "left" else (row, probe)
            for piece in cut_candidates(self.task, self.left, left, self.right, right):
                yield self._matching(left[piece], right[piece])

    def _matching(self, left: Longs, right: Longs) -> tuple[Longs, Longs]:
        if self.live_left is not None:
            left, right = _filter(self.live_left[left], left, right)
        if self.live_right is not None:
            left, right = _filter(self.live_right[right], left, right)
        # Candidates have equal hashes, and two keys may share one.
        same = compare_keys(self.task.keys, self.left, left, self.right, right)
        if same is not None:
            left, right = _filter(same, left, right)
        if self.after != NEVER or self.until != FOREVER:
            first, last = shared_windows(self, left, right)
            if self.task.reach.per_window:
                closes = first <= last
            else:
                # A pair is emitted once, with its first window, so that window decides in which batch.
                ends = shift(first, self.task.reach.size)
                closes = np.asarray((ends > self.after) & (ends <= self.until))
            left, right = _filter(closes, left, right)
        # Last, because it is the most expensive of the conditions.
        if self.task.residual is not None and len(left):
            left, right = _filter(
                evaluate_residual(self.task.residual, self.left, left, self.right, right), left, right
            )
        return left, right


def cut_candidates(
    task: JoinTask, left: Segment, left_places: Longs, right: Segment, right_places: Longs
) -> Iterator[slice]:
    """Yield candidates in pieces whose keys and compared columns fit into columns of their own."""
    residual = task.residual
    ours = [left.rows.column(name) for name in compared_columns(task, "left", left.rows)]
    theirs = [right.rows.column(name) for name in compared_columns(task, "right", right.rows)]
    by_row = residual is not None and residual.program is None
    each = row_widths(ours, left.places(left_places)) + row_widths(theirs, right.places(right_places))
    # A condition by row needs every candidate as a Python dict, which takes far more memory than columns.
    yield from each.pieces(len(left_places), MAX_PIECE_ROWS if by_row else MAX_CHUNK)


def compared_columns(task: JoinTask, side: Side, rows: Any) -> list[str]:
    """Return the columns of a side that are compared for each candidate, beside its time."""
    residual = task.residual
    if residual is not None and residual.program is None:
        return list(rows.column_names)
    names = dict.fromkeys(task.keys)
    if residual is not None:
        names |= dict.fromkeys(list_refs(residual.program, side))
    return list(names)


def _filter(mask: Mask, left: Longs, right: Longs) -> tuple[Longs, Longs]:
    return (left, right) if mask.all() else (left[mask], right[mask])


def expand_ranges(probe: Longs, start: Longs, stop: Longs) -> Iterator[tuple[Longs, Longs]]:
    """Yield (probe, row) for every row of every range, at most `MAX_CHUNK` at a time.

    >>> [[a.tolist() for a in pair] for pair in expand_ranges(np.array([3, 4]), np.array([0, 5]), np.array([2, 6]))]
    [[[3, 3, 4], [0, 1, 5]]]
    """
    counts = stop - start
    if counts.max(initial=0) > MAX_CHUNK:  # a hot key: its range is split
        pieces = -(-counts // MAX_CHUNK)
        owner = np.repeat(np.arange(len(probe)), pieces)
        step = np.arange(len(owner)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
        start = start[owner] + step * MAX_CHUNK
        stop, probe = np.minimum(start + MAX_CHUNK, stop[owner]), probe[owner]
        counts = stop - start
    ends = np.cumsum(counts)
    first = 0
    while first < len(probe):
        base = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, base + MAX_CHUNK, side="right")))
        yield _expand(probe[first:last], start[first:last], counts[first:last])
        first = last


def _expand(probe: Longs, start: Longs, counts: Longs) -> tuple[Longs, Longs]:
    if counts.max(initial=0) == 1:
        return probe, start
    # The ranges laid end to end: position i of the result is row i + (start - before) of its range.
    before = np.cumsum(counts) - counts
    rows = np.arange(int(counts.sum())) + np.repeat(start - before, counts)
    return np.repeat(probe, counts), rows


def find_candidates(
    task: JoinTask, side: Side, probing: Segment, places: Longs | None, stored: Segment
) -> tuple[Longs, Longs, Longs]:
    """Return (place, start, stop): rows of a segment that probes, and their candidates in a stored one."""
    none = np.empty(0, dtype=np.int64)
    if not len(probing) or not len(stored) or (places is not None and not len(places)):
        return none, none, none
    hashes = probing.hashes if places is None else probing.hashes[places]
    times = probing.times if places is None else probing.times[places]
    low, high = matching_range(task.reach, times, side)
    # Most old segments of a long bound are out of range as a whole, and need no search.
    if int(high.max()) < stored.least or int(low.min()) > stored.greatest:
        return none, none, none
    probe, start, stop = find_ranges(stored.hashes, stored.times, hashes, low, high)
    return (probe if places is None else places[probe]), start, stop


def shared_windows(matching: Matching, left: Longs, right: Longs) -> tuple[Longs, Longs]:
    """Return the starts of the first and the last window that contain both rows of each pair.

    Under EMIT FINAL with a row for each window, only windows that close now are counted.
    """
    reach = matching.task.reach
    left_times, right_times = matching.left.times[left], matching.right.times[right]
    first = np.maximum(first_window(reach, left_times), first_window(reach, right_times))
    last = np.minimum(last_window(reach, left_times), last_window(reach, right_times))
    if reach.per_window:
        slide = reach.slide or reach.size
        if matching.after != NEVER:  # the first start whose end is later than `after`
            first = np.maximum(first, ((matching.after - reach.size) // slide + 1) * slide)
        if matching.until != FOREVER:
            last = np.minimum(last, (matching.until - reach.size) // slide * slide)
    return first, last
