"""Checking goes on behind an error: the rest is still found, and nothing that merely follows from it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from engine_data import sample_workspace
from weft.errors import Diagnostic
from weft.pipelines.model.read_workspace import load_workspace
from weft.pipelines.plan.catalog import Catalog
from weft.pipelines.plan.check import check_workspace

WRITE = "  - {seq: 90, name: Write, type: output, arguments: {destination: {path: out/x}}}\n"


def found(folder: Path, changes: dict[str, str | None]) -> list[Diagnostic]:
    loaded = load_workspace(sample_workspace(folder, changes))
    catalog = replace(Catalog.of(loaded.readable), unread=loaded.unread)
    return list(loaded.merge_findings(check_workspace(catalog)))


def codes(folder: Path, operations: str, head: str = "project: p\ninput: gl\n") -> list[tuple[int, str]]:
    """Return line and code of what is found in a project of these operations, which start in line 4."""
    findings = found(folder, {"projects/p.yml": f"{head}operations:\n{operations}"})
    assert all(d.at is not None and d.at.file == "projects/p.yml" for d in findings), findings
    return [(d.at.range["start"]["line"] + 1, d.code) for d in findings if d.at is not None]


def assign(seq: str, column: str, expression: str, more: str = "") -> str:
    assignment = f"{{column: {column}, expression: {expression}}}"
    return f"  - {{{seq}{more}, type: update, arguments: {{assignments: [{assignment}]}}}}\n"


@pytest.mark.parametrize(
    ("first", "code"),
    [
        ("seq: 10", "W1003"),  # no name
        ("seq: 0, name: a", "W1010"),
        ("seq: ten, name: a", "W1004"),
        ("name: a", "W1003"),  # no seq
        ("seq: \u00b2, name: a", "W1004"),
    ],
)
def test_an_operation_without_a_name_or_seq_is_one_mistake(tmp_path: Path, first: str, code: str) -> None:
    rest = assign("seq: 20", "y", "x + amount_loca", ", name: b") + WRITE
    # The column x is known to the second operation: the first one is still read.
    assert codes(tmp_path, assign(first, "x", "amount_local * 2") + rest) == [(4, code), (5, "W0207")]


def test_no_operation_is_lost_twice(tmp_path: Path) -> None:
    only = "  - {seq: 10, type: delete, selector: amount_loca = 0}\n"
    assert codes(tmp_path, only) == [(4, "W1003"), (4, "W0207")]


def test_what_follows_an_invalid_operation_is_still_checked(tmp_path: Path) -> None:
    operations = (
        assign("seq: 10, name: a", "x", "1").replace("assignments", "asignments")  # lines 4, no assignments
        + assign("seq: 20, name: b", "y", "x + amount_local +")
        + "  - {seq: 30, name: c, type: delete, selector: x = 1 AND amount_local}\n"
        + assign("seq: 40, name: d", "z", "x * 2").replace(
            "arguments: {", "arguments: {joins: [{alias: fx, dataset: ratez, on: x = fx.code}], "
        )
        + "  - {seq: 50, name: e, type: output, arguments: {columns: [x, y, journal_id], order_by: [-x],"
        + " destination: {path: out/x}}}\n"
    )
    assert codes(tmp_path, operations) == [
        (4, "W1003"),
        (4, "W1002"),
        (5, "W0201"),
        (6, "W0209"),
        (7, "W1201"),
    ]


@pytest.mark.parametrize("head", ["project: p\ninput: gll\n", "project: p\nowner: me\n"])
def test_a_project_without_its_input_is_still_checked(tmp_path: Path, head: str) -> None:
    operations = (
        assign("seq: 10, name: a", "x", "transactions.amount * nosuch.rate")
        + assign("seq: 20, name: b", "y", "SUM(")
        + assign("seq: 30, name: c", "z", "x").replace(
            "arguments: {", "arguments: {joins: [{alias: fx, dataset: ratez, on: x = fx.code}], "
        )
        + "  - {seq: 40, name: d, type: append, arguments: {source: {dataset: budget}}}\n"
        + "  - {seq: 50, name: e, type: output, arguments: {columns: [a, b], mode: merge,"
        + " destination: {path: out/x}}}\n"
    )
    first = (2, "W1213") if "gll" in head else (1, "W1003")
    assert codes(tmp_path, operations, head) == [first, (5, "W0201"), (6, "W1201"), (7, "W1213")]


def test_a_project_without_its_calendar_is_still_checked(tmp_path: Path) -> None:
    head = "{project: p, input: gl, calendar: fiskal,\n"
    operations = '[{seq: 10, name: a, type: delete, selector: "amount_loca = 0"}]}\n'
    findings = found(tmp_path, {"projects/p.yml": f"{head}operations: {operations}"})
    assert [d.code for d in findings] == ["W1020", "W0207"]


def test_an_invalid_dataset_is_reported_once(tmp_path: Path) -> None:
    findings = found(
        tmp_path,
        {
            "datasets/exchange_rates.v1.yml": "dataset: {id: 6f1f7c1e-0000-4000-8000-000000000002, name: exchange_rates, [\n",
            "projects/p.yml": "project: p\ninput: exchange_rates\noperations:\n" + WRITE,
        },
    )
    assert [(d.code, d.at and d.at.file) for d in findings] == [("W1001", "datasets/exchange_rates.v1.yml")]


def test_an_expression_error_does_not_hide_a_join_whose_types_do_not_meet(tmp_path: Path) -> None:
    operations = assign("seq: 10, name: a", "x", "amount_loca * 2").replace(
        "arguments: {",
        "arguments: {joins: [{alias: fx, dataset: exchange_rates, on: posting_date = fx.from_currency}], ",
    )
    assert codes(tmp_path, operations + WRITE) == [(4, "W1206"), (4, "W0207")]


def test_operation_ids_are_compared(tmp_path: Path) -> None:
    operations = (
        assign("id: a, seq: 10, name: a", "x", "1")
        + assign("id: a, seq: 20, name: b", "y", "1")
        + assign("id: op-40, seq: 30, name: c", "z", "1")
        + assign("seq: 40, name: d", "w", "1")
        + WRITE
    )
    assert codes(tmp_path, operations) == [(5, "W1023"), (7, "W1023")]


def test_a_seq_used_twice_is_not_also_an_id_used_twice(tmp_path: Path) -> None:
    operations = assign("seq: 10, name: a", "x", "1") + assign("seq: 10, name: b", "y", "1") + WRITE
    assert codes(tmp_path, operations) == [(5, "W1009")]
