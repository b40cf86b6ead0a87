"""StoreReader: read access to a store."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Self

from sqlalchemy import Connection, Row, Select, Table, or_, select

from weft.errors import StoreError
from weft.pipelines.model.build import entity_from_dict
from weft.pipelines.model.dataset import Dataset
from weft.pipelines.model.values import RunStatus
from weft.pipelines.plan.catalog import RegisteredVersion
from weft.pipelines.plan.impact import ConflictReport
from weft.pipelines.store import tables
from weft.pipelines.store.connections import Database
from weft.pipelines.store.records import (
    LeaseRecord,
    OperationRecord,
    OutputRecord,
    ProjectState,
    RunRecord,
    VersionRecord,
    short_id,
)
from weft.pipelines.store.run_rows import outputs_of
from weft.pipelines.store.tables import lease_of, location_of, operation_of, run_of, version_of

LAST = "LAST"


class StoreReader:
    """A store, read-only."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def close(self) -> None:
        """Close all connections."""
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # runs

    def run(self, run_id_or_prefix: str) -> RunRecord:
        """Return the run of an id, of a unique prefix of an id, or, for ``LAST``, the newest."""
        return self.database.read(lambda connection: find_run(connection, run_id_or_prefix))

    def runs(
        self, project: str | None = None, period: str | None = None, status: RunStatus | None = None, limit: int = 50
    ) -> tuple[RunRecord, ...]:
        """Return the newest runs, of a project by id or name, of a period, of a status."""
        runs = tables.RUNS
        wanted = _newest_first().limit(limit)
        if project is not None:
            wanted = wanted.where(or_(runs.c.project_id == project, runs.c.project_name == project))
        if period is not None:
            wanted = wanted.where(runs.c.period == period)
        if status is not None:
            wanted = wanted.where(runs.c.status == status)
        return tuple(run_of(row) for row in self._rows(wanted))

    def snapshot(self, run_id: str) -> Mapping[str, Any]:
        """Return the snapshot of a run."""
        run = self.run(run_id)
        bodies = tables.RUN_SNAPSHOTS
        row = self._rows(select(bodies.c.body).where(bodies.c.sha == run.snapshot_sha))[0]
        # A rerun trusts the snapshot with everything it does, so an edited one is refused.
        if hashlib.sha256(row.body.encode()).hexdigest() != run.snapshot_sha:
            raise StoreError(
                f"the snapshot of run {run.id} has changed since it was written: its hash differs",
                code="W1602",
                help="restore the store from a copy",
            )
        body: Mapping[str, Any] = json.loads(row.body)
        return body

    def operations(self, run_id: str) -> tuple[OperationRecord, ...]:
        """Return the operations of a run in their order."""
        steps = tables.RUN_OPERATIONS
        return tuple(map(operation_of, self._rows(select(steps).where(steps.c.run_id == run_id).order_by("seq"))))

    def outputs(self, run_id: str) -> tuple[OutputRecord, ...]:
        """Return the outputs of a run in their order."""
        return self.database.read(lambda connection: outputs_of(connection, run_id))

    def inputs(self, run_id: str) -> Mapping[str, Any]:
        """Return the fingerprints of the inputs of a run, by the name of the read."""
        inputs = tables.INPUTS
        rows = self._rows(select(inputs).where(inputs.c.run_id == run_id).order_by("name"))
        return {row.name: row._mapping["print"] for row in rows}  # noqa: SLF001

    def locks(self, run_id: str | None = None) -> tuple[LeaseRecord, ...]:
        """Return the locks that a run holds, or all of them."""
        wanted = select(tables.LOCKS).order_by("name")
        if run_id is not None:
            wanted = wanted.where(tables.LOCKS.c.run_id == run_id)
        return tuple(map(lease_of, self._rows(wanted)))

    # versions

    def dataset_versions(self, id_or_name: str) -> tuple[Dataset, ...]:
        """Return every version of a dataset that the store keeps, oldest first."""
        rows = self._rows(_versions(tables.DATASETS, id_or_name))
        return tuple(entity_from_dict(Dataset, row.body) for row in rows)

    def project_versions(self, id: str) -> tuple[VersionRecord, ...]:
        """Return every version of a project that was activated or run, oldest first."""
        return tuple(map(version_of, self._rows(_versions(tables.PROJECTS, id))))

    def project_body(self, id: str, version: int) -> Mapping[str, Any] | None:
        """Return a version of a project as it was when it was activated or first run, or None."""
        projects = tables.PROJECTS
        rows = self._rows(select(projects.c.body).where(projects.c.id == id, projects.c.version == version))
        return next((row.body for row in rows), None)

    def file_datasets(self) -> tuple[Dataset, ...]:
        """Return every dataset version that came from a file, whatever the file contains today."""
        datasets = tables.DATASETS
        rows = self._rows(select(datasets).where(datasets.c.origin == "file").order_by("id", "version"))
        return tuple(entity_from_dict(Dataset, row.body) for row in rows)

    def registered(self) -> tuple[RegisteredVersion, ...]:
        """Return every dataset version that a run registered, with its published locations."""
        datasets, places = tables.DATASETS, tables.DATASET_LOCATIONS
        rows = self._rows(select(datasets).where(datasets.c.origin == "registered").order_by("id", "version"))
        published: dict[tuple[str, int], list[Any]] = {}
        for place in self._rows(select(places).order_by("dataset_id", "version", "period")):
            published.setdefault((place.dataset_id, place.version), []).append(location_of(place))
        return tuple(
            RegisteredVersion(
                dataset=entity_from_dict(Dataset, row.body), locations=tuple(published.get((row.id, row.version), ()))
            )
            for row in rows
        )

    # the state of projects

    def state(self, project_id: str) -> ProjectState | None:
        """Return the recorded state of a project, or None when it is unknown."""
        states = tables.PROJECT_STATE
        rows = self._rows(select(states).where(states.c.project_id == project_id))
        if not rows:
            return None
        values = dict(rows[0]._mapping)  # noqa: SLF001
        conflict = values.pop("conflict")
        return ProjectState(**values, conflict=None if conflict is None else ConflictReport.from_dict(conflict))

    def conflict(self, project_id: str) -> ConflictReport | None:
        """Return the conflict of a project with the newest version of a dataset, or None."""
        state = self.state(project_id)
        return None if state is None else state.conflict

    def _rows(self, wanted: Select[Any]) -> Sequence[Row[Any]]:
        return self.database.read(lambda connection: connection.execute(wanted).all())


