"""What listeners hear: windows that time has closed, sides by their names."""

from __future__ import annotations

from pathlib import Path

import pytest

from stream_checkpoints import SQL, small_plan
from weft.core.frozen import FrozenMap
from weft.streams.checkpoint.manifest import Manifest
from weft.streams.kernel.spec import FOREVER, NEVER, SideStats
from weft.streams.plan.resolve import plan_job
from weft.streams.plan.resolved import StatementPlan
from weft.streams.run.report import batch_report, count_windows, join_reports, source_names
from weft.streams.sql.lower import read_spec

BOUND = "AND s.t BETWEEN o.t AND o.t + INTERVAL '10' SECOND"
SECOND = 1_000_000


def windowed(window: str) -> StatementPlan:
    return plan_job(read_spec(SQL.replace(BOUND, window), file="w.sql"), Path("/nowhere")).statements[0]


def stats(first: int | None, last: int | None) -> SideStats:
    return SideStats(
        min_time=None if first is None else first * SECOND, max_time=None if last is None else last * SECOND
    )


@pytest.mark.parametrize(
    ("window", "clock", "wanted"),
    [
        ("WINDOW TUMBLING ('10s')", 9, (0, 4)),
        ("WINDOW TUMBLING ('10s')", 10, (1, 3)),
        ("WINDOW TUMBLING ('10s')", 25, (2, 2)),
        ("WINDOW TUMBLING ('10s')", None, (4, 0)),
        ("WINDOW SLIDING (SIZE '20s', SLIDE '10s')", 10, (1, 4)),
        ("WINDOW SLIDING (SIZE '20s', SLIDE '10s')", 20, (2, 3)),
        ("WINDOW SESSION ('10s')", 20, (0, 0)),
        (BOUND, 20, (0, 0)),
    ],
)
def test_windows_are_counted_from_the_first_row_on(window: str, clock: int | None, wanted: tuple[int, int]) -> None:
    (step,) = windowed(window).kernel_steps
    now = FOREVER if clock is None else clock * SECOND
    assert count_windows(step, stats(5, 31), stats(8, 39), now) == wanted


def test_no_window_is_counted_before_the_first_row() -> None:
    (step,) = windowed("WINDOW TUMBLING ('10s')").kernel_steps
    assert count_windows(step, stats(None, None), stats(None, None), NEVER) == (0, 0)
    assert count_windows(step, stats(5, 5), stats(None, None), NEVER) == (0, 1)


def test_a_report_of_a_statement_that_has_done_nothing_is_empty() -> None:
    plan = small_plan()
    (join,) = join_reports(plan, Manifest(batch=-1))
    assert (join.number, join.left, join.coordinator.matches_emitted) == (1, SideStats(), 0)
    reported = batch_report(plan, Manifest(batch=0, max_times=FrozenMap(o=5 * SECOND)))
    assert (reported.held_back_by, reported.left, reported.right) == ("s", SideStats(), SideStats())


def test_sides_are_called_by_their_streams() -> None:
    assert source_names(small_plan()) == {"left": "orders", "right": "shipments"}
