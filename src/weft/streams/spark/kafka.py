"""Kafka topics as streams and sinks, through Spark's connector.

A stream::

    value     json, csv or avro: the declared columns
    _KEY  _TIMESTAMP  _PARTITION  _OFFSET  _TOPIC     of the message, where a column of that name is declared

A message that cannot be parsed is rejected and its text kept as `raw`; so is a message without a value.

A sink writes at least once, each row with an id that stays the same when it is written again::

    key       the PRIMARY KEY columns as text, several with | between them; none without them
    value     the row as json, csv or avro
    headers   weft-row-id      <checkpoint>-<batch>-<hash of the row>-<which of the equal rows>
              weft-event-time  time of the row in microseconds of UTC

A batch that is repeated after a crash writes its rows with the same ids, so a reader can deduplicate by id.  Spark's
connector sets the time of a message itself, so the event time is a header.
"""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, IllegalArgumentException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from weft.core.names import quote
from weft.core.types import INTEGER, LONG, STRING, TIMESTAMP, Decimal, DType, Field, Scalar
from weft.errors import ConnectorError, SourceLocation
from weft.expr.spark.frames import functions_of, window_of
from weft.io.spark.files import escape_formula
from weft.joins.spark.failures import FailureRule, explain_failure
from weft.streams.plan.resolved import StatementPlan
from weft.streams.spark.files import TIMES, csv_dialect, csv_options
from weft.streams.spark.readable import build_columns, column_name
from weft.streams.spark.select_stage import EVENT_TIME
from weft.streams.sql.spec import MESSAGE_TIME, SinkSpec, StreamSpec

_TYPES: dict[str, Any] = {
    "string": "string",
    "boolean": "boolean",
    "byte": "int",
    "short": "int",
    "integer": "int",
    "long": "long",
    "float": "float",
    "double": "double",
    "binary": "bytes",
    "date": {"type": "int", "logicalType": "date"},
    "timestamp": {"type": "long", "logicalType": "timestamp-micros"},
    "timestamp_ntz": {"type": "long", "logicalType": "local-timestamp-micros"},
}


def avro_schema(name: str, fields: Iterable[Field], at: SourceLocation | None = None) -> str:
    """Return the Avro schema of declared columns; each may be NULL unless it is declared NOT NULL.

    >>> from weft.core.types import LONG
    >>> avro_schema("orders", [Field("id", LONG, False)])
    '{"type": "record", "name": "orders", "fields": [{"name": "id", "type": "long"}]}'
    """
    listed = []
    for field in fields:
        dtype = _avro_type(name, field, at)
        listed.append({"name": field.name, "type": ["null", dtype] if field.nullable else dtype})
    return json.dumps({"type": "record", "name": name, "fields": listed})


def _avro_type(name: str, field: Field, at: SourceLocation | None) -> Any:
    dtype: DType = field.dtype
    if isinstance(dtype, Decimal):
        return {"type": "bytes", "logicalType": "decimal", "precision": dtype.precision, "scale": dtype.scale}
    if isinstance(dtype, Scalar) and dtype.name in _TYPES:
        return _TYPES[dtype.name]
    raise ConnectorError(
        f"column {field.name!r} of {name!r} is {dtype}, which Avro messages do not support",
        code="W2303",
        help="use 'format' = 'json', or a column of text, numbers, times or bytes",
        at=at,
    )


def avro_reader(stream: StreamSpec, fields: tuple[Field, ...]) -> Callable[[Any], Any]:
    """Return a function that decodes a column of bytes; invalid messages are NULL."""
    schema = avro_schema(stream.name, fields, stream.at)
    from pyspark.sql.avro.functions import from_avro  # noqa: PLC0415  # needs a class of the connector in the JVM

    return lambda column: _call_avro(stream.name, stream.at, lambda: from_avro(column, schema, {"mode": "PERMISSIVE"}))


def avro_writer(name: str, fields: tuple[Field, ...], at: SourceLocation | None) -> Callable[[Any], Any]:
    """Return a function that encodes a column of structs as bytes."""
    schema = avro_schema(name, fields, at)
    from pyspark.sql.avro.functions import to_avro  # noqa: PLC0415  # needs a class of the connector in the JVM

    return lambda column: _call_avro(name, at, lambda: to_avro(column, schema))


