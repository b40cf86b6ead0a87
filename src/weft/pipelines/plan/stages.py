"""Stages: the steps of a run in order; the same tuple is executed and printed.

Before::

    10 update   20 output   30 update   40 output

After::

    read input   update 10   checkpoint 10   output 20   update 30   output 40   publish

The working set is checkpointed before an output that is followed by another one, after an operation with `checkpoint`, and
after every `checkpoint_every` operations.  Later stages read the checkpoint, and a failed run resumes from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from weft.core.documents import OPEN_WORD, Document
from weft.pipelines.plan.operations.resolved import (
    LookupStep,
    ResolvedAggregate,
    ResolvedAppend,
    ResolvedDelete,
    ResolvedJoinStep,
    ResolvedOperation,
    ResolvedOutput,
    ResolvedUpdate,
)
from weft.pipelines.plan.project import ProjectPlan
from weft.pipelines.plan.reads import Read

StageKind = Literal[
    "read", "filter", "join", "update", "aggregate", "append", "delete", "checkpoint", "output", "publish"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage(Document):
    """One step of a run; `seq` is that of its operation, or of the last operation before a checkpoint.

    `inputs` are the names of the reads that the stage opens.
    """

    UNLISTED: ClassVar = ("inputs",)

    kind: Annotated[StageKind, OPEN_WORD]
    seq: int | None
    title: str
    detail: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()


def operation_type(op: ResolvedOperation) -> Literal["update", "aggregate", "append", "delete", "output"]:
    """Return the type of an operation."""
    match op:
        case ResolvedUpdate():
            return "update"
        case ResolvedAggregate():
            return "aggregate"
        case ResolvedAppend():
            return "append"
        case ResolvedDelete():
            return "delete"
        case _:
            return "output"


def list_stages(plan: ProjectPlan) -> tuple[Stage, ...]:
    """Return the stages of a run in order."""
    stages: list[Stage] = [_read(plan.input, None)]
    opened = {plan.input.name}
    pending = 0
    last: int | None = None
    requested = {op.seq for op in plan.project.operations if op.checkpoint}
    for i, op in enumerate(plan.operations):
        rest = plan.operations[i + 1 :]
        follows = isinstance(op, ResolvedOutput) and any(isinstance(o, ResolvedOutput) for o in rest)
        if follows and pending:
            stages.append(_checkpoint(last, f"operation {op.seq} and others read it"))
            pending = 0
        new = [read for read in op.reads if read.name not in opened]
        stages += (_read(read, op.seq) for read in new)
        opened.update(read.name for read in new)
        stages += (_join(op.seq, step) for step in op.steps)
        stages.append(Stage(kind=operation_type(op), seq=op.seq, title=op.name, detail=_detail(op)))
        if not isinstance(op, ResolvedOutput):
            pending, last = pending + 1, op.seq
        # A checkpoint that nothing reads would only cost time, so none is made after the last operation.
        if rest and pending and op.seq in requested:
            stages.append(_checkpoint(last, "requested by the operation"))
            pending = 0
        elif pending >= plan.project.checkpoint_every and not all(isinstance(o, ResolvedOutput) for o in rest):
            stages.append(_checkpoint(last, f"after {pending} operations"))
            pending = 0
    outputs = [str(op.seq) for op in plan.operations if isinstance(op, ResolvedOutput)]
    if outputs:
        stages.append(Stage(kind="publish", seq=None, title="Publish", detail=(f"outputs {', '.join(outputs)}",)))
    return tuple(stages)


def _checkpoint(seq: int | None, why: str) -> Stage:
    return Stage(kind="checkpoint", seq=seq, title=f"Checkpoint after {seq}", detail=(why,))


def _read(read: Read, seq: int | None) -> Stage:
    places = tuple(str(location) for location in read.locations)
    detail = (*places, str(read.filter), f"columns {', '.join(read.columns)}")
    return Stage(kind="read", seq=seq, title=f"{read.dataset}: {read.table.name}", detail=detail, inputs=(read.name,))


def _join(seq: int, step: LookupStep | ResolvedJoinStep) -> Stage:
    title, detail = f"{step.alias} -> {step.dataset}", (step.on, step.choice.reason)
    return Stage(kind="join", seq=seq, title=title, detail=detail, inputs=(step.read.name,))


def _detail(op: ResolvedOperation) -> tuple[str, ...]:
    match op:
        case ResolvedUpdate():
            levels = max((a.level for a in op.assignments), default=1)
            columns = ", ".join(a.column for a in op.assignments)
            return (f"sets {columns}", f"{levels} projection{'s' if levels > 1 else ''}")
        case ResolvedAggregate():
            keys, values = ", ".join(n for n, _ in op.keys), ", ".join(n for n, _, _ in op.values)
            return (f"groups by {keys}", f"adds {values}")
        case ResolvedAppend():
            return (f"rows of {op.read.dataset}",)
        case ResolvedOutput():
            return (op.target.location, op.mode)
        case _:
            return ()
