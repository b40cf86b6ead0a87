"""Operations on values: decimals with Spark's result types, order, ranges, rounding, dates and times."""

from __future__ import annotations

import datetime as dt
import math
import operator
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Context
from decimal import Decimal as Number
from functools import cmp_to_key, reduce
from typing import Any

from weft.core.types import MAX_PRECISION, Decimal, DType
from weft.errors import EvaluationError

_KEPT_FRACTION = 6
_WIDE = Context(prec=400, rounding=ROUND_HALF_UP, Emax=10_000, Emin=-10_000)
"""Holds every intermediate result of two 38 digit numbers without rounding."""
_METHODS = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide", "%": "remainder"}


def bounded(precision: int, scale: int) -> Decimal:
    """Return the type, or the nearest one that exists."""
    return Decimal(min(precision, MAX_PRECISION), min(scale, MAX_PRECISION))


def adjusted(precision: int, scale: int) -> Decimal:
    """Return the type; past 38 digits the scale is reduced, to no less than six."""
    if precision <= MAX_PRECISION:
        return Decimal(precision, scale)
    whole = precision - scale
    return Decimal(MAX_PRECISION, max(MAX_PRECISION - whole, min(scale, _KEPT_FRACTION)))


def result_type(op: str, a: Decimal, b: Decimal) -> Decimal:
    """Return the type of ``a op b``.

    >>> str(result_type("*", Decimal(18, 2), Decimal(10, 4)))
    'decimal(29,6)'
    >>> str(result_type("/", Decimal(3, 0), Decimal(1, 0)))
    'decimal(9,6)'
    """
    whole_a, whole_b, scale = a.precision - a.scale, b.precision - b.scale, max(a.scale, b.scale)
    match op:
        case "+" | "-":
            return adjusted(max(whole_a, whole_b) + scale + 1, scale)
        case "*":
            return adjusted(a.precision + b.precision + 1, a.scale + b.scale)
        case "/":
            fraction = max(_KEPT_FRACTION, a.scale + b.precision + 1)
            return adjusted(whole_a + b.scale + fraction, fraction)
        case _:  # the remainder is less than `b`, and not more than `a`
            return adjusted(min(whole_a, whole_b) + scale, scale)


def fit(value: Number, dtype: Decimal) -> Number:
    """Round half up to the scale of the type; a number with too many digits is an error."""
    try:
        rounded = _WIDE.quantize(value, Number(1).scaleb(-dtype.scale))
    except ArithmeticError:
        rounded = Number("Infinity")
    # `abs` would round to the 28 digits of the default context: 38 nines would become 1e38.
    if not rounded.is_finite() or rounded.copy_abs() >= Number(10) ** (dtype.precision - dtype.scale):
        raise EvaluationError(
            f"{value:.20g} does not fit into {dtype}", help="use a wider type, or round the parts before"
        )
    return rounded or abs(rounded)


def compute(op: str, a: Number, b: Number, dtype: Decimal) -> Number | None:
    """Return ``a op b`` in the type; division and remainder by zero are None.

    Products and quotients are rounded once, as Spark 4 rounds them.
    """
    if op in "/%" and not b:
        return None
    return fit(getattr(_WIDE, _METHODS[op])(a, b), dtype)


def round_half_up(value: Number, digits: int) -> Number:
    """Round to that many places after the point, before it when negative."""
    return _WIDE.quantize(value, Number(1).scaleb(-digits))


_INT64 = 1 << 63
_OPERATORS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}


def order(a: Any, b: Any) -> int:
    """Return -1, 0 or 1; NaN equals NaN and is greater than any number, nulls inside are lowest."""
    if isinstance(a, float) and isinstance(b, float) and (math.isnan(a) or math.isnan(b)):
        return math.isnan(a) - math.isnan(b)
    # Structs are dictionaries, compared field by field as Spark does.
    if isinstance(a, dict) and isinstance(b, dict):
        a, b = tuple(a.values()), tuple(b.values())
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return _order_items(a, b)
    return int(a > b) - int(a < b)


def _order_items(a: list[Any] | tuple[Any, ...], b: list[Any] | tuple[Any, ...]) -> int:
    for x, y in zip(a, b, strict=False):
        missing = (y is None) - (x is None)
        result = missing if x is None or y is None else order(x, y)
        if result:
            return result
    return (len(a) > len(b)) - (len(a) < len(b))


def sort_key(value: Any) -> Any:
    """Return the sort key of a value; a function, because the result of cmp_to_key cannot be pickled."""
    return cmp_to_key(order)(value)


def in_long(value: int) -> int:
    """Return the whole number, or raise when it exceeds 64 bits."""
    if -_INT64 <= value < _INT64:
        return value
    raise EvaluationError(f"{value} is larger than a long", help="cast an operand to decimal(38,0)")


