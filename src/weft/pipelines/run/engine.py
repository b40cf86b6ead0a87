"""Execution of the stages of a run: read rows, chain operations, write outputs and steps, record counts.

A step is the working set written to disk between two operations; later operations and a resume start from it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pyspark.sql.types import StructField, StructType

from weft.core.crash import crash_point
from weft.errors import Diagnostic, RunError, WeftError
from weft.expr.spark.types import to_spark
from weft.io.spark.files import stage_files
from weft.io.spark.session import Session
from weft.io.staged import Staged, StagedFile
from weft.pipelines.plan.catalog import Catalog
from weft.pipelines.plan.operations.resolved import ResolvedDelete, ResolvedOperation, ResolvedOutput
from weft.pipelines.plan.project import ProjectPlan
from weft.pipelines.plan.reads import Read
from weft.pipelines.plan.stages import list_stages
from weft.pipelines.run.failing import OperationFailedError, explain_failure, operation_of
from weft.pipelines.run.moving import Listing, listing, output_backup, output_stage, steps_folder, table_stage
from weft.pipelines.run.progress import Interrupts, Progress, watched
from weft.pipelines.spark.counts import Counts
from weft.pipelines.spark.frame import Lowering, RunMoment, WorkingFrame, started
from weft.pipelines.spark.lower import lower_checkpoint, lower_operation, lower_output, opened
from weft.pipelines.spark.read import fingerprint_rows, read_table
from weft.pipelines.spark.stage import stage as stage_output
from weft.pipelines.store.locks import Heartbeat
from weft.pipelines.store.records import OutputRecord, RunRecord
from weft.pipelines.store.writer import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def write_step(df: DataFrame, root: Path, run_id: str, seq: int) -> Staged:
    """Write the working set after an operation; the list of its files is written last and marks it as complete."""
    folder = steps_folder(root, run_id) / str(seq)
    staged = stage_files(df, folder, format="parquet", run_id=run_id)
    part = folder.with_suffix(".json.part")
    part.write_text(json.dumps([asdict(file) for file in staged.files]), encoding="utf-8")
    part.replace(folder.with_suffix(".json"))
    return staged


def whole_steps(root: Path, run_id: str) -> tuple[int, ...]:
    """Return the operations whose working set is complete on disk, newest first."""
    folder = steps_folder(root, run_id)
    lists = folder.glob("*.json") if folder.is_dir() else ()
    return tuple(sorted((int(file.stem) for file in lists if file.stem.isdigit() and _is_whole(file)), reverse=True))


def _is_whole(listed: Path) -> bool:
    """Whether every file of a step is as it was written; a damaged list is treated as a missing one."""
    try:
        files = [StagedFile(**file) for file in json.loads(listed.read_text(encoding="utf-8"))]
        return not any(file.problem(listed.with_suffix("")) for file in files)
    except (OSError, ValueError, TypeError):
        return False


def read_step(session: Session, plan: ProjectPlan, root: Path, run_id: str, seq: int) -> WorkingFrame:
    """Return the working set that was written after an operation."""
    before = [op for op in plan.operations if op.seq <= seq]
    working = before[-1].after
    # With the planned schema Spark runs no job that infers one from the footers of the files.
    schema = StructType([StructField(column.name, to_spark(column.dtype)) for column in working.schema.fields])
    df = session.spark.read.schema(schema).parquet(str(steps_folder(root, run_id) / str(seq)))
    return started(df, working, deleted=any(isinstance(op, ResolvedDelete) for op in before))


T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What an earlier attempt of the run left: staged outputs, and the step to continue from."""

    outputs: tuple[OutputRecord, ...] = ()
    step: int | None = None


