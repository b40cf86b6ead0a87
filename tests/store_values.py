"""Small entities and runs for tests of the store."""

from __future__ import annotations

import datetime as dt
import itertools
from typing import Any, TypeVar

from sqlalchemy import select

from weft.core import types
from weft.core.calendar import GREGORIAN
from weft.io.staged import StagedFile
from weft.joins.facts import JoinCounts
from weft.pipelines.model.build import entity_from_dict
from weft.pipelines.model.dataset import ColumnDef, Dataset, TableDef
from weft.pipelines.model.operation import Assignment, Destination, Operation, Output, Update
from weft.pipelines.model.project import Project
from weft.pipelines.model.resolver import PathStrategy, Resolver, Rule
from weft.pipelines.model.values import LocatedText
from weft.pipelines.plan.catalog import PublishedLocation
from weft.pipelines.store import tables
from weft.pipelines.store.locks import this_process
from weft.pipelines.store.records import LeaseRecord, NewRun, OperationCounts, OutputRecord, Registration, run_id
from weft.pipelines.store.writer import Store

NOW = dt.datetime(2026, 11, 15, 11, 40, 2, tzinfo=dt.UTC)
_NUMBERS = itertools.count(1)
E = TypeVar("E", Dataset, Project, Resolver)


def counts(
    seq: int, rows_in: int = 10, rows_out: int = 10, rows_changed: int = 4, joins: tuple[JoinCounts, ...] = ()
) -> OperationCounts:
    return OperationCounts(seq=seq, rows_in=rows_in, rows_out=rows_out, rows_changed=rows_changed, joins=joins)


def kept(store: Store, entity: type[E], id: str, version: int) -> E:
    """Return a version as the store keeps it."""
    table = {Dataset: tables.DATASETS, Project: tables.PROJECTS, Resolver: tables.RESOLVERS}[entity]
    wanted = select(table.c.body).where(table.c.id == id, table.c.version == version)
    return entity_from_dict(entity, store.database.read(lambda c: c.execute(wanted).scalar_one()))


def lock(store: Store, name: str) -> LeaseRecord | None:
    """Return who holds the lock of that name."""
    return next((lease for lease in store.locks() if lease.name == name), None)


def dataset(name: str = "gl", version: int = 1, *columns: str, **changes: Any) -> Dataset:
    found = tuple(ColumnDef(c, types.STRING) for c in columns or ("journal_id", "currency"))
    values: dict[str, Any] = {
        "id": f"ds-{name}",
        "name": name,
        "version": version,
        "status": "active",
    } | changes
    return Dataset(main_table=TableDef(name="transactions", columns=found), **values)


def operations() -> tuple[Operation, ...]:
    return (
        Operation(
            id="op-10",
            seq=10,
            name="Mark",
            type="update",
            arguments=Update(assignments=(Assignment(LocatedText("currency"), LocatedText("'USD'")),)),
        ),
        Operation(
            id="op-20",
            seq=20,
            name="Write",
            type="output",
            arguments=Output(destination=Destination(path="out", format="parquet")),
        ),
    )


def project(name: str = "fx_reporting", **changes: Any) -> Project:
    values: dict[str, Any] = {
        "id": f"pr-{name}",
        "name": name,
        "version": 1,
        "status": "active",
        "input_dataset_id": "gl",
        "operations": operations(),
    }
    return Project(**values | changes)


def resolver(name: str = "files", version: int = 1, path: str = "{{table_name}}.csv") -> Resolver:
    rule = Rule(name="all", strategy=PathStrategy(datasource="files", path=path))
    return Resolver(id=name, name=name, version=version, status="active", rules=(rule,), is_default=True)


def new_run(of: Project | None = None, period: str = "2026-01", **changes: Any) -> NewRun:
    number = next(_NUMBERS)
    host, pid = this_process()
    values: dict[str, Any] = {
        "run_id": run_id(1_763_200_000_000 + number, number.to_bytes(10, "big")),
        "project": of or project(),
        "period": GREGORIAN.parse(period),
        "snapshot": {"schema": "weft/snapshot/1", "number": number, "inputs": {"input": {"files": []}}},
        "sandbox": False,
        "known_at": NOW,
        "run_at": NOW,
        "trigger": "manual",
        "triggered_by": "ann",
        "host": host,
        "pid": pid,
    }
    return NewRun(**values | changes)


def output(run: str, seq: int = 20, **changes: Any) -> OutputRecord:
    values: dict[str, Any] = {
        "run_id": run,
        "seq": seq,
        "state": "staged",
        "stage": f".weft/stage/{run}/{seq}",
        "target": "out/period=2026-01",
        "backup": f".weft/stage/{run}/{seq}.old",
        "kind": "files",
        "format": "parquet",
        "rows": 10,
        "columns": ("journal_id", "currency"),
        "manifest": (StagedFile(path="part-0.parquet", bytes=17, sha256="ab" * 32),),
    }
    return OutputRecord(**values | changes)


def registration(name: str = "gl_usd", period: str = "2026-01", seq: int = 20, **changes: Any) -> Registration:
    place = PublishedLocation(period=period, path=f"out/period={period}", format="parquet", run_id="", version=0)
    return Registration(dataset=dataset(name, **changes), location=place, seq=seq)
