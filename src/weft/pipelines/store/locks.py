"""Leases: one process at a time works on a project and period, and the lock of a dead process can be taken over.

::

    run/<project id>/<period>       a run of an active project
    sandbox/<project id>/<period>   a run of a draft
    publish/<target>                a run that is publishing to the target

The row is the lock: the process that inserts it holds it.  The holder renews `heartbeat_at`; a lease whose process
has ended, or that was not renewed for a minute, may be taken over.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import socket
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from sqlalchemy import Connection, delete, insert, select, update

from weft.errors import StoreError, WeftError
from weft.pipelines.store.records import LeaseRecord
from weft.pipelines.store.tables import LOCKS, added, lease_of

LEASE_SECONDS = 60
"""Many heartbeats long, so that a store that is restarted costs no run."""
BEAT_SECONDS = 5
_FIRST_PID_NAMESPACE = "pid:[4026531836]"
"""The namespace of a Linux host itself; its number is fixed in the kernel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """A lock that a process requests."""

    name: str
    run_id: str
    owner: str
    host: str
    pid: int


def run_lock(project_id: str, period: str, *, sandbox: bool) -> str:
    """Return the name of the lock that a run of a project and period holds.

    >>> run_lock("fx", "2026-01", sandbox=False), run_lock("fx", "2026-01", sandbox=True)
    ('run/fx/2026-01', 'sandbox/fx/2026-01')
    """
    return f"{'sandbox' if sandbox else 'run'}/{project_id}/{period}"


def publish_lock(target: str) -> str:
    """Return the name of the lock that a run holds while it publishes to a target."""
    return f"publish/{target}"


def this_process() -> tuple[str, int]:
    """Return the host and the number of this process; two containers on one host are two hosts."""
    host = socket.gethostname()
    with contextlib.suppress(OSError):
        namespace = str(Path("/proc/self/ns/pid").readlink())
        if namespace != _FIRST_PID_NAMESPACE:
            host = f"{host}/{namespace.strip('pid:[]')}"
    return host, os.getpid()


def is_alive(pid: int) -> bool:
    """Return whether a process of this host runs; one that has ended and waits to be reaped does not."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (ProcessLookupError, OverflowError):
        return False
    with contextlib.suppress(OSError, IndexError):
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        return state.rpartition(")")[2].split()[0] not in ("Z", "X")
    return True


def stale(lease: LeaseRecord, now: dt.datetime, host: str, alive: Callable[[int], bool] = is_alive) -> str:
    """Return why a lease may be taken over, or an empty string when its holder is alive."""
    # A process of this host can be looked up; one of another host is known by its heartbeats alone.
    if lease.host == host and not alive(lease.pid):
        return f"its process {lease.pid} has ended"
    silent = (now - lease.heartbeat_at).total_seconds()
    if silent > LEASE_SECONDS:
        return f"it was not renewed for {silent:.0f} s"
    return ""


def _values(lease: Lease, now: dt.datetime) -> dict[str, Any]:
    return asdict(lease) | {"acquired_at": now, "heartbeat_at": now}


def acquire(connection: Connection, lease: Lease, now: dt.datetime) -> LeaseRecord | None:
    """Take a lock; return None on success, else the holder."""
    values = _values(lease, now)
    if connection.execute(added(connection, LOCKS, values)).first() is not None:
        return None
    held = connection.execute(select(LOCKS).where(LOCKS.c.name == lease.name)).first()
    if held is None:  # freed between the two statements
        connection.execute(insert(LOCKS).values(**values))
        return None
    holder = lease_of(held)
    # A transaction whose connection broke is repeated: the row may be the one that it inserted.
    mine = (holder.run_id, holder.host, holder.pid) == (lease.run_id, lease.host, lease.pid)
    return None if mine else holder


def take(connection: Connection, seen: LeaseRecord, lease: Lease, now: dt.datetime) -> bool:
    """Take over a stale lease as it was seen; False when another process was faster or the lease was renewed."""
    # The heartbeat serves as a version number: it differs when the row was changed after it was read.
    taken = connection.execute(
        update(LOCKS)
        .where(LOCKS.c.name == seen.name, LOCKS.c.run_id == seen.run_id, LOCKS.c.heartbeat_at == seen.heartbeat_at)
        .values(**_values(lease, now))
    )
    return taken.rowcount == 1


def beat(connection: Connection, run_id: str, host: str, pid: int, now: dt.datetime) -> bool:
    """Renew the locks of a run; False when the process no longer holds any."""
    moved = connection.execute(
        update(LOCKS).where(LOCKS.c.run_id == run_id, LOCKS.c.host == host, LOCKS.c.pid == pid).values(heartbeat_at=now)
    )
    return moved.rowcount > 0


def holds(connection: Connection, run_id: str, host: str, pid: int, *, keep: bool = True) -> bool:
    """Return whether a process holds locks of a run, and `keep` it so until the transaction ends."""
    wanted = select(LOCKS.c.name).where(LOCKS.c.run_id == run_id, LOCKS.c.host == host, LOCKS.c.pid == pid)
    # SQLite ignores FOR UPDATE: there the transaction of a writer has the whole database.
    return connection.execute(wanted.with_for_update() if keep else wanted).first() is not None


def release(connection: Connection, run_id: str) -> None:
    """Free every lock of a run."""
    connection.execute(delete(LOCKS).where(LOCKS.c.run_id == run_id))


LOOK_SECONDS = 1.0
"""Seconds between two checks whether the run was cancelled; a check only reads."""


class Heartbeat:
    """Renews the locks of a run until its context ends; `check` raises once the run is lost or the store is unreachable.

    `look` is called more often than `beat`: it raises when the run is lost, so that a run that is cancelled
    from elsewhere stops within seconds.
    """

    def __init__(
        self,
        beat: Callable[[], None],
        every: float,
        look: Callable[[], None] | None = None,
        look_every: float = LOOK_SECONDS,
    ) -> None:
        self._beat = beat
        self._every = every
        self._look = look
        self._pause = every if look is None else min(every, look_every)
        self._over = threading.Event()
        self._failure: WeftError | None = None
        self._thread = threading.Thread(target=self._run, name="weft heartbeat", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End the thread; a beat that is under way is waited for."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()

    @property
    def is_lost(self) -> bool:
        """Whether a renewal has failed: the run was taken over, or the store is unreachable."""
        return self._failure is not None

    def check(self) -> None:
        """Raise the failure of a renewal, if there was one."""
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        waited = 0.0
        while not self._over.wait(self._pause):
            waited += self._pause
            try:
                if waited >= self._every:
                    waited = 0.0
                    self._beat()
                elif self._look is not None:
                    self._look()
            except StoreError as failure:
                # A store that does not answer a check may answer the next renewal.
                if waited == 0.0:
                    self._failure = failure
                    return
            except WeftError as failure:
                self._failure = failure
                return
