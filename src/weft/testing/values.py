"""How two values compare, in plain Python: NULL, NaN, -0.0, exact numbers, points in time, windows of a time.

This module alone defines what the reference engine means by equal, by order and by distance.
"""

from __future__ import annotations

import datetime as dt
import math
import struct
from collections.abc import Mapping, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from typing import Any, NamedTuple

from weft.core import types
from weft.core.types import DType, Scalar
from weft.errors import ArgumentError
from weft.joins.resolve.resolved import SameWindow

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)
# Python's default of 28 digits would round decimals of Spark, which have up to 38.
_ROOMY = Context(prec=200, rounding=ROUND_HALF_UP)

Position = int | Fraction | float
"""A point on an axis with distances: microseconds since 1970 for times, the number itself for numbers."""


def compare(a: Any, b: Any) -> int:
    """Return -1, 0 or 1 as `a` sorts before, with or after `b`, the way Spark sorts.

    NULL is lowest, NaN is greatest and equals NaN, -0.0 equals 0.0; lists and tuples
    compare element by element.

    >>> compare(None, 1), compare(float("nan"), float("inf")), compare(-0.0, 0.0)
    (-1, 1, 0)
    """
    if a is None or b is None:
        return (a is not None) - (b is not None)
    if isinstance(a, list | tuple):
        for x, y in zip(a, b, strict=False):
            if (order := compare(x, y)) != 0:
                return order
        return (len(a) > len(b)) - (len(a) < len(b))
    if is_nan(a) or is_nan(b):
        return int(is_nan(a)) - int(is_nan(b))
    return int(a > b) - int(a < b)


def is_nan(value: object) -> bool:
    """Whether the value is a floating point NaN."""
    return isinstance(value, float) and math.isnan(value)


def as_type(value: Any, dtype: DType) -> Any:
    """Return `value` widened to `dtype`.

    >>> as_type(2, types.Decimal(10, 2)), as_type(dt.date(2024, 1, 1), types.TIMESTAMP).isoformat()
    (Decimal('2.00'), '2024-01-01T00:00:00+00:00')
    """
    if value is None or dtype == types.NULL:
        return None
    if isinstance(dtype, types.Decimal):
        return Decimal(value).quantize(Decimal(1).scaleb(-dtype.scale), context=_ROOMY)
    if isinstance(dtype, types.Array):
        return [as_type(v, dtype.element) for v in value]
    if isinstance(dtype, types.Struct):
        return tuple(as_type(v, f.dtype) for v, f in zip(value, dtype.fields, strict=True))
    if not isinstance(dtype, Scalar):
        return value
    if dtype.collation:
        raise ArgumentError(
            f"the reference engine does not support the collation {dtype.collation!r}",
            help="compare strings without a collation",
        )
    if dtype.name == "double":
        return float(value)
    if dtype.name == "float":
        return struct.unpack("f", struct.pack("f", value))[0]
    if dtype.name == "timestamp":
        return _with_time(value) if _zoned(value) else _with_time(value).replace(tzinfo=dt.UTC)
    if dtype.name == "timestamp_ntz":
        return _with_time(value)
    return value


def _with_time(value: dt.date) -> dt.datetime:
    """Return a date as its midnight, a time as it is."""
    return value if isinstance(value, dt.datetime) else dt.datetime(value.year, value.month, value.day)  # noqa: DTZ001


def _zoned(value: dt.date) -> bool:
    return isinstance(value, dt.datetime) and value.tzinfo is not None


def microseconds(value: dt.date) -> int:
    """Return the microseconds from 1970 to a date or time; without a zone it is read as UTC.

    >>> microseconds(dt.date(1969, 12, 31))
    -86400000000
    """
    moment: dt.datetime = as_type(value, types.TIMESTAMP)
    return (moment - EPOCH) // _MICROSECOND


