"""Files as a stream and as a sink.

A stream reads every file of a folder or pattern once, in the order of modification::

    json     one object per line; values are read as strings, then converted, so an invalid value rejects one row
    csv      the first line of the first file names the columns; a later file with other names stops the query
    parquet  types are checked against the declared ones before anything starts
    avro     likewise, with Spark's avro jar

A batch of a sink is staged, counted, and renamed when it is committed::

    <path>/.weft-staging/<checkpoint>/<batch>-<attempt>/part-*.parquet   staged by Spark
    <path>/part-<checkpoint>-<batch>-<n>.parquet                        visible after the commit
"""

from __future__ import annotations

import csv
import re
import sys
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from weft.core.frozen import FrozenMap
from weft.core.names import find_similar, format_list, quote
from weft.core.types import STRING, DType
from weft.errors import ConnectorError, Diagnostic, FileStoreError, JoinTypeError, ResolutionError
from weft.expr.spark.frames import functions_of
from weft.expr.spark.types import from_spark, to_spark
from weft.io.options import CsvOptions, read_header
from weft.io.spark.files import escape_formula, escape_formula_name, escaped
from weft.io.stores.store_path import Place, StorePath, as_place, spark_path
from weft.joins.spark.failures import FailureRule, explain_failure
from weft.streams.checkpoint.commit import STAGING
from weft.streams.checkpoint.folder import remove_path
from weft.streams.checkpoint.manifest import Move
from weft.streams.plan.resolved import StatementPlan
from weft.streams.spark.paths import (
    check_exists,
    find_equal_times,
    is_remote,
    list_files,
    resolve_path,
    source_path,
)
from weft.streams.spark.readable import build_columns
from weft.streams.sql.spec import SinkSpec, StreamSpec, TableSpec

CORRUPT = "__weft_corrupt"
_FOR_EVER = "36500d"
TIMES = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX", "timeZone": "UTC"}
"""Options by which timestamps are written and read back to the microsecond, whatever the zone of the session."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileReading:
    """How files are read: the format, its options, the columns there are, and which of them are declared."""

    format: str
    options: dict[str, str]
    schema: StructType
    places: tuple[int, ...]  # of each declared column, its place in the schema
    has_corrupt: bool


def read_stream(spark: SparkSession, stream: StreamSpec, root: Path) -> DataFrame:
    """Return the files of a stream as an unbounded frame of `t`, `raw`, `c0` .."""
    path = _stream_path(stream, root)
    reading = plan_reading(spark, stream, path)
    options = {
        **reading.options,
        "recursiveFileLookup": "true",
        # By default Spark silently skips files that are a week older than the newest one.
        "maxFileAge": _FOR_EVER,
    }
    if (most := stream.connector.get("max.files.per.trigger")) is not None:
        options["maxFilesPerTrigger"] = str(most)
    reader = spark.readStream.format(reading.format).options(**options).schema(reading.schema)
    try:
        frame = reader.load(source_path(path))
    except PySparkException as cause:
        raise read_error(stream, reading.format, cause, f"{path!r} cannot be read") from cause
    return _build_rows(frame, stream, reading)


def read_batch(spark: SparkSession, stream: StreamSpec, root: Path) -> DataFrame:
    """Return the existing files of a stream, in the form of `read_stream`."""
    path = _stream_path(stream, root)
    reading = plan_reading(spark, stream, path)
    options = {**reading.options, "recursiveFileLookup": "true"}
    reader = spark.read.format(reading.format).options(**options).schema(reading.schema)
    paths = existing_paths(path)
    # Spark refuses to load no paths.
    frame = reader.load(paths) if paths else spark.createDataFrame([], reading.schema)
    return _build_rows(frame, stream, reading)


def existing_paths(path: str) -> list[str]:
    """Return the files of a path that exist now, as paths for Spark; a remote path is Spark's to list."""
    return [path] if is_remote(path) else [escaped(str(f)) for f in list_files(path)]