def in_interval(value: dt.timedelta) -> dt.timedelta:
    """Return the interval, or raise when it exceeds 64 bits of microseconds."""
    in_long(value // dt.timedelta(microseconds=1))
    return value


def compute_long(op: str, a: int, b: int) -> int | None:
    """Return ``a op b`` on longs; the remainder has the sign of `a` and none by zero."""
    if op != "%":
        return in_long(_OPERATORS[op](a, b))
    # Python's own remainder has the sign of `b`.
    return (-1 if a < 0 else 1) * (abs(a) % abs(b)) if b else None


def compute_double(op: str, a: float, b: float) -> float | None:
    """Return ``a op b`` on doubles; division and remainder by zero are None."""
    if op in "/%" and b == 0:
        return None
    if op == "%":  # math.fmod raises for an infinite `a`
        return math.nan if math.isinf(a) or math.isnan(a) or math.isnan(b) else math.fmod(a, b)
    return float(_OPERATORS[op](a, b))


def negative(value: Any) -> Any:
    """Return the value with the other sign."""
    if isinstance(value, int):
        return in_long(-value)
    if isinstance(value, Number):
        # A minus sign would round to the 28 digits of the default context.
        return value.copy_negate() if value else abs(value)
    return -value


def absolute(value: Any) -> Any:
    """Return the value without its sign; the default context of `abs` would round a long decimal."""
    if isinstance(value, Number):
        return value.copy_abs()
    return negative(value) if value < 0 else abs(value)


def exact_sum(values: list[Number]) -> Number:
    """Return the sum of decimals without rounding."""
    return reduce(_WIDE.add, values, Number(0))


def sum_doubles(values: list[float]) -> float:
    """Return the sum in the order given."""
    # Not sum(): since Python 3.12 it corrects rounding errors, which Spark does not.
    return reduce(operator.add, values, 0.0)


def round_whole(value: Any, dtype: DType, *, up: bool) -> Any:
    """Return the next whole number above or below."""
    if isinstance(dtype, Decimal):
        rounding = ROUND_CEILING if up else ROUND_FLOOR
        return fit(value.quantize(Number(1), rounding=rounding, context=_WIDE), dtype)
    if not math.isfinite(value):
        raise EvaluationError(f"{value} cannot be rounded to an integer", help="test for NaN and infinity first")
    return in_long(math.ceil(value) if up else math.floor(value))


def round_to(value: Any, digits: int, dtype: DType) -> Any:
    """Round half up; the result has the scale of its type."""
    if isinstance(dtype, Decimal):
        # Beyond this many places a number of 38 digits is itself, or zero.
        digits = max(min(digits, dtype.scale), -39)
        return fit(round_half_up(value, digits), dtype)
    if isinstance(value, int):
        return value if digits >= 0 else in_long(int(round_half_up(Number(value), max(digits, -20))))
    if not math.isfinite(value):
        return value
    # A double has no digit past these places; adding zero makes -0.0 zero.
    return float(round_half_up(Number(repr(value)), max(min(digits, 330), -330))) + 0.0


def substring(text: str, start: int, count: int | None = None) -> str:
    """Return `count` characters from `start`: from 1, from the end when negative, 0 is 1."""
    first = start - 1 if start > 0 else len(text) + start if start < 0 else 0
    last = len(text) if count is None else first + max(count, 0)
    return text[max(first, 0) : max(last, 0)]


def add_days(day: dt.date, days: int) -> dt.date:
    """Return the date that many days later."""
    try:
        return day + dt.timedelta(days=days)
    except OverflowError as cause:
        raise _outside(f"{day} plus {days} days") from cause


def add_time(moment: dt.datetime, length: dt.timedelta) -> dt.datetime:
    """Return the timestamp plus elapsed time, also across clock changes."""
    try:
        # In UTC: Python adds to what the clock of a zone shows.
        return moment.astimezone(dt.UTC) + length if moment.tzinfo else moment + length
    except OverflowError as cause:
        raise _outside(f"{moment} plus {length}") from cause


def _outside(what: str) -> EvaluationError:
    message = f"{what} is outside the years 1 to 9999"
    return EvaluationError(message, help="keep the result between the years 1 and 9999")


def truncate(moment: Any, unit: str, zone: dt.tzinfo) -> Any:
    """Return the start of the unit that holds the moment."""
    if not isinstance(moment, dt.datetime):
        return _start_of_days(moment, unit)
    local = moment.astimezone(zone) if moment.tzinfo else moment
    if unit in ("hour", "minute", "second"):
        cut = local.replace(
            minute=0 if unit == "hour" else local.minute, second=local.second if unit == "second" else 0, microsecond=0
        )
    else:
        cut = dt.datetime.combine(_start_of_days(local.date(), unit), dt.time(), local.tzinfo)
    return cut.astimezone(dt.UTC) if moment.tzinfo else cut


def _start_of_days(day: dt.date, unit: str) -> dt.date:
    if unit in ("day", "week"):
        return day - dt.timedelta(days=day.weekday() if unit == "week" else 0)
    months = {"year": 12, "quarter": 3, "month": 1}[unit]
    return day.replace(month=(day.month - 1) // months * months + 1, day=1)
