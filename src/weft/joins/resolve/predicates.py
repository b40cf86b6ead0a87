"""Predicates of a spec bound to two schemas: typed boolean trees over slots."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

from weft import expr
from weft.core.mistakes import Mistakes
from weft.core.names import parse_name
from weft.core.types import BOOLEAN, DATE, NULL, Field, Schema, common_type
from weft.errors import (
    AmbiguousColumnError,
    Diagnostic,
    ExpressionError,
    JoinSpecError,
    JoinTypeError,
    UnknownColumnError,
    WeftError,
)
from weft.expr.ast import Binary
from weft.joins.resolve.casting import meeting_help
from weft.joins.resolve.matching import measure
from weft.joins.resolve.resolved import ResolvedKey, ResolvedPredicate, Slot
from weft.joins.resolve.scope import JoinScope
from weft.joins.spec.asof import AsofSpec
from weft.joins.spec.join import JoinSpec
from weft.joins.spec.predicates import ColumnPredicate, ExpressionPredicate, JoinPredicate

_CLASSES: dict[str, type[WeftError]] = {
    "W0207": UnknownColumnError,
    "W0216": AmbiguousColumnError,
    "W0209": JoinTypeError,
}


def resolve_predicates(
    spec: JoinSpec, left: Schema, right: Schema, keys: tuple[ResolvedKey, ...], mistakes: Mistakes
) -> tuple[ResolvedPredicate, ...]:
    """Return every predicate of the spec bound: `predicates` first, then range predicates.

    What is wrong goes into `mistakes`, that of every predicate.
    """
    scope = JoinScope(left, right)
    bound: list[ResolvedPredicate] = []
    for predicate in spec.predicates:
        with mistakes.noted():
            bound.append(ResolvedPredicate(text=str(predicate), typed=_bound(predicate, scope)))
    if isinstance(spec, AsofSpec):
        # Without all keys and order columns nobody can say which column is a foreign one.
        allowed = None if mistakes else _range_slots(spec, left, right, keys)
        for predicate in spec.range_predicates:
            with mistakes.noted():
                typed = _bound(predicate, scope)
                if allowed is not None:
                    _refuse_foreign(predicate, typed, allowed, scope)
                bound.append(ResolvedPredicate(text=str(predicate), typed=typed, origin="range"))
    return tuple(bound)


def _bound(predicate: JoinPredicate, scope: JoinScope) -> expr.Typed:
    if isinstance(predicate, ExpressionPredicate):
        return _bound_fragment(predicate, scope)
    return _bound_columns(predicate, scope)


def _bound_fragment(predicate: ExpressionPredicate, scope: JoinScope) -> expr.Typed:
    try:
        typed = expr.check(predicate.tree, scope, today=False)
    except ExpressionError as cause:
        raise _CLASSES.get(cause.code, JoinSpecError)(cause.diagnostics) from cause
    if typed.dtype not in (BOOLEAN, NULL):
        raise JoinSpecError(
            f"the expression {predicate.expression!r} gives {typed.dtype}, a predicate gives boolean",
            code="W0309",
            help="compare it with something, for example: ... > 0",
        )
    return typed


def _bound_columns(predicate: ColumnPredicate, scope: JoinScope) -> expr.Typed:
    """Build ``left op right + offset`` as a tree and check it like any other."""
    mistakes, found = Mistakes(), []
    for schema, name, side in (
        (scope.left, predicate.left, "left"),
        (scope.right, predicate.right, "right"),
    ):
        with mistakes.noted():
            found.append(schema.fields[schema.index(parse_name(name), side=f"{side} relation")])
    mistakes.raise_all()
    a, b = found
    if common_type(a.dtype, b.dtype) is None:
        raise JoinTypeError(
            f"{predicate}: left.{a.name} is {a.dtype} but right.{b.name} is {b.dtype}",
            help=meeting_help(a, b),
        )
    right: expr.Expr = expr.Ref("right", b.name)
    operator = "<>" if predicate.operator == "!=" else predicate.operator
    try:
        if predicate.offset is not None:
            right = Binary("+", right, _offset(predicate, a, b))
        tree = Binary(operator, expr.Ref("left", a.name), right)
        return expr.check(tree, scope, expect=BOOLEAN, today=False)
    except ExpressionError as cause:
        raise JoinTypeError(f"{predicate}: {cause.message}", help=cause.help) from cause


def _offset(predicate: ColumnPredicate, a: Field, b: Field) -> expr.Expr:
    amount = measure(predicate.offset, b, a, "offset", sides=("right", "left"))
    if not b.dtype.is_temporal:
        return expr.literal(amount)
    if b.dtype == DATE:
        days, rest = divmod(int(amount or 0), 86_400_000_000)
        if rest:
            raise JoinTypeError(
                f"{predicate}: right.{b.name} is a date, so the offset must be whole days",
                help="cast the column to a timestamp first",
            )
        return expr.literal(days)
    return expr.literal(dt.timedelta(microseconds=int(amount or 0)))


def _range_slots(
    spec: AsofSpec, left: Schema, right: Schema, keys: tuple[ResolvedKey, ...]
) -> frozenset[Slot] | None:
    i, j = left.find(parse_name(spec.order.left)), right.find(parse_name(spec.order.right))
    if i is None or j is None:
        return None
    order = {Slot("left", i), Slot("right", j)}
    return frozenset(order | {Slot("left", k.left) for k in keys} | {Slot("right", k.right) for k in keys})


def _refuse_foreign(
    predicate: JoinPredicate, typed: expr.Typed, allowed: frozenset[Slot], scope: JoinScope
) -> None:
    findings = tuple(_foreign(predicate, typed, allowed, scope))
    if findings:
        raise JoinSpecError(findings)


def _foreign(
    predicate: JoinPredicate, typed: expr.Typed, allowed: frozenset[Slot], scope: JoinScope
) -> Iterator[Diagnostic]:
    for slot in typed.slots:
        if slot not in allowed and isinstance(slot, Slot):
            schema = scope.left if slot.side == "left" else scope.right
            yield Diagnostic(
                "W0308",
                f"range predicate {predicate} names {slot.side}.{schema.fields[slot.index].name}, "
                "which is neither an order column nor a key",
                help="put it in predicates",
            )