def _call_avro(name: str, at: SourceLocation | None, make: Callable[[], Any]) -> Any:
    try:
        return make()
    except TypeError as cause:  # py4j returns a package for a missing class, which is not callable
        raise ConnectorError(
            f"messages of {name!r} are avro, for which Spark needs its avro connector",
            code="W2305",
            help="weft connectors install avro",
            at=at,
        ) from cause


FORMAT = "kafka"
CORRUPT = "__weft_corrupt"
_VALUE, _TEXT, _READ = "value", "__weft_text", "__weft_value"
_REACH_SECONDS = 5.0
_PASSED_ON = "options that begin with 'kafka.' are passed to the Kafka client unchanged"
_FORMATS = "use 'format' = 'json', 'csv' or 'avro' for messages of Kafka"
_MESSAGE: Mapping[str, tuple[str, DType]] = {
    "_KEY": ("key", STRING),
    MESSAGE_TIME: ("timestamp", TIMESTAMP),
    "_PARTITION": ("partition", INTEGER),
    "_OFFSET": ("offset", LONG),
    "_TOPIC": ("topic", STRING),
}


def read_kafka(spark: SparkSession, stream: StreamSpec) -> DataFrame:
    """Return the messages of a topic as an unbounded frame of `t`, `raw`, `c0` .."""
    options = _reading_options(stream)
    if (most := stream.connector.get("max.offsets.per.trigger")) is not None:
        options["maxOffsetsPerTrigger"] = str(most)
    return _build_rows(_load(spark.readStream, options, stream), stream)


def read_kafka_batch(spark: SparkSession, stream: StreamSpec) -> DataFrame:
    """Return the existing messages of a topic, in the form of `read_kafka`."""
    options = _reading_options(stream)
    if options["startingOffsets"] == "latest":
        options["startingOffsets"] = "earliest"  # a batch query from the latest offset would read nothing
    return _build_rows(_load(spark.read, options, stream), stream)


def _reading_options(stream: StreamSpec) -> dict[str, str]:
    connector = stream.connector
    return client_options(stream) | {
        "subscribe": str(connector["topic"]),
        "startingOffsets": str(connector.get("starting.offsets") or "earliest"),
        "failOnDataLoss": str(connector.get("fail.on.data.loss", True)).lower(),
    }


def client_options(spec: StreamSpec | SinkSpec) -> dict[str, str]:
    """Return the options of the Kafka client; raise W2310 if no broker is reachable."""
    servers = str(spec.connector.get("bootstrap.servers") or "localhost:9092")
    check_reachable(servers, spec.name, spec.at)
    own = {key: str(value) for key, value in spec.connector.items() if key.startswith("kafka.")}
    return {**own, "kafka.bootstrap.servers": servers}


def check_reachable(servers: str, name: str, at: SourceLocation | None = None) -> None:
    """Raise `ConnectorError` W2310 if no broker of a list accepts a connection."""
    why = ""
    for server in filter(None, (s.strip() for s in servers.split(","))):
        host, _, port = server.rpartition(":")
        try:
            with socket.create_connection((host.strip("[]") or server, int(port)), timeout=_REACH_SECONDS):
                return
        except ValueError:
            why = f"{server!r} is not host:port"
        except OSError as cause:
            why = f"{server}: {cause.strerror or cause}"
    raise ConnectorError(
        f"no Kafka broker of {name!r} can be reached: {why or 'bootstrap.servers is empty'}",
        code="W2310",
        help=f"check that the broker is running and that 'bootstrap.servers' is correct; it is {servers!r}",
        at=at,
    )


def _shorten(reported: str) -> str:
    return reported.strip()[:300]


_REPORTED = r"org\.apache\.kafka\.([^\n]*)"
"""An exception of the Kafka client, which has no condition of Spark; the group is its class and message."""
KAFKA = (
    FailureRule(
        error=ConnectorError,
        code="W2301",
        message="a topic that the job reads does not exist",
        help="check 'topic' of its Kafka streams; create the topic, or write a message to it",
        text=re.compile("UnknownTopicOrPartitionException"),
    ),
    FailureRule(
        error=ConnectorError,
        code="W2301",
        message="Kafka deleted messages before they were read",
        help="'fail.on.data.loss' = 'false' continues with the existing messages; `--fresh` begins again",
        conditions=("KAFKA_DATA_LOSS",),
        text=re.compile("Some data may have been lost"),  # the log of the connector, in releases without the condition
    ),
    FailureRule(
        error=ConnectorError,
        code="W2310",
        message="a Kafka broker does not answer: {0}",
        help="check that the brokers in 'bootstrap.servers' are running, then start the job again to continue",
        text=re.compile(rf"(?s)\A(?=.*(?:TimeoutException|Disconnect)).*?{_REPORTED}"),
        clean=_shorten,
    ),
    FailureRule(
        error=ConnectorError,
        code="W2311",
        message="Kafka reports an error: {0}",
        help=_PASSED_ON,
        text=re.compile(_REPORTED),
        clean=_shorten,
    ),
)
"""What failures of queries mean that concern Kafka."""


