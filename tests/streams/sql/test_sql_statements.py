"""Statements of a job: what each becomes, whatever its spelling."""

# ruff: noqa: S608  # jobs of streaming SQL that reach no database

from __future__ import annotations

from pathlib import Path

import pytest

from stream_mistakes import STREAMS
from weft.core.duration import Duration
from weft.core.types import LONG, TIMESTAMP, Array, Decimal, Schema
from weft.errors import ArgumentError, StreamSqlError, WeftError
from weft.streams.sql.job import parse_job, read_job_text
from weft.streams.sql.lower import read_spec
from weft.streams.sql.spec import JobSpec
from weft.streams.sql.syntax import CreateStream, CreateTable, Explain, Insert, Query, SetOption

ACCEPTANCE = """\
CREATE STREAM orders (
  order_id STRING, customer_id INT, total_amount DECIMAL(10,2), status STRING, event_time TIMESTAMP
) WITH ('connector'='files', 'path'='data/orders.csv', 'format'='csv',
        'event.time.field'='event_time', 'event.time.format'='epoch_millis', 'watermark.max_out_of_orderness'='30s');
CREATE STREAM order_status
WITH ('connector'='files', 'path'='out/order_status', 'format'='parquet')
AS SELECT o.order_id, o.total_amount * 2 AS twice FROM orders o EMIT CHANGES;
"""


def test_the_statements_of_a_file_come_in_its_order() -> None:
    job = parse_job(
        "create stream a (x int) with ('path' = 'a.csv'); ;; -- a comment; with a semicolon\n"
        "CREATE TABLE b (x INT) WITH ('path' = 'b.csv');\n"
        "/* and /* another */ ; */ INSERT INTO c SELECT * FROM a;\n"
        "SELECT * FROM a; EXPLAIN JOIN c; Set 'trigger' = '5s'"
    )
    kinds = [type(statement) for statement in job.statements]
    assert kinds == [CreateStream, CreateTable, Insert, Query, Explain, SetOption]


def test_the_sample_job_becomes_specs() -> None:
    job = read_spec(ACCEPTANCE, file="streams/orders.sql")
    assert job.name == "orders"
    orders = job.streams["orders"]
    assert [str(f) for f in orders.columns] == [
        "order_id: string", "customer_id: integer", "total_amount: decimal(10,2)", "status: string",
        "event_time: timestamp",
    ]  # fmt: skip
    assert dict(orders.connector) == {
        "connector": "files", "path": "data/orders.csv", "format": "csv", "header": True, "delimiter": ",",
        "quote": '"', "null.value": "", "timestamp.zone": "UTC",
    }  # fmt: skip
    assert (orders.event_time, orders.time_format) == ("event_time", "epoch_millis")
    assert (orders.delay, orders.late, orders.malformed) == (Duration.parse("30s"), "side_output", "reject")
    (statement,) = job.statements
    assert (statement.name, statement.first, statement.emit) == ("order_status", ("orders", "o"), "changes")
    assert dict(statement.sink.connector) == {
        "connector": "files", "path": "out/order_status", "format": "parquet", "mode": "append",
    }  # fmt: skip
    assert dict(job.settings) == {"trigger": Duration.parse("1s"), "checkpoint": ".weft/streams/orders"}


def test_types_are_those_of_sql_in_every_common_spelling() -> None:
    text = (
        "CREATE TABLE a (a INT NOT NULL, b BIGINT, c VARCHAR(20), d TEXT NULL, e BOOL, f REAL, g NUMERIC(5,1), "
        "h TIMESTAMP(3), i ARRAY<BIGINT>, j DOUBLE, `order` DATE, group STRING) WITH ('path' = 'a.csv');"
    )
    (table,) = parse_job(text).statements
    assert isinstance(table, CreateTable)
    assert [str(c.dtype) for c in table.columns] == [
        "integer", "long", "string", "string", "boolean", "float", "decimal(5,1)", "timestamp", "array<long>",
        "double", "date", "string",
    ]  # fmt: skip
    assert [c.nullable for c in table.columns] == [False] + [True] * 11
    assert table.columns[8].dtype == Array(LONG)
    assert table.columns[6].dtype == Decimal(5, 1)
    assert [c.name.text for c in table.columns[-2:]] == ["order", "group"]


