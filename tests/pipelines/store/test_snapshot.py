from __future__ import annotations

import datetime as dt
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine_data import BUDGETS_ID, CONVERT, FX, FX_ON, GL_ID, RATES_ID, WRITE, project_text, sample_workspace
from store_values import NOW, new_run, registration
from weft.core.calendar import GREGORIAN
from weft.errors import StoreError
from weft.pipelines.model.read_workspace import load_workspace
from weft.pipelines.plan.catalog import Catalog
from weft.pipelines.plan.project import ProjectPlan, resolve_project
from weft.pipelines.store.column_types import snapshot_fingerprint
from weft.pipelines.store.lifecycle import build_catalog
from weft.pipelines.store.open import open_store
from weft.pipelines.store.snapshot import (
    build_snapshot,
    period_from_snapshot,
    plan_fingerprint,
    plan_from_snapshot,
    resolver_snapshot,
)

RATES = Path(__file__).parents[2] / "data" / "fx" / "datasets" / "exchange_rates.v1.yml"
SESSION = {
    "timeZone": "UTC",
    "caseSensitive": True,
    "ansi": True,
    "spark_version": "4.3.0",
    "shuffle_partitions": 2,
    "master": "local[2]",
}
FISCAL = """\
calendar:
  name: fiscal
  levels: [{name: year}, {name: month, parent: year}]
  periods:
    - {identifier: FY26, level: year, start_date: 2025-12-01, end_date: 2026-11-30}
    - {identifier: P02, level: month, start_date: 2026-01-01, end_date: 2026-01-31, status: closed}
"""


def planned(root: Path, period: str = "2026-01") -> tuple[ProjectPlan, Catalog]:
    loaded = load_workspace(root)
    assert loaded.errors == ()
    catalog = build_catalog(loaded.workspace, None)
    (project,) = loaded.workspace.projects
    calendar = catalog.calendar(project.calendar)
    return resolve_project(project, catalog, period=calendar.parse(period), calendar=calendar), catalog


def taken(plan: ProjectPlan, catalog: Catalog, **changes: Any) -> dict[str, Any]:
    values: dict[str, Any] = {
        "engine_version": "0.1.0",
        "session": SESSION,
        "inputs": {"input": {"files": [["transactions.csv", 10, 5, "ab"]]}},
        "today": dt.date(2026, 2, 1),
        "known_at": NOW,
        "run_at": NOW,
    }
    return build_snapshot(plan, catalog, **values | changes)


def rates(version: int, **keys: str) -> str:
    text = RATES.read_text(encoding="utf-8").replace("version: 1", f"version: {version}")
    for key, value in keys.items():
        text = text.replace("  status: active\n", f"  status: {value}\n") if key == "status" else text
    return text


def test_the_resolver_snapshot_has_the_form_of_the_mandate(tmp_path: Path) -> None:
    plan, catalog = planned(sample_workspace(tmp_path))
    fx = {"alias": "fx", "dataset_id": RATES_ID, "dataset_version": 1, "resolver_source": "dataset_resolver"}
    snapshot = {"input_dataset_id": GL_ID, "input_dataset_version": 1, "join_datasets": [fx]}
    assert resolver_snapshot(plan, catalog) == snapshot


def test_there_is_one_entry_for_every_join_in_its_order(tmp_path: Path) -> None:
    again = CONVERT.replace("seq: 10", "seq: 15").replace(RATES_ID, "exchange_rates@1")
    both = f"""\
- seq: 5
  name: Budget
  type: update
  arguments:
    joins:
      - {{alias: b, dataset: budgets, on: "transactions.journal_id = b.budget_id", on_multiple: all}}
      - {{alias: fx, dataset: exchange_rates, on: "{FX_ON}"}}
      - {{alias: other, dataset: gl, on: "transactions.journal_id = other.journal_id", on_multiple: all}}
    assignments:
      - {{column: amount_reporting, expression: "transactions.amount_local * fx.rate"}}
"""
    text = project_text([both, CONVERT, again, WRITE], resolver_overrides="{exchange_rates: files}")
    plan, catalog = planned(sample_workspace(tmp_path, projects__fx_reporting=text))
    assert [
        (e["alias"], e["dataset_id"], e["dataset_version"], e["resolver_source"])
        for e in resolver_snapshot(plan, catalog)["join_datasets"]
    ] == [
        ("b", BUDGETS_ID, 1, "system_default"),
        ("fx", RATES_ID, 1, "project_override"),
        ("other", GL_ID, 1, "system_default"),
        ("fx", RATES_ID, 1, "project_override"),
        ("fx", RATES_ID, 1, "project_override"),
    ]


