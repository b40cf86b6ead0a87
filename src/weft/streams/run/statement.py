"""One statement on its checkpoint, from its first batch to its last.

`weft.streams.run.job.run_statements` has the order of the steps.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, cast

from pyspark import Accumulator
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from weft.core.crash import crash_point
from weft.core.fingerprint import fingerprint
from weft.core.frozen import EMPTY, FrozenMap
from weft.errors import StreamError
from weft.io.spark.session import JVM_GONE, collect_from_tasks, count_cores
from weft.io.stores.store_path import spark_path
from weft.streams.checkpoint.cached_files import open_files
from weft.streams.checkpoint.commit import commit_batch, decide_heartbeat, finish_moves, is_sealed, seal
from weft.streams.checkpoint.earlier_state import list_state
from weft.streams.checkpoint.folder import Checkpoint, JobRecord, read_job_record
from weft.streams.checkpoint.ledger import TaskReport, select_reports
from weft.streams.checkpoint.limits import enforce_limits
from weft.streams.checkpoint.manifest import (
    Manifest,
    last_manifest,
    list_batches,
    read_manifest,
    sink_files,
    with_aliases,
)
from weft.streams.checkpoint.offsets import add_source, check_reading, count_sources, describe_reading, drop_unplanned
from weft.streams.checkpoint.recover import recover
from weft.streams.checkpoint.status import source_sides
from weft.streams.kernel.spec import NEVER, KernelProblem
from weft.streams.plan.clocks import collect_timeouts, find_idle_sides
from weft.streams.plan.kernel_spec import build_task
from weft.streams.plan.resolved import JobPlan, StatementPlan
from weft.streams.run.endpoints import Reader, Sink, Written
from weft.streams.run.failing import collect_messages, explain_failure
from weft.streams.run.opening import choose_tasks
from weft.streams.run.report import Listener, QueryReport, batch_report, join_reports, source_names
from weft.streams.run.stages import Stages
from weft.streams.spark.files import csv_reader
from weft.streams.spark.kernel_stage import BatchContext, ReportsParam, ShippedJoin, empty_batch, ship_join

Mode = Literal["final", "available", "continuous"]
_LOOK = 0.2  # seconds between two looks at a query or a request to stop
_TOO_LARGE, _SPLIT, _MOST_TASKS = "KernelProblem: W2211:", 4, 1024
_NOT_STARTED: tuple[type[Exception], ...] = (PySparkException, *JVM_GONE)
_STOPPED: tuple[type[Exception], ...] = (StreamingQueryException, *JVM_GONE)
_FOREIGN: tuple[type[Exception], ...] = (PySparkException, OSError, KernelProblem, *JVM_GONE)


class StoppedError(Exception):
    """A batch that was not started because the run is stopping; internal to `weft.streams.run`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """The context that all statements of a run share."""

    spark: SparkSession
    job: JobPlan
    reader: Reader
    mode: Mode
    listener: Listener
    show: Callable[[str], None]
    stop: Callable[[], bool] | None = None
    started: int = field(default_factory=lambda: time.time_ns() // 1000)


class RunBatch(Protocol):
    """Runs one batch of a statement, from its rows to the commit."""

    def __call__(self, statement: Statement, rows: DataFrame, number: int, *, final: bool) -> None:
        """Run the batch; `final` marks the last one."""


@dataclass(slots=True, eq=False, kw_only=True)
class Statement:
    """A statement with an open checkpoint, and its Spark query.

    `before` is the manifest of the last batch; the lock of the checkpoint prevents other commits.
    `places` are the paths of the inputs.
    """

    running: RunContext
    plan: StatementPlan
    checkpoint: Checkpoint
    record: JobRecord
    sink: Sink
    before: Manifest | None
    reports: Accumulator[list[dict[str, Any]]]
    tables: Mapping[int, Callable[[], DataFrame]]
    places: tuple[str, ...]
    query: StreamingQuery | None = None
    error: Exception | None = None
    stopping: bool = False
    busy: threading.Lock = field(default_factory=threading.Lock)
    tasks: int = 0
    least_tasks: int = 0
    joins: Mapping[int, ShippedJoin] = EMPTY

    @classmethod
    def open(cls, running: RunContext, plan: StatementPlan, checkpoint: Checkpoint) -> Statement:
        """Restore the checkpoint to its last commit and prepare what batches need."""
        record = read_job_record(checkpoint)
        sink = Sink.of(plan, running.job.root, checkpoint, record)
        recover(checkpoint, sink.staging, sink=sink.folder)
        return cls(
            running=running,
            plan=plan,
            checkpoint=checkpoint,
            record=record,
            sink=sink,
            before=_read_last(plan, checkpoint),
            reports=collect_from_tasks(running.spark, ReportsParam()),
            tables={} if is_sealed(checkpoint) else running.reader.tables(plan, checkpoint),
            places=running.reader.places(plan),
        )

    # -- the query

    def start(self, run_batch: RunBatch) -> None:
        """Start the query, unless opening the checkpoint sealed it."""
        if is_sealed(self.checkpoint):
            return
        self._check_places()
        endless = self.running.mode == "continuous"
        frame = self.running.reader.batches(self.plan, with_ticks=self._ticks())
        # No query may be running: Spark would read these entries as planned ones.
        drop_unplanned(self.checkpoint.spark)
        writer = (
            frame.writeStream.queryName(query_name(self.running.job, self.checkpoint))
            .foreachBatch(lambda rows, number: self._take(run_batch, rows, number))
            .option("checkpointLocation", spark_path(self.checkpoint.spark))
        )
        if endless:
            writer = writer.trigger(processingTime=f"{_trigger_millis(self.running.job)} milliseconds")
        else:
            writer = writer.trigger(availableNow=True)
        try:
            self.query = writer.start()
        except _NOT_STARTED as cause:
            raise explain_failure(cause, self.plan.name) from cause

    def _take(self, run_batch: RunBatch, rows: DataFrame, number: int) -> None:
        """Run a batch of the query and keep its error, because Spark would convert it to text."""
        with self.busy:
            try:
                self._check_going_on()
                # Earlier batches belong to the checkpoint whose offsets this one took over.
                if number >= self.record.first_batch:
                    run_batch(self, rows, number, final=False)
            except Exception as error:
                self.error = error
                raise

    def _check_going_on(self) -> None:
        # Spark may begin one more batch after `end`, which must not commit: the lock is released soon.
        if self.stopping:
            raise StoppedError

    def _check_places(self) -> None:
        """Raise W2218 if input files moved: Spark identifies files by their full path."""
        known = () if self.before is None else self.before.read.get("places", ())
        for source, old, new in zip(self.plan.inputs, known, self.places, strict=False):
            if old != new:
                raise StreamError(
                    f"the files of stream {source.stream.name!r} were read from {old!r} and are now expected in {new!r}: "
                    "Spark identifies files by their full path and would read all of them again",
                    code="W2218",
                    help="run the job where it ran before (`weft -C WORKSPACE stream ...`), or begin again with `--fresh`",
                    at=source.stream.at,
                )

    def _ticks(self) -> bool:
        """Return whether the query reads a source of ticks.

        Spark does not continue with another number of sources, so this must not depend on the mode of the run:
        a checkpoint keeps the source once it has it, and gets it when a side may become idle.
        """
        known = count_sources(self.checkpoint.spark)
        if known is not None and known > len(self.plan.inputs):
            return True
        is_needed = bool(collect_timeouts(self.plan, self.running.job.settings.get("idle.timeout")))
        if is_needed and known is not None:
            add_source(self.checkpoint.spark)
        return is_needed

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until the query ends, at most some seconds, and return whether it has ended."""
        if self.query is None:
            return True
        try:
            if seconds is None:
                self.query.awaitTermination()
                return True
            return bool(self.query.awaitTermination(seconds))  # type: ignore[arg-type]  # takes fractions
        except _STOPPED as cause:
            raise self._failure(cause) from cause

    def _failure(self, cause: Exception) -> Exception:
        """Return the error that stopped the query; errors of Spark and of the disk are explained."""
        kept = self.error or cause
        foreign = isinstance(kept, _FOREIGN) or type(kept).__module__.startswith("py4j")
        return explain_failure(kept, self.plan.name) if foreign else kept

    def end(self) -> None:
        """End the query between two batches."""
        if self.query is None:
            return
        # `busy` is free between two batches only: a batch that runs ends with its commit.
        with self.busy:
            self.stopping = True
        with suppress(*JVM_GONE):  # a dead JVM has no queries
            self.query.stop()

    # -- one batch

    def has_committed(self, number: int) -> bool:
        """Return whether a batch is committed; Spark repeats the last one if it was killed before it recorded its end."""
        return self.checkpoint.commit_file(number).exists()

    def finish_commit(self, number: int) -> None:
        """Rename the files of a committed batch to their final paths."""
        committed = read_manifest(self.checkpoint, number)
        # Skipping is right only if Spark repeats the batch with the rows that were committed.
        check_reading(self.checkpoint, committed)
        finish_moves(committed)

    def begin_batch(self, number: int, *, final: bool) -> Stages:
        """Decide watermark and clocks, write them, and return the stages of the batch."""
        began = time.monotonic()
        heartbeat = decide_heartbeat(
            self.checkpoint,
            self.plan,
            number,
            self.before,
            idle=EMPTY if final else self._idle(),
            wall_clock=time.time_ns() // 1000,
            final=final,
        )
        crash_point("stream_heartbeat")
        self._share_keys()
        self.reports.value.clear()
        return Stages(
            plan=self.plan,
            joins=self.joins,
            tables=self.tables,
            heartbeat=heartbeat,
            moment=BatchContext(
                batch=number,
                state=() if self.before is None else list_state(self.checkpoint, self.before),
                is_first=self.before is None,
                watermark=heartbeat.watermark,
                wall_clock=heartbeat.wall_clock,
                root=str(self.checkpoint.root.absolute()),
                tasks=self.tasks,
                reports=self.reports,
            ),
            began=began,
        )

    def use_more_tasks(self, failure: Exception) -> bool:
        """Return whether a batch that failed can be repeated with more tasks: its rows did not fit into those it had."""
        is_too_large = _TOO_LARGE in collect_messages(failure)
        more = min(_SPLIT * self.tasks, int(self.running.job.settings.get("groups") or _MOST_TASKS))
        if not is_too_large or more <= self.tasks:
            return False
        self.least_tasks = more
        return True

    def _share_keys(self) -> None:
        """Choose the number of tasks of the next batch; more of them share the keys when the state has grown."""
        stats = EMPTY if self.before is None else self.before.stats
        chosen = choose_tasks(self.running.job, count_cores(self.running.spark), stats)
        tasks = max(chosen, self.least_tasks)
        if tasks != self.tasks:
            self.tasks = tasks
            self.joins = {
                s.number: ship_join(build_task(self.plan, s, groups=tasks), self.checkpoint.root)
                for s in self.plan.kernel_steps
            }

    def _idle(self) -> FrozenMap[str, Any]:
        """Return the sides that the watermark ignores, with the start of their idle time."""
        if self.running.mode != "continuous":
            return FrozenMap()  # a bounded run ends by itself and does not wait for idle sides
        return find_idle_sides(
            self.plan,
            EMPTY if self.before is None else self.before.last_rows,
            started=self.running.started,
            now=time.time_ns() // 1000,
            default=self.running.job.settings.get("idle.timeout"),
        )

    def write(self, stages: Stages, selected: DataFrame) -> Written:
        """Run the batch as one Spark job: rows are staged or sent, the kernel writes its state."""
        # A sealed sink without rows gets one empty file, so that readers see its columns.
        nothing_yet = self.before is None or self.before.total_rows == 0
        keep_empty = stages.heartbeat.final and nothing_yet
        return self.sink.write(selected, stages.moment.batch, keep_empty=keep_empty)

    def collect_reports(self, stages: Stages) -> tuple[TaskReport, ...]:
        """Return what each task of the batch reported; rows above the limits are evicted."""
        crash_point("stream_kernel")
        crash_point("stream_staged")
        joins = [s.number for s in self.plan.kernel_steps]
        number, mark = stages.moment.batch, stages.moment.watermark
        reports = select_reports(self.checkpoint, number, joins, self.tasks, self.reports.value)
        if self.tasks == 1:  # it has enforced them itself
            return reports
        whole = [build_task(self.plan, step) for step in self.plan.kernel_steps]
        files = open_files(self.checkpoint.root)
        return enforce_limits(files, whole, reports, watermark=NEVER if mark is None else mark)

    def commit(self, stages: Stages, written: Written, reports: tuple[TaskReport, ...]) -> None:
        """Check the ledger, commit the batch and report it."""
        number, final = stages.moment.batch, stages.heartbeat.final
        manifest = commit_batch(
            self.checkpoint,
            number,
            reports,
            written.moves,
            before=self.before,
            heartbeat=stages.heartbeat,
            inputs=source_sides(self.plan),
            tables=stages.table_counts(),
            rows=written.rows,
            read=EMPTY if final else FrozenMap(describe_reading(self.checkpoint.spark, number), places=self.places),
            seconds=time.monotonic() - stages.began,
        )
        self.before = manifest
        text = self.sink.shown(self.running.spark, manifest)
        if text:
            self.running.show(text)
        self.running.listener.on_batch(batch_report(self.plan, manifest))

    # -- the end

    def finish(self, run_batch: RunBatch) -> None:
        """End the input: emit all waiting rows in a batch without input, and seal the checkpoint."""
        if is_sealed(self.checkpoint):
            return
        try:
            crash_point("stream_flush")
            # The number that Spark would give the next batch: it runs no more batches on this checkpoint.
            number = self.record.first_batch if self.before is None else self.before.batch + 1
            run_batch(self, empty_batch(self.running.spark, self.plan), number, final=True)
            seal(self.checkpoint, read_manifest(self.checkpoint, number))
            self.sink.forget_staging()
        except _FOREIGN as cause:
            raise explain_failure(cause, self.plan.name) from cause

    def report(self) -> QueryReport:
        """Return the report of the statement since its checkpoint was created."""
        manifest = last_manifest(self.checkpoint) or Manifest(batch=-1)
        return QueryReport(
            sink=self.plan.name,
            location=self.sink.location(self.running.job.root),
            format=self.sink.format,
            rows=manifest.total_rows,
            ledger=manifest.ledger,
            sides=source_names(self.plan),
            batches=len(list_batches(self.checkpoint.commits)),
            watermark=manifest.watermark,
            sealed=is_sealed(self.checkpoint),
            checkpoint=cast("Path", self.checkpoint.root),  # or a place in a store
            files=cast("tuple[Path, ...]", sink_files(self.checkpoint)) if self.sink.folder is not None else (),
            joins=join_reports(self.plan, manifest),
            read=csv_reader(self.running.spark, self.plan, self.sink.spec),
        )


def query_name(job: JobPlan, checkpoint: Checkpoint) -> str:
    """Return the name of a statement's query, which is unique in the session.

    Jobs from strings are all named ``job``, so the path of the checkpoint is part of the name.
    """
    folder = checkpoint.root.parent
    return f"weft-{job.name}-{folder.name}-{fingerprint(str(folder.resolve()))[:8]}"


def _read_last(plan: StatementPlan, checkpoint: Checkpoint) -> Manifest | None:
    manifest = last_manifest(checkpoint)
    return None if manifest is None else with_aliases(manifest, source_sides(plan))


def _trigger_millis(job: JobPlan) -> int:
    trigger = job.settings.get("trigger")
    return 1000 if trigger is None else max(1, trigger.microseconds // 1000)


def wait_all(statements: list[Statement], stop: Callable[[], bool] | None) -> None:
    """Wait for queries; end all if `stop` returns True or one of them fails."""
    try:
        while not (stop is not None and stop()):
            # Poll each query: a failure must be noticed while others continue.
            ended = [statement.wait(_LOOK) for statement in statements]
            if all(ended):
                return
    finally:
        for statement in statements:
            statement.end()
        # All have been asked to end before one is waited for, so they end at the same time.
        for statement in statements:
            with suppress(StoppedError):
                statement.wait()


def refuse_connect(spark: SparkSession) -> None:
    """Raise `StreamError` W2212 on a Connect session: batches would run on the server."""
    if type(spark).__module__.startswith("pyspark.sql.connect."):
        raise StreamError(
            "a streaming job needs a classic session: with Spark Connect its batches would run on the server",
            code="W2212",
            help="use a classic session, for example `weft stream run`, or remove `spark.remote` from weft.yml",
        )
