"""Type rules of the operators."""

from __future__ import annotations

import datetime as dt

from weft.core.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    LONG,
    NULL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Decimal,
    Map,
    Scalar,
)
from weft.errors import EvaluationError
from weft.expr.ast import Binary, Expr
from weft.expr.checking import Findings, cast_help, convert, exact, meet, meet_help
from weft.expr.decimals import result_type
from weft.expr.render import written
from weft.expr.typed import Typed
from weft.expr.values import in_interval


def binary(node: Binary, left: Typed, right: Typed, findings: Findings) -> Typed | None:
    """Return the typed operation, or None after noting why there is none."""
    if node.op in ("=", "<>", "<", "<=", ">", ">=", "<=>"):
        return compare(node, node.op, left, right, findings)
    if node.op == "||":
        return _concatenate(node, left, right, findings)
    if left.dtype.is_temporal or right.dtype.is_temporal or INTERVAL in (left.dtype, right.dtype):
        return _shift(node, left, right, findings)
    return _arithmetic(node, left, right, findings)


def compare(
    node: Expr, op: str, left: Typed, right: Typed, findings: Findings, word: str = ""
) -> Typed | None:
    """Return the comparison of two operands in their common type; messages call it `word`."""
    word = word or op
    common, operands = meet((left, right))
    sortable = common is not None and common.is_orderable and not isinstance(common, Map)
    if not sortable:
        findings.add(
            "W0209", f"{_sides(word, left, right)}: they cannot be compared", node, meet_help(left, right)
        )
        return None
    if common == BOOLEAN and op in ("<", "<=", ">", ">="):
        findings.add(
            "W0209", f"{_sides(word, left, right)}: a boolean has no order", node, "use =, <>, AND, OR or NOT"
        )
        return None
    nullable = op != "<=>" and (left.nullable or right.nullable)
    return Typed(op, BOOLEAN, nullable, operands, expr=node)


def _sides(op: str, left: Typed, right: Typed) -> str:
    return f"the left side of {op} is {left.dtype}, the right side {right.dtype}"


def _concatenate(node: Binary, left: Typed, right: Typed, findings: Findings) -> Typed | None:
    good = True
    for side, arg in (("left", left), ("right", right)):
        if arg.dtype not in (STRING, NULL):
            help = cast_help(arg, STRING)
            findings.add("W0209", f"the {side} side of || is {arg.dtype}, text is wanted", arg.expr, help)
            good = False
    operands = tuple(convert(a, STRING) if a.dtype == NULL else a for a in (left, right))
    nullable = left.nullable or right.nullable
    return Typed("CONCAT", STRING, nullable, operands, expr=node) if good else None


def _arithmetic(node: Binary, left: Typed, right: Typed, findings: Findings) -> Typed | None:
    bad = [a for a in (left, right) if not (a.dtype.is_numeric or a.dtype == NULL)]
    if bad:
        help = meet_help(left, right) or _number_help(bad[0])
        if help.endswith("AS string)"):
            help = f"texts are joined with ||; {help}"
        if node.op == "+" and all(a.dtype in (STRING, NULL) for a in (left, right)):
            help = f"texts are joined with ||: {written(left.expr)} || {written(right.expr)}"
        findings.add("W0209", f"{_sides(node.op, left, right)}: {node.op} takes numbers", node, help)
        return None
    if left.dtype == NULL:
        left = convert(left, INTEGER if right.dtype == NULL else right.dtype)
    if right.dtype == NULL:
        right = convert(right, left.dtype)
    nullable = left.nullable or right.nullable or node.op in "/%"
    if left.dtype.is_fraction or right.dtype.is_fraction:
        operands = (convert(left, DOUBLE), convert(right, DOUBLE))
        return Typed(node.op, DOUBLE, nullable, operands, expr=node)
    if node.op != "/" and left.dtype.is_integer and right.dtype.is_integer:
        operands = (convert(left, LONG), convert(right, LONG))
        return Typed(node.op, LONG, nullable, operands, expr=node)
    left, right = exact(left), exact(right)
    if not (isinstance(left.dtype, Decimal) and isinstance(right.dtype, Decimal)):
        return None
    return Typed(node.op, result_type(node.op, left.dtype, right.dtype), nullable, (left, right), expr=node)


