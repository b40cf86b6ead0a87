"""Builds the kernel task of one join: its columns, policies, limits and condition.

Both structs of a join with state begin with the keys ``k0, k1, ..`` in their common types.  Then come the columns
that are used after the join, ``i<source>_<column>``; a column that is a key of its own type is not repeated.  Then
the window of an earlier join, ``w0`` and ``w1`` (microseconds), where it is used, and ``t<source>``, the event
times of the streams in microseconds.  Under ``wall_clock`` the time of a row without one is the start of its batch,
here too.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from weft.core.names import fold
from weft.core.types import LONG, DType, Scalar
from weft.expr import Typed
from weft.expr.evaluate import RowCondition
from weft.streams.kernel.spec import JoinTask, Limits, Residual, SideTask
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
    column_slot,
    time_slot,
)
from weft.streams.plan.scope import FromSource
from weft.streams.sql.spec import StreamSpec


def find_read_columns(
    sources: Sequence[FromSource], steps: Sequence[Step], where: Typed | None, selected: Iterable[Typed | None]
) -> dict[int, tuple[int, ...]]:
    """Return, for each source by its number, the indices of the columns that are read, in order."""
    slots = _collect_slots((where, *selected, *(s.residual for s in steps)), steps)
    for source in sources:
        if isinstance(source.spec, StreamSpec):
            slots.update(("i", source.number, i) for i in find_dedup_columns(source.spec))
    return {s.number: tuple(i for i in range(len(s.columns)) if ("i", s.number, i) in slots) for s in sources}


def _collect_slots(expressions: Iterable[Typed | None], steps: Iterable[Step]) -> set[Hashable]:
    """Return the slots that expressions and the keys of joins read."""
    slots = {slot for typed in expressions if typed is not None for slot in typed.slots}
    return slots.union(slot for step in steps for key in step.keys for slot in (key.left, key.right))


def find_dedup_columns(stream: StreamSpec) -> tuple[int, ...]:
    """Return the indices of the columns that identify duplicate rows of a stream."""
    names = {fold(name) for name in stream.dedup}
    return tuple(i for i, f in enumerate(stream.columns) if fold(f.name) in names)


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
            for child in reversed(children):  # the column itself comes after the key that was cast from it
                if child.slot == slot:
                    return side, child.name
        return "", ""


def build_layout(plan: StatementPlan, step: KernelStep) -> Layout:
    """Return the children of the structs of `step`."""
    read = _find_later_slots(plan, step)
    left = [_key(i, k, k.left) for i, k in enumerate(step.keys)]
    right = [_key(i, k, k.right) for i, k in enumerate(step.keys)]
    for number in sorted(step.left):
        left.extend(_columns(plan, number, read, step, "left"))
    right.extend(_columns(plan, step.right, read, step, "right"))
    if _has_window_before(plan, step):
        left.extend(Child(name=f"w{s[1]}", slot=s, dtype=LONG) for s in (WINDOW_START, WINDOW_END) if s in read)
    left.extend(_times(plan, sorted(step.left)))
    right.extend(_times(plan, (step.right,)))
    return Layout(left=tuple(left), right=tuple(right))


def _key(index: int, key: StepKey, slot: Slot) -> Child:
    return Child(name=f"k{index}", slot=slot, dtype=key.dtype)


def _columns(plan: StatementPlan, number: int, read: set[Hashable], step: KernelStep, side: str) -> list[Child]:
    schema = plan.declaration(number).columns
    keys = {(k.left if side == "left" else k.right): k.dtype for k in step.keys}
    children = []
    for index in plan.source(number).columns:
        slot = column_slot(number, index)
        dtype = schema.fields[index].dtype
        if slot in read and keys.get(slot) != dtype:
            children.append(Child(name=f"i{number}_{index}", slot=slot, dtype=dtype))
    return children


def _times(plan: StatementPlan, numbers: Iterable[int]) -> list[Child]:
    timed = [n for n in numbers if isinstance(s := plan.source(n), Input) and s.stream.event_time is not None]
    return [Child(name=f"t{n}", slot=time_slot(n), dtype=LONG) for n in timed]


def _find_later_slots(plan: StatementPlan, step: KernelStep) -> set[Hashable]:
    """Return the slots that the condition of the join or anything after it reads."""
    later: list[Step] = [s for s in plan.steps if s.number > step.number]
    conditions = (plan.where, step.residual, *(s.residual for s in later))
    slots = _collect_slots((*conditions, plan.event_time, *(c.typed for c in plan.output)), later)
    for source in plan.inputs:
        if is_raw(plan, step, source.number):  # duplicates are detected in the join that a row reaches first
            slots.update(column_slot(source.number, i) for i in find_dedup_columns(source.stream))
    return slots


def is_raw(plan: StatementPlan, step: KernelStep, number: int) -> bool:
    """Whether rows of a stream come to this join from their source, so that it applies the policies of the stream."""
    if isinstance(plan.source(number), TableInput):
        return False
    first = next(s for s in plan.kernel_steps if number in (*s.left, s.right))
    return first.number == step.number


def _has_window_before(plan: StatementPlan, step: KernelStep) -> bool:
    """Whether the window in the result comes from a join before this one."""
    windowed = [s.number for s in plan.kernel_steps if s.reach.has_windows]
    return bool(windowed) and windowed[-1] < step.number


_Place = tuple[Literal["left", "right"], str]
_COMPARES = frozenset({"=", "<>", "<", "<=", ">", ">="})


def program(typed: Typed, child: Callable[[Hashable], _Place]) -> tuple[Any, ...] | None:
    """Return the prefix code of a condition, or None when it needs more than comparisons.

    `child` returns the struct of a column and its name there.
    """
    match typed.op:
        case "ref":
            return ("ref", *child(typed.slot)) if _plain(typed.dtype) else None
        case "lit":
            return ("lit", typed.value, str(typed.dtype)) if _plain(typed.dtype) else None
        case "cast" if typed.dtype.is_integer and typed.args[0].dtype.is_integer:
            # Arrow compares integers of different widths by itself.
            return program(typed.args[0], child)
        case "is_null":
            return _all("isnull", typed.args, child)
        case "not":
            return _all("not", typed.args, child)
        case "and" | "or":
            return _nested(typed, child)
        case op if op in _COMPARES:
            return _all(op, typed.args, child)
    return None


def is_vectorised(typed: Typed) -> bool:
    """Whether a condition is evaluated on whole columns, not row by row."""
    return program(typed, lambda _: ("left", "")) is not None


def _all(op: str, args: tuple[Typed, ...], child: Callable[[Hashable], _Place]) -> tuple[Any, ...] | None:
    parts = [program(arg, child) for arg in args]
    return None if None in parts else (op, *parts)


def _nested(typed: Typed, child: Callable[[Hashable], _Place]) -> tuple[Any, ...] | None:
    """Return AND and OR as binary operations."""
    parts = [program(arg, child) for arg in typed.args]
    if None in parts:
        return None
    nested: tuple[Any, ...] = parts[0] or ()
    for part in parts[1:]:  # the kernel has no operations of more than two operands
        nested = (typed.op, nested, part)
    return nested


def _plain(dtype: DType) -> bool:
    """Whether Arrow compares values of the type as the expression language does."""
    # Not floats: NaN equals NaN in the expression language, and nothing in Arrow.
    if isinstance(dtype, Scalar):
        return not dtype.collation and not dtype.is_fraction and dtype.name in _SCALARS
    return not dtype.is_nested


_SCALARS = frozenset(
    {"string", "boolean", "byte", "short", "integer", "long", "date", "timestamp", "timestamp_ntz", "null"}
)


def build_task(plan: StatementPlan, step: KernelStep, *, groups: int = 1) -> JoinTask:
    """Return the task of a join; of several groups none sees the rows of all, so none enforces the limit on them."""
    children = build_layout(plan, step)
    return JoinTask(
        number=step.number,
        reach=step.reach,
        left=_side(plan, step, "left", children, groups),
        right=_side(plan, step, "right", children, groups),
        keys=tuple(f"k{i}" for i in range(len(step.keys))),
        emit=step.emit,
        residual=_residual(step, children),
        window_columns=step.reach.has_windows,
    )


def _side(
    plan: StatementPlan, step: KernelStep, side: Literal["left", "right"], children: Layout, groups: int
) -> SideTask:
    mine = step.left if side == "left" else (step.right,)
    streams = [s for n in mine if isinstance(s := plan.source(n), Input)]
    raw = [s for s in streams if is_raw(plan, step, s.number)]
    needed, kept = (pair[0 if side == "left" else 1] for pair in (step.needed, step.retention))
    task = SideTask(
        name=side_name(plan, step, side),
        outer=step.how in (side, "full"),
        raw=bool(raw),
        limits=_share(step.limits, groups),
        retention=max(0, kept - needed),  # what a match needs, the kernel computes from its clocks
    )
    if not raw:
        return task
    # The only one: a side of several streams consists of rows that an earlier join has produced.
    stream = raw[0].stream
    slots = [column_slot(raw[0].number, i) for i in find_dedup_columns(stream)]
    return replace(
        task,
        late=stream.late,
        missing_event_time=step.missing_event_time,
        malformed=stream.malformed,
        dedup=tuple(children.place(slot)[1] for slot in slots),
    )


def _share(limits: Limits, groups: int) -> Limits:
    """Return the limits of one group, a record of the kernel alone: no other class is there on workers."""
    return Limits(
        max_state_rows=limits.max_state_rows if groups == 1 else None,
        max_rows_per_key=limits.max_rows_per_key,
        eviction=limits.eviction,
    )


def side_name(plan: StatementPlan, step: Step, side: Literal["left", "right"]) -> str:
    """Return the name of a side in messages: the alias of its source, or all aliases of a joined side."""
    numbers = step.left if side == "left" else (step.right,)
    return " + ".join(plan.source(n).alias for n in numbers)


def _residual(step: KernelStep, children: Layout) -> Residual | None:
    typed = step.residual
    if typed is None:
        return None
    # Whole columns where Arrow can do it; a RowCondition is slower and is shipped with the expression language.
    code = program(typed, lambda slot: cast("_Place", children.place(slot)))
    if code is not None:
        return Residual(program=code)
    places = {slot: children.place(slot) for slot in typed.slots}
    return Residual(rows=RowCondition(typed, places))
