"""What files say about each other: versions, names, defaults, and references to what is not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from entity_texts import DATASET, ORDERS, under, workspace
from weft.pipelines.model.read_workspace import load_workspace
from weft.pipelines.plan.catalog import Catalog
from weft.pipelines.plan.check import check_catalog

FILES = "resolver:\n  id: files\n  is_default: true\n  rules: [{name: all, strategy: {type: path, datasource: src, path: x}}]\n"
SOURCE = "datasource: {id: src, name: Source, type: csv}\n"
SECOND = DATASET.replace("  name: orders\n", "  name: orders\n  version: 2\n", 1)
FISCAL = """\
calendar: fiscal
is_default: true
levels: [{name: year}]
periods: [{identifier: 2026, level: year, start_date: 2025-07-01, end_date: 2026-06-30}]
"""
CASE = "scenario: s\nproject: orders_report\nperiod: 2026-01\nexpect: {count: 1}\n"
OUTPUT = ORDERS.replace(
    "{seq: 1, name: d, type: delete}",
    "{seq: 1, name: o, type: output, arguments: {destination: {datasource: srk, table: t}}}",
)


@pytest.mark.parametrize(
    ("files", "reported"),
    [
        ({"datasets/a.yml": DATASET, "datasets/b.yml": SECOND}, []),
        ({"datasets/a.yml": DATASET, "datasets/b.yml": DATASET}, [("W1011", "id: ds-orders")]),
        ({"datasets/a.yml": SECOND, "datasets/b.yml": SECOND}, [("W1011", "2")]),
        ({"datasets/a.yml": DATASET, "datasets/b.yml": SECOND.replace("ds-orders", "other")}, [("W1012", "orders")]),
        (
            {"datasets/a.yml": DATASET, "datasets/b.yml": DATASET.replace("ds-orders", "x").replace("name: orders\n  m", "name: ds-orders\n  m")},
            [("W1013", "ds-orders")],
        ),
        ({"projects/a.yml": ORDERS, "projects/b.yml": ORDERS}, [("W1011", "project: orders_report")]),
        ({"datasources/a.yml": SOURCE, "datasources/b.yml": SOURCE}, [("W1011", "src")]),
        ({"resolvers/a.yml": FILES, "datasources/s.yml": SOURCE}, []),
        ({"resolvers/a.yml": FILES, "datasources/s.yml": SOURCE.replace("id: src, ", "").replace("Source", "src")}, []),
        ({"resolvers/a.yml": FILES}, [("W1020", "src")]),
        (
            {"resolvers/a.yml": FILES, "resolvers/b.yml": FILES.replace("id: files", "id: others"), "datasources/s.yml": SOURCE},
            [("W1016", "true")],
        ),
        ({"calendars/a.yml": FISCAL, "calendars/b.yml": FISCAL.replace("fiscal", "retail")}, [("W1016", "true")]),
        ({"calendars/a.yml": FISCAL, "calendars/b.yml": FISCAL}, [("W1012", "fiscal")]),
        ({"projects/p.yml": ORDERS, "scenarios/a.yml": CASE, "scenarios/b.yml": CASE}, [("W1012", "s")]),
        ({"weft.yml": "default_resolver: files"}, [("W1020", "files")]),
        ({"datasets/a.yml": DATASET.replace("  name: orders\n  m", "  name: orders\n  resolver: flies\n  m")}, [("W1020", "flies")]),
        ({"projects/p.yml": ORDERS.replace("input", "calendar: fiscal\ninput")}, [("W1020", "fiscal")]),
        ({"projects/p.yml": OUTPUT, "datasources/s.yml": SOURCE}, [("W1020", "srk")]),
    ],
)  # fmt: skip
def test_files_are_checked_against_each_other(
    tmp_path: Path, files: dict[str, str], reported: list[tuple[str, str]]
) -> None:
    found = load_workspace(workspace(tmp_path, files)).findings
    assert [(f.code, under(f)) for f in found] == reported
    assert all(f.help for f in found)


def test_a_missing_entity_names_the_nearest(tmp_path: Path) -> None:
    (found,) = load_workspace(workspace(tmp_path, {"projects/p.yml": OUTPUT, "datasources/s.yml": SOURCE})).findings
    assert found.message == "unknown datasource 'srk'"
    assert found.help == "did you mean 'src'?"


LOOKUP = """\
dataset:
  name: lines
  main_table: {name: lines, columns: [{name: order_id, type: string}, {name: day, type: date}]}
  lookups:
    - alias: o
      target: {type: dataset, dataset: %s}
      join_conditions: [{source_column: %s, target_column: %s}]
