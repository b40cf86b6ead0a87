"""aggregate on Spark: summary rows behind the rows that are there."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine_data import GL_ID, PROJECT_ID
from pipelines import RUN_AT, WRITE_ALL, run, site, transaction, update

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def aggregate(seq: int, by: str, selector: str = "", more: str = "", **aggregations: str) -> str:
    columns = ", ".join(f"{{column: {name}, expression: '{text}'}}" for name, text in aggregations.items())
    chosen = f'selector: "{selector}", ' if selector else ""
    return (
        f"- {{seq: {seq}, name: Sum {seq}, type: aggregate, {chosen}"
        f"arguments: {{group_by: [{by}], aggregations: [{columns}]{more}}}}}"
    )


def summaries(rows: list[dict[str, Any]], seq: int) -> list[dict[str, Any]]:
    return [row for row in rows if row["_operation_seq"] == seq]


def test_totals_by_account_type_are_added(spark: SparkSession, tmp_path: Path) -> None:
    operations = [
        update(10, account_type="accounts.type"),
        aggregate(
            20,
            "transactions.account_type",
            total_local="SUM(transactions.amount_local)",
            line_count="COUNT(transactions.journal_id)",
        ),
        aggregate(30, "account_type", again="SUM(amount_local)", rows="COUNT(*)"),
        aggregate(40, "account_type", more=", include_summaries: true", every="COUNT(*)"),
        aggregate(
            50,
            "cost_centers.region",
            selector="currency <> 'JPY'",
            least="MIN_AGG(posting_date)",
            most="MAX_AGG(amount_local)",
            mean="ROUND(AVG(amount_local), 2)",
        ),
        aggregate(60, "currency", selector="currency = 'CHF'", none="SUM(amount_local)"),
        WRITE_ALL,
    ]
    ran = run(spark, site(tmp_path, operations).plan())
    rows = ran.last
    assert {(r["account_type"], r["total_local"], r["line_count"]) for r in summaries(rows, 20)} == {
        ("revenue", Decimal("2537000.00"), 3),
        ("asset", Decimal("2537000.00"), 3),
        ("expense", Decimal("11700.00"), 2),
        ("liability", Decimal("-11700.00"), 2),
    }
    # A second aggregate does not add up the rows of the first.
    assert {(r["account_type"], r["again"], r["rows"]) for r in summaries(rows, 30)} == {
        ("revenue", Decimal("2537000.00"), 3),
        ("asset", Decimal("2537000.00"), 3),
        ("expense", Decimal("11700.00"), 2),
        ("liability", Decimal("-11700.00"), 2),
    }
    assert {(r["account_type"], r["every"]) for r in summaries(rows, 40)} == {
        ("revenue", 5),
        ("asset", 5),
        ("expense", 4),
        ("liability", 4),
    }
    assert {(r["region"], r["mean"]) for r in summaries(rows, 50)} == {
        ("AMER", Decimal("7500.00")),
        ("EMEA", Decimal("11000.00")),
    }
    assert summaries(rows, 60) == []
    assert "none" in rows[0]
    counted = {n: (c.rows_in, c.rows_out, c.rows_changed) for n, c in ran.counts.items()}
    assert counted == {
        10: (10, 10, 10),
        20: (10, 14, 4),
        30: (14, 18, 4),
        40: (18, 22, 4),
        50: (22, 24, 2),
        60: (24, 24, 0),
        900: (24, 24, 24),
    }
    one = summaries(rows, 20)[0]
    empty = ("journal_id", "line_number", "posting_date", "account_code", "currency", "amount_local", "again")
    assert [one[name] for name in empty] == [None] * len(empty)
    assert (one["_row_kind"], one["_source_dataset_id"], one["_source_table"]) == (
        "summary",
        GL_ID,
        "transactions",
    )
    assert (one["_created_by_project_id"], one["_created_by_run_id"]) == (PROJECT_ID, "run-1")
    assert one["_created_at"] == one["_updated_at"] == RUN_AT.replace(tzinfo=None)
    assert (one["_deleted"], one["_labels"], one["_period"]) == (False, {}, "2026-01")
    assert [r["_row_kind"] for r in rows if r["journal_id"]] == ["detail"] * 10
    assert len({r["_row_id"] for r in rows}) == 24


def test_null_is_a_group_and_null_values_are_left_out(spark: SparkSession, tmp_path: Path) -> None:
    rows = [
        transaction(str(i), cost_center_code=center, amount_reporting=None if value is None else Decimal(value))
        for i, (center, value) in enumerate(
            [("US", "100"), (None, "50"), (None, "75"), ("US", None), ("US", "200"), ("DE", None)]
        )
    ]
    text = aggregate(
        10, "cost_center_code", total="SUM(amount_reporting)", some="COUNT(amount_reporting)", size="COUNT(*)"
    )
    ran = run(spark, site(tmp_path, [text, WRITE_ALL]).plan(), {"transactions": rows})
    assert {(r["cost_center_code"], r["total"], r["some"], r["size"]) for r in summaries(ran.last, 10)} == {
        ("US", Decimal(300), 2, 3),
        (None, Decimal(125), 2, 2),
        ("DE", None, 0, 1),
    }


def test_a_group_of_periods_keeps_its_period(spark: SparkSession, tmp_path: Path) -> None:
    amounts = [
        ("savings", "2024-01", 1000),
        ("checking", "2024-01", 500),
        ("savings", "2024-01", 1500),
        ("checking", "2024-02", 750),
        ("savings", "2024-02", 2000),
    ]
    rows = [
        transaction(str(i), account_code=kind, amount_local=Decimal(amount), _period=period)
        for i, (kind, period, amount) in enumerate(amounts)
    ]
    operations = [
        aggregate(10, "transactions._period, account_code", total="SUM(amount_local)", n="COUNT(*)"),
        aggregate(20, "account_code", overall="SUM(amount_local)"),
        WRITE_ALL,
    ]
    ran = run(spark, site(tmp_path, operations).plan("2024-Q1"), {"transactions": rows})
    assert {(r["_period"], r["account_code"], int(r["total"]), r["n"]) for r in summaries(ran.last, 10)} == {
        ("2024-01", "savings", 2500, 2),
        ("2024-01", "checking", 500, 1),
        ("2024-02", "savings", 2000, 1),
        ("2024-02", "checking", 750, 1),
    }
    assert {(r["_period"], int(r["overall"])) for r in summaries(ran.last, 20)} == {
        ("2024-Q1", 4500),
        ("2024-Q1", 1250),
    }
