"""What the strict join API costs over the same join written by hand, in one run.

Two figures: the time of ``natural_inner`` of two 5,000,000-row frames as a ratio of the
hand-written ``df.join`` and ``select``, and the time to build and bind a spec.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from machine import machine
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import weft
from weft.core.types import Schema
from weft.joins.resolve.join import resolve_join

RESULTS = Path(__file__).parent / "results"
MOST_RATIO = 1.05
MOST_BIND_MS = 2.0


def frames(spark: SparkSession, rows: int, folder: Path) -> tuple[DataFrame, DataFrame]:
    """Write both sides once as Parquet and read them back; keys in random order, one match each."""
    left, right = folder / f"orders_{rows}", folder / f"customers_{rows}"
    if not left.exists():
        ids = spark.range(rows)
        ids.select(
            F.xxhash64("id").alias("key"), F.col("id").alias("order_id"), (F.rand(1) * 1000).alias("amount")
        ).write.parquet(str(left))
        ids.select(
            F.xxhash64(F.lit(rows - 1) - F.col("id")).alias("key"),
            F.concat(F.lit("customer-"), F.col("id")).alias("name"),
            (F.col("id") % 7).alias("tier"),
        ).write.parquet(str(right))
    return spark.read.parquet(str(left)), spark.read.parquet(str(right))


def by_hand(left: DataFrame, right: DataFrame) -> DataFrame:
    """Return the join as one writes it without Weft."""
    return left.join(right, left["key"] == right["key"], "inner").select(
        left["key"], left["order_id"], left["amount"], right["name"], right["tier"]
    )


def by_weft(left: DataFrame, right: DataFrame) -> DataFrame:
    """Return the same join through the strict API."""
    return weft.relation(left).natural_inner(weft.relation(right)).df


def seconds(work: Callable[[], object]) -> float:
    """Return how long `work` takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def compare(left: DataFrame, right: DataFrame, runs: int) -> dict[str, Any]:
    """Time both forms in turn, so that a busy moment of the machine meets both."""
    forms = {"hand": by_hand, "weft": by_weft}
    taken: dict[str, list[float]] = {name: [] for name in forms}
    for turn in range(runs + 1):
        for name in (("hand", "weft"), ("weft", "hand"))[turn % 2]:
            spent = seconds(lambda: forms[name](left, right).write.format("noop").mode("overwrite").save())  # noqa: B023
            if turn:  # the first turn warms up
                taken[name].append(spent)
                print(f"  turn {turn}: {name} {spent:.2f} s", file=sys.stderr)
    medians = {name: statistics.median(values) for name, values in taken.items()}
    # Both forms of a turn meet the same machine, so a turn's ratio says more than two medians.
    ratios = [w / h for w, h in zip(taken["weft"], taken["hand"], strict=True)]
    return {"seconds": taken, "median": medians, "ratios": ratios, "ratio": statistics.median(ratios)}


def bind_milliseconds(columns: int, runs: int = 300) -> float:
    """Return the median time to build a spec and bind it to two schemas of `columns` columns."""
    left = Schema.of(**{"id": "long", "order_date": "date", **{f"l{i}": "string" for i in range(columns)}})
    right = Schema.of(**{"ID": "long", "since": "date", **{f"r{i}": "string" for i in range(columns)}})

    def once() -> None:
        spec = weft.JoinSpec(
            equal_keys=[("id", "id")],
            predicates=[
                weft.ColumnPredicate("order_date", ">=", "since"),
                weft.ExpressionPredicate("right.r0 IN (?, ?) OR left.l0 LIKE 'a%'", args=["x", "y"]),
            ],
        )
        resolve_join(spec, left, right, how="left")

    once()
    return statistics.median(seconds(once) for _ in range(runs)) * 1000


def main() -> None:
    """Run the comparison, print it and write it under bench/results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--data", type=Path, default=Path(".bench"))
    args = parser.parse_args()
    where = machine()
    spark = (
        SparkSession.builder.master("local[*]")
        .config("spark.driver.memory", "6g")
        .config("spark.sql.shuffle.partitions", "8")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    left, right = frames(spark, args.rows, args.data)
    result = compare(left, right, args.runs)
    bind = {str(n): round(bind_milliseconds(n), 3) for n in (5, 50, 200)}
    spark.stop()
    report(where, args.rows, args.runs, result, bind)
    if result["ratio"] > MOST_RATIO or max(bind.values()) > MOST_BIND_MS:
        sys.exit(f"over the limits: {MOST_RATIO} x the join by hand, {MOST_BIND_MS} ms to bind a spec")


def report(where: dict[str, Any], rows: int, runs: int, result: dict[str, Any], bind: dict[str, float]) -> None:
    """Print the figures and keep them as JSON and Markdown."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    data = {"machine": where, "rows": rows, "runs": runs, "natural_inner": result, "bind_ms": bind}
    (RESULTS / "joins.json").write_text(json.dumps(data, indent=2) + "\n")
    lines = [
        "# Cost of the strict join API",
        "",
        (
            f"{where['cpu']}, {where['cores']} cores, {where['memory_gib']} GiB, PySpark {where['pyspark']}, "
            f"Python {where['python']}, load before {where['load_before']}."
        ),
        "",
        f"Inner join of {rows:,} x {rows:,} rows on one key, Parquet in, `noop` out, median of {runs} turns after warm-up; ratio per turn.",
        "",
        "| form | seconds | ratio |",
        "|---|---|---|",
        f"| `df.join` and `select` by hand | {result['median']['hand']:.2f} | 1.00 |",
        f"| `natural_inner` | {result['median']['weft']:.2f} | {result['ratio']:.2f} |",
        "",
        "| columns a side | build and bind a spec with a key and two predicates, ms |",
        "|---|---|",
        *(f"| {n} | {ms:.2f} |" for n, ms in bind.items()),
        "",
    ]
    (RESULTS / "joins.md").write_text("\n".join(lines))
    print("\n".join(lines))


if __name__ == "__main__":
    main()
