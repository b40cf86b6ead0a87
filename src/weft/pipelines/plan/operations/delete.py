"""delete: the rows that are marked as deleted."""

from __future__ import annotations

from weft.pipelines.model.operation import Operation
from weft.pipelines.plan.operations.context import PlanContext, selector
from weft.pipelines.plan.operations.joining import lookup_steps, used_lookups
from weft.pipelines.plan.operations.resolved import ResolvedDelete, WorkingSet
from weft.pipelines.plan.scopes import OperationScope


def operation_scope(op: Operation, working: WorkingSet, context: PlanContext) -> OperationScope:
    """Return the columns that an operation without joins can name."""
    elsewhere = {alias: seq for alias, seq in context.aliases.items() if seq != op.seq}
    return OperationScope(working=working, lookups=context.lookups, elsewhere=elsewhere)


def resolve_delete(
    op: Operation, working: WorkingSet, context: PlanContext
) -> tuple[ResolvedDelete | None, WorkingSet]:
    """Return the delete on the columns at hand, None after noting mistakes, and the columns after it."""
    chosen = selector(op.selector, operation_scope(op, working, context), context)
    lookups = () if context.mistakes else lookup_steps(used_lookups((chosen,)), working, context)[0]
    if context.mistakes:
        return None, working
    resolved = ResolvedDelete(
        seq=op.seq, name=op.name, selector=chosen, lookups=lookups, before=working, after=working
    )
    return resolved, working
