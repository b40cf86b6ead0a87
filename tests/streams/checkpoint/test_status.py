"""Status is read from files alone: which side holds the watermark back, how full the state is, who runs it."""

from __future__ import annotations

import datetime as dt
import json
import shutil
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from stream_checkpoints import BATCHES, SQL, at, on_disk, order, run, shipment, small_plan
from weft.core.frozen import FrozenMap
from weft.errors import StreamError
from weft.streams.checkpoint.folder import Checkpoint, read_job_record, record_change, write_document
from weft.streams.checkpoint.lease import lock_statement
from weft.streams.checkpoint.lock import this_process
from weft.streams.checkpoint.status import (
    SideStatus,
    list_jobs,
    name_sides,
    plan_facts,
    read_job_status,
    read_statement_status,
)
from weft.streams.checkpoint.supervisor import SupervisorFiles, SupervisorRecord, find_keeper, read_record, write_record
from weft.streams.plan.resolve import plan_job
from weft.streams.plan.resolved import StatementPlan
from weft.streams.sql.lower import read_spec
from weft.testing.stream_engine import run_statement

SECOND = 1_000_000
T0 = int(at(0).timestamp()) * SECOND


def known(checkpoint: Checkpoint, plan: StatementPlan | None = None) -> Checkpoint:
    """Return the checkpoint with the facts that a real run writes."""
    record_change(checkpoint, read_job_record(checkpoint).parts, plan_facts(plan or small_plan()), "all")
    return checkpoint


def test_the_stream_that_holds_the_watermark_back_is_named(tmp_path: Path) -> None:
    batches = [{"orders": [order("a", 100)], "shipments": [shipment("a", 7)]}]
    reported = read_statement_status(known(run(tmp_path, batches, final=False).checkpoint))
    assert (reported.state, reported.batches, reported.rows) == ("stopped", 1, 0)
    assert reported.held_back_by == "shipments"
    sides = {s.name: s for s in reported.sides}
    assert sides["orders"].watermark == T0 + 95 * SECOND
    assert sides["shipments"].watermark == T0 + 2 * SECOND
    assert sides["orders"].state_rows == 1


def test_a_stream_that_has_shown_nothing_holds_it_back_most(tmp_path: Path) -> None:
    reported = read_statement_status(known(run(tmp_path, [{"orders": [order("a", 0)]}], final=False).checkpoint))
    assert (reported.watermark, reported.held_back_by, reported.held_since) == (None, "shipments", None)


def test_an_idle_side_holds_nothing_back(tmp_path: Path) -> None:
    batches = [{"orders": [order("a", 100)], "shipments": [shipment("a", 7)]}, {"orders": [order("b", 101)]}]
    result = run_statement(small_plan(), batches, root=tmp_path, groups=1, final=False, idle={1: ("s",)})
    reported = read_statement_status(known(result.checkpoint))
    assert reported.held_back_by == "orders"
    assert [s.name for s in reported.sides if s.idle_since is not None] == ["shipments"]


def test_a_sealed_statement_waits_for_nothing_and_its_ledger_is_shown(tmp_path: Path) -> None:
    reported = read_statement_status(known(run(tmp_path).checkpoint))
    assert (reported.state, reported.held_back_by, reported.watermark) == ("sealed", None, None)
    assert reported.ledger["left"] == run(tmp_path / "again").ledger["left"]
    assert reported.ledger["left"]["waiting"] == 0


def test_a_statement_whose_lock_is_held_runs(tmp_path: Path) -> None:
    checkpoint = known(run(tmp_path, BATCHES[:1], final=False).checkpoint)
    with lock_statement(checkpoint.lock, "status"):
        reported = read_statement_status(checkpoint)
        assert (reported.state, reported.pid) == ("running", this_process().pid)
    assert read_statement_status(checkpoint).state == "stopped"


