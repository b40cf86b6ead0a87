"""weft.streams: a job from Python, its listener, its rows, its tables, and the same as a batch."""

from __future__ import annotations

import datetime as dt
import shutil
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import weft
import weft.streams
from weft import ArgumentError, ConnectorError, StreamError, StreamPlanError, StreamSqlError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from weft.streams import BatchReport, QueryReport

START = dt.datetime(2026, 1, 15, 10, tzinfo=dt.UTC)
JOB = """
SET 'groups' = '1';
CREATE STREAM orders (id STRING, product STRING, quantity INT, placed TIMESTAMP)
WITH ('connector'='memory', 'event.time.field'='placed', 'watermark.max_out_of_orderness'='30s');
CREATE STREAM payments (order_id STRING, paid TIMESTAMP)
WITH ('connector'='memory', 'event.time.field'='paid', 'watermark.max_out_of_orderness'='30s');
CREATE TABLE products (code STRING, price DECIMAL(10,2), most INT) WITH ('connector'='memory');
CREATE STREAM priced WITH ('connector'='memory') AS
SELECT o.id, o.quantity * p.price AS total, pay.paid
FROM orders o LEFT JOIN payments pay ON o.id = pay.order_id WITHIN ('0s', '1m')
LEFT JOIN products p ON o.product = p.code AND o.quantity <= p.most;
"""

POLICIES = """
CREATE STREAM l (k INT, t TIMESTAMP) WITH ('connector'='memory', 'event.time.field'='t', 'malformed'='M1');
CREATE STREAM r (k INT, t TIMESTAMP) WITH ('connector'='memory', 'event.time.field'='t');
CREATE STREAM j WITH ('connector'='memory') AS SELECT l.k FROM l LEFT JOIN r ON l.k = r.k WITHIN '1m'
WITH ('join.missing_event_time'='M2');
"""


def at(seconds: int) -> dt.datetime:
    return START + dt.timedelta(seconds=seconds)


def order(id: str, product: str | None, quantity: int, seconds: int) -> dict[str, Any]:
    return {"id": id, "product": product, "quantity": quantity, "placed": at(seconds)}


MEMORY: dict[str, Any] = {
    "orders": [[order("a", "P1", 2, 0), order("b", None, 1, 5)], [order("c", "P2", 9, 200)]],
    "payments": [[{"order_id": "a", "paid": at(60)}], [{"order_id": "c", "paid": at(261)}]],
    "products": [
        {"code": "P1", "price": "1.50", "most": 10},
        {"code": "P1", "price": "1.25", "most": 2},
        {"code": "P2", "price": "3.00", "most": 8},
        {"code": None, "price": "9.00", "most": 9},
    ],
}
WANTED = Counter(
    [
        ("a", Decimal("3.00"), at(60)),
        ("a", Decimal("2.50"), at(60)),
        ("b", None, None),
        ("c", None, None),
    ]
)


class Heard(weft.streams.Listener):
    """Keeps everything it hears."""

    def __init__(self) -> None:
        self.batches: list[BatchReport] = []
        self.sealed: list[QueryReport] = []

    def on_batch(self, report: BatchReport) -> None:
        self.batches.append(report)

    def on_sealed(self, report: QueryReport) -> None:
        self.sealed.append(report)


def counted(rows: list[Any]) -> Counter[tuple[Any, ...]]:
    def utc(value: Any) -> Any:
        return value.replace(tzinfo=dt.UTC) if isinstance(value, dt.datetime) else value

    return Counter(tuple(map(utc, row)) for row in rows)


