"""aggregate, append and delete before any data is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines import WRITE_ALL, Site, site, update
from weft.pipelines.plan.operations.resolved import ResolvedAggregate, ResolvedAppend, ResolvedDelete


def made(tmp_path: Path, *operations: str, **options: object) -> Site:
    return site(tmp_path, [*operations, WRITE_ALL], **options)  # type: ignore[arg-type]  # as site takes them


def aggregate(by: str, *aggregations: tuple[str, str], more: str = "", selector: str = "") -> str:
    lines = ["- seq: 10", "  name: Sum", "  type: aggregate"]
    if selector:
        lines.append(f"  selector: {selector}")
    lines += ["  arguments:", f"    group_by: [{by}]"]
    if aggregations:
        lines.append("    aggregations:")
    lines += [f"      - {{column: {column}, expression: '{text}'}}" for column, text in aggregations]
    return "\n".join([*lines, *([f"    {more}"] if more else [])])


TOTAL = ("total", "SUM(amount_local)")


def grouped(found: Site) -> ResolvedAggregate:
    op = found.plan().operations[0]
    assert isinstance(op, ResolvedAggregate)
    return op


# aggregate


@pytest.mark.parametrize(
    ("expression", "dtype"),
    [
        ("SUM(amount_local)", "decimal(28,2)"),
        ("AVG(amount_local)", "decimal(22,6)"),
        ("COUNT(journal_id)", "long"),
        ("COUNT(*)", "long"),
        ("COUNT_ALL()", "long"),
        ("MIN_AGG(posting_date)", "date"),
        ("MAX_AGG(currency)", "string"),
        ("SUM(amount_local) / COUNT(*)", "decimal(38,12)"),
        ("ROUND(AVG(transactions.amount_local), 2)", "decimal(19,2)"),
    ],
)
def test_an_aggregate_has_the_type_of_its_function(tmp_path: Path, expression: str, dtype: str) -> None:
    op = grouped(made(tmp_path, aggregate("currency", ("total", expression))))
    assert str(op.after.schema["total"].dtype) == dtype


def test_a_total_in_an_existing_column_takes_its_type(tmp_path: Path) -> None:
    op = grouped(made(tmp_path, aggregate("currency", ("amount_reporting", "SUM(amount_local)"))))
    assert str(op.values[0][2]) == "decimal(18,2)"
    assert op.after == op.before


def test_groups_are_columns_bare_or_qualified_and_period(tmp_path: Path) -> None:
    op = grouped(made(tmp_path, aggregate("transactions._period, currency, gl.account_code", TOTAL)))
    assert [name for name, _ in op.keys] == ["_period", "currency", "account_code"]


def test_a_lookup_column_is_a_group_of_its_own_name(tmp_path: Path) -> None:
    op = grouped(made(tmp_path, aggregate("cost_centers.region", TOTAL)))
    assert [step.alias for step in op.lookups] == ["cost_centers"]
    assert [f.name for f in op.after.business][-2:] == ["region", "total"]


@pytest.mark.parametrize(
    ("by", "aggregation", "code", "message"),
    [
        ("curency", TOTAL, "W0207", "unknown column 'curency'"),
        ("acounts.type", TOTAL, "W0207", "unknown table or join 'acounts'"),
        (
            "currency, transactions.currency",
            TOTAL,
            "W1409",
            "'transactions.currency' names the group column 'currency' again",
        ),
        ("_row_id", TOTAL, "W1408", "rows cannot be grouped by '_row_id'"),
        ("UPPER(currency)", TOTAL, "W1408", "group_by names 'UPPER(currency)', which is not a column"),
        ("currency", ("total", "amount_local"), "W0218", "column amount_local is not inside an aggregate"),
        ("currency", ("total", "1"), "W0218", "the value of 'total' has no aggregate"),
        ("currency", ("total", "SUM(amont)"), "W0207", "unknown column 'amont'"),
        ("currency", ("total", "SUM(SUM(amount_local))"), "W0211", "SUM is nested inside SUM"),
        ("currency", ("total", "MEDIAN(amount_local)"), "W0206", None),
        ("currency", ("total", "SUM(*)"), "W0205", None),
        ("currency", ("total", "SUM(amount_local) x"), "W0201", None),
        ("currency", ("_deleted", "COUNT(*)"), "W1402", "column '_deleted' is Weft's own"),
        ("currency", ("_labels", "COUNT(*)"), "W1402", "an aggregate cannot write _labels"),
        ("currency", ("currency", "MAX_AGG(currency)"), "W1409", "column 'currency' is written twice"),
        (
            "currency",
            ("line_number", "SUM(amount_local)"),
            "W0209",
            "column 'line_number' is long, the expression gives decimal(28,2)",
        ),
    ],
)
def test_an_aggregate_that_means_nothing_is_refused(
    tmp_path: Path, by: str, aggregation: tuple[str, str], code: str, message: str | None
) -> None:
    (finding,) = made(tmp_path, aggregate(by, aggregation)).messages()
    assert finding[0] == code
    assert message in (None, finding[1])


def test_two_aggregations_cannot_have_one_name(tmp_path: Path) -> None:
    assert made(tmp_path, aggregate("currency", TOTAL, TOTAL)).messages() == [
        ("W1409", "column 'total' is written twice")
    ]


def test_a_column_of_a_group_that_is_another_working_column_is_refused(tmp_path: Path) -> None:
    text = aggregate("accounts.name", TOTAL).replace("seq: 10", "seq: 20")
    (finding,) = made(tmp_path, update(name="'x'"), text).messages()
    assert finding[0] == "W1408"


@pytest.mark.parametrize("selector", ["currency", "SUM(amount_local) > 1", "''"])
def test_a_selector_of_an_aggregate_is_a_condition(tmp_path: Path, selector: str) -> None:
    (finding,) = made(tmp_path, aggregate("currency", TOTAL, selector=selector)).messages()
    assert finding[0] in ("W1406", "W0210", "W1403")


def test_summaries_are_left_out_unless_they_are_asked_for(tmp_path: Path) -> None:
    assert not grouped(made(tmp_path, aggregate("currency", TOTAL))).include_summaries
    assert grouped(made(tmp_path, aggregate("currency", TOTAL, more="include_summaries: true"))).include_summaries


# append


def append(arguments: str, source: str = "dataset_id: budgets", more: str = "") -> str:
    return f"- {{seq: 20, name: Add, type: append, {more}arguments: {{source: {{{source}}}{arguments}}}}}"


MAPPED = ", columns: {line_number: line_number, account_code: account_code, amount_local: amount}"


def appended(found: Site) -> ResolvedAppend:
    op = found.plan().operations[0]
    assert isinstance(op, ResolvedAppend)
    return op


def test_extra_columns_are_refused_with_all_their_names(tmp_path: Path) -> None:
    (failure,) = made(tmp_path, append("")).failures()
    assert failure.diagnostic.code == "W1410"
    assert failure.detail == "budgets v1 has columns that the working set does not have: amount, budget_id, budget_type"
    assert "columns: {" in failure.diagnostic.help


def test_columns_can_be_added_by_an_update_before(tmp_path: Path) -> None:
    before = update(budget_id="CAST(NULL AS string)", amount="CAST(NULL AS decimal(18,2))", budget_type="''")
    assert made(tmp_path, before, append("")).failures() == ()


def test_columns_map_the_source_to_the_working_set(tmp_path: Path) -> None:
    op = appended(made(tmp_path, append(MAPPED + ", source_selector: \"budget_type = 'original'\"")))
    assert [(name, str(dtype)) for name, _, dtype in op.values] == [
        ("line_number", "long"),
        ("account_code", "string"),
        ("amount_local", "decimal(18,2)"),
    ]
    assert op.read.name == "20.source"
    assert op.read.columns[:5] == ("line_number", "account_code", "amount", "budget_type", "_row_id")


def test_extra_columns_that_are_aggregated_away_are_fine(tmp_path: Path) -> None:
    text = ", aggregation: {group_by: [account_code], aggregations: [{column: amount_local, expression: SUM(amount)}]}"
    op = appended(made(tmp_path, append(text)))
    assert op.keys is not None
    assert [name for name, _ in op.keys] == ["account_code"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (
            ", columns: {nothing: amount}",
            "W1410",
            "budgets v1 has columns that the working set does not have: nothing",
        ),
        (", columns: {amount_local: amout}", "W0207", "unknown column 'amout'"),
        (
            ", columns: {line_number: amount}",
            "W0209",
            "column 'line_number' is long, the expression gives decimal(18,2)",
        ),
        (
            MAPPED + ", source_selector: amount",
            "W1406",
            "the selector is of type decimal(18,2), not boolean",
        ),
        (MAPPED + ", source_selector: ' '", "W1403", "the selector is empty"),
        (MAPPED + ", source_selector: amount_local > 1", "W0207", "unknown column 'amount_local'"),
        (
            MAPPED + ", source_selector: 'transactions.currency = 1'",
            "W0207",
            "unknown table or join 'transactions'",
        ),
        (
            ", aggregation: {group_by: [budget_id], aggregations: [{column: amount_local, expression: SUM(amount)}]}",
            "W1410",
            "budgets v1 has columns that the working set does not have: budget_id",
        ),
        (
            ", aggregation: {group_by: [account_code], aggregations: [{column: amount_local, expression: MEDIAN(amount)}]}",
            "W0206",
            None,
        ),
        (
            ", aggregation: {group_by: [acount_code], aggregations: [{column: amount_local, expression: SUM(amount)}]}",
            "W0207",
            "unknown column 'acount_code'",
        ),
    ],
)
def test_an_append_that_means_nothing_is_refused(
    tmp_path: Path, arguments: str, code: str, message: str | None
) -> None:
    (finding,) = made(tmp_path, append(arguments)).messages()
    assert finding[0] == code
    assert message in (None, finding[1])


@pytest.mark.parametrize(
    ("source", "changes", "message"),
    [
        ("dataset_id: budget", None, "source dataset 'budget' does not exist"),
        ("dataset_id: budgets, dataset_version: 4", None, "source dataset 'budgets' has no version 4"),
        ("dataset_id: budgets", "disabled", "source dataset 'budgets' is disabled"),
    ],
)
def test_a_source_that_cannot_be_used_is_reported(
    tmp_path: Path, source: str, changes: str | None, message: str
) -> None:
    file = "datasets/budgets.v1.yml"
    text = (Path(__file__).parents[3] / "data" / "fx" / file).read_text(encoding="utf-8")
    off = {file: text.replace("status: active", "status: disabled")} if changes else None
    assert made(tmp_path, append(MAPPED, source), changes=off).messages() == [("W1213", message)]


def test_an_append_has_no_selector_of_its_own(tmp_path: Path) -> None:
    (finding,) = made(tmp_path, append(MAPPED, more="selector: 'line_number = 1', ")).messages()
    assert finding[1] == "an append takes no selector"


# delete


def test_a_delete_without_a_selector_is_of_all_rows(tmp_path: Path) -> None:
    op = made(tmp_path, "- {seq: 10, name: All, type: delete}").plan().operations[0]
    assert isinstance(op, ResolvedDelete)
    assert op.selector is None


@pytest.mark.parametrize(
    ("selector", "code"),
    [
        ("''", "W1403"),
        ("amount_local", "W1406"),
        ("amont = 0", "W0207"),
        ("'{{NONE}}'", "W0212"),
        ("x.y = 0", "W0207"),
    ],
)
def test_a_selector_of_a_delete_is_a_condition(tmp_path: Path, selector: str, code: str) -> None:
    found = made(tmp_path, f"- {{seq: 10, name: Some, type: delete, selector: {selector}}}")
    assert [c for c, _ in found.messages()] == [code]