@pytest.mark.parametrize(("rows", "fill", "warns"), [(7, 70, 0), (8, 80, 1), (10, 100, 1), (11, 110, 1)])
def test_a_side_close_to_its_limit_is_warned_of(rows: int, fill: int, warns: int, tmp_path: Path) -> None:
    side = SideStatus(side="left", name="orders", state_rows=rows, limit=10)
    assert side.fill == fill
    reported = replace(read_statement_status(known(run(tmp_path, BATCHES[:1]).checkpoint)), sides=(side,))
    assert len(reported.warnings) == warns
    assert all(f"{fill} %" in sentence for sentence in reported.warnings)
    assert SideStatus(side="left", name="orders", state_rows=rows).fill is None


def test_limits_come_from_the_plan(tmp_path: Path) -> None:
    sql = SQL.rstrip() + " WITH ('join.max_state_rows' = '50')"
    plan = plan_job(read_spec(sql, file="limits.sql"), tmp_path).statements[0]
    result = run_statement(plan, BATCHES[:1], root=tmp_path, groups=1, final=False)
    reported = read_statement_status(known(result.checkpoint, plan))
    assert {s.limit for s in reported.sides} == {50}


def test_a_stream_that_is_read_twice_is_shown_with_its_alias() -> None:
    sql = SQL.replace("JOIN shipments s", "JOIN orders s").replace("s.t AS", "s.total AS")
    plan = plan_job(read_spec(sql, file="self.sql"), Path("/nowhere")).statements[0]
    assert name_sides(plan) == {"left": "orders o", "right": "orders s"}


def test_the_state_of_a_job_is_that_of_its_processes_and_statements(tmp_path: Path) -> None:
    folder = tmp_path / "streams"
    known(run(tmp_path, BATCHES[:1], final=False).checkpoint)
    files = SupervisorFiles(folder)
    assert read_job_status("job", folder).state == "stopped"
    gone = SupervisorRecord(job="job", state="stopped", pid=2**22 + 1, began="1", since=0, restarts=(1, 2))
    write_record(files, gone)
    assert (read_job_status("job", folder).state, read_job_status("job", folder).restarts) == ("stopped", 2)
    error: FrozenMap[str, str] = FrozenMap(code="W2217", message="it fell", help="see")
    write_record(files, replace(gone, state="failed", error=error))
    reported = read_job_status("job", folder)
    assert (reported.state, reported.error, reported.statements[0].state) == ("failed", error, "failed")


def test_a_job_runs_while_its_lock_is_held_whatever_its_record_says(tmp_path: Path) -> None:
    files = SupervisorFiles(tmp_path)
    gone = SupervisorRecord(job="job", state="stopped", pid=2**22 + 1, began="1", since=0)
    for record in (None, gone, replace(gone, state="failed"), replace(gone, state="running")):
        if record is not None:
            write_record(files, record)
        with lock_statement(files.lock, "job"):
            reported = read_job_status("job", tmp_path)
            assert (reported.state, reported.supervisor, reported.is_orphan) == ("running", this_process().pid, False)
    # The lock is held, and not by the process that is named in it: the child of a supervisor that was killed.
    with lock_statement(files.lock, "job"):
        files.lock.write_text(json.dumps({"host": socket.gethostname(), "pid": 1, "began": "1"}))
        reported = read_job_status("job", tmp_path)
        assert (reported.state, reported.supervisor, reported.is_orphan) == ("running", None, True)


def test_a_job_that_was_killed_is_failed_with_a_code(tmp_path: Path) -> None:
    me, files = this_process(), SupervisorFiles(tmp_path)
    killed = SupervisorRecord(job="a b", state="running", pid=me.pid, began="1", since=0)
    for record in (
        killed,
        replace(killed, state="waiting"),
        replace(killed, child_pid=me.pid, child_began="1"),
    ):
        write_record(files, record)
        reported = read_job_status("a b", tmp_path)
        assert (reported.state, reported.pid, reported.supervisor) == ("failed", None, None)
        assert reported.error is not None
        assert reported.error["code"] == "W2225"
        assert "`weft stream start 'a b'`" in reported.error["help"]


