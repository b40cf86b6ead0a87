"""CAST: which types can be cast, and the conversion of values."""

from __future__ import annotations

import datetime as dt
import math
import re
import struct
from collections.abc import Callable
from decimal import Decimal as Number
from typing import Any, TypeVar

from weft.core.types import NULL, STRING, Decimal, DType, Scalar
from weft.errors import EvaluationError, ExpressionError
from weft.expr.literals import BLANKS, read_date, read_time, text_form
from weft.expr.values import fit

_T = TypeVar("_T")
_BITS = {"byte": 8, "short": 16, "integer": 32, "long": 64}
_TEXT_TARGETS = ("boolean", "date", "timestamp", "timestamp_ntz")


def castable(source: DType, target: DType) -> bool:
    """Whether CAST supports the two types: strings, numbers, booleans, dates and timestamps."""
    if source in (target, NULL):
        return target != NULL
    if source.is_numeric:
        return target.is_numeric or target == STRING
    if source.is_temporal:
        return target.is_temporal or target == STRING
    if source == STRING:
        return target.is_numeric or (isinstance(target, Scalar) and target.name in _TEXT_TARGETS)
    return target == STRING and isinstance(source, Scalar) and source.name in ("boolean", "string")


def kind_of(dtype: DType) -> str:
    """Return the group of a type whose values are cast alike."""
    if isinstance(dtype, Decimal):
        return "decimal"
    if dtype.is_integer:
        return "integer"
    if dtype.is_fraction:
        return "double"
    return dtype.name if isinstance(dtype, Scalar) else "nested"


def cast_value(value: Any, source: DType, target: DType, zone: dt.tzinfo) -> Any:
    """Return the value in another type; raise `EvaluationError` when it is out of range or invalid."""
    if value is None or source == target:
        return value
    kind = kind_of(target)
    if kind_of(source) == "string" and kind != "string":
        value = _checked_text(value, kind, target)
    cast = _CASTS.get(kind)
    if cast is None:
        raise EvaluationError(
            f"{source} cannot be cast to {target}", help="compute it from the nested values, or remove the cast"
        )
    return cast(value, target, zone)


def _checked_text(text: str, kind: str, target: DType) -> str:
    if re.fullmatch(text_form(kind), text) is None:
        raise _unreadable(text, target)
    return text.strip(BLANKS)


def _read(text: str, target: DType, read: Callable[[str], _T]) -> _T:
    try:
        return read(text)
    except ExpressionError as cause:
        raise _unreadable(text, target) from cause


def _unreadable(value: object, target: DType) -> EvaluationError:
    return EvaluationError(f"{value!r} cannot be read as {target}", help="look for the rows that hold it")


def _to_integer(value: Any, target: DType, _: dt.tzinfo) -> int:
    bits = _BITS[target.name] if isinstance(target, Scalar) else 64
    if isinstance(value, float) and not math.isfinite(value):
        raise _unreadable(value, target)
    whole = int(value)
    if not -(1 << bits - 1) <= whole < 1 << bits - 1:
        raise EvaluationError(f"{value} does not fit into {target}", help="cast to a wider type")
    return whole


def _to_decimal(value: Any, target: DType, _: dt.tzinfo) -> Number:
    if isinstance(value, float) and not math.isfinite(value):
        raise _unreadable(value, target)
    # The shortest digits of a double, as Spark takes them; Number(0.1) would have 55.
    number = Number(repr(value)) if isinstance(value, float) else Number(value)
    return fit(number, target) if isinstance(target, Decimal) else number


def _to_double(value: Any, target: DType, _: dt.tzinfo) -> float:
    number = float(value)
    if target != Scalar("float"):
        return number
    # Through four bytes: Python has no type for a float, and Spark rounds to it.
    try:
        return float(struct.unpack("f", struct.pack("f", number))[0])
    except OverflowError:
        return math.copysign(math.inf, number)


def _to_boolean(value: Any, _: DType, __: dt.tzinfo) -> bool:
    return bool(value.lower() == "true") if isinstance(value, str) else bool(value)


def _to_date(value: Any, target: DType, zone: dt.tzinfo) -> dt.date:
    if isinstance(value, str):
        return _read(value, target, read_date)
    if isinstance(value, dt.datetime):
        return (value.astimezone(zone) if value.tzinfo else value).date()
    return value  # type: ignore[no-any-return]  # a date already


def _to_timestamp(value: Any, target: DType, zone: dt.tzinfo) -> dt.datetime:
    if isinstance(value, str):
        return _read(value, target, lambda text: read_time(text, zone))
    time: dt.datetime = value if isinstance(value, dt.datetime) else dt.datetime.combine(value, dt.time())
    return time if time.tzinfo else time.replace(tzinfo=zone).astimezone(dt.UTC)


def _to_timestamp_ntz(value: Any, target: DType, zone: dt.tzinfo) -> dt.datetime:
    if isinstance(value, str):
        return _read(value, target, read_time)
    if not isinstance(value, dt.datetime):
        return dt.datetime.combine(value, dt.time())
    return value.astimezone(zone).replace(tzinfo=None) if value.tzinfo else value


def _to_text(value: Any, _: DType, zone: dt.tzinfo) -> str:
    match value:
        case bool():  # before the numbers: in Python a bool is one
            return "true" if value else "false"
        case Number():
            return format(value, "f")
        case float():
            return _double_text(value)
        case dt.datetime():
            local = value.astimezone(zone) if value.tzinfo else value
            text = local.replace(tzinfo=None).isoformat(sep=" ")
            return text.rstrip("0") if local.microsecond else text
        case dt.date():
            return value.isoformat()
        case _:
            return str(value)


def _double_text(value: float) -> str:
    """Return the text that Java gives a double: a point always, an exponent from 1E7 and below 1E-3."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("-" if value < 0 else "") + "Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        text = format(Number(repr(value)), "f")
        return text if "." in text else text + ".0"
    sign, digits, exponent = Number(repr(value)).normalize().as_tuple()
    first, rest = str(digits[0]), "".join(map(str, digits[1:])) or "0"
    return f"{'-' * sign}{first}.{rest}E{int(exponent) + len(digits) - 1}"


_CASTS: dict[str, Callable[[Any, DType, dt.tzinfo], Any]] = {
    "integer": _to_integer,
    "decimal": _to_decimal,
    "double": _to_double,
    "boolean": _to_boolean,
    "date": _to_date,
    "timestamp": _to_timestamp,
    "timestamp_ntz": _to_timestamp_ntz,
    "string": _to_text,
}
