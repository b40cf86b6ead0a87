"""A join of one hour, fed a day of event time, holds about the rows of an hour."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from weft.streams.kernel.gate import Arrivals
from weft.streams.kernel.spec import FOREVER, NEVER, Clock, JoinTask, Reach, SideTask
from weft.streams.kernel.transition import empty_state, step

HOUR = 3_600_000_000
DELAY = 30_000_000
ROWS, BATCHES = 100_000, 900  # a batch is 100 seconds of event time
SCHEMA = pa.schema([("k0", pa.int64())])


def arrivals(keys: np.ndarray, times: np.ndarray) -> Arrivals:
    return Arrivals(hashes=pa.array(keys), times=pa.array(times), rows=pa.table([pa.array(keys)], schema=SCHEMA))


def test_a_day_through_a_join_of_one_hour_holds_the_rows_of_its_span() -> None:
    rng = np.random.default_rng(11)
    keys = rng.permutation(ROWS)
    left = np.sort(rng.integers(0, 24 * HOUR, ROWS))
    right = left + rng.integers(0, 50 * 60_000_000, ROWS)
    order = np.argsort(right)
    right_keys, right = keys[order], right[order]
    task = JoinTask(
        number=1,
        reach=Reach(kind="interval", lower=0, upper=HOUR),
        left=SideTask(name="orders", outer=True, raw=True),
        right=SideTask(name="shipments", outer=False, raw=True),
        keys=("k0",),
    )
    state = empty_state(task, SCHEMA, SCHEMA)
    mark, given, peak, stored = NEVER, 0, 0, 0
    ends = np.linspace(0, 25 * HOUR, BATCHES + 1)
    for batch in range(BATCHES):
        mine = slice(*np.searchsorted(left, ends[batch : batch + 2]))
        other = slice(*np.searchsorted(right, ends[batch : batch + 2]))
        stepped = step(
            task,
            state,
            arrivals(keys[mine], left[mine]),
            arrivals(right_keys[other], right[other]),
            Clock(left=mark, right=mark),
            batch=batch,
            watermark=mark,
            wall_clock=0,
        )
        state = stepped.state
        given += sum(out.num_rows for out in stepped.out)
        if ends[batch + 1] <= 24 * HOUR:  # after that one side is silent and time does not advance
            sides = (state.left, state.right)
            peak = max(peak, sum(side.stats.current_size for side in sides))
            stored = max(stored, sum(len(segment) for side in sides for segment in side.segments))
        times = [side.stats.max_time for side in (state.left, state.right)]
        if None not in times:
            mark = max(mark, min(t for t in times if t is not None) - DELAY)
    end = Clock(left=FOREVER, right=FOREVER)
    nothing = arrivals(keys[:0], left[:0])
    last = step(task, state, nothing, nothing, end, batch=BATCHES, watermark=mark, wall_clock=0)
    given += sum(out.num_rows for out in last.out)
    of_the_span = ROWS / 24
    assert peak <= 1.2 * of_the_span
    assert stored <= 2 * peak  # segments are rewritten when half of their rows are gone
    assert state.left.stats.peak_size >= 0.9 * of_the_span
    assert given == ROWS
    assert last.state.left.counters.matched == ROWS
    assert last.state.left.stats.current_size == last.state.right.stats.current_size == 0
