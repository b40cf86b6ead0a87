"""The same job as a stream and as a batch: every variant of the acceptance data gives the same rows."""

from __future__ import annotations

import csv
import datetime as dt
import shutil
from collections import Counter
from decimal import Decimal
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from weft.streams.plan.resolve import plan_job
from weft.streams.spark.batch_frame import batch_frame
from weft.streams.sql.lower import read_spec
from weft.testing.stream_engine import run_statement

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from weft.streams.plan.resolved import JobPlan

SAMPLE = Path(__file__).parents[2] / "data" / "streams" / "sample"
STARTED = dt.datetime(2026, 1, 15, tzinfo=dt.UTC)
STREAMS = """
CREATE STREAM orders (order_id STRING, customer_id INT, total_amount DECIMAL(10,2), event_time TIMESTAMP)
WITH ('path'='orders.csv', 'event.time.field'='event_time', 'event.time.format'='epoch_millis',
      'watermark.max_out_of_orderness'='1d');
CREATE STREAM shipments (shipment_id STRING, order_id STRING, carrier STRING, event_time TIMESTAMP)
WITH ('path'='shipments.csv', 'event.time.field'='event_time', 'event.time.format'='epoch_millis',
      'watermark.max_out_of_orderness'='1d');
CREATE STREAM twice (order_id STRING, customer_id INT, total_amount DECIMAL(10,2), event_time TIMESTAMP)
WITH ('path'='twice.csv', 'event.time.field'='event_time', 'event.time.format'='epoch_millis',
      'watermark.max_out_of_orderness'='1d', 'dedup.keys'='order_id');
CREATE TABLE carriers (name STRING, country STRING, most DECIMAL(10,2)) WITH ('path'='carriers.csv');
"""
SELECT = "SELECT o.order_id AS o, s.shipment_id AS s, {w} AS w FROM orders o {how} JOIN shipments s ON o.order_id = s.order_id {time}"
BY_TIME = {
    "interval of 10 minutes": ("WITHIN ('0s', '10m')", 8),
    "interval just below": ("WITHIN ('0s', '9m59s999ms')", 0),
    "interval of one point": ("AND s.event_time = o.event_time + INTERVAL '10' MINUTE", 8),
    "interval just above": ("AND s.event_time - o.event_time BETWEEN INTERVAL '600001' MILLISECOND AND INTERVAL '1' HOUR", 0),
    "interval from the other side": ("AND o.event_time BETWEEN s.event_time - INTERVAL '10' MINUTE AND s.event_time", 8),
    "tumbling 10": ("WINDOW TUMBLING('10m')", 0),
    "tumbling 15": ("WINDOW TUMBLING('15m')", 3),
    "tumbling 20": ("WINDOW TUMBLING('20m')", 4),
    "tumbling 30": ("WINDOW TUMBLING('30m')", 6),
    "tumbling 60": ("WINDOW TUMBLING('60m')", 8),
    "sliding 20/10": ("WINDOW SLIDING('20m', '10m')", 8),
    "sliding 20/10 a row for each": ("WINDOW SLIDING('20m', '10m') WITH ('join.rows'='window')", 8),
    "sliding 30/10 a row for each": ("WINDOW SLIDING('30m', '10m') WITH ('join.rows'='window')", 16),
    "sliding 60/10 a row for each": ("WINDOW SLIDING('60m', '10m') WITH ('join.rows'='window')", 40),
    "sliding 60/30 a row for each": ("WINDOW SLIDING('60m', '30m') WITH ('join.rows'='window')", 14),
    "session just below": ("WINDOW SESSION('9m59s999ms')", 0),
    "session of 10 minutes": ("WINDOW SESSION('10m')", 8),
    "session of 30 minutes": ("WINDOW SESSION('30m')", 8),
}  # fmt: skip
OTHERS = {
    "self": "SELECT a.order_id AS o, b.order_id AS s, NULL AS w FROM orders a JOIN orders b "
    "ON a.customer_id = b.customer_id WITHIN ('0s', '1h') WHERE a.order_id <> b.order_id",
    "dedup": "SELECT o.order_id AS o, s.shipment_id AS s, NULL AS w FROM twice o LEFT JOIN shipments s "
    "ON o.order_id = s.order_id WITHIN '10m'",
    "residual": "SELECT o.order_id AS o, s.shipment_id AS s, NULL AS w FROM orders o FULL JOIN shipments s "
    "ON o.order_id = s.order_id AND (o.total_amount > 200 OR s.carrier = 'USPS') WITHIN '10m'",
    "table": "SELECT o.order_id AS o, c.country AS s, NULL AS w FROM orders o JOIN shipments s "
    "ON o.order_id = s.order_id WITHIN '10m' LEFT JOIN carriers c ON c.name = s.carrier AND o.total_amount < c.most",
    "table kept": "SELECT s.shipment_id AS o, c.name AS s, NULL AS w FROM shipments s FULL JOIN carriers c ON s.carrier = c.name",
    "chain": "SELECT o.order_id AS o, t.shipment_id AS s, NULL AS w FROM orders o LEFT JOIN shipments s "
    "ON o.order_id = s.order_id WITHIN '10m' FULL JOIN shipments t ON t.carrier = s.carrier AND "
    "t.event_time BETWEEN s.event_time AND s.event_time + INTERVAL '20' MINUTE",
}


