"""Runs: going on, ending, beginning again, changed queries, failures, listeners."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException

from stream_checkpoints import BATCHES, SQL, as_set, order, run, shipment
from stream_spark import job_of, run_memory
from weft.errors import ConnectorError, StreamError
from weft.streams.checkpoint.folder import Checkpoint, find_checkpoint, read_job_record
from weft.streams.checkpoint.lease import lock_statement
from weft.streams.checkpoint.manifest import (
    Heartbeat,
    last_batch,
    list_batches,
    read_heartbeat,
    read_manifest,
    write_heartbeat,
)
from weft.streams.checkpoint.rejects import read_last_rejects
from weft.streams.kernel.spec import KernelProblem
from weft.streams.run.job import run_job
from weft.streams.run.report import BatchReport, Listener, QueryReport
from weft.streams.run.statement import Statement
from weft.streams.spark.kafka import read_kafka, read_kafka_batch
from weft.testing import CRASH

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MEMORY = SQL.replace("'connector' = 'files', 'path' = 'out', 'format' = 'json'", "'connector' = 'memory'")

KAFKA = """
CREATE STREAM orders (id STRING, t TIMESTAMP) WITH ('topic' = 'orders', 'format' = 'json',
  'bootstrap.servers' = '127.0.0.1:PORT', 'event.time.field' = 't');
