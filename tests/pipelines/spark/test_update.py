"""update on Spark: the selector once, assignments in order, timestamps, decimals, a thousand operations."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines import RUN_AT, WRITE_ALL, env_of, join, run, sample, site, transaction, update
from weft.pipelines.plan.stages import list_stages

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_updates_do_what_they_say(spark: SparkSession, tmp_path: Path) -> None:
    """One project, many rules: each operation writes columns of its own, and one output shows them all."""
    operations = [
        update(10, selector="description = 'open'", description="'done'", n="line_number + 1", m="n * 2"),
        update(20, selector="{{BIG}} AND currency = 'EUR'", big="TRUE"),
        update(30, a="1", b="a + 1", c="a + b"),
        update(
            40,
            divided="amount_local / 0",
            rest="line_number % 0",
            rounded="ROUND(amount_local * 1.005, 2)",
            day="DATEADD(posting_date, 2)",
            old="posting_date >= TODAY() - 30",
            words="CONCAT(UPPER(currency), '-', RIGHT(LOWER(TRIM(' Alpha ')), 2))",
            nothing="CONCAT(currency, CAST(NULL AS string))",
        ),
        update(50, _labels="LABEL_SET(_labels, 'region', 'EMEA')"),
        update(60, selector="NOT line_number = 1", label="LABEL_GET(_labels, 'region')"),
        update(70, selector="nothing IS NOT NULL", never="1"),
        update(80, swap_a="line_number", swap_b="line_number * 10"),
        update(90, swap_a="swap_b", amount_local="amount_local * 1.05"),
        WRITE_ALL,
    ]
    data = {
        "transactions": [
            transaction("A", description="open", currency="EUR", amount_local=Decimal("100.10")),
            transaction("B", description="shut", currency="EUR", amount_local=Decimal("5.00"), line_number=2),
            transaction("C", description=None, currency="USD", amount_local=Decimal("500.00"), line_number=7),
        ]
    }
    plan = site(tmp_path, operations, selectors={"BIG": "'amount_local > 1000 OR line_number = 1'"}).plan()
    ran = run(spark, plan, data)

    def of(name: str) -> list[object]:
        found = ran.column(name, "journal_id")
        return [found[k] for k in "ABC"]

    # The selector of 10 is decided once: its second assignment is not lost when the first one changes the text.
    assert of("description") == ["done", "shut", None]
    assert of("n") == [2, None, None]
    assert of("m") == [4, None, None]
    # A OR B AND C: the named selector keeps its grouping.
    assert of("big") == [True, None, None]
    assert (of("a"), of("b"), of("c")) == ([1] * 3, [2] * 3, [3] * 3)
    assert of("divided") == of("rest") == of("nothing") == [None] * 3
    assert of("rounded") == [Decimal("100.60"), Decimal("5.03"), Decimal("502.50")]
    assert of("day") == [dt.date(2026, 1, 7)] * 3
    assert of("old") == [False] * 3
    assert of("words") == ["EUR-ha", "EUR-ha", "USD-ha"]
    assert of("_labels") == [{"region": "EMEA"}] * 3
    assert of("label") == [None, "EMEA", "EMEA"]
    assert of("never") == [None] * 3
    assert of("swap_a") == [10, 20, 70]
    assert of("amount_local") == [Decimal("105.11"), Decimal("5.25"), Decimal("525.00")]
    changed = {seq: counts.rows_changed for seq, counts in ran.counts.items()}
    assert changed == {10: 1, 20: 1, 30: 3, 40: 3, 50: 3, 60: 2, 70: 0, 80: 3, 90: 3, 900: 3}


def test_only_rows_that_match_are_touched(spark: SparkSession, tmp_path: Path) -> None:
    early = dt.datetime(2020, 1, 1)  # noqa: DTZ001  # Spark hands back local times
    rows = [transaction("A"), transaction("B", line_number=2)]
    plan = site(tmp_path, [update(selector="line_number = 1", currency="currency"), WRITE_ALL]).plan()
    from weft.pipelines.spark.frame import WorkingFrame
    from weft.pipelines.spark.lower import lower_operation, opened

    env = env_of(spark, plan, {"transactions": rows})
    frame = opened(plan, env)
    old = frame.df.withColumn("_updated_at", frame.F.lit(early))
    frame = lower_operation(WorkingFrame(base=old, schema=frame.schema), plan.operations[0], env)
    stamps = {row["journal_id"]: row["_updated_at"] for row in frame.clean().collect()}
    # Matched counts as touched, also when the value stays.
    assert stamps == {"A": RUN_AT.replace(tzinfo=None), "B": early}
    assert frame.clean().columns == list(plan.final.schema.names)


def test_an_overflow_fails_the_run(spark: SparkSession, tmp_path: Path) -> None:
    import pytest

    plan = site(tmp_path, [update(amount_local="amount_local * 99999999999999999"), WRITE_ALL]).plan()
    with pytest.raises(Exception, match="NUMERIC_VALUE_OUT_OF_RANGE"):
        run(spark, plan)


def test_the_same_run_writes_the_same_rows(spark: SparkSession, tmp_path: Path) -> None:
    fx = join("fx", "exchange_rates", "currency = fx.from_currency AND fx.rate_type = 'closing'")
    total = (
        "- {seq: 20, name: T, type: aggregate, arguments: {group_by: [currency], "
        "aggregations: [{column: total, expression: SUM(amount_reporting)}]}}"
    )
    plan = site(
        tmp_path,
        [update(joins=fx, amount_reporting="amount_local * fx.rate", day="TODAY()"), total, WRITE_ALL],
    ).plan()
    first, second = (sorted(map(str, run(spark, plan).last)) for _ in range(2))
    assert first == second


def test_a_thousand_operations_lower_with_four_checkpoints(spark: SparkSession, tmp_path: Path) -> None:
    """As a run does it: the working set is written down after every 200 operations and read back."""
    from dataclasses import replace

    from weft.pipelines.model.operation import Update
    from weft.pipelines.model.values import LocatedText
    from weft.pipelines.spark.frame import started
    from weft.pipelines.spark.lower import lower_checkpoint, lower_operation, opened

    found = site(
        tmp_path,
        [
            update(selector="currency = 'EUR' AND amount_local > 100", x="amount_local * 1.05 + line_number"),
            WRITE_ALL,
        ],
    )
    one, output = found.project.operations
    assert isinstance(one.arguments, Update)
    operations = []
    for n in range(1000):
        assignment = replace(one.arguments.assignments[0], column=LocatedText(f"x{n % 40}"))
        arguments = replace(one.arguments, assignments=(assignment,))
        operations.append(replace(one, seq=n + 1, arguments=arguments))
    project = replace(found.project, operations=(*operations, replace(output, seq=2000)))
    plan = replace(found, project=project).plan()
    env = env_of(spark, plan, sample())
    frame = opened(plan, env)
    by_seq = {op.seq: op for op in plan.operations}
    marks = 0
    for stage in list_stages(plan):
        if stage.kind == "update" and stage.seq is not None:
            frame = lower_operation(frame, by_seq[stage.seq], env)
        elif stage.kind == "checkpoint" and stage.seq is not None:
            marks += 1
            written = lower_checkpoint(frame, env)
            frame = started(spark.createDataFrame([], written.schema), by_seq[stage.seq].after)
    assert marks == 4
