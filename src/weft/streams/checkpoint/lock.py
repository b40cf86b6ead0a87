"""Locks on a disk: one process at a time runs a statement on its checkpoint, and one supervises a job.

The operating system releases the lock when the process ends, however it ends; the file names the process.

The operating system reuses process ids.  A process is therefore identified by its id and its start time, which Linux
counts from the boot of the machine.  The boot id is part of it, so that a process before a reboot, or on another
machine, is never mistaken for one of this machine.
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

_ENDED = ("Z", "X")  # a zombie waits for its parent and holds no lock
_SINCE = "/"
_BOOT = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class Process:
    """A process, identified by its id and its start time (see `read_start`)."""

    pid: int
    began: str

    @property
    def runs(self) -> bool:
        """Whether this process is still running."""
        now = read_start(self.pid)
        # Files of earlier versions have the time without the boot id.
        return bool(self.began) and self.began in (now, now.rpartition(_SINCE)[2])


def this_process() -> Process:
    """Return the current process.

    >>> this_process().runs
    True
    """
    return find_process(os.getpid())


def find_process(pid: int) -> Process:
    """Return the process with an id; one that has ended has no start time.

    >>> find_process(2**22 + 1).runs
    False
    """
    return Process(pid, read_start(pid))


def read_start(pid: int) -> str:
    """Return the start time of a process as the system formats it; empty if it has ended."""
    if pid <= 0:
        return ""
    if not Path("/proc/self/stat").exists():  # macOS
        return _read_start_with_ps(pid)
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    # The name is in brackets and may contain anything; the fields after it are numbers.
    fields = text.rpartition(")")[2].split()
    return "" if fields[0] in _ENDED else _since_boot(fields[19])


def _since_boot(ticks: str) -> str:
    try:
        return f"{_BOOT.read_text(encoding='ascii').strip()[:8]}{_SINCE}{ticks}"
    except OSError:
        return ticks


def _read_start_with_ps(pid: int) -> str:
    program = shutil.which("ps")
    if program is None:
        return ""
    result = subprocess.run(  # noqa: S603  # the system's own program, a number as its argument
        [program, "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    state, _, start = result.stdout.strip().partition(" ")
    return "" if not state or state[0] in _ENDED else start.strip()


_TRIES, _PAUSE = 40, 0.025  # one second in all, far longer than a look at the lock takes


@dataclass(frozen=True, slots=True)
class Holder:
    """The process that holds a lock; id 0 if it has not written its name yet."""

    host: str
    process: Process

    def __str__(self) -> str:
        """Return the holder for messages."""
        if not self.process.pid:
            return "another process"
        where = "" if self.host == socket.gethostname() else f" on {self.host}"
        return f"process {self.process.pid}{where}"


@contextmanager
def hold_lock(lock: Path, refusal: Callable[[Holder], StreamError], *, inherited: bool = False) -> Iterator[None]:
    """Hold a lock in the block; raise the result of `refusal` if another process holds it.

    With `inherited`, child processes hold the lock as well: it is released when all have ended.
    """
    lock.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        if not _try_lock(handle, lock):
            raise refusal(_read_holder(lock) or _UNKNOWN_HOLDER)
        try:
            _write_holder(handle)
            os.set_inheritable(handle, inherited)
            yield
        finally:
            # Emptied, not removed: another process that has the file open would lock a name that is gone.
            os.ftruncate(handle, 0)
    finally:
        os.close(handle)


def _try_lock(handle: int, lock: Path) -> bool:
    """Try to take a lock.

    `find_holder` takes a lock for an instant, so a lock without a running holder is tried again.
    """
    for left in reversed(range(_TRIES)):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            by = _read_holder(lock)
            if not left or (by is not None and by.process.runs):
                return False
            time.sleep(_PAUSE)
        else:
            return True
    return False


def find_holder(lock: Path) -> Holder | None:
    """Return the holder of a lock, None if it is free.

    The name of a dead process in the file is ignored; its lock may be held by a child process.
    """
    try:
        # Read access is enough, and all that another user may have.
        handle = os.open(lock, os.O_RDONLY)
    except OSError:
        return None
    try:
        # Shared, so that two status commands do not take each other for the job.
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _read_holder(lock) or _UNKNOWN_HOLDER
    else:
        return None
    finally:
        os.close(handle)


_UNKNOWN_HOLDER = Holder(socket.gethostname(), Process(0, ""))


def _write_holder(handle: int) -> None:
    me = this_process()
    document = {"host": socket.gethostname(), "pid": me.pid, "began": me.began}
    # A killed holder leaves its name, which may be longer.
    os.ftruncate(handle, 0)
    os.pwrite(handle, json.dumps(document).encode(), 0)


def _read_holder(lock: Path) -> Holder | None:
    # The file is empty for a moment between taking the lock and writing the name.
    with suppress(OSError, ValueError, KeyError, TypeError):
        document = json.loads(lock.read_text(encoding="utf-8"))
        return Holder(str(document["host"]), Process(int(document["pid"]), str(document["began"])))
    return None
