from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from engine_data import CONVERT, WRITE, project_text, sample_workspace
from weft.core import types
from weft.errors import ActivationError
from weft.pipelines.model.dataset import ColumnDef, Dataset, LookupDef, TableDef
from weft.pipelines.model.project import Project
from weft.pipelines.model.read_workspace import load_workspace
from weft.pipelines.plan.catalog import Catalog
from weft.pipelines.plan.impact import (
    BreakingChange,
    ConflictReport,
    describe_conflict,
    find_breaking_changes,
)

MARK = """\
- seq: 30
  name: Mark
  type: update
  selector: "cost_centers.region = 'EMEA' AND accounts.is_active"
  arguments:
    assignments:
      - {column: description, expression: "transactions.source_system"}
"""
Changed = tuple[str, str, tuple[int, ...]]


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    text = project_text([CONVERT, WRITE, MARK])
    return Catalog.of(load_workspace(sample_workspace(tmp_path, projects__fx_reporting=text)).workspace)


def project(catalog: Catalog) -> Project:
    return catalog.workspace.projects[0]


def newest(catalog: Catalog, name: str) -> Dataset:
    return catalog.versions(name)[-1]


def with_columns(table: TableDef, *columns: ColumnDef, without: str = "") -> TableDef:
    named = {c.name for c in columns}
    kept = tuple(c for c in table.columns if c.name not in named | {without})
    return replace(table, columns=(*kept, *columns))


def next_version(old: Dataset, *columns: ColumnDef, without: str = "", lookup: str = "") -> Dataset:
    if not lookup:
        main = with_columns(old.main_table, *columns, without=without)
        return replace(old, version=old.version + 1, main_table=main)
    lookups = tuple(
        replace(x, target=with_columns(x.target, *columns, without=without))
        if x.alias == lookup and isinstance(x.target, TableDef)
        else x
        for x in old.lookups
    )
    return replace(old, version=old.version + 1, lookups=lookups)


def changes(report: ConflictReport | None) -> list[Changed]:
    found = () if report is None else report.breaking_changes
    return [(c.column, c.change_type, c.affected_operations) for c in found]


def analysed(catalog: Catalog, old: Dataset, new: Dataset) -> list[Changed]:
    both = Catalog.of(replace(catalog.workspace, datasets=(*catalog.workspace.datasets, new)))
    return changes(find_breaking_changes(old, new, project(both), both))


def test_a_removed_column_that_operations_read_breaks_them(catalog: Catalog) -> None:
    old = newest(catalog, "gl")
    assert analysed(catalog, old, next_version(old, without="currency")) == [("currency", "removed", (10, 20))]


def test_a_column_of_another_type_breaks_what_reads_it(catalog: Catalog) -> None:
    old = newest(catalog, "gl")
    wider = ColumnDef("amount_local", types.Decimal(18, 4))
    assert analysed(catalog, old, next_version(old, wider)) == [("amount_local", "type_changed", (10, 20))]


def test_a_column_is_renamed_only_when_the_new_one_says_so(catalog: Catalog) -> None:
    old = newest(catalog, "gl")
    given = ColumnDef("iso_code", types.STRING, previous_name="currency")
    silent = ColumnDef("iso_code", types.STRING)
    assert analysed(catalog, old, next_version(old, given, without="currency"))[0][:2] == (
        "currency",
        "renamed",
    )
    assert analysed(catalog, old, next_version(old, silent, without="currency"))[0][:2] == (
        "currency",
        "removed",
    )


def test_a_version_that_was_disabled_since_breaks_what_read_it(catalog: Catalog) -> None:
    old = replace(newest(catalog, "gl"), status="disabled")
    files = tuple(old if d.id == old.id else d for d in catalog.workspace.datasets)
    without_it = Catalog.of(replace(catalog.workspace, datasets=files))
    new = replace(next_version(old, without="currency"), status="active")
    assert analysed(without_it, old, new) == [("currency", "removed", (10, 20))]


def test_what_nobody_reads_may_change(catalog: Catalog) -> None:
    old = newest(catalog, "gl")
    assert analysed(catalog, old, next_version(old, without="posting_date")) == []
    assert analysed(catalog, old, next_version(old, ColumnDef("posting_date", types.STRING))) == []
    assert analysed(catalog, old, next_version(old, ColumnDef("extra", types.STRING))) == []
    prose = ColumnDef("currency", types.STRING, nullable=True, description="ISO 4217")
    assert analysed(catalog, old, next_version(old, prose)) == []


def test_columns_of_lookups_count(catalog: Catalog) -> None:
    old = newest(catalog, "gl")
    assert analysed(catalog, old, next_version(old, without="region", lookup="cost_centers")) == [
        ("cost_centers.region", "removed", (30,))
    ]
    typed = ColumnDef("is_active", types.STRING)
    assert analysed(catalog, old, next_version(old, typed, lookup="accounts")) == [
        ("accounts.is_active", "type_changed", (30,))
    ]
    assert analysed(catalog, old, next_version(old, without="department", lookup="cost_centers")) == []


