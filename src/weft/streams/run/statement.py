"""One statement from its first batch to its last, on its checkpoint."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from weft.core.fingerprint import fingerprint
from weft.core.frozen import FrozenMap
from weft.errors import StreamError
from weft.io.spark.session import JVM_GONE
from weft.streams.checkpoint.commit import is_sealed
from weft.streams.checkpoint.folder import Checkpoint, record_of
from weft.streams.checkpoint.manifest import Manifest, batches, last_manifest, sink_files, with_aliases
from weft.streams.checkpoint.offsets import add_source, give_back, planned_sources
from weft.streams.checkpoint.recover import recover
from weft.streams.kernel.spec import KernelProblem
from weft.streams.plan.kernel_spec import kernel_spec
from weft.streams.plan.resolved import JobPlan, StatementPlan
from weft.streams.run.failing import told
from weft.streams.run.finish import flushed
from weft.streams.run.idle import idle_sides, timeouts
from weft.streams.run.report import Listener, QueryReport, join_reports, side_names
from weft.streams.run.sinks import Sink
from weft.streams.run.sources import Reader
from weft.streams.run.step import Batches, StoppedError, raw_sides
from weft.streams.spark.shipping import carried

Mode = Literal["final", "available", "continuous"]
_LOOK = 0.2
_NOT_STARTED: tuple[type[Exception], ...] = (PySparkException, *JVM_GONE)
_STOPPED: tuple[type[Exception], ...] = (StreamingQueryException, *JVM_GONE)
_FOREIGN: tuple[type[Exception], ...] = (PySparkException, OSError, KernelProblem, *JVM_GONE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """What all statements of a run share."""

    spark: SparkSession
    job: JobPlan
    reader: Reader
    mode: Mode
    listener: Listener
    show: Callable[[str], None]
    stop: Callable[[], bool] | None = None
    started: int = field(default_factory=lambda: time.time_ns() // 1000)


@dataclass(slots=True, eq=False)
class Statement:
    """A statement that is open: its batches, and the query that brings them."""

    running: Running
    plan: StatementPlan
    checkpoint: Checkpoint
    batches: Batches
    query: StreamingQuery | None = None

    @classmethod
    def opened(cls, running: Running, plan: StatementPlan, checkpoint: Checkpoint) -> Statement:
        """Bring the checkpoint to its last commit and make everything ready that a batch needs."""
        record = record_of(checkpoint)
        sink = Sink.of(plan, running.job.root, checkpoint, record)
        recover(checkpoint, sink.staging, sink=sink.folder)
        done = Batches(
            spark=running.spark,
            plan=plan,
            checkpoint=checkpoint,
            record=record,
            sink=sink,
            before=_last(plan, checkpoint),
            joins={s.number: carried(kernel_spec(plan, s, groups=record.groups)) for s in plan.kernel_steps},
            tables={} if is_sealed(checkpoint) else running.reader.tables(plan, checkpoint),
            idle=lambda last_rows: _idle(running, plan, last_rows),
            places=running.reader.places(plan),
            listener=running.listener,
            show=running.show,
        )
        return cls(running, plan, checkpoint, done)

    def start(self) -> None:
        """Start the query, unless an interrupted final run was sealed when the checkpoint was opened."""
        if is_sealed(self.checkpoint):
            return
        self._check_places()
        endless = self.running.mode == "continuous"
        frame = self.running.reader.batches(self.plan, with_ticks=self._ticks())
        give_back(self.checkpoint.spark)
        writer = (
            frame.writeStream.queryName(query_name(self.running.job, self.checkpoint))
            .foreachBatch(self.batches)
            .option("checkpointLocation", str(self.checkpoint.spark.absolute()))
        )
        if endless:
            writer = writer.trigger(processingTime=f"{_trigger(self.running.job)} milliseconds")
        else:
            writer = writer.trigger(availableNow=True)
        try:
            self.query = writer.start()
        except _NOT_STARTED as cause:
            raise told(cause, self.plan.name) from cause

    def _check_places(self) -> None:
        """Raise W2218 when input files are elsewhere than before: Spark knows files by their full path."""
        before = self.batches.before
        known = () if before is None else before.read.get("places", ())
        now = self.running.reader.places(self.plan)
        for source, old, new in zip(self.plan.inputs, known, now, strict=False):
            if old != new:
                raise StreamError(
                    f"the files of stream {source.stream.name!r} were read from {old!r} and are looked for in {new!r} now: "
                    "Spark knows files by their full path and would read all of them again",
                    code="W2218",
                    help="run the job where it ran before (`weft -C WORKSPACE stream ...`), or begin again with `--fresh`",
                    at=source.stream.at,
                )

    def _ticks(self) -> bool:
        """Whether a source of ticks is read beside the inputs.

        Spark refuses to go on with another number of sources than before, so this must not depend on the mode of
        the run: once a checkpoint has the source it stays, and one without it gets it when a side may be idle.
        """
        known = planned_sources(self.checkpoint.spark)
        if known is not None and known > len(self.plan.inputs):
            return True
        wanted = bool(timeouts(self.plan, self.running.job.settings.get("idle.timeout")))
        if wanted and known is not None:
            add_source(self.checkpoint.spark)
        return wanted

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until the query ends or some seconds are over, and say whether it has ended."""
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
        """Return what stopped the query: what its batches raised, as it was, unless it is Spark's or the disk's."""
        kept = self.batches.error or cause
        foreign = isinstance(kept, _FOREIGN) or type(kept).__module__.startswith("py4j")
        return told(kept, self.plan.name) if foreign else kept

    def end(self) -> None:
        """End the query between two batches."""
        if self.query is None:
            return
        with self.batches.busy:
            self.batches.stopping = True
        with suppress(*JVM_GONE):  # a JVM that is gone has ended its queries
            self.query.stop()

    def finish(self) -> None:
        """End the input: flush what waits and seal the checkpoint."""
        if not is_sealed(self.checkpoint):
            try:
                flushed(self.batches)
            except _FOREIGN as cause:
                raise told(cause, self.plan.name) from cause

    def report(self) -> QueryReport:
        """Return what the statement has done since its checkpoint began."""
        manifest = last_manifest(self.checkpoint) or Manifest(batch=-1)
        sink = self.batches.sink
        return QueryReport(
            sink=self.plan.name,
            location=sink.location(self.running.job.root),
            format=sink.format,
            rows=manifest.total_rows,
            ledger=manifest.ledger,
            sides=side_names(self.plan),
            batches=len(batches(self.checkpoint.commits)),
            watermark=manifest.watermark,
            sealed=is_sealed(self.checkpoint),
            checkpoint=self.checkpoint.root,
            files=sink_files(self.checkpoint) if sink.folder is not None else (),
            joins=join_reports(self.plan, manifest),
        )


