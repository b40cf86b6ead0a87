"""Expressions of an operation: read, selectors put in, checked; every mistake noted with its place."""

from __future__ import annotations

from weft.core.types import BOOLEAN, NULL
from weft.errors import ExpressionError
from weft.expr import Expr, Scope, Typed, check, interpolate, parse
from weft.expr import selectors as selectors_in
from weft.pipelines.model.reference import Said
from weft.pipelines.plan.operations.context import PlanContext


def read(said: Said, context: PlanContext) -> Expr | None:
    """Return the tree of a text with its selectors put in; None after noting what is wrong with it."""
    try:
        tree = parse(said.text, source=said.at)
        return interpolate(tree, context.selectors) if selectors_in(tree) else tree
    except ExpressionError as problem:
        context.mistakes.add(problem)
        return None


def checked(said: Said, scope: Scope, context: PlanContext, *, aggregates: bool = False) -> Typed | None:
    """Return the typed expression; None after noting what is wrong with it."""
    tree = read(said, context)
    if tree is None:
        return None
    try:
        return check(tree, scope, aggregates=aggregates)
    except ExpressionError as problem:
        context.mistakes.add(problem)
        return None


def selector(said: Said | None, scope: Scope, context: PlanContext, *, blank: bool = False) -> Typed | None:
    """Return the condition of an operation; None when there is none, or after noting what is wrong.

    `blank` says whether an empty text means that there is none.
    """
    if said is None or (blank and not said.text.strip()):
        return None
    if not said.text.strip():
        context.mistake("W1403", "the selector is empty", "write a condition, or leave the key out", said.at)
        return None
    typed = checked(said, scope, context)
    if typed is None or typed.dtype in (BOOLEAN, NULL):
        return typed
    at = typed.expr.span.place if typed.expr.span is not None else said.at
    context.mistake(
        "W1406",
        f"the selector gives {typed.dtype}, a condition is wanted",
        "compare it with something, as in ... = 1",
        at,
    )
    return None


def is_unknown(typed: Typed) -> bool:
    """Whether the expression reads a column whose type nobody knows, because its own operation is wrong."""
    return any(node.op == "ref" and node.dtype == NULL for node in typed.walk())
