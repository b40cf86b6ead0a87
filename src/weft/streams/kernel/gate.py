"""The gate: which arriving rows enter the join, and which are rejected for which reason.

The checks run in a fixed order: malformed rows, rows without a time, late rows, duplicates; then rows
whose key or time is NULL, which match nothing and leave immediately.
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
from weft.streams.kernel.segments import Longs, Segment, build_segment, combine_column, combine_table
from weft.streams.kernel.spec import FOREVER, NEVER, KernelProblem, Reason, Side, SideTask


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RejectRows:
    """Rows of one side with one reason; `raw` is the text of malformed rows."""

    side: Side
    reason: Reason
    times: NDArray[np.int64]  # NEVER for rows without a time
    matched: NDArray[np.bool_]
    raw: Any
    rows: Any

    def __len__(self) -> int:
        return len(self.times)

    @classmethod
    def of(
        cls, side: Side, reason: Reason, segment: Segment, places: Longs, matched: NDArray[np.bool_] | None = None
    ) -> RejectRows:
        """Return rows of a segment; without `matched`, none of them had a match."""
        return cls(
            side=side,
            reason=reason,
            times=segment.times[places],
            matched=np.zeros(len(places), dtype=np.bool_) if matched is None else matched,
            raw=None,
            rows=segment.rows.take(pa.array(segment.places(places))),
        )


def reject_table(rejects: Sequence[RejectRows], *, batch: int, group: int, watermark: int) -> Any:
    """Return rejected rows of one side as the table that is stored in the checkpoint."""
    return pa.concat_tables([_build_table(one, batch, group, watermark) for one in rejects])


def _build_table(rejects: RejectRows, batch: int, group: int, watermark: int) -> Any:
    count = len(rejects)
    columns: dict[str, Any] = {
        "side": pa.array([rejects.side] * count, pa.string()),
        "reason": pa.array([rejects.reason] * count, pa.string()),
        "event_time": pa.array(rejects.times, pa.int64(), mask=rejects.times == NEVER),
        "watermark": pa.array([None if watermark == NEVER else watermark] * count, pa.int64()),
        "batch": pa.array([batch] * count, pa.int64()),
        "group": pa.array([group] * count, pa.int32()),
        "matched": pa.array(rejects.matched),
        "raw": pa.nulls(count, pa.string()) if rejects.raw is None else rejects.raw,
    }
    if rejects.rows.num_columns:  # Parquet has no struct without fields
        columns["row"] = combine_column(rejects.rows.combine_chunks().to_struct_array())
    return pa.table(columns)


Mask = NDArray[np.bool_]
_TIME = "__time"
ROUTE = "__route"
"""Column of `seen`: the hash by which the row was distributed, NULL in files of earlier versions."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Arrivals:
    """Rows of one side of one group, in any order.

    `hashes` and `times` are Arrow columns of int64: NULL means a NULL key, or no time.  `raw` holds the
    text of malformed rows and NULL for the others; None if no row is malformed.  `routes` are the hashes by which rows
    were distributed, also those with a NULL key; None if they are `hashes`.
    """

    hashes: Any
    times: Any
    rows: Any
    raw: Any = None
    routes: Longs | None = None

    def __len__(self) -> int:
        return len(self.hashes)


