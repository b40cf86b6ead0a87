"""Corrections from rejected rows: matched with the remaining state, or by reading the inputs of a sealed statement again.

See `weft.streams.kernel.redrive` for the state; the output of a sealed statement is compared with its inputs.
"""

from __future__ import annotations

import datetime as dt
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as st

from weft.core.types import TIMESTAMP
from weft.errors import StreamError
from weft.expr.spark.frames import functions_of
from weft.expr.spark.types import to_spark
from weft.io.stores.store_path import Place, spark_path
from weft.streams.checkpoint.cached_files import open_files
from weft.streams.checkpoint.earlier_state import list_state
from weft.streams.checkpoint.folder import Checkpoint, read_job_record
from weft.streams.checkpoint.manifest import Manifest, last_manifest, sink_files
from weft.streams.checkpoint.rejects import RejectFile, read_rejects
from weft.streams.kernel.pairs import arrow_type
from weft.streams.kernel.ranges import ALL
from weft.streams.kernel.redrive import find_corrections
from weft.streams.kernel.spec import JoinTask, Side
from weft.streams.kernel.state_files import JoinFolder, open_state
from weft.streams.plan.kernel_spec import Child, Layout, build_layout, build_task
from weft.streams.plan.resolved import Input, JobPlan, KernelStep, StatementPlan
from weft.streams.spark.batch_frame import batch_frame, read_rows
from weft.streams.spark.files import TIMES, as_files, read_csv_sink, stage_rows
from weft.streams.spark.kernel_stage import flatten, result_type
from weft.streams.spark.readable import RAW, TIME, column_name
from weft.streams.spark.select_stage import select_stage
from weft.streams.sql.spec import SinkSpec


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StateCorrections:
    """Rows of the sink to add and to retract, and the rejected rows they come from."""

    plus: DataFrame
    minus: DataFrame
    taken: Mapping[RejectFile, tuple[int, ...]]
    taken_back: Mapping[str, int]


def look_up_rejects(
    spark: SparkSession,
    plan: StatementPlan,
    checkpoint: Checkpoint,
    rows: Mapping[RejectFile, tuple[int, ...]],
    before: Counter[str],
    *,
    time_column: str | None = None,
) -> StateCorrections:
    """Return the corrections from rejected rows that the state determines."""
    step = single_join(plan)
    task = build_task(plan, step)
    children = build_layout(plan, step)
    last = last_manifest(checkpoint) or Manifest(batch=-1)
    place = JoinFolder(open_files(checkpoint.root), step.number)
    entries = list_state(checkpoint, last)
    state = open_state(place, entries, ALL, task, _schema(children.left), _schema(children.right))
    plus: list[Any] = []
    minus: list[Any] = []
    taken: dict[RejectFile, tuple[int, ...]] = {}
    back: Counter[str] = Counter()
    for file, places in rows.items():
        side: Side = "left" if file.side == "left" else "right"
        late, times, until = _late_rows(plan, step, side, children, file, places, time_column)
        # With the retractions of the files before this one: a padded row must not be retracted twice.
        done = find_corrections(task, state, side, late, times, before + back, until)
        plus.extend(done.plus)
        minus.extend(done.minus)
        back.update(done.taken_back)
        taken[file] = tuple(places[i] for i in done.taken.tolist())
    # The same day in every redrive: rejected rows do not record the TODAY() of their batch.
    today = _read_created(checkpoint).date()
    return StateCorrections(
        plus=_select_rows(spark, plan, task, children, plus, today),
        minus=_select_rows(spark, plan, task, children, minus, today),
        taken=taken,
        taken_back=back,
    )


def _read_created(checkpoint: Checkpoint) -> dt.datetime:
    return dt.datetime.fromtimestamp(read_job_record(checkpoint).created / 1_000_000, dt.UTC)


