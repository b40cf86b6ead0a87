"""A sealed statement against its inputs as they are: every row that differs."""

from __future__ import annotations

import datetime as dt
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as st

from weft.core.frozen import FrozenMap
from weft.core.types import TIMESTAMP
from weft.errors import StreamError
from weft.expr.spark.frames import functions_of
from weft.expr.spark.types import to_spark
from weft.streams.checkpoint.folder import Checkpoint, record_of
from weft.streams.checkpoint.manifest import sink_files
from weft.streams.plan.resolved import Input, JobPlan, StatementPlan
from weft.streams.spark.batch_frame import batch_frame
from weft.streams.spark.files import read_batch
from weft.streams.spark.kafka import read_kafka_batch
from weft.streams.spark.readable import RAW, TIME, column_name
from weft.streams.spark.sink_files import csv_options, stage
from weft.streams.sql.spec import SinkSpec

_OP = "_op"
_AGAIN = ("files", "kafka")
_EMPTY = "\x00empty\x00"


def whole_difference(
    spark: SparkSession,
    job: JobPlan,
    plan: StatementPlan,
    checkpoint: Checkpoint,
    corrections: Sequence[Path] = (),
    *,
    time_column: str | None = None,
) -> tuple[DataFrame, DataFrame]:
    """Return the rows that the sink lacks and those that it should not have.

    `corrections` are the files of earlier redrives: what they changed counts as done.
    """
    _check_readable(plan)
    _check_there(plan, checkpoint, corrections)
    created = dt.datetime.fromtimestamp(record_of(checkpoint).created / 1_000_000, dt.UTC)
    inputs = {} if time_column is None else _with_times(spark, job, plan, time_column)
    wanted = batch_frame(spark, plan, job.root, started=created, inputs=inputs)
    sink = _as_files(plan, checkpoint)
    wanted = _as_written(spark, wanted, plan, sink)
    given = _read(spark, plan, sink, sink_files(checkpoint))
    if corrections:
        F: Any = functions_of(wanted)
        done = _read(spark, plan, sink, corrections, marked=True)
        given = given.unionAll(done.filter(F.col(_OP) == F.lit("+I")).drop(_OP))
        wanted = wanted.unionAll(done.filter(F.col(_OP) == F.lit("-D")).drop(_OP))
    return wanted.exceptAll(given), given.exceptAll(wanted)


def _check_readable(plan: StatementPlan) -> None:
    for source in plan.inputs:
        kind = source.stream.connector["connector"]
        if kind not in _AGAIN:
            raise StreamError(
                f"stream {source.stream.name!r} of {plan.name!r} has the connector {kind!r}, which cannot be read again",
                code="W2216",
                help="a sealed statement is redriven from files or Kafka",
                at=source.stream.at,
            )


def _check_there(plan: StatementPlan, checkpoint: Checkpoint, corrections: Sequence[Path]) -> None:
    """Raise W2216 when rows of the sink cannot be read: they would be taken for missing ones and come again."""
    if record_of(checkpoint).first_batch:
        raise StreamError(
            f"the sink of {plan.name!r} has rows of an earlier query too, whose offsets were kept",
            code="W2216",
            help="begin again with `--fresh`: all rows are then those of one query",
        )
    gone = [path for path in (*sink_files(checkpoint), *corrections) if not path.exists()]
    if gone:
        raise StreamError(
            f"{len(gone)} files that {plan.name!r} wrote are gone, so its rows cannot be compared: {str(gone[0])!r} "
            "is the first",
            code="W2216",
            help="bring the files back for the redrive, or begin again with `--fresh`",
        )


def _with_times(spark: SparkSession, job: JobPlan, plan: StatementPlan, name: str) -> dict[str, DataFrame]:
    """Return the streams that have the column, with its time where a row has none of its own."""
    found: dict[str, DataFrame] = {}
    for source in plan.inputs:
        stream = source.stream
        index = next((i for i, f in enumerate(stream.columns.fields) if f.name == name), None)
        if index is None or stream.columns.fields[index].dtype != TIMESTAMP:
            continue
        rows = _rows(spark, source, job.root)
        F: Any = functions_of(rows)
        own = F.unix_micros(F.col(column_name(index)))
        found[stream.name] = rows.withColumn(TIME, F.coalesce(F.col(TIME), F.when(F.col(RAW).isNull(), own)))
    if not found:
        raise StreamError(
            f"no stream of {plan.name!r} has a TIMESTAMP column {name!r}",
            code="W2216",
            help="--time names a column that says when a row without event time happened",
        )
    return found


def _rows(spark: SparkSession, source: Input, root: Path) -> DataFrame:
    if source.stream.connector["connector"] == "kafka":
        return read_kafka_batch(spark, source.stream)
    return read_batch(spark, source.stream, root)


def _as_files(plan: StatementPlan, checkpoint: Checkpoint) -> SinkSpec:
    if plan.sink.connector["connector"] == "files":
        return plan.sink
    said: FrozenMap[str, Any] = FrozenMap(connector="files", path=str(checkpoint.memory), format="parquet")
    return replace(plan.sink, connector=said)


def _as_written(spark: SparkSession, rows: DataFrame, plan: StatementPlan, sink: SinkSpec) -> DataFrame:
    """Return rows as they read back from the sink's format, so that both sides are compared alike."""
    if sink.connector["format"] == "parquet":
        return rows
    with tempfile.TemporaryDirectory(prefix="weft-redrive-") as folder:
        moves = stage(rows, sink, Path(folder), checkpoint="redrive", batch=0, keep_empty=True)
        # The files go with the folder: the rows are taken out before.
        return _read(spark, plan, sink, [move.source for move in moves]).localCheckpoint(eager=True)


def _with_empty_texts(read: DataFrame) -> DataFrame:
    F: Any = functions_of(read)
    columns = []
    for field in read.schema.fields:
        column = read["`" + field.name.replace("`", "``") + "`"]
        if isinstance(field.dataType, st.StringType):
            column = F.when(column == F.lit(_EMPTY), F.lit("")).otherwise(column)
        columns.append(column.alias(field.name))
    return read.select(*columns)


def _read(
    spark: SparkSession, plan: StatementPlan, sink: SinkSpec, files: Sequence[Path], *, marked: bool = False
) -> DataFrame:
    fields = [st.StructField(c.name, to_spark(c.dtype)) for c in plan.output]
    schema = st.StructType([st.StructField(_OP, st.StringType()), *fields] if marked else fields)
    there = [str(path) for path in files if path.exists()]
    if not there:
        return spark.createDataFrame([], schema)
    form = str(sink.connector["format"])
    reader = spark.read.format(form).schema(schema)
    if form == "csv":
        # Without a mark of its own an empty text would read as NULL.
        said = csv_options(sink) | {"emptyValue": _EMPTY}
        read = reader.options(**said, multiLine="true", mode="FAILFAST").load(there)
        return _with_empty_texts(read)
    if form == "json":
        reader = reader.options(
            timestampFormat="yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX", timeZone="UTC", mode="FAILFAST"
        )
    return reader.load(there)
