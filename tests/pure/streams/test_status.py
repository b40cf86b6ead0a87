"""Status is read from files alone: which side holds the watermark back, how full the state is, who runs it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from stream_checkpoints import BATCHES, SQL, at, order, run, shipment, small_plan
from weft.core.frozen import FrozenMap
from weft.front.sql.lower import read_spec
from weft.plan.streams.resolve import plan_job
from weft.plan.streams.resolved import StatementPlan
from weft.store.streams.checkpoint import Checkpoint, note_change, record_of
from weft.store.streams.lock import held
from weft.store.streams.processes import this_process
from weft.store.streams.status import SideStatus, facts, job_status, jobs, sides_of, statement_status
from weft.store.streams.supervisor import SupervisorFiles, SupervisorRecord, write_record
from weft.testing.stream_engine import run_statement

SECOND = 1_000_000
T0 = int(at(0).timestamp()) * SECOND


def known(checkpoint: Checkpoint, plan: StatementPlan | None = None) -> Checkpoint:
    """Return the checkpoint with the facts that a real run writes."""
    note_change(checkpoint, record_of(checkpoint).parts, facts(plan or small_plan()), "all")
    return checkpoint


def test_the_stream_that_holds_the_watermark_back_is_named(tmp_path: Path) -> None:
    batches = [{"orders": [order("a", 100)], "shipments": [shipment("a", 7)]}]
    told = statement_status(known(run(tmp_path, batches, final=False).checkpoint))
    assert (told.state, told.batches, told.rows) == ("stopped", 1, 0)
    assert told.held_back_by == "shipments"
    sides = {s.name: s for s in told.sides}
    assert sides["orders"].watermark == T0 + 95 * SECOND
    assert sides["shipments"].watermark == T0 + 2 * SECOND
    assert sides["orders"].state_rows == 1


def test_a_stream_that_has_shown_nothing_holds_it_back_most(tmp_path: Path) -> None:
    told = statement_status(known(run(tmp_path, [{"orders": [order("a", 0)]}], final=False).checkpoint))
    assert (told.watermark, told.held_back_by, told.held_since) == (None, "shipments", None)


def test_an_idle_side_holds_nothing_back(tmp_path: Path) -> None:
    batches = [{"orders": [order("a", 100)], "shipments": [shipment("a", 7)]}, {"orders": [order("b", 101)]}]
    result = run_statement(small_plan(), batches, root=tmp_path, groups=1, final=False, idle={1: ("s",)})
    told = statement_status(known(result.checkpoint))
    assert told.held_back_by == "orders"
    assert [s.name for s in told.sides if s.idle_since is not None] == ["shipments"]


def test_a_sealed_statement_waits_for_nobody_and_its_ledger_is_told(tmp_path: Path) -> None:
    told = statement_status(known(run(tmp_path).checkpoint))
    assert (told.state, told.held_back_by, told.watermark) == ("sealed", None, None)
    assert told.ledger["left"] == run(tmp_path / "again").ledger["left"]
    assert told.ledger["left"]["waiting"] == 0


def test_a_statement_whose_lock_is_held_runs(tmp_path: Path) -> None:
    checkpoint = known(run(tmp_path, BATCHES[:1], final=False).checkpoint)
    with held(checkpoint.lock, "status"):
        told = statement_status(checkpoint)
        assert (told.state, told.pid) == ("running", this_process().pid)
    assert statement_status(checkpoint).state == "stopped"


@pytest.mark.parametrize(("rows", "fill", "warns"), [(7, 70, 0), (8, 80, 1), (10, 100, 1), (11, 110, 1)])
def test_a_side_close_to_its_limit_is_warned_of(rows: int, fill: int, warns: int, tmp_path: Path) -> None:
    side = SideStatus(side="left", name="orders", state_rows=rows, limit=10)
    assert side.fill == fill
    told = replace(statement_status(known(run(tmp_path, BATCHES[:1]).checkpoint)), sides=(side,))
    assert len(told.warnings) == warns
    assert all(f"{fill} %" in sentence for sentence in told.warnings)
    assert SideStatus(side="left", name="orders", state_rows=rows).fill is None


def test_limits_come_from_the_plan(tmp_path: Path) -> None:
    sql = SQL.rstrip() + " WITH ('join.max_state_rows' = '50')"
    plan = plan_job(read_spec(sql, file="limits.sql"), tmp_path).statements[0]
    result = run_statement(plan, BATCHES[:1], root=tmp_path, groups=1, final=False)
    told = statement_status(known(result.checkpoint, plan))
    assert {s.limit for s in told.sides} == {50}


def test_a_stream_that_is_read_twice_is_told_with_its_alias() -> None:
    sql = SQL.replace("JOIN shipments s", "JOIN orders s").replace("s.t AS", "s.total AS")
    plan = plan_job(read_spec(sql, file="self.sql"), Path("/nowhere")).statements[0]
    assert sides_of(plan) == {"left": "orders o", "right": "orders s"}


def test_the_state_of_a_job_is_that_of_its_processes_and_statements(tmp_path: Path) -> None:
    folder = tmp_path / "streams"
    known(run(tmp_path, BATCHES[:1], final=False).checkpoint)
    files = SupervisorFiles(folder)
    assert job_status("job", folder).state == "stopped"
    me = this_process()
    gone = SupervisorRecord(job="job", state="running", pid=2**22 + 1, began="1", since=0, restarts=(1, 2))
    write_record(files, gone)
    assert (job_status("job", folder).state, job_status("job", folder).restarts) == ("stopped", 2)
    error: FrozenMap[str, str] = FrozenMap(code="W2217", message="it fell", help="see")
    write_record(files, replace(gone, state="failed", error=error))
    told = job_status("job", folder)
    assert (told.state, told.error, told.statements[0].state) == ("failed", error, "failed")
    write_record(files, replace(gone, pid=me.pid, began=me.began, child_pid=me.pid, child_began=me.began))
    told = job_status("job", folder)
    assert (told.state, told.pid, told.supervisor) == ("running", me.pid, me.pid)
    assert [s.name for s in told.statements] == ["status"]


def test_jobs_are_listed_by_their_folders(tmp_path: Path) -> None:
    assert jobs(tmp_path / "none") == ()
    for name in ("b", "a", ".hidden"):
        (tmp_path / name).mkdir()
    assert jobs(tmp_path) == ("a", "b")
