"""Sources: every format gives event time, declared columns and malformed rows, whatever the settings of the session."""

from __future__ import annotations

import datetime as dt
import os
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException

from stream_spark import done, job_of
from weft.core.frozen import FrozenMap
from weft.core.types import Field, Schema, parse_type
from weft.errors import ConnectorError, WeftError
from weft.streams.run.job import run_job
from weft.streams.spark.files import check_file_order, read_batch, read_error
from weft.streams.spark.memory import read_rate
from weft.streams.sql.spec import StreamSpec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEN = 1_736_848_800_000_000
"""2025-01-14 10:00 UTC."""

MONTH = 30 * 86_400


def stream(
    path: str,
    form: str,
    time: str = "iso8601",
    columns: str = "id string, total decimal(10,2), t timestamp",
    **given: Any,
) -> StreamSpec:
    fields = []
    for column in columns.split(", "):
        name, dtype, *null = column.split(" ")
        fields.append(Field(name, parse_type(dtype), not null))
    return StreamSpec(
        name="orders",
        columns=Schema(tuple(fields)),
        connector=FrozenMap({"connector": "files", "path": path, "format": form, **given}),
        event_time="t",
        time_format=time,
    )


def rows_of(spark: SparkSession, given: StreamSpec, root: Path) -> list[tuple[Any, ...]]:
    return sorted((tuple(r) for r in read_batch(spark, given, root).collect()), key=str)


@pytest.fixture
def elsewhere(spark: SparkSession) -> SparkSession:
    """Return a session of another zone without ANSI mode: neither must matter."""
    other = spark.newSession()
    other.conf.set("spark.sql.session.timeZone", "America/New_York")
    other.conf.set("spark.sql.ansi.enabled", "false")
    return other


def test_json_is_read_value_by_value(elsewhere: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(
        '{"id": "a", "total": 1.5, "t": "2025-01-14T10:00:00Z"}\n'
        '{"id": 1, "total": "2", "t": "2025-01-14 10:00:00"}\n'
        '{"id": "later", "t": "2025-01-14T10:00:00+02:00", "unknown": true}\n'
        '{"id": "untimed"}\n'
        '{"id": "rounded", "total": 2.505, "t": "2025-01-14"}\n'
        '{"id": "no time", "t": "2025-13-14"}\n'
        "no json\n"
    )
    read = {
        row[2] or row[1]: (row[0], row[1], row[3]) for row in rows_of(elsewhere, stream("a.json", "json"), tmp_path)
    }
    assert read["a"] == (TEN, None, Decimal("1.50"))
    assert read["1"] == (TEN, None, Decimal("2.00"))
    assert read["later"] == (TEN - 7_200_000_000, None, None)
    assert read["untimed"] == (None, None, None)
    assert read["rounded"][1] == '{"id":"rounded","total":"2.505","t":"2025-01-14"}'
    assert read["no time"][1] == '{"id":"no time","t":"2025-13-14"}'
    assert read["no json"] == (None, "no json", None)


@pytest.mark.parametrize(
    ("form", "text", "time"),
    [
        ("epoch_millis", "1736848800250", TEN + 250_000),
        ("epoch_seconds", '"1736848800.25"', TEN + 250_000),
        ("epoch_micros", "1736848800000001", TEN + 1),
        ("epoch_seconds", "-1.5", -1_500_000),
        ("epoch_seconds", "99999999999999999999", None),
        ("%d.%m.%Y %H:%M:%S.%f", '"14.01.2025 10:00:00.25"', TEN + 250_000),
        ("%Y-%m-%d %H:%M %z", '"2025-01-14 12:00 +0200"', TEN),
        ("%Y at %j", '"2025 at 014"', TEN - 36_000_000_000),
        ("%d.%m.%Y", '"14/01/2025"', None),
    ],
)
def test_event_times_of_every_format(
    elsewhere: SparkSession, tmp_path: Path, form: str, text: str, time: int | None
) -> None:
    (tmp_path / "a.json").write_text(f'{{"id": "a", "t": {text}}}\n')
    (row,) = rows_of(elsewhere, stream("a.json", "json", form), tmp_path)
    assert row[0] == time
    assert (row[1] is None) == (time is not None)
    if time is not None:
        assert row[4] == dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=time)  # noqa: DTZ001  # as Spark gives it


def test_times_without_a_zone_are_of_the_declared_one(elsewhere: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"t": "2025-01-14 11:00:00"}\n{"t": "2025-07-14 12:00:00Z"}\n')
    given = stream("a.json", "json", columns="t timestamp", **{"timestamp.zone": "Europe/Berlin"})
    assert [row[0] for row in rows_of(elsewhere, given, tmp_path)] == [TEN, 1_752_494_400_000_000]


