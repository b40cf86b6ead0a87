"""The tree of an expression: small frozen nodes, each with its source location."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from weft.core.source import Source
from weft.core.types import DType

BinaryOp = Literal["+", "-", "*", "/", "%", "||", "=", "<>", "<", "<=", ">", ">=", "<=>"]
LogicOp = Literal["AND", "OR"]


@dataclass(frozen=True, slots=True)
class Origin:
    """The text of an expression and, when it is part of a file, its location there."""

    text: str
    source: Source | None = None


@dataclass(frozen=True, slots=True)
class Span:
    """A range of the text of an expression; `end` is exclusive."""

    start: int
    end: int
    origin: Origin

    @property
    def place(self) -> Source:
        """The source location, in the file if the text is part of one."""
        text, source = self.origin.text, self.origin.source
        if source is None:
            return Source(text, self.start, self.end)
        return source.inner(text, self.start, self.end)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expr:
    """Base class of nodes; the span is ignored in comparisons."""

    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def place(self) -> Source | None:
        """The source location of the node, or None when it was not parsed."""
        return None if self.span is None else self.span.place


@dataclass(frozen=True, slots=True)
class Lit(Expr):
    """A literal of the text, or a value bound to a placeholder."""

    value: object
    dtype: DType


@dataclass(frozen=True, slots=True)
class Ref(Expr):
    """A column, with its table or side if the text names one."""

    qualifier: str | None
    name: str


@dataclass(frozen=True, slots=True)
class Call(Expr):
    """A function of the table in `weft.expr.functions`, under its first name."""

    name: str
    args: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Binary(Expr):
    """Arithmetic, concatenation or a comparison."""

    op: BinaryOp
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Logic(Expr):
    """Two or more conditions joined by AND or by OR."""

    op: LogicOp
    args: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Not(Expr):
    """The negation of a condition; ``x NOT IN (1)`` is ``Not(In(x, 1))``."""

    arg: Expr


@dataclass(frozen=True, slots=True)
class Negate(Expr):
    """A minus sign before an operand that is not a number literal."""

    arg: Expr


@dataclass(frozen=True, slots=True)
class IsNull(Expr):
    """``x IS NULL``."""

    arg: Expr


@dataclass(frozen=True, slots=True)
class In(Expr):
    """``x IN (a, b)``."""

    arg: Expr
    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Between(Expr):
    """``x BETWEEN low AND high``, both ends included."""

    arg: Expr
    low: Expr
    high: Expr


@dataclass(frozen=True, slots=True)
class Like(Expr):
    """``x LIKE 'pattern'``: ``%`` any run, ``_`` one character, backslash escapes."""

    arg: Expr
    pattern: str


@dataclass(frozen=True, slots=True)
class When(Expr):
    """One ``WHEN condition THEN value`` of a CASE."""

    condition: Expr
    value: Expr


@dataclass(frozen=True, slots=True)
class Case(Expr):
    """``CASE [operand] WHEN .. THEN .. [ELSE ..] END``."""

    operand: Expr | None
    whens: tuple[When, ...]
    otherwise: Expr | None


@dataclass(frozen=True, slots=True)
class Cast(Expr):
    """``CAST(x AS type)``."""

    arg: Expr
    dtype: DType


@dataclass(frozen=True, slots=True)
class Placeholder(Expr):
    """``?`` (name is None) or ``:name``; `bind` replaces it with a literal."""

    name: str | None = None


@dataclass(frozen=True, slots=True)
class Selector(Expr):
    """``{{NAME}}``; `interpolate` replaces it with the named expression."""

    name: str


# The fields that hold nodes, in text order, so that every traversal visits a tree in the order in which it was written.
_CHILDREN: dict[type[Expr], tuple[str, ...]] = {
    **dict.fromkeys((Call, Logic), ("args",)),
    **dict.fromkeys((Not, Negate, IsNull, Like, Cast), ("arg",)),
    Binary: ("left", "right"),
    In: ("arg", "items"),
    Between: ("arg", "low", "high"),
    When: ("condition", "value"),
    Case: ("operand", "whens", "otherwise"),
}


def children(expr: Expr) -> tuple[Expr, ...]:
    """Return the nodes directly below, in text order."""
    nodes: list[Expr] = []
    for name in _CHILDREN.get(type(expr), ()):
        value = getattr(expr, name)
        if value is not None:
            nodes.extend(value if isinstance(value, tuple) else (value,))
    return tuple(nodes)


def map_children(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """Return the node with `change` applied to each node directly below, in text order."""
    changed: dict[str, Any] = {}
    for name in _CHILDREN.get(type(expr), ()):
        value = getattr(expr, name)
        if value is not None:
            changed[name] = tuple(map(change, value)) if isinstance(value, tuple) else change(value)
    return replace(expr, **changed) if changed else expr


def walk(expr: Expr) -> Iterator[Expr]:
    """Yield the node and all nodes below it, parents first, in text order."""
    stack = [expr]
    while stack:
        node = stack.pop()
        yield node
        # Reversed, because the end of the list is popped first.
        stack.extend(reversed(children(node)))


def references(expr: Expr) -> tuple[Ref, ...]:
    """Return every column reference in text order, once for each time it is written.

    >>> from weft.expr import parse
    >>> [r.name for r in references(parse("a.x + a.y > a.x"))]
    ['x', 'y', 'x']
    """
    return tuple(n for n in walk(expr) if isinstance(n, Ref))


def placeholders(expr: Expr) -> tuple[Placeholder, ...]:
    """Return every ``?`` and ``:name`` in text order."""
    return tuple(n for n in walk(expr) if isinstance(n, Placeholder))


def selectors(expr: Expr) -> tuple[Selector, ...]:
    """Return every ``{{NAME}}`` in text order."""
    return tuple(n for n in walk(expr) if isinstance(n, Selector))
