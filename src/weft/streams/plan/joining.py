"""Resolves one JOIN: its conditions become keys, time bounds and a residual, and a join over two schemas."""

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
from weft.joins.resolve.predicates import conjuncts
from weft.joins.resolve.resolved import ResolvedJoin, ResolvedPredicate
from weft.joins.resolve.resolved import Slot as SideSlot
from weft.joins.spec.asof import AsofOrder
from weft.joins.spec.join import JoinSpec
from weft.joins.spec.projection import JoinProjection
from weft.joins.spec.temporal import IntervalSpec, WindowSpec
from weft.streams.plan.bounds import Form, Interval, TimeBounds, check_time_condition, locate
from weft.streams.plan.resolved import ColumnSlot, StepKey, column_slot
from weft.streams.plan.scope import FromSource, StatementScope
from weft.streams.sql.spec import JoinStepSpec

# A condition on padded rows is evaluated over sets of possible results, because other columns are unknown.
_TRUE, _FALSE, _NULL, _VALUE = "true", "false", "null", "value"
Outcome = frozenset[str]
_ONLY_NULL: Outcome = frozenset({_NULL})
_CONDITION: Outcome = frozenset({_TRUE, _FALSE, _NULL})
_OF_SOURCES = ("i", "t")


@dataclass(frozen=True, slots=True, kw_only=True)
class EqualKey:
    """A conjunct ``earlier column = column of the joined source``, written in either order."""

    left: ColumnSlot
    right: ColumnSlot
    typed: Typed
    is_cast: bool = False


def find_sources(typed: Typed) -> frozenset[int]:
    """Return the numbers of the sources that an expression reads."""
    return frozenset(s[1] for s in typed.slots if isinstance(s, tuple) and s[0] in _OF_SOURCES)


def find_equal_keys(conjuncts: Iterable[Typed], right: int) -> tuple[tuple[EqualKey, ...], tuple[Typed, ...]]:
    """Return the keys among the conjuncts, and the rest."""
    keys: list[EqualKey] = []
    rest: list[Typed] = []
    for part in conjuncts:
        key = _parse_equal_key(part, right)
        if key is None:
            rest.append(part)
        elif all((key.left, key.right) != (k.left, k.right) for k in keys):  # a repeated key is dropped
            keys.append(key)
    return tuple(keys), tuple(rest)


def _parse_equal_key(part: Typed, right: int) -> EqualKey | None:
    if part.op != "=":
        return None
    slots = [_find_column(arg) for arg in part.args]
    if None in slots:
        return None
    (one, one_cast), (other, other_cast) = (s for s in slots if s is not None)
    if (one[1] == right) == (other[1] == right):  # both columns are of one side: a filter, not a key
        return None
    first, second = (other, one) if one[1] == right else (one, other)
    return EqualKey(left=first, right=second, typed=part, is_cast=one_cast or other_cast)


def _find_column(typed: Typed) -> tuple[ColumnSlot, bool] | None:
    """Return the column of an operand, and whether it is cast to the type of the other operand."""
    # A cast that the type check added has the expression of its operand; a written CAST is a computed value.
    if typed.op == "cast" and typed.expr == typed.args[0].expr:
        column = _find_column(typed.args[0])
        return None if column is None else (column[0], True)
    if typed.op != "ref" or not isinstance(typed.slot, tuple) or typed.slot[0] != "i":
        return None
    return cast("ColumnSlot", typed.slot), False


def is_key_expression(part: Typed, right: int) -> bool:
    """Whether a conjunct is an equality of both sides that is not an equality of two columns."""
    if part.op != "=":
        return False
    one, other = (find_sources(arg) for arg in part.args)
    return bool(one and other) and ((one == {right}) != (other == {right})) and not (one & other)


def rejects_nulls(typed: Typed, inputs: frozenset[int]) -> bool:
    """Whether the condition cannot be true of a row in which all columns of `inputs` are NULL."""
    return bool(find_sources(typed) & inputs) and _TRUE not in _outcomes(typed, inputs)


def _outcomes(typed: Typed, inputs: frozenset[int]) -> Outcome:
    """Return the possible results of an expression if the columns of `inputs` are NULL and others unknown."""
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
            return _negate(_both([_negate(a) for a in args]))  # De Morgan
        case "not":
            return _negate(args[0])
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
        case "LABEL_SET":
            args = args[:2]  # the value that is set may be NULL
    # All other operations are NULL when an operand is.
    return _ONLY_NULL if _ONLY_NULL in args else _unknown(typed)


def _literal(typed: Typed) -> Outcome:
    if typed.value is None:
        return _ONLY_NULL
    if typed.dtype == BOOLEAN:
        return frozenset({_TRUE if typed.value else _FALSE})
    return frozenset({_VALUE})


