"""Evaluation of expressions in plain Python: exact, easy to read, with the same results as on Spark."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal as Number
from typing import Any

from weft.core.types import Decimal, Scalar
from weft.errors import EvaluationError
from weft.expr import values
from weft.expr.casts import cast_value
from weft.expr.literals import BLANKS, like_regex
from weft.expr.typed import Typed
from weft.expr.values import compute, fit

Lookup = Callable[[Hashable], object]


def evaluate(typed: Typed, lookup: Lookup, *, today: dt.date | None = None, zone: dt.tzinfo = dt.UTC) -> object:
    """Return the value for one row; `lookup` returns the value of each slot.

    `zone` is the session's time zone, in which dates and times without a zone are read.

    >>> from weft.core.types import Schema
    >>> from weft.expr import TableScope, check, parse
    >>> scope = TableScope({"t": Schema.of(a="integer", b="integer")})
    >>> row = {("t", 0): 1, ("t", 1): 0}
    >>> evaluate(check(parse("a / b"), scope), row.get), evaluate(check(parse("a + b"), scope), row.get)
    (None, 1)
    """
    return _Evaluation(lookup, today, zone).value(typed)


def evaluate_aggregate(
    typed: Typed, rows: Iterable[Lookup], *, today: dt.date | None = None, zone: dt.tzinfo = dt.UTC
) -> object:
    """Return the value of an expression with aggregates over the rows."""
    return _Evaluation(_no_column, today, zone, tuple(rows)).value(typed)


def _no_column(slot: Hashable) -> object:
    raise EvaluationError(
        f"column {slot!r} is not inside an aggregate", help="put it inside SUM, MIN_AGG or another aggregate"
    )


@dataclass(frozen=True, slots=True)
class _Evaluation:
    lookup: Lookup
    today: dt.date | None
    zone: dt.tzinfo
    rows: tuple[Lookup, ...] | None = None

    def value(self, typed: Typed) -> Any:
        # These evaluate their operands themselves: not all of them, or also those that are NULL.
        lazy = _LAZY.get(typed.op)
        if lazy is not None:
            return lazy(self, typed)
        args = []
        for arg in typed.args:
            value = self.value(arg)
            if value is None:
                return None
            args.append(value)
        if typed.op in _STRICT:
            return _STRICT[typed.op](*args)
        return _TYPED[typed.op](args, typed)

    def column(self, typed: Typed) -> Any:
        return self.lookup(typed.slot)

    def date_of_run(self, _: Typed) -> Any:
        if self.today is None:
            raise EvaluationError("TODAY() has no date", code="W0215", help="pass today=")
        return self.today

    def cast(self, typed: Typed) -> Any:
        (arg,) = typed.args
        return cast_value(self.value(arg), arg.dtype, typed.dtype, self.zone)

    def truncate(self, typed: Typed) -> Any:
        moment = self.value(typed.args[0])
        return None if moment is None else values.truncate(moment, str(typed.value), self.zone)

    def logic(self, typed: Typed) -> bool | None:
        """Return AND or OR of the operands: one FALSE or one TRUE decides, otherwise a NULL makes it NULL."""
        decisive = typed.op == "or"
        unknown = False
        for arg in typed.args:
            value = self.value(arg)
            if value is decisive:
                return bool(value)
            unknown = unknown or value is None
        return None if unknown else not decisive

    def is_null(self, typed: Typed) -> bool:
        return self.value(typed.args[0]) is None

    def same(self, typed: Typed) -> bool:
        left, right = (self.value(a) for a in typed.args)
        if left is None or right is None:
            return left is right
        return _order(left, right, typed) == 0

    def within(self, typed: Typed) -> bool | None:
        value = self.value(typed.args[0])
        if value is None:
            return None
        unknown = False
        for item in typed.args[1:]:
            candidate = self.value(item)
            if candidate is not None and _order(value, candidate, typed) == 0:
                return True
            unknown = unknown or candidate is None
        return None if unknown else False

    def case(self, typed: Typed) -> Any:
        for condition, value in zip(typed.args[::2], typed.args[1::2], strict=False):
            if self.value(condition) is True:
                return self.value(value)
        return self.value(typed.args[-1])

    def coalesce(self, typed: Typed) -> Any:
        # A generator: operands after the first value are not evaluated, and so cannot fail.
        return next((value for arg in typed.args if (value := self.value(arg)) is not None), None)

    def label_set(self, typed: Typed) -> Any:
        labels, key, value = (self.value(a) for a in typed.args)
        return None if labels is None or key is None else {**labels, key: value}

    def aggregate(self, typed: Typed) -> Any:
        if self.rows is None:
            raise EvaluationError(f"{typed.op} needs rows", code="W0210", help="use evaluate_aggregate")
        if typed.op == "COUNT_ALL":
            return len(self.rows)
        (arg,) = typed.args
        of_rows = (_Evaluation(row, self.today, self.zone).value(arg) for row in self.rows)
        return _AGGREGATES[typed.op]([value for value in of_rows if value is not None], typed)


def _number(args: list[Any], typed: Typed) -> Any:
    left, right = args
    if isinstance(typed.dtype, Decimal):
        return compute(typed.op, left, right, typed.dtype)
    if isinstance(left, float):
        return values.compute_double(typed.op, left, right)
    return values.compute_long(typed.op, left, right)


def _order(left: Any, right: Any, typed: Typed) -> int:
    dtype = typed.args[0].dtype
    # Collations are rules of ICU, which Python does not have.
    if isinstance(dtype, Scalar) and dtype.collation:
        raise EvaluationError(
            f"strings with the collation {dtype.collation} can be compared on Spark only",
            help="use a column without a collation",
        )
    return values.order(left, right)


def _compare(args: list[Any], typed: Typed) -> bool:
    return _COMPARISONS[typed.op](_order(args[0], args[1], typed))


def _total(terms: list[Any], typed: Typed) -> Any:
    if not terms:
        return None
    if isinstance(typed.dtype, Decimal):
        return fit(values.exact_sum(terms), typed.dtype)
    return values.in_long(sum(terms)) if isinstance(terms[0], int) else values.sum_doubles(terms)


def _mean(terms: list[Any], typed: Typed) -> Any:
    if not terms:
        return None
    if isinstance(typed.dtype, Decimal):
        return compute("/", values.exact_sum(terms), Number(len(terms)), typed.dtype)
    return values.sum_doubles(terms) / len(terms)


_LAZY: dict[str, Callable[[_Evaluation, Typed], Any]] = {
    "lit": lambda _, typed: typed.value,
    "ref": _Evaluation.column,
    "TODAY": _Evaluation.date_of_run,
    "cast": _Evaluation.cast,
    "DATE_TRUNC": _Evaluation.truncate,
    **dict.fromkeys(("and", "or"), _Evaluation.logic),
    "is_null": _Evaluation.is_null,
    "<=>": _Evaluation.same,
    "in": _Evaluation.within,
    "case": _Evaluation.case,
    "COALESCE": _Evaluation.coalesce,
    "LABEL_SET": _Evaluation.label_set,
    **dict.fromkeys(("SUM", "AVG", "COUNT", "COUNT_ALL", "MIN_AGG", "MAX_AGG"), _Evaluation.aggregate),
}
"""Operations that evaluate their operands themselves."""

_COMPARISONS: dict[str, Callable[[int], bool]] = {
    "=": lambda order: order == 0,
    "<>": lambda order: order != 0,
    "<": lambda order: order < 0,
    "<=": lambda order: order <= 0,
    ">": lambda order: order > 0,
    ">=": lambda order: order >= 0,
}
_STRICT: dict[str, Callable[..., Any]] = {
    "neg": values.negative,
    "date_add": values.add_days,
    "time+": values.add_time,
    "time-": lambda moment, length: values.add_time(moment, -length),
    "time_diff": lambda end, start: end - start,
    "interval+": lambda a, b: values.in_interval(a + b),
    "interval-": lambda a, b: values.in_interval(a - b),
    "not": lambda condition: not condition,
    "ABS": values.absolute,
    "MIN": lambda *args: min(args, key=values.sort_key),
    "MAX": lambda *args: max(args, key=values.sort_key),
    "CONCAT": lambda *texts: "".join(texts),
    "UPPER": str.upper,
    "LOWER": str.lower,
    "TRIM": lambda text: text.strip(BLANKS),
    "LEN": len,
    "LEFT": lambda text, n: text[: max(n, 0)],
    "RIGHT": lambda text, n: text[max(len(text) - n, 0) :] if n > 0 else "",
    "SUBSTRING": values.substring,
    "CONTAINS": lambda text, part: part in text,
    "REPLACE": lambda text, old, new: text.replace(old, new) if old else text,
    "YEAR": lambda day: day.year,
    "MONTH": lambda day: day.month,
    "DAY": lambda day: day.day,
    "DATEDIFF": lambda end, start: (end - start).days,
    "LABEL_GET": lambda labels, key: labels.get(key),
    "LABEL_REMOVE": lambda labels, key: {k: v for k, v in labels.items() if k != key},
}
"""Operations on values; the result is NULL when an operand is."""

_TYPED: dict[str, Callable[[list[Any], Typed], Any]] = {
    **dict.fromkeys("+-*/%", _number),
    **dict.fromkeys(_COMPARISONS, _compare),
    "like": lambda args, typed: like_regex(str(typed.value)).fullmatch(args[0]) is not None,
    "FLOOR": lambda args, typed: values.round_whole(args[0], typed.dtype, up=False),
    "CEIL": lambda args, typed: values.round_whole(args[0], typed.dtype, up=True),
    "ROUND": lambda args, typed: values.round_to(args[0], args[1], typed.dtype),
}
"""The same, for operations that depend on the type or a constant."""

_AGGREGATES: dict[str, Callable[[list[Any], Typed], Any]] = {
    "SUM": _total,
    "AVG": _mean,
    "COUNT": lambda terms, _: len(terms),
    "MIN_AGG": lambda terms, _: min(terms, key=values.sort_key, default=None),
    "MAX_AGG": lambda terms, _: max(terms, key=values.sort_key, default=None),
}


class RowCondition:
    """A condition on pairs of rows; `places` maps each column to its side and child.

    >>> from weft.core.types import Schema
    >>> from weft.expr import TableScope, check, parse
    >>> tables = TableScope({"a": Schema.of(x="long"), "b": Schema.of(y="long")})
    >>> same = check(parse("a.x % 10 = b.y % 10"), tables)
    >>> condition = RowCondition(same, {("a", 0): ("left", "x"), ("b", 0): ("right", "y")})
    >>> condition([{"x": 12}, {"x": 12}, {"x": 12}], [{"y": 2}, {"y": 3}, {"y": None}])
    [True, False, False]
    """

    __slots__ = ("places", "typed")

    def __init__(self, typed: Typed, places: Mapping[Hashable, tuple[str, str]]) -> None:
        self.typed = typed
        self.places = dict(places)

    def __call__(self, left: Sequence[dict[str, Any]], right: Sequence[dict[str, Any]]) -> list[bool]:
        """Return whether the condition is true of each pair; NULL is not."""
        return [self._is_true(a, b) for a, b in zip(left, right, strict=True)]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RowCondition) and (self.typed, self.places) == (other.typed, other.places)

    def __hash__(self) -> int:
        return hash(self.typed)

    def _is_true(self, left: dict[str, Any], right: dict[str, Any]) -> bool:
        def lookup(slot: Hashable) -> object:
            side, child = self.places[slot]
            return (left if side == "left" else right)[child]

        return evaluate(self.typed, lookup) is True
