"""A job as batch queries over its existing inputs: the output of a sealed stream, in one run.

It has neither checkpoint, watermark nor ledger.  The rows go to `to`, or to the sink of the statement if no
checkpoint has written there, because a folder filled by both would have every row twice.  A second run
replaces the files of the first: its own are complete before the earlier ones are removed, so nothing is ever missing.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from weft.core.findings import Findings
from weft.core.fingerprint import fingerprint
from weft.core.frozen import FrozenMap
from weft.errors import StreamError, StreamPlanError
from weft.streams.checkpoint.folder import find_checkpoint, list_checkpoints, move_file, remove_path
from weft.streams.checkpoint.manifest import Move, sink_files
from weft.streams.plan.resolved import Input, JobPlan, StatementPlan, TableInput
from weft.streams.plan.shared_paths import check_shared_paths
from weft.streams.run.failing import explain_failure
from weft.streams.run.job import select_statements
from weft.streams.run.opening import job_folder, local_folder
from weft.streams.run.report import JobReport, QueryReport, source_names
from weft.streams.spark.batch_frame import batch_frame
from weft.streams.spark.files import as_files, csv_reader, prepare_folder, remove_staging, sink_folder, stage_rows
from weft.streams.spark.memory import find_rows, write_memory
from weft.streams.spark.paths import resolve_path
from weft.streams.spark.readable import find_refused_row
from weft.streams.spark.table_stage import write_memory_table
from weft.streams.sql.spec import SinkSpec

_MARK = "batch"
"""Replaces the id of the checkpoint in file names."""
_MAX_ROWS = 20
_LONGEST_NAME = 150  # in bytes; a file name of 255 also has the time of the run and an ending


def run_batch(
    spark: SparkSession,
    plan: JobPlan,
    *,
    to: Path | None = None,
    only: str | None = None,
    memory: Mapping[str, Sequence[Any]] | None = None,
    show: Callable[[str], None] = print,
) -> JobReport:
    """Run every statement of a job as a batch query and write its rows.

    `to` is a folder; each of several statements gets a folder in it.  `show` receives the rows of
    console sinks.
    """
    chosen = select_statements(plan, only)
    # One clock for all statements: TODAY() must not change when a run passes midnight.
    started = dt.datetime.now(dt.UTC)
    sinks = _choose_sinks(plan, chosen, to)
    queries = []
    for statement, sink in zip(chosen, sinks, strict=True):
        ready = _write_inputs(statement, memory or {}, _own_folder(plan, statement) / "memory")
        try:
            rows = batch_frame(spark, ready, plan.root, started=started)
            report = _write_rows(plan, statement, rows, sink, started)
        except PySparkException as cause:
            raise find_refused_row(cause) or explain_failure(cause, statement.name) from cause
        queries.append(replace(report, read=csv_reader(spark, statement, sink)))
        if statement.sink.connector["connector"] == "console" and to is None:
            _show(spark, queries[-1], show)
    return JobReport(queries=tuple(queries), sealed=False, warnings=plan.warnings, spark=spark)


def _choose_sinks(plan: JobPlan, chosen: Sequence[StatementPlan], to: Path | None) -> list[SinkSpec]:
    """Return the sink of each statement; raise before any of them is written to."""
    folders = [None if to is None else (to if len(chosen) == 1 else to / s.name) for s in chosen]
    sinks = [_file_sink(plan, statement, folder) for statement, folder in zip(chosen, folders, strict=True)]
    inputs = [i.stream for s in chosen for i in s.inputs] + [t.table for s in chosen for t in s.tables]
    findings = Findings()
    check_shared_paths(inputs, sinks, plan.root, findings)
    if findings.errors:
        raise StreamPlanError(findings.errors)
    return sinks


def _own_folder(plan: JobPlan, statement: StatementPlan) -> Path:
    return local_folder(plan) / statement.name / _MARK


def _write_inputs(plan: StatementPlan, memory: Mapping[str, Sequence[Any]], folder: Path) -> StatementPlan:
    """Return the plan with streams and tables from memory written as files, again for each run."""
    inputs: list[Input] = []
    for source in plan.inputs:
        stream = source.stream
        if stream.connector["connector"] == "memory":
            rows = find_rows(stream, memory)
            # `write_memory` keeps files that exist, and this run may have other rows.
            remove_path(folder / stream.name)
            stream = write_memory(stream, rows, folder / stream.name)
        inputs.append(replace(source, stream=stream))
    tables: list[TableInput] = []
    for held in plan.tables:
        table = held.table
        if table.connector["connector"] == "memory":
            remove_path(folder / table.name)
            table = write_memory_table(table, memory, folder / table.name)
        tables.append(replace(held, table=table))
    return replace(plan, inputs=tuple(inputs), tables=tuple(tables))


def _file_sink(plan: JobPlan, statement: StatementPlan, to: Path | None) -> SinkSpec:
    """Return the sink as a sink of files: as declared, in `to`, or in a folder of the job."""
    sink = statement.sink
    kind = sink.connector["connector"]
    if to is not None:
        form = sink.connector["format"] if kind == "files" else "parquet"
        options = {**sink.connector, "connector": "files", "path": str(to), "format": form}
        return replace(sink, connector=FrozenMap(options))
    if kind == "kafka":
        raise StreamPlanError(
            f"the sink {sink.name!r} is a topic: a batch that is run again would write every row again",
            code="W2122",
            help="write the rows to files: --to FOLDER",
            at=sink.at,
        )
    if kind != "files":
        return as_files(sink, _own_folder(plan, statement) / "rows")
    _check_no_stream_rows(plan, statement)
    return sink


def _check_no_stream_rows(plan: JobPlan, statement: StatementPlan) -> None:
    """Raise W2215 if any checkpoint of the job has rows in the sink."""
    folder = job_folder(plan) / statement.name
    if find_checkpoint(folder) is not None and any(f.exists() for c in list_checkpoints(folder) for f in sink_files(c)):
        path = resolve_path(str(statement.sink.connector["path"]), plan.root)
        raise StreamError(
            f"{path!r} holds rows of the stream {statement.name!r}: a batch would add every row again",
            code="W2215",
            help="write to another folder: --to FOLDER",
        )


def _write_rows(
    plan: JobPlan, statement: StatementPlan, rows: DataFrame, sink: SinkSpec, started: dt.datetime
) -> QueryReport:
    folder = sink_folder(sink, plan.root)
    prepare_folder(sink, folder)
    name = statement.name if len(statement.name.encode()) <= _LONGEST_NAME else fingerprint(statement.name)[:16]
    mark = f"{_MARK}-{name}"
    run = round(started.timestamp() * 1_000_000)
    moves = stage_rows(rows, sink, folder, checkpoint=mark, batch=run, keep_empty=True)
    # Names without a statement are those of earlier versions.
    written = re.compile(rf"part-{_MARK}-(?:{re.escape(name)}-)?\d{{6,}}-\d{{5,}}\.\w+")
    earlier = [path for path in folder.iterdir() if written.fullmatch(path.name)]
    for move in moves:
        move_file(move.source, move.to)
    for path in earlier:
        path.unlink(missing_ok=True)  # readers may remove files at any time
    remove_staging(folder, mark)
    return _report(statement, sink, moves)


def _report(statement: StatementPlan, sink: SinkSpec, moves: Sequence[Move]) -> QueryReport:
    return QueryReport(
        sink=statement.name,
        location=str(sink.connector["path"]),
        format=str(sink.connector["format"]),
        rows=sum(move.rows or 0 for move in moves),
        ledger=None,
        sides=source_names(statement),
        batches=1,
        watermark=None,
        sealed=False,
        checkpoint=None,
        files=cast("tuple[Path, ...]", tuple(move.to for move in moves)),
    )


def _show(spark: SparkSession, report: QueryReport, show: Callable[[str], None]) -> None:
    paths = [str(path) for path in report.files]
    show(f"{report.sink}: {report.rows} rows")
    for row in spark.read.parquet(*paths).limit(_MAX_ROWS).collect():
        show(str(tuple(row)))
