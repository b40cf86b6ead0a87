"""given: the tables of a scenario replace those of the workspace, for this run only.

Before::

    gl -> resolver files -> data/transactions.csv

After::

    gl -> resolver weft:given -> <temporary>/0_0.csv      transactions
                              -> the rules of files       tables that the scenario does not give
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from weft.core.calendar import Period
from weft.core.frozen import FrozenMap
from weft.core.names import suggest
from weft.core.types import DType
from weft.errors import Diagnostic, ResolutionError, ScenarioError
from weft.io.datasource import DataSource
from weft.pipelines.model.dataset import Dataset, TableDef
from weft.pipelines.model.project import Project
from weft.pipelines.model.resolver import PathStrategy, Resolver, Rule
from weft.pipelines.model.scenario import Rows, Scenario
from weft.pipelines.model.values import KNOWN_FROM, KNOWN_TO, SYSTEM_COLUMNS, LocatedText, temporal_columns
from weft.pipelines.model.workspace import Workspace
from weft.pipelines.plan.catalog import Catalog
from weft.pipelines.plan.resolver.locate import choose_resolver
from weft.pipelines.scenarios.values import ReadParquet, cell_text, typed_rows, written_rows
from weft.pipelines.store.snapshot import collect_requirements

GIVEN = "weft:given"
"""Id of the datasource of the tables of a scenario."""

GIVEN_JSON = "weft:given.json"
"""Id of the datasource of those tables that a CSV file cannot hold."""

_MARK = "__weft_given"


@dataclass(frozen=True, slots=True)
class Table:
    """A table that a scenario gives rows for."""

    dataset: Dataset
    table: TableDef

    @property
    def columns(self) -> Mapping[str, DType]:
        """Every column that a row may name: declared ones, and Weft's own."""
        own = (*SYSTEM_COLUMNS, *temporal_columns(self.table.temporal_mode), KNOWN_FROM, KNOWN_TO)
        return {c.name: c.dtype for c in self.table.columns} | {f.name: f.dtype for f in own}


def with_given(
    scenario: Scenario, project: Project, catalog: Catalog, period: Period, folder: Path, read_parquet: ReadParquet
) -> tuple[Workspace, Project]:
    """Write the given tables into a folder; return the workspace and the project that read them there."""
    workspace = catalog.workspace
    if scenario.given is None:
        return workspace, project
    chosen: dict[str, dict[str, str]] = {}
    datasets: dict[str, Dataset] = {}
    findings: list[Diagnostic] = []
    for number, (name, source) in enumerate(scenario.given.items()):
        tables = _tables(name, project, catalog)
        if not tables:
            findings.append(_unknown(name, project, catalog, scenario))
            continue
        for i, table in enumerate(tables):
            try:
                rows = given_rows(source, table, scenario, period, workspace.root, read_parquet)
            except ScenarioError as error:
                findings += error.diagnostics
                continue
            file = write_table(folder / f"{number}_{i}", rows, table).name
            chosen.setdefault(table.dataset.id, {})[table.table.name] = file
            datasets[table.dataset.id] = table.dataset
    if findings:
        raise ScenarioError(dict.fromkeys(findings))
    resolvers = [_resolver(datasets[id], files, project, catalog) for id, files in chosen.items()]
    prefix = str(folder)
    sources = (
        DataSource(id=GIVEN, name=GIVEN, type="csv", options=FrozenMap(path_prefix=prefix, multiline=True)),
        DataSource(id=GIVEN_JSON, name=GIVEN_JSON, type="json", options=FrozenMap(path_prefix=prefix)),
    )
    overrides = {**project.resolver_overrides, **{id: f"{GIVEN}/{id}" for id in chosen}}
    return (
        replace(
            workspace, resolvers=(*workspace.resolvers, *resolvers), datasources=(*workspace.datasources, *sources)
        ),
        replace(project, resolver_overrides=FrozenMap(overrides)),
    )


def _tables(name: str, project: Project, catalog: Catalog) -> list[Table]:
    """Return the tables that a name means: those of that dataset, table or lookup."""
    tables = [t for known, t in named_tables(project, catalog) if known == name]
    return list({(t.dataset.id, t.table.name): t for t in tables}.values())


def named_tables(project: Project, catalog: Catalog) -> Iterator[tuple[str, Table]]:
    """Yield every table that a project reads, under each of its names."""
    for dataset in collect_requirements(project, catalog).datasets:
        main = Table(dataset, dataset.main_table)
        yield from ((name, main) for name in (dataset.name, dataset.id, dataset.main_table.name))
        for lookup in dataset.lookups:
            if isinstance(lookup.target, TableDef):
                table = Table(dataset, lookup.target)
                yield from ((name, table) for name in dict.fromkeys((lookup.alias, lookup.target.name)))


