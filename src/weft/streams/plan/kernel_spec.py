"""The task that the kernel gets for one join: names of children, policies, limits, the condition."""

from __future__ import annotations

from typing import Literal, cast

from weft.expr.row_condition import RowCondition
from weft.joins.resolve.resolved import SameWindow, Within
from weft.streams.kernel.spec import JoinTask, Reach, Residual, SideTask
from weft.streams.plan.layout import Layout, is_raw, layout
from weft.streams.plan.programs import Child, program
from weft.streams.plan.pruning import dedup_columns
from weft.streams.plan.resolved import Input, KernelStep, StatementPlan, column

_LATE: dict[str, Literal["keep", "drop", "fail"]] = {"side_output": "keep", "drop": "drop", "fail": "fail"}
_MISSING: dict[str, Literal["reject", "clock", "fail"]] = {
    "reject": "reject",
    "wall_clock": "clock",
    "fail": "fail",
}


def kernel_spec(plan: StatementPlan, step: KernelStep, *, groups: int = 1) -> JoinTask:
    """Return the task of a join; `groups` share the limit on rows evenly, rounded up."""
    children = layout(plan, step)
    return JoinTask(
        number=step.number,
        reach=_reach(step),
        left=_side(plan, step, "left", children, groups),
        right=_side(plan, step, "right", children, groups),
        keys=tuple(f"k{i}" for i in range(len(step.keys))),
        final=step.emit == "final",
        residual=_residual(step, children),
        window_columns=step.gives_window,
    )


def _reach(step: KernelStep) -> Reach:
    match = step.match
    if isinstance(match, Within):
        return Reach(kind="interval", lower=step.lower, upper=step.upper)
    if not isinstance(match, SameWindow):
        return Reach(kind="table")
    return Reach(
        kind=match.kind,
        size=match.size or 0,
        slide=match.slide or match.size or 0,
        gap=match.gap or 0,
        per_window=match.per_window,
    )


def _side(
    plan: StatementPlan, step: KernelStep, side: Literal["left", "right"], children: Layout, groups: int
) -> SideTask:
    mine = step.left if side == "left" else (step.right,)
    streams = [s for n in mine if isinstance(s := plan.source(n), Input)]
    raw = [s for s in streams if is_raw(plan, step, s.number)]
    outer = step.how in (side, "full")
    needed, kept = (pair[0 if side == "left" else 1] for pair in (step.needed, step.retention))
    limit = step.limits.max_state_rows
    task = SideTask(
        name=side_name(plan, step, side),
        outer=outer,
        raw=bool(raw),
        max_rows=None if limit is None else -(-limit // groups),
        max_per_key=step.limits.max_rows_per_key,
        evict=step.limits.eviction,
        retention=max(0, kept - needed),
    )
    if not raw:
        return task
    stream = raw[0].stream
    slots = [column(raw[0].number, i) for i in dedup_columns(stream)]
    return SideTask(
        name=task.name,
        outer=task.outer,
        raw=True,
        late=_LATE[stream.late],
        missing=_MISSING[step.missing_event_time],
        malformed=stream.malformed,
        dedup=tuple(children.place(slot)[1] for slot in slots),
        max_rows=task.max_rows,
        max_per_key=task.max_per_key,
        evict=task.evict,
        retention=task.retention,
    )


def side_name(plan: StatementPlan, step: KernelStep, side: Literal["left", "right"]) -> str:
    """Return how messages call a side: the alias of its source, or all aliases of a joined side."""
    numbers = step.left if side == "left" else (step.right,)
    return " + ".join(plan.source(n).alias for n in numbers)


def _residual(step: KernelStep, children: Layout) -> Residual | None:
    typed = step.residual
    if typed is None:
        return None
    code = program(typed, lambda slot: cast("Child", children.place(slot)))
    if code is not None:
        return Residual(program=code)
    places = {slot: children.place(slot) for slot in typed.slots}
    return Residual(rows=RowCondition(typed, places))
