"""One cell of a table in a test: text to value, value to text, and the type that follows from texts."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any

from weft.core import types
from weft.core.duration import Duration
from weft.core.types import DType
from weft.errors import CaseFileError, DurationError
from weft.testing.values import as_type

DAY = dt.date(2024, 1, 1)
"""The date of a time without a date."""

_NULLS = ("", "null", "NULL")
_INTEGER = r"[+-]?[0-9]+"
_POINT = r"[+-]?([0-9]+\.[0-9]*|\.[0-9]+)"
_DECIMAL = rf"{_POINT}|{_INTEGER}"
_DOUBLE = rf"({_DECIMAL})(e[+-]?[0-9]+)?|nan|[+-]?inf(inity)?"
_DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_CLOCK = r"[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?"
_NAIVE = rf"({_DATE}[T ])?{_CLOCK}|{_DATE}"
_STAMP = rf"({_DATE}[T ])?{_CLOCK}(Z|[+-][0-9]{{2}}:?[0-9]{{2}})?|{_DATE}"
_BITS = {"byte": 8, "short": 16, "integer": 32, "long": 64}


@dataclass(frozen=True, slots=True)
class Cell:
    """The text of a cell; a `quoted` one is always a string, never NULL."""

    text: str
    quoted: bool = False

    @property
    def is_null(self) -> bool:
        """Whether the cell is blank or null."""
        return not self.quoted and self.text in _NULLS


def _time(text: str) -> dt.datetime:
    """Parse a timestamp; without a date it is on `DAY`."""
    return dt.datetime.fromisoformat(f"{DAY}T{text}" if text[2:3] == ":" else text)


def _instant(text: str) -> dt.datetime:
    value = _time(text)
    return value.replace(tzinfo=dt.UTC) if value.tzinfo is None else value.astimezone(dt.UTC)


def _integer(text: str, bits: int) -> int:
    value = int(text)
    value.to_bytes(bits // 8, signed=True)  # raises OverflowError
    return value


@dataclass(frozen=True, slots=True)
class _Form:
    """How values of a type are written."""

    pattern: str
    value: Callable[[str], Any]
    help: str


_FORMS: dict[str, _Form] = {
    "boolean": _Form("true|false", lambda text: text.lower() == "true", "write true or false"),
    "double": _Form(_DOUBLE, float, "write a number, nan, inf or -inf"),
    "float": _Form(_DOUBLE, lambda text: as_type(float(text), types.FLOAT), "write a number, nan, inf or -inf"),
    "date": _Form(_DATE, dt.date.fromisoformat, "write for example 2024-01-31"),
    "timestamp": _Form(
        _STAMP, _instant, "write for example 10:00:05, 2024-01-31T10:00:05 or 2024-01-31T10:00:05+01:00"
    ),
    "timestamp_ntz": _Form(_NAIVE, _time, "write for example 10:00:05 or 2024-01-31T10:00:05, without a zone"),
    "interval": _Form(
        ".+", lambda text: Duration.parse(text, signed=True).to_timedelta(), "write for example 5s or 1h 30m"
    ),
    "binary": _Form("0x([0-9a-f]{2})*", lambda text: bytes.fromhex(text[2:]), "write hexadecimal digits after 0x"),
    **{
        name: _Form(_INTEGER, partial(_integer, bits=bits), f"write a whole number of {bits} bits")
        for name, bits in _BITS.items()
    },
}


def read(cell: Cell, dtype: DType) -> Any:
    """Return the value of a cell in a column of type `dtype`.

    >>> read(Cell("10:00:05"), types.TIMESTAMP).isoformat(), read(Cell("1.5"), types.Decimal(10, 2))
    ('2024-01-01T10:00:05+00:00', Decimal('1.50'))
    """
    if cell.is_null:
        return None
    if dtype == types.STRING:
        return cell.text
    if cell.quoted:
        raise _unreadable(
            cell.text, dtype, "a quoted cell is a string: remove the quotes, or declare the column as string"
        )
    if dtype.is_nested:
        return _from_json(_json(cell.text, dtype), dtype)
    if isinstance(dtype, types.Decimal):
        return _read_decimal(cell.text, dtype)
    form = _FORMS.get(str(dtype))
    if form is None:
        raise CaseFileError(f"a table cannot contain values of type {dtype}", help="cast the column first")
    if not re.fullmatch(form.pattern, cell.text, re.ASCII | re.IGNORECASE):
        raise _unreadable(cell.text, dtype, form.help)
    try:
        return form.value(cell.text)
    except (ValueError, OverflowError, DurationError) as cause:
        raise _unreadable(cell.text, dtype, form.help) from cause


def _unreadable(text: str, dtype: DType, help: str) -> CaseFileError:
    return CaseFileError(f"{text!r} is not a value of type {dtype}", help=help)


def _read_decimal(text: str, dtype: types.Decimal) -> Decimal:
    if re.fullmatch(_DECIMAL, text, re.ASCII):
        exact = Decimal(text)
        value: Decimal = as_type(exact, dtype)
        if value == exact and len(value.as_tuple().digits) <= dtype.precision:
            return value
    whole = dtype.precision - dtype.scale
    raise _unreadable(text, dtype, f"at most {whole} digits before the point and {dtype.scale} after it")


def _json(text: str, dtype: DType) -> Any:
    try:
        # Numbers stay strings: they are read as cells, so decimals are exact.
        return json.loads(text, parse_float=str, parse_int=str)
    except ValueError as cause:
        raise _unreadable(text, dtype, "write the value as JSON") from cause


def _from_json(value: Any, dtype: DType) -> Any:
    """Return a nested value from JSON; its leaves are read as cells."""
    if value is None:
        return None
    if isinstance(dtype, types.Array) and isinstance(value, list):
        return [_from_json(v, dtype.element) for v in value]
    if isinstance(dtype, types.Struct) and isinstance(value, list) and len(value) == len(dtype.fields):
        return tuple(_from_json(v, f.dtype) for v, f in zip(value, dtype.fields, strict=True))
    if isinstance(dtype, types.Map) and isinstance(value, dict):
        return {_from_json(k, dtype.key): _from_json(v, dtype.value) for k, v in value.items()}
    if isinstance(value, bool):
        value = str(value).lower()
    if dtype.is_nested or not isinstance(value, str):
        raise _unreadable(json.dumps(value), dtype, "write a struct as a list, a map as an object with text keys")
    return read(Cell(value, quoted=dtype == types.STRING), dtype)


def write(value: Any, dtype: DType) -> str:
    """Return the text that `read` reads as `value`.

    >>> write("a | b", types.STRING), write(None, types.DATE), write(_instant("10:00:05"), types.TIMESTAMP)
    ('"a | b"', 'null', '10:00:05')
    """
    if value is None:
        return "null"
    if dtype.is_nested:
        return json.dumps(_to_json(value, dtype), ensure_ascii=False)
    if isinstance(value, str):
        return value if _is_plain(value) else json.dumps(value, ensure_ascii=False)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dt.datetime):
        return _write_time(value)
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, dt.timedelta):
        return str(Duration.of(value, signed=True))
    if isinstance(value, bytes | bytearray):
        return "0x" + value.hex()
    return str(value)


def _is_plain(text: str) -> bool:
    """Whether a string can be a cell without quotes."""
    special = text in _NULLS or text != text.strip() or text[0] in '"[{#' or "|" in text or "<-" in text
    return not special and text.isprintable()


def _write_time(value: dt.datetime) -> str:
    moment = value if value.tzinfo is None else value.astimezone(dt.UTC).replace(tzinfo=None)
    if moment.date() == DAY:
        return moment.time().isoformat()
    return moment.isoformat() + ("" if value.tzinfo is None else "Z")


def _to_json(value: Any, dtype: DType) -> Any:
    if value is None:
        return None
    if isinstance(dtype, types.Array):
        return [_to_json(v, dtype.element) for v in value]
    if isinstance(dtype, types.Struct):
        return [_to_json(v, f.dtype) for v, f in zip(value, dtype.fields, strict=True)]
    if isinstance(dtype, types.Map):
        return {_to_json(k, dtype.key): _to_json(v, dtype.value) for k, v in value.items()}
    return value if isinstance(value, str) else write(value, dtype)


def infer(cells: Sequence[Cell]) -> DType:
    """Return the first type as which all texts of a column can be read.

    Numbers with a point are exact decimals; an exponent makes a double.

    >>> [str(infer([Cell(text)])) for text in ("1", "1.5", "1e3", "true", "2024-01-01", "10:00", "AAPL")]
    ['long', 'decimal(18,1)', 'double', 'boolean', 'date', 'timestamp', 'string']
    """
    filled = [c for c in cells if not c.is_null]
    if not filled or any(c.quoted for c in filled):
        return types.STRING
    # From the narrowest type to the widest.
    for dtype in (types.BOOLEAN, types.LONG, _decimal_for(filled), types.DOUBLE, types.DATE, types.TIMESTAMP):
        if dtype is not None and all(_is_valid(c, dtype) for c in filled):
            return dtype
    return types.STRING


def _is_valid(cell: Cell, dtype: DType) -> bool:
    try:
        read(cell, dtype)
    except CaseFileError:
        return False
    return True


def _decimal_for(cells: Sequence[Cell]) -> types.Decimal | None:
    """Return a decimal type that holds all the numbers, or None when a cell is not a decimal number."""
    if not all(re.fullmatch(_DECIMAL, c.text, re.ASCII) for c in cells):
        return None
    parts = [c.text.lstrip("+-").partition(".") for c in cells]
    whole, scale = max(len(p[0]) for p in parts), max(len(p[2]) for p in parts)
    if whole + scale > types.MAX_PRECISION:
        return None
    return types.Decimal(18 if whole + scale <= 18 else types.MAX_PRECISION, scale)