def _stream_path(stream: StreamSpec, root: Path) -> str:
    path = resolve_path(str(stream.connector["path"]), root)
    check_exists(path, f"stream {stream.name!r}", stream.at)
    return path


def plan_reading(spark: SparkSession, source: StreamSpec | TableSpec, path: str) -> FileReading:
    """Return how to read the files of a stream or table; raise W2302 or W2303 if they do not match it."""
    form = str(source.connector["format"])
    files = () if is_remote(path) else list_files(path)
    if form == "csv":
        return _csv_reading(source, files)
    if form == "json":
        names = [f.name for f in source.columns.fields]
        return FileReading(
            format="json",
            # All columns are read as strings: Spark would turn a value of another type into NULL without a trace.
            options={"columnNameOfCorruptRecord": CORRUPT, "mode": "PERMISSIVE", "multiLine": "false"},
            schema=_string_schema([*names, CORRUPT]),
            places=tuple(range(len(names))),
            has_corrupt=True,
        )
    return _typed_reading(spark, source, form, files)


def _build_rows(frame: DataFrame, stream: StreamSpec, reading: FileReading) -> DataFrame:
    F: Any = functions_of(frame)
    values = declared_values(frame, reading)
    corrupt = F.col(CORRUPT) if reading.has_corrupt else None
    return frame.select(*build_columns(F, stream, values, corrupt=corrupt))


def declared_values(frame: DataFrame, reading: FileReading) -> list[tuple[Any, DType]]:
    """Return the declared columns of a frame, each with the type that it was read in."""
    fields = reading.schema.fields
    values = []
    for place in reading.places:
        name = fields[place].name
        dtype = STRING if isinstance(fields[place].dataType, StringType) else from_spark(fields[place].dataType)
        values.append((frame[quote(name)], dtype))
    return values


def _csv_reading(source: StreamSpec | TableSpec, files: Sequence[Path]) -> FileReading:
    dialect = csv_dialect(source.connector)
    has_header = bool(source.connector.get("header", True))
    options = CsvOptions(delimiter=dialect["sep"], has_header=has_header, quote=dialect["quote"])
    declared = [f.name for f in source.columns.fields]
    names = list(declared)
    if options.has_header and files:
        names = _read_header(source, files[0], options, declared)
    return FileReading(
        format="csv",
        options={
            **dialect,
            "header": str(has_header).lower(),
            "mode": "PERMISSIVE",
            "columnNameOfCorruptRecord": CORRUPT,
            # A later file with other columns must stop the query, not assign values to the wrong columns.
            "enforceSchema": "false",
            # With pruning Spark would parse only the columns in use, and miss lines with too few or too many.
            "columnPruning": "false",
        },
        schema=_string_schema([*names, CORRUPT]),
        places=tuple(_casefold(names).index(n.casefold()) for n in declared),
        has_corrupt=True,
    )


def _read_header(source: StreamSpec | TableSpec, file: Path, options: CsvOptions, declared: Sequence[str]) -> list[str]:
    try:
        names = list(read_header(file, options))
    except ResolutionError as cause:
        raise ConnectorError(cause.message, code="W2302", help=cause.help, at=source.at) from cause
    check_columns(source, str(file), names, declared)
    return names


def check_columns(source: StreamSpec | TableSpec, file: str, names: Sequence[str], declared: Sequence[str]) -> None:
    """Raise `ConnectorError` W2302 when a file lacks declared columns."""
    there = _casefold(names)
    missing = [name for name in declared if name.casefold() not in there]
    if missing:
        close = [f"{m!r} could be {similar[0]!r}" for m in missing if (similar := find_similar(m, list(names), most=1))]
        raise ConnectorError(
            f"{file!r} has no column {format_list(missing)}, which {source.name!r} declares",
            code="W2302",
            help=(", ".join(close) + "; " if close else "") + f"it has {format_list(list(names), most=30)}",
            at=source.at,
        )


def _casefold(names: Sequence[str]) -> list[str]:
    return [name.casefold() for name in names]