def _unknown(name: str, project: Project, catalog: Catalog, scenario: Scenario) -> Diagnostic:
    names = [known for known, t in named_tables(project, catalog) if known != t.dataset.id]
    return Diagnostic(
        "W1702",
        f"project {project.name!r} does not read a table {name!r}",
        help=suggest(name, dict.fromkeys(names), "it reads", most=1),
        at=scenario.at.key(f"given.{name}") or scenario.at.of("given"),
    )


def given_rows(
    source: Rows, table: Table, scenario: Scenario, period: Period, root: Path, read_parquet: ReadParquet
) -> tuple[dict[str, Any], ...]:
    """Return the rows of a given table with their types; missing temporal columns are those of the period."""
    written = written_rows(source, scenario, root, read_parquet)
    rows = typed_rows(written, table.columns, source, f"table {table.table.name!r}", given=True)
    findings = []
    for i, row in enumerate(rows):
        at = source.at.of(f"rows.{i}") if source.rows is not None else source.at.whole
        for column in table.table.columns:
            if not column.nullable and row.get(column.name) is None:
                text = f"row {i + 1} of table {table.table.name!r} has no {column.name!r}"
                help = "the column is not nullable: give it a value"
                findings.append(Diagnostic("W1702", text, help=help, at=at))
    if findings:
        raise ScenarioError(findings)
    filled = _temporal(table.table, period)
    return tuple({**{n: v for n, v in filled.items() if n not in row}, **row} for row in rows)


def _temporal(table: TableDef, period: Period) -> dict[str, Any]:
    if table.temporal_mode == "bitemporal":
        return {"_period_from": period.start_date, "_period_to": None}
    return {"_period": period.identifier} if table.temporal_mode == "period" else {}


def write_table(path: Path, rows: Sequence[Mapping[str, Any]], table: Table) -> Path:
    """Write rows to a file and return it: CSV, or JSON when a string is empty, which would be NULL in CSV."""
    # Files, and not frames, so that the rows take the way of real data: resolver, connector, types.
    empty = any(value == "" for row in rows for value in row.values())
    file = path.with_suffix(".json" if empty else ".csv")
    file.write_text(json_text(rows, table) if empty else csv_text(rows, table), encoding="utf-8")
    return file


def json_text(rows: Sequence[Mapping[str, Any]], table: Table) -> str:
    """Return rows as one object per line, with every value as a string."""
    names = _names(rows, table)
    lines = (json.dumps({n: None if row.get(n) is None else cell_text(row[n]) for n in names}) for row in rows)
    return "".join(f"{line}\n" for line in lines)


def csv_text(rows: Sequence[Mapping[str, Any]], table: Table) -> str:
    """Return rows as CSV: NULL is an empty field, every string is quoted."""
    names = [*_names(rows, table), _MARK]
    lines = [",".join(names)]
    # The last column keeps a row of NULLs from being an empty line.
    lines += [",".join([*(_field(row.get(n)) for n in names[:-1]), "1"]) for row in rows]
    return "\n".join(lines) + "\n"


def _names(rows: Sequence[Mapping[str, Any]], table: Table) -> list[str]:
    declared = [c.name for c in table.table.columns]
    temporal = [f.name for f in temporal_columns(table.table.temporal_mode)]
    if table.table.temporal_mode == "snapshot":
        temporal = []
    more = dict.fromkeys(name for row in rows for name in row)
    return [*declared, *temporal, *(n for n in more if n not in declared and n not in temporal)]


def _field(value: Any) -> str:
    if value is None:
        return ""
    return '"' + cell_text(value).replace('"', '""') + '"'


def _resolver(dataset: Dataset, files: Mapping[str, str], project: Project, catalog: Catalog) -> Resolver:
    rules = [
        Rule(
            name=f"given {table}",
            when=LocatedText("table = '" + table.replace("'", "''") + "'"),
            strategy=PathStrategy(datasource=GIVEN_JSON if file.endswith(".json") else GIVEN, path=file),
        )
        for table, file in files.items()
    ]
    try:
        before = choose_resolver(dataset, project, catalog).resolver
    except ResolutionError:  # a dataset whose tables are all given needs no resolver
        before = None
    return Resolver(
        id=f"{GIVEN}/{dataset.id}",
        name=f"{GIVEN}/{dataset.id}",
        version=1,
        status="active",
        rules=(*rules, *(() if before is None else before.rules)),
    )