"""


@pytest.mark.parametrize(
    ("lookup", "reported"),
    [
        (("orders", "order_id", "order_id"), []),
        (("ds-orders@1", "order_id", "order_id"), []),
        (("ordrs", "order_id", "order_id"), [("W1020", "ordrs")]),
        (("orders@7", "order_id", "order_id"), [("W1020", "orders")]),
        (("orders", "order_id", "order"), [("W1019", "order")]),
        (("orders", "day", "order_id"), [("W1019", "order_id")]),
    ],
)
def test_lookups_that_are_datasets_are_checked_with_the_catalog(
    tmp_path: Path, lookup: tuple[str, str, str], reported: list[tuple[str, str]]
) -> None:
    root = workspace(tmp_path, {"datasets/orders.yml": DATASET, "datasets/lines.yml": LOOKUP % lookup})
    found = check_catalog(Catalog.of(load_workspace(root).workspace))
    assert [(f.code, under(f)) for f in found] == reported


def test_the_datasets_of_overrides_are_checked_with_the_catalog(tmp_path: Path) -> None:
    project = ORDERS.replace("input", "resolver_overrides: {oders: files, orders: nobody}\ninput")
    root = workspace(tmp_path, {"datasets/a.yml": DATASET, "projects/p.yml": project})
    (found,) = check_catalog(Catalog.of(load_workspace(root).workspace))
    assert (found.code, under(found), found.help) == ("W1020", "oders", "did you mean 'orders'?")


def test_scenarios_name_projects_and_calendars_that_are_there(tmp_path: Path) -> None:
    scenario = "scenario: s\nproject: order_report\nperiod: 2026-01\ncalendar: lunar\nexpect: {count: 1}\n"
    found = load_workspace(workspace(tmp_path, {"projects/p.yml": ORDERS, "scenarios/s.yml": scenario})).findings
    assert [(f.code, under(f)) for f in found] == [("W1020", "order_report"), ("W1020", "lunar")]
    assert found[0].help == "did you mean 'orders_report'?"


def test_names_that_an_invalid_file_may_define_are_not_reported_as_unknown(tmp_path: Path) -> None:
    scenario = "scenario: s\nproject: orders_report\nperiod: 2026-01\nexpect: {count: 1}\n"
    root = workspace(tmp_path, {"projects/p.yml": "project: orders_report\n[", "scenarios/s.yml": scenario})
    assert [f.code for f in load_workspace(root).findings] == ["W1001"]
    (root / "projects/p.yml").write_text("project: another\n[", encoding="utf-8")
    assert [f.code for f in load_workspace(root).findings] == ["W1001", "W1020"]


def test_an_unreadable_file_of_another_kind_hides_no_missing_reference(tmp_path: Path) -> None:
    scenario = "scenario: s\nproject: orders_report\nperiod: 2026-01\nexpect: {count: 1}\n"
    files = {"resolvers/r.yml": "resolver: orders_report\n[", "scenarios/s.yml": scenario}
    found = load_workspace(workspace(tmp_path, files)).findings
    assert [f.code for f in found] == ["W1001", "W1020"]


def test_a_disabled_dataset_is_not_a_target_of_a_lookup(tmp_path: Path) -> None:
    files = {
        "datasets/orders.yml": DATASET.replace("name: orders\n  m", "name: orders\n  status: disabled\n  m"),
        "datasets/lines.yml": LOOKUP % ("orders", "order_id", "order_id"),
    }
    (found,) = check_catalog(Catalog.of(load_workspace(workspace(tmp_path, files)).workspace))
    assert found.message == "dataset 'orders' is disabled"
