"""Functions of the expression language as Spark columns.

Builders take the functions module of the frame, the columns of the arguments and the checked call.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from functools import reduce
from typing import Any

from weft.core.types import DATE, DOUBLE, LONG, TIMESTAMP, Decimal, DType
from weft.expr.spark.casts import whole_or_exact
from weft.expr.spark.types import to_spark
from weft.expr.typed import Typed

_BLANKS = " \t\r\n"
_INT_END = (1 << 31) - 1
_MICROS = 1_000_000
_NEGATED_EXACTLY = 34

SAME: dict[str, str] = {
    "COALESCE": "coalesce",
    "CONCAT": "concat",
    "UPPER": "upper",
    "LOWER": "lower",
    "LEN": "char_length",
    "CONTAINS": "contains",
    "REPLACE": "replace",
    "YEAR": "year",
    "MONTH": "month",
    "DAY": "day",
    "DATEDIFF": "datediff",
    "LABEL_GET": "element_at",
    "SUM": "sum",
    "AVG": "avg",
    "COUNT": "count",
    "MIN_AGG": "min",
    "MAX_AGG": "max",
}
"""Functions that Spark has with our meaning, under its name."""


def microseconds(fn: Any, interval: Typed, column: Callable[[Typed], Any]) -> Any:
    """Return an interval as whole microseconds."""
    if interval.op == "lit" and isinstance(interval.value, dt.timedelta):
        return fn.lit(interval.value // dt.timedelta(microseconds=1)).cast("long")
    seconds = column(interval).cast("interval second").cast("decimal(24,6)")
    return (seconds * fn.lit(_MICROS)).cast("long")


def _time_diff(fn: Any, args: list[Any], typed: Typed) -> Any:
    """Subtract elapsed time; Spark's own minus subtracts what local clocks show."""
    if typed.args[0].dtype != TIMESTAMP:
        return args[0] - args[1]
    difference = (fn.unix_micros(args[0]) - fn.unix_micros(args[1])).cast("decimal(20,0)")
    seconds = (difference / fn.lit(_MICROS).cast("decimal(7,0)")).cast("decimal(18,6)")
    none = fn.lit(0)
    return fn.make_dt_interval(none, none, none, seconds)


def _known(fn: Any, args: list[Any], result: Any) -> Any:
    """Return the result, NULL when an argument is; for functions of Spark that pass over NULLs."""
    return fn.when(reduce(lambda a, b: a & b, [a.isNotNull() for a in args]), result)


def _count(fn: Any, column: Any, least: int) -> Any:
    """Return a long as an int; past its ends a count of characters means the same."""
    low, high = fn.lit(least).cast("long"), fn.lit(_INT_END).cast("long")
    return fn.when(column < low, low).when(column > high, high).otherwise(column).cast("int")


def _substring(fn: Any, args: list[Any], _: Typed) -> Any:
    text, start, *count = args
    size = _count(fn, count[0], 0) if count else fn.lit(_INT_END)
    return fn.substring(text, _count(fn, start, -_INT_END), size)


def _negative(fn: Any, args: list[Any], typed: Typed) -> Any:
    return negated(fn, args[0], typed.dtype)


def negated(fn: Any, number: Any, dtype: DType) -> Any:
    """Change the sign; Spark's own minus rounds a decimal to 34 digits, so longer ones go through text."""
    if not isinstance(dtype, Decimal) or dtype.precision <= _NEGATED_EXACTLY:
        return -number
    text = number.cast("string")
    other = fn.when(number > fn.lit(0), fn.concat(fn.lit("-"), text)).otherwise(fn.ltrim(text, fn.lit("-")))
    return other.cast(to_spark(dtype))


def _absolute(fn: Any, args: list[Any], typed: Typed) -> Any:
    if not isinstance(typed.dtype, Decimal):
        return fn.abs(args[0])
    return fn.when(args[0] < fn.lit(0), _negative(fn, args, typed)).otherwise(args[0])


def _whole(fn: Any, args: list[Any], typed: Typed) -> Any:
    cut = fn.floor(args[0]) if typed.op == "FLOOR" else fn.ceil(args[0])
    if typed.args[0].dtype != DOUBLE:
        return cut
    return fn.when(whole_or_exact(fn, args[0], LONG).isNotNull(), cut)  # NaN would become 0