def test_a_job_runs_from_python_with_streams_and_a_table_of_the_program(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(1).collect()  # a session that has run something has all its settings
    settings = spark.conf.getAll
    heard = Heard()
    report = weft.streams.run(spark, JOB, root=tmp_path, final=True, memory=MEMORY, listener=heard)
    assert report.sealed
    assert counted(report.rows("priced")) == WANTED
    query = report.query("priced")
    assert query.rows == 4
    assert query.ledger is not None
    assert query.ledger["left"] == dict(
        {"in": 3, "matched": 1, "unmatched": 2}, waiting=0, late=0, rejected=0, evicted=0
    )
    # The table is looked into by each row that the join of streams gives.
    assert {n: query.ledger["join2.left"][n] for n in ("in", "matched", "unmatched")} == {
        "in": 3,
        "matched": 1,
        "unmatched": 2,
    }
    assert [b.rows_in for b in heard.batches if not b.final] == [{"o": 2, "pay": 1}, {"o": 1, "pay": 1}]
    assert sum(b.rows_out for b in heard.batches) == 4
    assert heard.batches[0].left.current_size == 2
    assert heard.batches[-1].coordinator.matches_emitted == 1
    assert [q.sink for q in heard.sealed] == ["priced"]
    assert spark.conf.getAll == settings
    assert not spark.catalog.listTables()
    with pytest.raises(StreamError) as caught:
        weft.streams.run(spark, JOB, root=tmp_path, memory=MEMORY)
    assert caught.value.code == "W2204"
    batch = weft.streams.run_as_batch(spark, JOB, root=tmp_path, memory=MEMORY)
    assert counted(batch.rows("priced")) == WANTED
    assert (batch.sealed, batch.query("priced").ledger, batch.query("priced").checkpoint) == (
        False,
        None,
        None,
    )


def test_a_copy_of_a_table_that_was_lost_or_changed_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """The table has other rows by now: a new copy would join later batches with them."""

    def run(batches: int, price: str | None = None, **named: Any) -> weft.streams.JobReport:
        rows = {name: MEMORY[name][:batches] for name in ("orders", "payments")}
        products = [row if price is None else {**row, "price": price} for row in MEMORY["products"]]
        return weft.streams.run(spark, JOB, root=tmp_path, memory={**rows, "products": products}, **named)

    checkpoint = run(1).query("priced").checkpoint
    assert checkpoint is not None
    copy = checkpoint / "tables" / "products"
    saved = shutil.copytree(copy, tmp_path / "saved")
    first = min(copy.glob("*.parquet"))

    def lost() -> None:
        shutil.rmtree(copy)

    def lost_part() -> None:
        first.unlink()

    def changed() -> None:
        first.write_bytes(first.read_bytes()[::-1])

    for damage in (lost, lost_part, changed):
        damage()
        with pytest.raises(StreamError) as caught:
            run(2, price="99")
        assert (caught.value.code, "products" in caught.value.message) == ("W2202", True)
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(saved, copy)
    assert counted(run(2, price="99", final=True).rows("priced")) == WANTED


def test_a_batch_goes_where_no_stream_has_written(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.csv").write_text("id,at\na,2026-01-15T10:00:00Z\n", encoding="utf-8")
    job = (
        "CREATE STREAM seen (id STRING, at TIMESTAMP) WITH ('path'='in', 'format'='csv');"
        "CREATE STREAM copied WITH ('path'='out', 'format'='json') AS SELECT s.id FROM seen s"
    )
    for _ in range(2):  # a second run replaces the rows of the first
        report = weft.streams.run_as_batch(spark, job, root=tmp_path)
        assert [tuple(r) for r in report.rows("copied")] == [("a",)]
    assert len(list((tmp_path / "out").glob("part-*"))) == 1
    (tmp_path / "out").rename(tmp_path / "elsewhere")
    weft.streams.run(spark, job, root=tmp_path, final=True)
    with pytest.raises(StreamError, match="holds rows of the stream") as caught:
        weft.streams.run_as_batch(spark, job, root=tmp_path)
    assert caught.value.code == "W2215"
    weft.streams.run_as_batch(spark, job, root=tmp_path, to=tmp_path / "batch")
    assert len(list((tmp_path / "batch").glob("part-*"))) == 1


def test_a_batch_turns_rows_away_by_the_policies_of_the_stream(spark: SparkSession, tmp_path: Path) -> None:
    def job(malformed: str, missing: str) -> str:
        return POLICIES.replace("M1", malformed).replace("M2", missing)

    memory: dict[str, Any] = {"l": [[{"k": 1, "t": at(0)}, {"k": "two", "t": at(0)}, {"k": 3}]], "r": [[]]}

    def rows(malformed: str, missing: str) -> list[int]:
        report = weft.streams.run_as_batch(spark, job(malformed, missing), root=tmp_path, memory=memory)
        return sorted(row[0] for row in report.rows("j"))

    assert rows("reject", "reject") == [1]
    assert rows("reject", "wall_clock") == [1, 3]
    for given, code in ((("fail", "reject"), "W2208"), (("reject", "fail"), "W2207")):
        with pytest.raises(StreamError) as caught:
            rows(*given)
        assert caught.value.code == code


def test_a_table_row_that_cannot_be_read_stops_the_job(spark: SparkSession, tmp_path: Path) -> None:
    broken = {**MEMORY, "products": [{"code": "P1", "price": "dear", "most": 1}]}
    for run in (weft.streams.run, weft.streams.run_as_batch):
        with pytest.raises(ConnectorError, match="products") as caught:
            run(spark, JOB, root=tmp_path, memory=broken)
        assert caught.value.code == "W2303"
    nothing = {name: rows for name, rows in MEMORY.items() if name != "products"}
    with pytest.raises(ConnectorError) as missing:
        weft.streams.run_as_batch(spark, JOB, root=tmp_path, memory=nothing)
    assert missing.value.code == "W2301"


def test_what_run_takes_is_checked(spark: SparkSession, tmp_path: Path) -> None:
    def refused(error: type[weft.WeftError], *args: Any, **given: Any) -> weft.WeftError:
        with pytest.raises(error) as caught:
            weft.streams.run(spark, *args, root=tmp_path, **given)
        return caught.value

    assert "Path('jobs/orders.sql')" in str(refused(ArgumentError, "jobs/orders.sql"))
    assert "not int" in str(refused(ArgumentError, 5))
    assert refused(ArgumentError, JOB, keep="all").code == "W0302"
    assert refused(ArgumentError, JOB, available=False).code == "W0305"
    assert refused(StreamSqlError, "SELEC 1").code.startswith("W20")
    unbounded = JOB.replace("WITHIN ('0s', '1m')", "")
    assert refused(StreamPlanError, unbounded).code == "W2104"
    assert refused(ConnectorError, JOB).code == "W2301"


def test_a_job_is_explained_without_a_session(tmp_path: Path) -> None:
    reported = weft.streams.explain(JOB, root=tmp_path)
    assert "pay.paid - o.placed in [0s, 1m]" in reported.text
