"""Supervision: keep a job running, restart it after failures, stop it on request.

::

    weft stream start JOB      starts a supervisor in its own session
      supervisor               holds the lock of the job, writes its record, watches its child
        weft stream run JOB --continuous

The child inherits the lock, so that a job whose supervisor was killed still counts as running.  A child that
dies, or loses its workers (W2214), is restarted after 1, 2, 4 .. 60 s, at most five times in ten minutes.
A child that ends with another coded error is not restarted, because it would fail again.

`weft stream stop` requests a job to stop after its batch, then terminates it, then kills it, until its lock is released.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, Protocol

from weft.core.frozen import FrozenMap, freeze
from weft.core.names import quote_for_shell
from weft.errors import StreamError
from weft.streams.checkpoint.lock import Holder, Process, find_holder, find_process, hold_lock, this_process
from weft.streams.checkpoint.supervisor import (
    SupervisorFiles,
    SupervisorRecord,
    clear_stop,
    find_keeper,
    is_stop_requested,
    read_answer,
    request_stop,
    try_read_record,
    write_record,
)

MAX_RESTARTS = 5
WITHIN_SECONDS = 600.0
_LONGEST_PAUSE = 60.0
_LOOK = 0.2
PROGRAM = (sys.executable, "-m", "weft")
"""Command that starts this program in another process."""

MAX_LOG_BYTES = 10_000_000
"""A larger log is rotated when a process is started; one old log is kept."""

_RESTARTABLE = frozenset({"W2214"})
_MICROS = 1_000_000


class Child(Protocol):
    """A process that runs a job; `SpawnedProcess` is the real one."""

    pid: int

    def poll(self) -> int | None:
        """Return its exit code, None while it runs."""


@dataclass(frozen=True, slots=True)
class Environment:
    """The environment of a supervisor: a clock and a way to wait."""

    now: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep


def restart_delay(restarts: Sequence[float], now: float) -> float | None:
    """Return the delay before the next start, None after too many restarts; `restarts` are their times.

    >>> restart_delay((), 0.0), restart_delay((0.0, 2.0), 3.0), restart_delay((0.0, 1.0, 2.0, 3.0, 4.0), 10.0)
    (1.0, 4.0, None)
    """
    recent = [at for at in restarts if now - at < WITHIN_SECONDS]
    if len(recent) >= MAX_RESTARTS:
        return None
    return float(min(_LONGEST_PAUSE, 2 ** len(recent)))


def supervise(
    files: SupervisorFiles, job: str, start: Callable[[], Child], world: Environment | None = None
) -> SupervisorRecord:
    """Run a job until it ends, is stopped, or fails for good; return its last record.

    The lock is taken first: nothing is written while another process supervises the job (W2215).
    """
    with hold_lock(files.lock, lambda by: already_running(job, by), inherited=True):
        alive = getattr(try_read_record(files), "alive", None)
        if alive is not None:  # the lock was free: see `find_keeper`
            raise already_running(job, Holder("", alive))
        return _Supervisor(files, job, start, world or Environment()).run()


class _Supervisor:
    """The holder of the lock of a job."""

    def __init__(self, files: SupervisorFiles, job: str, start: Callable[[], Child], world: Environment) -> None:
        self.files, self.start, self.world = files, start, world
        self.signals = 0
        me = this_process()
        self.record = SupervisorRecord(
            job=job, state="starting", pid=me.pid, began=me.began, since=_micros(world.now())
        )

    def run(self) -> SupervisorRecord:
        # Requests and results of an earlier life must not end this one.
        clear_stop(self.files)
        write_record(self.files, self.record)
        with self._passing_signals():
            while self._one_life().state == "waiting":
                pause = restart_delay([at / _MICROS for at in self.record.restarts], self.world.now())
                if pause is None:
                    return self._keep(state="failed", error=_restart_limit_error(self.record))
                if not self._waited(pause):
                    return self._keep(state="stopped")
                restarts = (*self.record.restarts, _micros(self.world.now()))
                self.record = replace(self.record, restarts=restarts)
        return self.record

    def _one_life(self) -> SupervisorRecord:
        """Start the child and wait for its end; state `waiting` means that it is to be restarted."""
        # A child that is killed writes no answer, and that of the child before it would be taken for its own.
        self.files.answer.unlink(missing_ok=True)
        rotate_log(self.files)
        try:
            child = self.start()
        except StreamError as cause:
            return self._keep(state="failed", error=_to_error(cause.diagnostics[0].to_dict()))
        one = find_process(child.pid)
        self._keep(state="running", child_pid=one.pid, child_began=one.began, since=_micros(self.world.now()))
        while (code := child.poll()) is None:
            self.world.sleep(_LOOK)
        error, since = _read_child_error(self.files, code), _micros(self.world.now())
        # Checked before the exit code: a child that was stopped may end with an error, and must not be restarted.
        if is_stop_requested(self.files):
            return self._keep(state="stopped", since=since, error=None if code <= 0 else error)
        if code == 0:
            return self._keep(state="stopped", since=since, error=None)
        again = error is None or error["code"] in _RESTARTABLE
        return self._keep(state="waiting" if again else "failed", since=since, error=error or _exit_error(code))

    def _keep(self, **changes: Any) -> SupervisorRecord:
        """Update the record.  A job continues if its record cannot be written, because the lock shows that it runs."""
        self.record = replace(self.record, **changes)
        try:
            write_record(self.files, self.record)
        except OSError as cause:
            sys.stderr.write(f"{self.files.record} cannot be written: {cause}\n")
        return self.record

    def _waited(self, seconds: float) -> bool:
        """Wait and return True, or False if a stop was requested."""
        until = self.world.now() + seconds
        while not is_stop_requested(self.files):
            if self.world.now() >= until:
                return True
            self.world.sleep(_LOOK)
        return False

    @contextmanager
    def _passing_signals(self) -> Iterator[None]:
        """Stop the job after its batch on Ctrl-C or SIGTERM; a second signal terminates its process."""

        def take(_number: int, _frame: object) -> None:
            self.signals += 1
            # A file, not a signal to the child: it is also seen by a child that starts only later.
            request_stop(self.files)
            if self.signals > 1:
                send_signal(self.record.child, signal.SIGTERM)

        before = {}
        with suppress(ValueError):  # signals are handled only in the main thread
            before = {number: signal.signal(number, take) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, old in before.items():
                signal.signal(number, old)


def _read_child_error(files: SupervisorFiles, code: int) -> FrozenMap[str, Any] | None:
    """Return the error that the child ended with, None if it wrote none."""
    if code < 0:  # killed: what it wrote before is not why it ended
        return None
    try:
        answer = read_answer(files)
    except StreamError:  # it died while it wrote
        return None
    errors = [d for d in (answer or {}).get("diagnostics", ()) if d.get("severity") == "error"]
    return _to_error(errors[0]) if errors else None


def _to_error(finding: Mapping[str, Any]) -> FrozenMap[str, Any]:
    return FrozenMap({key: freeze(finding.get(key, "")) for key in ("code", "message", "help")})


def _exit_error(code: int) -> FrozenMap[str, Any]:
    how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
    return FrozenMap(
        code="W2214", message=f"the process of the job {how}", help="see the end of log.txt beside the checkpoint"
    )


def _restart_limit_error(record: SupervisorRecord) -> FrozenMap[str, Any]:
    last = dict(record.error or {})
    return FrozenMap(
        code="W2217",
        message=f"the job failed {MAX_RESTARTS + 1} times in {WITHIN_SECONDS / 60:.0f} minutes and is not started "
        f"again; last error: {last.get('message', 'unknown')}",
        help="see the end of log.txt beside the checkpoint; "
        f"`weft stream start {quote_for_shell(record.job)}` tries again",
    )


def _micros(seconds: float) -> int:
    return int(seconds * _MICROS)


def already_running(job: str, by: Holder) -> StreamError:
    """Return the error for a job that is already running."""
    return StreamError(
        f"the job {job!r} is already running: {by} supervises it"
        if by.process.runs
        else f"the job {job!r} is already running; its supervisor has ended",
        code="W2215",
        help=f"`weft stream status {quote_for_shell(job)}` shows it, `weft stream stop {quote_for_shell(job)}` stops it",
    )


def check_not_running(files: SupervisorFiles, job: str) -> None:
    """Raise `StreamError` W2215 if the job is running."""
    by = find_keeper(files)
    if by is not None:
        raise already_running(job, by)


def send_signal(to: Process, number: int) -> bool:
    """Send a signal to a process if it is still running; return whether it was.

    SIGKILL goes to the whole process group, so that a JVM does not outlive the Python that started it.
    """
    if not to.runs:
        return False
    with suppress(ProcessLookupError):  # it may end between the check and the signal
        if number == signal.SIGKILL and os.getpgid(to.pid) == to.pid:
            os.killpg(to.pid, number)
        else:
            os.kill(to.pid, number)
        return True
    return False


def start_supervisor(words: Sequence[str], files: SupervisorFiles, job: str, *, wait: float = 30.0) -> SupervisorRecord:
    """Start the supervisor as a separate process and return its record once its child runs.

    `words` are the arguments of the program.  Its output goes to log.txt.
    """
    # For a clear error only: two starts may both pass, and the lock decides between their supervisors.
    check_not_running(files, job)
    child = spawn(words, files)
    one = find_process(child.pid)
    until = time.monotonic() + wait
    while time.monotonic() < until:
        record = try_read_record(files)
        if record is not None and record.supervisor == one and record.state != "starting":
            return record
        if child.poll() is not None:
            check_not_running(files, job)  # another start was first
            break
        time.sleep(_LOOK)
    lines = files.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-5:]
    ended = child.poll() is not None
    raise StreamError(
        ("the supervisor of the job did not start" if ended else f"process {child.pid} has not started the job yet")
        + (": " + " | ".join(lines) if lines else ""),
        code="W2201",
        help=f"{str(files.log)!r} has its output; `weft stream start {quote_for_shell(job)} --foreground` shows it here"
        if ended
        else f"`weft stream status {quote_for_shell(job)}` shows when it runs",
    )


class SpawnedProcess:
    """A process that this one started and that may outlive it."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._code: int | None = None

    def poll(self) -> int | None:
        """Return its exit code, negative for a signal, None while it runs.

        After a signal the rest of its group is killed too: the JVM of a killed Python runs on for a while, and
        must not write to the checkpoint while the next process does.
        """
        if self._code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self._code = os.waitstatus_to_exitcode(status) if pid else None
            if self._code is not None and self._code < 0:
                # The id of a group is not reused while one of its processes runs.
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(self.pid, signal.SIGKILL)
        return self._code


