"""Columns that an operation writes: whether the name may be written, and how the value becomes its type.

::

    new column           the type of the expression; whole numbers have 64 bits
    same type            as it is
    number               a wider number
    whole, decimal       decimal(p,s): rounded half up to s digits, too large fails the run
    anything else        W0209: write a CAST
"""

from __future__ import annotations

import re

from weft.core.names import fold
from weft.core.types import DOUBLE, FLOAT, LONG, NULL, Decimal, DType, Map, common_type
from weft.expr import Typed
from weft.expr.checking import cast_help, convert
from weft.pipelines.model.reference import Said
from weft.pipelines.model.words import RESERVED_TARGETS
from weft.pipelines.plan.operations.context import PlanContext
from weft.pipelines.plan.operations.resolved import HIDDEN, Working

LABELS = "_labels"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def writable(said: Said, working: Working, context: PlanContext) -> bool:
    """Whether a column of that name may be written; what is wrong is noted."""
    name = said.text
    if not _NAME.fullmatch(name):
        context.mistake(
            "W1402",
            f"{name!r} is not a column that can be written",
            "a name starts with a letter and has letters, digits and underscores",
            said.at,
        )
        return False
    if name in RESERVED_TARGETS or name.startswith(HIDDEN):
        context.mistake(
            "W1402", f"column {name!r} is Weft's own", "write to a column of another name", said.at
        )
        return False
    same = next((n for n in working.schema.names if n != name and fold(n) == fold(name)), None)
    if same is not None and name not in working.schema:
        context.mistake(
            "W1409",
            f"column {name!r} differs from {same!r} only in case",
            f"write {same!r}, or choose another name",
            said.at,
        )
        return False
    return True


def stored(typed: Typed, existing: DType | None) -> tuple[Typed, DType] | None:
    """Return the value in the type it is stored in, or None when the types do not fit.

    >>> from weft.core.types import Schema
    >>> from weft.expr import TableScope, check, parse
    >>> product = check(parse("a * r"), TableScope({"t": Schema.of(a="decimal(18,2)", r="decimal(18,6)")}))
    >>> str(product.dtype), str(stored(product, Decimal(18, 2))[1]), stored(product, LONG)
    ('decimal(37,8)', 'decimal(18,2)', None)
    """
    own = typed.dtype
    if existing is None:
        wide = LONG if own.is_integer else DOUBLE if own == FLOAT else own
        return convert(typed, wide), wide
    if own in (existing, NULL) or existing == NULL:
        return convert(typed, existing), existing
    if isinstance(own, Map) and isinstance(existing, Map):
        fits = (own.key, own.value) == (existing.key, existing.value)
        return (typed, existing) if fits else None
    exact = own.is_integer or isinstance(own, Decimal)
    if exact and isinstance(existing, Decimal):
        return convert(typed, existing), existing
    if own.is_numeric and existing.is_numeric and common_type(own, existing) == existing:
        return convert(typed, existing), existing
    return None


def fitted(
    typed: Typed, said: Said, expression: Said, existing: DType | None, context: PlanContext
) -> tuple[Typed, DType] | None:
    """Return the value in the type of its column; None after noting why it does not fit."""
    if existing is None and typed.dtype == NULL:
        context.mistake(
            "W1404",
            f"the type of the new column {said.text!r} cannot be told from NULL",
            "say it: CAST(NULL AS string)",
            expression.at,
        )
        return None
    found = stored(typed, existing)
    if found is None and existing is not None:
        at = typed.expr.span.place if typed.expr.span is not None else expression.at
        context.mistake(
            "W0209",
            f"column {said.text!r} is {existing}, the expression gives {typed.dtype}",
            cast_help(typed, existing) or "write to a column of another name",
            at,
        )
    return found