@dataclass(slots=True, kw_only=True)
class Work:
    """A run in progress: its plan, session, store and observers."""

    plan: ProjectPlan
    catalog: Catalog
    root: Path
    session: Session
    store: Store
    run: RunRecord
    rows_of: str
    """The run id in file names: for a rerun the run that it repeats, whose files it replaces."""
    moment: RunMoment
    progress: Progress
    heartbeat: Heartbeat
    interrupts: Interrupts
    sizes: dict[str, int | None] = field(default_factory=dict)
    warnings: list[Diagnostic] = field(default_factory=list)
    merged: dict[int, Listing] = field(default_factory=dict)
    """The content of the targets of merges when they were read, by the operation."""

    def read(self, read: Read) -> DataFrame:
        """Return the rows of a read; its warnings become warnings of the run, each once."""

        def notice(finding: Diagnostic) -> None:
            if finding not in self.warnings:
                self.warnings.append(finding)

        return read_table(self.session.spark, read, self.catalog, self.root, run_at=self.moment.at, notice=notice)


def record_row_fingerprints(work: Work) -> None:
    """Record a fingerprint of the rows of every read whose data has times of knowledge."""
    fingerprints: dict[str, str] = {}
    for read in work.plan.reads:
        work.heartbeat.check()
        # The operation that reads the data reports its errors.
        with suppress(Exception):
            spark, moment = work.session.spark, work.moment
            rows = fingerprint_rows(spark, read, work.catalog, work.root, run_at=moment.at)
            if rows is not None:
                fingerprints[read.name] = rows
    if fingerprints:
        # The jobs above may take long, and a run that was taken over must write nothing.
        work.heartbeat.check()
        work.store.record_row_fingerprints(work.run.id, fingerprints)


def execute_stages(work: Work, kept: Kept | None = None) -> tuple[OutputRecord, ...]:
    """Run every operation up to the last output and return the staged outputs.

    Raises `OperationFailedError` with the operation that failed.
    """
    kept = kept or Kept()
    walk = _Walk(work, kept)
    plan = work.plan
    by_seq = {op.seq: op for op in plan.operations}
    last = max((op.seq for op in plan.operations if isinstance(op, ResolvedOutput)), default=0)
    missing = [s for s in by_seq if isinstance(by_seq[s], ResolvedOutput) and s not in walk.staged]
    if not missing:
        # An earlier attempt failed between its last output and the publication: nothing is computed again.
        return walk.outputs()
    for stage in list_stages(plan):
        seq = stage.seq
        if seq is None or seq > last or (kept.step is not None and seq <= kept.step):
            continue
        if stage.kind == "checkpoint":
            walk.checkpoint(by_seq[seq])
        elif stage.kind == "output":
            walk.output(by_seq[seq])
        elif stage.kind in ("update", "aggregate", "append", "delete"):
            walk.operation(by_seq[seq])
    return walk.outputs()


