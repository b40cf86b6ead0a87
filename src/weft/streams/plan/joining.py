"""One JOIN of a statement: its conditions become keys, a time part and a residual, then a resolved join."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from weft.core.duration import Duration
from weft.core.findings import Findings
from weft.core.names import canonical_name, fold
from weft.core.types import BOOLEAN, TIMESTAMP, Field, Schema, common_type
from weft.errors import ExpressionError, WeftError
from weft.expr import Binary, Expr, Logic, Ref, Scope, Typed, check
from weft.expr.render import source_text
from weft.joins.resolve.join import resolve_join
from weft.joins.resolve.resolved import ResolvedJoin, ResolvedPredicate
from weft.joins.resolve.resolved import Slot as SideSlot
from weft.joins.spec.asof import AsofOrder
from weft.joins.spec.join import JoinSpec
from weft.joins.spec.projection import JoinProjection
from weft.joins.spec.temporal import IntervalSpec, WindowSpec
from weft.streams.plan.bounds import FoundBounds, place_of, time_condition
from weft.streams.plan.forms import Form, Interval
from weft.streams.plan.resolved import ColumnSlot, StepKey, column_slot
from weft.streams.plan.scope import FromSource, StatementScope
from weft.streams.sql.spec import JoinStepSpec

_TRUE, _FALSE, _NULL, _VALUE = "true", "false", "null", "value"
Outcome = frozenset[str]
_ANYTHING: Outcome = frozenset({_TRUE, _FALSE, _NULL, _VALUE})
_ONLY_NULL: Outcome = frozenset({_NULL})
_CONDITION: Outcome = frozenset({_TRUE, _FALSE, _NULL})
_COMPARES = frozenset({"=", "<>", "<", "<=", ">", ">=", "like"})
_OF_SOURCES = ("i", "t")


@dataclass(frozen=True, slots=True, kw_only=True)
class EqualKey:
    """A conjunct ``earlier column = column of the joined source``, written in either order."""

    left: ColumnSlot
    right: ColumnSlot
    typed: Typed
    is_cast: bool = False


def sources(typed: Typed) -> frozenset[int]:
    """Return the numbers of the sources whose columns an expression reads."""
    return frozenset(s[1] for s in typed.slots if isinstance(s, tuple) and s[0] in _OF_SOURCES)


def equal_keys(conjuncts: Iterable[Typed], right: int) -> tuple[tuple[EqualKey, ...], tuple[Typed, ...]]:
    """Return the keys among the conjuncts, and the rest."""
    keys: list[EqualKey] = []
    rest: list[Typed] = []
    for part in conjuncts:
        key = _equal_key(part, right)
        if key is None:
            rest.append(part)
        elif all((key.left, key.right) != (k.left, k.right) for k in keys):
            keys.append(key)
    return tuple(keys), tuple(rest)


def _equal_key(part: Typed, right: int) -> EqualKey | None:
    if part.op != "=":
        return None
    slots = [_bare(arg) for arg in part.args]
    if None in slots:
        return None
    (one, one_cast), (other, other_cast) = (s for s in slots if s is not None)
    if (one[1] == right) == (other[1] == right):
        return None
    first, second = (other, one) if one[1] == right else (one, other)
    return EqualKey(left=first, right=second, typed=part, is_cast=one_cast or other_cast)


def _bare(typed: Typed) -> tuple[ColumnSlot, bool] | None:
    """Return the column that an operand is, and whether it was cast to meet the other one."""
    if typed.op == "cast" and typed.expr == typed.args[0].expr:
        found = _bare(typed.args[0])
        return None if found is None else (found[0], True)
    if typed.op != "ref" or not isinstance(typed.slot, tuple) or typed.slot[0] != "i":
        return None
    return cast("ColumnSlot", typed.slot), False


def is_key_expression(part: Typed, right: int) -> bool:
    """Whether a conjunct is an equality of two sides that no key can be made of."""
    if part.op != "=":
        return False
    one, other = (sources(arg) for arg in part.args)
    return bool(one and other) and ((one == {right}) != (other == {right})) and not (one & other)


def null_rejects(typed: Typed, inputs: frozenset[int]) -> bool:
    """Whether the condition cannot be true of a row in which all columns of `inputs` are NULL."""
    return bool(sources(typed) & inputs) and _TRUE not in _outcomes(typed, inputs)


def _outcomes(typed: Typed, inputs: frozenset[int]) -> Outcome:
    """Return what an expression can come to when the columns of `inputs` are NULL and others unknown."""
    match typed.op:
        case "lit":
            return _literal(typed)
        case "ref":
            slot = typed.slot
            padded = isinstance(slot, tuple) and slot[0] in _OF_SOURCES and slot[1] in inputs
            return _ONLY_NULL if padded else _unknown(typed)
    args = [_outcomes(arg, inputs) for arg in typed.args]
    match typed.op:
        case "and":
            return _both(args)
        case "or":
            return _opposite(_both([_opposite(a) for a in args]))
        case "not":
            return _opposite(args[0])
        case "is_null":
            return _is_null(args[0])
        case "COALESCE":
            return _first_value(args)
        case "case":
            return _branches(args)
        case "<=>":
            return frozenset({_TRUE}) if args[0] == args[1] == _ONLY_NULL else _unknown(typed)
        case "in":
            return _ONLY_NULL if args[0] == _ONLY_NULL else _CONDITION
        case "LABEL_SET" | "cast" | _:
            return _strict(typed, args)


def _literal(typed: Typed) -> Outcome:
    if typed.value is None:
        return _ONLY_NULL
    if typed.dtype == BOOLEAN:
        return frozenset({_TRUE if typed.value else _FALSE})
    return frozenset({_VALUE})


def _unknown(typed: Typed) -> Outcome:
    return _CONDITION if typed.dtype == BOOLEAN else frozenset({_VALUE, _NULL})


def _strict(typed: Typed, args: Sequence[Outcome]) -> Outcome:
    """Operations that are NULL when an operand is."""
    if typed.op == "LABEL_SET":
        return _ONLY_NULL if _ONLY_NULL in args[:2] else _unknown(typed)
    return _ONLY_NULL if _ONLY_NULL in args else _unknown(typed)


def _opposite(found: Outcome) -> Outcome:
    turned = {_TRUE: _FALSE, _FALSE: _TRUE}
    return frozenset(turned.get(f, f) for f in found)


def _both(args: Sequence[Outcome]) -> Outcome:
    if any(a == {_FALSE} for a in args):
        return frozenset({_FALSE})
    found = {o for a in args for o in a if o != _TRUE}
    if all(_TRUE in a for a in args):
        found.add(_TRUE)
    return frozenset(found)


def _is_null(found: Outcome) -> Outcome:
    told = {_TRUE} if _NULL in found else set()
    return frozenset(told | ({_FALSE} if found - _ONLY_NULL else set()))


def _first_value(args: Sequence[Outcome]) -> Outcome:
    found: set[str] = set()
    for arg in args:
        found |= arg - _ONLY_NULL
        if _NULL not in arg:
            return frozenset(found)
    return frozenset(found | _ONLY_NULL)


def _branches(args: Sequence[Outcome]) -> Outcome:
    found: set[str] = set()
    for condition, value in zip(args[:-1:2], args[1:-1:2], strict=True):
        if _TRUE in condition:
            found |= value
        if condition == {_TRUE}:
            return frozenset(found)
    return frozenset(found | args[-1])


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinConditions:
    """What the ON of a join, and the part of WHERE that moved into it, say."""

    keys: tuple[EqualKey, ...] = ()
    bounds: FoundBounds = field(default_factory=FoundBounds)
    residual: tuple[Typed, ...] = ()
    moved: tuple[Typed, ...] = ()
    is_misplaced: bool = False


def checked(expr: Expr, scope: StatementScope, findings: Findings) -> tuple[Typed, ...] | None:
    """Return the typed conjuncts of a condition; None after noting every mistake in it."""
    parts: list[Typed] = []
    good = True
    for part in _conjuncts(expr):
        times = time_condition(part, scope)
        if times is not None:
            parts.extend(_flat(times))
            continue
        if _keys_do_not_meet(part, scope, findings):
            good = False
            continue
        try:
            typed = check(part, scope, expect=BOOLEAN)
        except ExpressionError as cause:
            findings.add_error(cause)
            good = False
        else:
            parts.extend(_flat(typed))
    return tuple(parts) if good else None


def _conjuncts(expr: Expr) -> Iterable[Expr]:
    if isinstance(expr, Logic) and expr.op == "AND":
        for arg in expr.args:
            yield from _conjuncts(arg)
    else:
        yield expr


def _flat(typed: Typed) -> Iterable[Typed]:
    if typed.op == "and":
        for arg in typed.args:
            yield from _flat(arg)
    else:
        yield typed


def _keys_do_not_meet(part: Expr, scope: Scope, findings: Findings) -> bool:
    """Note two bare columns that are compared as keys but have no common type."""
    if not (isinstance(part, Binary) and part.op == "="):
        return False
    if not (isinstance(part.left, Ref) and isinstance(part.right, Ref)):
        return False
    one, other = (scope.resolve(r.qualifier, r.name) for r in (part.left, part.right))
    if not (hasattr(one, "dtype") and hasattr(other, "dtype")):
        return False
    a, b = Field(source_text(part.left), one.dtype), Field(source_text(part.right), other.dtype)
    if common_type(a.dtype, b.dtype) is not None:
        return False
    findings.add(
        "W2121",
        f"key {a.name} is {a.dtype} but {b.name} is {b.dtype}",
        part.span.place if part.span else None,
        f"declare both columns as {a.dtype} or both as {b.dtype}: values are read as they are declared",
    )
    return True


def settled_keys(
    join: JoinStepSpec,
    conditions: JoinConditions,
    lefts: Sequence[FromSource],
    right: FromSource,
    findings: Findings,
) -> tuple[StepKey, ...]:
    """Return the keys with their common types; notes what is wrong or risky about them."""
    if not conditions.keys:
        _no_key(join, conditions, lefts, right, findings)
        return ()
    settled = []
    for key in conditions.keys:
        dtype = key.typed.args[0].dtype
        if dtype.is_fraction:
            findings.add(
                "W2102",
                f"key {_said(key.typed)} compares {dtype} values",
                place_of(key.typed),
                "declare the columns as DECIMAL or BIGINT: equal floats are an accident of rounding",
            )
            continue
        if key.is_cast:
            types = " and ".join(str(_uncast(a).dtype) for a in key.typed.args)
            findings.add(
                "W2111",
                f"key {_said(key.typed)} compares {types} as {dtype}",
                place_of(key.typed),
                "declare both columns with one type",
                severity="warning",
            )
        settled.append(StepKey(left=key.left, right=key.right, dtype=dtype))
    return tuple(settled)


def _uncast(typed: Typed) -> Typed:
    return typed.args[0] if typed.op == "cast" else typed


def _said(typed: Typed) -> str:
    return source_text(typed.expr)


def _no_key(
    join: JoinStepSpec,
    conditions: JoinConditions,
    lefts: Sequence[FromSource],
    right: FromSource,
    findings: Findings,
) -> None:
    computed = [c for c in conditions.residual if is_key_expression(c, right.number)]
    if computed:
        findings.add(
            "W2110",
            f"{_said(computed[0])} compares a computed value: a key is a column on each side",
            place_of(computed[0]),
            "declare the column with the type of the other side, or write the computed value into the stream",
        )
        return
    null_safe = next((c for c in conditions.residual if c.op == "<=>"), None)
    findings.add(
        "W2101",
        f"the join of {right.alias} has no equal key",
        join.on.span.place if join.on.span else join.at,
        _key_to_add(lefts, right)
        if null_safe is None
        else "write = instead of <=>: rows without a key match nothing in a stream",
    )


def _key_to_add(lefts: Sequence[FromSource], right: FromSource) -> str:
    """Return the equality to add to ON; columns of one name on both sides are a likely one."""
    for left in lefts:
        for index, mine in enumerate(right.columns):
            place = left.columns.find(mine.name)
            if place is None or place == left.time or index == right.time:
                continue
            other = left.columns.fields[place]
            common = common_type(other.dtype, mine.dtype)
            if common is not None and not common.is_fraction:
                return (
                    "add to ON the columns that are equal:\n"
                    f"AND {left.said(other.name)} = {right.said(mine.name)}"
                )
    return f"add <alias>.<column> = {right.alias}.<column> to ON"


@dataclass(frozen=True, slots=True)
class BatchNames:
    """The names ``<alias>__<column>`` of both sides' columns in the resolved join, and their slots."""

    left: Schema
    right: Schema
    slots: Mapping[object, SideSlot]

    def name(self, slot: object) -> str:
        """Return the name of a column, as a spec writes it."""
        side, index = self.slots[slot]
        return canonical_name((self.left if side == "left" else self.right).fields[index].name)


