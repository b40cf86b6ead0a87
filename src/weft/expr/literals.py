"""Literals: parsing and formatting, the strings that CAST accepts, and LIKE patterns."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Iterator
from decimal import Decimal as Number

from weft.core.duration import Duration
from weft.core.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    LONG,
    MAX_PRECISION,
    NULL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Decimal,
    DType,
)
from weft.errors import ArgumentError, ExpressionError

_NUMBER = re.compile(r"(?P<whole>[0-9]*)(?:\.(?P<fraction>[0-9]+))?(?P<power>[eE][+-]?[0-9]+)?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME = re.compile(
    r"(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[ T](?P<clock>[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?)(?P<zone>Z|[+-][0-9]{2}:[0-9]{2})?)?"
)
_INT32, _INT64 = 1 << 31, 1 << 63


def integer_type(value: int) -> DType:
    """Return the smallest type of an integer literal: integer, long, then a whole decimal."""
    if -_INT32 <= value < _INT32:
        return INTEGER
    if -_INT64 <= value < _INT64:
        return LONG
    return decimal_type(Number(value))


def decimal_type(value: Number) -> Decimal:
    """Return the smallest decimal type of the value."""
    _, digits, exponent = value.as_tuple()
    scale = max(0, -int(exponent))
    precision = max(len(digits) + max(0, int(exponent)), scale, 1)
    if precision > MAX_PRECISION:
        raise ExpressionError(
            f"the number has {precision} digits; the limit is {MAX_PRECISION}",
            code="W0203",
            help="write it with an exponent, as in 1e40, for a double",
        )
    return Decimal(precision, scale)


def read_number(text: str, *, negative: bool = False) -> tuple[object, DType]:
    """Return the value and type of a number: whole, with a point (exact), with an exponent (double).

    >>> read_number("12"), read_number("1.50")[0], read_number("1e3")[0]
    ((12, Scalar(name='integer', collation='')), Decimal('1.50'), 1000.0)
    """
    number = _NUMBER.fullmatch(text)
    if number is None or not (number["whole"] or number["fraction"]):
        raise ExpressionError(f"{text!r} is not a number", code="W0203", help="write 1, 1.5 or 1.5e3")
    sign = "-" if negative else ""
    if number["power"]:
        value = float(sign + text)
        if not math.isfinite(value):
            raise ExpressionError(f"{text!r} is larger than any double", code="W0203", help="write a smaller number")
        return value, DOUBLE
    if number["fraction"] is None:
        return read_integer(Number(sign + text))
    exact = Number(sign + (number["whole"].lstrip("0") or "0") + "." + number["fraction"])
    return exact or abs(exact), decimal_type(exact)  # Spark has no negative zero in decimals


def read_integer(value: Number) -> tuple[object, DType]:
    """Return a whole number as int, or as a decimal when 64 bits do not hold it."""
    if -_INT64 <= value < _INT64:
        return int(value), integer_type(int(value))
    return value, decimal_type(value)


def read_date(text: str) -> dt.date:
    """Parse a date ``yyyy-mm-dd``."""
    try:
        # fromisoformat alone would also accept 20260131 and 2026-W05-6.
        if _DATE.fullmatch(text):
            return dt.date.fromisoformat(text)
    except ValueError:
        pass
    raise ExpressionError(f"{text!r} is not a date", code="W0204", help="write a date as yyyy-mm-dd")


def read_time(text: str, zone: dt.tzinfo | None = None) -> dt.datetime:
    """Parse a timestamp; with an offset or Z it is in UTC, without one it is naive (or in `zone`)."""
    parts = _TIME.fullmatch(text)
    try:
        if parts is not None:
            clock = parts["clock"] or "00:00"
            time = dt.datetime.fromisoformat(f"{parts['day']}T{clock}{parts['zone'] or ''}")
            if time.tzinfo is None and zone is not None:
                time = time.replace(tzinfo=zone)
            return time.astimezone(dt.UTC) if time.tzinfo else time
    except (ValueError, OverflowError):
        pass
    raise ExpressionError(
        f"{text!r} is not a timestamp",
        code="W0204",
        help="write a timestamp as yyyy-mm-dd hh:mm:ss, followed by Z or +hh:mm for a zone",
    )


def literal_type(value: object) -> DType:
    """Return the type that a Python value has as a literal, or raise `ArgumentError`.

    >>> str(literal_type(3)), str(literal_type(Number("1.50")))
    ('integer', 'decimal(3,2)')
    """
    match value:
        case None:
            return NULL
        case bool():  # before int: in Python a bool is one
            return BOOLEAN
        case int():
            return integer_type(value)
        case Number() if value.is_finite():
            return decimal_type(value)
        case float() if math.isfinite(value):
            return DOUBLE
        case str():
            return STRING
        case dt.datetime():
            return TIMESTAMP_NTZ if value.tzinfo is None else TIMESTAMP
        case dt.date():
            return DATE
        case dt.timedelta() | Duration():
            return INTERVAL
    prefix = f"{value!r} " if isinstance(value, float | Number) else ""
    raise ArgumentError(
        f"{prefix}of type {type(value).__name__} is not allowed in an expression",
        help="use None, bool, int, float, Decimal, str, date, datetime or timedelta",
    )


def format_value(value: object, *, quote: str) -> str:
    """Return the text of a literal, which parses to the same value."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return str(value)
        case float():
            text = repr(value)
            return text if "e" in text else text + "e0"
        case Number():
            return format(value, "f")
        case str():
            return quote + value.replace(quote, quote * 2) + quote
        case dt.datetime():
            text = value.isoformat(sep=" ").removesuffix("+00:00")
            return f"TIMESTAMP {quote}{text}{'Z' if value.tzinfo else ''}{quote}"
        case dt.date():
            return f"DATE {quote}{value.isoformat()}{quote}"
        case dt.timedelta():
            return f"INTERVAL {quote}{Duration.of(value, signed=True)}{quote}"
        case _:
            raise ArgumentError(
                f"{type(value).__name__} cannot be formatted as a literal",
                help="use None, bool, int, float, Decimal, str, date, datetime or timedelta",
            )


