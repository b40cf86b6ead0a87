"""Literals and casts as Spark columns."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal as Number
from typing import Any

from weft.core.types import BOOLEAN, DOUBLE, FLOAT, INTERVAL, LONG, STRING, DType
from weft.expr.casts import kind_of
from weft.expr.patterns import text_form
from weft.expr.spark.types import cast_to

_BLANKS = " \t\r\n"
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
    """Return the column in another type; values that have no place there fail the query."""
    origin, kind = kind_of(source), kind_of(target)
    if source == target:
        return column
    if origin == "string" and kind != "string":
        trimmed = fn.btrim(column, fn.lit(_BLANKS)).cast(cast_to(target))
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
