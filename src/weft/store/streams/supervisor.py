"""What a supervised job leaves on disk: who runs it, how often it fell, and the wish to stop.

::

    <job folder>/.supervisor/supervisor.json   the supervisor, its child, restarts, the last error
                             log.txt           what both print
                             answer.json       how the child ended, when it could say so
                             stop              there when the job is to end after its batch
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from weft.core.frozen import FrozenMap, frozen
from weft.store.streams.durable import damaged, read_document, remove, write_document
from weft.store.streams.processes import Process

State = Literal["starting", "running", "waiting", "stopped", "failed"]
FOLDER = ".supervisor"
_AT_WORK = ("starting", "running", "waiting")


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
class SupervisorRecord:
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

    @property
    def supervisor(self) -> Process:
        """The process that watches."""
        return Process(self.pid, self.began)

    @property
    def child(self) -> Process:
        """The process that runs the job."""
        return Process(self.child_pid, self.child_began)

    @property
    def alive(self) -> Process | None:
        """The process that keeps the job running, None when there is none: it ended, or nobody watches it."""
        if self.child.runs:
            return self.child
        return self.supervisor if self.state in _AT_WORK and self.supervisor.runs else None

    def to_dict(self) -> dict[str, Any]:
        """Return the document."""
        return {"format": 1, **{name: getattr(self, name) for name in self.__slots__}}


def write_record(files: SupervisorFiles, record: SupervisorRecord) -> None:
    """Say how it stands with a job."""
    write_document(files.record, record.to_dict())


def read_record(files: SupervisorFiles) -> SupervisorRecord | None:
    """Return how it stands with a job, None when it was never started."""
    if not files.record.exists():
        return None
    said = read_document(files.record)
    try:
        return SupervisorRecord(**{n: frozen(said[n]) for n in SupervisorRecord.__slots__ if n in said})
    except TypeError as cause:
        raise damaged(files.record, str(cause)) from cause


def ask_to_stop(files: SupervisorFiles) -> None:
    """Say that the job is to end after its batch."""
    files.folder.mkdir(parents=True, exist_ok=True)
    files.stop.touch()


def asked_to_stop(files: SupervisorFiles) -> bool:
    """Whether the job is to end."""
    return files.stop.exists()


def forget_stop(files: SupervisorFiles) -> None:
    """Take back the wish to end: the job is started again."""
    remove(files.stop)
    remove(files.answer)


def write_answer(files: SupervisorFiles, document: Mapping[str, Any]) -> None:
    """Leave how the child ended; the supervisor reads it."""
    write_document(files.answer, document)


def read_answer(files: SupervisorFiles) -> dict[str, Any] | None:
    """Return how the child ended, None when it could not say."""
    return read_document(files.answer) if files.answer.exists() else None