class _Walk:
    """The position in a plan: the working set so far, and the operations that no action has run yet."""

    def __init__(self, work: Work, kept: Kept) -> None:
        self.work = work
        self.counts = Counts()
        self.env = Lowering(
            session=work.session.spark,
            read=work.read,
            run=work.moment,
            counts=self.counts,
            size_of=lambda read: work.sizes.get(read.name),
            eager=work.plan.project.materialization == "eager",
        )
        self.staged = {output.seq: output for output in kept.outputs}
        self.kept = kept
        self.pending: list[ResolvedOperation] = []
        self._frame: WorkingFrame | None = None

    def outputs(self) -> tuple[OutputRecord, ...]:
        return tuple(self.staged[seq] for seq in sorted(self.staged))

    def frame(self) -> WorkingFrame:
        if self._frame is None:
            work, step = self.work, self.kept.step
            if step is None:
                self._frame = opened(work.plan, self.env)
            else:
                self._frame = read_step(work.session, work.plan, work.root, work.run.id, step)
        return self._frame

    def operation(self, op: ResolvedOperation) -> None:
        self.work.heartbeat.check()
        self.pending.append(op)
        self._frame = self._explain((op,), lambda: lower_operation(self.frame(), op, self.env))

    def checkpoint(self, op: ResolvedOperation) -> None:
        work = self.work

        def action() -> Staged:
            return write_step(lower_checkpoint(self.frame(), self.env), work.root, work.run.id, op.seq)

        self._act(tuple(self.pending), action)
        # From here on the plan of Spark starts at the files, so that no later action repeats the operations before.
        self._frame = read_step(work.session, work.plan, work.root, work.run.id, op.seq)

    def output(self, op: ResolvedOperation) -> None:
        assert isinstance(op, ResolvedOutput)  # noqa: S101  # the kind of the stage
        if op.seq in self.staged:
            return
        work, target = self.work, op.target
        files = target.kind in ("files", "file")
        place = work.root / target.location
        stage_of = (work.root, work.run.id, op.seq)
        folder = output_stage(place, *stage_of) if files else table_stage(*stage_of)
        if op.mode == "merge" and files:
            # Listed before its rows are read: a change after this moment is detected when the run publishes.
            work.merged[op.seq] = listing(place)

        def action() -> Staged:
            rows = lower_output(self.frame(), op, self.env)
            return stage_output(
                rows, op, folder, run_id=work.run.id, rows_of=work.rows_of, catalog=work.catalog, root=work.root
            )

        staged = self._act((*self.pending, op), action)
        self._verify(op, staged)
        record = OutputRecord(
            run_id=work.run.id,
            seq=op.seq,
            state="staged",
            stage=staged.location,
            target=str(place) if files else target.location,
            backup=str(output_backup(place, *stage_of)) if files else "",
            kind=target.kind,
            format=target.format,
            rows=staged.rows,
            columns=staged.columns,
            manifest=staged.files,
            register_as=op.register_as,
        )
        work.store.output_staged(record)
        crash_point("staged")
        self.staged[op.seq] = record

    def _act(self, operations: Sequence[ResolvedOperation], action: Callable[[], Staged]) -> Staged:
        """Run one action of Spark for several operations and record their counts."""
        work, seqs = self.work, [op.seq for op in operations]
        work.heartbeat.check()
        for seq in seqs:
            work.store.operation_started(work.run.id, seq)
        with watched(work.session, work.run.id, seqs, work.progress, lambda: work.heartbeat.is_lost):
            crash_point("operation")
            staged = self._explain(operations, action)
        counts = self.counts.result()
        for seq in seqs:
            if seq in counts:
                work.store.operation_done(work.run.id, counts[seq])
            work.progress.operation(seq, 1.0, counts.get(seq))
        self.pending = []
        return staged

    def _explain(self, operations: Sequence[ResolvedOperation], action: Callable[[], T]) -> T:
        try:
            return action()
        except Exception as failure:
            # An action that failed never delivers its counts; the next `result` would wait for them.
            self.counts.forget()
            # A job that was interrupted because the run lost its locks fails for that reason.
            self.work.heartbeat.check()
            seq = operations[-1].seq if operations else 0
            name = f"operation {seq} {operations[-1].name!r}" if operations else "reading"
            error = explain_failure(failure, name, self.env)
            raise OperationFailedError(
                operation_of(error, operations), error, [op.seq for op in operations]
            ) from failure

    def _verify(self, op: ResolvedOutput, staged: Staged) -> None:
        """Raise W1512 unless the planned columns and the counted number of rows were written."""
        counts = self.counts.result().get(op.seq)
        problem = ""
        if staged.columns != op.columns:
            problem = f"columns {', '.join(staged.columns)} were written instead of {', '.join(op.columns)}"
        elif op.mode != "merge" and counts is not None and counts.rows_changed != staged.rows:
            problem = f"{staged.rows} rows were written, but {counts.rows_changed} were counted"
        if problem:
            error: WeftError = RunError(
                f"output {op.seq} differs from its plan: {problem}",
                code="W1512",
                help="nothing was published; run it again",
            )
            raise OperationFailedError(op.seq, error)
