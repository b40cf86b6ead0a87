from __future__ import annotations

import datetime as dt
import itertools
import os

import pytest

from store_values import NOW, counts, lock, new_run, output, project, registration
from weft.errors import RunError, StoreError
from weft.joins.facts import JoinCounts
from weft.pipelines.store.column_types import snapshot_fingerprint
from weft.pipelines.store.locks import this_process
from weft.pipelines.store.records import RunFailure
from weft.pipelines.store.tables import RUNS
from weft.pipelines.store.writer import Store

FAILURE = RunFailure(operation_order=20, code="W1513", message="division by zero", detail="at row 3")


def test_a_run_lives_from_queued_to_completed(store: Store) -> None:
    new = new_run(sandbox=True, parent_run_id="parent", rerun_of="first")
    queued = store.create_run(new)
    assert (queued.status, queued.attempt, queued.started_at, queued.completed_at) == (
        "queued",
        1,
        None,
        None,
    )
    assert (queued.project_id, queued.project_name, queued.project_version) == (
        "pr-fx_reporting",
        "fx_reporting",
        1,
    )
    assert (queued.period, queued.level, queued.sandbox) == ("2026-01", "month", True)
    assert (queued.known_at, queued.run_at, queued.trigger, queued.triggered_by) == (
        NOW,
        NOW,
        "manual",
        "ann",
    )
    assert (queued.parent_run_id, queued.rerun_of, queued.host, queued.pid) == (
        "parent",
        "first",
        new.host,
        new.pid,
    )
    running = store.set_running(queued.id)
    assert running.status == "running"
    assert running.started_at is not None
    done = store.complete(queued.id)
    assert (done.status, done.failure) == ("completed", None)
    assert done.completed_at is not None
    assert done.completed_at >= running.started_at
    assert done.seconds == (done.completed_at - running.started_at).total_seconds()
    assert store.run(queued.id) == done


def test_every_time_is_the_one_of_the_clock(store: Store) -> None:
    ticks = itertools.count()
    store.clock = lambda: NOW + dt.timedelta(seconds=next(ticks))
    run = store.create_run(new_run())
    started = store.set_running(run.id).started_at
    store.operation_done(run.id, counts(10))
    store.operation_started(run.id, 20)
    store.operation_done(run.id, counts(20))
    ended = store.complete(run.id).completed_at
    first, second = store.operations(run.id)
    times = (
        run.created_at,
        started,
        first.started_at,
        first.completed_at,
        second.started_at,
        second.completed_at,
        ended,
    )
    assert [(at - NOW).total_seconds() for at in times if at is not None] == [0, 1, 2, 2, 3, 4, 5]


def test_operations_are_pending_until_they_are_counted(store: Store) -> None:
    run = store.create_run(new_run())
    assert [(o.seq, o.name, o.type, o.status) for o in store.operations(run.id)] == [
        (10, "Mark", "update", "pending"),
        (20, "Write", "output", "pending"),
    ]
    store.set_running(run.id)
    store.operation_started(run.id, 10)
    assert store.operations(run.id)[0].status == "running"
    store.operation_done(run.id, counts(10, 12, 11, 7, (JoinCounts(alias="fx", matched=5, unmatched=1, multiple=1),)))
    first, second = store.operations(run.id)
    assert (first.status, first.rows_in, first.rows_out, first.rows_changed) == ("completed", 12, 11, 7)
    assert first.joins == (JoinCounts(alias="fx", matched=5, unmatched=1, multiple=1),)
    assert first.started_at is not None
    assert first.completed_at is not None
    assert second.status == "pending"
    assert store.run(run.id).last_completed_operation == 10


def test_the_last_completed_operation_never_goes_back(store: Store) -> None:
    run = store.create_run(new_run())
    for seq in (20, 10):
        store.operation_done(run.id, counts(seq))
    assert store.run(run.id).last_completed_operation == 20


def test_outputs_are_published_together_with_the_end_of_the_run(store: Store) -> None:
    run = store.create_run(new_run())
    store.set_running(run.id)
    first, second = output(run.id, 20), output(run.id, 30, target="out/other", register_as="gl_usd")
    store.output_staged(first)
    store.output_staged(second)
    assert store.outputs(run.id) == (first, second)
    store.begin_publish(run.id, [first, second])
    assert {o.state for o in store.outputs(run.id)} == {"publishing"}
    assert {lock.name for lock in store.locks(run.id)} == {
        "run/pr-fx_reporting/2026-01", "publish/out/period=2026-01", "publish/out/other",
    }  # fmt: skip
    store.complete(run.id, [registration(seq=30)])
    assert {o.state for o in store.outputs(run.id)} == {"published"}
    assert store.locks() == ()
    assert len(store.registered()) == 1


