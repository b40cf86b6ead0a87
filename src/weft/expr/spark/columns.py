"""Checked expressions as Spark columns, with the same meaning as `weft.expr.evaluate`.

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

from weft.core.types import TIMESTAMP, Decimal
from weft.errors import EvaluationError
from weft.expr.spark.casts import cast, literal
from weft.expr.spark.functions import BUILDERS, SAME, microseconds
from weft.expr.spark.types import cast_to
from weft.expr.typed import Typed


def compile_expr(
    typed: Typed,
    lookup: Callable[[Hashable], Column],
    functions: ModuleType,
    *,
    today: dt.date | None = None,
) -> Column:
    """Return the column that computes the expression.

    `lookup` gives the column of each slot, `functions` is ``pyspark.sql.functions`` or
    ``pyspark.sql.connect.functions``, whichever the frame belongs to.
    """
    return _Compiler(lookup, functions, today).column(typed)


class _Compiler:
    def __init__(
        self, lookup: Callable[[Hashable], Column], functions: ModuleType, today: dt.date | None
    ) -> None:
        self.lookup = lookup
        self.fn: Any = functions
        self.today = today

    def column(self, typed: Typed) -> Column:
        """Return the column of an operation and what is below it."""
        own = _OPERATIONS.get(typed.op)
        if own is not None:
            return own(self, typed)
        args = [self.column(a) for a in typed.args]
        if typed.op in SAME:
            found = getattr(self.fn, SAME[typed.op])(*args)
        elif typed.op in BUILDERS:
            found = BUILDERS[typed.op](self.fn, args, typed)
        else:
            raise EvaluationError(
                f"operation {typed.op!r} has no Spark form", help="write it with other functions"
            )
        return self.static(found, typed)

    def static(self, column: Any, typed: Typed) -> Column:
        """Return the column in its checked type; Spark's decimals have it unless the session changes the rule."""
        found: Column = column.cast(cast_to(typed.dtype)) if isinstance(typed.dtype, Decimal) else column
        return found

    def ref(self, typed: Typed) -> Column:
        return self.lookup(typed.slot)

    def lit(self, typed: Typed) -> Column:
        found: Column = literal(self.fn, typed.value, typed.dtype)
        return found

    def date_of_run(self, typed: Typed) -> Column:
        if self.today is None:
            raise EvaluationError("TODAY() has no date", code="W0215", help="pass today=")
        found: Column = literal(self.fn, self.today, typed.dtype)
        return found

    def cast(self, typed: Typed) -> Column:
        (arg,) = typed.args
        found: Column = cast(self.fn, self.column(arg), arg.dtype, typed.dtype)
        return found

    def arithmetic(self, typed: Typed) -> Column:
        left, right = (self.column(a) for a in typed.args)
        if typed.op in "/%":
            right = self.fn.when(right != self.fn.lit(0), right)
        return self.static(_ARITHMETIC[typed.op](left, right), typed)

    def comparison(self, typed: Typed) -> Column:
        left, right = (self.column(a) for a in typed.args)
        found: Column = _COMPARISONS[typed.op](left, right)
        return found

    def logic(self, typed: Typed) -> Column:
        join = operator.and_ if typed.op == "and" else operator.or_
        found: Column = reduce(join, [self.column(a) for a in typed.args])
        return found

    def within(self, typed: Typed) -> Column:
        wanted, *items = (self.column(a) for a in typed.args)
        return wanted.isin(*items)

    def case(self, typed: Typed) -> Column:
        *pairs, otherwise = typed.args
        found: Any = self.fn
        for condition, value in zip(pairs[::2], pairs[1::2], strict=True):
            found = found.when(self.column(condition), self.column(value))
        result: Column = found.otherwise(self.column(otherwise))
        return result

    def shift(self, typed: Typed) -> Column:
        """Move a moment by elapsed time; Spark's own + moves a timestamp by days of the local calendar."""
        moment, length = typed.args
        sign = 1 if typed.op == "time+" else -1
        if moment.dtype != TIMESTAMP:
            shifted: Column = _ARITHMETIC[typed.op[-1]](self.column(moment), self.column(length))
            return shifted
        amount = microseconds(self.fn, length, self.column) * self.fn.lit(sign)
        found: Column = self.fn.timestamp_micros(self.fn.unix_micros(self.column(moment)) + amount)
        return found


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
_OPERATIONS: dict[str, Callable[[_Compiler, Typed], Column]] = {
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
