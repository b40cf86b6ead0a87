"""Idle sides are left out of the watermark, from the wall clock, and the decision is what a replay reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stream_checkpoints import SQL, START, order, run, shipment
from weft.core.crash import CRASH
from weft.core.duration import Duration
from weft.streams.checkpoint.manifest import read_heartbeat
from weft.streams.plan.clocks import collect_timeouts, find_idle_sides
from weft.streams.plan.resolve import plan_job
from weft.streams.plan.resolved import StatementPlan
from weft.streams.sql.lower import read_spec
from weft.testing.stream_engine import run_statement

SECOND = 1_000_000


def plan(orders: str = "", shipments: str = "") -> StatementPlan:
    """Return the small join, its streams with a timeout or without."""
    sql = SQL
    for name, given in (("orders", orders), ("shipments", shipments)):
        option = f", 'idle.timeout' = '{given}')" if given else ")"
        head, stream, rest = sql.partition(f"CREATE STREAM {name}")
        sql = head + stream + rest.replace("'5s')", f"'5s'{option}", 1)
    return plan_job(read_spec(sql, file="idle.sql"), Path("/nowhere")).statements[0]


def test_a_side_is_idle_when_it_showed_nothing_for_its_timeout() -> None:
    waiting = plan(shipments="10s")
    last = {"o": 100 * SECOND, "s": 100 * SECOND}
    assert find_idle_sides(waiting, last, started=0, now=110 * SECOND - 1) == {}
    assert find_idle_sides(waiting, last, started=0, now=110 * SECOND) == {"s": {"since": 100 * SECOND}}


def test_a_side_without_a_timeout_is_never_idle() -> None:
    assert find_idle_sides(plan(), {}, started=0, now=10**15) == {}
    assert collect_timeouts(plan()) == {}


def test_the_timeout_of_the_job_is_that_of_streams_that_say_none() -> None:
    given = plan(orders="1m")
    job = Duration.parse("10s")
    assert collect_timeouts(given, job) == {"o": 60 * SECOND, "s": 10 * SECOND}
    assert set(find_idle_sides(given, {}, started=0, now=30 * SECOND, default=job)) == {"s"}


def test_time_in_which_the_job_was_stopped_makes_nobody_idle() -> None:
    waiting = plan(shipments="10s")
    last = {"s": 100 * SECOND}
    assert find_idle_sides(waiting, last, started=5_000 * SECOND, now=5_009 * SECOND) == {}
    found = find_idle_sides(waiting, last, started=5_000 * SECOND, now=5_010 * SECOND)
    assert found == {"s": {"since": 5_000 * SECOND}}


def test_a_side_that_never_showed_a_row_is_idle_after_its_timeout() -> None:
    assert find_idle_sides(plan(shipments="10s"), {}, started=0, now=10 * SECOND) == {"s": {"since": 0}}


def test_a_clock_that_goes_back_makes_nobody_idle() -> None:
    assert find_idle_sides(plan(shipments="10s"), {"s": 100 * SECOND}, started=0, now=50 * SECOND) == {}


@pytest.mark.parametrize("crash", [False, True])
def test_the_watermark_moves_while_a_side_is_idle_and_is_judged_with_when_it_wakes(
    tmp_path: Path, *, crash: bool
) -> None:
    """The right side jumps: what it shows after its silence is late below the watermark it was left out of."""
    statement = plan(shipments="10s")
    batches: list[Any] = [
        {"orders": [order("a", 0)], "shipments": [shipment("a", 1)]},
        {"orders": [order("b", 100)]},
        {"orders": [order("c", 101)]},
        *([CRASH] if crash else []),
        {"shipments": [shipment("b", 50), shipment("b", 105)]},
    ]
    result = run_statement(statement, batches, root=tmp_path, groups=2, final=False, idle={2: ("s",), 3: ("s",)})
    start = int(START.timestamp()) * SECOND
    assert [mark and (mark - start) // SECOND for mark in result.marks] == [None, -5, 95, 96]
    assert result.ledger["right"]["late"] == 1
    assert [row["id"] for _, row in result.rows if row["shipped"] is not None] == ["a", "b"]
    beat = read_heartbeat(result.checkpoint, 3)
    assert beat is not None
    assert set(beat.idle) == {"s"}


def test_with_all_sides_idle_nothing_moves(tmp_path: Path) -> None:
    batches = [
        {"orders": [order("a", 0)], "shipments": [shipment("a", 1)]},
        {"orders": [order("b", 50)]},
        {},
        {},
    ]
    result = run_statement(plan("10s", "10s"), batches, root=tmp_path, groups=1, final=False, idle={3: ("o", "s")})
    assert result.marks[2] == result.marks[3]
    assert run(tmp_path / "other", final=False).marks[0] is None
