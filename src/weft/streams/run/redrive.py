"""Redrive: process rejected rows again and write the changes as corrections.

::

    <sink path>.corrections/part-<checkpoint>-<n>-*    _op  then the columns of the sink
                                                       +I   a row that the sink lacks
                                                       -D   a row that the sink has and should not

Before a checkpoint is sealed, late rows are matched with the remaining state, which ``join.retention`` keeps longer.
Afterwards all inputs are read again as a batch, and the corrections are the full difference.  Rows of the sink, plus
``+I``, minus ``-D``, are never further from the batch result than before.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from weft.core.frozen import FrozenMap
from weft.core.names import find_similar, format_list, quote_for_shell
from weft.errors import StreamError
from weft.expr.spark.frames import functions_of
from weft.io.stores.store_path import Place
from weft.streams.checkpoint.commit import is_sealed
from weft.streams.checkpoint.folder import Checkpoint, find_checkpoint, read_job_record
from weft.streams.checkpoint.lease import lock_statement
from weft.streams.checkpoint.manifest import Move
from weft.streams.checkpoint.offsets import check_commits
from weft.streams.checkpoint.recover import (
    RedriveRecord,
    RedriveReport,
    collect_taken,
    count_retracted,
    finish_redrive,
    read_redrives,
    recover,
    write_redrive,
)
from weft.streams.checkpoint.rejects import RejectFile, list_reject_files, read_rejects
from weft.streams.kernel.spec import KernelProblem
from weft.streams.plan.identity import compare_parts, describe_parts
from weft.streams.plan.resolved import JobPlan, StatementPlan
from weft.streams.run.failing import explain_failure
from weft.streams.run.opening import describe_changes, job_folder
from weft.streams.run.redrive_rows import compare_with_inputs, look_up_rejects
from weft.streams.spark.files import as_files, prepare_folder, sink_folder, stage_rows
from weft.streams.sql.spec import SinkSpec

OP, PLUS, MINUS = "_op", "+I", "-D"
REDRIVABLE = ("LATE", "EVICTED", "DUPLICATE", "NO_EVENT_TIME")
RejectedPlaces = Mapping[RejectFile, tuple[int, ...]]
"""Rejected rows by file and position."""


def redrive_job(
    spark: SparkSession,
    plan: JobPlan,
    sink: str | None = None,
    *,
    reasons: Sequence[str] = (),
    time_column: str | None = None,
    dry_run: bool = False,
) -> tuple[RedriveReport, ...]:
    """Process the rejected rows of a job again, or of the statement that writes `sink`.

    `reasons` are redriven in addition to LATE; rows without event time need `time_column`.
    Raises `StreamError` W2216 if there are no such rows, W2205 while the job runs.
    """
    selected = _check_reasons(reasons, time_column)
    chosen = [s for s in plan.statements if sink in (None, s.name)]
    reports = []
    for statement in chosen:
        try:
            done = _redrive_statement(spark, plan, statement, selected, time_column, dry_run=dry_run)
        except (OSError, KernelProblem) as cause:
            raise explain_failure(cause, statement.name) from cause
        if done is not None:
            reports.append(done)
    if not reports:
        raise StreamError(
            f"nothing to redrive in {sink or plan.name!r}: no row was rejected as {format_list(selected)}, "
            "or all were redriven",
            code="W2216",
            help=f"`weft stream status {quote_for_shell(plan.name)} --rejects 20` shows rejected rows with their reasons",
        )
    return tuple(reports)


def _check_reasons(reasons: Sequence[str], time_column: str | None) -> tuple[str, ...]:
    requested = tuple(reason.upper() for reason in reasons)
    for reason in requested:
        if reason not in REDRIVABLE:
            close = find_similar(reason, REDRIVABLE, most=1)
            raise StreamError(
                f"rows of reason {reason!r} cannot be redriven",
                code="W2216",
                help=f"did you mean {close[0]}?" if close else f"use one of {format_list(REDRIVABLE)}",
            )
    if ("NO_EVENT_TIME" in requested) != (time_column is not None):
        raise StreamError(
            "the reason NO_EVENT_TIME and --time are valid only together",
            code="W2216",
            help="pass both: --reason NO_EVENT_TIME --time COLUMN",
        )
    return tuple(dict.fromkeys(("LATE", *requested)))


def _redrive_statement(
    spark: SparkSession,
    job: JobPlan,
    plan: StatementPlan,
    reasons: tuple[str, ...],
    time_column: str | None,
    *,
    dry_run: bool,
) -> RedriveReport | None:
    checkpoint = find_checkpoint(job_folder(job) / plan.name)
    if checkpoint is None:
        return None
    # The lock of a run: a redrive reads state and rejects that a batch would change.
    with lock_statement(checkpoint.lock, plan.name) as lease:
        checkpoint = replace(checkpoint, lease=lease)
        _check_unchanged(plan, checkpoint)
        check_commits(checkpoint)
        recover(checkpoint)
        before = read_redrives(checkpoint)
        # As with batches, only the last one can be unfinished.
        if before:
            finish_redrive(before[-1])
        open_rows = _list_open_rows(checkpoint, reasons, before)
        if not open_rows:
            return None
        sink = corrections_sink(plan, checkpoint)
        changes = _find_corrections(spark, job, plan, checkpoint, open_rows, before, time_column)
        folder = sink_folder(sink, job.root)
        number = len(before) + 1
        own = read_job_record(checkpoint).id
        moves, counts = _stage_corrections(changes.frame, sink, folder, own, number, dry_run=dry_run)
        taken = {f.name: places for f, places in changes.taken.items() if places}
        # Recorded even without corrections: rows that were taken are decided, and not processed again.
        if not dry_run and (taken or counts[PLUS] or counts[MINUS]):
            record = RedriveRecord(
                number=number,
                at=time.time_ns() // 1000,
                reasons=reasons,
                taken=FrozenMap(taken),
                taken_back=FrozenMap(changes.taken_back),
                plus=counts[PLUS],
                minus=counts[MINUS],
                files=moves,
            )
            write_redrive(checkpoint, record)
    all_open, count = (sum(map(len, places.values())) for places in (open_rows, taken))
    return RedriveReport(
        sink=plan.name,
        taken=count,
        plus=counts[PLUS],
        minus=counts[MINUS],
        undecided=all_open - count,
        location=str(sink.connector["path"]),
    )


def _check_unchanged(plan: StatementPlan, checkpoint: Checkpoint) -> None:
    """Raise `StreamError` W2203 if the statement changed since it wrote its rows."""
    record = read_job_record(checkpoint)
    change = compare_parts(record.parts, describe_parts(plan))
    if change.keeps in ("same", "all"):
        return
    names, lines = describe_changes(change, with_reasons=False)
    raise StreamError(
        f"the query of {plan.name!r} is not the one of its checkpoint {checkpoint.name}: it changed in {names}",
        code="W2203",
        help="\n".join(
            (*lines, "corrections are those of the query that wrote the rows: restore it, or begin again with --fresh")
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Corrections:
    """Corrections as a frame of `_op` and the columns of the sink, and the rejected rows they come from."""

    frame: DataFrame
    taken: RejectedPlaces
    taken_back: Mapping[str, int]


def _find_corrections(
    spark: SparkSession,
    job: JobPlan,
    plan: StatementPlan,
    checkpoint: Checkpoint,
    rows: RejectedPlaces,
    before: tuple[RedriveRecord, ...],
    time_column: str | None,
) -> Corrections:
    if is_sealed(checkpoint):
        earlier = tuple(move.to for record in before for move in record.files)
        plus, minus = compare_with_inputs(spark, job, plan, checkpoint, earlier, time_column=time_column)
        return Corrections(frame=_mark_rows(plus, minus), taken=rows, taken_back={})
    done = look_up_rejects(spark, plan, checkpoint, rows, count_retracted(before), time_column=time_column)
    return Corrections(frame=_mark_rows(done.plus, done.minus), taken=done.taken, taken_back=done.taken_back)


def _mark_rows(plus: DataFrame, minus: DataFrame) -> DataFrame:
    F: Any = functions_of(plus)
    added = plus.select(F.lit(PLUS).alias(OP), "*")
    return added.unionAll(minus.select(F.lit(MINUS).alias(OP), "*"))


def _list_open_rows(
    checkpoint: Checkpoint, reasons: tuple[str, ...], before: tuple[RedriveRecord, ...]
) -> RejectedPlaces:
    """Return the rejected rows with one of the given reasons that no earlier redrive took."""
    taken = collect_taken(before)
    open_rows: dict[RejectFile, tuple[int, ...]] = {}
    for file in list_reject_files(checkpoint):
        values = read_rejects(file).column("reason").to_pylist()
        gone = taken.get(file.name, set())
        places = tuple(i for i, reason in enumerate(values) if reason in reasons and i not in gone)
        if places:
            open_rows[file] = places
    return open_rows


def corrections_sink(plan: StatementPlan, checkpoint: Checkpoint) -> SinkSpec:
    """Return the sink of corrections: a folder next to that of the statement's sink, in its format."""
    sink = plan.sink
    kind = sink.connector["connector"]
    if kind == "files":
        path = str(sink.connector["path"]).rstrip("/")
        return replace(sink, connector=FrozenMap(sink.connector, path=f"{path}.corrections"))
    if kind == "memory":
        return as_files(sink, checkpoint.root / "memory.corrections")
    raise StreamError(
        f"the rows that {plan.name!r} wrote to {kind} cannot be read back, so it cannot be corrected",
        code="W2216",
        help="corrections need a sink of files",
        at=sink.at,
    )


def _stage_corrections(
    frame: DataFrame, sink: SinkSpec, folder: Place, checkpoint: str, number: int, *, dry_run: bool
) -> tuple[tuple[Move, ...], dict[str, int]]:
    """Stage corrections; return the renames that publish them and the number of each kind."""
    F: Any = functions_of(frame)
    # Counted and written from one computation: a second one could read files that arrived in between.
    kept = frame.persist()
    try:
        totals = kept.groupBy(OP).agg(F.count(F.lit(1)).alias("n")).collect()
        counts = {PLUS: 0, MINUS: 0} | {row[OP]: int(row["n"]) for row in totals}
        if dry_run or not any(counts.values()):
            return (), counts
        prepare_folder(sink, folder)
        return stage_rows(kept, sink, folder, checkpoint=checkpoint, batch=number, keep_empty=False), counts
    finally:
        kept.unpersist()
