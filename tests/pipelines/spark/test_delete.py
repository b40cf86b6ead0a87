"""delete and output on Spark: rows that are marked, rows that are written."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines import RUN_AT, env_of, join, run, site, transaction, update

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def delete(seq: int, selector: str = "") -> str:
    chosen = f', selector: "{selector}"' if selector else ""
    return f"- {{seq: {seq}, name: Drop {seq}, type: delete{chosen}}}"


def out(seq: int, more: str = "", selector: str = "") -> str:
    chosen = f'selector: "{selector}", ' if selector else ""
    return f"- {{seq: {seq}, name: Out {seq}, type: output, {chosen}arguments: {{destination: {{path: out/{seq}}}{more}}}}}"


ROWS = [
    transaction(k, amount_local=Decimal(v), line_number=n)
    for n, (k, v) in enumerate([("A", 0), ("B", 100), ("C", 200), ("D", 300)])
]


def test_deleted_rows_are_seen_by_nothing_but_an_output_that_asks(spark: SparkSession, tmp_path: Path) -> None:
    fx = join("fx", "exchange_rates", "currency = fx.from_currency AND fx.rate_type = 'closing'")
    operations = [
        delete(10, "{{ZERO}}"),
        update(20, joins=fx, seen="fx.rate"),
        update(25, touched="1"),
        delete(30, "amount_local = 12345"),
        "- {seq: 40, name: T, type: aggregate, arguments: {group_by: [currency], aggregations: [{column: n, expression: COUNT(*)}]}}",
        delete(50, "journal_id = 'B' OR amount_local = 0"),
        out(60, ", columns: [journal_id, _row_kind]"),
        out(
            70,
            ", columns: [journal_id, seen, touched, _deleted], include_deleted: true, order_by: [-journal_id]",
        ),
        out(80, ", columns: [journal_id]", "amount_local >= 0"),
        out(90, ", columns: [journal_id, n]", "accounts.type = 'revenue' OR _row_kind = 'summary'"),
        delete(100),
        out(110),
    ]
    plan = site(tmp_path, operations, selectors={"ZERO": "'amount_local = 0'"}).plan()
    ran = run(spark, plan, {"transactions": ROWS})
    assert sorted((r["journal_id"] or "", r["_row_kind"]) for r in ran.rows[60]) == [
        ("", "summary"),
        ("C", "detail"),
        ("D", "detail"),
    ]
    assert [(r["journal_id"], r["seen"], r["touched"], r["_deleted"]) for r in ran.rows[70]] == [
        ("D", Decimal(1), 1, False),
        ("C", Decimal(1), 1, False),
        ("B", Decimal(1), 1, True),
        ("A", None, None, True),
        (None, None, None, False),
    ]
    assert {r["journal_id"] for r in ran.rows[80]} == {"C", "D"}
    assert [(r["journal_id"], r["n"]) for r in ran.rows[90] if r["n"]] == [(None, 3)]
    assert ran.rows[110] == []
    counted = {n: (c.rows_in, c.rows_out, c.rows_changed) for n, c in ran.counts.items()}
    assert counted == {
        10: (4, 3, 1),
        20: (3, 3, 3),
        25: (3, 3, 3),
        30: (3, 3, 0),
        40: (3, 4, 1),
        50: (4, 3, 1),
        60: (3, 3, 3),
        70: (3, 3, 5),
        80: (3, 3, 2),
        90: (3, 3, 3),
        100: (3, 0, 3),
        110: (0, 0, 0),
    }
    assert [(j.matched, j.unmatched) for j in ran.counts[20].joins] == [(3, 0)]


def test_a_row_that_is_deleted_already_keeps_its_time(spark: SparkSession, tmp_path: Path) -> None:
    from weft.pipelines.spark.frame import WorkingFrame
    from weft.pipelines.spark.lower import lower_operation, opened

    plan = site(tmp_path, [delete(10), out(20)]).plan()
    env = env_of(spark, plan, {"transactions": ROWS[:2]})
    frame = opened(plan, env)
    early = dt.datetime(2020, 1, 1)  # noqa: DTZ001  # Spark hands back local times
    F = frame.F
    gone = F.col("journal_id") == "A"
    old = frame.df.withColumns({"_deleted": gone, "_updated_at": F.lit(early)})
    after = lower_operation(WorkingFrame(base=old, schema=frame.schema, deleted=True), plan.operations[0], env)
    assert {r["journal_id"]: (r["_deleted"], r["_updated_at"]) for r in after.clean().collect()} == {
        "A": (True, early),
        "B": (True, RUN_AT.replace(tzinfo=None)),
    }


def test_the_working_set_is_the_same_after_an_output(spark: SparkSession, tmp_path: Path) -> None:
    plan = site(tmp_path, [out(10, ", columns: [journal_id]", "line_number = 1"), out(20)]).plan()
    ran = run(spark, plan, {"transactions": ROWS})
    assert (len(ran.rows[10]), len(ran.rows[20])) == (1, 4)
    assert list(ran.rows[10][0]) == ["journal_id"]