@pytest.mark.parametrize(
    ("given", "files", "version"),
    [
        ("exchange_rates", {2: rates(2), 3: rates(3, status="disabled")}, 2),  # the newest that is active
        ("exchange_rates@1", {2: rates(2)}, 1),
        ("exchange_rates", {}, 1),
    ],
)
def test_the_version_that_a_join_takes_is_pinned(
    tmp_path: Path, given: str, files: dict[int, str], version: int
) -> None:
    text = project_text([CONVERT.replace(RATES_ID, given), WRITE])
    changes = {f"datasets/exchange_rates.v{n}.yml": body for n, body in files.items()}
    plan, catalog = planned(sample_workspace(tmp_path, {"projects/fx_reporting.yml": text, **changes}))
    (entry,) = resolver_snapshot(plan, catalog)["join_datasets"]
    assert (entry["dataset_id"], entry["dataset_version"]) == (RATES_ID, version)


def test_the_snapshot_holds_everything_that_can_change_a_result(tmp_path: Path) -> None:
    text = project_text(
        [CONVERT, WRITE],
        selectors={"EUR": "\"transactions.currency = 'EUR'\""},
        resolver_overrides="{gl: files}",
    )
    plan, catalog = planned(sample_workspace(tmp_path, projects__fx_reporting=text))
    found = taken(plan, catalog)
    assert (found["schema"], found["engine"]) == ("weft/snapshot/1", "0.1.0")
    assert found["selectors"] == {"EUR": "transactions.currency = 'EUR'"}
    assert found["resolver_overrides"] == {"gl": "files"}
    assert [op["seq"] for op in found["operations"]] == [10, 20]
    assert found["project"]["behaviour"] == plan.project.behaviour()
    assert found["period"] == {
        "identifier": "2026-01",
        "level": "month",
        "start_date": "2026-01-01",
        "end_date": "2026-01-31",
        "calendar": "gregorian",
        "status": "open",
    }
    assert (found["known_at"], found["run_at"]) == ("2026-11-15T11:40:02.000000Z",) * 2
    assert (found["today"], found["sandbox"], found["materialization"]) == ("2026-02-01", False, "eager")
    assert {(p["role"], p["seq"], p["dataset_id"], p["resolver_source"]) for p in found["pins"]} == {
        ("input", None, GL_ID, "project_override"),
        ("join", 10, RATES_ID, "dataset_resolver"),
    }
    assert [(p["read"], p["path"]) for p in found["locations"]] == [
        ("input", "transactions.csv"),
        ("10.fx", "exchange_rates.csv"),
    ]
    assert set(found["datasets"]) == {f"{GL_ID}@1", f"{RATES_ID}@1"}
    assert (set(found["resolvers"]), set(found["datasources"])) == ({"files@1"}, {"files", "warehouse"})
    assert found["inputs"] == {"input": {"files": [["transactions.csv", 10, 5, "ab"]]}}
    assert found["session"] == {k: SESSION[k] for k in ("timeZone", "caseSensitive", "ansi", "spark_version")}
    assert found["environment"] == {"shuffle_partitions": 2, "master": "local[2]"}
    assert json.loads(json.dumps(found)) == found


def test_a_run_is_planned_again_from_its_snapshot_alone(tmp_path: Path) -> None:
    root = sample_workspace(tmp_path)
    plan, catalog = planned(root)
    kept = json.loads(json.dumps(taken(plan, catalog)))
    for folder in ("datasets", "projects", "resolvers", "datasources"):
        for file in (root / folder).iterdir():
            file.unlink()
    project, then = plan_from_snapshot(kept, root)
    period = period_from_snapshot(kept)
    again = resolve_project(project, then, period=period, calendar=then.calendar(project.calendar))
    assert again == plan
    assert plan_fingerprint(again, then) == plan_fingerprint(plan, catalog) == kept["plan"]
    assert snapshot_fingerprint(taken(again, then)) == snapshot_fingerprint(kept)


def test_a_run_of_a_strict_workspace_is_planned_again_as_strictly(tmp_path: Path) -> None:
    root = sample_workspace(tmp_path)
    settings = root / "weft.yml"
    settings.write_text(settings.read_text(encoding="utf-8") + "conformance: strict\n", encoding="utf-8")
    plan, catalog = planned(root)
    _, then = plan_from_snapshot(json.loads(json.dumps(taken(plan, catalog))), root)
    assert (catalog.settings.conformance, then.settings.conformance) == ("strict", "strict")


def test_a_dataset_that_only_a_lookup_names_is_kept(tmp_path: Path) -> None:
    gl = (FX / "datasets/gl.v1.yml").read_text(encoding="utf-8")
    start, end = (
        gl.index("      target:\n        type: table\n        name: accounts"),
        gl.index("      join_conditions"),
    )
    columns = gl[start:end].partition("        columns:\n")[2].replace("          - ", "      - ")
    accounts = (
        "dataset:\n  name: chart\n  version: 1\n  status: active\n  main_table:\n    name: accounts\n"
        f"    columns:\n{columns}"
    )
    nested = gl[:start] + "      target: {type: dataset, id: chart}\n" + gl[end:]
    for assignment in ("'x'", "accounts.name"):  # unread, a lookup still has to be there
        mark = f"""\
- seq: 5
  name: Mark
  type: update
  arguments:
    assignments: [{{column: description, expression: "{assignment}"}}]
"""
        root = sample_workspace(
            tmp_path / assignment.strip("'"),
            {
                "datasets/gl.v1.yml": nested,
                "datasets/chart.v1.yml": accounts,
                "projects/fx_reporting.yml": project_text([mark, WRITE]),
            },
        )
        plan, catalog = planned(root)
        kept = json.loads(json.dumps(taken(plan, catalog)))
        assert [body["name"] for body in kept["datasets"].values()] == ["gl", "chart"]
        project, then = plan_from_snapshot(kept, root)
        again = resolve_project(project, then, period=plan.period, calendar=GREGORIAN)
        assert again == plan