def _number_help(bad: Typed) -> str:
    return cast_help(bad, Decimal(38, 10)) if bad.dtype == STRING or isinstance(bad.dtype, Map) else ""


def _shift(node: Binary, left: Typed, right: Typed, findings: Findings) -> Typed | None:
    """Type arithmetic on dates, timestamps and intervals."""
    a, b = left.dtype, right.dtype
    nullable = left.nullable or right.nullable
    if node.op in ("+", "-"):
        if a == DATE and (b.is_integer or b == NULL):
            days = convert(right, LONG)
            if node.op == "-":
                days = Typed("neg", LONG, days.nullable, (days,), expr=right.expr)
            return Typed("date_add", DATE, nullable, (left, days), expr=node)
        if a.is_temporal and b == INTERVAL:
            moment = convert(left, TIMESTAMP_NTZ) if a == DATE else left
            return Typed(f"time{node.op}", moment.dtype, nullable, (moment, right), expr=node)
        if a == INTERVAL and b == INTERVAL:
            return Typed(f"interval{node.op}", INTERVAL, nullable, (left, right), expr=node)
        if node.op == "-" and a == b and a in (TIMESTAMP, TIMESTAMP_NTZ):
            return Typed("time_diff", INTERVAL, nullable, (left, right), expr=node)
        if a == NULL and b.is_temporal and node.op == "-":
            return _shift(node, convert(left, b), right, findings)
        if node.op == "+" and a == INTERVAL and b in (TIMESTAMP, TIMESTAMP_NTZ):
            return Typed("time+", b, nullable, (right, left), expr=node)
        if b == NULL:
            return _shift(node, left, convert(right, INTERVAL), findings)
    if node.op == "*" and {left.op, right.op} == {"lit"} and (times := _multiple(left, right)) is not None:
        return Typed("lit", INTERVAL, value=times, expr=node)
    findings.add("W0209", _sides(node.op, left, right), node, _shift_help(node, left, right))
    return None


def _multiple(left: Typed, right: Typed) -> dt.timedelta | None:
    """Return the product of a length of time and a whole number, in either order."""
    length, times = (left, right) if left.dtype == INTERVAL else (right, left)
    if not (isinstance(length.value, dt.timedelta) and isinstance(times.value, int)):
        return None
    try:
        return in_interval(length.value * times.value)
    except (OverflowError, EvaluationError):
        return None


def _shift_help(node: Binary, left: Typed, right: Typed) -> str:
    a, b = left.dtype, right.dtype
    first, second = written(left.expr), written(right.expr)
    if node.op == "-" and a == b == DATE:
        return f"write DATEDIFF({first}, {second}) for the days between them"
    if node.op == "-" and a.is_temporal and b.is_temporal:
        return f"bring both to one type: CAST({first} AS timestamp) - CAST({second} AS timestamp)"
    if node.op == "+" and b.is_temporal and not a.is_temporal:
        return f"the date comes first: {second} + {first}"
    if a == DATE and b.is_numeric:
        return f"days are whole: {first} {node.op} CAST({second} AS integer)"
    if a in (TIMESTAMP, TIMESTAMP_NTZ) and b.is_numeric:
        return f"say of what: {first} {node.op} INTERVAL '1' DAY"
    if STRING in (a, b):
        return meet_help(left, right)
    return "a date takes + and - with days, a timestamp with an interval"


def negate(node: Expr, arg: Typed, findings: Findings) -> Typed | None:
    """Return the typed minus sign."""
    dtype = arg.dtype
    if dtype.is_integer or dtype == NULL:
        arg = convert(arg, LONG)
    elif dtype == Scalar("float"):
        arg = convert(arg, DOUBLE)
    elif not (dtype.is_numeric or dtype == INTERVAL):
        findings.add("W0209", f"- stands before {dtype}, a number is wanted", node, _number_help(arg))
        return None
    return Typed("neg", arg.dtype, arg.nullable, (arg,), expr=node)