def _unknown(typed: Typed) -> Outcome:
    return _CONDITION if typed.dtype == BOOLEAN else frozenset({_VALUE, _NULL})


def _negate(outcome: Outcome) -> Outcome:
    opposite = {_TRUE: _FALSE, _FALSE: _TRUE}
    return frozenset(opposite.get(o, o) for o in outcome)


def _both(args: Sequence[Outcome]) -> Outcome:
    if any(a == {_FALSE} for a in args):
        return frozenset({_FALSE})
    outcomes = {o for a in args for o in a if o != _TRUE}
    if all(_TRUE in a for a in args):
        outcomes.add(_TRUE)
    return frozenset(outcomes)


def _is_null(outcome: Outcome) -> Outcome:
    outcomes = {_TRUE} if _NULL in outcome else set()
    return frozenset(outcomes | ({_FALSE} if outcome - _ONLY_NULL else set()))


def _first_value(args: Sequence[Outcome]) -> Outcome:
    outcomes: set[str] = set()
    for arg in args:
        outcomes |= arg - _ONLY_NULL
        if _NULL not in arg:
            return frozenset(outcomes)
    return frozenset(outcomes | _ONLY_NULL)


def _branches(args: Sequence[Outcome]) -> Outcome:
    outcomes: set[str] = set()
    for condition, value in zip(args[:-1:2], args[1:-1:2], strict=True):
        if _TRUE in condition:
            outcomes |= value
        if condition == {_TRUE}:
            return frozenset(outcomes)
    return frozenset(outcomes | args[-1])


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinConditions:
    """The conditions of a join, from its ON and from the part of WHERE that moved into it."""

    keys: tuple[EqualKey, ...] = ()
    bounds: TimeBounds = field(default_factory=TimeBounds)
    residual: tuple[Typed, ...] = ()
    moved: tuple[Typed, ...] = ()
    is_misplaced: bool = False


def check_condition(expr: Expr, scope: StatementScope, findings: Findings) -> tuple[Typed, ...] | None:
    """Return the typed conjuncts of a condition, or None after adding findings."""
    parts: list[Typed] = []
    is_valid = True
    # Split before the check, so that an error in one condition does not hide those in others.
    for part in _split_conjuncts(expr):
        times = check_time_condition(part, scope)
        if times is not None:
            parts.extend(conjuncts(times))
            continue
        # Before the general check, whose message would be about types rather than about keys.
        if _have_no_common_type(part, scope, findings):
            is_valid = False
            continue
        try:
            typed = check(part, scope, expect=BOOLEAN)
        except ExpressionError as cause:
            findings.add_error(cause)
            is_valid = False
        else:
            parts.extend(conjuncts(typed))
    return tuple(parts) if is_valid else None


def _split_conjuncts(expr: Expr) -> Iterable[Expr]:
    if isinstance(expr, Logic) and expr.op == "AND":
        for arg in expr.args:
            yield from _split_conjuncts(arg)
    else:
        yield expr


def _have_no_common_type(part: Expr, scope: Scope, findings: Findings) -> bool:
    """Report two columns that are compared as keys but have no common type."""
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
    message = f"key {a.name} is {a.dtype} but {b.name} is {b.dtype}"
    help = f"declare both columns as {a.dtype} or both as {b.dtype}: values are read with the declared type"
    findings.add("W2121", message, part.span.place if part.span else None, help)
    return True


def resolve_keys(
    join: JoinStepSpec,
    conditions: JoinConditions,
    lefts: Sequence[FromSource],
    right: FromSource,
    findings: Findings,
    *,
    is_stateful: bool,
) -> tuple[StepKey, ...]:
    """Return the valid keys with their common types; invalid and risky keys are reported.

    `is_stateful` says whether the kernel runs the join; other joins with tables are Spark's.
    """
    if not conditions.keys:
        _add_missing_key(join, conditions, lefts, right, findings)
        return ()
    keys = []
    for key in conditions.keys:
        dtype = key.typed.args[0].dtype
        if dtype.is_fraction:  # not Decimal, which is exact
            help = "declare the columns as DECIMAL or BIGINT: floats are rounded and rarely equal"
            findings.add("W2102", f"key {_format(key.typed)} compares {dtype} values", locate(key.typed), help)
            continue
        if dtype.is_nested and is_stateful:  # Arrow, which compares the keys of the state, has no equality for them
            help = "join on columns of simple types, such as STRING or BIGINT, and compare the others beside them"
            findings.add("W2102", f"key {_format(key.typed)} compares {dtype} values", locate(key.typed), help)
            continue
        if key.is_cast:
            types = " and ".join(str(_uncast(a).dtype) for a in key.typed.args)
            message = f"key {_format(key.typed)} compares {types} as {dtype}"
            help = "declare both columns with the same type"
            findings.add("W2111", message, locate(key.typed), help, severity="warning")
        keys.append(StepKey(left=key.left, right=key.right, dtype=dtype))
    return tuple(keys)


