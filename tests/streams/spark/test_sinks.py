"""Sinks: rows appear when their batch is committed, under names that tell it, and nothing else is touched."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql.functions import current_timestamp

import weft.streams
from stream_checkpoints import BATCHES, SQL, as_set, run
from stream_spark import job_of, run_memory
from weft.errors import ConnectorError
from weft.streams.checkpoint.folder import Checkpoint, JobRecord
from weft.streams.run.endpoints import Sink
from weft.streams.spark.kafka import build_messages
from weft.streams.spark.select_stage import EVENT_TIME

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SINK = "'connector' = 'files', 'path' = 'out', 'format' = 'json'"


def test_json_files_hold_the_rows_and_nothing_stays_staged(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "stranger.json").write_text("{}")
    found = run_memory(spark, job_of(SQL, tmp_path), BATCHES)
    files = sorted(p for p in (tmp_path / "out").rglob("*") if p.is_file())
    assert all(p.parent == tmp_path / "out" for p in files)
    written = [p for p in files if p.name != "stranger.json"]
    lines = [json.loads(line) for p in written for line in p.read_text().splitlines()]
    assert sorted((line["id"], line["shipped"]) for line in lines if line["shipped"]) == [
        (name, f"2026-01-15T10:00:{second}.000000Z")
        for name, second in (("a", "02"), ("b", "11"), ("c", "30"), ("d", "41"))
    ] + [("e", "2026-01-15T10:01:01.000000Z")]
    assert [line for line in lines if line["id"] == "f"] == [{"id": "f", "total": 1, "shipped": None}]
    parts = {p.name.split("-")[2] for p in written}
    assert parts == {"000000", "000001", "000002", "000003", "000004"}
    assert found.report.queries[0].location == "out"
    assert found.report.queries[0].rows == 6
    assert as_set(found.rows) != []
    assert found.ledger == {s: dict(c) for s, c in run(tmp_path / "same").ledger.items()}


def test_csv_has_a_header_and_a_sealed_sink_without_rows_has_its_columns(spark: SparkSession, tmp_path: Path) -> None:
    sql = SQL.replace(SINK, "'connector' = 'files', 'path' = 'out', 'format' = 'csv', 'delimiter' = ';'")
    found = run_memory(spark, job_of(sql, tmp_path), [])
    (file,) = (tmp_path / "out").glob("*.csv")
    assert file.read_text() == "id;total;shipped\n"
    assert (found.report.sealed, found.report.queries[0].rows) == (True, 0)
    run_memory(spark, job_of(sql, tmp_path), BATCHES[:1], fresh=True)
    assert not file.exists()
    lines = sorted(line for p in (tmp_path / "out").glob("*.csv") for line in p.read_text().splitlines())
    assert [line for line in lines if not line.startswith("id;")] == [
        "a;1;2026-01-15T10:00:02.000000Z",
        "b;1;",
    ]


@pytest.mark.parametrize("header", ["true", "false"])
@pytest.mark.parametrize("as_batch", [False, True], ids=["stream", "batch"])
def test_the_report_reads_csv_as_the_sink_writes_it(
    spark: SparkSession, tmp_path: Path, header: str, *, as_batch: bool
) -> None:
    options = f"'delimiter' = ';', 'quote' = '|', 'header' = '{header}', 'null.value' = 'none'"
    job = (
        "CREATE STREAM texts (n INT, s STRING) WITH ('connector' = 'memory');"
        "CREATE STREAM copied WITH ('path' = 'out', 'format' = 'csv', OPTIONS) AS SELECT t.n, t.s AS `a``b` FROM texts t"
    ).replace("OPTIONS", options)
    values = ["x;y", "x,y", "|q|", "", None, "two\nlines", " ", "  a ", '"']
    memory = {"texts": [[{"n": n, "s": value} for n, value in enumerate(values)]]}
    run = weft.streams.run_as_batch if as_batch else partial(weft.streams.run, final=True)
    report = run(spark, job, root=tmp_path, memory=memory)
    rows = report.rows("copied")
    assert sorted((tuple(row) for row in rows), key=str) == [(str(n), value) for n, value in enumerate(values)]
    assert rows[0].__fields__ == ["n", "a`b"]


@pytest.mark.parametrize("as_batch", [False, True], ids=["stream", "batch"])
def test_formulas_in_strings_are_escaped_where_a_sink_asks_for_it(
    spark: SparkSession, tmp_path: Path, *, as_batch: bool
) -> None:
    copy = (
        "CREATE STREAM c_NO WITH ('path' = 'NO', 'format' = 'csv', 'escape.formulas' = 'NO')"
        " AS SELECT t.n, t.s AS `=s` FROM texts t;"
    )
    job = "CREATE STREAM texts (n INT, s STRING) WITH ('connector' = 'memory');"
    job += copy.replace("NO", "true") + copy.replace("NO", "false")
    values = ["=1+1", "+1", "-1", "@x", "\tx", "\uff1d1", "plain", "a=b", "'=1", "", None]
    memory = {"texts": [[{"n": -n, "s": value} for n, value in enumerate(values)]]}
    run = weft.streams.run_as_batch if as_batch else partial(weft.streams.run, final=True)
    report = run(spark, job, root=tmp_path, memory=memory)
    escaped = [f"'{v}" if v and v[0] in "=+-@\t\uff1d" else v for v in values]
    for flag, expected in (("true", escaped), ("false", values)):
        rows = {(int(row[0]), row[1]) for row in report.rows(f"c_{flag}")}
        assert rows == {(-n, value) for n, value in enumerate(expected)}
        (first, *_) = (tmp_path / flag).glob("*.csv")
        assert first.read_text(encoding="utf-8").splitlines()[0] == ("n,'=s" if flag == "true" else "n,=s")


def test_formulas_in_messages_of_csv_are_escaped_too(spark: SparkSession, tmp_path: Path) -> None:
    job = (
        "CREATE STREAM texts (n INT, s STRING) WITH ('connector' = 'memory');"
        "CREATE STREAM copied WITH ('topic' = 'x', 'format' = 'csv', 'escape.formulas' = 'NO')"
        " AS SELECT t.n, t.s FROM texts t"
    )
    frame = spark.sql("SELECT -1 AS n, '=1+1' AS s").withColumn(EVENT_TIME, current_timestamp())
    for flag, value in (("true", "-1,'=1+1"), ("false", "-1,=1+1")):
        (plan,) = job_of(job.replace("NO", flag), tmp_path).statements
        (message,) = build_messages(frame, plan, checkpoint="c", batch=0).collect()
        assert message.value == value


def test_a_console_prints_after_the_commit(spark: SparkSession, tmp_path: Path) -> None:
    reported: list[str] = []
    plan = job_of(SQL.replace(SINK, "'connector' = 'console'"), tmp_path)
    found = run_memory(spark, plan, BATCHES[:1], show=reported.append)
    assert reported == [
        "status, batch 0: 1 rows\nid  total  shipped\na   1      2026-01-15 10:00:02",
        "status, batch 1: 1 rows\nid  total  shipped\nb   1      NULL",
    ]
    assert [row.id for row in sorted(found.report.rows("status"))] == ["a", "b"]


@pytest.mark.parametrize(("path", "code"), [("ftp://host/out", "W2308"), ("taken", "W2309"), ("taken/below", "W2309")])
def test_a_sink_that_cannot_be_written_is_refused(tmp_path: Path, path: str, code: str) -> None:
    (tmp_path / "taken").write_text("a file")
    plan = job_of(SQL.replace("'path' = 'out'", f"'path' = '{path}'"), tmp_path).statements[0]
    with pytest.raises(ConnectorError) as caught:
        Sink.of(plan, tmp_path, Checkpoint(tmp_path / "cp"), JobRecord(groups=1, id="x"))
    assert caught.value.code == code
