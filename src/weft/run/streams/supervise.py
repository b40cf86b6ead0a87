"""Supervise: keep a job running, start it again when it falls, let it end when asked.

::

    weft stream start JOB      leaves a supervisor behind, in a session of its own
      supervisor               watches its child
        weft stream run JOB --continuous

A child that dies, or loses its workers (W2214), is started again after 1, 2, 4 .. 60 s, at most five times in
ten minutes.  A child that ends with another coded error is not: the same would happen again.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from weft.core.frozen import FrozenMap, frozen
from weft.errors import StreamError
from weft.store.streams.processes import Process, process, this_process
from weft.store.streams.supervisor import (
    SupervisorFiles,
    SupervisorRecord,
    ask_to_stop,
    asked_to_stop,
    forget_stop,
    read_answer,
    read_record,
    write_record,
)

MOST_RESTARTS = 5
WITHIN_SECONDS = 600.0
_LONGEST_PAUSE = 60.0
_LOOK = 0.2
PROGRAM = (sys.executable, "-m", "weft")
"""This program, as another process starts it."""

LARGEST_LOG = 10_000_000
"""A log of more bytes is put aside when a process is started; the one put aside before goes."""

_RESTARTABLE = frozenset({"W2214"})
_MICROS = 1_000_000


class Child(Protocol):
    """A process that runs a job; `Started` is the real one."""

    pid: int

    def poll(self) -> int | None:
        """Return its exit code, None while it runs."""


@dataclass(frozen=True, slots=True)
class World:
    """What a supervisor has outside itself: a clock and a way to wait."""

    now: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep


def pause_before(restarts: Sequence[float], now: float) -> float | None:
    """Return how long to wait before the next start, None when it fell too often; `restarts` are past ones.

    >>> pause_before((), 0.0), pause_before((0.0, 2.0), 3.0), pause_before((0.0, 1.0, 2.0, 3.0, 4.0), 10.0)
    (1.0, 4.0, None)
    """
    recent = [at for at in restarts if now - at < WITHIN_SECONDS]
    if len(recent) >= MOST_RESTARTS:
        return None
    return float(min(_LONGEST_PAUSE, 2 ** len(recent)))


def supervise(
    files: SupervisorFiles, job: str, start: Callable[[], Child], world: World | None = None
) -> SupervisorRecord:
    """Run a job until it ends by itself, is stopped, or cannot go on; return how it stood at the end."""
    world = world or World()
    me = this_process()
    record = SupervisorRecord(
        job=job, state="starting", pid=me.pid, began=me.began, since=_micros(world.now())
    )
    _check_free(files, me)
    forget_stop(files)
    write_record(files, record)
    with _passing_signals(files):
        while True:
            record = _one_life(files, record, start, world)
            if record.state != "waiting":
                return record
            pause = pause_before([at / _MICROS for at in record.restarts], world.now())
            if pause is None:
                return _kept(files, replace(record, state="failed", error=_too_often(record)))
            if not _waited(files, pause, world):
                return _kept(files, replace(record, state="stopped"))
            record = replace(record, restarts=(*record.restarts, _micros(world.now())))


def _one_life(
    files: SupervisorFiles, record: SupervisorRecord, start: Callable[[], Child], world: World
) -> SupervisorRecord:
    """Start the child and watch it to its end; state `waiting` means that it is to be started again."""
    files.answer.unlink(missing_ok=True)
    child = start()
    one = process(child.pid)
    record = replace(record, state="running", child_pid=one.pid, child_began=one.began)
    _kept(files, replace(record, since=_micros(world.now())))
    while (code := child.poll()) is None:
        world.sleep(_LOOK)
    ended = replace(record, since=_micros(world.now()), error=_told(files, code))
    if asked_to_stop(files):
        return _kept(files, replace(ended, state="stopped", error=None if code <= 0 else ended.error))
    if code == 0:
        return _kept(files, replace(ended, state="stopped", error=None))
    again = ended.error is None or ended.error["code"] in _RESTARTABLE
    state: Any = "waiting" if again else "failed"
    return _kept(files, replace(ended, state=state, error=ended.error or _fallen(code)))


def _told(files: SupervisorFiles, code: int) -> FrozenMap[str, Any] | None:
    """Return the error that the child ended with, None when it could not say one."""
    if code < 0:
        return None
    try:
        answer = read_answer(files)
    except StreamError:  # it died while it wrote
        return None
    found = [d for d in (answer or {}).get("diagnostics", ()) if d.get("severity") == "error"]
    keys = ("code", "message", "help")
    return frozen({key: found[0].get(key, "") for key in keys}) if found else None


def _fallen(code: int) -> FrozenMap[str, Any]:
    how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
    return FrozenMap(
        code="W2214",
        message=f"the process of the job {how}",
        help="see the end of log.txt beside the checkpoint",
    )


def _too_often(record: SupervisorRecord) -> FrozenMap[str, Any]:
    last = dict(record.error or {})
    return FrozenMap(
        code="W2217",
        message=f"the job fell {MOST_RESTARTS + 1} times in {WITHIN_SECONDS / 60:.0f} minutes and is not started "
        f"again; at last: {last.get('message', 'nothing was said')}",
        help="see the end of log.txt beside the checkpoint; `weft stream start` tries again",
    )


def _waited(files: SupervisorFiles, seconds: float, world: World) -> bool:
    """Wait; False when the job was asked to stop meanwhile."""
    until = world.now() + seconds
    while not asked_to_stop(files):
        if world.now() >= until:
            return True
        world.sleep(_LOOK)
    return False


def _kept(files: SupervisorFiles, record: SupervisorRecord) -> SupervisorRecord:
    write_record(files, record)
    return record


def _micros(seconds: float) -> int:
    return int(seconds * _MICROS)


@contextlib.contextmanager
def _passing_signals(files: SupervisorFiles) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM end the job after its batch; a second one ends its process."""
    seen: list[int] = []

    def take(number: int, _frame: object) -> None:
        seen.append(number)
        ask_to_stop(files)
        record = read_record(files)
        if len(seen) > 1 and record is not None:
            send(record.child, signal.SIGTERM)

    before = {}
    with contextlib.suppress(ValueError):  # not in the main thread: signals do not come here
        before = {number: signal.signal(number, take) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def _check_free(files: SupervisorFiles, me: Process) -> None:
    """Raise `StreamError` W2215 when the job runs already."""
    record = read_record(files)
    if record is None or record.supervisor == me:
        return
    running = record.alive
    if running is not None:
        raise StreamError(
            f"the job {record.job!r} runs already, as process {running.pid}",
            code="W2215",
            help=f"`weft stream status {record.job}` tells of it, `weft stream stop {record.job}` ends it",
        )


def is_running(files: SupervisorFiles) -> bool:
    """Whether the supervisor of a job or its child runs."""
    record = read_record(files)
    return record is not None and record.alive is not None


def check_free(files: SupervisorFiles) -> None:
    """Raise `StreamError` W2215 when the job runs already."""
    _check_free(files, this_process())


def send(to: Process, number: int) -> bool:
    """Send a signal to a process if it is still the one that was recorded; say whether it was."""
    if not to.runs:
        return False
    with contextlib.suppress(ProcessLookupError):
        os.kill(to.pid, number)
        return True
    return False


def leave_behind(words: Sequence[str], files: SupervisorFiles, *, wait: float = 30.0) -> SupervisorRecord:
    """Start the supervisor as a process of its own and return how it stands once its child runs.

    `words` are the command after the program.  What it prints goes to log.txt.
    """
    check_free(files)
    child = spawn(words, files)
    until = time.monotonic() + wait
    while time.monotonic() < until:
        record = read_record(files)
        if record is not None and record.pid == child.pid and record.state != "starting":
            return record
        if child.poll() is not None:
            break
        time.sleep(_LOOK)
    told = files.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-5:]
    raise StreamError(
        "the supervisor of the job did not start" + (": " + " | ".join(told) if told else ""),
        code="W2201",
        help=f"{str(files.log)!r} has all it said; `weft stream start JOB --foreground` shows it here",
    )


