"""The sentences of explain: names of sources, what state costs, when unmatched rows appear."""

from __future__ import annotations

from weft.core.duration import Duration
from weft.core.types import Decimal, DType, Scalar
from weft.joins.resolve.resolved import SameWindow
from weft.streams.plan.layout import Child, layout
from weft.streams.plan.resolved import (
    ColumnSlot,
    Input,
    KernelStep,
    StatementPlan,
    Step,
)

_FIXED = 17
"""Bytes of a row in state beside its columns: hash, time, flag."""
_WIDTHS = {"boolean": 1, "byte": 1, "short": 2, "integer": 4, "float": 4, "date": 4}
_OFFSET = 4


def source_name(plan: StatementPlan, number: int) -> str:
    """Return a source with its alias, as FROM writes it."""
    source = plan.source(number)
    name = source.stream.name if isinstance(source, Input) else source.table.name
    return name if name == source.alias else f"{name} {source.alias}"


def left_name(plan: StatementPlan, step: Step) -> str:
    """Return the left side of a join: its source, or the aliases that are joined already."""
    if len(step.left) == 1:
        return source_name(plan, step.left[0])
    return " + ".join(plan.source(n).alias for n in step.left)


def column_name(plan: StatementPlan, slot: ColumnSlot) -> str:
    """Return a column as an expression writes it."""
    source = plan.source(slot[1])
    schema = source.stream.columns if isinstance(source, Input) else source.table.columns
    return f"{source.alias}.{schema.fields[slot[2]].name}"


def time_name(plan: StatementPlan, number: int) -> str:
    """Return the event time of a stream as an expression writes it."""
    source = plan.source(number)
    assert isinstance(source, Input)  # noqa: S101  # tables have no time
    return f"{source.alias}.{source.stream.event_time}"


def state_said(plan: StatementPlan, step: KernelStep) -> str:
    """Return how long rows stay, about how much event time that is, and what a row costs."""
    sizes = " and ".join(_row_said(plan, step, side) for side in ("left", "right"))
    right = plan.source(step.right).alias
    if step.axis is None:
        return f"{right} kept until the end; rows of the stream are not kept; {sizes}"
    left = plan.source(step.axis[0][1]).alias if len(step.left) == 1 else left_name(plan, step)
    if isinstance(step.match, SameWindow) and step.match.kind == "session":
        gap = Duration(step.match.gap or 0)
        return f"rows of both sides kept until no row came for {gap} under their key; {sizes}"
    kept = f"{left} kept {_kept(step, 0)}, {right} kept {_kept(step, 1)} after the watermark"
    delay = max(i.stream.delay.microseconds for i in plan.inputs)
    spans = [_whole(step, kept) + delay for kept in step.retention]
    names = (left_name(plan, step).split(" ")[0] if len(step.left) == 1 else left, _stream(plan, step.right))
    about = " and ".join(f"{_span(s)} of {n}" for s, n in zip(spans, names, strict=True))
    return f"{kept}; about {about}; {sizes}"


def _kept(step: KernelStep, side: int) -> str:
    own = step.upper if side == 0 else -step.lower
    said = str(Duration(_whole(step, step.retention[side])))
    if isinstance(step.match, SameWindow):
        said = f"up to {said}"
    if step.retention[side] > step.needed[side]:
        return f"{said} (join.retention; the bound needs {Duration(step.needed[side])})"
    held = step.needed[side] - max(0, own)
    if held > 0 and step.emit == "final" and not isinstance(step.match, SameWindow):
        return f"{said} (EMIT FINAL: until the left rows that it may meet are over)"
    if held > 0 and max(0, own) > 0:
        return f"{said} ({Duration(own)} of the bound and {Duration(held)} that rows before it are held back)"
    return f"{said} (as long as rows before it are held back)" if held > 0 else said


def _stream(plan: StatementPlan, number: int) -> str:
    source = plan.source(number)
    return source.stream.name if isinstance(source, Input) else source.table.name


def _whole(step: KernelStep, kept: int) -> int:
    """Return how long rows are kept; the last microsecond of a window is its end for people."""
    return kept + 1 if isinstance(step.match, SameWindow) and kept else kept