def _statements() -> dict[str, str]:
    found = {}
    for name, (time, _) in BY_TIME.items():
        windowed = "TUMBLING" in time or "SLIDING" in time
        for how in ("INNER", "FULL"):
            w = "window_start" if windowed else "NULL"
            found[f"{name} {how}"] = SELECT.format(w=f"CAST({w} AS STRING)", how=how, time=time)
    return {**found, **OTHERS}


STATEMENTS = _statements()


def _job(root: Path) -> JobPlan:
    given = [
        f"CREATE STREAM v{i} WITH ('path'='out/v{i}', 'format'='parquet') AS {text};"
        for i, text in enumerate(STATEMENTS.values())
    ]
    return plan_job(read_spec(STREAMS + "\n".join(given)), root)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the data of the sample, orders twice, and a table."""
    root = tmp_path_factory.mktemp("parity")
    for name in ("orders", "shipments"):
        shutil.copy(SAMPLE / f"{name}.csv", root / f"{name}.csv")
    lines = (root / "orders.csv").read_text(encoding="utf-8").splitlines()
    (root / "twice.csv").write_text("\n".join([*lines, *lines[1:]]) + "\n", encoding="utf-8")
    (root / "carriers.csv").write_text(
        "name,country,most\nFedEx,US,1000\nFedEx,CA,150\nDHL,DE,1000\nGLS,NL,1000\n,XX,1000\n",
        encoding="utf-8",
    )
    return root


def _streamed(plan: JobPlan, root: Path) -> dict[str, Counter[tuple[Any, ...]]]:
    """Return the rows of every statement as a stream in three batches, sealed."""
    rows = {s: _rows(root / f"{s}.csv") for s in ("orders", "shipments", "twice")}
    batches = [{s: r[i::3] for s, r in rows.items()} for i in range(3)]
    tables = {"carriers": _rows(root / "carriers.csv")}
    found = {}
    for name, statement in zip(STATEMENTS, plan.statements, strict=True):
        # All rows of a batch come before the watermark: the delay is longer than the data.
        result = run_statement(statement, batches, root=root / "streamed" / statement.name, tables=tables)
        assert not result.late
        found[name] = Counter((r["o"], r["s"], r["w"]) for _, r in result.rows)
    return found


def _rows(file: Path) -> list[dict[str, Any]]:
    with file.open(encoding="utf-8", newline="") as lines:
        return [{k: _typed(k, v) for k, v in row.items()} for row in csv.DictReader(lines)]


def _typed(name: str, text: str) -> Any:
    if name == "event_time":
        return dt.datetime.fromtimestamp(int(text) / 1000, dt.UTC)
    if name in ("total_amount", "most"):
        return Decimal(text)
    return int(text) if name == "customer_id" else text or None


def _in_batch(spark: SparkSession, plan: JobPlan, root: Path) -> dict[str, Counter[tuple[Any, ...]]]:
    """Return the rows of every statement as batch queries, all in one job."""
    from pyspark.sql import functions as F

    def frame(number: int) -> DataFrame:
        rows = batch_frame(spark, plan.statements[number], root, started=STARTED)
        return rows.select(F.lit(number).alias("number"), "o", "s", F.col("w").cast("string"))

    found: dict[str, Counter[tuple[Any, ...]]] = {name: Counter() for name in STATEMENTS}
    for row in reduce(lambda a, b: a.union(b), map(frame, range(len(STATEMENTS)))).collect():
        found[list(STATEMENTS)[row["number"]]][row["o"], row["s"], row["w"]] += 1
    return found


def test_every_variant_gives_the_same_rows_as_stream_and_as_batch(spark: SparkSession, workspace: Path) -> None:
    plan = _job(workspace)
    streamed, batch = _streamed(plan, workspace), _in_batch(spark, plan, workspace)
    for name in STATEMENTS:
        assert batch[name] == streamed[name], name
    for name, (_, pairs) in BY_TIME.items():
        assert batch[f"{name} INNER"].total() == pairs, name
        assert sum(n for row, n in batch[f"{name} FULL"].items() if None not in row[:2]) == pairs, name
    assert all(batch[name] for name in OTHERS)
    assert batch["dedup"].total() == 10