class Started:
    """A process that this one started and may leave behind; nobody has to wait for it."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._code: int | None = None

    def poll(self) -> int | None:
        """Return its exit code, minus the signal when one ended it, None while it runs."""
        if self._code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self._code = os.waitstatus_to_exitcode(status) if pid else None
        return self._code


def spawn(words: Sequence[str], files: SupervisorFiles) -> Started:
    """Start this program with other words, in a session of its own; what it prints goes to log.txt."""
    files.folder.mkdir(parents=True, exist_ok=True)
    if files.log.exists() and files.log.stat().st_size > LARGEST_LOG:
        files.log.replace(files.log.with_name("log.1.txt"))
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    outputs = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(files.log), flags, 0o644),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    command = [*PROGRAM, *words]
    return Started(os.posix_spawn(command[0], command, os.environ, file_actions=outputs, setsid=True))


def stop_job(
    files: SupervisorFiles,
    job: str,
    *,
    timeout: float = 60.0,
    force: bool = False,
    world: World | None = None,
) -> str:
    """End a job; return how: after its batch, ended, or killed.  Raise W2215 when it does not run or stays.

    Only the recorded child is sent signals, and only while it is the process that was recorded.
    """
    world = world or World()
    record = read_record(files)
    if record is None or not is_running(files):
        raise StreamError(
            f"the job {job!r} does not run",
            code="W2215",
            help=f"`weft stream start {job}` starts it, `weft stream status` tells of all jobs",
        )
    ask_to_stop(files)
    if _gone(files, timeout, world):
        return "after its batch"
    for number, how in ((signal.SIGTERM, "ended"), (signal.SIGKILL, "killed")):
        if number == signal.SIGKILL and not force:
            break
        found = read_record(files) or record
        send(found.child, number)
        if _gone(files, min(timeout, 15.0), world):
            return how
    raise StreamError(
        f"the job {job!r} did not end within {timeout:g} s",
        code="W2215",
        help=f"`weft stream stop {job} --force` kills its process; nothing that is committed is lost",
    )


def _gone(files: SupervisorFiles, seconds: float, world: World) -> bool:
    until = world.now() + seconds
    while is_running(files):
        if world.now() >= until:
            return False
        world.sleep(_LOOK)
    return True


def relative_log(files: SupervisorFiles, root: Path) -> str:
    """Return where the log of a job is, below the workspace where it can be said so."""
    with contextlib.suppress(ValueError):
        return str(files.log.relative_to(root))
    return str(files.log)
