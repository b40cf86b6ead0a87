"""The functions of the language: their type rules, and the table that lists every function with its arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from weft.core.names import find_similar
from weft.core.types import BOOLEAN, DATE, DOUBLE, INTEGER, LONG, NULL, STRING, TIMESTAMP_NTZ, Decimal, DType, Map
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
    Requirement,
    cast_help,
    compare,
    convert,
    exact,
    find_misfit,
    meet,
    meet_help,
)
from weft.expr.typed import Typed
from weft.expr.values import bounded

UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
"""The units of DATE_TRUNC; a week starts on Monday."""


Rule = Callable[[CallCheck], Typed | None]


def _rule(dtype: DType, requirement: Requirement) -> Rule:
    """Return the rule of a function whose arguments all meet one requirement and whose result has one type."""
    return lambda call: call.build(dtype, [call.require(i, requirement) for i in range(len(call.args))])


def _common(call: CallCheck, first: int, what: str) -> tuple[Typed, ...] | None:
    """Convert the arguments from `first` on to a common type, or add a finding about the first that differs."""
    args = call.args[first:]
    common, met = meet(args)
    if common is not None:
        return met
    index, before = find_misfit(args)
    other = next((a for a in args[:index] if a.dtype != NULL), args[0])
    call.refuse(first + index, f"{before} like the {what} before it", meet_help(other, args[index]))
    return None


def conditional(call: CallCheck) -> Typed | None:
    """IF(condition, then, else)."""
    condition, branches = call.require(0, CONDITION), _common(call, 1, "value")
    if branches is None:
        return None
    nullable = any(b.nullable for b in branches)
    return call.build(branches[0].dtype, (condition, *branches), op="case", nullable=nullable)


def coalesce(call: CallCheck) -> Typed | None:
    """COALESCE(x, ...)."""
    values = _common(call, 0, "argument")
    if values is None:
        return None
    return call.build(values[0].dtype, values, nullable=all(v.nullable for v in values))


def nullif(call: CallCheck) -> Typed | None:
    """NULLIF(a, b): CASE WHEN a = b THEN NULL ELSE a END."""
    first, second = call.args
    equal = compare(call.node, "=", first, second, call.findings)
    nothing = Typed("lit", first.dtype, expr=Lit(None, first.dtype))
    return call.build(first.dtype, (equal, nothing, first), op="case", nullable=True)


def _number(call: CallCheck, index: int = 0) -> Typed | None:
    """Return a numeric argument as long, decimal or double."""
    arg = call.require(index, NUMBER)
    if arg is None or isinstance(arg.dtype, Decimal):
        return arg
    return convert(arg, DOUBLE if arg.dtype.is_fraction else LONG)


def absolute(call: CallCheck) -> Typed | None:
    """ABS(x)."""
    arg = _number(call)
    return arg and call.build(arg.dtype, (arg,))


def whole(call: CallCheck) -> Typed | None:
    """FLOOR(x), CEIL(x): decimals stay decimal without a fraction, doubles become long."""
    arg = _number(call)
    if arg is None or arg.dtype == LONG:
        return arg and replace(arg, expr=call.node)
    if isinstance(arg.dtype, Decimal):
        p, s = arg.dtype.precision, arg.dtype.scale
        return call.build(bounded(p - s + 1, 0) if s else arg.dtype, (arg,))
    return call.build(LONG, (arg,))


def rounded(call: CallCheck) -> Typed | None:
    """ROUND(x[, n]): the scale of the result is a constant n, else the scale of x."""
    arg = _number(call)
    if len(call.args) == 1:
        digits: Typed | None = Typed("lit", INTEGER, nullable=False, value=0, expr=call.node)
    else:
        digits = call.require(1, WHOLE)
    if arg is None or digits is None:
        return None
    n = digits.value if digits.op == "lit" else None
    # Spark rounds a double to a constant number of digits only; decimals are rounded by a case for each.
    if arg.dtype == DOUBLE and not isinstance(n, int):
        call.refuse(1, "a constant for a double", cast_help(call.args[0], Decimal(38, 10)))
        return None
    dtype = _rounded_type(arg.dtype, n if isinstance(n, int) else None)
    return call.build(dtype, (arg, convert(digits, LONG)))


def _rounded_type(dtype: DType, n: int | None) -> DType:
    """Return the type of a number rounded to `n` digits, None if they are not constant; 9.9 becomes 10: a digit more."""
    if not isinstance(dtype, Decimal):
        return dtype
    if n is None:
        return bounded(dtype.precision + 1, dtype.scale)
    whole = dtype.precision - dtype.scale + 1
    if n < 0:
        return bounded(max(whole, 1 - n), 0)
    scale = min(dtype.scale, n)
    return bounded(whole + scale, scale)


def extreme(call: CallCheck) -> Typed | None:
    """MIN(a, b, ...), MAX(a, b, ...): NULL when any is NULL."""
    sortable = [call.require(i, SORTABLE) for i in range(len(call.args))]
    # Without this test an argument that is not sortable would be reported twice.
    values = _common(call, 0, "argument") if None not in sortable else None
    return None if values is None else call.build(values[0].dtype, values)


def text_and_counts(call: CallCheck) -> Typed | None:
    """LEFT, RIGHT, SUBSTRING."""
    counts = [call.require(i, WHOLE) for i in range(1, len(call.args))]
    return call.build(STRING, (call.require(0, TEXT), *(c and convert(c, LONG) for c in counts)))


def to_date(call: CallCheck) -> Typed | None:
    """DATE(x): text as yyyy-mm-dd, or the day of a timestamp."""
    arg = call.args[0]
    if arg.dtype == STRING or arg.dtype.is_temporal or arg.dtype == NULL:
        return replace(convert(arg, DATE), expr=call.node)
    call.refuse(0, "a string, a date or a timestamp")
    return None


def date_part(call: CallCheck) -> Typed | None:
    """YEAR, MONTH, DAY."""
    arg = call.require(0, MOMENT)
    return arg and call.build(INTEGER, (convert(arg, DATE),))


def date_add(call: CallCheck) -> Typed | None:
    """DATEADD(date, days)."""
    days = call.require(1, WHOLE)
    return call.build(DATE, (call.require(0, DAY), days and convert(days, LONG)), op="date_add")


def date_trunc(call: CallCheck) -> Typed | None:
    """DATE_TRUNC('unit', x)."""
    unit, moment = call.args[0], call.require(1, MOMENT)
    name = unit.value.lower() if unit.op == "lit" and isinstance(unit.value, str) else ""
    if name not in UNITS:
        value = repr(unit.value) if unit.op == "lit" else "not a constant"
        words = ", ".join(UNITS)
        call.findings.add(
            "W0209", f"argument 1 of DATE_TRUNC is {value}, expected a unit", unit.expr.place, f"units are {words}"
        )
        return None
    if moment is not None and moment.dtype == DATE and UNITS.index(name) > UNITS.index("day"):
        call.findings.add(
            "W0209", f"a date cannot be truncated to the {name}", call.node.place, cast_help(moment, TIMESTAMP_NTZ)
        )
        return None
    return moment and call.build(moment.dtype, (moment,), value=name)


def label(call: CallCheck) -> Typed | None:
    """LABEL_SET(map, key, value), LABEL_GET(map, key), LABEL_REMOVE(map, key)."""
    labels = call.require(0, MAP)
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
        return call.build(labels.dtype.value, (labels, *rest), nullable=True)
    result = Map(labels.dtype.key, labels.dtype.value, contains_null=True)
    return call.build(result, (labels, *rest))


def total(call: CallCheck) -> Typed | None:
    """SUM(x)."""
    arg = _number(call)
    if arg is None:
        return None
    wide = bounded(arg.dtype.precision + 10, arg.dtype.scale) if isinstance(arg.dtype, Decimal) else arg.dtype
    return call.build(wide, (arg,), nullable=True)


def average(call: CallCheck) -> Typed | None:
    """AVG(x): four more fraction digits than the decimal, never a double for whole numbers."""
    arg = call.require(0, NUMBER)
    if arg is None:
        return None
    if arg.dtype.is_fraction:
        return call.build(DOUBLE, (convert(arg, DOUBLE),), nullable=True)
    arg = exact(arg)
    if not isinstance(arg.dtype, Decimal):
        return None
    return call.build(bounded(arg.dtype.precision + 4, arg.dtype.scale + 4), (arg,), nullable=True)


def count(call: CallCheck) -> Typed | None:
    """COUNT(x), COUNT(*)."""
    return call.build(LONG, call.args, nullable=False)


def extreme_of_rows(call: CallCheck) -> Typed | None:
    """MIN_AGG(x), MAX_AGG(x)."""
    arg = call.require(0, SORTABLE)
    return arg and call.build(arg.dtype, (arg,), nullable=True)


_strings = _rule(STRING, TEXT)
_PASSES = "NULL when an argument is NULL"


@dataclass(frozen=True, slots=True)
class Function:
    """One function: its names, how many arguments it takes, its type rule, what NULL does.

    `most` None means any number.  `rule` None means that the parser replaces the call with an
    operator, so that no call is checked.
    """

    name: str
    takes: str
    least: int
    most: int | None
    rule: Rule | None
    doc: str
    nulls: str = _PASSES
    aliases: tuple[str, ...] = ()
    aggregate: bool = False

    @property
    def arity(self) -> str:
        """The number of arguments, in words."""
        if self.most is None:
            return f"at least {self.least}"
        return str(self.least) if self.least == self.most else f"{self.least} or {self.most}"


_TABLE = (
    Function("IF", "condition, then, else", 3, 3, conditional, "one of two values",
             "a condition that is NULL takes the else value"),
    Function("AND", "condition, ...", 2, None, None, "whether all hold", "three-valued"),
    Function("OR", "condition, ...", 2, None, None, "whether one holds", "three-valued"),
    Function("NOT", "condition", 1, 1, None, "the opposite"),
    Function("ISNULL", "x", 1, 1, None, "whether x is NULL", "never NULL", ("IS_NULL",)),
    Function("COALESCE", "x, ...", 1, None, coalesce, "the first that is not NULL", "NULL when all are"),
    Function("NULLIF", "a, b", 2, 2, nullif, "NULL when a = b, else a", "a NULL b changes nothing"),
    Function("ABS", "number", 1, 1, absolute, "without its sign"),
    Function("FLOOR", "number", 1, 1, whole, "the next whole number below"),
    Function("CEIL", "number", 1, 1, whole, "the next whole number above", aliases=("CEILING",)),
    Function("ROUND", "number[, digits]", 1, 2, rounded,
             "rounded half up to digits after the point (0 if left out), before it when negative"),
    Function("MOD", "x, y", 2, 2, None, "the remainder of x / y with the sign of x", "NULL also when y is 0"),
    Function("MIN", "a, b, ...", 2, None, extreme, "the smallest argument", aliases=("LEAST",)),
    Function("MAX", "a, b, ...", 2, None, extreme, "the greatest argument", aliases=("GREATEST",)),
    Function("CONCAT", "text, ...", 1, None, _strings, "the texts joined"),
    Function("UPPER", "text", 1, 1, _strings, "in capitals"),
    Function("LOWER", "text", 1, 1, _strings, "in small letters"),
    Function("TRIM", "text", 1, 1, _strings, "without spaces, tabs, CR and LF at both ends"),
    Function("LEN", "text", 1, 1, _rule(INTEGER, TEXT), "how many characters", aliases=("LENGTH",)),
    Function("LEFT", "text, n", 2, 2, text_and_counts, "the first n characters; none when n is not positive"),
    Function("RIGHT", "text, n", 2, 2, text_and_counts, "the last n characters; none when n is not positive"),
    Function("SUBSTRING", "text, start[, n]", 2, 3, text_and_counts,
             "n characters from start, counted from 1 (0 counts as 1), from the end when negative",
             aliases=("SUBSTR",)),
    Function("CONTAINS", "text, part", 2, 2, _rule(BOOLEAN, TEXT), "whether part occurs in text"),
    Function("REPLACE", "text, old, new", 3, 3, _strings, "with every old replaced; an empty old changes nothing"),
    Function("DATE", "x", 1, 1, to_date, "text yyyy-mm-dd as a date, or the day of a timestamp",
             aliases=("TO_DATE",)),
    Function("TODAY", "", 0, 0, _rule(DATE, DAY), "the date of the run", "never NULL"),
    Function("YEAR", "date", 1, 1, date_part, "the year"),
    Function("MONTH", "date", 1, 1, date_part, "the month, 1 to 12"),
    Function("DAY", "date", 1, 1, date_part, "the day of the month"),
    Function("DATEDIFF", "end, start", 2, 2, _rule(INTEGER, DAY), "days from start to end", aliases=("DATE_DIFF",)),
    Function("DATEADD", "date, n", 2, 2, date_add, "n days later", aliases=("DATE_ADD",)),
    Function("DATE_TRUNC", "unit, x", 2, 2, date_trunc, "the start of the year, quarter, month, week, day, hour .."),
    Function("LABEL_SET", "map, key, value", 3, 3, label, "the map with the entry set",
             "NULL when the map or the key is NULL; a NULL value is kept"),
    Function("LABEL_GET", "map, key", 2, 2, label, "the entry", "NULL also when there is none"),
    Function("LABEL_REMOVE", "map, key", 2, 2, label, "the map without the entry"),
    Function("SUM", "number", 1, 1, total, "the total", "NULLs are left out; NULL without rows", aggregate=True),
    Function("AVG", "number", 1, 1, average, "the mean", "NULLs are left out; NULL without rows", aggregate=True),
    Function("COUNT", "x or *", 1, 1, count, "how many are not NULL", "0 without rows", aggregate=True),
    Function("COUNT_ALL", "", 0, 0, count, "how many rows", "0 without rows", aggregate=True),
    Function("MIN_AGG", "x", 1, 1, extreme_of_rows, "the smallest", "NULLs are left out; NULL without rows",
             aggregate=True),
    Function("MAX_AGG", "x", 1, 1, extreme_of_rows, "the greatest", "NULLs are left out; NULL without rows",
             aggregate=True),
)  # fmt: skip

FUNCTIONS: Mapping[str, Function] = {f.name: f for f in _TABLE}
"""Every function under its first name."""

_NAMES: Mapping[str, Function] = {name: f for f in _TABLE for name in (f.name, *f.aliases)}

# Names that users of Spark and of other databases try first; each has a reason and a next step of its own.
_REFUSED: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(
        "EXPLODE EXPLODE_OUTER POSEXPLODE POSEXPLODE_OUTER INLINE INLINE_OUTER STACK JSON_TUPLE UNNEST".split(),
        ("returns rows; an expression is one value", "create the rows in a separate relation first"),
    ),
    **dict.fromkeys(
        "ROW_NUMBER RANK DENSE_RANK PERCENT_RANK NTILE LAG LEAD CUME_DIST NTH_VALUE FIRST_VALUE LAST_VALUE".split(),
        ("is a window function; an expression is evaluated for one row", "compute it in a column first"),
    ),
    **dict.fromkeys(
        "NOW CURRENT_DATE CURRENT_TIMESTAMP GETDATE CURDATE LOCALTIMESTAMP UNIX_TIMESTAMP".split(),
        ("reads the clock", "TODAY() is the date of the run"),
    ),
    **dict.fromkeys(
        "RAND RANDN RANDOM UUID SHUFFLE MONOTONICALLY_INCREASING_ID".split(),
        ("is not deterministic", "compute it in a column first, so that its value is fixed"),
    ),
    **dict.fromkeys("TRY_CAST SAFE_CAST CONVERT".split(), ("is not supported", "write CAST(x AS type)")),
}


def find(name: str) -> Function | None:
    """Return the function of that name or alias, in any case.

    >>> find("length").name, find("median")
    ('LEN', None)
    """
    return _NAMES.get(name.upper()) if name.isascii() else None


def in_fragments(function: Function) -> bool:
    """Whether a join predicate may call it: it has one pair of rows and no run date."""
    return not function.aggregate and function.name != "TODAY"


def refused(name: str, *, fragment: bool = False, stream: bool = False) -> tuple[str, str] | None:
    """Return why a well-known function is not supported and what to do, or None."""
    reason = _REFUSED.get(name.upper())
    if reason is not None and reason[1].startswith("TODAY()") and (fragment or stream):
        help = "use the event time column of the stream"
        return reason[0], help if stream else "pass the time as a value: write ? and args=[...]"
    return reason


def nearest(name: str, *, fragment: bool = False) -> str:
    """Return the help for an unknown function: similar names, or the functions available there."""
    usable = {n: f for n, f in _NAMES.items() if not fragment or in_fragments(f)}
    close = find_similar(name, usable)
    if close:
        return f"did you mean {' or '.join(close)}?"
    return "functions are " + ", ".join(n for n, f in usable.items() if n == f.name)