def test_a_lookup_that_goes_takes_its_columns_along(catalog: Catalog) -> None:
    old = newest(catalog, "gl")
    kept = tuple(x for x in old.lookups if x.alias != "cost_centers")
    found = analysed(catalog, old, replace(old, version=2, lookups=kept))
    assert ("cost_centers.region", "removed", (30,)) in found
    assert all(column.startswith("cost_centers.") for column, _, _ in found)
    other = tuple(replace(x, alias="centers") if x.alias == "cost_centers" else x for x in old.lookups)
    assert analysed(catalog, old, replace(old, version=2, lookups=other)) == found


def test_a_main_table_of_another_name_breaks_every_column_that_is_read(catalog: Catalog) -> None:
    old = newest(catalog, "gl")
    renamed = replace(old.main_table, name="entries")
    found = analysed(catalog, old, replace(old, version=2, main_table=renamed))
    assert {(column, change) for column, change, _ in found} >= {
        ("currency", "removed"),
        ("amount_local", "removed"),
    }


def test_a_joined_dataset_breaks_the_join(catalog: Catalog) -> None:
    old = newest(catalog, "exchange_rates")
    assert analysed(catalog, old, next_version(old, without="rate")) == [("rate", "removed", (10,))]


def test_a_dataset_that_a_lookup_names_has_versions_of_its_own(catalog: Catalog) -> None:
    gl = newest(catalog, "gl")
    target = next(x.target for x in gl.lookups if x.alias == "accounts")
    assert isinstance(target, TableDef)
    accounts = Dataset(id="ds-accounts", name="accounts_ds", version=1, status="active", main_table=target)
    from weft.pipelines.model.values import DatasetRef

    lookups = tuple(
        LookupDef(alias="accounts", target=DatasetRef("accounts_ds"), join_conditions=x.join_conditions)
        if x.alias == "accounts"
        else x
        for x in gl.lookups
    )
    others = tuple(d for d in catalog.workspace.datasets if d.id != gl.id)
    nested = Catalog.of(replace(catalog.workspace, datasets=(*others, replace(gl, lookups=lookups), accounts)))
    assert analysed(nested, accounts, next_version(accounts, without="is_active")) == [("is_active", "removed", (30,))]
    assert analysed(nested, accounts, next_version(accounts, without="category")) == []


def test_a_project_with_mistakes_of_its_own_cannot_be_analysed(tmp_path: Path) -> None:
    text = project_text([CONVERT.replace("fx.rate", "fx.rte", 1), WRITE])
    root = sample_workspace(tmp_path, projects__fx_reporting=text.replace("* fx.rate", "* fx.nothing"))
    catalog = Catalog.of(load_workspace(root).workspace)
    old = newest(catalog, "gl")
    with pytest.raises(ActivationError):
        find_breaking_changes(old, next_version(old, without="currency"), project(catalog), catalog)


def test_a_report_reads_back(catalog: Catalog) -> None:
    old = newest(catalog, "gl")
    new = next_version(old, without="currency")
    report = find_breaking_changes(old, new, project(catalog), catalog)
    assert report is not None
    assert ConflictReport.from_dict(report.to_dict()) == report
    assert report == ConflictReport(
        dataset_id=old.id,
        dataset_version_from=1,
        dataset_version_to=2,
        breaking_changes=(BreakingChange(column="currency", change_type="removed", affected_operations=(10, 20)),),
    )


def test_a_finding_names_the_column_the_operations_and_the_nearest_name(catalog: Catalog) -> None:
    old = newest(catalog, "gl")
    near = next_version(old, ColumnDef("currency_code", types.STRING), without="currency")
    moved = next_version(old, ColumnDef("iso", types.STRING, previous_name="currency"), without="currency")
    typed = next_version(old, ColumnDef("currency", types.LONG))
    lookup = next_version(old, ColumnDef("regions", types.STRING), without="region", lookup="cost_centers")
    helps = []
    for new in (near, moved, typed, lookup):
        report = find_breaking_changes(old, new, project(catalog), catalog)
        assert report is not None
        (finding,) = describe_conflict(report, new, project(catalog))
        assert finding.code == "W1105"
        assert finding.at is not None
        helps.append(finding.help.partition(";")[0])
    assert helps == [
        "the most similar name is 'currency_code'",
        "it is called 'iso' now",
        "it is long now",
        "the most similar name is 'regions'",
    ]
    report = find_breaking_changes(old, near, project(catalog), catalog)
    assert report is not None
    assert describe_conflict(report, near, project(catalog))[0].message == (
        "column 'currency' of 'gl' is removed in version 2; project 'fx_reporting' reads it in operations 10, 20"
    )
