"""Rows of the store as records, and the insert that decides who was first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, Row, Table
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql.dml import ReturningInsert

from weft.io.staged import StagedFile
from weft.joins.facts import JoinCounts
from weft.pipelines.plan.catalog import PublishedLocation
from weft.pipelines.store.records import (
    LeaseRecord,
    OperationRecord,
    OutputRecord,
    RunFailure,
    RunRecord,
    VersionRecord,
)


def added(connection: Connection, table: Table, values: Mapping[str, Any]) -> ReturningInsert[Any]:
    """Return an insert that gives a row back when it added one, and nothing when the key is taken."""
    key = next(iter(table.primary_key))
    if connection.dialect.name == "postgresql":
        return postgresql.insert(table).values(**values).on_conflict_do_nothing().returning(key)
    return sqlite.insert(table).values(**values).on_conflict_do_nothing().returning(key)


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
    """Return a row of ``datasets`` or ``projects`` as a record, without its body."""
    values = row._mapping  # noqa: SLF001
    return VersionRecord(
        id=values["id"],
        version=values["version"],
        name=values["name"],
        status=values["status"],
        fingerprint=values["fingerprint"],
        recorded_at=values["published_at"] if "published_at" in values else values["created_at"],
    )


def location_of(row: Row[Any]) -> PublishedLocation:
    """Return a row of ``dataset_locations`` as the place where a run published."""
    values = row._mapping  # noqa: SLF001
    return PublishedLocation(
        period=values["period"], run_id=values["run_id"], version=values["version"], **values["location"]
    )
