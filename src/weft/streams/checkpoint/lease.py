"""Leases: in a store, one process at a time runs a statement on its checkpoint.

::

    lease/000007.json     {"host": .., "pid": .., "began": .., "held": true}     written again every few seconds

A store has no locks that end with their process.  A lease that its holder no longer renews ends after `LASTS` seconds,
and the next start takes a lease with the next number; the file of a number is created once, so one start gets it.

A holder that was cut off may wake up later.  Before a commit it looks for a later lease, and of two processes that
commit one batch, only one creates its file.  So each batch is committed once; what the other wrote is in no commit.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from weft.errors import FileStoreError, StreamError
from weft.io.stores.store_path import Place, StorePath
from weft.streams.checkpoint.lock import Holder, Process, find_holder, hold_lock, this_process

LASTS = 60.0
"""Seconds after which a lease ends that is not renewed."""
RENEWED = 10.0
_DIGITS = 6
_FOLDER = "lease"


@dataclass(slots=True)
class Lease:
    """The lease of this process on a checkpoint."""

    path: StorePath
    statement: str
    ended: threading.Event = field(default_factory=threading.Event)

    @property
    def is_last(self) -> bool:
        """Whether no other process has taken a later lease."""
        return _find_newest(self.path.parent) in (None, self.path)

    def check(self) -> None:
        """Raise `StreamError` W2205 if another process has taken a later lease."""
        newest = _find_newest(self.path.parent)
        if newest is not None and newest != self.path:
            raise StreamError(
                f"{self.statement!r} is now running in {read_lease(newest) or 'another process'}: this process was cut off "
                f"from {str(self.path.parent.parent)!r} for more than {LASTS:.0f} seconds",
                code="W2205",
                help="nothing of this batch is committed; the other process continues after the last commit",
            )

    def renew(self) -> None:
        """Write the lease again until it is released; a store that does not answer is asked again."""
        while not self.ended.wait(RENEWED):
            with suppress(FileStoreError, OSError):
                self.path.write_text(_describe(held=True))


@contextmanager
def lock_statement(lock: Place, statement: str) -> Iterator[Lease | None]:
    """Hold the lock of a checkpoint in the block; raise `StreamError` W2205 if another process holds it.

    In a store it is a lease, which is returned.
    """
    if isinstance(lock, StorePath):
        with hold_lease(lock.with_name(_FOLDER), statement) as lease:
            yield lease
        return

    def refusal(by: Holder) -> StreamError:
        return StreamError(
            f"{statement!r} is already running in {by}: its checkpoint {str(lock.parent)!r} is in use",
            code="W2205",
            help="`weft stream status` shows it, `weft stream stop JOB` stops a job that was started",
        )

    with hold_lock(lock, refusal):
        yield None


def find_runner(lock: Place) -> Holder | None:
    """Return the process that runs the statement of a lock, None if there is none."""
    return find_leaseholder(lock.with_name(_FOLDER)) if isinstance(lock, StorePath) else find_holder(lock)


@contextmanager
def hold_lease(folder: StorePath, statement: str) -> Iterator[Lease]:
    """Hold the lease of a checkpoint in the block; raise `StreamError` W2205 if another process holds it."""
    newest = _find_newest(folder)
    by = None if newest is None else find_leaseholder(folder)
    if by is not None:
        raise _held_error(by, folder, statement)
    number = 1 + (0 if newest is None else int(newest.stem))
    path = folder / f"{number:0{_DIGITS}}.json"
    try:
        path.store.create(path.key, _describe(held=True).encode())
    except FileExistsError:  # two starts at once
        raise _held_error(read_lease(path), folder, statement) from None
    lease = Lease(path, statement)
    renewing = threading.Thread(target=lease.renew, name=f"weft-lease-{statement}", daemon=True)
    renewing.start()
    try:
        yield lease
    finally:
        lease.ended.set()
        renewing.join()
        with suppress(FileStoreError, OSError):
            path.write_text(_describe(held=False))
            folder.store.delete(p.key for p in folder.iterdir() if p != path and p.stem < path.stem)


def find_leaseholder(folder: StorePath) -> Holder | None:
    """Return the process that holds the lease of a checkpoint, None if it is free."""
    newest = _find_newest(folder)
    by = None if newest is None else read_lease(newest)
    if newest is None or by is None:
        return None
    if by.host == socket.gethostname() and _is_near(by.process):
        return by if by.process.runs else None
    # By the clock of the store alone: those of two machines may differ.
    with suppress(FileNotFoundError):
        return by if _read_clock(folder) - newest.stat().st_mtime < LASTS else None
    return None


def _is_near(process: Process) -> bool:
    """Return whether the id of a process means something here: machines may have the same name."""
    me = this_process().began
    return "/" in me and process.began.partition("/")[0] == me.partition("/")[0]


def read_lease(path: StorePath) -> Holder | None:
    """Return the holder that a lease names, None if it was released."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        document = json.loads(path.read_text())
        if document["held"]:
            return Holder(str(document["host"]), Process(int(document["pid"]), str(document["began"])))
    return None


def _find_newest(folder: StorePath) -> StorePath | None:
    leases = [path for path in folder.iterdir() if path.stem.isdigit()]
    return max(leases, key=lambda path: int(path.stem), default=None)


def _read_clock(folder: StorePath) -> float:
    """Return the time of the store, as it is for a file that is written now."""
    path = folder / f"clock-{os.getpid()}-{time.time_ns()}"
    try:
        path.write_bytes(b"")
        return float(path.stat().st_mtime)
    except FileStoreError:  # `status` may read, but not write
        return time.time()
    finally:
        with suppress(FileStoreError):
            path.unlink(missing_ok=True)


def _describe(*, held: bool) -> str:
    me = this_process()
    return json.dumps(
        {"host": socket.gethostname(), "pid": me.pid, "began": me.began, "held": held, "at": time.time_ns()}
    )


def _held_error(by: Holder | None, folder: StorePath, statement: str) -> StreamError:
    return StreamError(
        f"{statement!r} is already running in {by or 'another process'}: its checkpoint {str(folder.parent)!r} is in use",
        code="W2205",
        help=f"stop that process; if its machine is gone, its lease ends {LASTS:.0f} seconds after it was renewed last",
    )