def _string_schema(names: Sequence[str]) -> StructType:
    return StructType([StructField(name, StringType()) for name in names])


def _typed_reading(
    spark: SparkSession, source: StreamSpec | TableSpec, form: str, files: Sequence[Path]
) -> FileReading:
    declared = source.columns.fields
    types = {f.name: to_spark(f.dtype) for f in declared}
    if files:
        schema = _read_schema(spark, source, form, files[0])
        check_columns(source, str(files[0]), [f.name for f in schema.fields], [f.name for f in declared])
        there = {f.name.casefold(): f for f in schema.fields}
        types = {f.name: there[f.name.casefold()].dataType for f in declared}
        _check_types(source, files[0], types)
    schema = StructType([StructField(name, dtype) for name, dtype in types.items()])
    return FileReading(format=form, options={}, schema=schema, places=tuple(range(len(declared))), has_corrupt=False)


def _read_schema(spark: SparkSession, source: StreamSpec | TableSpec, form: str, file: Path) -> StructType:
    try:
        return spark.read.format(form).load(escaped(str(file))).schema
    except (PySparkException, Py4JJavaError) as cause:
        raise read_error(source, form, cause, f"{str(file)!r} is not a valid {form} file") from cause


_NO_AVRO = FailureRule(
    error=ConnectorError,
    code="W2305",
    message="Spark needs its avro jar",
    help="weft connectors install avro",
    conditions=("AVRO_NOT_LOADED",),
    # The condition of a source that is missing is temporary (_LEGACY_ERROR_TEMP) in some releases of Spark.
    text=re.compile("(?i)Failed to find (?:the )?data source: avro"),
)


def read_error(source: StreamSpec | TableSpec, form: str, cause: Exception, what: str) -> ConnectorError:
    """Return the error for files that Spark cannot read: W2305 without the avro jar, W2303 otherwise."""
    if form == "avro" and explain_failure(cause, (_NO_AVRO,)) is not None:
        return ConnectorError(
            f"{source.name!r} reads avro files, for which {_NO_AVRO.message}",
            code=_NO_AVRO.code,
            help=_NO_AVRO.help,
            at=source.at,
        )
    return ConnectorError(
        f"{what}: {_extract_reason(cause)}",
        code="W2303",
        help=f"check that every file of {source.name!r} is a {form} file",
        at=source.at,
    )


def _extract_reason(cause: Exception) -> str:
    """Return the relevant line of an exception; those of Java begin with the call."""
    lines = str(cause).strip().splitlines() or [type(cause).__name__]
    marked = [line for line in lines if "[" in line]
    return (marked or lines)[0].partition("SQLSTATE")[0].strip()


def _check_types(source: StreamSpec | TableSpec, file: Path, types: dict[str, Any]) -> None:
    for name, dtype in types.items():
        try:
            from_spark(dtype)
        except JoinTypeError as cause:
            raise ConnectorError(
                f"column {name!r} of {str(file)!r} is {dtype.simpleString()}, which streams do not support",
                code="W2303",
                help="write the data in another type, or leave the column out of the declaration",
                at=source.at,
            ) from cause


def check_file_order(stream: StreamSpec, root: Path) -> tuple[Diagnostic, ...]:
    """Return a warning if the order of the files of a stream is undefined."""
    if stream.connector.get("max.files.per.trigger") is None:
        return ()
    path = resolve_path(str(stream.connector["path"]), root)
    pair = None if is_remote(path) else find_equal_times(list_files(path))
    if pair is None:
        return ()
    return (
        Diagnostic(
            "W2307",
            f"{str(pair[0])!r} and {str(pair[1])!r} were written at the same time, so their order is undefined",
            severity="warning",
            help="write files one after another, or leave out 'max.files.per.trigger'",
            at=stream.at,
        ),
    )


