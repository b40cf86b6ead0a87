"""Gate: which arrived rows take part, which are turned away and why.

The order is fixed: rows that do not read, rows without a time, late rows, duplicates; then rows
whose key or time is NULL, which meet nothing and leave at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from weft.streams.kernel.keys import rank_by_content
from weft.streams.kernel.segments import Longs, Segment, build_segment, combine_table
from weft.streams.kernel.spec import FOREVER, NEVER, KernelProblem, Reason, Side, SideTask


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RejectRows:
    """Rows of one side with one reason; `raw` is the text of rows that do not read."""

    side: Side
    reason: Reason
    times: NDArray[np.int64]  # NEVER: none
    matched: NDArray[np.bool_]
    raw: Any
    rows: Any

    def __len__(self) -> int:
        return len(self.times)


def reject_table(found: Sequence[RejectRows], *, batch: int, group: int, watermark: int) -> Any:
    """Return rejected rows of one side as one table: what is kept of them below the checkpoint."""
    return pa.concat_tables([_table(one, batch, group, watermark) for one in found])


def _table(found: RejectRows, batch: int, group: int, watermark: int) -> Any:
    count = len(found)
    rows = found.rows.combine_chunks().to_struct_array() if found.rows.num_columns else None
    struct = rows.combine_chunks() if isinstance(rows, pa.ChunkedArray) else rows
    columns: dict[str, Any] = {
        "side": pa.array([found.side] * count, pa.string()),
        "reason": pa.array([found.reason] * count, pa.string()),
        "event_time": pa.array(found.times, pa.int64(), mask=found.times == NEVER),
        "watermark": pa.array([None if watermark == NEVER else watermark] * count, pa.int64()),
        "batch": pa.array([batch] * count, pa.int64()),
        "group": pa.array([group] * count, pa.int32()),
        "matched": pa.array(found.matched),
        "raw": pa.nulls(count, pa.string()) if found.raw is None else found.raw,
    }
    if struct is not None:
        columns["row"] = struct
    return pa.table(columns)


Mask = NDArray[np.bool_]
_TIME = "__time"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Arrivals:
    """Rows of one side of one group, in any order.

    `hashes` and `times` are Arrow columns of int64: NULL is a NULL key, or no time.  `raw` holds the
    text of rows that do not read and NULL for all others; None when all rows read.
    """

    hashes: Any
    times: Any
    rows: Any
    raw: Any = None

    def __len__(self) -> int:
        return len(self.hashes)


@dataclass(slots=True, eq=False)
class Admitted:
    """What the gate made of the arrivals: a segment, rows that leave at once, rejected rows, counts."""

    segment: Segment
    rows: Any
    alone: Longs
    alone_times: Longs
    seen: Any
    rejects: list[RejectRows] = field(default_factory=list)
    late: int = 0
    rejected: int = 0
    missing_keys: int = 0
    missing_times: int = 0
    min_time: int | None = None
    max_time: int | None = None
    max_lateness: int = 0


@dataclass(slots=True, eq=False)
class _Judged:
    """Arrivals under judgement: `open` are the rows not yet turned away."""

    side: Side
    task: SideTask
    rows: Any
    raw: Any
    times: Longs
    open: Mask
    found: Admitted

    def turn_away(self, mask: Mask, reason: Reason, *, kept: bool = True) -> int:
        """Reject the open rows of a mask and return their number."""
        mask = mask & self.open
        places = np.flatnonzero(mask)
        if not len(places):
            return 0
        self.open &= ~mask
        if kept:
            index = pa.array(places)
            self.found.rejects.append(
                RejectRows(
                    side=self.side,
                    reason=reason,
                    times=self.times[places],
                    matched=np.zeros(len(places), dtype=np.bool_),
                    raw=None if self.raw is None else self.raw.take(index),
                    rows=self.rows.take(index),
                )
            )
        return len(places)


def admit(
    side: Side,
    task: SideTask,
    arrivals: Arrivals,
    seen: Any,
    *,
    timed: bool,
    batch: int,
    watermark: int,
    wall_clock: int,
) -> Admitted:
    """Judge the rows of one side; `timed` is False for joins with tables, where no time counts."""
    rows = combine_table(arrivals.rows)
    hashes, no_key = _numbers(arrivals.hashes)
    times, no_time = _numbers(arrivals.times)
    times = np.clip(times, NEVER + 1, FOREVER - 1) if len(times) else times
    if not timed and side == "right":
        no_time = np.ones(len(times), dtype=np.bool_)  # rows of a table have no time
    if no_time is not None:
        times = np.where(no_time, NEVER, times)
    found = Admitted(
        segment=_nothing(rows, batch),
        rows=rows,
        alone=np.empty(0, dtype=np.int64),
        alone_times=times[:0],
        seen=seen,
    )
    judged = _Judged(
        side=side,
        task=task,
        rows=rows,
        raw=arrivals.raw,
        times=times,
        open=np.ones(len(times), dtype=np.bool_),
        found=found,
    )
    if task.raw:
        _judge(judged, no_time, timed=timed, watermark=watermark, wall_clock=wall_clock)
    found.missing_keys = 0 if no_key is None else int(np.count_nonzero(no_key & judged.open))
    lonely = _either(no_key, no_time if timed and not task.raw else None)
    if lonely is not None:
        found.alone = np.flatnonzero(lonely & judged.open)
        found.alone_times = judged.times[found.alone]
        judged.open &= ~lonely
    everything = bool(judged.open.all())
    kept = None if everything else np.flatnonzero(judged.open)
    found.segment = build_segment(
        hashes if kept is None else hashes[kept],
        judged.times if kept is None else judged.times[kept],
        rows,
        kept,
        batch,
    )
    return found


def _judge(judged: _Judged, no_time: Mask | None, *, timed: bool, watermark: int, wall_clock: int) -> None:
    task, found = judged.task, judged.found
    if judged.raw is not None and judged.raw.null_count < len(judged.raw):
        unread = judged.raw.is_valid().to_numpy(zero_copy_only=False)
        if task.malformed == "fail":
            raise _refused(
                "W2208",
                task,
                f"a row that does not read: {_first(judged.raw.drop_null())!r}",
                "malformed",
                "reject",
            )
        found.rejected += judged.turn_away(unread, "MALFORMED")
    if timed:
        shown = judged.times[judged.open & (judged.times != NEVER)]
        found.max_time = int(shown.max()) if len(shown) else None
        on_time = shown[shown >= watermark]
        found.min_time = int(on_time.min()) if len(on_time) else None
        if no_time is not None:
            _without_time(judged, no_time, wall_clock)
        _late(judged, watermark)
    if task.dedup:
        found.rejected += _duplicates(judged, watermark, timed=timed)


def _without_time(judged: _Judged, no_time: Mask, wall_clock: int) -> None:
    task, found = judged.task, judged.found
    no_time = no_time & judged.open
    count = int(np.count_nonzero(no_time))
    found.missing_times = count
    if not count:
        return
    if task.missing_event_time == "fail":
        raise _refused("W2207", task, f"{count} rows without event time", "join.missing_event_time", "reject")
    if task.missing_event_time == "wall_clock":
        judged.times = np.where(no_time, wall_clock, judged.times)
    else:
        found.rejected += judged.turn_away(no_time, "NO_EVENT_TIME")


def _late(judged: _Judged, watermark: int) -> None:
    task, found = judged.task, judged.found
    if watermark == NEVER:
        return
    late = (judged.times < watermark) & judged.open
    if not late.any():
        return
    found.max_lateness = watermark - int(judged.times[late].min())
    if task.late == "fail":
        said = f"a row {found.max_lateness / 1_000_000:g} s below the watermark"
        raise _refused("W2206", task, said, "late", "side_output")
    found.late += judged.turn_away(late, "LATE", kept=task.late == "side_output")


def _duplicates(judged: _Judged, watermark: int, *, timed: bool) -> int:
    """Reject all but the first row of equal keys, by time and content; keys given earlier come first."""
    seen, places = judged.found.seen, np.flatnonzero(judged.open)
    names = list(judged.task.dedup)
    if seen is not None:
        seen = seen.filter(pc.greater_equal(seen.column(_TIME), watermark))
    if len(places):
        rows = judged.rows.take(pa.array(places))
        times = judged.times[places] if timed else np.full(len(places), NEVER)
        order = np.lexsort((rank_by_content(rows), times))
        mine = rows.select(names).append_column(_TIME, pa.array(times)).take(pa.array(order))
        both = mine if seen is None else pa.concat_tables([seen, mine])
        known = 0 if seen is None else seen.num_rows
        numbered = both.select(names).append_column("__place", pa.array(np.arange(both.num_rows)))
        firsts = pa.TableGroupBy(numbered, names, use_threads=False).aggregate([("__place", "min")])
        firsts = np.sort(firsts.column("__place_min").to_numpy())
        is_first = np.zeros(both.num_rows, dtype=np.bool_)
        is_first[firsts] = True
        again = np.zeros(len(judged.open), dtype=np.bool_)
        again[places[order[~is_first[known:]]]] = True
        judged.found.seen = both.filter(
            pa.array(is_first | (np.arange(len(is_first)) < known))
        ).combine_chunks()
        return judged.turn_away(again, "DUPLICATE")
    judged.found.seen = seen
    return 0


def _numbers(column: Any) -> tuple[Longs, Mask | None]:
    """Return int64 values and where there is none; None when all are there."""
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(whole, pa.ChunkedArray):
        whole = pa.concat_arrays(whole.chunks) if whole.num_chunks else pa.array([], pa.int64())
    if not whole.null_count:
        return whole.to_numpy(), None
    return whole.fill_null(0).to_numpy(), whole.is_null().to_numpy(zero_copy_only=False)


def _either(one: Mask | None, other: Mask | None) -> Mask | None:
    if one is None or other is None:
        return other if one is None else one
    return one | other


def _nothing(rows: Any, batch: int) -> Segment:
    none = np.empty(0, dtype=np.int64)
    return Segment(hashes=none, times=none, rows=rows, batch=batch, order=none)


def _first(column: Any) -> Any:
    return column[0].as_py()


def _refused(code: str, task: SideTask, what: str, option: str, other: str) -> KernelProblem:
    return KernelProblem(
        code,
        f"{task.name} brings {what}",
        f"nothing of the batch is committed; mend the source, or let such rows pass by with '{option}' = '{other}'",
    )
