"""Lock: one process at a time runs a statement on its checkpoint, and one supervises a job.

The system holds the lock and frees it when the process ends, however it ends; the file names the process.

The system reuses the numbers of ended processes.  A process is therefore known by its number and the moment it
began, which Linux counts from the start of the machine: the start is part of it, so that a process before a reboot,
or on another machine, is never taken for one of this machine.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from weft.errors import StreamError

_ENDED = ("Z", "X")
_SINCE = "/"
_BOOT = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class Process:
    """A process by its number and its beginning, as `read_start` tells it."""

    pid: int
    began: str

    @property
    def runs(self) -> bool:
        """Whether this very process still runs."""
        now = read_start(self.pid)
        # Files of earlier versions have the moment without the start of the machine.
        return bool(self.began) and self.began in (now, now.rpartition(_SINCE)[2])


def this_process() -> Process:
    """Return the process that asks.

    >>> this_process().runs
    True
    """
    return find_process(os.getpid())


def find_process(pid: int) -> Process:
    """Return the process that has a number now; one that is gone has no beginning.

    >>> find_process(2**22 + 1).runs
    False
    """
    return Process(pid, read_start(pid))


def read_start(pid: int) -> str:
    """Return when a process began, in the system's own words; empty when there is none or it has ended."""
    if pid <= 0:
        return ""
    if not Path("/proc/self/stat").exists():
        return _told_by_ps(pid)
    try:
        told = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    # The name is in brackets and may hold anything; the fields behind it are numbers.
    fields = told.rpartition(")")[2].split()
    return "" if fields[0] in _ENDED else _since_boot(fields[19])


def _since_boot(ticks: str) -> str:
    try:
        return f"{_BOOT.read_text(encoding='ascii').strip()[:8]}{_SINCE}{ticks}"
    except OSError:
        return ticks


def _told_by_ps(pid: int) -> str:
    program = shutil.which("ps")
    if program is None:
        return ""
    told = subprocess.run(  # noqa: S603  # the system's own program, a number as its argument
        [program, "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    state, _, start = told.stdout.strip().partition(" ")
    return "" if not state or state[0] in _ENDED else start.strip()


_TRIES, _PAUSE = 40, 0.025


@dataclass(frozen=True, slots=True)
class Holder:
    """Who has a lock; a process with number 0 has not written its name yet."""

    host: str
    process: Process

    def __str__(self) -> str:
        """Return the holder as messages name it."""
        if not self.process.pid:
            return "another process"
        where = "" if self.host == socket.gethostname() else f" on {self.host}"
        return f"process {self.process.pid}{where}"


@contextmanager
def lock_statement(lock: Path, statement: str) -> Iterator[None]:
    """Hold the lock of a checkpoint while the block runs; raise `StreamError` W2205 when another has it."""

    def refusal(by: Holder) -> StreamError:
        return StreamError(
            f"{statement!r} is run by {by}: its checkpoint {str(lock.parent)!r} is in use",
            code="W2205",
            help="`weft stream status` tells of it, `weft stream stop JOB` ends a job that was started",
        )

    with hold_lock(lock, refusal):
        yield


@contextmanager
def hold_lock(
    lock: Path, refusal: Callable[[Holder], StreamError], *, inherited: bool = False
) -> Iterator[None]:
    """Hold a lock while the block runs; raise what `refusal` makes of its holder when another has it.

    With `inherited` the processes that this one starts hold the lock as well: it is free when all have ended.
    """
    lock.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        if not _taken(handle, lock):
            raise refusal(_named(lock) or _NOBODY_NAMED)
        try:
            _write(handle)
            os.set_inheritable(handle, inherited)
            yield
        finally:
            os.ftruncate(handle, 0)
    finally:
        os.close(handle)


def _taken(handle: int, lock: Path) -> bool:
    """Take a lock if it is free.

    Looking for the holder of a lock takes it for an instant, so one that no living process has put its name
    into is tried again before it counts as held.
    """
    for left in reversed(range(_TRIES)):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            by = _named(lock)
            if not left or (by is not None and by.process.runs):
                return False
            time.sleep(_PAUSE)
        else:
            return True
    return False


def find_holder(lock: Path) -> Holder | None:
    """Return who holds a lock now, None when nobody does.

    The name that a dead process left in the file means nothing; the lock of one that died may be held by a
    process that it started.
    """
    try:
        # Reading is enough to look, and all that another user may do.
        handle = os.open(lock, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _named(lock) or _NOBODY_NAMED
    else:
        return None
    finally:
        os.close(handle)


_NOBODY_NAMED = Holder(socket.gethostname(), Process(0, ""))


def _write(handle: int) -> None:
    me = this_process()
    said = {"host": socket.gethostname(), "pid": me.pid, "began": me.began}
    os.ftruncate(handle, 0)
    os.pwrite(handle, json.dumps(said).encode(), 0)


def _named(lock: Path) -> Holder | None:
    # Between taking the lock and writing the name there is a moment in which the file is empty.
    with suppress(OSError, ValueError, KeyError, TypeError):
        said = json.loads(lock.read_text(encoding="utf-8"))
        return Holder(str(said["host"]), Process(int(said["pid"]), str(said["began"])))
    return None
