"""Kafka as source and sink, against a real broker: rows in, rows out, malformed messages, stable ids."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from command_line import weft
from kafka_broker import problem, running_broker
from needed import stop_without
from weft.errors import ConnectorError, StreamError
from weft.streams.plan.resolve import plan_job
from weft.streams.plan.resolved import JobPlan
from weft.streams.run.job import run_job
from weft.streams.spark.kafka import ROW_ID, TIME_HEADER, build_messages, read_kafka_batch
from weft.streams.spark.select_stage import EVENT_TIME
from weft.streams.sql.lower import read_spec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.kafka
JOIN = """
CREATE STREAM orders (id STRING, total DECIMAL(10,2), at TIMESTAMP, _KEY STRING)
  WITH ({common}, 'topic' = '{prefix}-orders'{more});
CREATE STREAM shipments (id STRING, at TIMESTAMP) WITH ({common}, 'topic' = '{prefix}-shipments');
CREATE STREAM shipped WITH ({into}) AS
  SELECT o.id PRIMARY KEY, o.total, o._KEY AS who, s.at AS shipped FROM orders o
  LEFT JOIN shipments s ON o.id = s.id WITHIN ('0s', '1h');
SET 'groups' = '2'
"""
COPY = """
CREATE STREAM source (id BIGINT, name STRING, price DECIMAL(8,3), at TIMESTAMP{more})
  WITH ({source}, 'event.time.field' = 'at');
CREATE TABLE names (id BIGINT, name STRING) WITH ('path' = 'names.csv', 'format' = 'csv');
CREATE STREAM copy WITH ({into}) AS SELECT s.id, s.name, s.price, s.at, n.name AS known FROM source s
  LEFT JOIN names n ON s.id = n.id