def batch_names(lefts: Sequence[FromSource], right: FromSource) -> BatchNames:
    """Return the schemas of both sides; each stream adds its event time as ``<alias>__``."""
    taken: set[str] = set()
    slots: dict[object, SideSlot] = {}

    def schema(side: str, members: Sequence[FromSource]) -> Schema:
        fields: list[Field] = []
        for source in members:
            for index, f in enumerate(source.columns):
                slots[column_slot(source.number, index)] = SideSlot(side, len(fields))  # type: ignore[arg-type]  # left or right
                fields.append(Field(_free(f"{source.alias}__{f.name}", taken), f.dtype, f.nullable))
            if source.is_stream:
                slots["t", source.number] = SideSlot(side, len(fields))  # type: ignore[arg-type]  # left or right
                fields.append(Field(_free(f"{source.alias}__", taken), TIMESTAMP))
        return Schema(tuple(fields))

    return BatchNames(schema("left", lefts), schema("right", (right,)), slots)


def _free(name: str, taken: set[str]) -> str:
    while fold(name) in taken:
        name += "_"
    taken.add(fold(name))
    return name


def resolved_join(
    join: JoinStepSpec,
    how: str,
    keys: Sequence[StepKey],
    form: Form | None,
    residual: Typed | None,
    names: BatchNames,
    right: int,
    findings: Findings,
) -> ResolvedJoin | None:
    """Return the join over two schemas, as batch resolves it, or None after noting what it refuses."""
    pairs = [(names.name(k.left), names.name(k.right)) for k in keys]
    try:
        spec = _spec(how, pairs, form, names, right)
        resolved = resolve_join(
            spec,
            names.left,
            names.right,
            how=how,  # type: ignore[arg-type]  # one of the four kinds of join
            project=JoinProjection(right_keys="keep"),
        )
    except WeftError as cause:
        findings.add_error(cause, join.form_at or join.at)
        return None
    if residual is None:
        return resolved
    typed = remapped(residual, lambda slot: names.slots[slot])
    return replace(resolved, conditions=(ResolvedPredicate(text=source_text(residual.expr), typed=typed),))


