"""Rows of a statement into a topic of Kafka: at least once, each with an id that is the same when it comes again.

::

    key       the PRIMARY KEY columns as text, several with | between them; none without them
    value     the row as json, csv or avro
    headers   weft-row-id      <checkpoint>-<batch>-<hash of the row>-<which of the equal rows>
              weft-event-time  time of the row in microseconds of UTC

A batch that is done again after a crash writes its rows again with the ids they had: a reader that keeps each id
once has each row once.  Spark's connector sets the time of a message itself, so the event time is a header.
"""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, IllegalArgumentException, PySparkException
from pyspark.sql import DataFrame

from weft.errors import ConnectorError
from weft.expr.spark.frames import functions_of, window_of
from weft.streams.plan.resolved import StatementPlan
from weft.streams.spark.kafka import (
    FORMAT,
    avro_writer,
    client_options,
    connector_missing,
    kafka_failure,
    refused,
)
from weft.streams.spark.select_stage import EVENT_TIME
from weft.streams.spark.sink_files import csv_options
from weft.streams.sql.spec import SinkSpec

ROW_ID, TIME_HEADER = "weft-row-id", "weft-event-time"
_HASH, _NUMBER, _ROW = "__weft_hash", "__weft_number", "__weft_row"
_JSON = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX", "timeZone": "UTC", "ignoreNullFields": "false"}


def write_kafka(frame: DataFrame, plan: StatementPlan, *, checkpoint: str, batch: int) -> int:
    """Write the rows of a batch to the topic of the sink and return how many they were.

    `frame` has the columns of the sink and the time of each row as `EVENT_TIME`.
    """
    sink = plan.sink
    options = client_options(sink) | {"topic": str(sink.connector["topic"])}
    # Spark tells no observer of what this connector writes: the batch is done before, and counted then.
    held = frame.localCheckpoint(eager=True)
    _written(as_messages(held, plan, checkpoint=checkpoint, batch=batch), sink, options)
    return held.count()


def _written(messages: DataFrame, sink: SinkSpec, options: dict[str, str]) -> None:
    try:
        messages.write.format(FORMAT).options(**options).save()
    except AnalysisException as cause:
        raise connector_missing(sink.name, sink.at) from cause
    except IllegalArgumentException as cause:
        raise refused(sink.name, cause, sink.at) from cause
    except (PySparkException, Py4JJavaError) as cause:
        raise (kafka_failure(str(cause)) or _not_written(sink, cause)) from cause


def as_messages(frame: DataFrame, plan: StatementPlan, *, checkpoint: str, batch: int) -> DataFrame:
    """Return rows as Spark's connector writes them: `key`, `value` and `headers`."""
    F: Any = functions_of(frame)
    names = [column.name for column in plan.output]
    columns = [_named(frame, name) for name in names]
    whole = F.to_json(F.struct(*columns), _JSON)
    hashed = frame.withColumn(_ROW, whole).withColumn(_HASH, F.xxhash64(F.col(_ROW), F.col(EVENT_TIME)))
    same = window_of(frame).partitionBy(_HASH).orderBy(_ROW, EVENT_TIME)
    numbered = hashed.withColumn(_NUMBER, F.row_number().over(same))
    prefix = F.lit(f"{checkpoint}-{batch}-")
    told = F.concat(prefix, F.hex(_HASH), F.lit("-"), F.col(_NUMBER).cast("string"))
    headers = F.array(
        _header(F, ROW_ID, told),
        _header(F, TIME_HEADER, F.coalesce(F.col(EVENT_TIME).cast("string"), F.lit(""))),
    )
    return numbered.select(
        _key(F, frame, plan), _value(F, plan, columns).alias("value"), headers.alias("headers")
    )


def _header(F: Any, name: str, value: Any) -> Any:
    return F.struct(F.lit(name).alias("key"), value.cast("binary").alias("value"))


def _named(frame: DataFrame, name: str) -> Any:
    return frame["`" + name.replace("`", "``") + "`"].alias(name)


def _key(F: Any, frame: DataFrame, plan: StatementPlan) -> Any:
    parts = [_named(frame, name).cast("string") for name in plan.key_columns]
    if not parts:
        return F.lit(None).cast("string").alias("key")
    # A key with a NULL part is still the key of its row: the part is an empty text.
    whole = parts[0] if len(parts) == 1 else F.concat_ws("|", *(F.coalesce(p, F.lit("")) for p in parts))
    return whole.alias("key")


def _value(F: Any, plan: StatementPlan, columns: list[Any]) -> Any:
    sink = plan.sink
    form = str(sink.connector["format"])
    row = F.struct(*columns)
    if form == "json":
        return F.to_json(row, _JSON)
    if form == "csv":
        options = {key: value for key, value in csv_options(sink).items() if key != "header"}
        return F.to_csv(row, options)
    if form == "avro" and sink.columns is not None:
        return avro_writer(sink.name, sink.columns.fields, sink.at)(row)
    raise ConnectorError(
        f"{sink.name!r} writes messages of format {form!r}",
        code="W2311",
        help="a message of Kafka is json, csv or avro",
        at=sink.at,
    )


def _not_written(sink: SinkSpec, cause: Exception) -> ConnectorError:
    return ConnectorError(
        f"the rows of {sink.name!r} cannot be written to Kafka: {str(cause).splitlines()[0]}",
        code="W2309",
        help="nothing of the batch is committed; start the job again, and its rows come with the ids they had",
        at=sink.at,
    )