def sink_folder(sink: SinkSpec, root: Path) -> Place:
    """Return the folder of a sink, on a disk or in a store; raise W2308 for a store that Weft does not know."""
    requested = str(sink.connector["path"])
    path = resolve_path(requested, root)
    if is_remote(path):
        try:
            return as_place(path)
        except FileStoreError as cause:
            raise ConnectorError(
                f"sink {sink.name!r} cannot write to {requested!r}: {cause.message}",
                code="W2308",
                help=cause.help,
                at=sink.at,
            ) from cause
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise ConnectorError(
            f"sink {sink.name!r} writes to {requested!r}, which is a file",
            code="W2309",
            help="name a folder: every batch adds files to it",
            at=sink.at,
        )
    return folder


def as_files(sink: SinkSpec, folder: Place) -> SinkSpec:
    """Return a sink of another connector as one of Parquet files in a folder."""
    return replace(sink, connector=FrozenMap(connector="files", path=str(folder), format="parquet"))


def prepare_folder(sink: SinkSpec, folder: Place) -> None:
    """Create the folder of a sink; raise W2309 if it is not writable."""
    if isinstance(folder, StorePath):
        # A store that is not there, or that refuses to write, says so before the first batch.
        marker = folder / STAGING / f"start-{uuid.uuid4().hex[:8]}"
        marker.write_bytes(b"")
        marker.unlink()
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Permission bits do not tell for every user and file system; creating a folder does.
        (folder / STAGING).mkdir(exist_ok=True)
    except OSError as cause:
        raise ConnectorError(
            f"sink {sink.name!r} cannot write to {str(folder)!r}: {cause}",
            code="W2309",
            help="check the permissions of the folder and the space on its disk",
            at=sink.at,
        ) from cause


def staging_folder(folder: Place, checkpoint: str) -> Place:
    """Return the staging folder of a checkpoint in the folder of a sink."""
    return folder / STAGING / checkpoint


def stage_rows(
    frame: DataFrame, sink: SinkSpec, folder: Place, *, checkpoint: str, batch: int, keep_empty: bool
) -> tuple[Move, ...]:
    """Stage the rows of a batch and return the renames that publish them.

    Files without rows are left out; with `keep_empty` one of them is kept if all are empty, so that
    a sealed sink has its columns.
    """
    # A unique name: tasks of a killed process may still write to theirs for a moment.
    staging = staging_folder(folder, checkpoint) / f"{batch}-{uuid.uuid4().hex[:8]}"
    form = str(sink.connector["format"])
    writer = frame.write.format(form).mode("overwrite")
    if form == "csv":
        writer = _escape_formulas(frame, sink).write.format(form).mode("overwrite").options(**csv_options(sink))
    if form == "json":
        writer = writer.options(ignoreNullFields="false", **TIMES)
    writer.save(spark_path(staging))
    counted = _count_files(frame, sink, staging)
    # None is not 0: the files of avro are counted together.
    nothing = not any(rows for _, rows in counted)
    kept = [] if nothing else [(p, rows) for p, rows in counted if rows != 0]
    if nothing and keep_empty:
        kept = counted[:1]
    return tuple(
        Move(source=path, to=folder / f"part-{checkpoint}-{batch:06}-{number:05}.{form}", rows=rows)
        for number, (path, rows) in enumerate(kept)
    )


def _escape_formulas(frame: DataFrame, sink: SinkSpec) -> DataFrame:
    """Return the rows with the formulas in strings and names escaped, if the sink asks for it.

    A redrive compares rows that were written and read back; a formula that is escaped already stays as it is.
    """
    if not sink.connector.get("escape.formulas"):
        return frame
    F: Any = functions_of(frame)
    return frame.select(
        *(
            (escape_formula(F, frame[quote(f.name)]) if isinstance(f.dataType, StringType) else frame[quote(f.name)])
            .alias(escape_formula_name(f.name))
            for f in frame.schema.fields
        )
    )  # fmt: skip