def rotate_log(files: SupervisorFiles) -> None:
    """Rename a log that is too long; an earlier one is replaced."""
    if files.log.exists() and files.log.stat().st_size > MAX_LOG_BYTES:
        files.log.replace(files.log.with_name("log.1.txt"))


def spawn(words: Sequence[str], files: SupervisorFiles) -> SpawnedProcess:
    """Start this program with other arguments in its own session; its output goes to log.txt."""
    files.root.mkdir(parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    outputs = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(files.log), flags, 0o644),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    command = [*PROGRAM, *words]
    # posix_spawn, not fork: this process may run threads of Spark.  In its own session a child survives the terminal.
    try:
        return SpawnedProcess(os.posix_spawn(command[0], command, os.environ, file_actions=outputs, setsid=True))
    except OSError as cause:
        raise StreamError(
            f"the process of the job cannot be started: {cause}",
            code="W2201",
            help="check the memory and the number of processes of this machine, and the space on its disk",
        ) from cause


_PATIENCE = 15.0


def stop_job(
    files: SupervisorFiles, job: str, *, timeout: float = 60.0, force: bool = False, world: Environment | None = None
) -> str:
    """Stop a job; return how: after its batch, ended, or killed.  Raise W2215 if it is not running or does not end.

    Signals are sent only to the processes in the record and the locks, while they are still the same.
    """
    world = world or Environment()
    by = find_keeper(files)
    if by is None:
        raise _not_running_error(files, job)
    how = _end_processes(files, by, timeout, force=force, world=world)
    if how is None:
        raise _still_running_error(files, job, by, timeout, force=force)
    _record_end(files, job)
    return how