def test_a_stream_that_a_statement_writes_is_its_sink_wherever_it_is_created() -> None:
    job = read_spec(
        STREAMS + "INSERT INTO Out SELECT order_id FROM orders;"
        "CREATE STREAM out (order_id STRING) WITH ('path' = 'out', 'format' = 'json');"
    )
    (statement,) = job.statements
    assert (statement.name, statement.sink.name) == ("out", "out")
    assert statement.sink.columns == Schema.of(order_id="string")
    assert list(job.streams) == ["orders", "shipments"]
    assert list(job.tables) == ["customers"]


def test_a_query_alone_prints_its_rows() -> None:
    job = read_spec(STREAMS + "SELECT * FROM orders; SELECT * FROM shipments;")
    assert [s.name for s in job.statements] == ["result", "result_2"]
    assert {s.sink.connector["connector"] for s in job.statements} == {"console"}


def test_explain_join_is_kept_apart_from_what_runs() -> None:
    job = read_spec(
        STREAMS + "CREATE STREAM out WITH ('connector' = 'memory') AS SELECT * FROM orders;"
        "EXPLAIN JOIN OUT; EXPLAIN JOIN SELECT * FROM shipments;"
    )
    assert [s.name for s in job.statements] == ["out"]
    assert [s.name for s in job.explains] == ["out", "explain"]


def test_a_job_that_only_explains_is_a_job() -> None:
    job = read_spec(STREAMS + "EXPLAIN JOIN SELECT * FROM shipments;")
    assert (job.statements, len(job.explains)) == ((), 1)


def test_settings_hold_for_every_stream_and_join() -> None:
    job = read_spec(
        "SET 'idle.timeout' = '1m'; SET 'join.default_bound' = '-5m..1h'; SET 'groups' = 4; SET 'trigger' = '5s';"
        + STREAMS
        + "CREATE STREAM quick (id INT) WITH ('path' = 'q.json', 'idle.timeout' = '2s');"
        "SELECT * FROM orders o JOIN shipments s ON o.order_id = s.order_id "
        "JOIN quick q ON q.id = o.customer_id WITH ('join.q.default_bound' = '2h');"
    )
    assert job.streams["orders"].idle == Duration.parse("1m")
    assert job.streams["quick"].idle == Duration.parse("2s")
    first, second = job.statements[0].joins
    assert first.default_bound == (Duration.parse("-5m", signed=True), Duration.parse("1h"))
    assert second.default_bound == (Duration(0), Duration.parse("2h"))
    assert job.settings["groups"] == 4
    assert job.settings["trigger"] == Duration.parse("5s")


def test_a_rate_source_needs_no_columns() -> None:
    job = read_spec("CREATE STREAM r WITH ('connector' = 'rate', 'rows.per.second' = 5); SELECT * FROM r;")
    rate = job.streams["r"]
    assert rate.columns.names == ("timestamp", "value")
    assert rate.columns["timestamp"].dtype == TIMESTAMP
    assert dict(rate.connector) == {"connector": "rate", "rows.per.second": 5, "timestamp.zone": "UTC"}
    assert rate.time_format == "timestamp"


def test_a_job_reads_back_equal_from_its_dictionary() -> None:
    job = read_spec(
        "SET 'join.default_bound' = '1h'; SET 'groups' = 2;"
        + STREAMS
        + "CREATE STREAM out (order_id STRING, n INT) WITH ('topic' = 'out', 'format' = 'json', 'kafka.acks' = 'all');"
        "INSERT INTO out SELECT o.*, s.shipment_id AS `a b` PRIMARY KEY, o.event_time AS _EVENT_TIME FROM orders o "
        "FULL JOIN shipments s ON o.order_id = s.order_id AND NOT (o.total = 5 OR s.shipment_id LIKE 'a''%') "
        "WINDOW SLIDING(SIZE '1h', SLIDE '10m') LEFT JOIN customers c ON c.customer_id = o.customer_id "
        "WHERE c.name IS NOT NULL EMIT FINAL WITH ('join.max_state_rows' = 1000, 'join.rows' = 'window');"
        "EXPLAIN JOIN out;"
    )
    read = JobSpec.from_json(job.to_json())
    assert read == job
    assert read.fingerprint() == job.fingerprint()
    assert hash(read) == hash(job)