def test_nothing_is_registered_when_the_run_cannot_be_completed(store: Store) -> None:
    run = store.create_run(new_run())  # queued, never running
    with pytest.raises(RunError) as refused:
        store.complete(run.id, [registration()])
    assert refused.value.code == "W1102"
    assert store.registered() == ()
    assert store.run(run.id).status == "queued"


def test_a_failed_run_says_why_and_keeps_what_it_staged(store: Store) -> None:
    run = store.create_run(new_run())
    store.set_running(run.id)
    store.operation_done(run.id, counts(10))
    store.output_staged(output(run.id))
    failed = store.fail(run.id, FAILURE)
    assert (failed.status, failed.failure) == ("failed", FAILURE)
    assert [o.status for o in store.operations(run.id)] == ["completed", "failed"]
    assert [o.state for o in store.outputs(run.id)] == ["staged"]
    assert store.locks() == ()


def test_a_failed_run_goes_on_as_the_same_run(store: Store) -> None:
    run = store.create_run(new_run())
    store.set_running(run.id)
    store.operation_done(run.id, counts(10))
    store.fail(run.id, FAILURE)
    again = store.resume(run.id)
    assert (again.id, again.status, again.attempt, again.failure) == (run.id, "running", 2, None)
    assert (again.last_completed_operation, again.run_at, again.snapshot_sha) == (
        10,
        run.run_at,
        run.snapshot_sha,
    )
    assert [o.status for o in store.operations(run.id)] == ["completed", "pending"]
    assert lock(store, "run/pr-fx_reporting/2026-01") is not None
    assert store.resume(run.id).attempt == 2  # requested twice, done once
    assert store.complete(run.id).status == "completed"


def test_only_a_run_that_failed_or_was_cancelled_can_be_resumed(store: Store) -> None:
    queued, done = (store.create_run(new_run(period=p)) for p in ("2026-01", "2026-02"))
    store.set_running(done.id)
    store.complete(done.id)
    codes = {}
    for run in (queued, done):
        with pytest.raises(RunError) as refused:
            store.resume(run.id)
        codes[run.id] = refused.value.code
    assert codes == {queued.id: "W1504", done.id: "W1503"}


def test_a_cancelled_run_starts_over_as_the_same_run(store: Store) -> None:
    run = store.create_run(new_run())
    store.set_running(run.id)
    store.operation_done(run.id, counts(10))
    store.output_staged(output(run.id))
    store.cancel(run.id)
    store.mark_stopped(run.id)
    resumed = store.resume(run.id)
    assert (resumed.status, resumed.attempt, resumed.last_completed_operation) == ("running", 2, None)
    # What it had staged is thrown away, so nothing of it counts as done.
    assert {step.status for step in store.operations(run.id)} == {"pending"}
    assert [o.state for o in store.outputs(run.id)] == ["discarded"]
    assert store.complete(run.id).status == "completed"


@pytest.mark.parametrize("own", [True, False])
def test_a_cancelled_run_waits_for_its_process_to_stop(store: Store, *, own: bool) -> None:
    # The parent of this process is alive; another host cannot be asked and is waited for.
    host = this_process()[0] if own else "elsewhere"
    run = store.create_run(new_run(host=host, pid=os.getppid()))
    store.set_running(run.id)
    store.cancel(run.id)
    other = Store(store.database)
    assert other.is_stopping(run.id)
    with pytest.raises(RunError, match="has not stopped yet") as refused:
        other.resume(run.id)
    assert refused.value.code == "W1504"
    store.mark_stopped(run.id)
    assert not other.is_stopping(run.id)
    assert other.resume(run.id).attempt == 2


def test_a_cancelled_run_discards_its_outputs_and_frees_its_locks(store: Store) -> None:
    run = store.create_run(new_run())
    store.set_running(run.id)
    store.output_staged(output(run.id))
    cancelled = store.cancel(run.id)
    assert (cancelled.status, store.cancel(run.id).status) == ("cancelled", "cancelled")
    assert [o.state for o in store.outputs(run.id)] == ["discarded"]
    assert store.locks() == ()


def test_a_run_that_publishes_cannot_be_cancelled(store: Store) -> None:
    run = store.create_run(new_run())
    store.set_running(run.id)
    store.begin_publish(run.id, [output(run.id)])
    with pytest.raises(RunError, match="is publishing") as refused:
        store.cancel(run.id)
    assert refused.value.code == "W1102"
    assert store.complete(run.id).status == "completed"


def test_a_run_that_has_ended_stays_as_it_is(store: Store) -> None:
    run = store.create_run(new_run())
    store.set_running(run.id)
    done = store.complete(run.id)
    assert store.complete(run.id) == done
    assert store.fail(run.id, FAILURE) == done
    with pytest.raises(RunError):
        store.cancel(run.id)
    with pytest.raises(RunError):
        store.set_running(run.id)
    assert store.run(run.id) == done