def _end_processes(
    files: SupervisorFiles, by: Holder, timeout: float, *, force: bool, world: Environment
) -> str | None:
    request_stop(files)
    if _wait_gone(files, by, timeout, world):
        return "after its batch"
    patience = min(timeout, _PATIENCE)
    for number, how in ((signal.SIGTERM, "ended"), (signal.SIGKILL, "killed")):
        if number == signal.SIGKILL and not force:
            return None
        # The workers, not the supervisor: it records how its child ended, and releases the lock.
        for one in _list_workers(files):
            send_signal(one, number)
        if _wait_gone(files, by, patience, world):
            return how
    send_signal(by.process, signal.SIGKILL)  # a supervisor that hangs
    return "killed" if _wait_gone(files, by, patience, world) else None


def _list_workers(files: SupervisorFiles) -> list[Process]:
    """Return the processes of the job: the recorded child, and the holders of statement locks."""
    record = try_read_record(files)
    workers = [] if record is None else [record.child]
    return list(dict.fromkeys([*workers, *(by.process for by in _statement_holders(files))]))


def _statement_holders(files: SupervisorFiles) -> Iterator[Holder]:
    for lock in sorted(files.job.glob("*/lock")):
        by = find_holder(lock)
        if lock != files.lock and by is not None:
            yield by


