"""What a supervised job leaves on disk: who runs it, how often it fell, and the wish to stop.

::

    <job folder>/.supervisor/lock              held while the supervisor or its child runs
                             supervisor.json   the supervisor, its child, restarts, the last error
                             log.txt           what both print
                             answer.json       how the child ended, when it could say so
                             stop              there when the job is to end after its batch

Whether a job runs is what the lock says, which the system frees when its processes end, however they end.
The record says the rest; it is written by the holder of the lock alone.
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
from weft.streams.checkpoint.durable import read_document, remove_path, write_document
from weft.streams.checkpoint.lock import Holder, Process, find_holder

State = Literal["starting", "running", "waiting", "stopped", "failed"]
FOLDER = ".supervisor"
_AT_WORK = ("starting", "running", "waiting")
_LOCKED = 2
"""Format of the records whose writers hold the lock; those of format 1 had none."""


@dataclass(frozen=True, slots=True)
class SupervisorFiles:
    """The places of a supervised job."""

    job: Path

    @property
    def folder(self) -> Path:
        """Folder of all of them."""
        return self.job / FOLDER

    @property
    def record(self) -> Path:
        """Who runs the job."""
        return self.folder / "supervisor.json"

    @property
    def lock(self) -> Path:
        """Held while the job runs."""
        return self.folder / "lock"

    @property
    def log(self) -> Path:
        """What the supervisor and its child print."""
        return self.folder / "log.txt"

    @property
    def answer(self) -> Path:
        """How the child ended."""
        return self.folder / "answer.json"

    @property
    def stop(self) -> Path:
        """There when the job is to end."""
        return self.folder / "stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class SupervisorRecord(Document):
    """supervisor.json; times are microseconds, `restarts` are when the child was started again."""

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
        """The process that watches."""
        return Process(self.pid, self.began)

    @property
    def child(self) -> Process:
        """The process that runs the job."""
        return Process(self.child_pid, self.child_began)

    @property
    def at_work(self) -> bool:
        """Whether the job was not at its end when this was written."""
        return self.state in _AT_WORK

    @property
    def alive(self) -> Process | None:
        """The process that keeps the job running, as far as the record alone can say."""
        if self.child.runs:
            return self.child
        alone = self.format < _LOCKED and self.at_work and self.supervisor.runs
        return self.supervisor if alone else None


def write_record(files: SupervisorFiles, record: SupervisorRecord) -> None:
    """Say how it stands with a job; only the holder of the lock does."""
    write_document(files.record, record.to_dict())


def read_record(files: SupervisorFiles) -> SupervisorRecord | None:
    """Return how it stands with a job, None when it was never started; raise W2226 when the file is damaged."""
    if not files.record.exists():
        return None
    try:
        said = read_document(files.record)
    except StreamError as cause:
        raise _damaged(files, cause.message.partition(": ")[2]) from cause
    try:
        found = SupervisorRecord.from_dict(said)
        numbers = (found.pid, found.child_pid, found.since, found.format, *found.restarts)
    except TypeError as cause:
        raise _damaged(files, str(cause)) from cause
    texts = (found.job, found.began, found.child_began)
    if found.state not in get_args(State) or not _are(numbers, int) or not _are(texts, str):
        raise _damaged(files, "its values have other types")
    return found


def _are(values: tuple[object, ...], kind: type) -> bool:
    return all(type(value) is kind for value in values)


def _damaged(files: SupervisorFiles, why: str) -> StreamError:
    return StreamError(
        f"{str(files.record)!r} is damaged: {why}",
        code="W2226",
        help="nothing of the job is lost: whether it runs is known from its lock, and the next "
        "`weft stream start` writes the file again",
    )


def try_read_record(files: SupervisorFiles) -> SupervisorRecord | None:
    """Return how it stands with a job, None when it was never started or the file is damaged."""
    try:
        return read_record(files)
    except StreamError:
        return None


def find_keeper(files: SupervisorFiles) -> Holder | None:
    """Return who keeps a job running, None when nobody does.

    The lock tells it.  A child that runs without it was started by an earlier version, or its folder is on a
    disk on which a lock is not handed on to a child.
    """
    by = find_holder(files.lock)
    if by is not None:
        return by
    record = try_read_record(files)
    alive = None if record is None else record.alive
    return None if alive is None else Holder(socket.gethostname(), alive)


def request_stop(files: SupervisorFiles) -> None:
    """Say that the job is to end after its batch."""
    files.folder.mkdir(parents=True, exist_ok=True)
    files.stop.touch()


def is_stop_requested(files: SupervisorFiles) -> bool:
    """Whether the job is to end."""
    return files.stop.exists()


def clear_stop(files: SupervisorFiles) -> None:
    """Take back the wish to end: the job is started again."""
    remove_path(files.stop)
    remove_path(files.answer)


def write_answer(files: SupervisorFiles, document: Mapping[str, Any]) -> None:
    """Leave how the child ended; the supervisor reads it."""
    write_document(files.answer, document)


def read_answer(files: SupervisorFiles) -> dict[str, Any] | None:
    """Return how the child ended, None when it could not say."""
    return read_document(files.answer) if files.answer.exists() else None
