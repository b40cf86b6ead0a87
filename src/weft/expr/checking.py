"""What a type rule works with: findings, conversions and the words of its messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal as Number

from weft.core.types import (
    BOOLEAN,
    LONG,
    NULL,
    STRING,
    Decimal,
    DType,
    Map,
    Scalar,
    as_decimal,
    common_type,
)
from weft.errors import Code, Diagnostic, ExpressionError
from weft.expr.ast import Call, Expr, Lit
from weft.expr.casts import castable
from weft.expr.literals import decimal_type, read_number
from weft.expr.render import written
from weft.expr.typed import Typed

Wanted = tuple[str, Callable[[DType], bool], DType]
"""The word for a kind of value, the test of a type, and the type to suggest in a CAST."""


TEXT: Wanted = ("text", lambda t: t == STRING, STRING)
CONDITION: Wanted = ("a boolean", lambda t: t == BOOLEAN, BOOLEAN)
WHOLE: Wanted = ("an integer", lambda t: t.is_integer, LONG)
NUMBER: Wanted = ("a number", lambda t: t.is_numeric, Decimal(38, 10))
DAY: Wanted = ("a date", lambda t: t == Scalar("date"), Scalar("date"))
MOMENT: Wanted = ("a date or timestamp", lambda t: t.is_temporal, Scalar("date"))
MAP: Wanted = ("a map", lambda t: isinstance(t, Map), Map(STRING, STRING))
SORTABLE: Wanted = ("a value that can be sorted", lambda t: t.is_orderable, STRING)


@dataclass(slots=True)
class Findings:
    """The errors of one expression, gathered while it is checked."""

    errors: list[Diagnostic] = field(default_factory=list)

    def add(self, code: Code, message: str, at: Expr, help: str = "") -> None:
        """Note an error at the place of a node."""
        self.errors.append(Diagnostic(code, message, help=help, at=at.span.place if at.span else None))

    def place(self, finding: Diagnostic, at: Expr) -> None:
        """Note a finding that has no place yet."""
        self.errors.append(replace(finding, at=at.span.place if at.span else None))


@dataclass(frozen=True, slots=True)
class CallCheck:
    """A call whose arguments are checked; rules ask it for their arguments and answer with `make`."""

    node: Call
    args: tuple[Typed, ...]
    findings: Findings

    def want(self, index: int, wanted: Wanted) -> Typed | None:
        """Return the argument if it is of the kind, NULL included; else note W0209."""
        word, fits, target = wanted
        arg = self.args[index]
        if arg.dtype == NULL:
            return convert(arg, target)
        if fits(arg.dtype):
            return arg
        self.refuse(index, word, cast_help(arg, target))
        return None

    def refuse(self, index: int, wanted: str, help: str = "") -> None:
        """Note that an argument has the wrong type."""
        arg = self.args[index]
        self.findings.add(
            "W0209",
            f"argument {index + 1} of {self.node.name} is {arg.dtype}, {wanted} is wanted",
            arg.expr,
            help,
        )

    def make(
        self,
        dtype: DType,
        args: Sequence[Typed | None],
        *,
        op: str = "",
        nullable: bool | None = None,
        value: object = None,
    ) -> Typed | None:
        """Return the typed call, or None when an argument was refused."""
        good = tuple(a for a in args if a is not None)
        if len(good) < len(args):
            return None
        nullable = any(a.nullable for a in good) if nullable is None else nullable
        return Typed(op or self.node.name, dtype, nullable, good, value=value, expr=self.node)


def convert(arg: Typed, dtype: DType) -> Typed:
    """Return the operand in another type; literals change their type at once."""
    if arg.dtype == dtype:
        return arg
    if arg.op == "lit" and arg.value is None:
        return replace(arg, dtype=dtype)
    return Typed("cast", dtype, arg.nullable, (arg,), expr=arg.expr)


def exact(arg: Typed) -> Typed:
    """Return an exact number as a decimal; a literal gets no more digits than it has."""
    if isinstance(arg.dtype, Decimal):
        return arg
    if arg.op == "lit" and isinstance(arg.value, int):
        number = Number(arg.value)
        return replace(arg, dtype=decimal_type(number), value=number)
    return convert(arg, as_decimal(arg.dtype))


def meet(args: Sequence[Typed]) -> tuple[DType | None, tuple[Typed, ...]]:
    """Return the common type and the operands in it, or None when two do not meet."""
    if any(isinstance(a.dtype, Decimal) for a in args):
        args = [
            exact(a) if a.op == "lit" and isinstance(a.value, int) and a.dtype.is_integer else a for a in args
        ]
    common: DType = args[0].dtype
    for arg in args[1:]:
        met = common if arg.dtype == common else common_type(common, arg.dtype)
        if met is None:
            return None, tuple(args)
        common = met
    return common, tuple(convert(a, common) for a in args)


def cast_help(arg: Typed, target: DType) -> str:
    """Return the CAST to paste, or a better way where there is one."""
    if isinstance(arg.dtype, Map):
        return "read one entry with LABEL_GET(map, key), change one with LABEL_SET(map, key, value)"
    if isinstance(target, Map) or arg.dtype == BOOLEAN or arg.dtype.is_nested:
        return ""
    if target == BOOLEAN:
        return f"compare it with something, as in {written(arg.expr)} = ..."
    if isinstance(arg.expr, Lit) and isinstance(arg.value, str) and target == Scalar("date"):
        return f"write DATE({written(arg.expr)})"
    if arg.dtype.is_numeric and target.is_temporal:
        return ""
    return f"write CAST({written(arg.expr)} AS {target})"


def meet_help(left: Typed, right: Typed) -> str:
    """Say how two operands could be made to meet: a text is read as the other's type."""
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
            return f"write {'DATE' if target == Scalar('date') else 'TIMESTAMP'} {written(text.expr)}"
        if _reads_as(str(text.value), target):
            return f"write {text.value} without the quotes"
        if target == Scalar("interval"):
            return f"write INTERVAL {written(text.expr)}"
        text, target = other, STRING
    return f"write CAST({written(text.expr)} AS {target})" if castable(text.dtype, target) else ""


def _reads_as(text: str, target: DType) -> bool:
    if target == BOOLEAN:
        return text.upper() in ("TRUE", "FALSE")
    try:
        return target.is_numeric and bool(read_number(text.removeprefix("-")))
    except ExpressionError:
        return False