def find_run(connection: Connection, run_id: str) -> RunRecord:
    """Return the run of an id, of a prefix of an id, or the newest run for ``LAST``."""
    runs = tables.RUNS
    newest = _newest_first()
    if run_id == LAST:
        rows = connection.execute(newest.limit(1)).all()
    else:
        matching = newest.where(runs.c.id.startswith(run_id, autoescape=True))
        rows = connection.execute(matching).all() if run_id else []
    # An id that is typed in full is never ambiguous, even if it is the start of another one.
    exact = [row for row in rows if row.id == run_id]
    if len(rows) > 1 and not exact:
        raise StoreError(
            f"{run_id!r} is the prefix of {len(rows)} runs",
            code="W1607",
            help="one of " + ", ".join(f"{row.id} ({row.project_name} {row.period})" for row in rows[:5]),
        )
    if not rows:
        known = connection.execute(newest.limit(3)).all()
        newest_runs = ", ".join(f"{short_id(row.id)} ({row.project_name} {row.period})" for row in known)
        raise StoreError(
            f"unknown run {run_id!r}",
            code="W1606",
            help=f"the newest are {newest_runs}; `weft runs` lists more" if newest_runs else "there are no runs yet",
        )
    return run_of((exact or rows)[0])


def _newest_first() -> Select[Any]:
    # Ids sort by time too: they decide between runs of the same moment.
    return select(tables.RUNS).order_by(tables.RUNS.c.created_at.desc(), tables.RUNS.c.id.desc())


def _versions(table: Table, name: str) -> Select[Any]:
    return select(table).where(or_(table.c.id == name, table.c.name == name)).order_by(table.c.version)