def position(value: Any, dtype: DType) -> Any:
    """Return the position of `value` among values that are compared as `dtype`.

    It is a `Position` for times and numbers; other values, such as strings, are ordered but have no distance.
    """
    if value is None:
        return None
    if dtype.is_temporal:
        return microseconds(value)
    if dtype.is_numeric and not dtype.is_fraction:
        return Fraction(value)
    return as_type(value, dtype)


def shifted(at: Position, by: int | Decimal) -> Position:
    """Return the position moved by `by`."""
    # Floating point axes add in floating point, because Spark does; all others are exact.
    return at + float(by) if isinstance(at, float) else at + Fraction(by)


def distance(a: Position, b: Position) -> Position:
    """Return how far two positions are apart.

    Equal positions are 0 apart, NaN and infinity included; NaN is infinitely far from a number.
    """
    if compare(a, b) == 0:
        return 0
    if is_nan(a) or is_nan(b):
        return math.inf
    return a - b if a > b else b - a


def kind_of(value: object) -> str:
    """Return the name of the kind of a value, as messages print it.

    >>> kind_of(True), kind_of(1), kind_of(Decimal("1.0")), kind_of(None)
    ('boolean', 'integer', 'decimal', 'null')
    """
    if isinstance(value, dt.datetime):
        return "timestamp" if value.tzinfo is not None else "timestamp_ntz"
    for python, name in _KINDS:
        if isinstance(value, python):
            return name
    return type(value).__name__


_KINDS: tuple[tuple[type, str], ...] = (
    (type(None), "null"), (bool, "boolean"), (int, "integer"), (Decimal, "decimal"), (float, "double"),
    (str, "string"), (bytes, "binary"), (bytearray, "binary"), (dt.date, "date"), (dt.timedelta, "interval"),
    (Mapping, "map"), (tuple, "struct"), (list, "array"),
)  # fmt: skip


class Window(NamedTuple):
    """A range of an axis; `end` is exclusive."""

    start: Position
    end: Position


def windows_of(match: SameWindow, time: Position | None, events: Sequence[Position] = ()) -> tuple[Window, ...]:
    """Return the windows that contain `time`, in order.

    Parameters
    ----------
    match
        The window of a resolved join.  Required.
    time
        A position on the time axis; None is in no window.  Required.
    events
        The times of both sides with the same key; only sessions need them.  Empty by default.

    Examples
    --------
    >>> minutes = SameWindow(left=0, right=0, kind="sliding", size=60, slide=30, gap=None, per_window=False)
    >>> windows_of(minutes, 95)
    (Window(start=60, end=120), Window(start=90, end=150))
    """
    if time is None or is_nan(time):
        return ()
    if match.kind == "session":
        return (_session(time, events, match.gap or 0),)
    size = match.size or 0
    slide = size if match.kind == "tumbling" else match.slide or size
    windows = []
    number = math.floor(time / slide) if isinstance(time, float) else time // slide
    while number * slide + size > time:
        windows.append(Window(number * slide, number * slide + size))
        number -= 1
    return tuple(reversed(windows))


def _session(time: Position, events: Sequence[Position], gap: int) -> Window:
    """Return the session around `time`: events of which each is at most `gap` after the one before it."""
    first = last = time
    for event in sorted(events):
        if event > last and event - last <= gap:
            last = event
    for event in sorted(events, reverse=True):
        if event < first and first - event <= gap:
            first = event
    return Window(first, last + gap)


def shared_windows(
    match: SameWindow, left: Position | None, right: Position | None, events: Sequence[Position] = ()
) -> tuple[Window, ...]:
    """Return the windows that contain both times, in order.

    Parameters
    ----------
    match
        The window of a resolved join.  Required.
    left, right
        The times of both rows; None is in no window.  Required.
    events
        The times of both sides with the same key, as in `windows_of`.  Empty by default.

    Examples
    --------
    >>> minutes = SameWindow(left=0, right=0, kind="sliding", size=60, slide=30, gap=None, per_window=False)
    >>> shared_windows(minutes, 95, 125)
    (Window(start=90, end=150),)
    """
    others = windows_of(match, right, events)
    return tuple(window for window in windows_of(match, left, events) if window in others)
