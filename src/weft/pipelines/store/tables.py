"""The tables of the store; `migrations` builds the same ones step by step.

The tables hold names, versions, counts, locations and hashes, never rows of data.  Every constraint has a name, the same
in every database, so that a migration can change it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Connection,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    Row,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql.dml import ReturningInsert

from weft.io.datasource import EntityStatus
from weft.io.staged import StagedFile
from weft.joins.facts import JoinCounts
from weft.pipelines.model.values import OperationType, ProjectStatus, RunStatus
from weft.pipelines.plan.catalog import PublishedLocation
from weft.pipelines.store.column_types import Json, Moment
from weft.pipelines.store.records import (
    LeaseRecord,
    OperationRecord,
    OutputRecord,
    OutputState,
    RunFailure,
    RunRecord,
    StepStatus,
    Trigger,
    VersionRecord,
)

VERSION_TABLE = "store_version"
HEAD = "0001"
METADATA = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(referred_table_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)


def _needed(kind: Any, *names: str) -> list[Column[Any]]:
    """Return columns of one type that are never NULL."""
    return [Column(name, kind, nullable=False) for name in names]


def _one_of(column: str, words: Any) -> CheckConstraint:
    allowed = ", ".join(f"'{word}'" for word in get_args(words))
    return CheckConstraint(f"{column} IN ({allowed})", name=column)


DATASETS = Table(
    "datasets",
    METADATA,
    *_needed(Text, "id"),
    *_needed(Integer, "version"),
    *_needed(Text, "name", "status", "origin"),
    *_needed(Json, "body"),
    *_needed(Text, "fingerprint"),
    *_needed(Moment, "published_at"),
    PrimaryKeyConstraint("id", "version"),
    UniqueConstraint("name", "version"),
    _one_of("status", EntityStatus),
    CheckConstraint("origin IN ('file', 'registered')", name="origin"),
    CheckConstraint("version > 0", name="version"),
)

PROJECTS = Table(
    "projects",
    METADATA,
    *_needed(Text, "id"),
    *_needed(Integer, "version"),
    *_needed(Text, "name", "status"),
    *_needed(Json, "body"),
    *_needed(Text, "fingerprint"),
    *_needed(Moment, "created_at"),
    PrimaryKeyConstraint("id", "version"),
    _one_of("status", ProjectStatus),
    CheckConstraint("version > 0", name="version"),
)

RESOLVERS = Table(
    "resolvers",
    METADATA,
    *_needed(Text, "id"),
    *_needed(Integer, "version"),
    *_needed(Json, "body"),
    *_needed(Text, "fingerprint", "status"),
    *_needed(Moment, "created_at"),
    PrimaryKeyConstraint("id", "version"),
    _one_of("status", EntityStatus),
    CheckConstraint("version > 0", name="version"),
)

PROJECT_STATE = Table(
    "project_state",
    METADATA,
    *_needed(Text, "project_id", "status"),
    Column("active_version", Integer),
    Column("pinned_dataset_version", Integer),
    Column("conflict", Json),
    *_needed(Moment, "updated_at"),
    PrimaryKeyConstraint("project_id"),
    _one_of("status", ProjectStatus),
    CheckConstraint("(status = 'conflict') = (conflict IS NOT NULL)", name="conflict"),
)

RUN_SNAPSHOTS = Table("run_snapshots", METADATA, *_needed(Text, "sha", "body"), PrimaryKeyConstraint("sha"))

RUNS = Table(
    "runs",
    METADATA,
    *_needed(Text, "id", "project_id", "project_name"),
    *_needed(Integer, "project_version"),
    *_needed(Text, "period", "level", "status", "trigger", "triggered_by"),
    *_needed(Boolean, "sandbox"),
    *_needed(Moment, "known_at", "run_at", "created_at"),
    Column("started_at", Moment),
    Column("completed_at", Moment),
    Column("last_completed_operation", Integer),
    Column("error", Json),
    *_needed(Text, "snapshot_sha"),
    Column("parent_run_id", Text),
    Column("rerun_of", Text),
    *_needed(Integer, "attempt"),
    *_needed(Text, "host"),
    *_needed(BigInteger, "pid"),
    PrimaryKeyConstraint("id"),
    ForeignKeyConstraint(["snapshot_sha"], ["run_snapshots.sha"]),
    _one_of("status", RunStatus),
    _one_of("trigger", Trigger),
    CheckConstraint("attempt > 0", name="attempt"),
    CheckConstraint("(status = 'failed') = (error IS NOT NULL)", name="error"),
    CheckConstraint(
        "(status IN ('completed', 'failed', 'cancelled')) = (completed_at IS NOT NULL)", name="completed_at"
    ),
    Index(None, "project_id", "period"),
    Index(None, "created_at"),
)

RUN_OPERATIONS = Table(
    "run_operations",
    METADATA,
    *_needed(Text, "run_id"),
    *_needed(Integer, "seq"),
    *_needed(Text, "name", "type", "status"),
    Column("rows_in", BigInteger),
    Column("rows_out", BigInteger),
    Column("rows_changed", BigInteger),
    *_needed(Json, "joins"),
    Column("started_at", Moment),
    Column("completed_at", Moment),
    PrimaryKeyConstraint("run_id", "seq"),
    ForeignKeyConstraint(["run_id"], ["runs.id"], ondelete="CASCADE"),
    _one_of("type", OperationType),
    _one_of("status", StepStatus),
)

RUN_OUTPUTS = Table(
    "run_outputs",
    METADATA,
    *_needed(Text, "run_id"),
    *_needed(Integer, "seq"),
    *_needed(Text, "state", "stage", "target", "backup", "kind", "format"),
    *_needed(BigInteger, "rows"),
    *_needed(Json, "columns", "manifest"),
    Column("dataset_id", Text),
    Column("dataset_name", Text),
    Column("dataset_version", Integer),
    PrimaryKeyConstraint("run_id", "seq"),
    ForeignKeyConstraint(["run_id"], ["runs.id"], ondelete="CASCADE"),
    _one_of("state", OutputState),
)

DATASET_LOCATIONS = Table(
    "dataset_locations",
    METADATA,
    *_needed(Text, "dataset_id"),
    *_needed(Integer, "version"),
    *_needed(Text, "period"),
    *_needed(Json, "location"),
    *_needed(Text, "run_id"),
    *_needed(Integer, "seq"),
    PrimaryKeyConstraint("dataset_id", "version", "period"),
    UniqueConstraint("run_id", "seq"),
    ForeignKeyConstraint(["dataset_id", "version"], ["datasets.id", "datasets.version"]),
)

LOCKS = Table(
    "locks",
    METADATA,
    *_needed(Text, "name", "run_id", "owner", "host"),
    *_needed(BigInteger, "pid"),
    *_needed(Moment, "acquired_at", "heartbeat_at"),
    PrimaryKeyConstraint("name"),
    ForeignKeyConstraint(["run_id"], ["runs.id"], ondelete="CASCADE"),
)

INPUTS = Table(
    "inputs",
    METADATA,
    *_needed(Text, "run_id", "name"),
    *_needed(Json, "print"),
    PrimaryKeyConstraint("run_id", "name"),
    ForeignKeyConstraint(["run_id"], ["runs.id"], ondelete="CASCADE"),
)


def added(connection: Connection, table: Table, values: Mapping[str, Any]) -> ReturningInsert[Any]:
    """Return an insert that returns a row when it added one, and nothing when the key exists."""
    key = next(iter(table.primary_key))
    # A constraint that was violated would end the transaction in PostgreSQL, so the insert is asked to do nothing.
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    return insert(table).values(**values).on_conflict_do_nothing().returning(key)


def run_of(row: Row[Any]) -> RunRecord:
    """Return a row of ``runs`` as a record."""
    values = dict(row._mapping)  # noqa: SLF001  # the public name of it in SQLAlchemy
    error = values.pop("error")
    return RunRecord(**values, failure=None if error is None else RunFailure.from_dict(error))


def operation_of(row: Row[Any]) -> OperationRecord:
    """Return a row of ``run_operations`` as a record."""
    values = dict(row._mapping)  # noqa: SLF001
    joins = tuple(JoinCounts.from_dict(join) for join in values.pop("joins"))
    return OperationRecord(**values, joins=joins)


def output_of(row: Row[Any]) -> OutputRecord:
    """Return a row of ``run_outputs`` as a record."""
    values = dict(row._mapping)  # noqa: SLF001
    return OutputRecord(
        columns=tuple(values.pop("columns")),
        manifest=tuple(StagedFile(**file) for file in values.pop("manifest")),
        register_as=values.pop("dataset_name"),
        **values,
    )


def lease_of(row: Row[Any]) -> LeaseRecord:
    """Return a row of ``locks`` as a record."""
    return LeaseRecord(**row._mapping)  # noqa: SLF001


def version_of(row: Row[Any]) -> VersionRecord:
    """Return a row of ``projects`` as a record, without its body."""
    return VersionRecord(
        id=row.id,
        version=row.version,
        name=row.name,
        status=row.status,
        fingerprint=row.fingerprint,
        recorded_at=row.created_at,
    )


def location_of(row: Row[Any]) -> PublishedLocation:
    """Return a row of ``dataset_locations`` as a published location."""
    return PublishedLocation(period=row.period, run_id=row.run_id, version=row.version, **row.location)