def csv_dialect(connector: Mapping[str, Any]) -> dict[str, str]:
    """Return the options of Spark for the separator, quotes and NULL of CSV."""
    quote = str(connector.get("quote") or '"')
    return {
        "sep": str(connector.get("delimiter") or ","),
        "quote": quote,
        "escape": quote,  # as in RFC 4180, where a quote is doubled; the default of Spark is a backslash
        "nullValue": str(connector.get("null.value") or ""),
    }


def csv_options(sink: SinkSpec) -> dict[str, str]:
    """Return the options by which CSV files of a sink are written and read back."""
    dialect = csv_dialect(sink.connector)
    quote = dialect["quote"]
    return {
        **dialect,
        "header": str(sink.connector.get("header", True)).lower(),
        "emptyValue": f"{quote}{quote}",
        # By default Spark trims strings when it writes them.
        "ignoreLeadingWhiteSpace": "false",
        "ignoreTrailingWhiteSpace": "false",
        **TIMES,
    }


_EMPTY = "\x00empty\x00"
"""Represents an empty string while CSV is read."""


def read_csv_sink(
    spark: SparkSession, sink: SinkSpec, schema: StructType, files: Sequence[str], *, mode: str = "PERMISSIVE"
) -> DataFrame:
    """Return the rows of CSV files of a sink by the options that they were written with."""
    # Without a marker an empty string would be read as NULL.
    options = csv_options(sink) | {"emptyValue": _EMPTY, "multiLine": "true", "mode": mode}
    read = spark.read.format("csv").schema(schema).options(**options).load(list(files))
    F: Any = functions_of(read)
    columns = []
    for field in schema.fields:
        column = read[quote(field.name)]
        if isinstance(field.dataType, StringType):
            column = F.when(column == F.lit(_EMPTY), F.lit("")).otherwise(column)
        columns.append(column.alias(field.name))
    return read.select(*columns)


def csv_reader(spark: SparkSession, plan: StatementPlan, sink: SinkSpec) -> Callable[[Sequence[str]], DataFrame] | None:
    """Return a function that reads CSV files of a sink as strings; None for formats that need no options."""
    schema = _string_schema([column.name for column in plan.output])
    return partial(read_csv_sink, spark, sink, schema) if sink.connector.get("format") == "csv" else None


def _count_files(frame: DataFrame, sink: SinkSpec, staging: Place) -> list[tuple[Place, int | None]]:
    """Return the staged files with their row counts; for avro the first file has the count of all."""
    form = str(sink.connector["format"])
    # In the order of partitions; markers such as _SUCCESS and checksums of Hadoop are left behind.
    files = sorted(p for p in staging.iterdir() if p.name.startswith("part-"))
    if form == "avro":
        rows = frame.sparkSession.read.format(form).load(spark_path(staging)).count()
        return [(p, None if number else rows) for number, p in enumerate(files)]
    if form == "csv":
        return [(p, count_csv_rows(p, sink)) for p in files]
    return [(p, _count_rows(p, form)) for p in files]


def _count_rows(file: Place, form: str) -> int:
    if form == "parquet":
        return int(pq.read_metadata(file if isinstance(file, Path) else file.open("rb")).num_rows)
    with file.open("rb") as lines:
        return sum(1 for _ in lines)


def count_csv_rows(file: Place, sink: SinkSpec) -> int:
    """Return the number of records of a CSV file; quoted fields may contain line breaks."""
    options = csv_options(sink)
    csv.field_size_limit(sys.maxsize)  # Python refuses fields above 128 KiB by default
    with file.open(encoding="utf-8", newline="") as lines:
        records = csv.reader(lines, delimiter=options["sep"], quotechar=options["quote"], doublequote=True)
        return max(sum(1 for _ in records) - (options["header"] == "true"), 0)


def remove_staging(folder: Place, checkpoint: str) -> None:
    """Remove the staging folder of a sealed checkpoint, and its parent if it is empty."""
    remove_path(staging_folder(folder, checkpoint))
    with suppress(OSError):
        (folder / STAGING).rmdir()
