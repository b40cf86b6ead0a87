"""Rows of a source as every stage gets them: event time, what does not read, the declared columns.

::

    t      microseconds of the event time, NULL when the row has none
    raw    the text of a row that does not read, NULL when it reads
    c0 ..  the declared columns in their order and types

A value that has no exact place in the declared type makes its row unreadable, and so does NULL where NOT NULL
is declared.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import reduce
from types import ModuleType
from typing import Any

from weft.core.types import STRING, TIMESTAMP, DType, Field
from weft.errors import ConnectorError
from weft.expr.spark.types import to_spark
from weft.io.spark.strict import exact
from weft.streams.spark.event_time import UTC, event_micros, iso_moment
from weft.streams.sql.spec import MESSAGE_TIME, StreamSpec

TIME, RAW = "t", "raw"
_BLANKS = " \t\r\n"


def column_name(index: int) -> str:
    """Return the name of a declared column in the rows of a source."""
    return f"c{index}"


def readable(
    F: ModuleType,
    stream: StreamSpec,
    values: Sequence[tuple[Any, DType]],
    *,
    corrupt: Any = None,
    message_time: Any = None,
) -> list[Any]:
    """Return the columns `t`, `raw`, `c0` .. of a source.

    `values` are the declared columns as they were read, each with its type: texts for JSON and CSV.
    `corrupt` is the text of a line that is no row at all, `message_time` the time of a Kafka message.
    """
    zone = str(stream.connector.get("timestamp.zone") or UTC)
    fields = stream.columns.fields
    time, shown = _time(F, stream, values, message_time, zone)
    wrong: list[Any] = [] if shown is None else [shown.isNotNull() & time.isNull()]
    found = []
    for (column, source), field in zip(values, fields, strict=True):
        is_time = field.name == stream.event_time
        if is_time and field.dtype == TIMESTAMP:
            found.append(F.timestamp_micros(time))
            continue
        value, fits = _converted(F, column, source, field, zone)
        found.append(value)
        if fits is not None:
            wrong.append(column.isNotNull() & ~F.coalesce(fits, F.lit(False)))
    wrong.extend(v.isNull() for v, f in zip(found, fields, strict=True) if not f.nullable)
    raw = _raw(F, values, fields, corrupt, wrong)
    return [
        time.alias(TIME),
        raw.alias(RAW),
        *(value.alias(column_name(i)) for i, value in enumerate(found)),
    ]


def _time(
    F: ModuleType, stream: StreamSpec, values: Sequence[tuple[Any, DType]], message_time: Any, zone: str
) -> tuple[Any, Any]:
    """Return the event time in microseconds, and the column that must read as one."""
    if stream.event_time == MESSAGE_TIME and message_time is not None:
        return F.unix_micros(message_time), None
    if stream.event_time is None:
        return F.lit(None).cast("bigint"), None
    column, dtype = values[stream.columns.index(stream.event_time)]
    form = "iso8601" if stream.time_format == "timestamp" and dtype == STRING else stream.time_format
    return event_micros(F, column, dtype, form=form, zone=zone), column


def _converted(F: ModuleType, column: Any, source: DType, field: Field, zone: str) -> tuple[Any, Any]:
    """Return the value in its declared type and the condition under which it is exact; None: always."""
    target = field.dtype
    if source == STRING and target.is_integer:
        value = F.btrim(column, F.lit(_BLANKS)).try_cast(to_spark(target))
        return value, value.isNotNull()
    if source == STRING and target == TIMESTAMP:
        value = iso_moment(F, F.btrim(column, F.lit(_BLANKS)), zone)
        return value, value.isNotNull()
    if source == STRING and target.is_nested:
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


def _raw(
    F: ModuleType,
    values: Sequence[tuple[Any, DType]],
    fields: Sequence[Field],
    corrupt: Any,
    wrong: list[Any],
) -> Any:
    nothing = F.lit(None).cast("string")
    named = [column.alias(field.name) for (column, _), field in zip(values, fields, strict=True)]
    told = F.to_json(F.struct(*named))
    found = F.when(reduce(operator.or_, wrong), told).otherwise(nothing) if wrong else nothing
    return found if corrupt is None else F.when(corrupt.isNotNull(), corrupt).otherwise(found)
