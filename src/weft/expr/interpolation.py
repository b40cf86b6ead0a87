"""Selectors: ``{{NAME}}`` is replaced in the tree, so it keeps its own grouping and its own place."""

from __future__ import annotations

from collections.abc import Mapping

from weft.core.names import listed, near
from weft.errors import Diagnostic, ExpressionError
from weft.expr.ast import Expr, Selector, children, map_children
from weft.expr.cursor import DEEPEST

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
        if size > _MOST_NODES or depth > DEEPEST:
            raise ExpressionError([_at(node, _too_large(node.name))])
        return tree

    result = expand(expr, ())
    if errors:
        raise ExpressionError(dict.fromkeys(errors))
    size, depth = _measure(result, done)
    if size > _MOST_NODES or depth > DEEPEST:
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
    close = near(name, known)
    help = f"did you mean {' or '.join(close)}?" if close else f"selectors are {listed(known)}"
    return Diagnostic("W0212", f"there is no selector {name!r}", help=help)


def _too_large(name: str) -> Diagnostic:
    what = f"selector {name!r}" if name else "the expression with its selectors"
    return Diagnostic(
        "W0201",
        f"{what} is larger than {_MOST_NODES:,} parts or nested more than {DEEPEST} deep",
        help="compute a part of it in a column of its own",
    )