def _spec(
    how: str, pairs: Sequence[tuple[str, str]], form: Form | None, names: BatchNames, right: int
) -> JoinSpec:
    if form is None:
        return JoinSpec(equal_keys=pairs)
    order = AsofOrder(left=names.name(("t", form.left)), right=names.name(("t", right)))
    if isinstance(form, Interval):
        return IntervalSpec(
            equal_keys=pairs,
            order=order,
            lower=Duration(form.lower).to_timedelta(),
            upper=Duration(form.upper).to_timedelta(),
            how=how,  # type: ignore[arg-type]  # one of the four kinds of join
        )
    window: WindowSpec = form.window
    return replace(window, equal_keys=pairs, predicates=(), order=order, how=how)  # type: ignore[arg-type]  # as above


def remapped(typed: Typed, place: Callable[[object], object]) -> Typed:
    """Return the expression with its slots exchanged."""
    slot = cast("ColumnSlot", place(typed.slot)) if typed.op == "ref" else typed.slot
    return replace(typed, slot=slot, args=tuple(remapped(a, place) for a in typed.args))


def all_of(parts: Sequence[Typed]) -> Typed | None:
    """Return the conjunction of conditions, None for no condition."""
    if not parts:
        return None
    if len(parts) == 1:
        return parts[0]
    expr = Logic("AND", tuple(p.expr for p in parts))
    return Typed("and", BOOLEAN, any(p.nullable for p in parts), tuple(parts), expr=expr)
