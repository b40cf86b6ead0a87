"""append on Spark: rows of another dataset behind those that are there."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine_data import BUDGETS_ID
from pipelines import WRITE_ALL, Site, budgets, run, site, update

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAPPED = "columns: {line_number: line_number, account_code: account_code, currency: currency, amount_local: amount}"


def append(seq: int, arguments: str, source: str = "budgets") -> str:
    return (
        f"- {{seq: {seq}, name: Add {seq}, type: append, arguments: {{source: {{dataset_id: {source}}}, {arguments}}}}}"
    )


def added(rows: list[dict[str, Any]], seq: int) -> list[dict[str, Any]]:
    return [row for row in rows if row["_operation_seq"] == seq]


def appending(tmp_path: Path, *operations: str) -> Site:
    return site(tmp_path, [*operations, WRITE_ALL])


def test_rows_are_added_with_their_columns_and_ours(spark: SparkSession, tmp_path: Path) -> None:
    operations = [
        append(10, MAPPED),
        append(20, f"{MAPPED}, source_selector: \"amount > 10000 AND budget_type = 'original'\""),
        append(30, f'{MAPPED}, source_selector: "amount > 1000000"'),
        append(
            40,
            "source_selector: \"currency = 'USD'\", aggregation: {group_by: [budgets.currency], aggregations: "
            "[{column: amount_local, expression: SUM(amount)}, {column: line_number, expression: COUNT(*)}]}",
        ),
        append(
            50,
            "columns: {amount_local: rate, description: rate_type, currency: from_currency}",
            "exchange_rates",
        ),
    ]
    mixed = [*budgets(), {**budgets()[0], "_period": "2026-02"}, {**budgets()[0], "_deleted": True}]
    ran = run(spark, appending(tmp_path, *operations).plan(), {"budgets": mixed})
    rows = ran.last
    first = {r["line_number"]: r for r in added(rows, 10)}
    assert sorted(first) == [1, 2, 3, 4]
    assert (first[3]["account_code"], first[3]["amount_local"], first[3]["journal_id"]) == (
        "4200",
        Decimal("25000.00"),
        None,
    )
    one = first[1]
    assert (one["_row_kind"], one["_source_dataset_id"], one["_source_table"], one["_period"]) == (
        "appended",
        BUDGETS_ID,
        "budgets",
        "2026-01",
    )
    assert (one["_deleted"], one["_created_by_run_id"]) == (False, "run-1")
    assert {r["line_number"] for r in added(rows, 20)} == {1, 3}
    assert added(rows, 30) == []
    assert [(r["currency"], r["amount_local"], r["line_number"]) for r in added(rows, 40)] == [
        ("USD", Decimal("25000.00"), 2)
    ]
    # A bitemporal source is looked at as of the period's first day, and its rows get the period of the run.
    assert len(added(rows, 50)) == 5
    assert {r["_period"] for r in added(rows, 50)} == {"2026-01"}
    assert len({r["_row_id"] for r in rows}) == len(rows) == 10 + 4 + 2 + 0 + 1 + 5
    counted = {n: (c.rows_in, c.rows_out, c.rows_changed) for n, c in ran.counts.items()}
    assert counted == {
        10: (10, 14, 4),
        20: (14, 16, 2),
        30: (16, 16, 0),
        40: (16, 17, 1),
        50: (17, 22, 5),
        900: (22, 22, 22),
    }


def test_columns_may_be_added_before_and_later_operations_see_the_rows(spark: SparkSession, tmp_path: Path) -> None:
    before = update(
        10,
        budget_id="CAST(NULL AS string)",
        amount="CAST(NULL AS decimal(18,2))",
        budget_type="CAST(NULL AS string)",
    )
    after = update(30, selector="_row_kind = 'appended'", amount_local="amount")
    plain = "- {seq: 20, name: Add, type: append, arguments: {source: {dataset_id: budgets}}}"
    ran = run(spark, appending(tmp_path, before, plain, after).plan())
    assert len(ran.last) == 14
    assert {r["amount_local"] for r in added(ran.last, 20)} == {
        Decimal("20000.00"),
        Decimal("10000.00"),
        Decimal("25000.00"),
        Decimal("5000.00"),
    }
    assert (ran.counts[30].rows_in, ran.counts[30].rows_changed) == (14, 4)


def test_rows_are_chosen_then_summed_then_added(spark: SparkSession, tmp_path: Path) -> None:
    hundred = [
        {**budgets()[0], "line_number": n, "amount": Decimal(n), "account_code": f"A{n % 5}"} for n in range(100)
    ]
    by_account = (
        "aggregation: {group_by: [account_code], aggregations: [{column: amount_local, expression: SUM(amount)}, "
        "{column: line_number, expression: COUNT(*)}]}"
    )
    operations = [
        append(10, f'{MAPPED}, source_selector: "amount >= 95"'),
        append(20, by_account),
        append(30, f'source_selector: "amount >= 50", {by_account}'),
    ]
    ran = run(spark, appending(tmp_path, *operations).plan(), {"budgets": hundred})
    assert sorted(r["line_number"] for r in added(ran.last, 10)) == [95, 96, 97, 98, 99]
    totals = {r["account_code"]: (r["amount_local"], r["line_number"]) for r in added(ran.last, 20)}
    assert totals == {f"A{n}": (Decimal(950 + 20 * n), 20) for n in range(5)}
    chosen = {r["account_code"]: (r["amount_local"], r["line_number"]) for r in added(ran.last, 30)}
    assert chosen == {f"A{n}": (Decimal(725 + 10 * n), 10) for n in range(5)}
    assert len(ran.last) == 10 + 5 + 5 + 5


def test_an_id_depends_on_the_source_row_alone(spark: SparkSession, tmp_path: Path) -> None:
    plan = appending(tmp_path, append(10, MAPPED)).plan()
    ids = {r["line_number"]: r["_row_id"] for r in added(run(spark, plan).last, 10)}
    fewer = added(run(spark, plan, {"budgets": list(reversed(budgets()))[:2]}, partitions=3).last, 10)
    assert {r["line_number"]: r["_row_id"] for r in fewer} == {k: ids[k] for k in (4, 3)}
