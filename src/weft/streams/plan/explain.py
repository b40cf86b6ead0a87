"""Explains a job: bounds, watermarks, state, when unmatched rows are emitted, and the executor, as text and as data.

::

    statement order_status -> files out/order_status (parquet)
      join 1  orders o FULL JOIN shipments s
        keys       o.order_id = s.order_id (string)
        bound      s.event_time - o.event_time in [0s, 1d], both ends inclusive (ON)
        ...
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from weft.core.duration import Duration
from weft.core.frozen import FrozenMap, freeze
from weft.core.types import Decimal, DType, Scalar
from weft.expr.render import source_text
from weft.redaction import redact
from weft.streams.kernel.spec import FORMAT
from weft.streams.plan.kernel_spec import Child, build_layout, side_name
from weft.streams.plan.resolved import ColumnSlot, Input, JobPlan, KernelStep, StatementPlan, Step, StepKey, TableStep

_FIXED = 17
"""Bytes of a row in state in addition to its columns: hash, time, flag."""
# Bytes in memory; other scalar types have 8, and strings an offset and their text.
_WIDTHS = {"boolean": 1, "byte": 1, "short": 2, "integer": 4, "float": 4, "date": 4}
_OFFSET = 4


def source_name(plan: StatementPlan, number: int) -> str:
    """Return a source with its alias, as in FROM."""
    name, alias = plan.declaration(number).name, plan.source(number).alias
    return name if name == alias else f"{name} {alias}"


def left_name(plan: StatementPlan, step: Step) -> str:
    """Return the left side of a join: its source, or the aliases of the sources joined before."""
    return source_name(plan, step.left[0]) if len(step.left) == 1 else side_name(plan, step, "left")


def column_name(plan: StatementPlan, slot: ColumnSlot) -> str:
    """Return a column as it is written in an expression."""
    columns = plan.declaration(slot[1]).columns
    return f"{plan.source(slot[1]).alias}.{columns.fields[slot[2]].name}"


def time_name(plan: StatementPlan, number: int) -> str:
    """Return the event time of a stream as it is written in an expression."""
    source = plan.source(number)
    assert isinstance(source, Input)  # noqa: S101  # tables have no time
    return f"{source.alias}.{source.stream.event_time}"


def describe_state(plan: StatementPlan, step: KernelStep) -> str:
    """Return how long rows are kept, the event time that they span, and the size of a row."""
    sizes = f"{_describe_row(plan, step, 'left')} and {_describe_row(plan, step, 'right')}"
    right = plan.source(step.right).alias
    if step.axis is None:
        return f"{right} kept until the end; rows of the stream are not kept; {sizes}"
    left = side_name(plan, step, "left")
    if step.reach.kind == "session":
        gap = Duration(step.reach.gap)
        return f"rows of both sides kept until their key has no row for {gap}; {sizes}"
    kept = f"{left} kept {_kept(step, 0)}, {right} kept {_kept(step, 1)} after the watermark"
    # The watermark follows the slowest side, so rows of every side stay for the longest delay more.
    delay = max(i.stream.delay.microseconds for i in plan.inputs)
    spans = [_whole(step, kept) + delay for kept in step.retention]
    names = (
        plan.declaration(step.left[0]).name if len(step.left) == 1 else left,
        plan.declaration(step.right).name,
    )
    about = " and ".join(f"{_span(s)} of {n}" for s, n in zip(spans, names, strict=True))
    return f"{kept}; about {about}; {sizes}"


def _kept(step: KernelStep, side: int) -> str:
    own = step.reach.greatest if side == 0 else -step.reach.least
    length = str(Duration(_whole(step, step.retention[side])))
    if step.reach.has_windows:
        length = f"up to {length}"
    if step.retention[side] > step.needed[side]:
        return f"{length} (join.retention; the bound needs {Duration(step.needed[side])})"
    # What a row stays longer than its own matches need, for the sake of rows that arrive or are emitted later.
    held = step.needed[side] - max(0, own)
    if held > 0 and step.emit == "final" and step.reach.kind == "interval":
        return f"{length} (EMIT FINAL: until the left rows that it may match have expired)"
    if held > 0 and max(0, own) > 0:
        return f"{length} ({Duration(own)} of the bound and {Duration(held)} that earlier joins delay rows)"
    return f"{length} (as long as earlier joins delay rows)" if held > 0 else length


def _whole(step: KernelStep, kept: int) -> int:
    """Return how long rows are kept; for readers, a window ends one microsecond after its last time."""
    return kept + 1 if step.reach.has_windows and kept else kept


def _span(length: int) -> str:
    """Return a length of time for an estimate.

    >>> _span(86_430_000_000), _span(30_000_000), _span(600_000_000), _span(0)
    ('24.0 h', '30 s', '10.0 min', '0 s')
    """
    seconds = length / 1_000_000
    if seconds >= 3600:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 60:.1f} min" if seconds >= 60 else f"{seconds:g} s"


def _describe_row(plan: StatementPlan, step: KernelStep, side: Literal["left", "right"]) -> str:
    # The layout of the kernel: a column that nothing reads after the join takes no space.
    children = build_layout(plan, step)
    mine = children.left if side == "left" else children.right
    if step.axis is None and side == "left":
        return "nothing for a row of the stream"
    text = " + text" if any(_is_text(c) for c in mine) else ""
    size = _FIXED + sum(_width(c.dtype) for c in mine)
    return f"{size} bytes{text} a row of {side_name(plan, step, side)}"


def _is_text(child: Child) -> bool:
    dtype = child.dtype
    return dtype.is_nested or (isinstance(dtype, Scalar) and dtype.name in ("string", "binary", "variant"))


def _width(dtype: DType) -> int:
    if isinstance(dtype, Decimal):
        return 16
    if isinstance(dtype, Scalar) and dtype.name not in ("string", "binary", "variant"):
        return _WIDTHS.get(dtype.name, 8)
    return _OFFSET


def describe_unmatched(plan: StatementPlan, step: KernelStep) -> str:
    """Return when unmatched rows are emitted, or what happens to them."""
    right = plan.source(step.right).alias
    left = side_name(plan, step, "left")
    if step.axis is None:
        phrases = [f"{right} is emitted at the end of the run"] if step.how in ("right", "full") else []
        phrases.append(f"{left} {'immediately' if step.how in ('left', 'full') else 'without a match is dropped'}")
        return "; ".join(phrases)
    if step.how == "inner":
        return "never: INNER; unmatched rows are counted when they expire"
    phrases = []
    if step.how in ("left", "full"):
        phrases.append(f"{left} is emitted when {_passed(plan, step, 0)}{_at_once(plan, step)}")
    if step.how in ("right", "full"):
        verb = "when" if phrases else "is emitted when"
        phrases.append(f"{right} {verb} {_passed(plan, step, 1, bool(phrases))}")
    return "; ".join(phrases)


def _at_once(plan: StatementPlan, step: KernelStep) -> str:
    """Return when left rows are emitted whose time an earlier outer join filled with NULL."""
    assert step.axis is not None  # noqa: S101  # joins by time have an axis
    number = step.axis[0][1]
    earlier = [s for s in plan.kernel_steps if s.number < step.number]
    padded = any(
        (s.how in ("left", "full") and s.right == number) or (s.how in ("right", "full") and number in s.left)
        for s in earlier
    )
    return f", or immediately without {plan.source(number).alias}" if padded else ""


def _passed(plan: StatementPlan, step: KernelStep, side: int, again: bool = False) -> str:  # noqa: FBT001, FBT002  # a word of the sentence
    who = "it has passed" if again else "the watermark has passed"
    reach = step.reach
    if reach.kind == "session":
        return f"{who} the last time of its session + {Duration(reach.gap)}"
    if reach.has_windows:
        return f"{who} the end of its {'window' if reach.kind == 'tumbling' else 'last window'}"
    assert step.axis is not None  # noqa: S101  # joins by time have an axis
    source = plan.source(step.axis[side][1])
    assert isinstance(source, Input)  # noqa: S101  # tables have no time
    span = step.needed[side]
    return f"{who} {source.stream.event_time}" + (f" + {Duration(span)}" if span else "")


def describe_emit(plan: StatementPlan) -> str:
    """Return when pairs are emitted."""
    last = [s for s in plan.kernel_steps if s.axis is not None][-1]
    if last.emit == "changes":
        return "CHANGES: a pair as soon as both rows have arrived; nothing is retracted"
    if last.reach.kind == "interval":
        return "FINAL: the pairs of a left row when it expires"
    return f"FINAL: pairs when their {'session' if last.reach.kind == 'session' else 'window'} is closed"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobExplanation:
    """What a job does: `text` is a summary, `long` has inputs and output too, `data` is for programs.

    `print` shows the summary.
    """

    text: str
    long: str
    data: FrozenMap[str, Any]

    def __str__(self) -> str:
        return self.text


def explain_job(plan: JobPlan, sink: str | None = None) -> JobExplanation:
    """Return the explanation of a job, or only of the statement that writes `sink`."""
    chosen = [s for s in plan.statements if sink in (None, s.name)]
    explains = [s for s in plan.explains if sink in (None, s.name)]
    titled = [("statement", s) for s in chosen] + [("EXPLAIN JOIN", s) for s in explains]
    heads = [f"{word} {s.name} -> {_describe_connector(s.sink.connector)}" for word, s in titled]
    short = ["\n".join((head, *_joins(s))) for head, (_, s) in zip(heads, titled, strict=True)]
    full = ["\n".join((head, *_long(s))) for head, (_, s) in zip(heads, titled, strict=True)]
    data = {"job": plan.name, "statements": [_data(s) for s in chosen], "explains": [_data(s) for s in explains]}
    return JobExplanation(text="\n".join(short), long="\n\n".join(full), data=freeze(data))


def _long(plan: StatementPlan) -> Iterator[str]:
    for stream in plan.inputs:
        yield f"  input   {source_name(plan, stream.number)}: {_describe_input(stream)}"
    for source in plan.tables:
        reload = "read again for each batch" if source.table.reload == "batch" else "read at the first start"
        connector = _describe_connector(source.table.connector)
        yield f"  table   {source_name(plan, source.number)}: {connector}, {reload}"
    yield from _joins(plan)
    if plan.where is not None:
        yield f"  where   {source_text(plan.where.expr)}"
    columns = ", ".join(f"{c.name} {c.dtype}{'' if c.nullable else ' NOT NULL'}" for c in plan.output)
    yield f"  output  {columns}"
    if plan.key_columns:
        yield f"  key     {', '.join(plan.key_columns)}"
    if plan.has_watermark:
        yield f"  emit    {describe_emit(plan)}"


def _describe_connector(connector: FrozenMap[str, Any]) -> str:
    words = [str(connector.get("connector", ""))]
    words += [redact(str(connector[k])) for k in ("path", "topic") if connector.get(k) is not None]
    words += [f"({connector['format']})"] if connector.get("format") is not None else []
    return " ".join(words)


def _describe_input(source: Input) -> str:
    stream = source.stream
    names = ", ".join(stream.columns.fields[i].name for i in source.columns)
    time = f"event time {stream.event_time} ({stream.time_format})" if stream.event_time else "no event time"
    policies = [f"late {stream.late}", f"malformed {stream.malformed}"]
    policies += [f"one row for each {', '.join(stream.dedup)}"] if stream.dedup else []
    policies += [f"idle after {stream.idle}"] if stream.idle is not None else []
    connector = _describe_connector(stream.connector)
    return f"{connector}, {time}, {', '.join(policies)}; columns {names or 'none'}"


def _joins(plan: StatementPlan) -> Iterator[str]:
    if not plan.steps:
        yield f"  no join: {plan.reason}"
    for step in plan.steps:
        left, right = left_name(plan, step), source_name(plan, step.right)
        yield f"  join {step.number}  {left} {step.how.upper()} JOIN {right}"
        for label, text in _lines(plan, step):
            yield f"    {label:<10} {text}"


def _lines(plan: StatementPlan, step: Step) -> Iterator[tuple[str, str]]:
    yield "keys", ", ".join(_key(plan, k) for k in step.keys)
    if isinstance(step, TableStep):
        if step.residual is not None:
            yield "condition", source_text(step.residual.expr)
        fate = "are dropped and counted" if step.how == "inner" else "are emitted immediately with NULL"
        yield "unmatched", f"rows without a table row {fate}"
        yield "executor", f"table lookup: {step.reason}"
        return
    yield "bound", _bound(plan, step)
    if step.residual is not None:
        how = "on whole columns" if step.vectorised else "row by row, which is slower: not only comparisons"
        yield "condition", f"{source_text(step.residual.expr)} ({how})"
    if step.axis is not None:
        sides = ", ".join(f"{i.alias}: max - {i.stream.delay}" for i in plan.inputs)
        yield "watermark", f"min({sides}); a row is late when its time is below it"
    yield "state", describe_state(plan, step)
    if any(v is not None for v in (step.limits.max_state_rows, step.limits.max_rows_per_key)):
        yield "limits", _limits(step)
    yield "unmatched", describe_unmatched(plan, step)
    yield "executor", f"{plan.executor}, format {FORMAT}: {plan.reason}"


def _key(plan: StatementPlan, key: StepKey) -> str:
    return f"{column_name(plan, key.left)} = {column_name(plan, key.right)} ({key.dtype})"


def _bound(plan: StatementPlan, step: KernelStep) -> str:
    reach = step.reach
    if step.axis is None:
        return "none: a table has no time"
    left, right = (time_name(plan, slot[1]) for slot in step.axis)
    if reach.kind == "interval":
        ends = f"[{Duration(reach.lower)}, {Duration(reach.upper)}]"
        return f"{right} - {left} in {ends}, both ends inclusive ({step.bound_from})"
    if reach.kind == "session":
        gap = Duration(reach.gap)
        return f"{left} and {right} in one session: steps of at most {gap} ({step.bound_from})"
    size = Duration(reach.size)
    if reach.kind == "tumbling":
        return f"{left} and {right} in one window of {size}, aligned to the epoch ({step.bound_from})"
    rows = "a row for each" if reach.per_window else "a pair once, with the first"
    slide = Duration(reach.slide)
    return f"{left} and {right} share a window of {size} every {slide}: {rows} ({step.bound_from})"


def _limits(step: KernelStep) -> str:
    limits, parts = step.limits, []
    if limits.max_state_rows is not None:
        parts.append(f"{limits.max_state_rows:,} rows a side")
    if limits.max_rows_per_key is not None:
        parts.append(f"{limits.max_rows_per_key:,} rows a key and side")
    beyond = "the oldest rows are evicted" if limits.eviction == "oldest" else "the query stops"
    return f"at most {' and '.join(parts)}; beyond that {beyond}"


def _data(plan: StatementPlan) -> dict[str, Any]:
    return {
        "sink": plan.name,
        "inputs": [{"stream": i.stream.name, "alias": i.alias} for i in plan.inputs],
        "tables": [{"table": t.table.name, "alias": t.alias} for t in plan.tables],
        "columns": [{"name": c.name, "type": str(c.dtype), "nullable": c.nullable} for c in plan.output],
        "emit": plan.emit,
        "executor": plan.executor,
        "reason": plan.reason,
        "joins": [_join_data(plan, s) for s in plan.steps],
    }


def _join_data(plan: StatementPlan, step: Step) -> dict[str, Any]:
    common = {
        "number": step.number,
        "left": left_name(plan, step),
        "right": source_name(plan, step.right),
        "how": step.how,
        "keys": [_key(plan, k) for k in step.keys],
    }
    if isinstance(step, TableStep):
        return {**common, "bound": None, "executor": "lookup", "reason": step.reason}
    reach = step.reach
    window = None
    if reach.kind not in ("interval", "table"):
        sizes = {"size_us": reach.size or None, "slide_us": reach.slide or None, "gap_us": reach.gap or None}
        window = {"kind": reach.kind, **sizes}
    has_bound = reach.kind not in ("session", "table")
    bound = {"lower_us": reach.least, "upper_us": reach.greatest} if has_bound else None
    return {
        **common,
        "bound": bound,
        "window": window,
        "bound_from": step.bound_from,
        "condition": None if step.residual is None else source_text(step.residual.expr),
        "vectorised": step.vectorised,
        "retention_us": {"left": step.retention[0], "right": step.retention[1]},
        "emit": step.emit,
        "unmatched": describe_unmatched(plan, step),
        "executor": plan.executor,
        "reason": plan.reason,
    }
