"""Spark's data types and ours, both ways; literals and casts in them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal as Number
from typing import Any

from pyspark.sql import types as st

from weft.core.types import (
    BOOLEAN,
    DOUBLE,
    FLOAT,
    INTERVAL,
    LONG,
    STRING,
    Array,
    Decimal,
    DType,
    Field,
    Map,
    Scalar,
    ScalarName,
    Struct,
)
from weft.errors import JoinTypeError
from weft.expr.casts import kind_of
from weft.expr.literals import BLANKS, text_form

_SCALARS: tuple[tuple[type[st.DataType], ScalarName], ...] = (
    (st.BinaryType, "binary"),
    (st.BooleanType, "boolean"),
    (st.ByteType, "byte"),
    (st.ShortType, "short"),
    (st.IntegerType, "integer"),
    (st.LongType, "long"),
    (st.FloatType, "float"),
    (st.DoubleType, "double"),
    (st.DateType, "date"),
    (st.TimestampType, "timestamp"),
    (st.TimestampNTZType, "timestamp_ntz"),
    # Spark 4.0 has no type for the time of day.
    *(((st.TimeType, "time"),) if hasattr(st, "TimeType") else ()),
    (st.DayTimeIntervalType, "interval"),
    (st.YearMonthIntervalType, "interval_ym"),
    (st.VariantType, "variant"),
    (st.NullType, "null"),
)
_TO_SPARK: dict[str, type[st.DataType]] = {name: kind for kind, name in _SCALARS}
_DEFAULT_COLLATION = "UTF8_BINARY"


def from_spark(dtype: st.DataType) -> DType:
    """Return our type for Spark's."""
    if isinstance(dtype, st.StringType | st.CharType | st.VarcharType):
        collation = getattr(dtype, "collation", _DEFAULT_COLLATION)
        return Scalar("string", "" if collation == _DEFAULT_COLLATION else collation)
    if isinstance(dtype, st.DecimalType):
        return Decimal(dtype.precision, dtype.scale)
    if isinstance(dtype, st.ArrayType):
        return Array(from_spark(dtype.elementType), dtype.containsNull)
    if isinstance(dtype, st.MapType):
        return Map(from_spark(dtype.keyType), from_spark(dtype.valueType), dtype.valueContainsNull)
    if isinstance(dtype, st.StructType):
        return Struct(tuple(Field(f.name, from_spark(f.dataType), f.nullable) for f in dtype.fields))
    if isinstance(dtype, st.UserDefinedType):
        return from_spark(dtype.sqlType())
    for kind, name in _SCALARS:
        if isinstance(dtype, kind):
            return Scalar(name)
    raise JoinTypeError(
        f"Spark's type {dtype.simpleString()} is not known to Weft", help="cast the column to another type, or drop it"
    )


_TEXTS: dict[str, str] = {
    "boolean": "boolean", "byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint",
    "float": "float", "double": "double", "date": "date", "timestamp": "timestamp_ltz",
    "timestamp_ntz": "timestamp_ntz", "binary": "binary",
}  # fmt: skip


def cast_to(dtype: DType) -> st.DataType | str:
    """Return a type for ``Column.cast``, as a string where possible.

    A string costs one call to the JVM, a type several: long projects have thousands of casts.
    """
    if isinstance(dtype, Decimal):
        return str(dtype)
    if isinstance(dtype, Scalar) and not dtype.collation:
        return "string" if dtype.name == "string" else _TEXTS.get(dtype.name) or to_spark(dtype)
    return to_spark(dtype)


def to_spark(dtype: DType) -> st.DataType:
    """Return Spark's type for ours."""
    if isinstance(dtype, Decimal):
        return st.DecimalType(dtype.precision, dtype.scale)
    if isinstance(dtype, Array):
        return st.ArrayType(to_spark(dtype.element), dtype.contains_null)
    if isinstance(dtype, Map):
        return st.MapType(to_spark(dtype.key), to_spark(dtype.value), dtype.contains_null)
    if isinstance(dtype, Struct):
        return st.StructType([st.StructField(f.name, to_spark(f.dtype), f.nullable) for f in dtype.fields])
    if isinstance(dtype, Scalar):
        if dtype.name == "string":
            return st.StringType(dtype.collation) if dtype.collation else st.StringType()
        if dtype.name in _TO_SPARK:
            return _TO_SPARK[dtype.name]()
    raise JoinTypeError(f"{dtype} has no Spark type", help="use a type that weft.core.types.parse_type reads")


_LONG_END = float(1 << 63)


def literal(fn: Any, value: object, dtype: DType) -> Any:
    """Return a constant of exactly that type, whatever the session's zone."""
    match value:
        case dt.timedelta() if dtype == INTERVAL:
            return fn.lit(value)
        case dt.datetime() if value.tzinfo is not None:
            since = value - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
            return fn.timestamp_micros(fn.lit(since // dt.timedelta(microseconds=1)))
        case dt.datetime() | dt.date():
            value = value.isoformat()
        case Number():
            value = format(value, "f")
        case bool() if dtype == BOOLEAN:
            return fn.lit(value)
        case str() if dtype == STRING:
            return fn.lit(value)
    return fn.lit(value).cast(cast_to(dtype))


def cast(fn: Any, column: Any, source: DType, target: DType) -> Any:
    """Return the column in another type; values that cannot be converted fail the query."""
    origin, kind = kind_of(source), kind_of(target)
    if source == target:
        return column
    if origin == "string" and kind != "string":
        # Spark casts more strings than Python does ('2026', '1d', ' 1 '): only those of the same pattern are cast.
        trimmed = fn.btrim(column, fn.lit(BLANKS)).cast(cast_to(target))
        fits = column.isNull() | column.rlike(rf"\A(?:{text_form(kind)})\z")
        message = fn.concat(fn.lit("'"), column, fn.lit(f"' cannot be read as {target}"))
        return fn.when(fits, trimmed).otherwise(fn.raise_error(message))
    if origin == "double" and kind in ("decimal", "integer"):
        return whole_or_exact(fn, column.cast(cast_to(DOUBLE)), target)
    if target == FLOAT:
        # Spark's optimiser drops a float between an integer and a double, and its rounding with it.
        column = column.cast(cast_to(DOUBLE))
    return column.cast(cast_to(target))


def whole_or_exact(fn: Any, number: Any, target: DType) -> Any:
    """Return a double as decimal or integer; Spark gives NULL for NaN and the end of long for 2^63."""
    fits = number.isNull() | ~(fn.isnan(number) | (fn.abs(number) == fn.lit(float("inf"))))
    if target == LONG:
        fits = number.isNull() | (~fn.isnan(number) & (number < fn.lit(_LONG_END)))
    message = fn.concat(number.cast("string"), fn.lit(f" cannot be read as {target}"))
    return fn.when(fits, number.cast(cast_to(target))).otherwise(fn.raise_error(message))