def single_join(plan: StatementPlan) -> KernelStep:
    """Return the join of a statement with one join of two streams; raise `StreamError` W2216 for others."""
    steps = plan.kernel_steps
    why = ""
    if len(steps) != 1 or len(plan.steps) != 1 or steps[0].axis is None:
        why = "it is not one join of two streams"
    elif build_task(plan, steps[0]).reach.kind == "session":
        why = "a late row may merge sessions whose rows were removed"
    if why:
        raise StreamError(
            f"late rows of {plan.name!r} cannot be looked up in its state: {why}",
            code="W2216",
            help="end its input with `weft stream run JOB --final`; a redrive then reads all inputs again",
        )
    return steps[0]


def _schema(children: tuple[Child, ...]) -> Any:
    return pa.schema([(c.name, arrow_type(str(c.dtype))) for c in children])


def _late_rows(
    plan: StatementPlan,
    step: KernelStep,
    side: Side,
    children: Layout,
    file: RejectFile,
    places: tuple[int, ...],
    time_column: str | None,
) -> tuple[Any, Any, Any]:
    """Return rejected rows as children of their side, their times, and the last batch in which each took part."""
    table = read_rejects(file).take(pa.array(places))
    schema = _schema(children.left if side == "left" else children.right)
    rows = table.column("row").combine_chunks()
    whole = pa.table([rows.field(name) for name in schema.names], names=schema.names).cast(schema)
    times = table.column("event_time").combine_chunks()
    if times.null_count:
        number = step.left[0] if side == "left" else step.right
        own_times = whole.column(_find_time_child(plan, number, children, side, time_column)).combine_chunks()
        times = _fill_times(times, own_times.cast(pa.int64()))
        index = schema.names.index(f"t{number}")
        whole = whole.set_column(index, schema.field(index), times)
    until = pc.if_else(table.column("matched"), table.column("batch"), pa.scalar(-1, pa.int64()))
    return whole, times.to_numpy(zero_copy_only=False), until.to_numpy()


def _fill_times(times: Any, own_times: Any) -> Any:
    filled = pc.coalesce(times, own_times)
    if filled.null_count:
        raise StreamError(
            "some rows without event time have NULL in the --time column too",
            code="W2216",
            help="choose a column that is not NULL in any of them",
        )
    return filled


def _find_time_child(plan: StatementPlan, number: int, children: Layout, side: Side, time_column: str | None) -> str:
    source = plan.source(number)
    mine = children.left if side == "left" else children.right
    fields = source.stream.columns.fields if isinstance(source, Input) else ()
    for child in mine:
        slot = child.slot
        if slot[0] == "i" and fields[slot[2]].name == time_column and str(child.dtype) == "timestamp":
            return child.name
    raise StreamError(
        f"the rejected rows of {plan.name!r} have no TIMESTAMP column {time_column!r}",
        code="W2216",
        help="only columns that the statement reads are kept: add it to the select list, or redrive after --final",
    )


def _select_rows(
    spark: SparkSession, plan: StatementPlan, task: JoinTask, children: Layout, batches: list[Any], today: dt.date
) -> DataFrame:
    """Return rows of the kernel as rows of the sink."""
    schema = result_type(task, children)
    if batches:
        joined = spark.createDataFrame(pa.Table.from_batches(batches), schema=schema)
    else:
        joined = spark.createDataFrame([], schema)
    return select_stage(flatten(plan, task, joined, children), plan, today=today)


_OP = "_op"
_AGAIN = ("files", "kafka")


def compare_with_inputs(
    spark: SparkSession,
    job: JobPlan,
    plan: StatementPlan,
    checkpoint: Checkpoint,
    corrections: Sequence[Place] = (),
    *,
    time_column: str | None = None,
) -> tuple[DataFrame, DataFrame]:
    """Return the rows that the sink lacks and those that it should not have.

    `corrections` are the files of earlier redrives, whose changes are taken into account.
    """
    _check_rereadable(plan)
    _check_files_exist(plan, checkpoint, corrections)
    created = _read_created(checkpoint)
    inputs = {} if time_column is None else _fill_input_times(spark, job, plan, time_column)
    expected = batch_frame(spark, plan, job.root, started=created, inputs=inputs)
    sink = plan.sink if plan.sink.connector["connector"] == "files" else as_files(plan.sink, checkpoint.memory)
    expected = _read_back(spark, expected, plan, sink)
    actual = _read_sink(spark, plan, sink, sink_files(checkpoint))
    if corrections:
        F: Any = functions_of(expected)
        done = _read_sink(spark, plan, sink, corrections, marked=True)
        actual = actual.unionAll(done.filter(F.col(_OP) == F.lit("+I")).drop(_OP))
        expected = expected.unionAll(done.filter(F.col(_OP) == F.lit("-D")).drop(_OP))
    # As multisets: equal rows are counted.
    return expected.exceptAll(actual), actual.exceptAll(expected)


