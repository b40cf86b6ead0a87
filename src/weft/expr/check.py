"""check: resolve names to columns and types of operations, and report every error at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from weft.core.findings import Findings
from weft.core.types import BOOLEAN, NULL, STRING, DType, common_type
from weft.errors import Diagnostic, ExpressionError
from weft.expr import ast
from weft.expr.casts import castable
from weft.expr.checking import CallCheck, binary, cast_help, compare, convert, find_misfit, meet, meet_help, negate
from weft.expr.functions import FUNCTIONS
from weft.expr.render import source_text
from weft.expr.typed import Scope, Typed, all_valid


def check(
    expr: ast.Expr, scope: Scope, *, expect: DType | None = None, aggregates: bool = False, today: bool = True
) -> Typed:
    """Return the expression with its types, or raise with every error in it.

    Parameters
    ----------
    expect
        The required type of the result; a number is widened to it, any other type is an error.
    aggregates
        Whether aggregate functions are allowed; then every column must be inside one.
    today
        Whether TODAY() is allowed.

    >>> from weft.core.types import Schema
    >>> from weft.expr import TableScope, parse
    >>> str(check(parse("price * 2"), TableScope({"t": Schema.of(price="decimal(10,2)")})).dtype)
    'decimal(12,2)'
    """
    checker = _Checker(scope, aggregates=aggregates, today=today)
    typed = checker.check(expr)
    if typed is not None and expect is not None:
        typed = checker.expect(typed, expect)
    if typed is None or checker.findings.errors:
        raise ExpressionError(checker.findings.errors)
    return typed


class _Checker:
    def __init__(self, scope: Scope, *, aggregates: bool, today: bool) -> None:
        self.scope = scope
        self.aggregates = aggregates
        self.today = today
        self.inside: str | None = None
        self.findings = Findings()

    def check(self, node: ast.Expr) -> Typed | None:
        """Return the typed node, or None after adding a finding."""
        return _CHECKS[type(node)](self, node)

    def all(self, nodes: Iterable[ast.Expr]) -> tuple[Typed, ...] | None:
        return all_valid(map(self.check, nodes))

    def expect(self, typed: Typed, wanted: DType) -> Typed | None:
        if typed.dtype in (NULL, wanted):
            return convert(typed, wanted)
        if typed.dtype.is_numeric and wanted.is_numeric and common_type(typed.dtype, wanted) == wanted:
            return convert(typed, wanted)
        message = f"the expression is {typed.dtype}, expected {wanted}"
        self.findings.add("W0209", message, typed.expr.place, cast_help(typed, wanted))
        return None

    def condition(self, node: ast.Expr, what: str) -> Typed | None:
        """Check a node that must be a boolean."""
        typed = self.check(node)
        if typed is None or typed.dtype == BOOLEAN:
            return typed
        if typed.dtype == NULL:
            return convert(typed, BOOLEAN)
        help = cast_help(typed, BOOLEAN)
        self.findings.add("W0209", f"{what} is {typed.dtype}, expected a boolean", node.place, help)
        return None

    def literal(self, node: ast.Lit) -> Typed:
        return Typed("lit", node.dtype, node.value is None, value=node.value, expr=node)

    def column(self, node: ast.Ref) -> Typed | None:
        column = self.scope.resolve(node.qualifier, node.name)
        if isinstance(column, Diagnostic):
            self.findings.extend((replace(column, at=node.place),))
            return None
        if self.aggregates and self.inside is None:
            self.findings.add(
                "W0218",
                f"column {source_text(node)} is not inside an aggregate",
                node.place,
                f"write SUM({source_text(node)}), MIN_AGG({source_text(node)}) or another aggregate of it",
            )
            return None
        return Typed("ref", column.dtype, column.nullable, slot=column.slot, expr=node)

    def call(self, node: ast.Call) -> Typed | None:
        function = FUNCTIONS[node.name]
        if node.name == "TODAY" and not self.today:
            self.findings.add("W0215", "TODAY() is not available here", node.place, "pass the date as a value")
            return None
        if function.aggregate and not self.aggregates:
            message = f"{node.name} is an aggregate function, which is not allowed here"
            self.findings.add("W0210", message, node.place, _scalar(node.name))
            return None
        if function.aggregate and self.inside is not None:
            message = f"{node.name} is nested inside {self.inside}"
            self.findings.add("W0211", message, node.place, "compute the inner aggregate in a separate column")
            return None
        # Columns are allowed inside an aggregate only: `column` reads this while the arguments are checked.
        before, self.inside = self.inside, node.name if function.aggregate else self.inside
        args = self.all(node.args)
        self.inside = before
        if args is None or function.rule is None:
            return None
        return function.rule(CallCheck(node, args, self.findings))

    def binary(self, node: ast.Binary) -> Typed | None:
        left, right = self.check(node.left), self.check(node.right)
        if left is None or right is None:
            return None
        return binary(node, left, right, self.findings)

    def logic(self, node: ast.Logic) -> Typed | None:
        args = all_valid(self.condition(a, f"an operand of {node.op}") for a in node.args)
        return None if args is None else Typed(node.op.lower(), BOOLEAN, any(a.nullable for a in args), args, expr=node)

    def opposite(self, node: ast.Not) -> Typed | None:
        arg = self.condition(node.arg, "the operand of NOT")
        return arg and Typed("not", BOOLEAN, arg.nullable, (arg,), expr=node)

    def negate(self, node: ast.Negate) -> Typed | None:
        arg = self.check(node.arg)
        return arg and negate(node, arg, self.findings)

    def is_null(self, node: ast.IsNull) -> Typed | None:
        arg = self.check(node.arg)
        return arg and Typed("is_null", BOOLEAN, nullable=False, args=(arg,), expr=node)

    def within(self, node: ast.In) -> Typed | None:
        arg, items = self.check(node.arg), self.all(node.items)
        if arg is None or items is None:
            return None
        # Each value is compared alone first: the message then points at the value that does not fit.
        if all_valid([compare(i.expr, "=", arg, i, self.findings, "IN") for i in items]) is None:
            return None
        common, operands = meet((arg, *items))
        if common is None:
            help = "compare with each of them: x = a OR x = b"
            self.findings.add("W0209", "the values of IN have no common type", node.place, help)
            return None
        return Typed("in", BOOLEAN, any(o.nullable for o in operands), operands, expr=node)

    def between(self, node: ast.Between) -> Typed | None:
        operands = self.all((node.arg, node.low, node.high))
        if operands is None:
            return None
        arg, low, high = operands
        above = compare(node.low, ">=", arg, low, self.findings, "BETWEEN")
        below = compare(node.high, "<=", arg, high, self.findings, "BETWEEN")
        if above is None or below is None:
            return None
        return Typed("and", BOOLEAN, above.nullable or below.nullable, (above, below), expr=node)

    def like(self, node: ast.Like) -> Typed | None:
        arg = self.check(node.arg)
        if arg is None:
            return None
        if arg.dtype not in (STRING, NULL):
            help = cast_help(arg, STRING)
            self.findings.add("W0209", f"the left side of LIKE is {arg.dtype}, expected a string", node.arg.place, help)
            return None
        arg = convert(arg, STRING) if arg.dtype == NULL else arg
        return Typed("like", BOOLEAN, arg.nullable, (arg,), value=node.pattern, expr=node)

    def case(self, node: ast.Case) -> Typed | None:
        conditions = self.conditions(node)
        values = self.all([*(w.value for w in node.whens), *(() if node.otherwise is None else (node.otherwise,))])
        if conditions is None or values is None:
            return None
        common, branches = meet(values)
        if common is None:
            index, before = find_misfit(values)
            message = f"this value of CASE is {values[index].dtype}, the one before is {before}"
            self.findings.add("W0209", message, values[index].expr.place, meet_help(values[0], values[index]))
            return None
        last = branches[len(conditions) :] or (Typed("lit", common, expr=node),)
        pairs = [x for pair in zip(conditions, branches, strict=False) for x in pair]
        nullable = any(b.nullable for b in (*branches, *last))
        return Typed("case", common, nullable, (*pairs, *last), expr=node)

    def conditions(self, node: ast.Case) -> tuple[Typed, ...] | None:
        if node.operand is None:
            return all_valid(self.condition(w.condition, "the condition of WHEN") for w in node.whens)
        operand = self.check(node.operand)

        def equal(when: ast.When) -> Typed | None:
            value = self.check(when.condition)
            return value and operand and compare(when.condition, "=", operand, value, self.findings)

        return all_valid(map(equal, node.whens))

    def cast(self, node: ast.Cast) -> Typed | None:
        arg = self.check(node.arg)
        if arg is None:
            return None
        if not castable(arg.dtype, node.dtype):
            message = f"{arg.dtype} cannot be cast to {node.dtype}"
            help = f"write IF({source_text(node.arg)}, 1, 0)" if arg.dtype == BOOLEAN and node.dtype.is_numeric else ""
            self.findings.add("W0209", message, node.place, help)
            return None
        if arg.op == "lit" and arg.value is None:
            return Typed("lit", node.dtype, nullable=True, expr=node)
        return Typed("cast", node.dtype, arg.nullable, (arg,), expr=node)

    def unfilled(self, node: ast.Placeholder | ast.Selector) -> None:
        if isinstance(node, ast.Selector):
            self.findings.add("W0212", f"selector {source_text(node)} has no value", node.place)
        else:
            self.findings.add("W0214", f"parameter {source_text(node)} has no value", node.place, "pass a value for it")


def _scalar(name: str) -> str:
    if name in ("MIN_AGG", "MAX_AGG"):
        return f"{name[:3]}(a, b) is the function of a single row"
    return "use it in the aggregations of an operation"


_CHECKS: dict[type[ast.Expr], Callable[[_Checker, Any], Typed | None]] = {
    ast.Lit: _Checker.literal,
    ast.Ref: _Checker.column,
    ast.Call: _Checker.call,
    ast.Binary: _Checker.binary,
    ast.Logic: _Checker.logic,
    ast.Not: _Checker.opposite,
    ast.Negate: _Checker.negate,
    ast.IsNull: _Checker.is_null,
    ast.In: _Checker.within,
    ast.Between: _Checker.between,
    ast.Like: _Checker.like,
    ast.Case: _Checker.case,
    ast.Cast: _Checker.cast,
    ast.Placeholder: _Checker.unfilled,
    ast.Selector: _Checker.unfilled,
}
