"""Builds the join spec of a condition, as for ``relation.left_outer``.

Before::

    fx: currency = fx.from_currency, of the rows that the selector matches, valid on posting_date

After::

    IntervalSpec(
        equal_keys=[("currency", "__weft_j$fx$from_currency"), ("__weft_active", "__weft_j$fx")],
        order=AsofOrder("posting_date", "__weft_j$fx$_period_from"),
        right_end=...,
        how="left",
        relationship="m:1",
    )
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from weft.core.types import BOOLEAN, Field, Schema
from weft.errors import JoinSpecError, WeftError
from weft.expr import Expr, Ref, map_children
from weft.joins.choose import Choice, choose
from weft.joins.resolve.join import resolve_join
from weft.joins.resolve.resolved import ResolvedJoin
from weft.joins.spec.asof import AsofOrder
from weft.joins.spec.join import JoinSpec
from weft.joins.spec.predicates import ExpressionPredicate
from weft.joins.spec.projection import JoinProjection
from weft.joins.spec.temporal import IntervalSpec
from weft.joins.spec.values import Relationship
from weft.pipelines.model.values import PERIOD_FROM, PERIOD_TO, AsOfDay, temporal_columns
from weft.pipelines.plan.operations.context import PlanContext
from weft.pipelines.plan.operations.resolved import LookupStep, WorkingSet, join_column_name
from weft.pipelines.plan.scopes import LookupNode, Slot, group_columns

KEEP_ALL = JoinProjection(right_keys="keep")
"""Keeps all columns of both sides: the names of joined columns are unique."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A join spec, resolved against the schemas, with the chosen strategy."""

    spec: JoinSpec
    resolved: ResolvedJoin
    choice: Choice


def build(
    keys: Sequence[tuple[str, str]],
    left: Schema,
    right: Schema,
    *,
    prefix: str,
    as_of: AsOfDay,
    residual: ExpressionPredicate | None = None,
    relationship: Relationship | None = "m:1",
    nulls_equal: bool = False,
) -> Built:
    """Return the join of a working set with a table whose column names start with `prefix`."""
    predicates = () if residual is None else (residual,)
    spec: JoinSpec
    if as_of.kind == "column":
        spec = IntervalSpec(
            equal_keys=keys,
            predicates=predicates,
            order=AsofOrder(str(as_of.column), f"{prefix}${PERIOD_FROM.name}"),
            right_end=f"{prefix}${PERIOD_TO.name}",
            how="left",
            relationship=relationship,
            nulls_equal=nulls_equal,
        )
    else:
        spec = JoinSpec(keys, predicates, relationship=relationship, nulls_equal=nulls_equal)
    resolved = resolve_join(spec, left, right, how="left", project=KEEP_ALL)
    return Built(spec=spec, resolved=resolved, choice=choose(resolved))


def right_schema(prefix: str, columns: Sequence[Field]) -> Schema:
    """Return the schema of a joined side: its columns by their names in the join, then the match marker."""
    fields = [Field(f"{prefix}${f.name}", f.dtype, f.nullable) for f in columns]
    return Schema((*fields, Field(prefix, BOOLEAN, nullable=False)), case_sensitive=True)


def as_predicate(residual: Expr, alias: str, slot_of: Callable[[Ref], Slot]) -> ExpressionPredicate:
    """Return a condition across both sides as a predicate over ``left.`` and ``right.``."""

    def renamed(node: Expr) -> Expr:
        if not isinstance(node, Ref):
            return map_children(node, renamed)
        slot = slot_of(node)
        if slot[:2] == ("j", alias):
            return Ref("right", join_column_name("j", alias, slot[2]))
        return Ref("left", column_name(slot))

    try:
        return ExpressionPredicate.of_tree(renamed(residual))
    except JoinSpecError as problem:
        help = "assign it to a column in an earlier operation"
        raise JoinSpecError(problem.message, help=help) from problem


def column_name(slot: Slot) -> str:
    """Return the name of the column of a slot during the operation.

    >>> column_name(("w", "amount")), column_name(("l", "accounts", "type"))
    ('amount', '__weft_l$accounts$type')
    """
    if slot[0] == "w":
        return slot[1]
    return join_column_name("l" if slot[0] == "l" else "j", slot[1], slot[2])


def build_lookup_steps(
    slots: Iterable[Slot], working: WorkingSet, context: PlanContext
) -> tuple[tuple[LookupStep, ...], Schema]:
    """Return the joins that add the columns of lookups among the slots, and the schema after them."""
    needed = group_columns("l", slots)
    for path in list(needed):
        _add_parents(path, needed, context)
    left = working.schema
    steps: list[LookupStep] = []
    # A parent comes before its lookups, because its columns are their keys.
    for path in sorted(needed, key=lambda p: (p.count("."), p)):
        step = _step(context.lookups[path], needed[path], left, context)
        if step is not None:
            steps.append(step)
            # Unmatched rows have NULL in every column of the lookup, also in those declared as not nullable.
            added = (Field(f.name, f.dtype) for f in step.resolved.right)
            left = Schema((*left.fields, *added), case_sensitive=True)
    return tuple(steps), left


def _add_parents(path: str, needed: dict[str, set[str]], context: PlanContext) -> None:
    node = context.lookups[path]
    if node.parent is not None:
        needed.setdefault(node.parent, set()).update(source for source, _ in node.conditions)
        _add_parents(node.parent, needed, context)


def _step(node: LookupNode, columns: set[str], left: Schema, context: PlanContext) -> LookupStep | None:
    table = node.table
    assert table is not None  # noqa: S101  # a column of a lookup without a table does not resolve
    prefix = join_column_name("l", node.path)
    # Only a day that differs from row to row is compared in the join; any other is a filter of the read.
    temporal = temporal_columns(table.temporal_mode) if node.as_of.kind == "column" else ()
    needed = columns | {target for _, target in node.conditions}
    fields = (*(f for f in table.schema if f.name in needed), *temporal)
    right = right_schema(prefix, fields)
    keys = tuple(
        (
            source if node.parent is None else join_column_name("l", node.parent, source),
            join_column_name("l", node.path, target),
        )
        for source, target in node.conditions
    )
    if node.as_of.kind != "period_start" and table.temporal_mode != "bitemporal":
        context.report(
            "W1211",
            f"lookup {node.path!r} has as_of, but table {table.name!r} is {table.temporal_mode}",
            "leave as_of out, or set `temporal_mode: bitemporal` in the table",
            node.at.of("as_of"),
        )
        return None
    try:
        built = build(keys, left, right, prefix=prefix, as_of=node.as_of)
    except WeftError as problem:
        context.report("W1019", f"lookup {node.path!r}: {problem.message}", problem.help, node.at.of("join_conditions"))
        return None
    read = context.read(
        f"lookup.{node.path}",
        "lookup",
        node.dataset,
        table,
        tuple(f.name for f in fields),
        alias=node.path,
        as_of=node.as_of,
    )
    if read is None:
        return None
    return LookupStep(
        alias=node.path,
        read=read,
        keys=keys,
        parent=node.parent,
        on=" AND ".join(f"{source} = {node.path}.{target}" for source, target in node.conditions),
        spec=built.spec,
        resolved=built.resolved,
        choice=built.choice,
        as_of=node.as_of,
        columns=tuple(f.name for f in fields),
    )
