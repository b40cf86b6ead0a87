"""Checked expressions and their functions as Spark columns, with the same meaning as `weft.expr.evaluate`.

ANSI mode (Spark's default) makes overflow and bad casts errors.  It also makes division by
zero one, so divisors that are zero become NULL first.  Only the functions module that is
passed in is used: classic and Connect columns do not mix.
"""

from __future__ import annotations

import datetime as dt
import operator
from collections.abc import Callable, Hashable
from functools import reduce
from types import ModuleType
from typing import Any

from pyspark.sql import Column

from weft.core.types import DATE, DOUBLE, LONG, TIMESTAMP, Decimal, DType
from weft.errors import EvaluationError
from weft.expr.literals import BLANKS
from weft.expr.spark.types import cast, cast_to, literal, to_spark, whole_or_exact
from weft.expr.typed import Typed

_INT_END = (1 << 31) - 1
_MICROS = 1_000_000
_NEGATED_EXACTLY = 34  # the precision of Java's MathContext.DECIMAL128

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
    # In decimals: a double holds whole microseconds for 285 years only.
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
    return negate_exact(fn, args[0], typed.dtype)


def negate_exact(fn: Any, number: Any, dtype: DType) -> Any:
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
    """Round; Spark takes constant digits only, so a column of digits becomes a CASE over all that make a difference."""
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
    result = fn.when(digits >= fn.lit(exact.scale), number.cast(wanted))
    for n in range(exact.scale - 1, exact.scale - exact.precision - 1, -1):
        result = result.when(digits == fn.lit(n), fn.round(number, n).cast(wanted))
    return result.when(digits.isNotNull(), (number * fn.lit(0)).cast(wanted))


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
    """Replace the entry; Spark's map_concat fails for a key that exists already."""
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
    "TRIM": lambda fn, args, _: fn.btrim(args[0], fn.lit(BLANKS)),
    "LEFT": lambda fn, args, _: fn.left(args[0], _count(fn, args[1], 0)),
    "RIGHT": lambda fn, args, _: fn.right(args[0], _count(fn, args[1], 0)),
    "SUBSTRING": _substring,
    "DATE_TRUNC": _truncate,
    "LABEL_SET": _label_set,
    "LABEL_REMOVE": _label_remove,
    "COUNT_ALL": lambda fn, _args, _: fn.count(fn.lit(1)),
}
"""Functions and operations that need more than one call."""


def compile_expr(
    typed: Typed, lookup: Callable[[Hashable], Column], functions: ModuleType, *, today: dt.date | None = None
) -> Column:
    """Return the column that computes the expression.

    `lookup` returns the column of each slot, `functions` is ``pyspark.sql.functions`` or
    ``pyspark.sql.connect.functions``, whichever the frame belongs to.
    """
    column: Column = _Compiler(lookup, functions, today).column(typed)
    return column


class _Compiler:
    def __init__(self, lookup: Callable[[Hashable], Column], functions: ModuleType, today: dt.date | None) -> None:
        self.lookup = lookup
        self.fn: Any = functions
        self.today = today

    def column(self, typed: Typed) -> Any:
        """Return the column of an operation and what is below it."""
        own = _OPERATIONS.get(typed.op)
        if own is not None:
            return own(self, typed)
        args = [self.column(a) for a in typed.args]
        if typed.op in SAME:
            return self.static(getattr(self.fn, SAME[typed.op])(*args), typed)
        if typed.op in BUILDERS:
            return self.static(BUILDERS[typed.op](self.fn, args, typed), typed)
        raise EvaluationError(f"operation {typed.op!r} has no Spark form", help="write it with other functions")

    def static(self, column: Any, typed: Typed) -> Any:
        # Spark's decimals have the checked type already, unless spark.sql.decimalOperations.allowPrecisionLoss is off.
        return column.cast(cast_to(typed.dtype)) if isinstance(typed.dtype, Decimal) else column

    def ref(self, typed: Typed) -> Any:
        return self.lookup(typed.slot)

    def lit(self, typed: Typed) -> Any:
        return literal(self.fn, typed.value, typed.dtype)

    def date_of_run(self, typed: Typed) -> Any:
        if self.today is None:
            raise EvaluationError("TODAY() has no date", code="W0215", help="pass today=")
        return literal(self.fn, self.today, typed.dtype)

    def cast(self, typed: Typed) -> Any:
        (arg,) = typed.args
        return cast(self.fn, self.column(arg), arg.dtype, typed.dtype)

    def arithmetic(self, typed: Typed) -> Any:
        left, right = (self.column(a) for a in typed.args)
        if typed.op in "/%":  # in ANSI mode a zero would fail the query
            right = self.fn.when(right != self.fn.lit(0), right)
        return self.static(_ARITHMETIC[typed.op](left, right), typed)

    def comparison(self, typed: Typed) -> Any:
        left, right = (self.column(a) for a in typed.args)
        return _COMPARISONS[typed.op](left, right)

    def logic(self, typed: Typed) -> Any:
        join = operator.and_ if typed.op == "and" else operator.or_
        return reduce(join, [self.column(a) for a in typed.args])

    def within(self, typed: Typed) -> Any:
        wanted, *items = (self.column(a) for a in typed.args)
        return wanted.isin(*items)

    def case(self, typed: Typed) -> Any:
        *pairs, otherwise = typed.args
        result = self.fn  # the module and a column both have `when`
        for condition, value in zip(pairs[::2], pairs[1::2], strict=True):
            result = result.when(self.column(condition), self.column(value))
        return result.otherwise(self.column(otherwise))

    def shift(self, typed: Typed) -> Any:
        """Move a moment by elapsed time; Spark's own + moves a timestamp by days of the local calendar."""
        moment, length = typed.args
        sign = 1 if typed.op == "time+" else -1
        if moment.dtype != TIMESTAMP:
            return _ARITHMETIC[typed.op[-1]](self.column(moment), self.column(length))
        amount = microseconds(self.fn, length, self.column) * self.fn.lit(sign)
        return self.fn.timestamp_micros(self.fn.unix_micros(self.column(moment)) + amount)


_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "%": operator.mod,
}
_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "<=>": lambda left, right: left.eqNullSafe(right),
}
_OPERATIONS: dict[str, Callable[[_Compiler, Typed], Any]] = {
    "lit": _Compiler.lit,
    "ref": _Compiler.ref,
    "TODAY": _Compiler.date_of_run,
    "cast": _Compiler.cast,
    "in": _Compiler.within,
    "case": _Compiler.case,
    **dict.fromkeys(_ARITHMETIC, _Compiler.arithmetic),
    **dict.fromkeys(_COMPARISONS, _Compiler.comparison),
    **dict.fromkeys(("and", "or"), _Compiler.logic),
    **dict.fromkeys(("time+", "time-"), _Compiler.shift),
}