def _round(fn: Any, args: list[Any], typed: Typed) -> Any:
    """Round; digits that are no constant are looked up among all that make a difference."""
    number, digits = args
    given = typed.args[1].args[0] if typed.args[1].op == "cast" else typed.args[1]
    constant = given.value if given.op == "lit" and isinstance(given.value, int) else None
    if typed.dtype == DOUBLE:
        return fn.round(number, max(min(constant or 0, 330), -330))
    source, wanted = typed.args[0].dtype, to_spark(typed.dtype)
    exact = source if isinstance(source, Decimal) else Decimal(20, 0)
    number = number.cast(to_spark(exact))
    if constant is not None:
        return fn.round(number, max(min(constant, exact.scale), -39)).cast(wanted)
    found = fn.when(digits >= fn.lit(exact.scale), number.cast(wanted))
    for n in range(exact.scale - 1, exact.scale - exact.precision - 1, -1):
        found = found.when(digits == fn.lit(n), fn.round(number, n).cast(wanted))
    return found.when(digits.isNotNull(), (number * fn.lit(0)).cast(wanted))


def _truncate(fn: Any, args: list[Any], typed: Typed) -> Any:
    (moment,), unit = args, typed.value
    if typed.dtype == TIMESTAMP:
        return fn.date_trunc(unit, moment)
    if unit in ("hour", "minute", "second"):
        # Spark cuts a timestamp without zone as if it had the session's; the parts are free of it.
        minute = fn.lit(0) if unit == "hour" else fn.minute(moment)
        second = fn.second(moment) if unit == "second" else fn.lit(0)
        parts = (fn.year(moment), fn.month(moment), fn.day(moment), fn.hour(moment), minute, second)
        return fn.make_timestamp_ntz(*parts)
    day = moment if typed.dtype == DATE else moment.cast("date")
    return (day if unit == "day" else fn.trunc(day, unit)).cast(to_spark(typed.dtype))


def _label_set(fn: Any, args: list[Any], typed: Typed) -> Any:
    """Replace the entry; Spark's map_concat refuses a key that is there already."""
    labels, key, value = args
    others = fn.map_filter(labels, lambda k, _: k != key)
    whole = fn.map_concat(others, fn.create_map(key, value)).cast(to_spark(typed.dtype))
    return _known(fn, [labels, key], whole)


def _label_remove(fn: Any, args: list[Any], _: Typed) -> Any:
    labels, key = args
    return _known(fn, [labels, key], fn.map_filter(labels, lambda k, _: k != key))


BUILDERS: dict[str, Callable[[Any, list[Any], Typed], Any]] = {
    "neg": _negative,
    "not": lambda _fn, args, _: ~args[0],
    "is_null": lambda _fn, args, _: args[0].isNull(),
    "like": lambda _fn, args, typed: args[0].like(typed.value),
    "date_add": lambda fn, args, _: fn.date_add(args[0], args[1].cast("int")),
    "time_diff": _time_diff,
    "interval+": lambda _fn, args, _: args[0] + args[1],
    "interval-": lambda _fn, args, _: args[0] - args[1],
    "ABS": _absolute,
    "FLOOR": _whole,
    "CEIL": _whole,
    "ROUND": _round,
    "MIN": lambda fn, args, _: _known(fn, args, fn.least(*args)),
    "MAX": lambda fn, args, _: _known(fn, args, fn.greatest(*args)),
    "TRIM": lambda fn, args, _: fn.btrim(args[0], fn.lit(_BLANKS)),
    "LEFT": lambda fn, args, _: fn.left(args[0], _count(fn, args[1], 0)),
    "RIGHT": lambda fn, args, _: fn.right(args[0], _count(fn, args[1], 0)),
    "SUBSTRING": _substring,
    "DATE_TRUNC": _truncate,
    "LABEL_SET": _label_set,
    "LABEL_REMOVE": _label_remove,
    "COUNT_ALL": lambda fn, _args, _: fn.count(fn.lit(1)),
}
"""Functions and operations that need more than one call."""
