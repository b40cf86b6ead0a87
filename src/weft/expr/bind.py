"""Filling in: values for ``?`` and ``:name``, and expressions for ``{{NAME}}``, put into the tree and never into the text."""

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
from weft.expr.tokens import MAX_DEPTH


def bind(expr: Expr, args: Sequence[object] | Mapping[str, object]) -> Expr:
    """Return the expression with a literal in the place of every placeholder.

    >>> from weft.expr import parse, render
    >>> render(bind(parse("left.x > ? AND left.y = ?", dialect="fragment"), [5, "it's"]), dialect="fragment")
    "left.x > 5 AND left.y = 'it''s'"
    """
    if isinstance(args, str | bytes) or not isinstance(args, Sequence | Mapping):
        raise ArgumentError(
            f"parameters are a sequence or a mapping, not {type(args).__name__}",
            help='write [value] for ?, {"name": value} for :name',
        )
    found = placeholders(expr)
    named = isinstance(args, Mapping)
    errors = _mixed(found) or (
        _misnamed(found, args) if isinstance(args, Mapping) else _miscounted(found, args)
    )
    if errors:
        raise ExpressionError(errors)
    order = iter(range(len(found)))
    problems: list[Diagnostic] = []

    def fill(node: Expr) -> Expr:
        if not isinstance(node, Placeholder):
            return map_children(node, fill)
        value = args[node.name] if named else args[next(order)]  # type: ignore[call-overload,index]
        try:
            return replace(literal(value), span=node.span)
        except (ArgumentError, ExpressionError) as error:
            problems.append(_problem(f"the value of {_shown(node)}: {error.message}", node, error.help))
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
            decimal_type(value)  # refuses 1e999999999 before its digits are written out
            # A fraction digit keeps the literal a decimal when it is written out and read again.
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
                    f"{value} lies outside the years 1 to 9999 in UTC",
                    code="W0204",
                    help="use a time between the years 1 and 9999",
                ) from cause
    return Lit(value, literal_type(value))


def _shown(node: Placeholder) -> str:
    return "?" if node.name is None else f":{node.name}"


def _problem(message: str, node: Placeholder | None = None, help: str = "") -> Diagnostic:
    at = node.span.place if node is not None and node.span is not None else None
    return Diagnostic("W0214", message, help=help, at=at)


def _mixed(found: tuple[Placeholder, ...]) -> list[Diagnostic]:
    marks = [p for p in found if p.name is None]
    if not marks or len(marks) == len(found):
        return []
    other = next(p for p in found if p.name is not None)
    return [_problem(f"? and {_shown(other)} stand in one expression", marks[0], "use only ? or only names")]


def _miscounted(found: tuple[Placeholder, ...], args: Sequence[object]) -> list[Diagnostic]:
    names = [p for p in found if p.name is not None]
    if names:
        return [
            _problem(
                f"{_shown(names[0])} needs values by name", names[0], "pass a mapping of names to values"
            )
        ]
    if len(found) == len(args):
        return []
    here = found[len(args)] if len(found) > len(args) else None
    message = f"the expression has {len(found)} placeholders and there are {len(args)} values"
    return [_problem(message, here, "give one value for each ?")]


def _misnamed(found: tuple[Placeholder, ...], args: Mapping[str, object]) -> list[Diagnostic]:
    marks = [p for p in found if p.name is None]
    if marks:
        return [_problem("? needs values by position", marks[0], "pass a list of values")]
    errors = []
    for node in found:
        if node.name not in args:
            close = find_similar(str(node.name), map(str, args))
            help = (
                f"did you mean {' or '.join(close)}?" if close else f"there is {format_list(map(str, args))}"
            )
            errors.append(_problem(f"there is no value for {_shown(node)}", node, help))
    unused = [name for name in args if name not in {p.name for p in found}]
    if unused:
        errors.append(
            _problem(f"no placeholder uses {format_list(map(str, unused))}", None, "leave the value out")
        )
    return errors


_MOST_NODES = 10_000


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
            cycle = " -> ".join((*path[path.index(node.name) :], node.name))
            errors.append(
                _at(
                    node,
                    Diagnostic(
                        "W0213",
                        f"selectors contain each other: {cycle}",
                        help="write one of them without the others",
                    ),
                )
            )
            return node
        if node.name not in selectors:
            errors.append(_at(node, _unknown(node.name, selectors)))
            return node
        if node.name not in done:
            tree = expand(selectors[node.name], (*path, node.name))
            done[node.name] = (tree, *_measure(tree, done))
        tree, size, depth = done[node.name]
        if size > _MOST_NODES or depth > MAX_DEPTH:
            raise ExpressionError([_at(node, _too_large(node.name))])
        return tree

    result = expand(expr, ())
    if errors:
        raise ExpressionError(dict.fromkeys(errors))
    size, depth = _measure(result, done)
    if size > _MOST_NODES or depth > MAX_DEPTH:
        raise ExpressionError([_too_large("")])
    return result


def _measure(tree: Expr, done: Mapping[str, tuple[Expr, int, int]]) -> tuple[int, int]:
    """Return how many nodes a tree has and how deep it is; selectors in it are known already."""
    known = {id(found): (size, depth) for found, size, depth in done.values()}

    def measure(node: Expr) -> tuple[int, int]:
        if id(node) in known:
            return known[id(node)]
        sizes = [measure(c) for c in children(node)]
        known[id(node)] = (1 + sum(s for s, _ in sizes), 1 + max((d for _, d in sizes), default=0))
        return known[id(node)]

    return measure(tree)


def _at(node: Selector, finding: Diagnostic) -> Diagnostic:
    place = node.span.place if node.span is not None else None
    return Diagnostic(finding.code, finding.message, help=finding.help, at=place)


def _unknown(name: str, known: Mapping[str, Expr]) -> Diagnostic:
    close = find_similar(name, known)
    help = f"did you mean {' or '.join(close)}?" if close else f"selectors are {format_list(known)}"
    return Diagnostic("W0212", f"there is no selector {name!r}", help=help)


def _too_large(name: str) -> Diagnostic:
    what = f"selector {name!r}" if name else "the expression with its selectors"
    return Diagnostic(
        "W0201",
        f"{what} is larger than {_MOST_NODES:,} parts or nested more than {MAX_DEPTH} deep",
        help="compute a part of it in a column of its own",
    )
