"""What a project costs over the same work written by hand in PySpark, in one run.

Two figures: the time of the FX project (a join, an update, an aggregate, an output) over 10,000,000 rows,
counts included, as a ratio of the same rows written by hand; and the time to plan and lower a project of a
thousand operations.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from machine import machine
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from weft.core.calendar import GREGORIAN
from weft.pipelines.model.operation import Output, Update
from weft.pipelines.model.read_workspace import load_workspace
from weft.pipelines.model.values import LocatedText
from weft.pipelines.plan.catalog import Catalog
from weft.pipelines.plan.operations.resolved import ResolvedOutput
from weft.pipelines.plan.project import ProjectPlan, resolve_project
from weft.pipelines.plan.stages import list_stages
from weft.pipelines.spark.counts import Counts, OperationCounts
from weft.pipelines.spark.frame import Lowering, RunMoment, started
from weft.pipelines.spark.lower import lower_checkpoint, lower_operation, lower_output, opened
from weft.pipelines.spark.read import read_table

RESULTS = Path(__file__).parent / "results"
MOST_RATIO = 1.15
MOST_COMPILE_SECONDS = 10.0
PERIOD = GREGORIAN.parse("2026-01")
NOW = dt.datetime(2026, 2, 1, tzinfo=dt.UTC)
COLUMNS = [
    "journal_id",
    "line_number",
    "currency",
    "amount_local",
    "amount_reporting",
    "total",
    "_row_kind",
    "_period",
]

FILES = {
    "weft.yml": "weft: 1\ndefault_resolver: lake\n",
    "datasources/lake.yml": "datasource: {id: lake, name: lake, type: parquet, options: {path_prefix: data}}\n",
    "resolvers/lake.yml": (
        "resolver: {id: lake, name: lake, version: 1, status: active, rules: "
        "[{name: all, strategy: {type: path, datasource_id: lake, path: '{{table_name}}'}}]}\n"
    ),
    "datasets/gl.yml": """\
dataset:
  id: gl
  name: gl
  version: 1
  status: active
  natural_key_columns: [journal_id, line_number]
  main_table:
    name: transactions
    columns:
      - {name: journal_id, type: integer}
      - {name: line_number, type: integer}
      - {name: currency, type: string}
      - {name: description, type: string}
      - {name: amount_local, type: "decimal(18,2)"}
      - {name: amount_reporting, type: "decimal(18,2)"}
""",
    "datasets/rates.yml": """\
dataset:
  id: rates
  name: rates
  version: 1
  status: active
  main_table:
    name: rates
    temporal_mode: bitemporal
    columns: [{name: from_currency, type: string}, {name: to_currency, type: string}, {name: rate, type: "decimal(18,6)"}]
""",
    "projects/fx.yml": """\
project:
  name: fx
  version: 1
  status: active
  input_dataset_id: gl
  operations:
    - seq: 10
      name: Convert
      type: update
      selector: "currency <> 'USD'"
      arguments:
        joins: [{alias: fx, dataset_id: rates, on: "currency = fx.from_currency AND fx.to_currency = 'USD'"}]
        assignments: [{column: amount_reporting, expression: amount_local * fx.rate}]
    - seq: 20
      name: Totals
      type: aggregate
      arguments:
        group_by: [currency]
        aggregations: [{column: total, expression: SUM(amount_reporting)}]
    - seq: 30
      name: Write
      type: output
      arguments:
        destination: {path: out}
        columns: [COLUMNS]