def test_a_null_in_a_column_without_nulls_is_malformed(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"n": 1}\n{"t": "2025-01-14"}\n{"n": "x"}\n')
    rows = rows_of(spark, stream("a.json", "json", columns="n integer not, t timestamp"), tmp_path)
    assert [row[1] for row in rows if row[1]] == ['{"t":"2025-01-14"}', '{"n":"x"}']


def test_csv_goes_by_the_names_of_its_columns(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "o[1].csv").write_text(
        't,id,more,total\n1736848800000,a,x,1.5\n,,,\n1736848800000,"b,""c""",,2\nshort\nx,d,,3\n'
    )
    (tmp_path / "o1.csv").write_text("t,id,more,total\n0,other,,1\n")
    rows = rows_of(spark, stream("o[1].csv", "csv", "epoch_millis"), tmp_path)
    assert [(r[0], r[2], r[3]) for r in rows if r[1] is None] == [
        (TEN, "a", Decimal("1.50")),
        (TEN, 'b,"c"', Decimal("2.00")),
        (None, None, None),
    ]
    assert [r[1] for r in rows if r[1] is not None] == ["short", '{"id":"d","total":"3","t":"x"}']


def test_csv_without_a_header_goes_by_position(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a;1,5;-\n")
    given = stream(
        "a.csv",
        "csv",
        columns="id string, n string, t timestamp",
        delimiter=";",
        header=False,
        **{"null.value": "-"},
    )
    assert rows_of(spark, given, tmp_path) == [(None, None, "a", "1,5", None)]


def test_parquet_keeps_its_types(elsewhere: SparkSession, tmp_path: Path) -> None:
    elsewhere.sql(
        "SELECT 'a' AS id, CAST(1.5 AS DECIMAL(5,1)) AS total, TIMESTAMP '2025-01-14 05:00:00' AS t, 1 AS other"
    ).write.parquet(str(tmp_path / "p"))
    ((time, raw, name, total, _),) = rows_of(elsewhere, stream("p", "parquet", "timestamp"), tmp_path)
    assert (time, raw, name, total) == (TEN, None, "a", Decimal("1.50"))


def refused(spark: SparkSession, given: StreamSpec, root: Path) -> ConnectorError:
    with pytest.raises(ConnectorError) as caught:
        read_batch(spark, given, root)
    return caught.value


def test_missing_and_mismatching_files_are_reported(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "orders.csv").write_text("id,totel,t\n")
    (tmp_path / "twice.csv").write_text("id,id,t\n")
    (tmp_path / "empty.csv").write_text("")
    missing = refused(spark, stream("order.csv", "csv"), tmp_path)
    assert (missing.code, "orders.csv" in missing.help) == ("W2301", True)
    misspelt = refused(spark, stream("orders.csv", "csv"), tmp_path)
    assert misspelt.code == "W2302"
    assert "'total' could be 'totel'" in misspelt.help
    assert refused(spark, stream("twice.csv", "csv"), tmp_path).code == "W2302"
    assert refused(spark, stream("empty.csv", "csv"), tmp_path).code == "W2302"
    spark.sql("SELECT 'a' AS id, true AS total, TIMESTAMP '2025-01-14' AS t").write.parquet(str(tmp_path / "p"))
    assert refused(spark, stream("p", "parquet", "timestamp"), tmp_path).code == "W2303"
    (tmp_path / "no.parquet").write_text("no parquet")
    assert refused(spark, stream("no.parquet", "parquet", "timestamp"), tmp_path).code == "W2303"
    assert refused(spark, stream("p", "parquet", "epoch_millis"), tmp_path).code == "W2303"


def test_a_session_without_the_avro_jar_is_reported_with_what_to_install() -> None:
    given = "[DATA_SOURCE_NOT_FOUND] Failed to find the data source: avro. Make sure the provider name is correct"
    found = read_error(stream("a", "avro"), "avro", AnalysisException(given), "it cannot be read")
    assert (found.code, found.help) == ("W2305", "weft connectors install avro")
    other = read_error(stream("a", "avro"), "avro", AnalysisException("[X] a broken file"), "it cannot be read")
    assert (other.code, other.message) == ("W2303", "it cannot be read: [X] a broken file")


def test_a_folder_without_files_has_no_rows(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    assert rows_of(spark, stream("in", "json"), tmp_path) == []
    assert rows_of(spark, stream("in/*.json", "json"), tmp_path) == []


def test_files_of_one_time_are_warned_of(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name in "ab":
        (tmp_path / "in" / f"{name}.json").write_text("{}\n")
        os.utime(tmp_path / "in" / f"{name}.json", (1000, 1000))
    assert check_file_order(stream("in", "json"), tmp_path) == ()
    limited: dict[str, Any] = {"max.files.per.trigger": 1}
    given = stream("in", "json", **limited)
    (warning,) = check_file_order(given, tmp_path)
    assert (warning.code, warning.severity) == ("W2307", "warning")
    os.utime(tmp_path / "in" / "a.json", (1001, 1001))
    assert check_file_order(given, tmp_path) == ()


def test_a_rate_stream_has_its_own_columns(spark: SparkSession) -> None:
    good = StreamSpec(
        name="beat",
        columns=Schema.of(timestamp="timestamp", value="long"),
        connector=FrozenMap({"connector": "rate", "rows.per.second": 5, "rows.total": 10}),
        event_time="timestamp",
        time_format="timestamp",
    )
    frame = read_rate(spark, good)
    assert frame.isStreaming
    assert frame.columns == ["t", "raw", "c0", "c1"]
    with pytest.raises(ConnectorError) as caught:
        read_rate(spark, StreamSpec(name="beat", columns=Schema.of(n="long"), connector=good.connector))
    assert caught.value.code == "W2302"


TWO = """
CREATE STREAM l (id INT, k STRING, t TIMESTAMP) WITH ('path' = 'l', 'format' = 'csv', 'event.time.field' = 't',
  'event.time.format' = 'epoch_seconds', 'max.files.per.trigger' = 1);
CREATE STREAM r (id INT, k STRING, t TIMESTAMP) WITH ('path' = 'r/*.json', 'format' = 'json', 'event.time.field' = 't',
  'event.time.format' = 'epoch_seconds', 'max.files.per.trigger' = 1);
INSERT INTO pairs SELECT l.id, r.id AS rid FROM l JOIN r ON l.k = r.k WITHIN '10s';
"""


def write(root: Path, numbers: range, *, file: int) -> None:
    """Write rows into both streams; only the keys of every second number meet."""
    for side in "lr":
        (root / side).mkdir(exist_ok=True)
    lines = "".join(f"{n},{'k' if n % 2 else side}{n},{n}\n" for n in numbers for side in "l")
    (root / "l" / f"{file}.csv").write_text(f"id,k,t\n{lines}")
    (root / "r" / f"{file}.json").write_text("".join(f'{{"id": {n}, "k": "k{n}", "t": {n}}}\n' for n in numbers))
    (root / "r" / f"{file}.txt").write_text("not of the stream\n")
    for path in (root / "l" / f"{file}.csv", root / "r" / f"{file}.json"):
        os.utime(path, (MONTH + file, MONTH + file))


def test_two_sources_are_read_to_the_end_and_go_on_with_new_files(spark: SparkSession, tmp_path: Path) -> None:
    sql = TWO.replace("INSERT INTO pairs", "CREATE STREAM pairs WITH ('connector' = 'memory') AS")
    plan = job_of(sql, tmp_path)
    write(tmp_path, range(20), file=0)
    write(tmp_path, range(20, 35), file=1)
    first = done(spark, run_job(spark, plan))
    assert first.ledger["left"] == {
        "in": 35, "matched": 17, "waiting": 13, "unmatched": 5, "late": 0, "rejected": 0, "evicted": 0,
    }  # fmt: skip
    assert first.report.queries[0].batches == 2
    write(tmp_path, range(35, 40), file=2)
    for path in (tmp_path / "l" / "2.csv", tmp_path / "r" / "2.json"):
        os.utime(path, (0, 0))  # a month older than the files that were read: Spark would pass it over
    second = done(spark, run_job(spark, plan, mode="final"))
    assert sorted(row["id"] for _, row in second.rows) == list(range(1, 40, 2))
    assert second.rows[: len(first.rows)] == first.rows
    assert second.ledger["right"] == {
        "in": 40, "matched": 20, "waiting": 0, "unmatched": 20, "late": 0, "rejected": 0, "evicted": 0,
    }  # fmt: skip


def test_a_later_file_with_other_columns_stops_the_query(spark: SparkSession, tmp_path: Path) -> None:
    sql = TWO.replace("INSERT INTO pairs", "CREATE STREAM pairs WITH ('connector' = 'memory') AS")
    write(tmp_path, range(2), file=0)
    write(tmp_path, range(2), file=1)
    (tmp_path / "l" / "1.csv").write_text("k,id,t\nk1,1,1\n")
    with pytest.raises(WeftError) as caught:
        run_job(spark, job_of(sql, tmp_path))
    assert caught.value.code == "W2302"
    assert "1.csv" in caught.value.message
