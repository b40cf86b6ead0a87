"""Predicates of a join: bound to two schemas, split by the sides they read, folded into an as-of match."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import cast

from weft import expr
from weft.core.findings import ErrorCollector
from weft.core.names import find_similar, format_name, is_keyword_name, parse_name, quote
from weft.core.types import BOOLEAN, DATE, NULL, STRING, DType, Field, Map, Schema, common_type
from weft.errors import (
    AmbiguousColumnError,
    Diagnostic,
    ExpressionError,
    JoinSpecError,
    JoinTypeError,
    UnknownColumnError,
    WeftError,
)
from weft.expr import Column, Typed, unknown_name
from weft.expr.ast import Binary
from weft.joins.resolve.axis import DAY
from weft.joins.resolve.matching import find_columns, measure
from weft.joins.resolve.resolved import AsOf, ResolvedJoin, ResolvedKey, ResolvedPredicate, Side, Slot
from weft.joins.spec.asof import AsofSpec, TemporalSpec, may_be_expression, read_order_expression
from weft.joins.spec.join import JoinSpec
from weft.joins.spec.predicates import SIDES, ColumnPredicate, JoinPredicate


@dataclass(frozen=True, slots=True)
class JoinScope:
    """Resolves ``left.x``, ``right.x``, ``l.x``, ``r.x`` and names that one side alone has."""

    left: Schema
    right: Schema

    def resolve(self, qualifier: str | None, name: str) -> Column | Diagnostic:
        """Return the column that a reference means, or what is wrong with it."""
        if qualifier is not None:
            side = SIDES.get(qualifier.casefold())
            if side is None:
                return Diagnostic("W0207", f"{qualifier!r} is not a side of the join", help="write left. or right.")
            return self._on_side("left" if side == "left" else "right", name)
        sides = [side for side in _BOTH if name in self._schema(side)]
        if len(sides) == 2:
            return Diagnostic("W0216", f"both sides have a column {name!r}", help=f"write left.{name} or right.{name}")
        if not sides:
            names = (*self.left.names, *self.right.names)
            return unknown_name(f"neither side has a column {name!r}", name, names, "there are")
        return self._on_side(sides[0], name)

    def names(self) -> tuple[str, ...]:
        """Return every reference that resolves, for near-name help."""
        return (*(f"left.{n}" for n in self.left.names), *(f"right.{n}" for n in self.right.names))

    def _schema(self, side: Side) -> Schema:
        return self.left if side == "left" else self.right

    def _on_side(self, side: Side, name: str) -> Column | Diagnostic:
        schema = self._schema(side)
        index = schema.find(name)
        if index is None:
            return unknown_name(f"the {side} side has no column {name!r}", name, schema.names, "there are")
        return Column.of(Slot(side, index), schema.fields[index])


_BOTH: tuple[Side, Side] = ("left", "right")
_CLASSES: dict[str, type[WeftError]] = {
    "W0207": UnknownColumnError,
    "W0216": AmbiguousColumnError,
    "W0209": JoinTypeError,
}


@dataclass(frozen=True, slots=True)
class OrderedSide:
    """A schema with a column behind its own for each order that is an expression, and these expressions."""

    schema: Schema
    computed: tuple[Typed, ...] = ()


def compute_orders(spec: JoinSpec | None, side: Side, schema: Schema) -> OrderedSide:
    """Add the orders of a side that are expressions as columns; a column with that name comes first."""
    found = OrderedSide(schema)
    if not isinstance(spec, TemporalSpec):
        return found
    known = spec.known if isinstance(spec, AsofSpec) else None
    for order in (spec.order, known):
        name = None if order is None else parse_name(order.left if side == "left" else order.right)
        if name is None or name in found.schema:
            continue
        tree = read_order_expression(name)
        try:
            if tree is None:
                _check_syntax(name, schema)
                continue
            typed = expr.check(tree, expr.TableScope({side: schema}), today=False)
        except ExpressionError as cause:
            raise _CLASSES.get(cause.code, JoinSpecError)(cause.diagnostics) from cause
        column = Field(name, typed.dtype, nullable=True)
        wider = Schema((*found.schema.fields, column), schema.case_sensitive)
        found = OrderedSide(wider, (*found.computed, typed))
    return found


def _check_syntax(order: str, schema: Schema) -> None:
    """Raise the syntax error of an unknown order column that is rather an expression than a misspelled name."""
    if may_be_expression(order) and not any(map(may_be_expression, find_similar(order, schema.names))):
        expr.parse(order)


def resolve_predicates(
    spec: JoinSpec, left: Schema, right: Schema, keys: tuple[ResolvedKey, ...], mistakes: ErrorCollector
) -> tuple[ResolvedPredicate, ...]:
    """Return every predicate of the spec bound: `predicates` first, then range predicates.

    Errors of all predicates are added to `mistakes`.
    """
    scope = JoinScope(left, right)
    bound: list[ResolvedPredicate] = []
    for predicate in spec.predicates:
        with mistakes.collect():
            bound.append(ResolvedPredicate(text=str(predicate), typed=_bound(predicate, scope)))
    if isinstance(spec, AsofSpec):
        # If a key or order column is unknown, it is not possible to tell which columns are allowed.
        allowed = None if mistakes else _range_slots(spec, left, right, keys)
        for predicate in spec.range_predicates:
            with mistakes.collect():
                typed = _bound(predicate, scope)
                if allowed is not None:
                    _refuse_foreign(predicate, typed, allowed, scope)
                bound.append(ResolvedPredicate(text=str(predicate), typed=typed, origin="range"))
    return tuple(bound)


def _bound(predicate: JoinPredicate, scope: JoinScope) -> expr.Typed:
    if isinstance(predicate, ColumnPredicate):
        return _bound_columns(predicate, scope)
    try:
        typed = expr.check(predicate.tree, scope, today=False)
    except ExpressionError as cause:
        raise _CLASSES.get(cause.code, JoinSpecError)(cause.diagnostics) from cause
    if typed.dtype not in (BOOLEAN, NULL):
        raise JoinSpecError(
            f"the expression {predicate.expression!r} is {typed.dtype}, a predicate must be boolean",
            code="W0309",
            help="compare it with something, for example: ... > 0",
        )
    return typed


def _bound_columns(predicate: ColumnPredicate, scope: JoinScope) -> expr.Typed:
    """Build ``left op right + offset`` as a tree and check it like any other."""
    i, j = find_columns(scope.left, scope.right, (predicate.left, predicate.right))
    a, b = scope.left.fields[i], scope.right.fields[j]
    if common_type(a.dtype, b.dtype) is None:
        raise JoinTypeError(
            f"{predicate}: left.{a.name} is {a.dtype} but right.{b.name} is {b.dtype}", help=suggest_cast(a, b)
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
        days, rest = divmod(int(amount or 0), DAY)
        if rest:
            raise JoinTypeError(
                f"{predicate}: right.{b.name} is a date, so the offset must be whole days",
                help="cast the column to a timestamp first",
            )
        return expr.literal(days)
    return expr.literal(dt.timedelta(microseconds=int(amount or 0)))


def _range_slots(spec: AsofSpec, left: Schema, right: Schema, keys: tuple[ResolvedKey, ...]) -> frozenset[Slot] | None:
    i, j = left.find(parse_name(spec.order.left)), right.find(parse_name(spec.order.right))
    if i is None or j is None:
        return None
    order = {Slot("left", i), Slot("right", j)}
    return frozenset(order | {Slot("left", k.left) for k in keys} | {Slot("right", k.right) for k in keys})


def _refuse_foreign(predicate: JoinPredicate, typed: expr.Typed, allowed: frozenset[Slot], scope: JoinScope) -> None:
    foreign = [slot for slot in typed.slots if slot not in allowed and isinstance(slot, Slot)]
    if foreign:
        names = [f"{s.side}.{(scope.left if s.side == 'left' else scope.right).fields[s.index].name}" for s in foreign]
        message = "range predicate {} names {}, which is neither an order column nor a key"
        raise JoinSpecError(
            Diagnostic("W0308", message.format(predicate, name), help="put it in predicates") for name in names
        )


def suggest_cast(left: Field, right: Field) -> str:
    """Return help for two columns without a common type: a cast that runs.

    >>> from weft.core.types import parse_type
    >>> suggest_cast(Field("id", parse_type("long")), Field("key", parse_type("string")))
    'cast one side first, for example right.with_columns(key="CAST(key AS long)")'
    """
    if isinstance(left.dtype, Map) or isinstance(right.dtype, Map):
        return "maps cannot be compared: join on the values inside them"
    if left.dtype.is_nested or right.dtype.is_nested:
        return "join on the scalar values inside it"
    for calls in _ways(left, right):
        if len(calls) == 1:
            return f"cast one side first, for example {calls[0]}"
        return f"cast both sides first, for example {calls[0]} and {calls[1]}"
    return f"there is no cast between {left.dtype} and {right.dtype}: join on other columns"


def _ways(left: Field, right: Field) -> Iterator[tuple[str, ...]]:
    """Yield casts that give the columns a common type, casts of a string to the other type first."""
    one_sided = [("left", left, right.dtype), ("right", right, left.dtype)]
    one_sided.sort(key=lambda way: way[1].dtype != STRING)
    for side, field, target in one_sided:
        call = _call(side, field, target)
        if call is not None and common_type(target, target) is not None:
            yield (call,)
    texts = _call("left", left, STRING), _call("right", right, STRING)
    if texts[0] is not None and texts[1] is not None:
        yield texts[0], texts[1]


def _call(side: str, field: Field, target: DType) -> str | None:
    """Return the call that casts the column, or None if there is no such cast."""
    # A name such as `end` is an identifier and still needs backticks: the parser decides.
    for name in dict.fromkeys((format_name(field.name), quote(field.name))):
        text = f"CAST({name} AS {target})"
        try:
            typed = expr.check(expr.parse(text), expr.TableScope({"": Schema((field,))}), today=False)
        except WeftError:
            continue
        if typed.dtype == target:
            return f"{side}.with_columns({_argument(field.name, text)})"
    return None


def _argument(name: str, text: str) -> str:
    quoted = repr(text) if '"' in text or "\\" in text else f'"{text}"'
    return f"{name}={quoted}" if is_keyword_name(name) else f"**{{{name!r}: {quoted}}}"


_MICROSECOND = dt.timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Conditions:
    """The conjuncts of all predicates, sorted by the sides they read."""

    left: tuple[Typed, ...] = ()
    right: tuple[Typed, ...] = ()
    pair: tuple[Typed, ...] = ()


def split_conditions(join: ResolvedJoin) -> Conditions:
    """Return the conjuncts of the predicates of a join; one without columns belongs to the right side."""
    parts: dict[str, list[Typed]] = {"left": [], "right": [], "pair": []}
    for typed in join.predicates:
        for part in conjuncts(typed):
            sides = {slot.side for slot in part.slots if isinstance(slot, Slot)}
            parts["pair" if len(sides) == 2 else next(iter(sides), "right")].append(part)
    return Conditions(tuple(parts["left"]), tuple(parts["right"]), tuple(parts["pair"]))


def conjuncts(typed: Typed) -> Iterator[Typed]:
    """Yield the parts that must all be true for `typed` to be true."""
    if typed.op == "and":
        for arg in typed.args:
            yield from conjuncts(arg)
    else:
        yield typed


def fold_order_conditions(join: ResolvedJoin) -> ResolvedJoin:
    """Return the same as-of join with comparisons of the order pair folded into the match.

    Before::

        nearest, tolerance 5s, left.t >= right.u

    After::

        backward, tolerance 5s

    Other comparisons stay conditions; the result is the same either way.
    """
    match = join.match
    if not isinstance(match, AsOf):
        return join
    kept: list[ResolvedPredicate] = []
    for condition in join.conditions:
        rest = []
        for part in conjuncts(condition.typed):
            narrowed = _narrowed(match, part)
            if narrowed is None:
                rest.append(part)
            else:
                match = narrowed
        kept.extend(replace(condition, typed=part) for part in rest)
    return replace(join, match=match, conditions=tuple(kept))


def _narrowed(match: AsOf, part: Typed) -> AsOf | None:
    """Return the match that includes the condition `part`, or None if that is not possible."""
    bound = _order_bound(match, part)
    if bound is None:
        return None
    op, offset = bound  # left op right + offset
    if offset == 0:
        if op in (">=", ">") and match.direction in ("backward", "nearest"):
            return replace(match, direction="backward", allow_exact=match.allow_exact and op == ">=")
        if op in ("<=", "<") and match.direction in ("forward", "nearest"):
            return replace(match, direction="forward", allow_exact=match.allow_exact and op == "<=")
        return None
    if op == "<=" and offset > 0 and match.direction == "backward":
        return replace(match, tolerance=_smaller(match, offset))
    if op == ">=" and offset < 0 and match.direction == "forward":
        return replace(match, tolerance=_smaller(match, -offset))
    return None


def _smaller(match: AsOf, bound: int) -> int:
    return bound if match.tolerance is None else min(int(match.tolerance), bound)


def _order_bound(match: AsOf, part: Typed) -> tuple[str, int] | None:
    """Return ``(op, offset)`` if `part` is ``left op right + offset`` of the order columns."""
    if part.op not in ("<", "<=", ">", ">=") or len(part.args) != 2:
        return None
    first, second = part.args
    mirrored = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
    op = part.op
    if first.slot == Slot("right", match.right) and second.slot == Slot("left", match.left):
        first, second, op = second, first, mirrored[op]
    if first.slot != Slot("left", match.left):
        return None
    if second.slot == Slot("right", match.right):
        return op, 0
    if second.op == "time+" and second.args[0].slot == Slot("right", match.right) and second.args[1].op == "lit":
        return op, cast("dt.timedelta", second.args[1].value) // _MICROSECOND
    return None