""".replace("COLUMNS", ", ".join(COLUMNS)),
}  # fmt: skip


def workspace(spark: SparkSession, rows: int, folder: Path) -> Path:
    """Write the workspace and its data once."""
    root = folder / f"fx_{rows}"
    for path, text in FILES.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    if not (root / "data").exists():
        currencies = F.array(*(F.lit(c) for c in ("EUR", "GBP", "JPY", "USD", "CHF", "SEK")))
        spark.range(rows).select(
            (F.col("id") / 4).cast("long").alias("journal_id"),
            (F.col("id") % 4).alias("line_number"),
            F.element_at(currencies, (F.col("id") % 6 + 1).cast("int")).alias("currency"),
            F.concat(F.lit("line "), F.col("id")).alias("description"),
            (F.rand(1) * 10000).cast("decimal(18,2)").alias("amount_local"),
            F.lit(None).cast("decimal(18,2)").alias("amount_reporting"),
            F.lit("2026-01").alias("_period"),
        ).write.parquet(str(root / "data" / "transactions"))
        day = dt.date(2026, 1, 1)
        spark.createDataFrame(
            [
                (c, "USD", str(r), day, None)
                for c, r in (("EUR", 1.092), ("GBP", 1.271), ("JPY", 0.00672), ("CHF", 1.1))
            ],
            "from_currency string, to_currency string, rate string, _period_from date, _period_to date",
        ).withColumn("rate", F.col("rate").cast("decimal(18,6)")).write.parquet(str(root / "data" / "rates"))
    return root


def by_hand(spark: SparkSession, root: Path, counted: Observation | None = None) -> DataFrame:
    """Return the rows as one writes them without Weft.

    With `counted` they are counted as a run counts them, and a rate that is there twice is refused.
    """
    day = F.lit("2026-01-01").cast("date")
    gl = spark.read.parquet(str(root / "data" / "transactions")).filter(F.col("_period") == "2026-01")
    rates = (
        spark.read.parquet(str(root / "data" / "rates"))
        .filter((F.col("_period_from") <= day) & (F.col("_period_to").isNull() | (F.col("_period_to") > day)))
        .filter(F.col("to_currency") == "USD")
        .select("from_currency", "rate", F.lit(True).alias("found"))
    )
    if counted is not None and rates.groupBy("from_currency").count().filter("count > 1").head(1):
        sys.exit("a rate is there twice")
    converted = (F.col("amount_local") * F.col("rate")).cast("decimal(18,2)")
    chosen = F.col("currency") != "USD"
    joined = gl.join(F.broadcast(rates), F.col("currency") == F.col("from_currency"), "left").select(
        "journal_id",
        "line_number",
        "currency",
        "amount_local",
        F.when(chosen, converted).otherwise(F.col("amount_reporting")).alias("amount_reporting"),
        F.lit(None).cast("decimal(28,2)").alias("total"),
        F.lit("detail").alias("_row_kind"),
        "_period",
        *((chosen.alias("changed"), (chosen & F.col("found")).alias("matched")) if counted is not None else ()),
    )
    totals = joined.groupBy("currency").agg(F.sum("amount_reporting").alias("total"))
    summary = totals.select(
        F.lit(None).cast("long").alias("journal_id"),
        F.lit(None).cast("long").alias("line_number"),
        "currency",
        F.lit(None).cast("decimal(18,2)").alias("amount_local"),
        F.lit(None).cast("decimal(18,2)").alias("amount_reporting"),
        "total",
        F.lit("summary").alias("_row_kind"),
        F.lit("2026-01").alias("_period"),
    )
    if counted is None:
        return joined.union(summary)
    both = joined.unionByName(summary, allowMissingColumns=True).observe(
        counted,
        F.count(F.lit(1)).alias("rows"),
        F.count_if("matched").alias("matched"),
        F.count_if("changed").alias("changed"),
        F.count_if(F.col("_row_kind") == "summary").alias("added"),
    )
    return both.drop("changed", "matched")


def lowering(spark: SparkSession, plan: ProjectPlan, catalog: Catalog, root: Path) -> Lowering:
    """Return what a run of the plan needs."""
    moment = RunMoment(run_id="run", project_id=plan.project.id, period=PERIOD, at=NOW, today=NOW.date())
    return Lowering(
        session=spark,
        read=lambda read: read_table(spark, read, catalog, root, run_at=NOW),
        run=moment,
        counts=Counts(),
        size_of=lambda read: 1000 if read.pin.role == "join" else None,
    )


def by_weft(spark: SparkSession, root: Path) -> tuple[DataFrame, Lowering]:
    """Return the rows of the project, planned from its files."""
    loaded = load_workspace(root)
    catalog = Catalog.of(loaded.workspace)
    plan = resolve_project(loaded.workspace.projects[0], catalog, period=PERIOD, calendar=GREGORIAN)
    env = lowering(spark, plan, catalog, root)
    frame = opened(plan, env)
    for op in plan.operations:
        frame = lower_operation(frame, op, env)
    output = plan.operations[-1]
    assert isinstance(output, ResolvedOutput)  # noqa: S101  # the project ends with it
    return lower_output(frame, output, env), env


def compare(spark: SparkSession, root: Path, runs: int, out: Path) -> dict[str, Any]:
    """Time both forms in turn, so that a busy moment of the machine meets both."""
    counted: list[OperationCounts] = []

    def weft() -> None:
        rows, env = by_weft(spark, root)
        rows.write.mode("overwrite").parquet(str(out / "weft"))
        assert env.counts is not None  # noqa: S101  # given above
        counted[:] = env.counts.result().values()

    def bare() -> None:
        by_hand(spark, root).write.mode("overwrite").parquet(str(out / "bare"))

    def hand() -> None:
        seen = Observation()
        by_hand(spark, root, seen).write.mode("overwrite").parquet(str(out / "hand"))
        reported = seen.get
        if [reported["rows"], reported["changed"]] != [counted[-1].rows_out, counted[0].rows_changed]:
            sys.exit("the two forms count different rows")

    forms: dict[str, Callable[[], None]] = {"bare": bare, "weft": weft, "hand": hand}
    taken: dict[str, list[float]] = {name: [] for name in forms}
    for turn in range(runs + 1):
        for name in forms if turn % 2 == 0 else ("weft", "hand", "bare"):
            start = time.perf_counter()
            forms[name]()
            spent = time.perf_counter() - start
            if turn:  # the first turn warms up
                taken[name].append(spent)
                print(f"  turn {turn}: {name} {spent:.2f} s", file=sys.stderr)
    mine, theirs = (spark.read.parquet(str(out / name)) for name in ("weft", "hand"))
    if mine.exceptAll(theirs).limit(1).count() or mine.count() != theirs.count():
        sys.exit("the two forms write different rows")
    ratios = [w / h for w, h in zip(taken["weft"], taken["hand"], strict=True)]
    over_bare = [w / h for w, h in zip(taken["weft"], taken["bare"], strict=True)]
    medians = {name: statistics.median(values) for name, values in taken.items()}
    reported = [[c.seq, c.rows_in, c.rows_out, c.rows_changed] for c in counted]
    return {
        "seconds": taken,
        "median": medians,
        "ratios": ratios,
        "ratio": statistics.median(ratios),
        "ratio_over_bare": statistics.median(over_bare),
        "counts": reported,
    }


def compile_seconds(spark: SparkSession, root: Path, operations: int = 1000) -> float:
    """Return how long it takes to plan a long project and to lower it, stage by stage."""
    loaded = load_workspace(root)
    catalog = Catalog.of(loaded.workspace)
    first, _, output = loaded.workspace.projects[0].operations
    assert isinstance(first.arguments, Update)  # noqa: S101  # the project says so
    assignment = replace(first.arguments.assignments[0], expression=LocatedText("amount_local * 1.05 + line_number"))
    many = []
    for n in range(operations):
        named = replace(assignment, column=LocatedText(f"x{n % 40}"))
        many.append(replace(first, seq=n + 1, arguments=replace(first.arguments, joins=(), assignments=(named,))))
    assert isinstance(output.arguments, Output)  # noqa: S101  # the project ends with it
    plain = replace(output.arguments, columns=None)
    project = replace(
        loaded.workspace.projects[0], operations=(*many, replace(output, seq=operations + 1, arguments=plain))
    )
    start = time.perf_counter()
    plan = resolve_project(project, catalog, period=PERIOD, calendar=GREGORIAN)
    env = lowering(spark, plan, catalog, root)
    frame = opened(plan, env)
    by_seq = {op.seq: op for op in plan.operations}
    for stage in list_stages(plan):
        if stage.kind == "update" and stage.seq is not None:
            frame = lower_operation(frame, by_seq[stage.seq], env)
        elif stage.kind == "checkpoint" and stage.seq is not None:
            empty = spark.createDataFrame([], lower_checkpoint(frame, env).schema)
            frame = started(empty, by_seq[stage.seq].after)
    return time.perf_counter() - start


def main() -> None:
    """Run the comparison, print it and write it under bench/results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--data", type=Path, default=Path(".bench"))
    args = parser.parse_args()
    where = machine()
    spark = (
        SparkSession.builder.master("local[*]")
        .config("spark.driver.memory", "6g")
        .config("spark.sql.shuffle.partitions", "8")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.caseSensitive", "true")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.python.sql.dataFrameDebugging.enabled", "false")  # as in a session that Weft starts
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    root = workspace(spark, args.rows, args.data)
    out = Path(tempfile.mkdtemp(dir=args.data))
    try:
        result = compare(spark, root, args.runs, out)
        compiled = min(compile_seconds(spark, root) for _ in range(2))
    finally:
        shutil.rmtree(out)
        spark.stop()
    report(where, args.rows, args.runs, result, compiled)
    if result["ratio"] > MOST_RATIO or compiled > MOST_COMPILE_SECONDS:
        sys.exit(f"over the limits: {MOST_RATIO} x by hand, {MOST_COMPILE_SECONDS} s for a thousand operations")


