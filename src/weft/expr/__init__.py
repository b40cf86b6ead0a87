"""The expression language: parsed, checked, evaluated and rendered; never executed as text.

::

    text --parse--> Expr --bind, interpolate--> Expr --check(scope)--> Typed --evaluate--> value
                                                                             --compile_expr--> Spark column

Semantics, where SQL leaves a choice:

- Integers are 64 bit longs, numbers with a point exact decimals with Spark's result types, numbers with an
  exponent doubles.  Integer / integer is an exact decimal.  Rounding is half up.
  A result that does not fit is an error.  x / 0 and x % 0 are NULL.
- Strings, numbers, dates and booleans are never converted into each other without CAST.
- ``TIMESTAMP '..'`` with Z or an offset is a ``timestamp``, without one a ``timestamp_ntz``; when
  they are compared with each other or with a date, the one without a zone is in the zone of the session.
  Timestamp arithmetic uses elapsed time, also across clock changes.  A date plus an integer adds days; a date
  plus an interval is a ``timestamp_ntz``.
- NOT binds looser than comparisons, comparisons cannot be chained, IF and CASE take the else branch when the
  condition is NULL, MIN and MAX are NULL when an argument is.  NaN equals NaN and is the greatest number.
- A string is cast only when it has the form in ``weft.expr.literals.TEXT_FORMS``, blanks around it allowed.
- Whether an operand that cannot change the result is evaluated, and so can fail, is unspecified.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from weft.expr.ast import (
    Between,
    Binary,
    Call,
    Expr,
    In,
    IsNull,
    Like,
    Lit,
    Logic,
    Negate,
    Not,
    Placeholder,
    Ref,
    Selector,
    map_children,
    placeholders,
    references,
    selectors,
    walk,
)
from weft.expr.bind import bind, interpolate, literal
from weft.expr.check import check
from weft.expr.evaluate import evaluate, evaluate_aggregate
from weft.expr.functions import FUNCTIONS
from weft.expr.render import render
from weft.expr.typed import Column, Scope, TableScope, Typed, unknown_name
from weft.expr.words import Dialect

if TYPE_CHECKING:
    from weft.expr.read import parse

__all__ = [
    "FUNCTIONS",
    "Between",
    "Binary",
    "Call",
    "Column",
    "Dialect",
    "Expr",
    "In",
    "IsNull",
    "Like",
    "Lit",
    "Logic",
    "Negate",
    "Not",
    "Placeholder",
    "Ref",
    "Scope",
    "Selector",
    "TableScope",
    "Typed",
    "bind",
    "check",
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


def __getattr__(name: str) -> Any:
    if name == "parse":  # with the tokenizer, which takes longer to load than all the rest
        return importlib.import_module("weft.expr.read").parse
    raise AttributeError(f"module 'weft.expr' has no attribute {name!r}")