def _check_rereadable(plan: StatementPlan) -> None:
    for source in plan.inputs:
        kind = source.stream.connector["connector"]
        if kind not in _AGAIN:
            raise StreamError(
                f"stream {source.stream.name!r} of {plan.name!r} has the connector {kind!r}, which cannot be read again",
                code="W2216",
                help="a sealed statement is redriven from files or Kafka",
                at=source.stream.at,
            )


def _check_files_exist(plan: StatementPlan, checkpoint: Checkpoint, corrections: Sequence[Place]) -> None:
    """Raise W2216 if files of the sink are missing: their rows would be written again."""
    if read_job_record(checkpoint).first_batch:
        raise StreamError(
            f"the sink of {plan.name!r} has rows of an earlier query too, whose offsets were kept",
            code="W2216",
            help="begin again with `--fresh`: all rows are then those of one query",
        )
    gone = [path for path in (*sink_files(checkpoint), *corrections) if not path.exists()]
    if gone:
        raise StreamError(
            f"{len(gone)} files that {plan.name!r} wrote are missing, so its rows cannot be compared, for example "
            f"{str(gone[0])!r}",
            code="W2216",
            help="restore the files for the redrive, or begin again with `--fresh`",
        )


def _fill_input_times(spark: SparkSession, job: JobPlan, plan: StatementPlan, name: str) -> dict[str, DataFrame]:
    """Return the streams that have the column, with its value as the time of rows without event time."""
    inputs: dict[str, DataFrame] = {}
    for source in plan.inputs:
        stream = source.stream
        index = next((i for i, f in enumerate(stream.columns.fields) if f.name == name), None)
        if index is None or stream.columns.fields[index].dtype != TIMESTAMP:
            continue
        rows = read_rows(spark, stream, job.root)
        F: Any = functions_of(rows)
        own = F.unix_micros(F.col(column_name(index)))
        inputs[stream.name] = rows.withColumn(TIME, F.coalesce(F.col(TIME), F.when(F.col(RAW).isNull(), own)))
    if not inputs:
        raise StreamError(
            f"no stream of {plan.name!r} has a TIMESTAMP column {name!r}",
            code="W2216",
            help="--time names a column that has the event time of rows without one",
        )
    return inputs


def _read_back(spark: SparkSession, rows: DataFrame, plan: StatementPlan, sink: SinkSpec) -> DataFrame:
    """Return rows as read back from the sink's format, so that both sides are comparable."""
    if sink.connector["format"] == "parquet":
        return rows
    with tempfile.TemporaryDirectory(prefix="weft-redrive-") as folder:
        moves = stage_rows(rows, sink, Path(folder), checkpoint="redrive", batch=0, keep_empty=True)
        # Materialize the rows before the folder is removed.
        return _read_sink(spark, plan, sink, [move.source for move in moves]).localCheckpoint(eager=True)


def _read_sink(
    spark: SparkSession, plan: StatementPlan, sink: SinkSpec, files: Sequence[Place], *, marked: bool = False
) -> DataFrame:
    fields = [st.StructField(c.name, to_spark(c.dtype)) for c in plan.output]
    schema = st.StructType([st.StructField(_OP, st.StringType()), *fields] if marked else fields)
    there = [spark_path(path) for path in files if path.exists()]
    if not there:  # Spark refuses to load no paths
        return spark.createDataFrame([], schema)
    form = str(sink.connector["format"])
    if form == "csv":
        return read_csv_sink(spark, sink, schema, there, mode="FAILFAST")
    reader = spark.read.format(form).schema(schema)
    if form == "json":
        reader = reader.options(**TIMES, mode="FAILFAST")
    return reader.load(there)
