"""aggregate: one summary row for each group, added behind the rows that are there."""

from __future__ import annotations

from weft.pipelines.model.operation import Aggregate, Operation
from weft.pipelines.plan.operations.context import PlanContext
from weft.pipelines.plan.operations.delete import operation_scope
from weft.pipelines.plan.operations.expressions import selector
from weft.pipelines.plan.operations.grouping import resolve_grouping
from weft.pipelines.plan.operations.lookup_steps import lookup_steps, used_lookups
from weft.pipelines.plan.operations.resolved import ResolvedAggregate, Working


def resolve_aggregate(
    op: Operation, working: Working, context: PlanContext
) -> tuple[ResolvedAggregate | None, Working]:
    """Return the aggregate on the columns at hand, None after noting mistakes, and the columns after it."""
    said = op.arguments
    assert isinstance(said, Aggregate)  # noqa: S101  # the type of an operation decides its arguments
    scope = operation_scope(op, working, context)
    chosen = selector(op.selector, scope, context)
    grouping = resolve_grouping(said, scope, working, context)
    after = working.with_columns(grouping.created)
    read = (chosen, *(k for _, k in grouping.keys), *(v for _, v, _ in grouping.values))
    lookups = () if context.mistakes else lookup_steps(used_lookups(read), working, context)[0]
    if context.mistakes:
        return None, after
    resolved = ResolvedAggregate(
        seq=op.seq,
        name=op.name,
        selector=chosen,
        lookups=lookups,
        keys=grouping.keys,
        values=grouping.values,
        include_summaries=said.include_summaries,
        before=working,
        after=after,
    )
    return resolved, after
