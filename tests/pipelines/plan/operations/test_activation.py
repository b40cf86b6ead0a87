"""A whole project against its catalog: every failure at once, under the rule it breaks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine_data import GL_ID, RATES_ID
from pipelines import WRITE_ALL, join, site, update
from weft.pipelines.model.values import DatasetRef
from weft.pipelines.plan.failures import Failure
from weft.pipelines.plan.uses import find_column_uses

ON = "currency = fx.from_currency"
RATES = "datasets/exchange_rates.v1.yml"


def test_a_project_reports_all_its_failures(tmp_path: Path) -> None:
    found = site(
        tmp_path,
        [
            update(x="amount_local *"),
            update(20, y="amont_local * 2"),
            "- {seq: 30, name: Drop, type: delete, selector: '{{MISSING}}'}",
            WRITE_ALL,
        ],
    )
    assert [(f.rule, f.type, f.operation_order) for f in found.failures()] == [
        ("VAL-001", "ExpressionSyntaxError", 10),
        ("VAL-002", "UnresolvedColumnRef", 20),
        ("VAL-004", "UnresolvedSelectorRef", 30),
    ]
    error = found.refused()
    assert error.failures == found.failures()
    assert [d.code for d in error.diagnostics] == ["W0201", "W0207", "W0212"]
    assert [f.to_dict()["detail"] for f in error.failures][1] == "unknown column 'amont_local'"


@pytest.mark.parametrize(
    ("operation", "rule", "type"),
    [
        (update(amount_local="currency"), "VAL-003", "TypeMismatch"),
        (update(selector="currency", x="1"), "VAL-003", "TypeMismatch"),
        (update(joins=join("fx", "nothing", ON), x="1"), "VAL-008", "UnresolvedJoinSource"),
        (update(joins=join("fx", "exchange_rates", "TRUE"), x="1"), "VAL-001", "ExpressionSyntaxError"),
        (
            update(joins=join("fx", "exchange_rates", "currency = fx.x"), x="1"),
            "VAL-002",
            "UnresolvedColumnRef",
        ),
        (update(_row_id="1"), "VAL-000", "OperationError"),
    ],
)
def test_each_failure_has_its_rule(tmp_path: Path, operation: str, rule: str, type: str) -> None:
    (failure,) = site(tmp_path, [operation, WRITE_ALL]).failures()
    assert (failure.rule, failure.type, failure.operation_order) == (rule, type, 10)


@pytest.mark.parametrize(
    ("selector", "code"), [("currency =", "W0201"), ("amount_local + 1", "W1406"), ("nothing = 1", "W0207")]
)
def test_a_named_selector_that_nobody_uses_is_checked_on_the_input(tmp_path: Path, selector: str, code: str) -> None:
    (failure,) = site(tmp_path, [update(x="1"), WRITE_ALL], selectors={"S": f"'{selector}'"}).failures()
    assert (failure.rule, failure.type, failure.operation_order) == ("VAL-005", "ExpressionSyntaxError", None)
    assert failure.diagnostic.code == code


def test_an_invalid_selector_is_reported_once(tmp_path: Path) -> None:
    operations = [
        update(selector="{{S}}", x="1"),
        update(20, selector="{{S}} AND line_number = 1", y="1"),
        WRITE_ALL,
    ]
    (failure,) = site(tmp_path, operations, selectors={"S": "'currency ='"}).failures()
    assert failure.rule == "VAL-005"


def test_an_unknown_column_in_a_used_selector_is_reported_once(tmp_path: Path) -> None:
    operations = [update(selector="{{S}}", x="1"), update(20, selector="{{S}}", y="1"), WRITE_ALL]
    (failure,) = site(tmp_path, operations, selectors={"S": "'nothing = 1'"}).failures()
    assert (failure.rule, failure.operation_order) == ("VAL-002", 10)


def test_selectors_may_use_columns_that_an_operation_before_made(tmp_path: Path) -> None:
    operations = [update(x="1"), update(20, selector="{{S}}", y="1"), WRITE_ALL]
    assert site(tmp_path, operations, selectors={"S": "'x = 1'"}).failures() == ()


def test_a_selector_may_use_another(tmp_path: Path) -> None:
    named = {"A": "'{{ B }} OR line_number = 1'", "B": "'amount_local > 1'"}
    assert site(tmp_path, [update(selector="{{A}}", x="1"), WRITE_ALL], selectors=named).failures() == ()
    named["B"] = "'{{A}}'"
    codes = [c for c, _ in site(tmp_path, [update(selector="{{A}}", x="1"), WRITE_ALL], selectors=named).messages()]
    assert codes == ["W0213"]


def resolver(status: str = "active") -> str:
    return (
        f"resolver: {{id: files, name: f, version: 1, status: {status}, rules: "
        "[{name: r, strategy: {type: path, datasource_id: files, path: '{{table_name}}.csv'}}]}\n"
    )


@pytest.mark.parametrize(
    ("changes", "keys", "rule", "type"),
    [
        ({"resolvers/files.yml": resolver("disabled")}, {}, "VAL-007", "ResolverDisabled"),
        (
            {"weft.yml": "weft: 1\n", "resolvers/files.yml": resolver()},
            {},
            "VAL-006",
            "ResolverNotFound",
        ),
    ],
)
def test_every_dataset_needs_a_resolver(
    tmp_path: Path, changes: dict[str, str], keys: dict[str, Any], rule: str, type: str
) -> None:
    found = site(tmp_path, [update(x="1"), WRITE_ALL], changes, **keys)
    assert [(f.rule, f.type) for f in found.failures()] == [(rule, type)]


@pytest.mark.parametrize(
    ("ref", "message"),
    [
        (DatasetRef("g"), "input dataset 'g' does not exist"),
        (DatasetRef("gl", 4), "input dataset 'gl' has no version 4"),
    ],
)
def test_an_input_that_cannot_be_used_is_reported(tmp_path: Path, ref: DatasetRef, message: str) -> None:
    found = site(tmp_path, [update(x="1"), WRITE_ALL])
    other = replace(found, project=replace(found.project, input_dataset_id=ref.name, input_dataset_version=ref.version))
    (failure,) = other.failures()
    assert (failure.rule, failure.detail) == ("VAL-008", message)


def test_two_operations_cannot_have_one_seq(tmp_path: Path) -> None:
    found = site(tmp_path, [update(x="1"), WRITE_ALL])
    first = found.project.operations[0]
    other = replace(found, project=replace(found.project, operations=(first, *found.project.operations)))
    assert [f.rule for f in other.failures()] == ["VAL-009"]


def test_a_project_without_operations_does_nothing(tmp_path: Path) -> None:
    found = site(tmp_path, [update(x="1"), WRITE_ALL])
    other = replace(found, project=replace(found.project, operations=()))
    assert [f.diagnostic.code for f in other.failures()] == ["W1401"]


def test_a_calendar_that_is_not_there_is_a_failure(tmp_path: Path) -> None:
    found = site(tmp_path, [update(x="1"), WRITE_ALL])
    other = replace(found, project=replace(found.project, calendar="lunar"))
    assert [f.diagnostic.code for f in other.failures()] == ["W0402"]


def test_a_failure_of_no_rule_says_so() -> None:
    from weft.errors import Diagnostic

    assert Failure.of(Diagnostic("W1411", "x"), 10).rule == "VAL-000"


def test_the_uses_of_columns_are_known_by_dataset(tmp_path: Path) -> None:
    operations = [
        update(
            joins=join("fx", "exchange_rates", f"{ON} AND fx.rate_type = 'closing'"),
            amount_reporting="amount_local * fx.rate",
        ),
        update(20, selector="accounts.type = 'asset'", x="1"),
        "- {seq: 30, name: Add, type: append, arguments: {source: {dataset_id: budgets}, columns: {amount_local: amount}}}",
        "- {seq: 40, name: W, type: output, arguments: {destination: {path: x}, columns: [journal_id, x]}}",
    ]
    plan = site(tmp_path, operations).plan()
    uses = find_column_uses(plan.input, plan.operations)
    assert uses[GL_ID, "transactions.amount_local"] == (10, 30)
    assert uses[GL_ID, "transactions.amount_reporting"] == (10,)
    assert uses[GL_ID, "transactions.account_code"] == (20,)
    assert uses[GL_ID, "accounts.type"] == (20,)
    assert uses[GL_ID, "accounts.code"] == (20,)
    assert uses[RATES_ID, "exchange_rates.rate"] == (10,)
    assert uses[RATES_ID, "exchange_rates.rate_type"] == (10,)
    assert uses[GL_ID, "transactions.journal_id"] == (40,)
    assert (GL_ID, "transactions.x") not in uses
    assert (GL_ID, "transactions.description") not in uses