def _span(length: int) -> str:
    """Return a length of time for an estimate.

    >>> _span(86_430_000_000), _span(30_000_000), _span(600_000_000), _span(0)
    ('24.0 h', '30 s', '10.0 min', '0 s')
    """
    seconds = length / 1_000_000
    if seconds >= 3600:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 60:.1f} min" if seconds >= 60 else f"{seconds:g} s"


def _row_said(plan: StatementPlan, step: KernelStep, side: str) -> str:
    children = layout(plan, step)
    mine = children.left if side == "left" else children.right
    if step.axis is None and side == "left":
        return "nothing for a row of the stream"
    text = " + text" if any(_is_text(c) for c in mine) else ""
    name = left_name(plan, step).split(" ")[-1] if side == "left" else plan.source(step.right).alias
    name = left_name(plan, step) if side == "left" and len(step.left) > 1 else name
    return f"{_FIXED + sum(_width(c.dtype) for c in mine)} bytes{text} a row of {name}"


def _is_text(child: Child) -> bool:
    dtype = child.dtype
    return dtype.is_nested or (isinstance(dtype, Scalar) and dtype.name in ("string", "binary", "variant"))


def _width(dtype: DType) -> int:
    if isinstance(dtype, Decimal):
        return 16
    if isinstance(dtype, Scalar) and dtype.name not in ("string", "binary", "variant"):
        return _WIDTHS.get(dtype.name, 8)
    return _OFFSET


def unmatched_said(plan: StatementPlan, step: KernelStep) -> str:
    """Return when rows without a match come out, or what becomes of them."""
    right = plan.source(step.right).alias
    left = left_name(plan, step).split(" ")[-1] if len(step.left) == 1 else left_name(plan, step)
    if step.axis is None:
        told = [f"{right} appears at the end of the run"] if step.how in ("right", "full") else []
        told += (
            [f"{left} at once"] if step.how in ("left", "full") else [f"{left} without a match is dropped"]
        )
        return "; ".join(told)
    if step.how == "inner":
        return "never: INNER; rows without a match are counted when their time is over"
    said = []
    if step.how in ("left", "full"):
        said.append(f"{left} appears when {_passed(plan, step, 0)}{_at_once(plan, step)}")
    if step.how in ("right", "full"):
        said.append(f"{right} {'when' if said else 'appears when'} {_passed(plan, step, 1, bool(said))}")
    return "; ".join(said)


def _at_once(plan: StatementPlan, step: KernelStep) -> str:
    """Return what becomes of left rows whose time an earlier outer join left out."""
    assert step.axis is not None  # noqa: S101  # joins by time have an axis
    number = step.axis[0][1]
    earlier = [s for s in plan.kernel_steps if s.number < step.number]
    padded = any(
        (s.how in ("left", "full") and s.right == number) or (s.how in ("right", "full") and number in s.left)
        for s in earlier
    )
    return f", and at once without {plan.source(number).alias}" if padded else ""


def _passed(plan: StatementPlan, step: KernelStep, side: int, again: bool = False) -> str:  # noqa: FBT001, FBT002  # a word of the sentence
    who = "it has passed" if again else "the watermark has passed"
    match = step.match
    if isinstance(match, SameWindow):
        if match.kind == "session":
            return f"{who} the last time of its session + {Duration(match.gap or 0)}"
        return f"{who} the end of its {'window' if match.kind == 'tumbling' else 'last window'}"
    assert step.axis is not None  # noqa: S101  # joins by time have an axis
    source = plan.source(step.axis[side][1])
    assert isinstance(source, Input)  # noqa: S101  # tables have no time
    span = step.needed[side]
    return f"{who} {source.stream.event_time}" + (f" + {Duration(span)}" if span else "")


def emit_said(plan: StatementPlan) -> str:
    """Return when pairs come out."""
    last = [s for s in plan.kernel_steps if s.axis is not None][-1]
    if last.emit == "changes":
        return "CHANGES: a pair as soon as both rows are there, nothing is taken back"
    match = last.match
    if not isinstance(match, SameWindow):
        return "FINAL: the pairs of a left row when its time is over"
    return f"FINAL: pairs when their {'session' if match.kind == 'session' else 'window'} is closed"