def _wait_gone(files: SupervisorFiles, by: Holder, seconds: float, world: Environment) -> bool:
    until = world.now() + seconds
    while True:
        now = find_keeper(files)
        if now is None or (now.process != by.process and now.process.runs):  # ended; perhaps started again
            return True
        if world.now() >= until:
            return False
        # A supervisor that has just started clears earlier requests to stop, and this one with them.
        request_stop(files)
        world.sleep(_LOOK)


def _record_end(files: SupervisorFiles, job: str) -> None:
    """Record that a job was stopped if its supervisor was killed and cannot."""
    with suppress(StreamError), hold_lock(files.lock, lambda by: already_running(job, by)):
        record = try_read_record(files)
        if record is not None and record.at_work:
            write_record(files, replace(record, state="stopped"))


def _not_running_error(files: SupervisorFiles, job: str) -> StreamError:
    record = try_read_record(files)
    killed = record is not None and record.at_work
    why = ": its processes were killed" if killed else ""
    return StreamError(
        f"the job {job!r} is not running{why}",
        code="W2215",
        help=f"`weft stream start {quote_for_shell(job)}` starts it, `weft stream status` shows all jobs",
    )


def _still_running_error(files: SupervisorFiles, job: str, by: Holder, timeout: float, *, force: bool) -> StreamError:
    alive = [one for one in (*_list_workers(files), by.process) if one.runs]
    if force and not alive:
        help = f"its processes are not on this machine: end {by} there"
    elif force:
        help = f"end process {alive[0].pid} by hand; nothing that is committed is lost"
    else:
        help = f"`weft stream stop {quote_for_shell(job)} --force` kills its process; nothing that is committed is lost"
    return StreamError(f"the job {job!r} did not end within {timeout:g} s", code="W2215", help=help)
