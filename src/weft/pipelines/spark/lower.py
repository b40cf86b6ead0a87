"""From a plan to frames: the working set after each operation, the rows of each output."""

from __future__ import annotations

from weft.pipelines.plan.operations.resolved import (
    ResolvedAggregate,
    ResolvedAppend,
    ResolvedDelete,
    ResolvedOperation,
    ResolvedUpdate,
)
from weft.pipelines.plan.project import ProjectPlan
from weft.pipelines.spark.aggregate import lower_aggregate
from weft.pipelines.spark.append import lower_append
from weft.pipelines.spark.delete import lower_delete
from weft.pipelines.spark.frame import Lowering, WorkingFrame, started
from weft.pipelines.spark.update import lower_update


def opened(plan: ProjectPlan, env: Lowering) -> WorkingFrame:
    """Return the working set before the first operation: the rows of the input."""
    first = plan.operations[0].before if plan.operations else plan.final
    return started(env.read(plan.input), first)


def lower_operation(frame: WorkingFrame, op: ResolvedOperation, env: Lowering) -> WorkingFrame:
    """Return the working set after an operation; an output leaves it as it is."""
    match op:
        case ResolvedUpdate():
            return lower_update(frame, op, env)
        case ResolvedAggregate():
            return lower_aggregate(frame, op, env)
        case ResolvedAppend():
            return lower_append(frame, op, env)
        case ResolvedDelete():
            return lower_delete(frame, op, env)
        case _:
            return frame
