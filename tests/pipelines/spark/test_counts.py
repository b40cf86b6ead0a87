"""Rows of operations are counted while outputs and checkpoints are written, by no job of their own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pipelines import WRITE_ALL, env_of, join, run, sample, site, update
from weft.joins.facts import JoinCounts
from weft.pipelines.spark.counts import OperationCounts
from weft.pipelines.spark.frame import started
from weft.pipelines.spark.lower import lower_checkpoint, lower_operation, lower_output, opened

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FX = join("fx", "exchange_rates", "currency = fx.from_currency AND fx.rate_type = 'closing'")
OPERATIONS = [
    update(10, joins=FX, selector="currency <> 'USD'", amount_reporting="amount_local * fx.rate"),
    "- {seq: 20, name: D, type: delete, selector: 'line_number = 2'}",
    "- {seq: 30, name: T, type: aggregate, arguments: {group_by: [currency], aggregations: [{column: n, expression: COUNT(*)}]}}",
    update(40, selector="fx.rate > 1 OR _row_kind = 'summary'", joins=FX, y="fx.rate"),
    WRITE_ALL,
]
WANTED = {
    10: OperationCounts(
        seq=10,
        rows_in=10,
        rows_out=10,
        rows_changed=6,
        joins=(JoinCounts(alias="fx", matched=6, unmatched=0, multiple=0),),
    ),
    20: OperationCounts(seq=20, rows_in=10, rows_out=5, rows_changed=5),
    30: OperationCounts(seq=30, rows_in=5, rows_out=9, rows_changed=4),
    # Three of the totals, and EUR and GBP, have a rate above 1.
    40: OperationCounts(
        seq=40,
        rows_in=9,
        rows_out=9,
        rows_changed=6,
        joins=(JoinCounts(alias="fx", matched=6, unmatched=0, multiple=0),),
    ),
    900: OperationCounts(seq=900, rows_in=9, rows_out=9, rows_changed=9),
}


def test_every_operation_is_counted_on_both_kinds_of_session(any_spark: SparkSession, tmp_path: Path) -> None:
    ran = run(any_spark, site(tmp_path, OPERATIONS).plan())
    assert ran.counts == WANTED


def test_a_checkpoint_counts_what_came_before_it(spark: SparkSession, tmp_path: Path) -> None:
    plan = site(tmp_path, OPERATIONS).plan()
    env = env_of(spark, plan, sample())
    frame = opened(plan, env)
    for op in plan.operations[:2]:
        frame = lower_operation(frame, op, env)
    folder = str(tmp_path / "step")
    lower_checkpoint(frame, env).write.parquet(folder)
    assert env.counts is not None
    assert sorted(env.counts.result()) == [10, 20]
    frame = started(spark.read.parquet(folder), plan.operations[1].after, deleted=True)
    for op in plan.operations[2:4]:
        frame = lower_operation(frame, op, env)
    lower_output(frame, plan.operations[4], env).collect()  # type: ignore[arg-type]  # the last is the output
    assert env.counts.result() == WANTED


def test_an_empty_working_set_is_counted_too(spark: SparkSession, tmp_path: Path) -> None:
    ran = run(
        spark,
        site(tmp_path, [update(selector="currency = 'X'", x="1"), WRITE_ALL]).plan(),
        {"transactions": []},
    )
    assert ran.last == []
    assert [(c.rows_in, c.rows_out, c.rows_changed) for c in ran.counts.values()] == [(0, 0, 0)] * 2


def test_counting_starts_no_job(spark: SparkSession, tmp_path: Path) -> None:
    def jobs(*, counted: bool) -> int:
        plan = site(tmp_path, [update(selector="currency = 'EUR'", x="1"), WRITE_ALL]).plan()
        group = f"counted {counted}"
        spark.sparkContext.setJobGroup(group, group)
        run(spark, plan, counted=counted)
        return len(spark.sparkContext.statusTracker().getJobIdsForGroup(group))

    assert jobs(counted=True) == jobs(counted=False)
