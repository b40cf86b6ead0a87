"""Values of Kafka messages in Avro: one record, its schema made of the declared columns."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from weft.core.types import Decimal, DType, Field, Scalar
from weft.errors import ConnectorError, Place
from weft.streams.sql.spec import StreamSpec

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


def avro_schema(name: str, fields: Iterable[Field], at: Place | None = None) -> str:
    """Return the Avro schema of declared columns; each may be NULL unless it is declared NOT NULL.

    >>> from weft.core.types import LONG
    >>> avro_schema("orders", [Field("id", LONG, False)])
    '{"type": "record", "name": "orders", "fields": [{"name": "id", "type": "long"}]}'
    """
    listed = []
    for field in fields:
        dtype = _type(name, field, at)
        listed.append({"name": field.name, "type": ["null", dtype] if field.nullable else dtype})
    return json.dumps({"type": "record", "name": name, "fields": listed})


def _type(name: str, field: Field, at: Place | None) -> Any:
    dtype: DType = field.dtype
    if isinstance(dtype, Decimal):
        return {"type": "bytes", "logicalType": "decimal", "precision": dtype.precision, "scale": dtype.scale}
    if isinstance(dtype, Scalar) and dtype.name in _TYPES:
        return _TYPES[dtype.name]
    raise ConnectorError(
        f"column {field.name!r} of {name!r} is {dtype}, which has no place in an Avro message",
        code="W2303",
        help="use 'format' = 'json', or a column of text, numbers, times or bytes",
        at=at,
    )


def avro_reader(stream: StreamSpec, fields: tuple[Field, ...]) -> Callable[[Any], Any]:
    """Return what reads a column of bytes as a record; what does not read is NULL."""
    schema = avro_schema(stream.name, fields, stream.at)
    from pyspark.sql.avro.functions import from_avro  # noqa: PLC0415  # asks the JVM for a class of the connector

    return lambda column: _asked(
        stream.name, stream.at, lambda: from_avro(column, schema, {"mode": "PERMISSIVE"})
    )


def avro_writer(name: str, fields: tuple[Field, ...], at: Place | None) -> Callable[[Any], Any]:
    """Return what writes a column of structs as bytes."""
    schema = avro_schema(name, fields, at)
    from pyspark.sql.avro.functions import to_avro  # noqa: PLC0415  # asks the JVM for a class of the connector

    return lambda column: _asked(name, at, lambda: to_avro(column, schema))


def _asked(name: str, at: Place | None, make: Callable[[], Any]) -> Any:
    try:
        return make()
    except (
        TypeError
    ) as cause:  # a class that the JVM does not have is a package for py4j, which cannot be called
        raise ConnectorError(
            f"messages of {name!r} are avro, for which Spark needs its avro connector",
            code="W2305",
            help="weft connectors install avro",
            at=at,
        ) from cause
