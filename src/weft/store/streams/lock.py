"""Lock: one process at a time runs a statement on its checkpoint.

The system holds the lock and frees it when the process ends, however it ends; the file says who has it.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from weft.errors import StreamError
from weft.store.streams.processes import Process, this_process


@dataclass(frozen=True, slots=True)
class Holder:
    """Who has a lock."""

    host: str
    process: Process


@contextmanager
def held(lock: Path, statement: str) -> Iterator[None]:
    """Hold the lock of a checkpoint while the block runs; raise `StreamError` W2205 when another has it."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as cause:
            raise _in_use(lock, statement) from cause
        _write(handle)
        yield
        os.ftruncate(handle, 0)
    finally:
        os.close(handle)


def holder(lock: Path) -> Holder | None:
    """Return who holds the lock of a checkpoint now, None when nobody does.

    A file that a dead process left is nobody's.
    """
    try:
        handle = os.open(lock, os.O_RDWR)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _named(lock) or Holder(socket.gethostname(), Process(0, ""))
    else:
        return None
    finally:
        os.close(handle)


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


def _in_use(lock: Path, statement: str) -> StreamError:
    found = _named(lock)
    who = f"process {found.process.pid} on {found.host}" if found else "another process"
    return StreamError(
        f"{statement!r} is run by {who}: its checkpoint {str(lock.parent)!r} is in use",
        code="W2205",
        help="`weft stream status` tells of it, `weft stream stop JOB` ends a job that was started",
    )
