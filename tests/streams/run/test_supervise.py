"""A supervisor starts a job again when it falls, not when it was refused, and lets it end when asked."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from weft.core.frozen import FrozenMap
from weft.errors import StreamError
from weft.streams.checkpoint.lease import lock_statement
from weft.streams.checkpoint.lock import Process, find_process, this_process
from weft.streams.checkpoint.supervisor import (
    SupervisorFiles,
    SupervisorRecord,
    read_record,
    request_stop,
    write_answer,
    write_record,
)
from weft.streams.run import supervise as supervising
from weft.streams.run.supervise import (
    MAX_RESTARTS,
    Environment,
    check_not_running,
    restart_delay,
    send_signal,
    stop_job,
    supervise,
)

GONE = 2**22 + 1


@dataclass
class Child:
    """A process that ends with a code after it was looked at some times."""

    code: int
    looks: int = 2
    pid: int = GONE

    def poll(self) -> int | None:
        self.looks -= 1
        return None if self.looks > 0 else self.code


@dataclass
class Clock:
    """A clock that only waiting moves."""

    at: float = 1000.0
    waits: list[float] = field(default_factory=list)

    def world(self) -> Environment:
        return Environment(now=lambda: self.at, sleep=self.sleep)

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.at += seconds


def lives(*codes: int) -> Callable[[], Child]:
    """Return what starts children that end with these codes, one after another."""
    following: Iterator[int] = iter(codes)
    return lambda: Child(next(following))


def refused(files: SupervisorFiles, code: str) -> Callable[[], Child]:
    """Return what starts a child that leaves a coded error."""

    def start() -> Child:
        finding = {"code": code, "severity": "error", "message": "no", "help": "do"}
        write_answer(files, {"diagnostics": [{"code": "W2307", "severity": "warning"}, finding]})
        return Child(1)

    return start


@pytest.fixture
def files(tmp_path: Path) -> SupervisorFiles:
    return SupervisorFiles(tmp_path / "job")


def run(files: SupervisorFiles, start: Callable[[], Any], clock: Clock | None = None) -> SupervisorRecord:
    return supervise(files, "job", start, (clock or Clock()).world())


def test_pauses_double_up_to_a_minute_and_end_after_five_falls() -> None:
    assert [restart_delay(range(n), 5.0) for n in range(6)] == [1, 2, 4, 8, 16, None]
    assert restart_delay([0.0] * 5, 599.0) is None
    assert restart_delay([0.0] * 5, 600.0) == 1.0
    assert restart_delay((), 0.0) == 1.0


def test_a_child_that_ends_well_is_not_started_again(files: SupervisorFiles) -> None:
    record = run(files, lives(0))
    assert (record.state, record.restarts, record.error) == ("stopped", (), None)
    assert read_record(files) == record


def test_the_record_is_that_of_this_start_before_the_child_begins(files: SupervisorFiles) -> None:
    """`weft stream start` waits for the record and must not see how an earlier start ended."""
    seen: list[str] = []

    def start() -> Child:
        record = read_record(files)
        seen.append("none" if record is None else record.state)
        return Child(0)

    run(files, refused(files, "W2301"))
    run(files, start)
    assert seen == ["starting"]


def test_a_child_that_dies_is_started_again_after_growing_pauses(files: SupervisorFiles) -> None:
    clock = Clock()
    record = run(files, lives(-9, 1, -9, 0), clock)
    assert record.state == "stopped"
    assert len(record.restarts) == 3
    gaps = [b - a for a, b in zip(record.restarts, record.restarts[1:], strict=False)]
    assert [round(gap / 1_000_000) for gap in gaps] == [2, 4]


def test_a_child_that_is_killed_after_it_wrote_an_error_is_started_again(files: SupervisorFiles) -> None:
    children = iter((refused(files, "W2301"), lives(0)))

    def start() -> Child:
        child = next(children)()
        return replace(child, code=-child.code * 9)

    record = run(files, start)
    assert (record.state, len(record.restarts), record.error) == ("stopped", 1, None)


def test_a_child_that_falls_again_and_again_is_given_up(files: SupervisorFiles) -> None:
    record = run(files, lives(*[-9] * 20))
    assert (record.state, len(record.restarts)) == ("failed", MAX_RESTARTS)
    assert record.error is not None
    assert record.error["code"] == "W2217"
    assert "signal 9" in record.error["message"]


def test_failures_that_are_far_apart_are_never_too_many(files: SupervisorFiles) -> None:
    clock = Clock()
    codes = iter([*[-9] * 12, 0])

    def start() -> Child:
        clock.at += 400
        return Child(next(codes))

    record = run(files, start, clock)
    assert (record.state, len(record.restarts)) == ("stopped", 12)


def test_a_coded_error_is_not_tried_again(files: SupervisorFiles) -> None:
    record = run(files, refused(files, "W2203"))
    assert (record.state, record.restarts) == ("failed", ())
    assert dict(record.error or {}) == {"code": "W2203", "message": "no", "help": "do"}


def test_lost_workers_are(files: SupervisorFiles) -> None:
    record = run(files, refused(files, "W2214"))
    assert (record.state, len(record.restarts)) == ("failed", MAX_RESTARTS)


def test_an_answer_of_an_earlier_life_is_not_taken_for_this_one(files: SupervisorFiles) -> None:
    write_answer(files, {"diagnostics": [{"code": "W2203", "severity": "error"}]})
    assert run(files, lives(1, 0)).state == "stopped"


def test_a_half_written_answer_is_a_fall(files: SupervisorFiles) -> None:
    following = iter((1, 0))

    def start() -> Child:
        files.root.mkdir(parents=True, exist_ok=True)
        files.answer.write_text('{"diagn')
        return Child(next(following))

    assert run(files, start).state == "stopped"


def test_a_child_that_is_asked_to_stop_is_not_started_again(files: SupervisorFiles) -> None:
    def start() -> Child:
        request_stop(files)
        return Child(-15)

    record = run(files, start)
    assert (record.state, record.restarts, record.error) == ("stopped", (), None)


def test_the_wish_to_stop_is_heard_between_two_lives(files: SupervisorFiles) -> None:
    clock = Clock()

    def sleep(seconds: float) -> None:
        clock.sleep(seconds)
        record = read_record(files)
        if record is not None and record.state == "waiting":
            request_stop(files)

    record = supervise(files, "job", lives(-9), Environment(now=lambda: clock.at, sleep=sleep))
    assert (record.state, record.restarts) == ("stopped", ())


def test_an_old_wish_to_stop_does_not_stop_a_new_start(files: SupervisorFiles) -> None:
    request_stop(files)
    assert len(run(files, lives(-9, 0)).restarts) == 1


def test_a_job_of_an_earlier_version_that_runs_is_not_started_twice(files: SupervisorFiles) -> None:
    """Supervisors of earlier versions hold no lock: their records alone say that they run."""
    me = this_process()
    bare = me.began.rpartition("/")[2]
    theirs = SupervisorRecord(job="job", state="running", pid=me.pid, began=bare, since=0, format=1)
    for record in (theirs, replace(theirs, pid=GONE, child_pid=me.pid, child_began=bare)):
        write_record(files, record)
        for start in (lambda: run(files, lives(0)), lambda: check_not_running(files, "job")):
            with pytest.raises(StreamError) as caught:
                start()
            assert caught.value.code == "W2215"
            assert str(me.pid) in caught.value.message
        assert read_record(files) == record


def test_a_job_whose_lock_is_held_is_not_started_twice_and_its_record_stays(files: SupervisorFiles) -> None:
    theirs = SupervisorRecord(job="job", state="running", pid=GONE, began="1", since=0)
    write_record(files, theirs)
    request_stop(files)
    with lock_statement(files.lock, "job"):
        for start in (lambda: run(files, lives(0)), lambda: check_not_running(files, "job")):
            with pytest.raises(StreamError) as caught:
                start()
            assert caught.value.code == "W2215"
            assert f"process {this_process().pid}" in caught.value.message
    assert read_record(files) == theirs
    assert files.stop.exists()
    assert run(files, lives(0)).state == "stopped"


def test_a_process_with_the_number_of_the_recorded_one_is_another(files: SupervisorFiles) -> None:
    me = this_process()
    reused = SupervisorRecord(
        job="job", state="running", pid=me.pid, began="1", since=0, child_pid=me.pid, child_began="1"
    )
    for record in (reused, replace(reused, format=1)):
        write_record(files, record)
        files.lock.write_text(f'{{"host": "here", "pid": {me.pid}, "began": "{me.began}"}}')
        with pytest.raises(StreamError, match="its processes were killed") as caught:
            stop_job(files, "job", force=True, timeout=0)
        assert caught.value.code == "W2215"
        assert run(files, lives(0)).state == "stopped"


def test_a_record_that_cannot_be_written_does_not_end_the_job(
    files: SupervisorFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start() -> Child:
        monkeypatch.setattr(supervising, "write_record", full)
        return Child(0)

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    assert run(files, start).state == "stopped"


def test_a_job_that_cannot_be_started_at_all_is_failed_with_its_error(
    files: SupervisorFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervising, "PROGRAM", (str(files.job / "nothing"),))
    record = run(files, lambda: supervising.spawn(["run"], files))
    assert record.error is not None
    assert (record.state, record.error["code"]) == ("failed", "W2201")


def test_only_the_process_that_was_recorded_gets_a_signal() -> None:
    assert not send_signal(Process(this_process().pid, "another beginning"), signal.SIGKILL)
    assert not send_signal(Process(GONE, "1"), signal.SIGKILL)
    assert send_signal(this_process(), 0)


def test_a_job_that_does_not_run_cannot_be_stopped(files: SupervisorFiles) -> None:
    for known in (False, True):
        if known:
            write_record(files, SupervisorRecord(job="job", state="stopped", pid=GONE, began="1", since=0))
        with pytest.raises(StreamError) as caught:
            stop_job(files, "job")
        assert caught.value.code == "W2215"
        assert not files.stop.exists()


def test_the_end_that_a_supervisor_recorded_stays_when_its_job_is_stopped(files: SupervisorFiles) -> None:
    clock = Clock()
    error: FrozenMap[str, Any] = FrozenMap(code="W2301", message="no", help="do")
    failed = SupervisorRecord(job="job", state="failed", pid=GONE, began="1", since=0, error=error)
    with ExitStack() as held:
        held.enter_context(lock_statement(files.lock, "job"))

        def sleep(seconds: float) -> None:
            clock.sleep(seconds)
            write_record(files, failed)
            held.close()

        how = stop_job(files, "job", world=Environment(now=lambda: clock.at, sleep=sleep))
    assert how == "after its batch"
    assert read_record(files) == failed


def test_a_lock_without_a_name_in_it_is_still_held(files: SupervisorFiles) -> None:
    """A supervisor that ends takes its name out of the lock; its child may still hold it."""
    clock = Clock()

    def sleep(seconds: float) -> None:
        clock.sleep(seconds)
        files.lock.write_text("")

    with lock_statement(files.lock, "job"), pytest.raises(StreamError, match="did not end within") as caught:
        stop_job(files, "job", timeout=1, world=Environment(now=lambda: clock.at, sleep=sleep))
    assert caught.value.code == "W2215"


def test_what_a_killed_child_has_started_is_killed_too(files: SupervisorFiles) -> None:
    """As a JVM does, the grandchild goes on for a while when its parent is killed."""
    code = "import subprocess, os; p = subprocess.Popen(['sleep', '60']); print(p.pid, flush=True); os.kill(os.getpid(), 9)"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(supervising, "PROGRAM", (sys.executable, "-c", code))
        started = supervising.spawn([], files)
    while (ended := started.poll()) is None:
        time.sleep(0.01)
    assert ended == -signal.SIGKILL
    grandchild = find_process(int(files.log.read_text()))
    until = time.monotonic() + 30
    while grandchild.runs and time.monotonic() < until:
        time.sleep(0.01)
    assert not grandchild.runs


def test_a_process_is_started_in_a_session_of_its_own_and_a_long_log_is_put_aside(
    files: SupervisorFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "import os; print(os.getsid(0) == os.getpid(), flush=True); os.write(2, b'said'); os._exit(7)"
    monkeypatch.setattr(supervising, "PROGRAM", (sys.executable, "-c", code))
    monkeypatch.setattr(supervising, "MAX_LOG_BYTES", 5)
    for _ in range(2):
        supervising.rotate_log(files)
        started = supervising.spawn(["stream"], files)
        while (ended := started.poll()) is None:
            time.sleep(0.01)
        assert ended == started.poll() == 7
        assert files.log.read_text() == "True\nsaid"
    assert files.log.with_name("log.1.txt").read_text() == "True\nsaid"


def test_a_process_that_is_killed_takes_those_that_it_started_along(files: SupervisorFiles) -> None:
    script = "import subprocess, time; print(subprocess.Popen(['sleep', '60']).pid, flush=True); time.sleep(60)"
    files.root.mkdir(parents=True, exist_ok=True)
    with files.log.open("w") as out:
        leader = subprocess.Popen([sys.executable, "-c", script], stdout=out, start_new_session=True)
    try:
        until = time.monotonic() + 30
        while not files.log.read_text().endswith("\n"):
            assert time.monotonic() < until
            time.sleep(0.01)
        started = find_process(int(files.log.read_text()))
        assert started.runs
        assert send_signal(find_process(leader.pid), signal.SIGKILL)
        while started.runs:
            assert time.monotonic() < until
            time.sleep(0.01)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(leader.pid, signal.SIGKILL)
        leader.wait()
