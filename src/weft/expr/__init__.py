"""The one expression language: read, checked, evaluated, written; never executed as text.

::

    text --parse--> Expr --bind, interpolate--> Expr --check(scope)--> Typed --evaluate--> value
                                                                             --compile_expr--> Spark column

What the language means, where SQL leaves a choice:

- Whole numbers compute as 64 bit longs, numbers with a point as exact decimals with Spark's result
  types, numbers with an exponent as doubles.  Whole / whole is an exact decimal.  Rounding is half up.
  A result that does not fit is an error.  x / 0 and x % 0 are NULL.
- Text, numbers, dates and booleans never turn into each other without CAST.
- ``TIMESTAMP '..'`` with Z or an offset is a ``timestamp``, without one a ``timestamp_ntz``; where the two
  or a date meet, the one without zone is read in the session's.  Timestamps move and differ by elapsed time,
  also where clocks change.  A date moves by whole days; with an interval it becomes a ``timestamp_ntz``.
- NOT binds looser than comparisons, comparisons cannot be chained, IF and CASE take the else branch when the
  condition is NULL, MIN and MAX are NULL when an argument is.  NaN equals NaN and is the greatest number.
- A text is cast only when it has the form in ``weft.expr.literals.TEXT_FORMS``, blanks around it allowed.
- Whether an operand that cannot change the result is computed at all, and so can fail, is not promised.
"""

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
from weft.expr.bind import bind, interpolate, literal
from weft.expr.check import check
from weft.expr.evaluate import evaluate, evaluate_aggregate
from weft.expr.functions import FUNCTIONS, Function
from weft.expr.read import parse
from weft.expr.render import render
from weft.expr.tokens import Dialect
from weft.expr.typed import Column, Scope, TableScope, Typed, unknown_name

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
    "unknown_name",
    "walk",
]