def report(where: dict[str, Any], rows: int, runs: int, result: dict[str, Any], compiled: float) -> None:
    """Print the figures and keep them as JSON and Markdown."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    data = {
        "machine": where,
        "rows": rows,
        "runs": runs,
        "fx": result,
        "thousand_operations_seconds": compiled,
    }
    (RESULTS / "pipeline.json").write_text(json.dumps(data, indent=2) + "\n")
    lines = [
        "# Cost of a project",
        "",
        (
            f"{where['cpu']}, {where['cores']} cores, {where['memory_gib']} GiB, PySpark {where['pyspark']}, "
            f"Python {where['python']}, load before {where['load_before']}."
        ),
        "",
        (
            f"FX project over {rows:,} rows: a join and an update of the rows that the selector matches, totals by "
            f"currency, Parquet in and out, rows of every operation counted. Median of {runs} turns after warm-up; "
            "ratio per turn. All forms write the same rows."
        ),
        "",
        "| form | seconds | ratio |",
        "|---|---|---|",
        f"| PySpark by hand, the same counted and checked | {result['median']['hand']:.2f} | 1.00 |",
        f"| the project | {result['median']['weft']:.2f} | {result['ratio']:.2f} |",
        "",
        (
            f"Nothing counted or checked, by hand: {result['median']['bare']:.2f} s; the project takes "
            f"{result['ratio_over_bare']:.2f} times as long as that."
        ),
        "",
        f"A project of 1,000 operations is planned and lowered in {compiled:.1f} s.",
        "",
    ]
    (RESULTS / "pipeline.md").write_text("\n".join(lines))
    print("\n".join(lines))


if __name__ == "__main__":
    main()
