"""The one expression language: read, checked, evaluated, written; never executed as text."""

from __future__ import annotations

from weft.expr.ast import (
    Between,
    Binary,
    Call,
    Case,
    Cast,
    Expr,
    In,
    IsNull,
    Like,
    Lit,
    Logic,
    Negate,
    Not,
    Origin,
    Placeholder,
    Ref,
    Selector,
    Span,
    When,
    children,
    map_children,
    placeholders,
    references,
    selectors,
    walk,
)
from weft.expr.bind import bind, literal
from weft.expr.check import check
from weft.expr.dialect import Dialect
from weft.expr.evaluate import evaluate, evaluate_aggregate
from weft.expr.functions import FUNCTIONS, Function
from weft.expr.interpolation import interpolate
from weft.expr.read import parse
from weft.expr.render import render
from weft.expr.typed import Column, Scope, TableScope, Typed

__all__ = [
    "FUNCTIONS",
    "Between",
    "Binary",
    "Call",
    "Case",
    "Cast",
    "Column",
    "Dialect",
    "Expr",
    "Function",
    "In",
    "IsNull",
    "Like",
    "Lit",
    "Logic",
    "Negate",
    "Not",
    "Origin",
    "Placeholder",
    "Ref",
    "Scope",
    "Selector",
    "Span",
    "TableScope",
    "Typed",
    "When",
    "bind",
    "check",
    "children",
    "evaluate",
    "evaluate_aggregate",
    "interpolate",
    "literal",
    "map_children",
    "parse",
    "placeholders",
    "references",
    "render",
    "selectors",
    "walk",
]
