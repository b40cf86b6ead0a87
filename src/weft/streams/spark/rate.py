"""Rows that a clock makes: ``timestamp`` and ``value``, counted from 0."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from weft.core.types import LONG, TIMESTAMP
from weft.errors import ConnectorError
from weft.expr.spark.frames import functions_of
from weft.streams.spark.readable import readable
from weft.streams.sql.spec import StreamSpec

_COLUMNS = (("timestamp", TIMESTAMP), ("value", LONG))


def read_rate(spark: SparkSession, stream: StreamSpec) -> DataFrame:
    """Return an unbounded frame of `t`, `raw`, `c0`, `c1`; raise W2302 when other columns are declared."""
    declared = tuple((f.name, f.dtype) for f in stream.columns.fields)
    if declared != _COLUMNS:
        raise ConnectorError(
            f"stream {stream.name!r} has the connector 'rate', which gives the columns timestamp and value",
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
    return frame.select(*readable(F, stream, [(F.col(name), dtype) for name, dtype in _COLUMNS]))


def tick_source(spark: SparkSession) -> DataFrame:
    """Return a row a second, so that batches happen while nothing arrives."""
    return spark.readStream.format("rate").option("rowsPerSecond", "1").load()
