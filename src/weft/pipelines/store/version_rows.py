"""The rows of versions: datasets, projects, resolvers; each function is part of one transaction."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, Table, delete, func, insert, select, text, update

from weft.errors import StoreError
from weft.io.datasource import EntityStatus
from weft.io.location import PUBLISHED
from weft.pipelines.model.dataset import Dataset
from weft.pipelines.model.project import Project
from weft.pipelines.model.resolver import Resolver
from weft.pipelines.model.values import ProjectStatus
from weft.pipelines.plan.impact import ConflictReport
from weft.pipelines.store import tables
from weft.pipelines.store.records import Registration
from weft.pipelines.store.tables import added

DATASETS, PROJECTS, RESOLVERS = tables.DATASETS, tables.PROJECTS, tables.RESOLVERS
PLACES, STATES = tables.DATASET_LOCATIONS, tables.PROJECT_STATE

Entity = Dataset | Project | Resolver


def put_version(connection: Connection, entity: Entity, now: dt.datetime) -> None:
    """Insert a new version; a known one must be the same, only its status and descriptions may differ."""
    table, kind, values = _row(entity, now)
    if connection.execute(added(connection, table, values)).first() is not None:
        return
    mine = (table.c.id == entity.id) & (table.c.version == entity.version)
    known = connection.execute(select(table).where(mine)).first()
    if known is None:
        # The insert met the unique name and version, not the key.
        raise StoreError(
            f"the store has {kind} {entity} under another id",
            code="W1605",
            help="give it the id it had, another name, or the next `version`",
            at=entity.at.of("id"),
        )
    if known.fingerprint != values["fingerprint"]:
        raise StoreError(
            f"{kind} {entity} differs from the recorded version",
            code="W1605",
            help="a version never changes: give the changed one the next `version`",
            at=entity.at.of("version"),
        )
    connection.execute(update(table).where(mine).values(status=entity.status, body=values["body"]))


def _row(entity: Entity, now: dt.datetime) -> tuple[Table, str, dict[str, Any]]:
    values: dict[str, Any] = {
        "id": entity.id,
        "version": entity.version,
        "status": entity.status,
        "body": entity.to_dict(),
        "fingerprint": entity.fingerprint(),
    }
    if isinstance(entity, Dataset):
        own = {"name": entity.name, "origin": entity.origin, "published_at": now}
        return DATASETS, "dataset", values | own
    if isinstance(entity, Project):
        return PROJECTS, "project", values | {"name": entity.name, "created_at": now}
    return RESOLVERS, "resolver", values | {"created_at": now}


def set_dataset_status(connection: Connection, id: str, version: int, status: EntityStatus) -> None:
    """Enable or disable a version; nothing changes when the store does not keep it."""
    mine = (DATASETS.c.id == id) & (DATASETS.c.version == version)
    row = connection.execute(select(DATASETS.c.body).where(mine)).first()
    if row is not None:
        body = {**row.body, "status": status}
        connection.execute(update(DATASETS).where(mine).values(status=status, body=body))


def add_registered(connection: Connection, new: Registration, run_id: str, now: dt.datetime) -> int:
    """Register the dataset of an output as the next version of its id and return that version."""
    if connection.dialect.name == "postgresql":
        # Two runs that register one name wait for each other, so that each gets a version of its own.
        connection.execute(text("LOCK TABLE datasets IN SHARE ROW EXCLUSIVE MODE"))
    # The transaction may be repeated: an output registers one version only.
    done = connection.execute(
        select(PLACES.c.version).where(PLACES.c.run_id == run_id, PLACES.c.seq == new.seq)
    ).first()
    if done is not None:
        return int(done.version)
    last = connection.execute(
        select(func.max(DATASETS.c.version)).where(
            (DATASETS.c.id == new.dataset.id) | (DATASETS.c.name == new.dataset.name)
        )
    ).scalar()
    version = max((last or 0) + 1, new.dataset.version)
    dataset = replace(new.dataset, version=version, status="active", origin="registered", resolver_id=PUBLISHED)
    put_version(connection, dataset, now)
    at = new.location
    place: dict[str, str | None] = {"path": at.path, "format": at.format}
    if at.table is not None:
        place |= {"datasource": at.datasource, "table": at.table, "schema": at.schema}
    connection.execute(
        insert(PLACES).values(
            dataset_id=dataset.id,
            version=version,
            period=at.period,
            location=place,
            run_id=run_id,
            seq=new.seq,
        )
    )
    return version


def put_state(
    connection: Connection,
    project_id: str,
    status: ProjectStatus,
    now: dt.datetime,
    *,
    active_version: int | None = None,
    pinned: int | None = None,
    conflict: ConflictReport | None = None,
) -> None:
    """Record the state of a project; versions that are None stay unchanged."""
    before = connection.execute(select(STATES).where(STATES.c.project_id == project_id)).first()
    if before is not None:
        active_version = before.active_version if active_version is None else active_version
        pinned = before.pinned_dataset_version if pinned is None else pinned
    # Deleted and inserted: an upsert is written differently for each database.
    connection.execute(delete(STATES).where(STATES.c.project_id == project_id))
    connection.execute(
        insert(STATES).values(
            project_id=project_id,
            status=status,
            active_version=active_version,
            pinned_dataset_version=pinned,
            conflict=None if conflict is None else conflict.to_dict(),
            updated_at=now,
        )
    )