def test_a_listed_calendar_is_kept_with_its_periods(tmp_path: Path) -> None:
    text = project_text(calendar="fiscal")
    root = sample_workspace(tmp_path, projects__fx_reporting=text, calendars__fiscal=FISCAL)
    plan, catalog = planned(root, "P02")
    kept = json.loads(json.dumps(taken(plan, catalog)))
    _, then = plan_from_snapshot(kept, root)
    assert then.calendar("fiscal") == catalog.calendar("fiscal")
    assert period_from_snapshot(kept) == plan.period
    assert kept["period"]["status"] == "closed"


def test_a_registered_dataset_is_kept_with_the_places_it_had(tmp_path: Path) -> None:
    root = sample_workspace(tmp_path)
    loaded = load_workspace(root).workspace
    with open_store(loaded.settings.store, root) as store:
        run = store.create_run(new_run())
        store.set_running(run.id)
        store.complete(run.id, [registration("rates_of_us", "2026-01", 20)])
        join = CONVERT.replace(RATES_ID, "rates_of_us").replace(FX_ON, "transactions.currency = fx.currency")
        join = join.replace("transactions.amount_local * fx.rate", "transactions.amount_local")
        (root / "projects/fx_reporting.yml").write_text(project_text([join, WRITE]), encoding="utf-8")
        workspace = load_workspace(root).workspace
        catalog = build_catalog(workspace, store)
        (project,) = workspace.projects
        plan = resolve_project(project, catalog, period=GREGORIAN.parse("2026-01"), calendar=GREGORIAN)
        kept = json.loads(json.dumps(taken(plan, catalog)))
    _, then = plan_from_snapshot(kept, root)
    again = resolve_project(project, then, period=plan.period, calendar=GREGORIAN)
    assert again == plan
    assert [p["path"] for p in kept["locations"]][1] == "out/period=2026-01"


def test_what_an_output_registers_does_not_change_the_plan(tmp_path: Path) -> None:
    root = sample_workspace(tmp_path)
    plan, catalog = planned(root)
    before = plan_fingerprint(plan, catalog)
    with open_store("sqlite:///.weft/weft.db", root) as store:
        run = store.create_run(new_run())
        store.set_running(run.id)
        store.complete(run.id, [registration("gl_usd")])
        after = build_catalog(catalog.workspace, store)
    assert plan_fingerprint(plan, after) == before


@pytest.mark.parametrize(
    "change",
    [
        {"projects/fx_reporting.yml": project_text([CONVERT.replace("* fx.rate", "* fx.rate * 2"), WRITE])},
        {"projects/fx_reporting.yml": project_text(selectors={"S": "TRUE"})},
        {"datasets/exchange_rates.v2.yml": rates(2)},
        {"projects/fx_reporting.yml": project_text(status="draft")},
    ],
)
def test_another_plan_has_another_hash(tmp_path: Path, change: dict[str, str]) -> None:
    base = {"projects/fx_reporting.yml": project_text()}
    first = plan_fingerprint(*planned(sample_workspace(tmp_path / "a", base)))
    second = plan_fingerprint(*planned(sample_workspace(tmp_path / "b", base | change)))
    assert first != second


def test_a_snapshot_of_another_form_is_reported(tmp_path: Path) -> None:
    plan, catalog = planned(sample_workspace(tmp_path))
    kept = taken(plan, catalog)
    with pytest.raises(StoreError, match="weft/snapshot/9") as newer:
        plan_from_snapshot(kept | {"schema": "weft/snapshot/9"})
    with pytest.raises(StoreError, match="invalid snapshot") as broken:
        plan_from_snapshot({k: v for k, v in kept.items() if k != "datasets"})
    assert (newer.value.code, broken.value.code) == ("W1604", "W1602")


def test_a_record_of_a_read_is_kept_as_json_has_it(tmp_path: Path) -> None:
    from dataclasses import dataclass

    @dataclass(frozen=True)
    class Print:
        files: tuple[tuple[str, int], ...]
        at: dt.datetime
        day: dt.date

    plan, catalog = planned(sample_workspace(tmp_path))
    seen = Print((("a.csv", 3),), NOW, NOW.date())
    found = taken(replace(plan), catalog, inputs={"input": seen})
    assert found["inputs"] == {
        "input": {"files": [["a.csv", 3]], "at": "2026-11-15T11:40:02.000000Z", "day": "2026-11-15"}
    }
