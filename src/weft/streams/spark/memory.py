"""Streams without an external source: rows of a program, where each list is one batch, and generated rows."""

from __future__ import annotations

import datetime as dt
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from weft.core.frozen import FrozenMap
from weft.core.types import LONG, TIMESTAMP
from weft.errors import ArgumentError, ConnectorError
from weft.expr.spark.frames import functions_of
from weft.streams.spark.readable import build_columns
from weft.streams.sql.spec import StreamSpec, TableSpec

Rows = Sequence[Mapping[str, Any] | str]
Memory = Mapping[str, Sequence[Any]]
"""Rows from a program: a list of batches for a stream, a list of rows for a table."""

_EPOCHS = {"epoch_seconds": 1_000_000, "epoch_millis": 1_000, "epoch_micros": 1}
_FIRST_TIME = 1_600_000_000
_MOMENT = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def find_rows(source: StreamSpec | TableSpec, memory: Memory) -> Sequence[Any]:
    """Return the rows of a stream or table from memory; raise W2301 if none were passed for it."""
    if source.name not in memory:
        is_stream = isinstance(source, StreamSpec)
        rows = "[[...rows of a batch...]]" if is_stream else "[...rows...]"
        raise ConnectorError(
            f"{'stream' if is_stream else 'table'} {source.name!r} reads memory, but no rows were passed for it",
            code="W2301",
            help=f"pass memory={{{source.name!r}: {rows}}} to weft.streams.run",
            at=source.at,
        )
    return memory[source.name]


def write_memory(stream: StreamSpec, batches: Sequence[Rows], folder: Path) -> StreamSpec:
    """Write new batches as files and return the stream as a stream of files.

    A row is a mapping; a string is written as a line without checks.
    """
    for number, rows in enumerate(batches):
        _write_file(stream, rows, folder, number)
    folder.mkdir(parents=True, exist_ok=True)
    # One file for each trigger, so that each list of rows is a batch.
    options = {"connector": "files", "path": str(folder), "format": "json", "max.files.per.trigger": 1}
    zone = stream.connector.get("timestamp.zone")
    return replace(stream, connector=FrozenMap(options | ({"timestamp.zone": zone} if zone else {})))


def _write_file(source: StreamSpec, rows: Rows, folder: Path, number: int) -> None:
    file = folder / f"{number:06}.json"
    if file.exists():
        return  # a run that continues passes the earlier batches again
    folder.mkdir(parents=True, exist_ok=True)
    beside = file.with_name(f".tmp-{file.name}")
    beside.write_text("".join(_format_line(source, row) + "\n" for row in rows), encoding="utf-8")
    # The file source orders files by modification time, and every file system resolves one second.
    os.utime(beside, (_FIRST_TIME + number, _FIRST_TIME + number))
    beside.replace(file)


def _format_line(source: StreamSpec, row: Mapping[str, Any] | str) -> str:
    if isinstance(row, str):
        return row
    if not isinstance(row, Mapping):
        raise ArgumentError(
            f"a row of {source.name!r} is a {type(row).__name__}",
            help="pass mappings from column to value, or strings that are lines of JSON",
        )
    values = {
        name: _to_json(value, source.time_format if name == source.event_time else "")
        for name, value in row.items()
        if value is not None
    }
    return json.dumps(values, ensure_ascii=False)


def _to_json(value: Any, form: str = "") -> Any:
    """Return a value as JSON; `form` is the format of an event time."""
    if isinstance(value, dt.datetime) and form in _EPOCHS:
        moment = value if value.tzinfo else value.replace(tzinfo=dt.UTC)
        micros = (moment - _MOMENT) // dt.timedelta(microseconds=1)
        # Not a float, which has too few digits for microseconds.
        return format(Decimal(micros) / _EPOCHS[form], "f")
    if isinstance(value, dt.datetime):
        plain = value.isoformat(timespec="microseconds").replace("+00:00", "Z")
        return value.strftime(form) if "%" in form else plain
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, Mapping):
        return {k: _to_json(v) for k, v in value.items()}
    return [_to_json(v) for v in value] if isinstance(value, list | tuple) else value


_COLUMNS = (("timestamp", TIMESTAMP), ("value", LONG))


def read_rate(spark: SparkSession, stream: StreamSpec) -> DataFrame:
    """Return an unbounded frame of `t`, `raw`, `c0`, `c1`; raise W2302 if other columns are declared."""
    declared = tuple((f.name, f.dtype) for f in stream.columns.fields)
    if declared != _COLUMNS:
        raise ConnectorError(
            f"stream {stream.name!r} has the connector 'rate', whose columns are timestamp and value",
            code="W2302",
            help=f"CREATE STREAM {stream.name} (timestamp TIMESTAMP, value BIGINT) WITH ('connector'='rate')",
            at=stream.at,
        )
    speed = str(stream.connector.get("rows.per.second") or 1)
    frame = spark.readStream.format("rate").option("rowsPerSecond", speed).load()
    F: Any = functions_of(frame)
    total = stream.connector.get("rows.total")
    if total is not None:
        frame = frame.filter(F.col("value") < F.lit(total))
    return frame.select(*build_columns(F, stream, [(F.col(name), dtype) for name, dtype in _COLUMNS]))


def tick_source(spark: SparkSession) -> DataFrame:
    """Return one row per second, so that batches run while no rows arrive."""
    return spark.readStream.format("rate").option("rowsPerSecond", "1").load()