BLANKS = " \t\r\n"
"""What TRIM removes and CAST ignores; other white space, such as a no-break space, is a character like any other."""
_BLANK = rf"[{BLANKS}]*"
_FRACTION = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?"
_DAY = r"(?!0000)[0-9]{4}-[0-9]{2}-[0-9]{2}"
_MINUTE = r"[0-9]{2}:[0-9]{2}"
_SECOND = r"[0-9]{2}(?:\.[0-9]{1,6})?"
_ZONE = r"Z|[+-][0-9]{2}:[0-9]{2}"

TEXT_FORMS = {
    "integer": r"[+-]?[0-9]+",
    "decimal": _FRACTION,
    "double": _FRACTION + r"|NaN|[+-]?Infinity",
    "boolean": r"(?i:true|false)",
    "date": _DAY,
    "timestamp_ntz": rf"{_DAY}(?:[ T]{_MINUTE}(?::{_SECOND})?)?",
    "timestamp": rf"{_DAY}(?:[ T]{_MINUTE}(?::{_SECOND}(?:{_ZONE})?)?)?",
}
"""The strings that can be cast, as patterns with the same meaning in Python and Java."""


def text_form(kind: str) -> str:
    """Return the pattern of strings that can be cast, with blanks around them allowed."""
    return f"{_BLANK}(?:{TEXT_FORMS[kind]}){_BLANK}"


def pieces(pattern: str) -> Iterator[tuple[str, bool]]:
    """Yield each character of a LIKE pattern and whether it was escaped."""
    characters = iter(pattern)
    for character in characters:
        if character == "\\":
            yield next(characters, ""), True
        else:
            yield character, False


def pattern_problem(pattern: str) -> str | None:
    r"""Return the problem of an invalid LIKE pattern, or None.

    >>> pattern_problem(r"50\% of %"), pattern_problem("a\\b")
    (None, "invalid escape in the LIKE pattern: the backslash is before 'b'")
    """
    for character, escaped in pieces(pattern):
        if escaped and character not in ("%", "_", "\\"):
            what = repr(character) if character else "nothing"
            return f"invalid escape in the LIKE pattern: the backslash is before {what}"
    return None


def like_regex(pattern: str) -> re.Pattern[str]:
    """Return the regular expression of a LIKE pattern; `re` caches compiled expressions.

    Not cached here: conditions are pickled by value for workers, and a cached function would be pickled by name.
    """
    signs = {"%": ".*", "_": "."}
    parts = (re.escape(c) if escaped else signs.get(c, re.escape(c)) for c, escaped in pieces(pattern))
    return re.compile("".join(parts), re.DOTALL)
