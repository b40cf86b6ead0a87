"""Type rules of the operators, and the helpers of every type rule: conversions, common types, helps."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal as Number

from weft.core.findings import Findings
from weft.core.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    INTERVAL,
    LONG,
    NULL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Decimal,
    DType,
    Map,
    as_decimal,
    common_type,
)
from weft.errors import EvaluationError, ExpressionError
from weft.expr.ast import Binary, Call, Expr, Lit
from weft.expr.casts import castable
from weft.expr.literals import decimal_type, read_number
from weft.expr.render import source_text
from weft.expr.typed import Typed, all_valid
from weft.expr.values import in_interval, result_type

Requirement = tuple[str, Callable[[DType], bool], DType]
"""The name of a kind of value, the test of a type, and the type to suggest in a CAST."""


TEXT: Requirement = ("a string", lambda t: t == STRING, STRING)
CONDITION: Requirement = ("a boolean", lambda t: t == BOOLEAN, BOOLEAN)
WHOLE: Requirement = ("an integer", lambda t: t.is_integer, LONG)
NUMBER: Requirement = ("a number", lambda t: t.is_numeric, Decimal(38, 10))
DAY: Requirement = ("a date", lambda t: t == DATE, DATE)
MOMENT: Requirement = ("a date or timestamp", lambda t: t.is_temporal, DATE)
MAP: Requirement = ("a map", lambda t: isinstance(t, Map), Map(STRING, STRING))
SORTABLE: Requirement = ("a value that can be sorted", lambda t: t.is_orderable, STRING)


@dataclass(frozen=True, slots=True)
class CallCheck:
    """A call with checked arguments; type rules get their arguments with `require` and return `build`."""

    node: Call
    args: tuple[Typed, ...]
    findings: Findings

    def require(self, index: int, requirement: Requirement) -> Typed | None:
        """Return the argument if it meets the requirement, NULL included; else add W0209."""
        word, fits, target = requirement
        arg = self.args[index]
        if arg.dtype == NULL:
            return convert(arg, target)
        if fits(arg.dtype):
            return arg
        self.refuse(index, word, cast_help(arg, target))
        return None

    def refuse(self, index: int, expected: str, help: str = "") -> None:
        """Add a finding about the type of an argument."""
        arg = self.args[index]
        self.findings.add(
            "W0209",
            f"argument {index + 1} of {self.node.name} is {arg.dtype}, expected {expected}",
            arg.expr.place,
            help,
        )

    def build(
        self,
        dtype: DType,
        args: Sequence[Typed | None],
        *,
        op: str = "",
        nullable: bool | None = None,
        value: object = None,
    ) -> Typed | None:
        """Return the typed call, or None when an argument is invalid."""
        valid = all_valid(args)
        if valid is None:
            return None
        nullable = any(a.nullable for a in valid) if nullable is None else nullable
        return Typed(op or self.node.name, dtype, nullable, valid, value=value, expr=self.node)


def convert(arg: Typed, dtype: DType) -> Typed:
    """Return the operand converted to another type; NULL literals change their type directly."""
    if arg.dtype == dtype:
        return arg
    if arg.op == "lit" and arg.value is None:
        return replace(arg, dtype=dtype)
    return Typed("cast", dtype, arg.nullable, (arg,), expr=arg.expr)


def exact(arg: Typed) -> Typed:
    """Return an exact number as a decimal; a literal keeps its number of digits."""
    if isinstance(arg.dtype, Decimal):
        return arg
    if arg.op == "lit" and isinstance(arg.value, int):
        number = Number(arg.value)
        return replace(arg, dtype=decimal_type(number), value=number)
    return convert(arg, as_decimal(arg.dtype))


def meet(args: Sequence[Typed]) -> tuple[DType | None, tuple[Typed, ...]]:
    """Return the common type and the operands converted to it; None without a common type."""
    # The literal 1 beside a decimal is a decimal(1,0); as an integer it would widen the result to ten digits.
    if any(isinstance(a.dtype, Decimal) for a in args):
        args = [exact(a) if a.op == "lit" and isinstance(a.value, int) and a.dtype.is_integer else a for a in args]
    common: DType = args[0].dtype
    for arg in args[1:]:
        wider = common if arg.dtype == common else common_type(common, arg.dtype)
        if wider is None:
            return None, tuple(args)
        common = wider
    return common, tuple(convert(a, common) for a in args)


def find_misfit(args: Sequence[Typed]) -> tuple[int, DType]:
    """Return the first of operands without a common type that does not fit those before it, and their common type."""
    commons = [meet(args[: count + 1])[0] for count in range(len(args))]
    index = next(i for i in range(1, len(args)) if commons[i] is None and commons[i - 1] is not None)
    return index, commons[index - 1] or NULL


def cast_help(arg: Typed, target: DType) -> str:
    """Return the CAST to paste, or a better alternative."""
    if isinstance(arg.dtype, Map):
        return "read one entry with LABEL_GET(map, key), change one with LABEL_SET(map, key, value)"
    if isinstance(target, Map) or arg.dtype == BOOLEAN or arg.dtype.is_nested:
        return ""
    if target == BOOLEAN:
        return f"compare it with a value, as in {source_text(arg.expr)} = ..."
    if isinstance(arg.expr, Lit) and isinstance(arg.value, str) and target == DATE:
        return f"write DATE({source_text(arg.expr)})"
    if arg.dtype.is_numeric and target.is_temporal:
        return ""
    return f"write CAST({source_text(arg.expr)} AS {target})"


def meet_help(left: Typed, right: Typed) -> str:
    """Return the help for two operands without a common type: cast a string to the type of the other."""
    for arg, other in ((left, right), (right, left)):
        if isinstance(arg.dtype, Map):
            return cast_help(arg, other.dtype)
    for arg, other in ((left, right), (right, left)):
        if arg.dtype == STRING and other.dtype != STRING and not other.dtype.is_nested:
            return _text_help(arg, other)
    return ""


def _text_help(text: Typed, other: Typed) -> str:
    target = other.dtype
    if isinstance(text.expr, Lit):
        if target.is_temporal:
            return f"write {'DATE' if target == DATE else 'TIMESTAMP'} {source_text(text.expr)}"
        if _reads_as(str(text.value), target):
            return f"write {text.value} without quotes"
        if target == INTERVAL:
            return f"write INTERVAL {source_text(text.expr)}"
        text, target = other, STRING
    return f"write CAST({source_text(text.expr)} AS {target})" if castable(text.dtype, target) else ""


def _reads_as(text: str, target: DType) -> bool:
    if target == BOOLEAN:
        return text.upper() in ("TRUE", "FALSE")
    try:
        return target.is_numeric and bool(read_number(text.removeprefix("-")))
    except ExpressionError:
        return False


def binary(node: Binary, left: Typed, right: Typed, findings: Findings) -> Typed | None:
    """Return the typed operation, or None after adding a finding."""
    if node.op in ("=", "<>", "<", "<=", ">", ">=", "<=>"):
        return compare(node, node.op, left, right, findings)
    if node.op == "||":
        return _concatenate(node, left, right, findings)
    if left.dtype.is_temporal or right.dtype.is_temporal or INTERVAL in (left.dtype, right.dtype):
        return _shift(node, left, right, findings)
    return _arithmetic(node, left, right, findings)


def compare(node: Expr, op: str, left: Typed, right: Typed, findings: Findings, word: str = "") -> Typed | None:
    """Return the comparison of two operands in their common type; messages call it `word`."""
    word = word or op
    common, operands = meet((left, right))
    sortable = common is not None and common.is_orderable and not isinstance(common, Map)
    if not sortable:
        findings.add(
            "W0209", f"{_sides(word, left, right)}: they cannot be compared", node.place, meet_help(left, right)
        )
        return None
    if common == BOOLEAN and op in ("<", "<=", ">", ">="):
        findings.add(
            "W0209", f"{_sides(word, left, right)}: a boolean has no order", node.place, "use =, <>, AND, OR or NOT"
        )
        return None
    nullable = op != "<=>" and (left.nullable or right.nullable)
    return Typed(op, BOOLEAN, nullable, operands, expr=node)


def _sides(op: str, left: Typed, right: Typed) -> str:
    return f"the left side of {op} is {left.dtype}, the right side {right.dtype}"


def _concatenate(node: Binary, left: Typed, right: Typed, findings: Findings) -> Typed | None:
    invalid = [(side, arg) for side, arg in (("left", left), ("right", right)) if arg.dtype not in (STRING, NULL)]
    for side, arg in invalid:
        help = cast_help(arg, STRING)
        findings.add("W0209", f"the {side} side of || is {arg.dtype}, expected a string", arg.expr.place, help)
    operands = tuple(convert(a, STRING) if a.dtype == NULL else a for a in (left, right))
    nullable = left.nullable or right.nullable
    return None if invalid else Typed("CONCAT", STRING, nullable, operands, expr=node)


def _arithmetic(node: Binary, left: Typed, right: Typed, findings: Findings) -> Typed | None:
    invalid = [a for a in (left, right) if not (a.dtype.is_numeric or a.dtype == NULL)]
    if invalid:
        help = meet_help(left, right) or _number_help(invalid[0])
        if help.endswith("AS string)"):
            help = f"concatenate strings with ||; {help}"
        if node.op == "+" and all(a.dtype in (STRING, NULL) for a in (left, right)):
            help = f"concatenate strings with ||: {source_text(left.expr)} || {source_text(right.expr)}"
        findings.add("W0209", f"{_sides(node.op, left, right)}: {node.op} requires numbers", node.place, help)
        return None
    # An untyped NULL takes the type of the other side, so that the type of the result does not depend on the data.
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


def _number_help(arg: Typed) -> str:
    return cast_help(arg, Decimal(38, 10)) if arg.dtype == STRING or isinstance(arg.dtype, Map) else ""


def _shift(node: Binary, left: Typed, right: Typed, findings: Findings) -> Typed | None:
    """Type arithmetic on dates, timestamps and intervals."""
    a, b = left.dtype, right.dtype
    nullable = left.nullable or right.nullable
    if node.op in ("+", "-"):
        if a == DATE and (b.is_integer or b == NULL):
            days = convert(right, LONG)
            if node.op == "-":  # there is no operation date_sub
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
    findings.add("W0209", _sides(node.op, left, right), node.place, _shift_help(node, left, right))
    return None


def _multiple(left: Typed, right: Typed) -> dt.timedelta | None:
    """Return the product of an interval and an integer, in either order."""
    length, times = (left, right) if left.dtype == INTERVAL else (right, left)
    if not (isinstance(length.value, dt.timedelta) and isinstance(times.value, int)):
        return None
    try:
        return in_interval(length.value * times.value)
    except (OverflowError, EvaluationError):
        return None


def _shift_help(node: Binary, left: Typed, right: Typed) -> str:
    a, b = left.dtype, right.dtype
    first, second = source_text(left.expr), source_text(right.expr)
    if node.op == "-" and a == b == DATE:
        return f"write DATEDIFF({first}, {second}) for the days between them"
    if node.op == "-" and a.is_temporal and b.is_temporal:
        return f"cast both to one type: CAST({first} AS timestamp) - CAST({second} AS timestamp)"
    if node.op == "+" and b.is_temporal and not a.is_temporal:
        return f"write the date first: {second} + {first}"
    if a == DATE and b.is_numeric:
        return f"the number of days must be an integer: {first} {node.op} CAST({second} AS integer)"
    if a in (TIMESTAMP, TIMESTAMP_NTZ) and b.is_numeric:
        return f"add an interval: {first} {node.op} INTERVAL '1' DAY"
    if STRING in (a, b):
        return meet_help(left, right)
    return "add or subtract days from a date, an interval from a timestamp"


def negate(node: Expr, arg: Typed, findings: Findings) -> Typed | None:
    """Return the typed minus sign."""
    dtype = arg.dtype
    if dtype.is_integer or dtype == NULL:
        arg = convert(arg, LONG)
    elif dtype == FLOAT:
        arg = convert(arg, DOUBLE)
    elif not (dtype.is_numeric or dtype == INTERVAL):
        findings.add("W0209", f"the operand of - is {dtype}, expected a number", node.place, _number_help(arg))
        return None
    return Typed("neg", arg.dtype, arg.nullable, (arg,), expr=node)