def _load(reader: Any, options: Mapping[str, str], stream: StreamSpec) -> DataFrame:
    with _explain_refusals(stream.name, stream.at):
        frame: DataFrame = reader.format(FORMAT).options(**options).load()
        return frame


@contextmanager
def _explain_refusals(name: str, at: SourceLocation | None) -> Iterator[None]:
    """Raise the errors for a session without the Kafka connector, and for an option that the connector rejects."""
    try:
        yield
    except AnalysisException as cause:
        raise ConnectorError(
            f"{name!r} is a topic of Kafka, for which Spark needs its Kafka connector",
            code="W2304",
            help="`weft connectors install kafka` fetches it; a session of your own needs it in spark.jars",
            at=at,
        ) from cause
    except IllegalArgumentException as cause:
        raise ConnectorError(
            f"the Kafka connector refuses an option of {name!r}: {str(cause).splitlines()[0]}",
            code="W2311",
            help=_PASSED_ON,
            at=at,
        ) from cause


def _build_rows(frame: DataFrame, stream: StreamSpec) -> DataFrame:
    F: Any = functions_of(frame)
    inner = tuple(f for f in stream.columns.fields if message_column(f.name) is None)
    text = F.col(_VALUE).cast("string")
    form = str(stream.connector["format"])
    parsed = frame.withColumn(_TEXT, text).withColumn(_READ, _parse_value(F, stream, form, inner, text))
    # Columns of CSV messages are positional, so they have generated names.
    held = {f.name: column_name(i) if form == "csv" else f.name for i, f in enumerate(inner)}
    values: list[tuple[Any, DType]] = []
    for field in stream.columns.fields:
        own = message_column(field.name)
        if own is None:
            dtype = field.dtype if form == "avro" else STRING
            values.append((F.col(_READ)[held[field.name]], dtype))
        else:
            column = F.col(own[0])
            values.append((column.cast("string") if own[0] == "key" else column, own[1]))
    corrupt = _corrupt_column(F, form, has_values=bool(inner))
    return parsed.select(*build_columns(F, stream, values, corrupt=corrupt, message_time=F.col("timestamp")))


def message_column(name: str) -> tuple[str, DType] | None:
    """Return the metadata column of a declared name, ignoring case; None for columns of the value."""
    return _MESSAGE.get(name.upper())


def _parse_value(F: Any, stream: StreamSpec, form: str, inner: tuple[Field, ...], text: Any) -> Any:
    if form == "avro":
        return avro_reader(stream, inner)(F.col(_VALUE))
    if form not in ("json", "csv"):
        raise ConnectorError(
            f"{stream.name!r} reads messages of the unknown format {form!r}",
            code="W2311",
            help=_FORMATS,
            at=stream.at,
        )
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
    if form == "json":
        names = [*(f.name for f in inner), CORRUPT]
        return F.from_json(text, StructType([StructField(n, StringType()) for n in names]), options)
    places = ", ".join(f"{name} string" for name in (*map(column_name, range(len(inner))), CORRUPT))
    return F.from_csv(text, places, options | csv_dialect(stream.connector))


def _corrupt_column(F: Any, form: str, *, has_values: bool) -> Any:
    """Return the text of a message that cannot be parsed, else NULL."""
    nothing = F.lit(None).cast("string")
    if not has_values:  # only metadata columns are declared, so the value is unused
        return nothing
    if form == "avro":
        broken = F.when(F.col(_READ).isNull(), F.base64(F.col(_VALUE)))  # bytes that need not be valid UTF-8
    else:
        corrupt = F.col(_READ)[CORRUPT]
        # Spark would parse a list of objects as its first one.
        no_object = ~F.col(_TEXT).rlike(r"^\s*\{") if form == "json" else F.lit(False)
        broken = F.when(F.col(_READ).isNull() | no_object, F.col(_TEXT)).otherwise(corrupt)
    # A message without a value (a tombstone) has no text, but is rejected too.
    return F.when(F.col(_VALUE).isNull(), F.lit("null")).otherwise(broken)