@pytest.mark.parametrize(
    "change",
    [
        {"nope": 1},
        {"version": 2},
        {"type": "stream_jb"},
        {"streams": {"$columns": [["a"]]}},
        {"settings": {"$duration": "5 parsecs"}},
        {"statements": [{"type": "stream_statement"}]},
    ],
)
def test_a_dictionary_that_is_not_a_job_is_refused(change: dict[str, object]) -> None:
    data = read_spec(STREAMS + "SELECT * FROM orders;").to_dict()
    with pytest.raises(WeftError) as caught:
        JobSpec.from_dict(data | change)
    assert caught.value.code in ("W0306", "W0304")


def test_a_stream_may_have_any_name_and_still_read_back() -> None:
    job = read_spec("CREATE STREAM type (version INT) WITH ('path' = 'a.csv'); SELECT version AS `$map` FROM type;")
    assert JobSpec.from_json(job.to_json()) == job


def test_the_location_of_a_node_is_not_compared() -> None:
    text = STREAMS + "SELECT * FROM orders WHERE total > 1;"
    assert parse_job(text).statements == parse_job("\n\n" + text.replace("WHERE", "\n /* x */ WHERE")).statements
    assert read_spec(text) == read_spec("\n" + text)
    assert read_spec(text).fingerprint() != read_spec(text.replace("> 1", "> 2")).fingerprint()


def test_specs_know_where_they_were_written() -> None:
    job = read_spec(
        STREAMS + "SELECT *\nFROM orders o\nFULL OUTER JOIN shipments s ON o.order_id = s.order_id\nWITHIN '5m';"
    )
    (join,) = job.statements[0].joins
    assert join.how_at is not None
    assert join.at is not None
    assert join.form_at is not None
    assert (join.how_at.line, join.how_at.column, join.at.column, join.form_at.line) == (8, 1, 17, 9)
    assert join.on.span is not None
    assert join.on.span.place.line == 8


def test_a_file_is_read_as_utf_8(tmp_path: Path) -> None:
    file = tmp_path / "größe.sql"
    file.write_bytes("\ufeffCREATE TABLE t (größe INT) WITH ('path' = '${D}/t.csv');\r\nSELECT * FROM t;".encode())
    text = read_job_text(file)
    job = read_spec(text, file=str(file), env={"D": "data"})
    assert (job.name, job.tables["t"].columns.names) == ("größe", ("größe",))
    assert job.tables["t"].connector["path"] == "data/t.csv"


def test_a_file_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    (tmp_path / "latin.sql").write_bytes("SELECT 'größe'".encode("latin-1"))
    with pytest.raises(StreamSqlError, match="is not valid UTF-8: byte 11 cannot be decoded"):
        read_job_text(tmp_path / "latin.sql")
    with pytest.raises(StreamSqlError, match="No such file or directory"):
        read_job_text(tmp_path / "none.sql")


def test_a_job_is_a_text() -> None:
    with pytest.raises(ArgumentError, match="a job must be a string, not bytes"):
        parse_job(b"SELECT 1")  # type: ignore[arg-type]  # what is tested


def test_specs_of_statements_that_read_are_refused_with_all_findings() -> None:
    text = "CREATE TABLE a (b INT) WITH ('pth' = 'x'); SELECT * FROM c;"
    assert not parse_job(text).findings
    with pytest.raises(StreamSqlError) as caught:
        read_spec(text)
    assert [d.code for d in caught.value.diagnostics] == ["W2005", "W2010"]
