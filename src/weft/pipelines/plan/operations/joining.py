"""From the parts of a condition to a join spec: the one that ``relation.left_outer`` would take.

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

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from weft.core.types import BOOLEAN, Field, Schema
from weft.errors import JoinSpecError
from weft.expr import Expr, Ref, map_children, render
from weft.joins.choose import Choice, choose
from weft.joins.resolve.join import resolve_join
from weft.joins.resolve.resolved import ResolvedJoin
from weft.joins.spec.asof import AsofOrder
from weft.joins.spec.join import JoinSpec
from weft.joins.spec.predicates import ExpressionPredicate
from weft.joins.spec.projection import JoinProjection
from weft.joins.spec.temporal import IntervalSpec
from weft.joins.spec.words import Relationship
from weft.pipelines.model.reference import AsOfSaid
from weft.pipelines.model.words import PERIOD_FROM, PERIOD_TO
from weft.pipelines.plan.operations.resolved import joined_name

KEEP_ALL = JoinProjection(right_keys="keep")
"""Every column of both sides stays: joined ones have names that nothing else has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A spec, what it is on the columns at hand, and the plan that will run it."""

    spec: JoinSpec
    resolved: ResolvedJoin
    choice: Choice


def build(
    keys: Sequence[tuple[str, str]],
    left: Schema,
    right: Schema,
    *,
    prefix: str,
    as_of: AsOfSaid,
    residual: ExpressionPredicate | None = None,
    relationship: Relationship | None = "m:1",
    nulls_equal: bool = False,
) -> Built:
    """Return the join of a working set with a table whose columns have the `prefix` in front."""
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
    """Return the schema of a joined side: its columns under their names in the join, then its mark."""
    fields = [Field(f"{prefix}${f.name}", f.dtype, f.nullable) for f in columns]
    return Schema((*fields, Field(prefix, BOOLEAN, nullable=False)), case_sensitive=True)


def joined_fields(right: Schema) -> tuple[Field, ...]:
    """Return the columns that a join adds: those of its right side, all of which may be NULL now."""
    return tuple(Field(f.name, f.dtype) for f in right)


def as_predicate(
    residual: Expr, alias: str, slot_of: Callable[[Ref], tuple[str, ...]]
) -> ExpressionPredicate:
    """Return terms across both sides as a predicate over ``left.`` and ``right.``."""

    def renamed(node: Expr) -> Expr:
        if not isinstance(node, Ref):
            return map_children(node, renamed)
        slot = slot_of(node)
        if slot[:2] == ("j", alias):
            return Ref("right", joined_name("j", alias, slot[2]))
        return Ref("left", column_name(slot))

    try:
        return ExpressionPredicate(render(renamed(residual), dialect="fragment"))
    except JoinSpecError as problem:
        help = "compute it into a column with an assignment of an operation before"
        raise JoinSpecError(problem.message, help=help) from problem


def column_name(slot: tuple[str, ...]) -> str:
    """Return the name that the column of a slot has while the operation runs.

    >>> column_name(("w", "amount")), column_name(("l", "accounts", "type"))
    ('amount', '__weft_l$accounts$type')
    """
    if slot[0] == "w":
        return slot[1]
    return joined_name("l" if slot[0] == "l" else "j", slot[1], slot[2])
