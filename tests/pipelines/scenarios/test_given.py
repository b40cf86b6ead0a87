"""The tables that a scenario gives take the place of those of the workspace."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from engine_data import sample_workspace
from weft.core.calendar import GREGORIAN
from weft.errors import ScenarioError
from weft.pipelines.model.read_workspace import load_workspace
from weft.pipelines.model.scenario import Scenario
from weft.pipelines.model.values import TemporalMode
from weft.pipelines.plan.catalog import Catalog
from weft.pipelines.plan.project import resolve_project
from weft.pipelines.scenarios.given import Table, csv_text, given_rows, with_given, write_table
from weft.pipelines.scenarios.values import written_rows

PERIOD = GREGORIAN.parse("2026-01")
HEAD = "scenario: {name: Case, project: fx_reporting, period: 2026-01, expect: {count: 0}, given: "


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return sample_workspace(tmp_path)


def scenario(root: Path, given: str) -> tuple[Scenario, Catalog]:
    (root / "scenarios" / "ts03_fx.yml").write_text(HEAD + given + "}\n", encoding="utf-8")
    loaded = load_workspace(root)
    assert loaded.errors == ()
    return loaded.workspace.scenarios[0], Catalog.of(loaded.workspace)


def no_parquet(path: Path) -> tuple[dict[str, object], ...]:
    return ({"from": path.name},)


def test_given_tables_are_read_and_others_stay(root: Path, tmp_path: Path) -> None:
    rate = "{from_currency: EUR, to_currency: USD, rate: 2, rate_type: closing}"
    written, catalog = scenario(root, f"{{exchange_rates: [{rate}]}}")
    folder = tmp_path / "given"
    folder.mkdir()
    project = catalog.workspace.projects[0]
    workspace, changed = with_given(written, project, catalog, PERIOD, folder, no_parquet)
    plan = resolve_project(changed, Catalog.of(workspace), period=PERIOD, calendar=GREGORIAN)
    places = {read.name: [str(at) for at in read.locations] for read in plan.reads}
    assert places == {"input": ["transactions.csv"], "10.fx": ["0_0.csv"]}
    assert (folder / "0_0.csv").read_text(encoding="utf-8").splitlines() == [
        "from_currency,to_currency,rate,rate_type,_period_from,_period_to,__weft_given",
        '"EUR","USD","2","closing","2026-01-01",,1',
    ]
    assert plan.pins[1].resolver_source == "project_override"


def test_a_lookup_is_given_by_its_alias_and_the_rest_of_its_dataset_stays(root: Path, tmp_path: Path) -> None:
    account = "{code: '1', name: A, type: asset, category: c, is_active: true}"
    written, catalog = scenario(root, f"{{accounts: [{account}]}}")
    workspace, _ = with_given(written, catalog.workspace.projects[0], catalog, PERIOD, tmp_path, no_parquet)
    (made,) = (r for r in workspace.resolvers if r.id.startswith("weft:given"))
    assert [rule.name for rule in made.rules] == ["given accounts", "by-table"]


def test_without_given_tables_nothing_changes(root: Path, tmp_path: Path) -> None:
    written, catalog = scenario(root, "workspace")
    project = catalog.workspace.projects[0]
    assert with_given(written, project, catalog, PERIOD, tmp_path, no_parquet) == (catalog.workspace, project)


def test_every_mistake_of_every_table_is_reported(root: Path, tmp_path: Path) -> None:
    written, catalog = scenario(root, "{transations: [], gl: [{journal_id: 1, amount_local: x, colour: red}]}")
    with pytest.raises(ScenarioError) as caught:
        with_given(written, catalog.workspace.projects[0], catalog, PERIOD, tmp_path, no_parquet)
    reported = [d.message for d in caught.value.diagnostics]
    assert reported == [
        "project 'fx_reporting' does not read a table 'transations'",
        "row 1 of table 'transactions', column 'amount_local': 'x' is not a valid decimal(18,2)",
        "table 'transactions' has no column 'colour'",
    ]
    assert caught.value.diagnostics[0].help == "did you mean 'transactions'?"
    assert all(d.at is not None for d in caught.value.diagnostics)


def test_temporal_columns_are_filled_only_where_a_row_has_none(root: Path) -> None:
    written, catalog = scenario(
        root,
        "{exchange_rates: [{from_currency: EUR, to_currency: USD, rate: '1.5', rate_type: a},"
        " {from_currency: EUR, to_currency: USD, rate: 2, rate_type: a, _period_from: null, _period_to: 2026-02-01}]}",
    )
    dataset = catalog.versions("exchange_rates")[-1]
    table = Table(dataset, dataset.main_table)
    assert written.given is not None
    rows = given_rows(written.given["exchange_rates"], table, written, PERIOD, root, no_parquet)
    assert [(r["_period_from"], r["_period_to"], r["rate"]) for r in rows] == [
        (dt.date(2026, 1, 1), None, Decimal("1.5")),
        (None, dt.date(2026, 2, 1), Decimal(2)),
    ]


def test_a_text_keeps_its_quotes_and_line_ends(root: Path) -> None:
    _, catalog = scenario(root, "workspace")
    dataset = catalog.versions("budgets")[-1]
    row = {"budget_id": 'a"b\nc', "line_number": 1, "account_code": ""}
    text = csv_text([row], Table(dataset, dataset.main_table))
    assert text.splitlines()[1:] == ['"a""b', 'c","1","",,,,,,1']


def test_a_table_with_an_empty_string_is_a_file_that_can_hold_it(root: Path, tmp_path: Path) -> None:
    _, catalog = scenario(root, "workspace")
    dataset = catalog.versions("budgets")[-1]
    table = Table(dataset, dataset.main_table)
    rows: list[dict[str, Any]] = [{"budget_id": "a", "account_code": ""}, {"budget_id": "b", "account_code": None}]
    file = write_table(tmp_path / "0_0", rows, table)
    assert file.name == "0_0.json"
    read = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert [(row["budget_id"], row["account_code"]) for row in read] == [("a", ""), ("b", None)]
    assert write_table(tmp_path / "0_1", rows[1:], table).name == "0_1.csv"


@pytest.mark.parametrize(
    ("mode", "columns"),
    [("snapshot", []), ("period", ["_period"]), ("bitemporal", ["_period_from", "_period_to"])],
)
def test_a_file_has_the_temporal_columns_of_its_table(root: Path, mode: TemporalMode, columns: list[str]) -> None:
    _, catalog = scenario(root, "workspace")
    dataset = catalog.versions("budgets")[-1]
    table = replace(dataset.main_table, temporal_mode=mode)
    declared = [c.name for c in table.columns]
    assert csv_text([], Table(dataset, table)) == ",".join([*declared, *columns, "__weft_given"]) + "\n"


def test_files_are_read_by_their_ending(root: Path) -> None:
    (root / "scenarios" / "a.csv").write_text("x, y\n1,\n\n2,b\n", encoding="utf-8")
    (root / "scenarios" / "a.json").write_text('{"x": 1.10}\n\n{"x": null}\n', encoding="utf-8")
    (root / "scenarios" / "b.json").write_text('[{"x": 1}]', encoding="utf-8")
    (root / "scenarios" / "a.parquet").write_bytes(b"PAR1")
    wanted = {
        "a.csv": ({"x": "1", "y": None}, {"x": "2", "y": "b"}),
        "a.json": ({"x": Decimal("1.10")}, {"x": None}),
        "b.json": ({"x": 1},),
        "a.parquet": ({"from": "a.parquet"},),
    }
    for name, rows in wanted.items():
        written, _ = scenario(root, f"{{gl: {{file: {name}}}}}")
        assert written.given is not None
        assert written_rows(written.given["gl"], written, root, no_parquet) == rows


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "", "has no header"),
        ("a.csv", "x,x\n1,2\n", "has the column 'x' twice"),
        ("a.json", "{", "is not valid JSON"),
        ("a.json", "1\n", "does not contain rows"),
    ],
)
def test_files_that_are_not_tables(root: Path, name: str, content: str, message: str) -> None:
    (root / "scenarios" / name).write_text(content, encoding="utf-8")
    written, _ = scenario(root, f"{{gl: {{file: {name}}}}}")
    assert written.given is not None
    with pytest.raises(ScenarioError, match=f"W1702.*{message}"):
        written_rows(written.given["gl"], written, root, no_parquet)


def test_a_link_does_not_lead_out_of_the_workspace(root: Path) -> None:
    outside = root.parent / "outside.csv"
    outside.write_text("x\n1\n", encoding="utf-8")
    (root / "scenarios" / "link.csv").symlink_to(outside)
    written, _ = scenario(root, "{gl: {file: link.csv}}")
    assert written.given is not None
    with pytest.raises(ScenarioError, match=r"W1704.*leads out of the workspace"):
        written_rows(written.given["gl"], written, root, no_parquet)