ROW_ID, TIME_HEADER = "weft-row-id", "weft-event-time"
_HASH, _NUMBER, _ROW = "__weft_hash", "__weft_number", "__weft_row"
_JSON = {**TIMES, "ignoreNullFields": "false"}


def write_kafka(frame: DataFrame, plan: StatementPlan, *, checkpoint: str, batch: int) -> int:
    """Write the rows of a batch to the topic of the sink and return how many they were.

    `frame` has the columns of the sink and the time of each row as `EVENT_TIME`.
    """
    sink = plan.sink
    options = client_options(sink) | {"topic": str(sink.connector["topic"])}
    # Spark has no observation for writes of this connector, so compute the batch first and count it.
    held = frame.localCheckpoint(eager=True)
    _save_messages(build_messages(held, plan, checkpoint=checkpoint, batch=batch), sink, options)
    return held.count()


def _save_messages(messages: DataFrame, sink: SinkSpec, options: dict[str, str]) -> None:
    try:
        with _explain_refusals(sink.name, sink.at):
            messages.write.format(FORMAT).options(**options).save()
    except (PySparkException, Py4JJavaError) as cause:
        raise (explain_failure(cause, KAFKA) or _write_error(sink, cause)) from cause


def build_messages(frame: DataFrame, plan: StatementPlan, *, checkpoint: str, batch: int) -> DataFrame:
    """Return rows as messages for Spark's connector: `key`, `value` and `headers`."""
    F: Any = functions_of(frame)
    names = [column.name for column in plan.output]
    columns = [frame[quote(name)].alias(name) for name in names]
    whole = F.to_json(F.struct(*columns), _JSON)
    hashed = frame.withColumn(_ROW, whole).withColumn(_HASH, F.xxhash64(F.col(_ROW), F.col(EVENT_TIME)))
    # Equal rows need different ids, or a reader would take the second one for a repetition.
    same = window_of(frame).partitionBy(_HASH).orderBy(_ROW, EVENT_TIME)
    numbered = hashed.withColumn(_NUMBER, F.row_number().over(same))
    prefix = F.lit(f"{checkpoint}-{batch}-")
    row_id = F.concat(prefix, F.hex(_HASH), F.lit("-"), F.col(_NUMBER).cast("string"))
    headers = F.array(
        _header(F, ROW_ID, row_id), _header(F, TIME_HEADER, F.coalesce(F.col(EVENT_TIME).cast("string"), F.lit("")))
    )
    return numbered.select(
        _key_column(F, frame, plan), _value_column(F, plan, columns).alias("value"), headers.alias("headers")
    )


def _header(F: Any, name: str, value: Any) -> Any:
    return F.struct(F.lit(name).alias("key"), value.cast("binary").alias("value"))


def _key_column(F: Any, frame: DataFrame, plan: StatementPlan) -> Any:
    parts = [frame[quote(name)].cast("string") for name in plan.key_columns]
    if not parts:
        return F.lit(None).cast("string").alias("key")
    # A NULL part of a key is an empty string.
    whole = parts[0] if len(parts) == 1 else F.concat_ws("|", *(F.coalesce(p, F.lit("")) for p in parts))
    return whole.alias("key")


def _value_column(F: Any, plan: StatementPlan, columns: list[Any]) -> Any:
    sink = plan.sink
    form = str(sink.connector["format"])
    if form == "csv" and sink.connector.get("escape.formulas"):
        pairs = zip(plan.output, columns, strict=True)
        columns = [escape_formula(F, c).alias(o.name) if o.dtype == STRING else c for o, c in pairs]
    row = F.struct(*columns)
    if form == "json":
        return F.to_json(row, _JSON)
    if form == "csv":
        options = {key: value for key, value in csv_options(sink).items() if key != "header"}
        return F.to_csv(row, options)
    if form == "avro" and sink.columns is not None:
        return avro_writer(sink.name, sink.columns.fields, sink.at)(row)
    raise ConnectorError(
        f"{sink.name!r} writes messages of the unknown format {form!r}",
        code="W2311",
        help=_FORMATS,
        at=sink.at,
    )


def _write_error(sink: SinkSpec, cause: Exception) -> ConnectorError:
    return ConnectorError(
        f"the rows of {sink.name!r} cannot be written to Kafka: {str(cause).splitlines()[0]}",
        code="W2309",
        help="nothing of the batch is committed; start the job again, and its rows keep their ids",
        at=sink.at,
    )