CREATE STREAM seen WITH ('connector' = 'memory') AS SELECT o.id FROM orders o
"""


class Hearing(Listener):
    """Writes down what it hears."""

    def __init__(self) -> None:
        self.batches: list[BatchReport] = []
        self.sealed: list[QueryReport] = []
        self.failed: list[Exception] = []

    def on_batch(self, report: BatchReport) -> None:
        self.batches.append(report)

    def on_sealed(self, report: QueryReport) -> None:
        self.sealed.append(report)

    def on_failed(self, error: Exception) -> None:
        self.failed.append(error)


def code_of(spark: SparkSession, sql: str, root: Path, given: Any = BATCHES, **named: Any) -> StreamError:
    with pytest.raises(StreamError) as caught:
        run_memory(spark, job_of(sql, root), given, **named)
    return caught.value


def test_a_run_that_crashes_and_goes_on_gives_what_one_run_gives(spark: SparkSession, tmp_path: Path) -> None:
    heard = Hearing()
    given: list[Any] = [BATCHES[0], CRASH, *BATCHES[1:3], CRASH, BATCHES[3]]
    found = run_memory(spark, job_of(MEMORY, tmp_path), given, listener=heard)
    same = run(tmp_path / "same")
    assert as_set(found.rows) == as_set(same.rows)
    assert found.ledger == {side: dict(counts) for side, counts in same.ledger.items()}
    assert [b.batch for b in heard.batches] == [0, 1, 2, 3, 4]
    assert [dict(b.rows_in) for b in heard.batches[:2]] == [{"o": 3, "s": 1}, {"o": 1, "s": 2}]
    assert [b.rows_out for b in heard.batches] == [1, 2, 1, 1, 1]
    assert heard.batches[0].watermark is None
    assert heard.batches[1].held_back_by == "o"
    assert heard.batches[-1].final
    assert heard.batches[3].left.records_stored == 6
    assert heard.batches[3].left.missing_time_count == 1
    assert heard.batches[3].coordinator.matches_emitted == 5
    assert heard.batches[3].coordinator.left_records_processed == 9
    assert [r.sealed for r in heard.sealed] == [True]
    refused = code_of(spark, MEMORY, tmp_path, listener=heard)
    assert refused.code == "W2204"
    assert heard.failed == [refused]
    again = run_memory(spark, job_of(MEMORY, tmp_path), BATCHES[:1], fresh=True)
    assert as_set(again.rows) == as_set(run(tmp_path / "one", BATCHES[:1]).rows)
    assert again.checkpoint != found.checkpoint


def test_a_job_continues_on_another_number_of_cores(spark: SparkSession, tmp_path: Path) -> None:
    for batches, groups in ((1, 2), (2, 1)):
        run_memory(spark, job_of(MEMORY, tmp_path, groups=groups), BATCHES[:batches], final=False)
    found = run_memory(spark, job_of(MEMORY, tmp_path, groups=2), BATCHES)
    whole = run(tmp_path / "same")
    assert as_set(found.rows) == as_set(whole.rows)
    assert found.ledger == {side: dict(counts) for side, counts in whole.ledger.items()}


def test_a_batch_that_does_not_fit_is_repeated_with_more_tasks(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks: list[int] = []
    write = Statement.write

    def too_large(statement: Statement, *given: Any) -> Any:
        tasks.append(statement.tasks)
        if len(tasks) == 2:
            raise KernelProblem("W2211", "a group of keys is too large", "read less")
        return write(statement, *given)

    monkeypatch.setattr(Statement, "write", too_large)
    found, whole = run_memory(spark, job_of(MEMORY, tmp_path, groups=None), BATCHES), run(tmp_path / "same")
    assert tasks == [2, 2, 8, 8, 8, 8]
    assert as_set(found.rows) == as_set(whole.rows)
    assert found.ledger == {side: dict(counts) for side, counts in whole.ledger.items()}


def test_a_job_that_allows_no_more_tasks_stops(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_large(*_: Any) -> Any:
        raise KernelProblem("W2211", "a group of keys is too large", "read less")

    monkeypatch.setattr(Statement, "write", too_large)
    assert code_of(spark, MEMORY, tmp_path).code == "W2211"  # the job sets 'groups' = '2'


def test_a_changed_query_is_reported_with_what_changed_and_continues_only_on_request(
    spark: SparkSession, tmp_path: Path
) -> None:
    waiting = {**BATCHES[2], "orders": [*BATCHES[2]["orders"], order("w", 42)]}
    given = [*BATCHES[:2], waiting, BATCHES[3]]
    first = run_memory(spark, job_of(MEMORY, tmp_path), given[:2], final=False)
    filtered = MEMORY.replace("FROM orders", ", 1 AS one FROM orders")
    refused = code_of(spark, filtered, tmp_path)
    assert refused.code == "W2203"
    assert "it changed in 'select'" in refused.message
    assert "--keep state" in refused.help
    second = run_memory(spark, job_of(filtered, tmp_path), given[:3], final=False, keep="state")
    assert second.checkpoint == first.checkpoint
    assert [row.get("one") for _, row in second.rows] == [None, None, None, 1]
    assert [c["kept"] for c in read_job_record(second.checkpoint).changes] == ["state"]
    wider = filtered.replace("'10' SECOND", "'15' SECOND")
    refused = code_of(spark, wider, tmp_path, keep="state")
    assert refused.code == "W2203"
    assert "--keep state does not cover it" in refused.message
    third = run_memory(spark, job_of(wider, tmp_path), given, keep="offsets")
    assert third.checkpoint != first.checkpoint
    assert read_job_record(third.checkpoint).first_batch == 3
    assert [b for b, _ in third.rows] == [3, 4]
    assert third.ledger["left"]["in"] == 2
    assert [(r.reason, r.batch, r.row["id"]) for r in read_last_rejects(third.checkpoint, 9)] == [("ABANDONED", 2, "w")]


def test_a_policy_that_fails_commits_nothing_of_its_batch(spark: SparkSession, tmp_path: Path) -> None:
    strict = MEMORY.replace("'event.time.field' = 't'", "'event.time.field' = 't', 'late' = 'fail'", 1)
    failed = code_of(spark, strict, tmp_path)
    assert failed.code == "W2206"
    found = find_checkpoint(tmp_path / ".weft" / "streams" / "job" / "status")
    assert found is not None
    assert last_batch(found) == 1
    # What was on time is there; the same job with another policy goes on without a question.
    done = run_memory(spark, job_of(MEMORY, tmp_path), BATCHES)
    assert as_set(done.rows) == as_set(run(tmp_path / "same").rows)


def test_a_batch_that_was_committed_is_not_done_again(spark: SparkSession, tmp_path: Path) -> None:
    found = run_memory(spark, job_of(MEMORY, tmp_path), BATCHES[:2], final=False)
    # The process died after the commit, before Spark wrote its own: it brings the batch again.
    (found.checkpoint.spark / "commits" / "1").unlink()
    (found.checkpoint.spark / "commits" / ".1.crc").unlink(missing_ok=True)
    before = read_manifest(found.checkpoint, 1)
    after = run_memory(spark, job_of(MEMORY, tmp_path), BATCHES)
    assert read_manifest(after.checkpoint, 1) == before
    assert as_set(after.rows) == as_set(run(tmp_path / "same").rows)


def test_the_clock_of_a_batch_that_never_came_is_not_that_of_the_end(spark: SparkSession, tmp_path: Path) -> None:
    """A power cut may keep the heartbeat of a batch and lose what Spark planned for it."""
    found = run_memory(spark, job_of(MEMORY, tmp_path), BATCHES[:1], final=False)
    write_heartbeat(found.checkpoint, Heartbeat(batch=1, wall_clock=1, watermark=0, clocks=((0, 0),)))
    done = run_memory(spark, job_of(MEMORY, tmp_path), BATCHES[:1])
    assert done.report.sealed
    assert as_set(done.rows) == as_set(run(tmp_path / "same", BATCHES[:1]).rows)


def test_a_job_continues_until_it_is_stopped(spark: SparkSession, tmp_path: Path) -> None:
    plan = job_of("SET 'trigger' = '100ms';" + MEMORY, tmp_path)
    done = threading.Event()

    class Stopping(Listener):
        def on_batch(self, report: BatchReport) -> None:
            if report.batch == 1:
                done.set()

    memory = {
        "orders": [[order("a", 0)], [order("b", 60)]],
        "shipments": [[shipment("a", 1)], [shipment("b", 61)]],
    }
    report = run_job(spark, plan, mode="continuous", memory=memory, listener=Stopping(), stop=done.is_set)
    assert (report.sealed, report.queries[0].batches, report.queries[0].rows) == (False, 2, 2)
    assert run_job(spark, plan, mode="final", memory=memory).queries[0].rows == 2


def test_a_side_that_shows_nothing_stops_holding_the_other_back(spark: SparkSession, tmp_path: Path) -> None:
    # Of one side only: on a slow machine both would be idle, and then nothing moves.
    before, time, after = MEMORY.rpartition("'event.time.field' = 't'")
    sql = f"SET 'trigger' = '100ms';{before}{time}, 'idle.timeout' = '1s'{after}"
    plan = job_of(sql, tmp_path)
    out = threading.Event()

    class Waiting(Listener):
        def on_batch(self, report: BatchReport) -> None:
            if report.rows_out:
                out.set()

    memory: dict[str, list[Any]] = {"orders": [[order("a", 0)], [order("b", 100)]], "shipments": [[], []]}
    report = run_job(spark, plan, mode="continuous", memory=memory, listener=Waiting(), stop=out.is_set)
    assert report.queries[0].rows == 1
    assert report.queries[0].checkpoint is not None
    found = Checkpoint(report.queries[0].checkpoint)
    beats = [read_heartbeat(found, batch) for batch in list_batches(found.commits)]
    assert any("s" in beat.idle for beat in beats if beat is not None)
    # Without the idle side there was no watermark, so nothing could come out.
    assert all(beat.watermark is None for beat in beats if beat is not None and "s" not in beat.idle)


def test_what_cannot_run_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    plan = job_of(MEMORY, tmp_path)
    with pytest.raises(StreamError) as caught:
        run_job(spark, plan, only="statis", memory={})
    assert (caught.value.code, "'status'" in caught.value.help) == ("W2215", True)
    run_memory(spark, plan, BATCHES[:1], final=False)
    found = find_checkpoint(tmp_path / ".weft" / "streams" / "job" / "status")
    assert found is not None
    with lock_statement(found.lock, "status"):
        assert code_of(spark, MEMORY, tmp_path).code == "W2205"


@pytest.fixture
def without_jars(spark: SparkSession) -> Iterator[None]:
    """Let Spark see the classes that it came with, and none of the connectors of this machine."""
    jvm: Any = spark._jvm
    thread = jvm.java.lang.Thread.currentThread()
    before = thread.getContextClassLoader()
    thread.setContextClassLoader(jvm.java.lang.ClassLoader.getSystemClassLoader())
    yield
    thread.setContextClassLoader(before)


@pytest.mark.usefixtures("without_jars")
def test_a_session_without_the_kafka_connector_is_reported_with_how_to_install_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as broker:  # it is reachable; nobody gets as far as to speak to it
        plan = job_of(KAFKA.replace("PORT", str(broker.getsockname()[1])), tmp_path)
        source = plan.statements[0].inputs[0].stream
        for read in (read_kafka, read_kafka_batch):
            with pytest.raises(ConnectorError) as caught:
                read(spark, source)
            assert caught.value.code == "W2304"
            assert "weft connectors install kafka" in caught.value.help
        with pytest.raises(ConnectorError) as caught:
            run_job(spark, plan)
        assert caught.value.code == "W2304"


def test_a_format_that_spark_does_not_find_is_a_missing_connector(tmp_path: Path) -> None:
    class Reader:
        def format(self, _name: str) -> Reader:
            return self

        def options(self, **_options: str) -> Reader:
            return self

        def load(self) -> None:
            raise AnalysisException("Failed to find data source: kafka")

    session: Any = SimpleNamespace(read=Reader(), readStream=Reader())
    with socket.create_server(("127.0.0.1", 0)) as broker:
        plan = job_of(KAFKA.replace("PORT", str(broker.getsockname()[1])), tmp_path)
        for read in (read_kafka, read_kafka_batch):
            with pytest.raises(ConnectorError) as caught:
                read(session, plan.statements[0].inputs[0].stream)
            assert (caught.value.code, type(caught.value.__cause__)) == ("W2304", AnalysisException)


def test_a_connect_session_is_refused(tmp_path: Path) -> None:
    connect: Any = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    with pytest.raises(StreamError) as caught:
        run_job(connect, job_of(MEMORY, tmp_path))
    assert caught.value.code == "W2212"


def test_statements_without_state_count_and_reject_too(spark: SparkSession, tmp_path: Path) -> None:
    alone = "CREATE STREAM big WITH ('connector' = 'memory') AS SELECT o.id FROM orders o WHERE o.total > 1;"
    sql = MEMORY.partition("CREATE STREAM status")[0] + alone
    given = [{"orders": [order("a", 0), order("b", 1, total=2), "no row"]}]
    found = run_memory(spark, job_of(sql, tmp_path), given)
    assert [row for _, row in found.rows] == [{"id": "b"}]
    assert found.ledger["left"] == {
        "in": 3, "matched": 2, "waiting": 0, "unmatched": 0, "late": 0, "rejected": 1, "evicted": 0,
    }  # fmt: skip
    (reject,) = read_last_rejects(Checkpoint(found.checkpoint.root), 5)
    assert (reject.reason, reject.raw) == ("MALFORMED", "no row")