def query_name(job: JobPlan, checkpoint: Checkpoint) -> str:
    """Return the name of a statement's query, which no other query of the session may have.

    Jobs that are given as texts are all called ``job``, so the place of the checkpoint is part of the name.
    """
    folder = checkpoint.root.parent
    return f"weft-{job.name}-{folder.name}-{fingerprint(str(folder.resolve()))[:8]}"


def _last(plan: StatementPlan, checkpoint: Checkpoint) -> Manifest | None:
    found = last_manifest(checkpoint)
    return None if found is None else with_aliases(found, raw_sides(plan))


def _idle(running: Running, plan: StatementPlan, last_rows: Mapping[str, int]) -> FrozenMap[str, Any]:
    if running.mode != "continuous":
        return FrozenMap()  # a run over what there is ends by itself: nobody waits
    return idle_sides(
        plan,
        last_rows,
        started=running.started,
        now=time.time_ns() // 1000,
        default=running.job.settings.get("idle.timeout"),
    )


def _trigger(job: JobPlan) -> int:
    said = job.settings.get("trigger")
    return 1000 if said is None else max(1, said.microseconds // 1000)


def watch(statements: list[Statement], stop: Callable[[], bool] | None) -> None:
    """Wait while queries run; end them when `stop` says so or when one of them fails."""
    try:
        while not (stop is not None and stop()):
            # Each of them is asked: one that fails while another goes on must be heard.
            ended = [statement.wait(_LOOK) for statement in statements]
            if all(ended):
                return
    finally:
        for statement in statements:
            statement.end()
        for statement in statements:
            _ended(statement)


def _ended(statement: Statement) -> None:
    try:
        statement.wait()
    except StoppedError:
        return


def refuse_connect(spark: SparkSession) -> None:
    """Raise `StreamError` W2212 on a Connect session: batches would be done on the server."""
    if type(spark).__module__.startswith("pyspark.sql.connect."):
        raise StreamError(
            "a streaming job runs in the process that holds Spark, and this session is a Connect one",
            code="W2212",
            help="use a classic session, for example `weft stream run`, or leave `spark.remote` out of weft.yml",
        )
