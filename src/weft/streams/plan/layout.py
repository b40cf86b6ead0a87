"""Layout: which children the left and right structs of a stateful join have, and which column each is.

Both structs begin with the keys ``k0, k1, ..`` in their common types.  Then come the columns that
something behind the join reads, ``i<source>_<column>``; a column that is a key of its own type is not
repeated.  Then the window of an earlier join, ``w0`` and ``w1`` (microseconds), where it is read, and
``t<source>``, the event times of the streams in microseconds.  Under ``wall_clock`` the time of a row
without one is the start of its batch, here too.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from weft.core.types import LONG, DType
from weft.streams.plan.pruning import dedup_columns
from weft.streams.plan.resolved import (
    WINDOW_END,
    WINDOW_START,
    Input,
    KernelStep,
    Slot,
    StatementPlan,
    Step,
    StepKey,
    TableInput,
    column,
    event_time,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Child:
    """A child of a struct: its name, the column it holds, and the type it holds it in."""

    name: str
    slot: Slot
    dtype: DType


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The children of both structs of one join, in order."""

    left: tuple[Child, ...]
    right: tuple[Child, ...]

    def place(self, slot: Hashable) -> tuple[str, str]:
        """Return the side and the child that hold a column in its own type.

        A key child whose type differs from its column's does not count: such a column has a child of its own.
        """
        for side, children in (("left", self.left), ("right", self.right)):
            for child in reversed(children):
                if child.slot == slot:
                    return side, child.name
        return "", ""


def layout(plan: StatementPlan, step: KernelStep) -> Layout:
    """Return the children of the structs of `step`."""
    read = _read_behind(plan, step)
    left = [_key(i, k, k.left) for i, k in enumerate(step.keys)]
    right = [_key(i, k, k.right) for i, k in enumerate(step.keys)]
    for number in sorted(step.left):
        left.extend(_columns(plan, number, read, step, "left"))
    right.extend(_columns(plan, step.right, read, step, "right"))
    if _has_window_before(plan, step):
        left.extend(
            Child(name=f"w{s[1]}", slot=s, dtype=LONG) for s in (WINDOW_START, WINDOW_END) if s in read
        )
    left.extend(_times(plan, sorted(step.left)))
    right.extend(_times(plan, (step.right,)))
    return Layout(left=tuple(left), right=tuple(right))


def _key(index: int, key: StepKey, slot: Slot) -> Child:
    return Child(name=f"k{index}", slot=slot, dtype=key.dtype)


def _columns(
    plan: StatementPlan, number: int, read: set[Hashable], step: KernelStep, side: str
) -> list[Child]:
    source = plan.source(number)
    schema = source.stream.columns if isinstance(source, Input) else source.table.columns
    keys = {(k.left if side == "left" else k.right): k.dtype for k in step.keys}
    found = []
    for index in source.columns:
        slot = column(number, index)
        dtype = schema.fields[index].dtype
        if slot in read and keys.get(slot) != dtype:
            found.append(Child(name=f"i{number}_{index}", slot=slot, dtype=dtype))
    return found


def _times(plan: StatementPlan, numbers: tuple[int, ...] | list[int]) -> list[Child]:
    streams = [n for n in numbers if isinstance(plan.source(n), Input)]
    timed = [n for n in streams if plan.source(n).stream.event_time is not None]  # type: ignore[union-attr]  # streams
    return [Child(name=f"t{n}", slot=event_time(n), dtype=LONG) for n in timed]


def _read_behind(plan: StatementPlan, step: KernelStep) -> set[Hashable]:
    """Return the slots that this join's condition or anything behind the join reads."""
    later: list[Step] = [s for s in plan.steps if s.number > step.number]
    found: set[Hashable] = set()
    for typed in (plan.where, plan.event_time, step.residual, *(s.residual for s in later)):
        found.update(typed.slots if typed is not None else ())
    for output in plan.output:
        found.update(output.typed.slots)
    for other in later:
        found.update(slot for key in other.keys for slot in (key.left, key.right))
    for source in plan.inputs:
        if is_raw(plan, step, source.number):
            found.update(column(source.number, i) for i in dedup_columns(source.stream))
    return found


def is_raw(plan: StatementPlan, step: KernelStep, number: int) -> bool:
    """Whether rows of a stream come to this join from their source, so that it judges them."""
    if isinstance(plan.source(number), TableInput):
        return False
    first = next(s for s in plan.kernel_steps if number in (*s.left, s.right))
    return first.number == step.number


def _has_window_before(plan: StatementPlan, step: KernelStep) -> bool:
    """Whether the window that the result shows was made by a join before this one."""
    windowed = [s.number for s in plan.kernel_steps if s.gives_window]
    return bool(windowed) and windowed[-1] < step.number