def test_every_flipped_bit_of_a_record_is_noticed_and_hides_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "streams"
    known(run(tmp_path, BATCHES[:1], final=False).checkpoint)
    files = SupervisorFiles(folder)
    me = this_process()
    record = SupervisorRecord(
        job="job", state="stopped", pid=me.pid, began=me.began, since=7, child_pid=5, restarts=(1, 2)
    )
    write_record(files, record)
    whole = files.record.read_bytes()
    damaged = [bytes((*whole[:i], byte ^ (1 << i % 8), *whole[i + 1 :])) for i, byte in enumerate(whole)]
    for text in (b"", b"{", b"[]", b"null", b"{}", b"\xff", whole[:-20], *damaged):
        files.record.write_bytes(text)
        try:
            assert read_record(files) == record  # a changed space, say
        except StreamError as refused:
            assert refused.code == "W2226"
            reported = read_job_status("job", folder)
            assert [(p.code, p.severity) for p in reported.problems] == [("W2226", "warning")]
            assert (reported.state, [s.name for s in reported.statements]) == ("stopped", ["status"])


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("job", 5),
        ("began", 5),
        ("child_began", None),
        ("pid", "7"),
        ("pid", True),
        ("restarts", ["1"]),
        ("state", "gone"),
    ],
)
def test_a_record_with_a_value_of_another_type_is_damaged(tmp_path: Path, key: str, value: object) -> None:
    files = SupervisorFiles(tmp_path)
    record = SupervisorRecord(job="job", state="stopped", pid=7, began="1", since=7)
    write_document(files.record, {**record.to_dict(), key: value})
    with pytest.raises(StreamError, match="its values have other types") as caught:
        read_record(files)
    assert caught.value.code == "W2226"


def test_a_damaged_checkpoint_hides_no_other_statement_and_no_other_job(tmp_path: Path) -> None:
    folder = tmp_path / "streams"
    checkpoint = known(run(tmp_path, BATCHES[:1], final=False).checkpoint)
    shutil.copytree(on_disk(checkpoint.root).parent, folder / "other")
    (folder / "other" / "current.json").write_text("{")
    reported = read_job_status("job", folder)
    assert [s.name for s in reported.statements] == ["status"]
    assert [(p.code, p.severity) for p in reported.problems] == [("W2202", "error")]


def test_jobs_are_listed_by_their_folders(tmp_path: Path) -> None:
    assert list_jobs(tmp_path / "none") == ()
    for name in ("b", "a", ".hidden"):
        (tmp_path / name).mkdir()
    assert list_jobs(tmp_path) == ("a", "b")


def test_a_stream_without_rows_holds_the_watermark_back_more_than_one_with_times_before_1970(tmp_path: Path) -> None:
    old = {"id": "a", "total": 1, "t": dt.datetime(1969, 1, 1, tzinfo=dt.UTC)}
    reported = read_statement_status(known(run(tmp_path, [{"orders": [old]}], final=False).checkpoint))
    assert (reported.watermark, reported.held_back_by) == (None, "shipments")


def test_a_job_whose_lock_is_held_is_not_reported_as_killed(tmp_path: Path) -> None:
    files, me = SupervisorFiles(tmp_path), this_process()
    record = SupervisorRecord(job="job", state="running", pid=me.pid, began=me.began, since=0)
    write_record(files, record)
    with lock_statement(files.lock, "job"):
        reported = read_job_status("job", tmp_path)
        assert (reported.state, reported.error) == ("running", None)


def test_only_a_record_without_a_lock_of_its_own_proves_that_a_supervisor_runs(tmp_path: Path) -> None:
    files, me = SupervisorFiles(tmp_path), this_process()
    record = SupervisorRecord(job="job", state="running", pid=me.pid, began=me.began, since=0)
    write_record(files, record)
    assert (record.alive, find_keeper(files)) == (None, None)
    earlier = replace(record, format=1)
    write_record(files, earlier)
    assert earlier.alive == me
    assert find_keeper(files) is not None