@dataclass(slots=True, eq=False)
class Admitted:
    """Rows of one side in the gate, and its result.

    `open` marks the rows that are not rejected so far, `segment` holds those that take part, `alone` are the positions
    of those that match nothing and leave immediately.
    """

    side: Side
    task: SideTask
    rows: Any
    raw: Any
    times: Longs
    routes: Longs
    open: Mask
    seen: Any
    segment: Segment = field(init=False)
    alone: Longs = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    rejects: list[RejectRows] = field(default_factory=list)
    late: int = 0
    rejected: int = 0
    missing_keys: int = 0
    missing_times: int = 0
    min_time: int | None = None
    max_time: int | None = None
    max_lateness: int = 0

    def reject(self, mask: Mask, reason: Reason, *, kept: bool = True) -> int:
        """Reject the open rows of a mask and return their number; only rows that are kept can be read later."""
        mask = mask & self.open
        places = np.flatnonzero(mask)
        if not len(places):
            return 0
        self.open &= ~mask
        if kept:
            index = pa.array(places)
            self.rejects.append(
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
    """Check the rows of one side; `timed` is False for joins with tables, which ignore time."""
    rows = combine_table(arrivals.rows)
    hashes, no_key = _to_numpy(arrivals.hashes)
    times, no_time = _to_numpy(arrivals.times)
    # The two ends of int64 are clocks, and NEVER also represents a missing time; no row may have them as its time.
    times = np.clip(times, NEVER + 1, FOREVER - 1) if len(times) else times
    if not timed and side == "right":
        no_time = np.ones(len(times), dtype=np.bool_)  # rows of a table have no time
    if no_time is not None:
        times = np.where(no_time, NEVER, times)
    gate = Admitted(
        side=side,
        task=task,
        rows=rows,
        raw=arrivals.raw,
        times=times,
        routes=hashes if arrivals.routes is None else arrivals.routes,
        open=np.ones(len(times), dtype=np.bool_),
        seen=seen,
    )
    if task.raw:  # rows from an earlier join passed the gate there
        _apply_policies(gate, no_time, timed=timed, watermark=watermark, wall_clock=wall_clock)
    gate.missing_keys = 0 if no_key is None else int(np.count_nonzero(no_key & gate.open))
    # A row from an outer join may lack its time, because it was filled with NULL; it is unmatched, not rejected.
    lonely = no_key
    if timed and not task.raw and no_time is not None:
        lonely = no_time if no_key is None else no_key | no_time
    if lonely is not None:
        gate.alone = np.flatnonzero(lonely & gate.open)
        gate.open &= ~lonely
    everything = bool(gate.open.all())
    kept = None if everything else np.flatnonzero(gate.open)
    gate.segment = build_segment(
        hashes if kept is None else hashes[kept], gate.times if kept is None else gate.times[kept], rows, kept, batch
    )
    return gate


def _apply_policies(gate: Admitted, no_time: Mask | None, *, timed: bool, watermark: int, wall_clock: int) -> None:
    task = gate.task
    if gate.raw is not None and gate.raw.null_count < len(gate.raw):
        unread = gate.raw.is_valid().to_numpy(zero_copy_only=False)
        if task.malformed == "fail":
            problem = f"a row that cannot be parsed: {gate.raw.drop_null()[0].as_py()!r}"
            raise _policy_error("W2208", task, problem, "malformed", "reject")
        gate.rejected += gate.reject(unread, "MALFORMED")
    if timed:
        # Before wall-clock times are filled in: the watermark follows the times that rows really have.
        times = gate.times[gate.open & (gate.times != NEVER)]
        gate.max_time = int(times.max()) if len(times) else None
        on_time = times[times >= watermark]
        gate.min_time = int(on_time.min()) if len(on_time) else None
        if no_time is not None:
            _apply_time_policy(gate, no_time, wall_clock)
        _apply_late_policy(gate, watermark)
    if task.dedup:
        gate.rejected += _reject_duplicates(gate, watermark, timed=timed)


def _apply_time_policy(gate: Admitted, no_time: Mask, wall_clock: int) -> None:
    task = gate.task
    no_time = no_time & gate.open
    count = int(np.count_nonzero(no_time))
    gate.missing_times = count
    if not count:
        return
    if task.missing_event_time == "fail":
        raise _policy_error(
            "W2207", task, f"{format_rows(count)} without event time", "join.missing_event_time", "reject"
        )
    if task.missing_event_time == "wall_clock":
        gate.times = np.where(no_time, wall_clock, gate.times)
    else:
        gate.rejected += gate.reject(no_time, "NO_EVENT_TIME")


def _apply_late_policy(gate: Admitted, watermark: int) -> None:
    task = gate.task
    if watermark == NEVER:
        return
    late = (gate.times < watermark) & gate.open
    if not late.any():
        return
    gate.max_lateness = watermark - int(gate.times[late].min())
    if task.late == "fail":
        problem = f"a row {gate.max_lateness / 1_000_000:g} s below the watermark"
        raise _policy_error("W2206", task, problem, "late", "side_output")
    gate.late += gate.reject(late, "LATE", kept=task.late == "side_output")


def _reject_duplicates(gate: Admitted, watermark: int, *, timed: bool) -> int:
    """Reject all but the first row of each key, by time and content; keys of earlier batches come first."""
    seen, places = gate.seen, np.flatnonzero(gate.open)
    names = list(gate.task.dedup)
    if seen is not None:
        # Keys before the watermark can be forgotten: a repetition of such a row would be late.
        seen = seen.filter(pc.greater_equal(seen.column(_TIME), watermark))
    if len(places):
        rows = gate.rows.take(pa.array(places))
        times = gate.times[places] if timed else np.full(len(places), NEVER)
        # The order of arrival differs between attempts; time and content do not.
        order = np.lexsort((rank_by_content(rows), times))
        mine = (
            rows.select(names).append_column(_TIME, pa.array(times)).append_column(ROUTE, pa.array(gate.routes[places]))
        )
        mine = mine.take(pa.array(order))
        both = mine if seen is None else pa.concat_tables([seen, mine])
        known = 0 if seen is None else seen.num_rows
        numbered = both.select(names).append_column("__place", pa.array(np.arange(both.num_rows)))
        firsts = pa.TableGroupBy(numbered, names, use_threads=False).aggregate([("__place", "min")])
        firsts = np.sort(firsts.column("__place_min").to_numpy())
        is_first = np.zeros(both.num_rows, dtype=np.bool_)
        is_first[firsts] = True
        again = np.zeros(len(gate.open), dtype=np.bool_)
        again[places[order[~is_first[known:]]]] = True
        gate.seen = both.filter(pa.array(is_first | (np.arange(len(is_first)) < known))).combine_chunks()
        return gate.reject(again, "DUPLICATE")
    gate.seen = seen
    return 0


def _to_numpy(column: Any) -> tuple[Longs, Mask | None]:
    """Return int64 values and a mask of the NULLs, which is None if there are none."""
    whole = combine_column(column)
    if not whole.null_count:
        return whole.to_numpy(), None
    return whole.fill_null(0).to_numpy(), whole.is_null().to_numpy(zero_copy_only=False)


def format_rows(count: int) -> str:
    """Return a number of rows for a message."""
    return f"{count:,} row{'' if count == 1 else 's'}"


def _policy_error(code: str, task: SideTask, what: str, option: str, other: str) -> KernelProblem:
    return KernelProblem(
        code,
        f"{task.name} has {what}",
        f"nothing of the batch is committed; correct the source, or allow such rows with '{option}' = '{other}'",
    )
