"""Type rules of the functions: each takes a checked call and answers with its typed form."""

from __future__ import annotations

from dataclasses import replace

from weft.core.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    NULL,
    STRING,
    TIMESTAMP_NTZ,
    Decimal,
    DType,
    Map,
)
from weft.expr.ast import Lit
from weft.expr.checking import (
    CONDITION,
    DAY,
    MAP,
    MOMENT,
    NUMBER,
    SORTABLE,
    TEXT,
    WHOLE,
    CallCheck,
    cast_help,
    compare,
    convert,
    exact,
    meet,
    meet_help,
)
from weft.expr.typed import Typed
from weft.expr.values import bounded

UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
"""What DATE_TRUNC cuts to; a week starts on Monday."""


def _together(call: CallCheck, first: int, what: str) -> tuple[Typed, ...] | None:
    """Bring the arguments from `first` on to one type, or note the first that does not fit."""
    common, met = meet(call.args[first:])
    if common is not None:
        return met
    for index in range(first + 1, len(call.args)):
        before, _ = meet(call.args[first:index])
        if before is not None and meet(call.args[first : index + 1])[0] is None:
            other = next((a for a in call.args[first:index] if a.dtype != NULL), call.args[first])
            help = meet_help(other, call.args[index])
            call.refuse(index, f"{before} like the {what} before it", help)
            return None
    return None


def conditional(call: CallCheck) -> Typed | None:
    """IF(condition, then, else)."""
    condition, branches = call.want(0, CONDITION), _together(call, 1, "value")
    if branches is None:
        return None
    nullable = any(b.nullable for b in branches)
    return call.make(branches[0].dtype, (condition, *branches), op="case", nullable=nullable)


def coalesce(call: CallCheck) -> Typed | None:
    """COALESCE(x, ...)."""
    values = _together(call, 0, "argument")
    if values is None:
        return None
    return call.make(values[0].dtype, values, nullable=all(v.nullable for v in values))


def nullif(call: CallCheck) -> Typed | None:
    """NULLIF(a, b): CASE WHEN a = b THEN NULL ELSE a END."""
    first, second = call.args
    equal = compare(call.node, "=", first, second, call.findings)
    nothing = Typed("lit", first.dtype, expr=Lit(None, first.dtype))
    return call.make(first.dtype, (equal, nothing, first), op="case", nullable=True)


def _number(call: CallCheck, index: int = 0) -> Typed | None:
    """Return a numeric argument as long, decimal or double."""
    arg = call.want(index, NUMBER)
    if arg is None or isinstance(arg.dtype, Decimal):
        return arg
    return convert(arg, DOUBLE if arg.dtype.is_fraction else LONG)


def absolute(call: CallCheck) -> Typed | None:
    """ABS(x)."""
    arg = _number(call)
    return arg and call.make(arg.dtype, (arg,))


def whole(call: CallCheck) -> Typed | None:
    """FLOOR(x), CEIL(x): decimals stay decimal without a fraction, doubles become long."""
    arg = _number(call)
    if arg is None or arg.dtype == LONG:
        return arg and replace(arg, expr=call.node)
    if isinstance(arg.dtype, Decimal):
        p, s = arg.dtype.precision, arg.dtype.scale
        return call.make(bounded(p - s + 1, 0) if s else arg.dtype, (arg,))
    return call.make(LONG, (arg,))


def rounded(call: CallCheck) -> Typed | None:
    """ROUND(x[, n]): a constant n gives the result that scale, any other keeps the scale of x."""
    arg = _number(call)
    if len(call.args) == 1:
        digits: Typed | None = Typed("lit", INTEGER, nullable=False, value=0, expr=call.node)
    else:
        digits = call.want(1, WHOLE)
    if arg is None or digits is None:
        return None
    n = digits.value if digits.op == "lit" else None
    if arg.dtype == DOUBLE and not isinstance(n, int):
        call.refuse(1, "a constant for a double", cast_help(call.args[0], Decimal(38, 10)))
        return None
    dtype = _rounded_type(arg.dtype, n) if isinstance(n, int) else _kept_type(arg.dtype)
    return call.make(dtype, (arg, convert(digits, LONG)))


def _rounded_type(dtype: DType, n: int) -> DType:
    if not isinstance(dtype, Decimal):
        return dtype
    whole = dtype.precision - dtype.scale + 1
    if n < 0:
        return bounded(max(whole, 1 - n), 0)
    scale = min(dtype.scale, n)
    return bounded(whole + scale, scale)


def _kept_type(dtype: DType) -> DType:
    return bounded(dtype.precision + 1, dtype.scale) if isinstance(dtype, Decimal) else dtype


def extreme(call: CallCheck) -> Typed | None:
    """MIN(a, b, ...), MAX(a, b, ...): NULL when any is NULL."""
    wanted = [call.want(i, SORTABLE) for i in range(len(call.args))]
    values = _together(call, 0, "argument") if None not in wanted else None
    return None if values is None else call.make(values[0].dtype, values)


def concat(call: CallCheck) -> Typed | None:
    """CONCAT(text, ...)."""
    return call.make(STRING, [call.want(i, TEXT) for i in range(len(call.args))])


