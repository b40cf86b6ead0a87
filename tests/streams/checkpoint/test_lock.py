"""One process at a time has a checkpoint, and a dead one blocks nobody."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from weft.errors import StreamError
from weft.streams.checkpoint.lease import lock_statement
from weft.streams.checkpoint.lock import Process, find_holder, find_process, this_process

HOLD = """
import sys, time
from pathlib import Path
from weft.streams.checkpoint.lease import lock_statement
with lock_statement(Path(sys.argv[1]), "status"):
    print("held", flush=True)
    time.sleep(600)
"""


def holding(lock: Path) -> subprocess.Popen[str]:
    """Start a process that holds a lock, and wait until it does."""
    src = str(Path(__file__).parents[3] / "src")
    child = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(lock)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": src},
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "held\n"
    return child


def test_a_second_driver_on_one_checkpoint_is_refused_with_who_has_it(tmp_path: Path) -> None:
    lock = tmp_path / "cp" / "lock"
    child = holding(lock)
    try:
        with pytest.raises(StreamError) as caught, lock_statement(lock, "status"):
            pass
        assert caught.value.code == "W2205"
        assert str(child.pid) in caught.value.message
        found = find_holder(lock)
        assert found is not None
        assert found.process == find_process(child.pid)
    finally:
        child.send_signal(signal.SIGKILL)
        child.communicate()
    # However it died, nobody has to clean up after it.
    assert find_holder(lock) is None
    with lock_statement(lock, "status"):
        assert find_holder(lock) is not None
    assert find_holder(lock) is None


def test_the_name_of_a_dead_process_does_not_refuse_a_start_while_a_status_command_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = tmp_path / "lock"
    lock.write_text(json.dumps({"host": socket.gethostname(), "pid": 2**22 + 1, "began": "1"}))
    look = os.open(lock, os.O_RDONLY)
    fcntl.flock(look, fcntl.LOCK_SH)
    monkeypatch.setattr("weft.streams.checkpoint.lock.time.sleep", lambda _: fcntl.flock(look, fcntl.LOCK_UN))
    try:
        with lock_statement(lock, "a"):
            assert find_holder(lock) is not None
    finally:
        os.close(look)


def test_one_process_does_not_take_it_twice(tmp_path: Path) -> None:
    with (
        lock_statement(tmp_path / "lock", "a"),
        pytest.raises(StreamError),
        lock_statement(tmp_path / "lock", "a"),
    ):
        pass


def test_the_lock_is_free_after_an_error_inside(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), lock_statement(tmp_path / "lock", "a"):
        raise ZeroDivisionError
    with lock_statement(tmp_path / "lock", "a"):
        pass


def test_a_process_that_is_started_meanwhile_does_not_keep_the_lock(tmp_path: Path) -> None:
    """A JVM may outlive the Python that started it; the next start must not be refused."""
    lock = tmp_path / "lock"
    with lock_statement(lock, "a"):
        child = subprocess.Popen(["sleep", "600"], close_fds=False)
    try:
        assert find_holder(lock) is None
    finally:
        child.kill()
        child.wait()


def test_a_number_that_another_process_got_is_not_the_process() -> None:
    me = this_process()
    assert me.runs
    assert not Process(me.pid, "1").runs
    assert not Process(me.pid, "").runs
    ended = subprocess.Popen([sys.executable, "-c", ""])
    one = find_process(ended.pid)
    ended.wait()
    assert not one.runs
    assert not find_process(0).runs


def test_a_process_that_ended_and_was_not_reaped_does_not_run() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
    assert not find_process(ended.pid).runs
    ended.wait()


def test_a_start_time_without_the_boot_as_earlier_versions_wrote_it_is_of_the_same_process() -> None:
    me = this_process()
    assert Process(me.pid, me.began.rpartition("/")[2]).runs
    assert not Process(me.pid, "another boot/" + me.began.rpartition("/")[2]).runs
    assert not Process(me.pid, "").runs


def test_the_file_of_a_lock_that_is_free_again_stays_and_is_empty(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with lock_statement(lock, "a"):
        before = lock.stat().st_ino
        assert lock.read_bytes()
    # Who has it open already waits for this file; a new one of that name would be a second lock.
    assert (lock.stat().st_ino, lock.read_bytes()) == (before, b"")