def _uncast(typed: Typed) -> Typed:
    return typed.args[0] if typed.op == "cast" else typed


def _format(typed: Typed) -> str:
    return source_text(typed.expr)


def _add_missing_key(
    join: JoinStepSpec, conditions: JoinConditions, lefts: Sequence[FromSource], right: FromSource, findings: Findings
) -> None:
    computed = [c for c in conditions.residual if is_key_expression(c, right.number)]
    if computed:
        message = f"{_format(computed[0])} compares a computed value, but a key must be a column of each side"
        help = "declare the column with the type of the other side, or add the computed value to the stream"
        findings.add("W2110", message, locate(computed[0]), help)
        return
    null_safe = next((c for c in conditions.residual if c.op == "<=>"), None)
    findings.add(
        "W2101",
        f"the join of {right.alias} has no equal key",
        join.on.span.place if join.on.span else join.at,
        _suggest_key(lefts, right)
        if null_safe is None
        else "write = instead of <=>: rows with a NULL key never match in a stream",
    )


def _suggest_key(lefts: Sequence[FromSource], right: FromSource) -> str:
    """Return the equality to add to ON, preferably of columns with the same name on both sides."""
    for left in lefts:
        for index, mine in enumerate(right.columns):
            place = left.columns.find(mine.name)
            if place is None or place == left.time or index == right.time:
                continue
            other = left.columns.fields[place]
            common = common_type(other.dtype, mine.dtype)
            if common is not None and not common.is_fraction:
                clause = f"{left.format_column(other.name)} = {right.format_column(mine.name)}"
                return f"add an equality of two columns to ON:\nAND {clause}"
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


def build_batch_names(lefts: Sequence[FromSource], right: FromSource) -> BatchNames:
    """Return the schemas of both sides; each stream has its event time as ``<alias>__``."""
    taken: set[str] = set()
    slots: dict[object, SideSlot] = {}

    def schema(side: str, members: Sequence[FromSource]) -> Schema:
        fields: list[Field] = []
        for source in members:
            for index, f in enumerate(source.columns):
                slots[column_slot(source.number, index)] = SideSlot(side, len(fields))  # type: ignore[arg-type]  # left or right
                fields.append(Field(_make_unique(f"{source.alias}__{f.name}", taken), f.dtype, f.nullable))
            if source.is_stream:
                # No column has this name: an event time may be computed or come from the message.
                slots["t", source.number] = SideSlot(side, len(fields))  # type: ignore[arg-type]  # left or right
                fields.append(Field(_make_unique(f"{source.alias}__", taken), TIMESTAMP))
        return Schema(tuple(fields))

    return BatchNames(schema("left", lefts), schema("right", (right,)), slots)


def _make_unique(name: str, taken: set[str]) -> str:
    while fold(name) in taken:
        name += "_"
    taken.add(fold(name))
    return name


def resolve_batch_join(
    join: JoinStepSpec,
    how: str,
    keys: Sequence[StepKey],
    form: Form | None,
    residual: Typed | None,
    names: BatchNames,
    right: int,
    findings: Findings,
) -> ResolvedJoin | None:
    """Return the join over two schemas, resolved as in batch, or None after adding findings."""
    pairs = [(names.name(k.left), names.name(k.right)) for k in keys]
    try:
        spec = _build_spec(how, pairs, form, names, right)
        resolved = resolve_join(
            spec,
            names.left,
            names.right,
            how=how,  # type: ignore[arg-type]  # one of the four kinds of join
            project=JoinProjection(right_keys="keep"),  # slots address the columns of both sides
        )
    except WeftError as cause:
        findings.add_error(cause, join.form_at or join.at)
        return None
    if residual is None:
        return resolved
    typed = replace_slots(residual, lambda slot: names.slots[slot])
    return replace(resolved, conditions=(ResolvedPredicate(text=source_text(residual.expr), typed=typed),))


def _build_spec(
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


def replace_slots(typed: Typed, place: Callable[[object], object]) -> Typed:
    """Return the expression with its slots replaced."""
    slot = cast("ColumnSlot", place(typed.slot)) if typed.op == "ref" else typed.slot
    return replace(typed, slot=slot, args=tuple(replace_slots(a, place) for a in typed.args))


def combine_all(parts: Sequence[Typed]) -> Typed | None:
    """Return the conjunction of conditions, or None if there are none."""
    if not parts:
        return None
    if len(parts) == 1:
        return parts[0]
    expr = Logic("AND", tuple(p.expr for p in parts))
    return Typed("and", BOOLEAN, any(p.nullable for p in parts), tuple(parts), expr=expr)