def text_to_text(call: CallCheck) -> Typed | None:
    """UPPER, LOWER, TRIM, REPLACE."""
    return call.make(STRING, [call.want(i, TEXT) for i in range(len(call.args))])


def length(call: CallCheck) -> Typed | None:
    """LEN(text)."""
    return call.make(INTEGER, (call.want(0, TEXT),))


def text_and_counts(call: CallCheck) -> Typed | None:
    """LEFT, RIGHT, SUBSTRING."""
    counts = [call.want(i, WHOLE) for i in range(1, len(call.args))]
    return call.make(STRING, (call.want(0, TEXT), *(c and convert(c, LONG) for c in counts)))


def contains(call: CallCheck) -> Typed | None:
    """CONTAINS(text, part)."""
    return call.make(BOOLEAN, (call.want(0, TEXT), call.want(1, TEXT)))


def to_date(call: CallCheck) -> Typed | None:
    """DATE(x): text as yyyy-mm-dd, or the day of a timestamp."""
    arg = call.args[0]
    if arg.dtype == STRING or arg.dtype.is_temporal or arg.dtype == NULL:
        return replace(convert(arg, DATE), expr=call.node)
    call.refuse(0, "text, a date or a timestamp")
    return None


def today(call: CallCheck) -> Typed | None:
    """TODAY()."""
    return call.make(DATE, (), nullable=False)


def date_part(call: CallCheck) -> Typed | None:
    """YEAR, MONTH, DAY."""
    arg = call.want(0, MOMENT)
    return arg and call.make(INTEGER, (convert(arg, DATE),))


def date_diff(call: CallCheck) -> Typed | None:
    """DATEDIFF(end, start)."""
    return call.make(INTEGER, (call.want(0, DAY), call.want(1, DAY)))


def date_add(call: CallCheck) -> Typed | None:
    """DATEADD(date, days)."""
    days = call.want(1, WHOLE)
    return call.make(DATE, (call.want(0, DAY), days and convert(days, LONG)), op="date_add")


def date_trunc(call: CallCheck) -> Typed | None:
    """DATE_TRUNC('unit', x)."""
    unit, moment = call.args[0], call.want(1, MOMENT)
    name = unit.value.lower() if unit.op == "lit" and isinstance(unit.value, str) else ""
    if name not in UNITS:
        found = repr(unit.value) if unit.op == "lit" else "no constant"
        words = ", ".join(UNITS)
        call.findings.add(
            "W0209", f"argument 1 of DATE_TRUNC is {found}, a unit is wanted", unit.expr, f"units are {words}"
        )
        return None
    if moment is not None and moment.dtype == DATE and UNITS.index(name) > UNITS.index("day"):
        call.findings.add(
            "W0209", f"a date has no {name} to cut to", call.node, cast_help(moment, TIMESTAMP_NTZ)
        )
        return None
    return moment and call.make(moment.dtype, (moment,), value=name)


def label(call: CallCheck) -> Typed | None:
    """LABEL_SET(map, key, value), LABEL_GET(map, key), LABEL_REMOVE(map, key)."""
    labels = call.want(0, MAP)
    if labels is None or not isinstance(labels.dtype, Map):
        return None
    types = (labels.dtype.key, labels.dtype.value)[: len(call.args) - 1]
    rest: list[Typed | None] = []
    for index, dtype in enumerate(types, start=1):
        arg = call.args[index]
        met = meet((arg, Typed("lit", dtype, expr=arg.expr)))[0]
        if met != dtype:
            call.refuse(index, str(dtype), cast_help(arg, dtype))
        rest.append(convert(arg, dtype) if met == dtype else None)
    if call.node.name == "LABEL_GET":
        return call.make(labels.dtype.value, (labels, *rest), nullable=True)
    result = Map(labels.dtype.key, labels.dtype.value, contains_null=True)
    return call.make(result, (labels, *rest))


def total(call: CallCheck) -> Typed | None:
    """SUM(x)."""
    arg = _number(call)
    if arg is None:
        return None
    wide = bounded(arg.dtype.precision + 10, arg.dtype.scale) if isinstance(arg.dtype, Decimal) else arg.dtype
    return call.make(wide, (arg,), nullable=True)


def average(call: CallCheck) -> Typed | None:
    """AVG(x): four more fraction digits than the decimal, never a double for whole numbers."""
    arg = call.want(0, NUMBER)
    if arg is None:
        return None
    if arg.dtype.is_fraction:
        return call.make(DOUBLE, (convert(arg, DOUBLE),), nullable=True)
    arg = exact(arg)
    if not isinstance(arg.dtype, Decimal):
        return None
    return call.make(bounded(arg.dtype.precision + 4, arg.dtype.scale + 4), (arg,), nullable=True)


def count(call: CallCheck) -> Typed | None:
    """COUNT(x), COUNT(*)."""
    return call.make(LONG, call.args, nullable=False)


def extreme_of_rows(call: CallCheck) -> Typed | None:
    """MIN_AGG(x), MAX_AGG(x)."""
    arg = call.want(0, SORTABLE)
    return arg and call.make(arg.dtype, (arg,), nullable=True)
