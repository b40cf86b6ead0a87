from __future__ import annotations

import datetime as dt
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import text, update
from sqlalchemy.exc import OperationalError

from store_values import NOW, counts, lock, new_run, output, project
from weft.errors import RunError
from weft.pipelines.store import locks
from weft.pipelines.store.open import open_store
from weft.pipelines.store.records import LeaseRecord
from weft.pipelines.store.tables import LOCKS
from weft.pipelines.store.writer import Store

TESTS = Path(__file__).parents[2]
LOCK = "run/pr-fx_reporting/2026-01"
LEASE = LeaseRecord(name=LOCK, run_id="r", owner="ann", host="build-3", pid=7, acquired_at=NOW, heartbeat_at=NOW)


def later(seconds: float) -> Callable[[], dt.datetime]:
    return lambda: NOW + dt.timedelta(seconds=seconds)


def dead(pid: int) -> bool:
    return pid < 0


def living(pid: int) -> bool:
    return pid > 0


@contextmanager
def starters(url: str, root: Path, *runs: str) -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that have opened the store and wait for a line to begin a run each."""
    processes = [
        subprocess.Popen(
            [sys.executable, str(TESTS / "store_process.py"), url, str(root), run],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": f"{TESTS}:{TESTS.parent / 'src'}"},
        )
        for run in runs
    ]
    try:
        assert [line(process) for process in processes] == ["ready"] * len(runs)
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def begin(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


@pytest.mark.parametrize(
    ("host", "alive", "silent", "why"),
    [
        ("build-3", living, 60, ""),
        ("build-3", living, 61, "it was not renewed for 61 s"),
        ("build-3", dead, 0, "its process 7 has ended"),
        ("build-4", dead, 60, ""),  # nobody can see a process of another host
        ("build-4", dead, 75, "it was not renewed for 75 s"),
    ],
)
def test_a_lease_is_stale_when_its_process_is_gone_or_silent(
    host: str, alive: Callable[[int], bool], silent: float, why: str
) -> None:
    assert locks.stale(LEASE, later(silent)(), host, alive) == why


def test_this_process_is_alive_and_one_that_ended_is_not() -> None:
    process = subprocess.Popen([sys.executable, "-c", "pass"])
    assert locks.is_alive(os.getpid())
    process.wait()
    assert not locks.is_alive(process.pid)
    assert not locks.is_alive(2**60)


def test_a_process_that_ended_and_was_not_reaped_is_not_alive() -> None:
    process = subprocess.Popen([sys.executable, "-c", "pass"])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert not locks.is_alive(process.pid)
    process.wait()


def test_one_run_of_a_project_and_period_at_a_time(store: Store) -> None:
    run = store.create_run(new_run(host="build-3", pid=7))
    with pytest.raises(RunError) as refused:
        store.create_run(new_run(triggered_by="bob"))
    assert refused.value.code == "W1501"
    assert "of fx_reporting for 2026-01 is running: started" in refused.value.message
    assert "by ann on build-3 (pid 7)" in refused.value.message
    assert f"weft runs cancel {run.id[:13]}" in refused.value.help
    assert [r.id for r in store.runs()] == [run.id]  # the refused run left nothing


def test_other_periods_projects_and_the_sandbox_are_free(store: Store) -> None:
    store.create_run(new_run())
    store.create_run(new_run(period="2026-02"))
    store.create_run(new_run(project("other")))
    store.create_run(new_run(sandbox=True))
    assert [lock.name for lock in store.locks()] == [
        "run/pr-fx_reporting/2026-01",
        "run/pr-fx_reporting/2026-02",
        "run/pr-other/2026-01",
        "sandbox/pr-fx_reporting/2026-01",
    ]


def test_the_lock_is_free_when_the_run_has_ended(store: Store) -> None:
    for _ in range(2):
        run = store.create_run(new_run())
        store.set_running(run.id)
        store.complete(run.id)
    assert lock(store, LOCK) is None


def test_a_silent_run_is_given_up_and_its_lock_taken_over(store: Store) -> None:
    store.clock = later(0)
    old = store.create_run(new_run(host="build-3", pid=7))
    store.clock = later(59)
    with pytest.raises(RunError):
        store.create_run(new_run())
    store.clock = later(61)
    new = store.create_run(new_run())
    given_up = store.run(old.id)
    assert (given_up.status, given_up.completed_at) == ("failed", later(61)())
    assert given_up.failure is not None
    assert given_up.failure.code == "W1502"
    assert given_up.failure.message == "the run was abandoned: it was not renewed for 61 s"
    held = lock(store, LOCK)
    assert held is not None
    assert held.run_id == new.id


def test_a_heartbeat_keeps_the_lock(store: Store) -> None:
    store.clock = later(0)
    run = store.create_run(new_run(host="build-3", pid=7))
    store.clock = later(50)
    store.database.write(lambda c: locks.beat(c, run.id, "build-3", 7, later(50)()))
    store.clock = later(100)
    with pytest.raises(RunError) as refused:
        store.create_run(new_run())
    assert refused.value.code == "W1501"


def test_who_lost_the_lock_can_write_nothing_any_more(store: Store) -> None:
    store.clock = later(0)
    old = store.create_run(new_run())
    store.set_running(old.id)
    store.output_staged(output(old.id))
    store.clock = later(300)  # the process was stopped for five minutes
    store.database.write(lambda c: c.execute(LOCKS.update().values(host="elsewhere")))
    new = store.create_run(new_run())
    for late in (
        lambda: store.operation_done(old.id, counts(10)),
        lambda: store.output_staged(output(old.id)),
        lambda: store.begin_publish(old.id, [output(old.id)]),
        lambda: store.set_running(old.id),
    ):
        with pytest.raises(RunError, match="was taken over: it has failed meanwhile") as refused:
            late()
        assert refused.value.code == "W1502"
    assert store.complete(old.id).status == "failed"
    assert store.run(new.id).status == "queued"


def test_a_run_that_died_while_it_published_is_completed_before_another_starts(store: Store) -> None:
    store.clock = later(0)
    old = store.create_run(new_run(host="build-3", pid=7))
    store.set_running(old.id)
    store.begin_publish(old.id, [output(old.id)])
    store.clock = later(61)
    with pytest.raises(RunError, match="died while it published") as refused:
        store.create_run(new_run())
    assert refused.value.code == "W1502"
    assert [run.id for run in store.abandoned()] == [old.id]
    assert store.take_over(old.id) is not None
    assert store.abandoned() == ()
    assert store.complete(old.id).status == "completed"
    assert store.create_run(new_run()).status == "queued"


def test_two_projects_do_not_publish_to_one_target_at_once(store: Store) -> None:
    first, second = (store.create_run(new_run(project(name))) for name in ("a", "b"))
    for run in (first, second):
        store.set_running(run.id)
    store.begin_publish(first.id, [output(first.id)])
    with pytest.raises(RunError, match="publishes to 'out/period=2026-01'") as refused:
        store.begin_publish(second.id, [output(second.id)])
    assert refused.value.code == "W1501"
    assert store.outputs(second.id) == ()
    store.complete(first.id)
    store.begin_publish(second.id, [output(second.id)])


def test_a_living_run_is_not_abandoned_and_cannot_be_taken_over(store: Store, url: str, tmp_path: Path) -> None:
    run = store.create_run(new_run())
    with open_store(url, tmp_path) as other:
        assert other.abandoned() == ()
        assert other.take_over(run.id) is None
        store.set_running(run.id)
        store.complete(run.id)
        assert other.take_over(run.id) is None


def test_one_of_two_who_take_over_gets_the_run(store: Store, url: str, tmp_path: Path) -> None:
    store.clock = later(0)
    run = store.create_run(new_run(host="build-3", pid=7))
    store.set_running(run.id)
    with open_store(url, tmp_path) as a, open_store(url, tmp_path) as b:
        a.clock = b.clock = later(120)
        a.pid, b.pid = os.getpid(), os.getppid()
        taken = a.take_over(run.id)
        assert taken is not None
        assert (taken.host, taken.pid) == (a.host, a.pid)
        assert b.take_over(run.id) is None
        with pytest.raises(RunError, match="was taken over: it is running under"):
            store.operation_done(run.id, counts(10))
        assert a.complete(run.id).status == "completed"


def test_the_locks_of_a_run_are_taken_over_together_or_not_at_all(store: Store, url: str, tmp_path: Path) -> None:
    store.clock = later(0)
    run = store.create_run(new_run(host="build-3", pid=7))
    store.set_running(run.id)
    store.begin_publish(run.id, [output(run.id)])
    renewed = update(LOCKS).where(LOCKS.c.name == LOCK).values(heartbeat_at=later(61)())
    store.database.write(lambda c: c.execute(renewed))
    with open_store(url, tmp_path) as other:
        other.clock = later(61)
        assert other.take_over(run.id) is None
    assert [(lease.name, lease.host) for lease in store.locks(run.id)] == [
        ("publish/out/period=2026-01", "build-3"),
        (LOCK, "build-3"),
    ]


def test_a_holder_that_comes_back_to_life_keeps_its_lock(store: Store) -> None:
    run = store.create_run(new_run(host="build-3", pid=7))
    seen = lock(store, LOCK)
    assert seen is not None
    mine = locks.Lease(name=LOCK, run_id=run.id, owner="bob", host="build-4", pid=8)
    store.database.write(lambda c: locks.beat(c, run.id, "build-3", 7, later(10**7)()))
    assert not store.database.write(lambda c: locks.take(c, seen, mine, later(10**7)()))
    again = lock(store, LOCK)
    assert again is not None
    assert again.host == "build-3"
    assert store.database.write(lambda c: locks.take(c, again, mine, later(10**7)()))


def test_a_run_without_a_lock_can_be_taken_over(store: Store) -> None:
    run = store.create_run(new_run())
    store.database.write(lambda c: locks.release(c, run.id))
    assert [r.id for r in store.abandoned()] == [run.id]
    assert store.take_over(run.id) is not None
    assert lock(store, LOCK) is not None


def test_a_resumed_run_needs_the_lock(store: Store) -> None:
    from weft.pipelines.store.records import RunFailure

    run = store.create_run(new_run())
    store.fail(run.id, RunFailure(operation_order=None, code="W1513", message="no"))
    other = store.create_run(new_run())
    with pytest.raises(RunError) as refused:
        store.resume(run.id)
    assert refused.value.code == "W1501"
    assert store.run(run.id).status == "failed"
    store.cancel(other.id)
    assert store.resume(run.id).status == "running"


def test_of_many_who_start_at_once_one_begins(url: str, tmp_path: Path) -> None:
    runs = [new_run().run_id for _ in range(4)]
    with starters(url, tmp_path, *runs) as processes:
        for process in processes:
            begin(process)
        answers = [line(process) for process in processes]
    assert sorted(answers) == ["W1501", "W1501", "W1501", "began"]
    with open_store(url, tmp_path) as store:
        assert [run.id for run in store.runs()] == [runs[answers.index("began")]]


def test_a_killed_process_blocks_nobody(url: str, tmp_path: Path) -> None:
    first = new_run().run_id
    with starters(url, tmp_path, first) as (process,), open_store(url, tmp_path) as store:
        begin(process)
        assert line(process) == "began"
        with pytest.raises(RunError) as refused:
            store.create_run(new_run())
        assert refused.value.code == "W1501"
        process.kill()
        process.wait()
        new = store.create_run(new_run())
        old = store.run(first)
        assert old.failure is not None
        assert old.failure.message == f"the run was abandoned: its process {process.pid} has ended"
        assert store.run("LAST").id == new.id


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_who_holds_a_lock_keeps_it_until_its_transaction_ends(store: Store) -> None:
    """Between the look at the lock and the write nobody takes it over: the row is locked, not only read."""
    run = store.create_run(new_run())
    seen = next(lease for lease in store.locks() if lease.run_id == run.id)
    rival = locks.Lease(name=seen.name, run_id=run.id, owner="bob", host="other", pid=1)
    engine = store.database.engine
    with engine.connect() as mine, mine.begin():
        assert locks.holds(mine, run.id, seen.host, seen.pid)
        with engine.connect() as other, other.begin():
            other.execute(text("SET LOCAL lock_timeout = '50ms'"))
            with pytest.raises(OperationalError, match="lock"):
                locks.take(other, seen, rival, NOW)
    with engine.connect() as other, other.begin():
        assert locks.take(other, seen, rival, NOW)
