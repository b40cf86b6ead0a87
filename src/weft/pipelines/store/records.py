"""Records of the store: runs, their operations and outputs, leases, versions."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, TypedDict

from weft.core.calendar import Period
from weft.core.documents import OPEN_WORD, Document, Key
from weft.errors import Code
from weft.io.staged import StagedFile
from weft.joins.facts import JoinCounts
from weft.pipelines.model.dataset import Dataset
from weft.pipelines.model.project import Project
from weft.pipelines.model.values import OperationType, ProjectStatus, ResolverSource, RunStatus
from weft.pipelines.plan.catalog import PublishedLocation
from weft.pipelines.plan.impact import ConflictReport
from weft.redaction import redact

_SHORT = 13  # two groups of hexadecimal digits, which hold the 48 bits of the time, and the dash between them


def run_id(now_ms: int, random: bytes) -> str:
    """Return a UUID of version 7: milliseconds since 1970, then random bits; ids sort by time.

    >>> run_id(1_763_200_000_000, bytes(10))
    '019a86e8-e000-7000-8000-000000000000'
    """
    value = (now_ms & (1 << 48) - 1) << 80 | int.from_bytes(random[:10], "big")
    value = value & ~(0xF << 76) | 0x7 << 76  # the version
    value = value & ~(0x3 << 62) | 0x2 << 62  # the variant
    return str(uuid.UUID(int=value))


def short_id(run: str) -> str:
    """Return the start of a run's id that people read and type: its whole time, to the millisecond.

    >>> short_id("019a86f6-3800-7000-8000-000000000000")
    '019a86f6-3800'
    """
    return run[:_SHORT]


OutputState = Literal["staged", "publishing", "published", "discarded"]
StepStatus = Literal["pending", "running", "completed", "failed"]
Trigger = Literal["manual", "scheduled", "test"]


class PinnedJoin(TypedDict):
    """The version of a dataset that a join reads."""

    alias: str
    dataset_id: str
    dataset_version: int
    resolver_source: Annotated[ResolverSource, OPEN_WORD]


class ResolverSnapshot(TypedDict):
    """Which versions a run reads: its input, and one entry for each join."""

    input_dataset_id: str
    input_dataset_version: int
    join_datasets: list[PinnedJoin]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRun:
    """A run that is about to start."""

    run_id: str
    project: Project
    period: Period
    snapshot: Mapping[str, Any]
    sandbox: bool
    known_at: dt.datetime
    run_at: dt.datetime
    trigger: Trigger
    triggered_by: str
    host: str
    pid: int
    rerun_of: str | None = None
    parent_run_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFailure(Document):
    """Why a run failed: the operation, the code, one sentence and the details."""

    operation_order: int | None = None
    code: Annotated[Code, OPEN_WORD]
    message: str
    detail: str = ""

    def __post_init__(self) -> None:
        # The store is shared: secrets that an exception may contain are removed.
        object.__setattr__(self, "message", redact(self.message))
        object.__setattr__(self, "detail", redact(self.detail))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord(Document):
    """A run in the store."""

    DOCUMENT: ClassVar = (
        "id", "project_name", "project_id", "project_version", "period", "status", "sandbox", "trigger",
        "triggered_by", "known_at", "started_at", "completed_at", "seconds", "last_completed_operation",
        "attempt", "rerun_of", "snapshot_sha", "failure",
    )  # fmt: skip

    id: Annotated[str, Key("run_id")]
    project_id: str
    project_name: Annotated[str, Key("project")]
    project_version: int
    period: str
    level: str
    status: RunStatus
    trigger: Trigger
    triggered_by: str
    sandbox: bool
    known_at: dt.datetime
    run_at: dt.datetime
    created_at: dt.datetime
    started_at: dt.datetime | None = None
    completed_at: dt.datetime | None = None
    last_completed_operation: int | None = None
    failure: Annotated[RunFailure | None, Key("error")] = None
    snapshot_sha: Annotated[str, Key("snapshot")]
    parent_run_id: str | None = None
    rerun_of: str | None = None
    attempt: int = 1
    host: str = ""
    pid: int = 0

    @property
    def run_id(self) -> str:
        """The id of the run."""
        return self.id

    @property
    def is_over(self) -> bool:
        """Whether the run has ended: a failed one may be resumed, the others stay as they are."""
        return self.status in ("completed", "failed", "cancelled")

    @property
    def seconds(self) -> float | None:
        """How long the last attempt took, or None while it has not ended."""
        if self.started_at is None or self.completed_at is None:
            return None
        return (self.completed_at - self.started_at).total_seconds()


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationCounts:
    """Rows that are not deleted before and after an operation, and rows that it changed, added or wrote."""

    seq: int
    rows_in: int
    rows_out: int
    rows_changed: int
    joins: tuple[JoinCounts, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationRecord(Document):
    """One operation of a run and what it counted; counts of one that did not run are None."""

    DOCUMENT: ClassVar = ("seq", "name", "type", "status", "rows_in", "rows_out", "rows_changed", "joins")

    run_id: str
    seq: int
    name: str
    type: OperationType
    status: StepStatus
    rows_in: int | None = None
    rows_out: int | None = None
    rows_changed: int | None = None
    joins: tuple[JoinCounts, ...] = ()
    started_at: dt.datetime | None = None
    completed_at: dt.datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputRecord:
    """An output of a run and its state between stage and target."""

    run_id: str
    seq: int
    state: OutputState
    stage: str
    target: str
    backup: str
    kind: str
    format: str
    rows: int
    columns: tuple[str, ...]
    manifest: tuple[StagedFile, ...] = ()
    register_as: str | None = None
    dataset_id: str | None = None
    dataset_version: int | None = None

    @property
    def is_files(self) -> bool:
        """Whether the output is files that are renamed, not rows of a table."""
        return self.kind in ("files", "file")


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """A dataset that an output registers when its run completes.

    The store gives it the next version of its id, and at least the one that `dataset` has;
    `location` has the period, the path and the format.
    """

    dataset: Dataset
    location: PublishedLocation
    seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRecord:
    """The holder of a lock, and the time of its last heartbeat."""

    name: str
    run_id: str
    owner: str
    host: str
    pid: int
    acquired_at: dt.datetime
    heartbeat_at: dt.datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionRecord:
    """One version of an entity that the store keeps, without its body."""

    id: str
    version: int
    name: str
    status: str
    fingerprint: str
    recorded_at: dt.datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectState:
    """The recorded state of a project."""

    project_id: str
    status: ProjectStatus
    active_version: int | None
    pinned_dataset_version: int | None
    conflict: ConflictReport | None
    updated_at: dt.datetime
