"""Lock: one process at a time runs a statement on its checkpoint, and one supervises a job.

The system holds the lock and frees it when the process ends, however it ends; the file names the process.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from weft.errors import StreamError
from weft.streams.checkpoint.processes import Process, this_process

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
def held(lock: Path, statement: str) -> Iterator[None]:
    """Hold the lock of a checkpoint while the block runs; raise `StreamError` W2205 when another has it."""

    def refusal(by: Holder) -> StreamError:
        return StreamError(
            f"{statement!r} is run by {by}: its checkpoint {str(lock.parent)!r} is in use",
            code="W2205",
            help="`weft stream status` tells of it, `weft stream stop JOB` ends a job that was started",
        )

    with locked(lock, refusal):
        yield


@contextmanager
def locked(
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


def holder(lock: Path) -> Holder | None:
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
