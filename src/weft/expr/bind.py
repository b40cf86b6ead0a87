"""Values for ``?`` and ``:name``, expressions for ``{{NAME}}``: the tree is changed, never the text."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal as Number

from weft.core.duration import Duration
from weft.core.names import find_similar, format_list
from weft.errors import ArgumentError, Diagnostic, ExpressionError
from weft.expr.ast import Expr, Lit, Placeholder, Selector, children, map_children, placeholders
from weft.expr.literals import decimal_type, literal_type, read_integer
from weft.expr.words import MAX_DEPTH


def bind(expr: Expr, args: Sequence[object] | Mapping[str, object]) -> Expr:
    """Return the expression with every placeholder replaced by a literal.

    >>> from weft.expr import parse, render
    >>> render(bind(parse("left.x > ? AND left.y = ?", dialect="fragment"), [5, "it's"]), dialect="fragment")
    "left.x > 5 AND left.y = 'it''s'"
    """
    if isinstance(args, str | bytes) or not isinstance(args, Sequence | Mapping):
        raise ArgumentError(
            f"parameters are a sequence or a mapping, not {type(args).__name__}",
            help='write [value] for ?, {"name": value} for :name',
        )
    nodes = placeholders(expr)
    named = isinstance(args, Mapping)
    errors = _mixed(nodes) or (_misnamed(nodes, args) if isinstance(args, Mapping) else _miscounted(nodes, args))
    if errors:
        raise ExpressionError(errors)
    # Both `placeholders` and `map_children` visit the tree in text order, which is the order of the values.
    order = iter(range(len(nodes)))
    problems: list[Diagnostic] = []

    def fill(node: Expr) -> Expr:
        if not isinstance(node, Placeholder):
            return map_children(node, fill)
        value = args[node.name] if named else args[next(order)]  # type: ignore[call-overload,index]
        try:
            return replace(literal(value), span=node.span)
        except (ArgumentError, ExpressionError) as error:
            problems.append(_problem(f"the value of {_format_placeholder(node)}: {error.message}", node, error.help))
            return node

    filled = fill(expr)
    if problems:
        raise ExpressionError(problems)
    return filled


def literal(value: object) -> Lit:
    """Return a Python value as a literal.

    >>> literal(2).value, str(literal(Number("1E+1")).dtype)
    (2, 'decimal(3,1)')
    """
    match value:
        case bool():
            pass
        case int():
            return Lit(*read_integer(Number(value)))
        case Number() if value.is_finite():
            decimal_type(value)  # rejects 1e999999999 before its digits are formatted
            # A fraction digit keeps the literal a decimal when it is rendered and parsed again.
            text = format(value, "f")
            value = Number(text if "." in text else text + ".0")
            value = value or abs(value)
        case Duration():
            value = value.to_timedelta()
        case dt.datetime() if value.tzinfo is not None:
            try:
                value = value.astimezone(dt.UTC)
            except OverflowError as cause:
                raise ExpressionError(
                    f"{value} is outside the years 1 to 9999 in UTC",
                    code="W0204",
                    help="use a time between the years 1 and 9999",
                ) from cause
    return Lit(value, literal_type(value))


def _format_placeholder(node: Placeholder) -> str:
    return "?" if node.name is None else f":{node.name}"


def _problem(message: str, node: Placeholder | None = None, help: str = "") -> Diagnostic:
    return Diagnostic("W0214", message, help=help, at=None if node is None else node.place)


def _mixed(nodes: tuple[Placeholder, ...]) -> list[Diagnostic]:
    marks = [p for p in nodes if p.name is None]
    if not marks or len(marks) == len(nodes):
        return []
    other = next(p for p in nodes if p.name is not None)
    return [_problem(f"? and {_format_placeholder(other)} cannot be mixed", marks[0], "use only ? or only names")]


def _miscounted(nodes: tuple[Placeholder, ...], args: Sequence[object]) -> list[Diagnostic]:
    first = next((p for p in nodes if p.name is not None), None)
    if first is not None:
        message = f"{_format_placeholder(first)} needs values by name"
        return [_problem(message, first, "pass a mapping of names to values")]
    if len(nodes) == len(args):
        return []
    here = nodes[len(args)] if len(nodes) > len(args) else None
    message = f"the expression has {len(nodes)} placeholders but {len(args)} values"
    return [_problem(message, here, "pass one value for each ?")]


def _misnamed(nodes: tuple[Placeholder, ...], args: Mapping[str, object]) -> list[Diagnostic]:
    mark = next((p for p in nodes if p.name is None), None)
    if mark is not None:
        return [_problem("? needs values by position", mark, "pass a list of values")]
    errors = []
    for node in nodes:
        if node.name not in args:
            close = find_similar(str(node.name), map(str, args))
            help = f"did you mean {' or '.join(close)}?" if close else f"the values are {format_list(map(str, args))}"
            errors.append(_problem(f"no value for {_format_placeholder(node)}", node, help))
    unused = [name for name in args if name not in {p.name for p in nodes}]
    if unused:
        errors.append(_problem(f"no placeholder uses {format_list(map(str, unused))}", None, "remove the value"))
    return errors


# A few selectors that use each other twice could otherwise grow to billions of nodes.
_MAX_NODES = 10_000


def interpolate(expr: Expr, selectors: Mapping[str, Expr]) -> Expr:
    """Return the expression with every ``{{NAME}}`` replaced, also inside selectors.

    >>> from weft.expr import parse, render
    >>> named = {"BIG": parse("a.x > 10 OR a.vip")}
    >>> render(interpolate(parse("{{ BIG }} AND a.open"), named))
    '(a.x > 10 OR a.vip) AND a.open'
    """
    errors: list[Diagnostic] = []
    done: dict[str, tuple[Expr, int, int]] = {}

    def expand(node: Expr, path: tuple[str, ...]) -> Expr:
        if not isinstance(node, Selector):
            return map_children(node, lambda child: expand(child, path))
        if node.name in path:
            message = f"selectors contain each other: {' -> '.join((*path[path.index(node.name) :], node.name))}"
            help = "remove the reference from one of them"
            errors.append(Diagnostic("W0213", message, help=help, at=node.place))
            return node
        if node.name not in selectors:
            errors.append(_unknown(node, selectors))
            return node
        # A selector that is used twice is one object in the tree: it is expanded and measured once.
        if node.name not in done:
            tree = expand(selectors[node.name], (*path, node.name))
            done[node.name] = (tree, *_measure(tree, done))
        tree, size, depth = done[node.name]
        if size > _MAX_NODES or depth > MAX_DEPTH:
            raise ExpressionError([_too_large(f"selector {node.name!r}", node)])
        return tree

    result = expand(expr, ())
    if errors:
        raise ExpressionError(dict.fromkeys(errors))
    size, depth = _measure(result, done)
    if size > _MAX_NODES or depth > MAX_DEPTH:
        raise ExpressionError([_too_large("the expression with its selectors")])
    return result


def _measure(tree: Expr, done: Mapping[str, tuple[Expr, int, int]]) -> tuple[int, int]:
    """Return the number of nodes and the depth of a tree whose selectors are already measured."""
    known = {id(selector): (size, depth) for selector, size, depth in done.values()}

    def measure(node: Expr) -> tuple[int, int]:
        if id(node) in known:
            return known[id(node)]
        sizes = [measure(c) for c in children(node)]
        known[id(node)] = (1 + sum(s for s, _ in sizes), 1 + max((d for _, d in sizes), default=0))
        return known[id(node)]

    return measure(tree)


def _unknown(node: Selector, known: Mapping[str, Expr]) -> Diagnostic:
    close = find_similar(node.name, known)
    help = f"did you mean {' or '.join(close)}?" if close else f"selectors are {format_list(known)}"
    return Diagnostic("W0212", f"unknown selector {node.name!r}", help=help, at=node.place)


def _too_large(what: str, node: Selector | None = None) -> Diagnostic:
    return Diagnostic(
        "W0201",
        f"{what} is larger than {_MAX_NODES:,} parts or nested more than {MAX_DEPTH} deep",
        help="compute part of it in a separate column",
        at=None if node is None else node.place,
    )