"""
START = 1_736_848_800_000
Message = tuple[str | None, str | None]


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    """Return the address of a broker; where there is none to start the tests are skipped, which in CI is a failure."""
    why = problem()
    if why is not None:
        stop_without(why)
    with running_broker() as address:
        yield address


def job(broker: str, *, prefix: str, root: Path, sink: str = "", more: str = "") -> JobPlan:
    """Return the plan of orders and shipments as topics."""
    common = f"'connector' = 'kafka', 'bootstrap.servers' = '{broker}', 'format' = 'json', 'event.time.field' = 'at', "
    common += "'event.time.format' = 'epoch_millis', 'watermark.max_out_of_orderness' = '5s'"
    into = (
        sink or f"'connector' = 'kafka', 'topic' = '{prefix}-out', 'bootstrap.servers' = '{broker}', 'format' = 'json'"
    )
    sql = JOIN.format(common=common, prefix=prefix, more=more, into=into)
    return plan_job(read_spec(sql, file=f"{prefix}.sql"), root)


def produce(spark: SparkSession, broker: str, topic: str, messages: Sequence[Message]) -> None:
    frame = spark.createDataFrame(list(messages), "key string, value string")
    frame.write.format("kafka").option("kafka.bootstrap.servers", broker).option("topic", topic).save()


def consumed(spark: SparkSession, broker: str, topic: str) -> list[Any]:
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", broker).option("subscribe", topic)
    rows = reader.option("includeHeaders", "true").load().selectExpr("string(key)", "string(value)", "headers")
    return rows.collect()


def order(name: str, second: int, total: str = "1.50") -> Message:
    return f"customer-{name}", json.dumps({"id": name, "total": total, "at": START + 1000 * second})


def shipment(name: str, second: int) -> Message:
    return None, json.dumps({"id": name, "at": START + 1000 * second})


def test_two_topics_are_joined_into_a_third(spark: SparkSession, broker: str, tmp_path: Path) -> None:
    produce(spark, broker, "a-orders", [order("x", 0, "10.25"), order("y", 1), ("k", "no json"), (None, None)])
    produce(spark, broker, "a-shipments", [shipment("x", 60), shipment("z", 2), (None, '[{"id": "y"}]')])
    plan = job(broker, prefix="a", root=tmp_path)
    first = run_job(spark, plan, mode="available").queries[0]
    assert (first.rows, first.sealed) == (1, False)
    produce(spark, broker, "a-shipments", [shipment("x", 61)])
    report = run_job(spark, plan, mode="final").queries[0]
    assert (report.rows, report.sealed, report.location) == (3, True, "kafka topic a-out")
    ledger = {side: {k: v for k, v in counts.items() if v} for side, counts in (report.ledger or {}).items()}
    assert ledger == {
        "left": {"in": 4, "matched": 1, "unmatched": 1, "rejected": 2},
        "right": {"in": 4, "matched": 2, "unmatched": 1, "rejected": 1},
    }
    rows = consumed(spark, broker, "a-out")
    found = sorted(((row.key, json.loads(row.value)) for row in rows), key=str)
    assert found == [
        ("x", {"id": "x", "total": 10.25, "who": "customer-x", "shipped": "2025-01-14T10:01:00.000000Z"}),
        ("x", {"id": "x", "total": 10.25, "who": "customer-x", "shipped": "2025-01-14T10:01:01.000000Z"}),
        ("y", {"id": "y", "total": 1.5, "who": "customer-y", "shipped": None}),
    ]
    headers = [{h.key: bytes(h.value).decode() for h in row.headers} for row in rows]
    assert len({h[ROW_ID] for h in headers}) == 3
    assert {h[TIME_HEADER] for h in headers} == {f"{(START + 1000 * s) * 1000}" for s in (1, 60, 61)}
    reported = weft("stream", "status", "a", "--rejects", "10", "--json", root=tmp_path).data
    assert sorted(r["row"] for r in reported["rejects"]) == ['[{"id": "y"}]', "no json", "null"]


def test_a_row_that_is_written_again_has_the_id_it_had(spark: SparkSession, tmp_path: Path) -> None:
    plan = job("localhost:1", prefix="ids", root=tmp_path).statements[0]
    same = ("x", "1.00", "c", None, 5)
    rows: DataFrame = spark.createDataFrame(
        [same, same, ("y", "1.00", "c", None, 5), ("x", "1.00", "c", None, 6)],
        f"id string, total string, who string, shipped timestamp, {EVENT_TIME} long",
    )

    def ids(batch: int, frame: DataFrame) -> list[str]:
        found = build_messages(frame, plan, checkpoint="cp", batch=batch).collect()
        return sorted(bytes(h.value).decode() for row in found for h in row.headers if h.key == ROW_ID)

    first = ids(7, rows)
    assert len(set(first)) == 4
    assert all(name.startswith("cp-7-") for name in first)
    assert ids(7, rows.repartition(3)) == first
    assert not set(ids(8, rows)) & set(first)


@pytest.mark.parametrize("form", ["csv", "avro"])
def test_messages_may_be_csv_or_avro(spark: SparkSession, broker: str, form: str, tmp_path: Path) -> None:
    topic = f"'connector' = 'kafka', 'topic' = 'form-{form}', 'bootstrap.servers' = '{broker}', 'format' = '{form}'"
    files = "'connector' = 'files', 'path' = 'in', 'format' = 'json'"
    (tmp_path / "in").mkdir()
    (tmp_path / "names.csv").write_text("id,name\n1,one\n3,three\n")
    given = [(1, 'a "quoted", one', "1.250", "2026-01-01T10:00:00Z"), (2, None, None, "2026-01-01T10:00:01Z")]
    lines = [json.dumps(dict(zip(("id", "name", "price", "at"), row, strict=True))) for row in given]
    (tmp_path / "in" / "a.json").write_text("\n".join(lines))
    there = read_spec(COPY.format(source=files, into=topic, more=""), file=f"{form}.sql")
    done = run_job(spark, plan_job(there, tmp_path), mode="final").queries[0]
    assert done.ledger is not None
    counts = done.ledger["left"]
    assert (done.rows, counts["in"], counts["matched"], counts["unmatched"]) == (2, 2, 1, 1)
    back = read_spec(COPY.format(source=topic, into="'connector' = 'console'", more=", known STRING"), file="back.sql")
    stream = plan_job(back, tmp_path).statements[0].inputs[0].stream
    rows = sorted(read_kafka_batch(spark, stream).collect(), key=lambda row: row.c0)
    assert [(row.raw, row.c0, row.c1, None if row.c2 is None else str(row.c2), row.c4) for row in rows] == [
        (None, 1, 'a "quoted", one', "1.250", "one"),
        (None, 2, None, None, None),
    ]
    assert [row.t for row in rows] == [1_767_261_600_000_000, 1_767_261_601_000_000]


def test_a_topic_that_is_not_there_is_reported(spark: SparkSession, broker: str, tmp_path: Path) -> None:
    produce(spark, broker, "gone-orders", [order("x", 0)])
    with pytest.raises((ConnectorError, StreamError)) as caught:
        run_job(spark, job(broker, prefix="gone", root=tmp_path), mode="available")
    assert caught.value.code == "W2301"


def test_an_option_that_the_connector_refuses_is_reported(spark: SparkSession, broker: str, tmp_path: Path) -> None:
    plan = job(broker, prefix="refused", root=tmp_path, more=", 'kafka.enable.auto.commit' = 'true'")
    with pytest.raises(ConnectorError) as caught:
        run_job(spark, plan, mode="available")
    assert caught.value.code == "W2311"
    assert "enable.auto.commit" in caught.value.message


def test_a_broker_that_does_not_answer_is_reported_at_once(spark: SparkSession, tmp_path: Path) -> None:
    for number, servers in enumerate(("127.0.0.1:1", "127.0.0.1:1,localhost:1", "nonsense")):
        with pytest.raises(ConnectorError) as caught:
            run_job(spark, job(servers, prefix=f"away{number}", root=tmp_path), mode="available")
        assert caught.value.code == "W2310"
        assert servers in caught.value.help