def test_creating_a_run_twice_creates_it_once(store: Store) -> None:
    new = new_run()
    assert store.create_run(new) == store.create_run(new)
    assert len(store.runs()) == 1


def test_the_snapshot_reads_back_as_it_was_written(store: Store) -> None:
    new = new_run(snapshot={"b": [1, {"$filter": None}], "a": "größe", "inputs": {"input": {"rows": 3}}})
    run = store.create_run(new)
    assert store.snapshot(run.id) == new.snapshot
    assert run.snapshot_sha == snapshot_fingerprint(new.snapshot)
    assert store.inputs(run.id) == {"input": {"rows": 3}}


def test_a_snapshot_that_was_tampered_with_is_found_out(store: Store) -> None:
    from sqlalchemy import update

    from weft.pipelines.store.tables import RUN_SNAPSHOTS

    run = store.create_run(new_run())
    store.database.write(lambda c: c.execute(update(RUN_SNAPSHOTS).values(body='{"a":1}')))
    with pytest.raises(StoreError, match="its hash differs") as found:
        store.snapshot(run.id)
    assert found.value.code == "W1602"


def test_runs_with_one_snapshot_share_it_and_the_last_takes_it_away(store: Store) -> None:
    first = new_run()
    second = new_run(period="2026-02", snapshot=first.snapshot)
    for run in (first, second):
        store.create_run(run)
        store.set_running(run.run_id)
        store.complete(run.run_id)
    store.remove_run(first.run_id)
    assert store.snapshot(second.run_id) == first.snapshot
    store.remove_run(second.run_id)
    store.remove_run(second.run_id)  # gone is gone
    assert store.runs() == ()
    assert (store.operations(first.run_id), store.outputs(first.run_id)) == ((), ())


def test_a_run_at_work_cannot_be_removed(store: Store) -> None:
    run = store.create_run(new_run())
    with pytest.raises(RunError, match="is queued") as refused:
        store.remove_run(run.id)
    assert "runs cancel" in refused.value.help
    assert store.run(run.id) == run


def test_runs_are_listed_newest_first_and_by_what_is_asked(store: Store) -> None:
    tick = iter(range(100))
    store.clock = lambda: NOW + dt.timedelta(seconds=next(tick))
    a, b = project("a"), project("b")
    first, second, third = (
        store.create_run(new_run(of, period)) for of, period in ((a, "2026-01"), (b, "2026-01"), (a, "2026-02"))
    )
    store.cancel(second.id)
    assert [r.id for r in store.runs()] == [third.id, second.id, first.id]
    assert [r.id for r in store.runs(project="a")] == [third.id, first.id]
    assert [r.id for r in store.runs(project="pr-a", period="2026-01")] == [first.id]
    assert [r.id for r in store.runs(status="cancelled")] == [second.id]
    assert [r.id for r in store.runs(limit=1)] == [third.id]
    assert store.run("LAST").id == third.id


def test_a_run_is_found_by_a_start_that_only_it_has(store: Store) -> None:
    first = store.create_run(new_run(run_id="019a-aaaa"))
    second = store.create_run(new_run(run_id="019a-aabb", period="2026-02"))
    assert store.run("019a-aaa").id == first.id
    assert store.run("019a-aaaa").id == first.id
    assert store.run("019a-aab").id == second.id
    with pytest.raises(StoreError, match="prefix of 2 runs") as ambiguous:
        store.run("019a")
    assert ambiguous.value.code == "W1607"
    assert "019a-aaaa (fx_reporting 2026-01)" in ambiguous.value.help


@pytest.mark.parametrize("given", ["", "%", "019a_", "f", "LAST"])
def test_a_run_that_is_not_there_is_reported(store: Store, given: str) -> None:
    with pytest.raises(StoreError) as empty:
        store.run(given)
    assert (empty.value.code, empty.value.help) == ("W1606", "there are no runs yet")
    store.create_run(new_run(run_id="019a-aaaa"))
    if given != "LAST":
        with pytest.raises(StoreError) as missing:
            store.run(given)
        assert "019a-aaaa (fx_reporting 2026-01)" in missing.value.help


def test_a_discarded_output_stays_discarded_when_its_run_completes(store: Store) -> None:
    run = store.create_run(new_run())
    store.set_running(run.id)
    store.output_staged(output(run.id, 20))
    store.output_staged(output(run.id, 30, state="discarded"))
    store.complete(run.id)
    assert [(o.seq, o.state) for o in store.outputs(run.id)] == [(20, "published"), (30, "discarded")]


def test_a_process_that_stopped_says_nothing_of_a_run_that_another_resumed_and_cancelled(store: Store) -> None:
    run = store.create_run(new_run())
    store.cancel(run.id)
    store.database.write(lambda c: c.execute(RUNS.update().values(host="elsewhere", pid=7)))
    store.mark_stopped(run.id)
    assert (store.run(run.id).host, store.run(run.id).pid) == ("elsewhere", 7)
