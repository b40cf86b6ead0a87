"""Expressions as text, with no more parentheses than needed."""

from __future__ import annotations

from weft.core.names import quote
from weft.errors import ArgumentError
from weft.expr import ast
from weft.expr.literals import format_value
from weft.expr.typed import Typed
from weft.expr.words import RESERVED, Dialect

_OR, _AND, _NOT, _COMPARE, _ADD, _MULTIPLY, _UNARY, _ATOM = range(1, 9)
_RANKS = dict.fromkeys(("+", "-", "||"), _ADD) | dict.fromkeys(("*", "/", "%"), _MULTIPLY)


def render(expr: ast.Expr | Typed, *, dialect: Dialect = "pipeline") -> str:
    """Return the text of an expression; parsing it gives an equal tree.

    >>> from weft.expr import parse
    >>> render(parse("not( (a.x+1)*2 == 4 or a.y is null )"))
    'NOT ((a.x + 1) * 2 = 4 OR a.y IS NULL)'
    """
    tree = expr if isinstance(expr, ast.Expr) else expr.expr
    return _Writer('"' if dialect == "pipeline" else "'").write(tree, 0)


def source_text(expr: ast.Expr) -> str:
    """Return the text of a node as the user wrote it, for help that can be pasted."""
    span = expr.span
    return render(expr) if span is None else span.origin.text[span.start : span.end]


class _Writer:
    def __init__(self, text_quote: str) -> None:
        self.text_quote = text_quote

    def write(self, expr: ast.Expr, floor: int) -> str:
        """Return the text, in parentheses when it binds looser than `floor`."""
        text, rank = self.node(expr)
        return f"({text})" if rank < floor else text

    def list(self, exprs: tuple[ast.Expr, ...]) -> str:
        return ", ".join(self.write(e, 0) for e in exprs)

    def node(self, expr: ast.Expr) -> tuple[str, int]:
        match expr:
            case ast.Lit(value=value):
                return format_value(value, quote=self.text_quote), _ATOM
            case ast.Ref(qualifier=None, name=name):
                return _name(name), _ATOM
            case ast.Ref(qualifier=str() as qualifier, name=name):
                return f"{_name(qualifier)}.{_name(name)}", _ATOM
            case ast.Binary():
                rank = _RANKS.get(expr.op, _COMPARE)
                # Operators are left-associative, but comparisons cannot be chained on either side.
                left = self.write(expr.left, rank + (rank == _COMPARE))
                return f"{left} {expr.op} {self.write(expr.right, rank + 1)}", rank
            case ast.Logic():
                rank = _AND if expr.op == "AND" else _OR
                return f" {expr.op} ".join(self.write(a, rank + 1) for a in expr.args), rank
            case ast.Not():
                return self.negation(expr)
            case ast.Negate():
                inner = self.write(expr.arg, _UNARY)
                if isinstance(expr.arg, ast.Lit) and expr.arg.dtype.is_numeric:
                    return f"-({inner})", _UNARY  # -5 is a literal of its own
                # Two minus signs without a space would begin a comment.
                return f"- {inner}" if inner.startswith("-") else f"-{inner}", _UNARY
            case ast.Call(name="COUNT_ALL"):
                return "COUNT(*)", _ATOM
            case ast.Call():
                return f"{expr.name}({self.list(expr.args)})", _ATOM
            case ast.Cast():
                return f"CAST({self.write(expr.arg, 0)} AS {expr.dtype})", _ATOM
            case ast.Case():
                return self.case(expr), _ATOM
            case ast.Placeholder():
                return "?" if expr.name is None else f":{expr.name}", _ATOM
            case ast.Selector():
                return "{{" + expr.name + "}}", _ATOM
            case _:
                return self.test(expr, "")

    def negation(self, expr: ast.Not) -> tuple[str, int]:
        if isinstance(expr.arg, ast.IsNull | ast.In | ast.Between | ast.Like):
            return self.test(expr.arg, "NOT ")
        return f"NOT {self.write(expr.arg, _NOT)}", _NOT

    def test(self, expr: ast.Expr, negated: str) -> tuple[str, int]:
        match expr:
            case ast.IsNull():
                return f"{self.write(expr.arg, _ADD)} IS {negated}NULL", _COMPARE
            case ast.In():
                return f"{self.write(expr.arg, _ADD)} {negated}IN ({self.list(expr.items)})", _COMPARE
            case ast.Between():
                low, high = self.write(expr.low, _ADD), self.write(expr.high, _ADD)
                return f"{self.write(expr.arg, _ADD)} {negated}BETWEEN {low} AND {high}", _COMPARE
            case ast.Like():
                pattern = format_value(expr.pattern, quote=self.text_quote)
                return f"{self.write(expr.arg, _ADD)} {negated}LIKE {pattern}", _COMPARE
            case _:
                raise ArgumentError(
                    f"{type(expr).__name__} is not an expression", help="pass what parse or check returned"
                )

    def case(self, expr: ast.Case) -> str:
        parts = ["CASE"]
        if expr.operand is not None:
            parts.append(self.write(expr.operand, 0))
        parts.extend(f"WHEN {self.write(w.condition, 0)} THEN {self.write(w.value, 0)}" for w in expr.whens)
        if expr.otherwise is not None:
            parts.append(f"ELSE {self.write(expr.otherwise, 0)}")
        return " ".join((*parts, "END"))


def _name(name: str) -> str:
    # Backticks are valid in every dialect, double quotes are not.
    plain = name.isidentifier() and name.upper() not in RESERVED
    return name if plain else quote(name)
