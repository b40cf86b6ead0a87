"""Files of a supervised job: its processes, its restarts, and the request to stop.

::

    <job folder>/.supervisor/lock              held while the supervisor or its child runs
                             supervisor.json   the supervisor, its child, restarts, the last error
                             log.txt           output of both
                             answer.json       result of the child, if it could write one
                             stop              exists if the job is to stop after its batch

The lock decides whether a job is running: the system releases it when its processes end, however they end.
Only the holder of the lock writes the record.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from weft.core.documents import Document
from weft.core.frozen import FrozenMap
from weft.errors import StreamError
from weft.streams.checkpoint.folder import Below, parse_record, read_document, remove_path, write_document
from weft.streams.checkpoint.lock import Holder, Process, find_holder

State = Literal["starting", "running", "waiting", "stopped", "failed"]
FOLDER = ".supervisor"
_AT_WORK = ("starting", "running", "waiting")
_LOCKED = 2
"""Format of records whose writers hold the lock; format 1 had no lock."""


@dataclass(frozen=True, slots=True)
class SupervisorFiles:
    """The paths of a supervised job."""

    job: Path

    @property
    def root(self) -> Path:
        """Folder of these files."""
        return self.job / FOLDER

    record = Below("supervisor.json")
    """Record of its processes."""
    lock = Below("lock")
    """Held while the job runs."""
    log = Below("log.txt")
    """Output of the supervisor and its child."""
    answer = Below("answer.json")
    """Result of the child."""
    stop = Below("stop")
    """Exists if the job is to stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SupervisorRecord(Document):
    """supervisor.json; times are microseconds, `restarts` are the times of restarts."""

    job: str
    state: State
    pid: int
    began: str
    since: int
    child_pid: int = 0
    child_began: str = ""
    restarts: tuple[int, ...] = ()
    error: FrozenMap[str, Any] | None = None
    format: int = _LOCKED

    @property
    def supervisor(self) -> Process:
        """The supervising process."""
        return Process(self.pid, self.began)

    @property
    def child(self) -> Process:
        """The process that runs the job."""
        return Process(self.child_pid, self.child_began)

    @property
    def at_work(self) -> bool:
        """Whether the job had not ended when this was written."""
        return self.state in _AT_WORK

    @property
    def alive(self) -> Process | None:
        """The process that keeps the job running, according to the record alone."""
        if self.child.runs:
            return self.child
        # From format 2 on a running supervisor holds the lock, so its record alone proves nothing.
        alone = self.format < _LOCKED and self.at_work and self.supervisor.runs
        return self.supervisor if alone else None


def write_record(files: SupervisorFiles, record: SupervisorRecord) -> None:
    """Write the record of a job; only the holder of the lock may do so."""
    write_document(files.record, record.to_dict())


def read_record(files: SupervisorFiles) -> SupervisorRecord | None:
    """Read the record of a job, None if it was never started; raise W2226 if it is damaged."""
    if not files.record.exists():
        return None
    try:
        record = parse_record(SupervisorRecord, read_document(files.record), files.record)
        numbers = (record.pid, record.child_pid, record.since, record.format, *record.restarts)
    except StreamError as cause:
        raise _damaged_record(files, cause.message.partition(": ")[2]) from cause
    except TypeError as cause:
        raise _damaged_record(files, str(cause)) from cause
    # `from_dict` does not check types, and a wrong one would fail later, where its cause is unknown.
    texts = (record.job, record.began, record.child_began)
    if record.state not in get_args(State) or not _have_type(numbers, int) or not _have_type(texts, str):
        raise _damaged_record(files, "its values have other types")
    return record


def _have_type(values: tuple[object, ...], kind: type) -> bool:
    return all(type(value) is kind for value in values)


def _damaged_record(files: SupervisorFiles, why: str) -> StreamError:
    return StreamError(
        f"{str(files.record)!r} is damaged: {why}",
        code="W2226",
        help="nothing of the job is lost: its lock shows whether it is running, and the next "
        "`weft stream start` writes the file again",
    )


def try_read_record(files: SupervisorFiles) -> SupervisorRecord | None:
    """Read the record of a job, None if it was never started or the record is damaged."""
    try:
        return read_record(files)
    except StreamError:
        return None


def find_keeper(files: SupervisorFiles) -> Holder | None:
    """Return the process that keeps a job running, None if it is not running.

    A child that runs without the lock was started by an earlier version, or its folder is on a disk on which
    child processes do not inherit locks.
    """
    # The lock first: a record may be old, and a process id in it may belong to another process by now.
    by = find_holder(files.lock)
    if by is not None:
        return by
    record = try_read_record(files)
    alive = None if record is None else record.alive
    return None if alive is None else Holder(socket.gethostname(), alive)


def request_stop(files: SupervisorFiles) -> None:
    """Request that the job stops after its batch."""
    files.root.mkdir(parents=True, exist_ok=True)
    files.stop.touch()


def is_stop_requested(files: SupervisorFiles) -> bool:
    """Return whether the job is to stop."""
    return files.stop.exists()


def clear_stop(files: SupervisorFiles) -> None:
    """Clear the request to stop and the last result."""
    remove_path(files.stop)
    remove_path(files.answer)


def write_answer(files: SupervisorFiles, document: Mapping[str, Any]) -> None:
    """Write the result of the child for the supervisor."""
    write_document(files.answer, document)


def read_answer(files: SupervisorFiles) -> dict[str, Any] | None:
    """Read the result of the child, None if it wrote none."""
    return read_document(files.answer) if files.answer.exists() else None
