"""Rows of a source in the form that every stage reads: event time, malformed text, the declared columns.

::

    t      microseconds of the event time in UTC, NULL when the row has none
    raw    the text of a malformed row, else NULL
    c0 ..  the declared columns in their order and types

A value that cannot be converted exactly to the declared type makes its row malformed, and so does NULL in a NOT NULL
column.  Event times are the same whatever the time zone and ANSI mode of the session::

    iso8601         '2026-01-14T10:00:00Z', '2026-01-14 10:00:00' (in timestamp.zone), '2026-01-14'
    epoch_seconds   1736848800, '1736848800.25'         epoch_millis, epoch_micros: likewise
    timestamp       a column of type TIMESTAMP
    %d.%m.%Y %H:%M  a pattern

An invalid time gives NULL, never an error: the row is rejected and the query continues.  Where a policy refuses a
row, Spark raises a message that `find_refused_row` turns into a coded error.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Sequence
from functools import reduce
from types import ModuleType
from typing import Any

from weft.core.types import DATE, STRING, TIMESTAMP, TIMESTAMP_NTZ, DType, Field
from weft.errors import Code, ConnectorError, StreamError, WeftError
from weft.expr.literals import text_form
from weft.expr.spark.types import to_spark
from weft.io.spark.strict import exact
from weft.joins.spark.failures import FailureRule, explain_failure
from weft.streams.sql.spec import MESSAGE_TIME, StreamSpec

ROW_MARK = "[STREAM_ROW]"
"""Prefix of the message of a row that a policy refuses; the code and the problem follow."""
TABLE_MARK = "[STREAM_TABLE]"
"""Prefix of the message of an invalid row of a table."""


def _refusal_rule(mark: str, error: type[WeftError], code: Code, help: str) -> FailureRule:
    text = re.compile(rf"{re.escape(mark)} {code} (.*?)(?:\s*SQLSTATE: \w+|\n|\Z)", re.DOTALL)
    return FailureRule(error=error, code=code, message="{0}", help=help, text=text)


_HELP: dict[Code, str] = {
    "W2207": "correct the data, or write 'join.missing_event_time'='reject'",
    "W2208": "correct the data, or write 'malformed'='reject'",
    "W2303": "correct the row, or declare the column with the type that its values have",
}
REFUSALS = tuple(
    _refusal_rule(mark, error, code, help)
    for mark, error in ((ROW_MARK, StreamError), (TABLE_MARK, ConnectorError))
    for code, help in _HELP.items()
)


def find_refused_row(failure: BaseException) -> WeftError | None:
    """Return the error of a refused row in the failure of a Spark job, or None.

    >>> print(find_refused_row(RuntimeError("[STREAM_TABLE] W2303 table 'p': row {} SQLSTATE: P0001")))
    error[W2303]: table 'p': row {}
     = help: correct the row, or declare the column with the type that its values have
    """
    return explain_failure(failure, REFUSALS)


def raise_where(F: ModuleType, rows: Any, refused: Any, content: Any, problem: str) -> Any:
    """Return rows whose job fails with `problem` and the start of `content` at the first refused row."""
    message = F.concat(F.lit(f"{problem}: "), F.coalesce(F.substring(content, 1, _MAX_TEXT), F.lit("")))
    failing = F.when(refused, F.raise_error(message).cast("boolean"))
    # Not deterministic, so that Spark does not move other filters before it.
    return rows.filter(failing.otherwise(F.spark_partition_id() >= 0))


UTC = "UTC"
_MAX_TEXT = 200
_BLANKS = " \t\r\n"
_ZONE = r"(?:Z|[+-][0-9]{2}:?[0-9]{2})$"
_EPOCHS = {"epoch_seconds": 1_000_000, "epoch_millis": 1_000, "epoch_micros": 1}
_DIRECTIVES = {
    "Y": "yyyy", "y": "yy", "m": "MM", "b": "MMM", "d": "dd", "j": "DDD", "H": "HH", "I": "hh",
    "M": "mm", "S": "ss", "f": "SSSSSS", "p": "a", "z": "[XXX][XX][X]", "%": "'%'",
}  # fmt: skip


def event_micros(F: ModuleType, column: Any, dtype: DType, *, form: str, zone: str = UTC) -> Any:
    """Return the time in a column of type `dtype` as microseconds; invalid times are NULL."""
    if form in _EPOCHS:
        return _parse_epoch(F, column, dtype, _EPOCHS[form])
    if dtype == TIMESTAMP:
        return F.unix_micros(column)
    if dtype in (TIMESTAMP_NTZ, DATE):
        return F.unix_micros(_local_to_timestamp(F, column.cast("timestamp_ntz"), zone))
    if dtype != STRING:
        raise ConnectorError(
            f"an event time of type {dtype} cannot be read as {form!r}",
            code="W2303",
            help="numbers are epoch_seconds, epoch_millis or epoch_micros: set 'event.time.format'",
        )
    text = F.btrim(column, F.lit(_BLANKS))
    moment = _parse_pattern(F, text, form, zone) if "%" in form else parse_iso(F, text, zone)
    return F.unix_micros(moment)


def parse_iso(F: ModuleType, text: Any, zone: str = UTC) -> Any:
    """Parse an ISO string as TIMESTAMP; without an offset it is a time of `zone`."""
    local = _local_to_timestamp(F, text.try_cast("timestamp_ntz"), zone)
    fits = text.rlike(rf"\A(?:{text_form('timestamp')}|.{{16,26}}[+-][0-9]{{4}})\z")
    read = F.when(text.rlike(_ZONE), text.try_cast("timestamp")).otherwise(local)
    return F.when(fits, read)


def _local_to_timestamp(F: ModuleType, clock: Any, zone: str) -> Any:
    """Return a local time of `zone` as TIMESTAMP."""
    # A cast from timestamp_ntz would use the time zone of the session.
    utc = clock if zone == UTC else F.convert_timezone(F.lit(zone), F.lit(UTC), clock)
    return F.concat(utc.cast("string"), F.lit("Z")).try_cast("timestamp")


def _parse_epoch(F: ModuleType, column: Any, dtype: DType, factor: int) -> Any:
    number = F.btrim(column, F.lit(_BLANKS)) if dtype == STRING else column
    if dtype in (TIMESTAMP, TIMESTAMP_NTZ, DATE):
        raise ConnectorError(
            f"an event time of type {dtype} is not a count since the epoch",
            code="W2303",
            help="leave out 'event.time.format', or write 'timestamp'",
        )
    # An overflow is NULL in every ANSI mode.
    whole = F.try_multiply(number.try_cast("bigint"), F.lit(factor).cast("bigint"))
    if dtype.is_integer:
        return whole
    parts = F.floor(number.try_cast("decimal(28,9)") * F.lit(factor)).try_cast("bigint")
    if dtype != STRING:
        return parts
    return F.coalesce(whole, parts)  # a string with a fraction cannot be cast to bigint


def _parse_pattern(F: ModuleType, text: Any, form: str, zone: str) -> Any:
    pattern = spark_pattern(form)
    if "%z" in form:
        return F.try_to_timestamp(text, F.lit(pattern))
    # The zone is appended to the text, so that the session's zone is not used.
    return F.try_to_timestamp(F.concat(text, F.lit(f" {zone}")), F.lit(f"{pattern} VV"))


def spark_pattern(form: str) -> str:
    """Return a pattern of Python's strptime as a Spark pattern.

    >>> spark_pattern("%d.%m.%Y at %H:%M")
    "dd'.'MM'.'yyyy' at 'HH':'mm"
    """
    parts: list[str] = []
    literal = ""
    letters = iter(form)
    for letter in letters:
        if letter != "%":
            literal += letter
            continue
        directive = next(letters, "")
        if directive == "%":
            literal += "%"
            continue
        if directive not in _DIRECTIVES:
            raise ConnectorError(
                f"the time pattern {form!r} has %{directive}, which is not supported",
                code="W2311",
                help=f"use {', '.join('%' + d for d in _DIRECTIVES)}",
            )
        if literal:
            parts.append(_quote(literal))
            literal = ""
        parts.append(_DIRECTIVES[directive])
    return "".join([*parts, _quote(literal)] if literal else parts)


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


TIME, RAW = "t", "raw"


def column_name(index: int) -> str:
    """Return the name of a declared column in the rows of a source."""
    return f"c{index}"


def build_columns(
    F: ModuleType,
    stream: StreamSpec,
    values: Sequence[tuple[Any, DType]],
    *,
    corrupt: Any = None,
    message_time: Any = None,
) -> list[Any]:
    """Return the columns `t`, `raw`, `c0` .. of a source.

    `values` are the declared columns as read, each with its type: strings for JSON and CSV.
    `corrupt` is the text of a line that cannot be parsed, `message_time` the time of a Kafka message.
    """
    zone = str(stream.connector.get("timestamp.zone") or UTC)
    fields = stream.columns.fields
    time, time_column = _event_time(F, stream, values, message_time, zone)
    wrong: list[Any] = [] if time_column is None else [time_column.isNotNull() & time.isNull()]
    columns = []
    for (column, source), field in zip(values, fields, strict=True):
        is_time = field.name == stream.event_time
        if is_time and field.dtype == TIMESTAMP:
            # Parsed once, in the format of the event time, which need not be that of the other columns.
            columns.append(F.timestamp_micros(time))
            continue
        value, fits = _convert(F, column, source, field, zone)
        columns.append(value)
        if fits is not None:
            wrong.append(column.isNotNull() & ~F.coalesce(fits, F.lit(False)))
    wrong.extend(v.isNull() for v, f in zip(columns, fields, strict=True) if not f.nullable)
    raw = _raw_column(F, values, fields, corrupt, wrong)
    return [time.alias(TIME), raw.alias(RAW), *(value.alias(column_name(i)) for i, value in enumerate(columns))]


def _event_time(
    F: ModuleType, stream: StreamSpec, values: Sequence[tuple[Any, DType]], message_time: Any, zone: str
) -> tuple[Any, Any]:
    """Return the event time in microseconds, and the column that it is parsed from."""
    if stream.event_time == MESSAGE_TIME and message_time is not None:
        return F.unix_micros(message_time), None
    if stream.event_time is None:
        return F.lit(None).cast("bigint"), None
    column, dtype = values[stream.columns.index(stream.event_time)]
    form = "iso8601" if stream.time_format == "timestamp" and dtype == STRING else stream.time_format
    return event_micros(F, column, dtype, form=form, zone=zone), column


def _convert(F: ModuleType, column: Any, source: DType, field: Field, zone: str) -> tuple[Any, Any]:
    """Return the value in its declared type and the condition that it is exact; None means always."""
    target = field.dtype
    if source == STRING and target.is_integer:
        value = F.btrim(column, F.lit(_BLANKS)).try_cast(to_spark(target))
        return value, value.isNotNull()
    if source == STRING and target == TIMESTAMP:
        value = parse_iso(F, F.btrim(column, F.lit(_BLANKS)), zone)
        return value, value.isNotNull()
    if source == STRING and target.is_nested:
        # JSON and CSV are read as strings, so a nested value arrives as its JSON text.
        value = F.from_json(column, to_spark(target))
        return value, value.isNotNull()
    read = exact(F, column, source, target)
    if read is None:
        raise ConnectorError(
            f"column {field.name!r} is {source} in the data and is declared as {target}",
            code="W2303",
            help=f"declare it as {source}, or write the data in the declared type",
        )
    value, fits = read
    return (value, None) if fits is None else (F.when(fits, value), fits)


def _raw_column(
    F: ModuleType, values: Sequence[tuple[Any, DType]], fields: Sequence[Field], corrupt: Any, wrong: list[Any]
) -> Any:
    nothing = F.lit(None).cast("string")
    named = [column.alias(field.name) for (column, _), field in zip(values, fields, strict=True)]
    row = F.to_json(F.struct(*named))
    raw = F.when(reduce(operator.or_, wrong), row).otherwise(nothing) if wrong else nothing
    return raw if corrupt is None else F.when(corrupt.isNotNull(), corrupt).otherwise(raw)
