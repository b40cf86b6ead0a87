"""Small entities for tests of resolvers and reads."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

from weft.core.calendar import GREGORIAN
from weft.core.frozen import FrozenMap
from weft.core.source import Source
from weft.core.types import DType, parse_type
from weft.io.datasource import DataSource
from weft.pipelines.model.dataset import ColumnDef, Dataset, TableDef
from weft.pipelines.model.project import Project
from weft.pipelines.model.resolver import PathStrategy, Resolver, Rule, Strategy
from weft.pipelines.model.values import PERIOD_START, AsOfDay, LocatedText, TemporalMode
from weft.pipelines.model.workspace import Settings, Workspace
from weft.pipelines.plan.catalog import Catalog, PublishedLocation, RegisteredVersion
from weft.pipelines.plan.reads import DatasetPin, Read, build_filter
from weft.pipelines.plan.resolver.locate import locate


def written(text: str) -> LocatedText:
    """Return an expression as read from a file."""
    return LocatedText(text, Source.whole(text, "resolver.yml"))


def table(name: str = "orders", mode: TemporalMode = "period", /, **columns: str | DType) -> TableDef:
    """Return a table; without columns it has an id and an amount."""
    types = columns or {"id": "long", "amount": "decimal(18,2)"}
    return TableDef(
        name=name,
        columns=tuple(ColumnDef(n, parse_type(t) if isinstance(t, str) else t) for n, t in types.items()),
        temporal_mode=mode,
    )


def dataset(main: TableDef | None = None, /, **keys: Any) -> Dataset:
    """Return a dataset version; its id is ``ds-`` and the name."""
    main = main or table()
    name = keys.pop("name", "sales")
    given: dict[str, Any] = {"id": f"ds-{name}", "version": 1, "status": "active", **keys}
    return Dataset(name=name, main_table=main, **given)


def rule(name: str, when: str | None = None, /, *, strategy: Strategy | None = None, **keys: Any) -> Rule:
    """Return a rule that reads ``{{table_name}}.csv`` of the datasource files, by default."""
    return Rule(
        name=name,
        when=None if when is None else written(when),
        strategy=strategy or PathStrategy(datasource="files", path="{{table_name}}.csv"),
        **keys,
    )


def resolver(*rules: Rule, id: str = "main", **keys: Any) -> Resolver:
    """Return a resolver of those rules; without one it has a rule that always matches."""
    given: dict[str, Any] = {"name": id, "version": 1, "status": "active", **keys}
    return Resolver(id=id, rules=rules or (rule("all"),), **given)


def source(type: Any = "csv", id: str = "files", /, *, status: Any = "active", **options: Any) -> DataSource:
    """Return a datasource."""
    ref = options.pop("credential_ref", None)
    return DataSource(id=id, name=id, type=type, status=status, options=FrozenMap(options), credential_ref=ref)


def project(**overrides: str) -> Project:
    """Return a project without operations and with those resolver overrides."""
    return Project(
        id="p-1",
        name="reporting",
        version=1,
        status="active",
        input_dataset_id="sales",
        operations=(),
        resolver_overrides=FrozenMap(overrides),
    )


def catalog(
    *entities: Dataset | Resolver | DataSource,
    root: Path = Path(),
    default: str | None = None,
    registered: tuple[RegisteredVersion, ...] = (),
) -> Catalog:
    """Return the catalog of a workspace that has those entities."""
    workspace = Workspace(
        root=root,
        settings=Settings(default_resolver=default),
        datasets=tuple(e for e in entities if isinstance(e, Dataset)),
        resolvers=tuple(e for e in entities if isinstance(e, Resolver)),
        datasources=tuple(e for e in entities if isinstance(e, DataSource)),
    )
    return Catalog.of(workspace, registered)


def published(period: str, version: int = 1, path: str = "", format: str = "parquet") -> PublishedLocation:
    """Return a publication of a period."""
    return PublishedLocation(
        period=period,
        path=path or f"out/{period}.v{version}",
        format=format,
        run_id=f"run-{version}",
        version=version,
    )


def read_of(
    data: Dataset,
    known: Catalog,
    period: str = "2026-01",
    *,
    main: TableDef | None = None,
    columns: tuple[str, ...] | None = None,
    as_of: AsOfDay = PERIOD_START,
    known_at: dt.datetime | None = None,
) -> Read:
    """Return the read of a dataset's table in a run, as a plan has it."""
    opened = main or data.main_table
    at = GREGORIAN.parse(period)
    found = locate(data, opened, None, known, at, GREGORIAN)
    level = found.locations[0].data_level
    return Read(
        name="input",
        pin=DatasetPin(
            role="input",
            seq=None,
            alias=opened.name,
            dataset_id=data.id,
            dataset_version=data.version,
            resolver_id=found.diagnostic.resolver_id,
            resolver_version=1,
            resolver_source=found.diagnostic.resolver_source,
        ),
        dataset=data,
        table=opened,
        locations=found.locations,
        filter=build_filter(opened, at, GREGORIAN, as_of=as_of, known_at=known_at, data_level=level),
        columns=tuple(c.name for c in opened.columns) if columns is None else columns,
    )
