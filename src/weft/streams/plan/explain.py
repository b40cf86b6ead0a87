"""explain_job: bounds, watermarks, state, when unmatched rows appear and who executes, as text and as data.

::

    statement order_status -> files out/order_status (parquet)
      join 1  orders o FULL JOIN shipments s
        keys       o.order_id = s.order_id (string)
        bound      s.event_time - o.event_time in [0s, 1d], both ends included (ON)
        ...
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from weft.core.duration import Duration
from weft.core.frozen import FrozenMap, frozen
from weft.expr.render import written
from weft.joins.resolve.resolved import SameWindow, Within
from weft.redaction import redact
from weft.streams.kernel.spec import FORMAT
from weft.streams.plan.explain_words import (
    column_name,
    emit_said,
    left_name,
    source_name,
    state_said,
    time_name,
    unmatched_said,
)
from weft.streams.plan.resolved import (
    Input,
    JobPlan,
    KernelStep,
    StatementPlan,
    Step,
    StepKey,
    TableStep,
)
from weft.streams.sql.spec import SinkSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class JobExplanation:
    """What a job does: `text` for a glance, `long` with inputs and output, `data` for programs."""

    text: str
    long: str
    data: FrozenMap[str, Any]


def explain_job(plan: JobPlan, sink: str | None = None) -> JobExplanation:
    """Return the explanation of a job, or of the statement that writes `sink` alone."""
    chosen = [s for s in plan.statements if sink in (None, s.name)]
    asked = [s for s in plan.explains if sink in (None, s.name)]
    short = [_statement(s) for s in chosen] + [_statement(s, "EXPLAIN JOIN") for s in asked]
    full = [_long(s) for s in chosen] + [_long(s, "EXPLAIN JOIN") for s in asked]
    data = {
        "job": plan.name,
        "statements": [_data(s) for s in chosen],
        "explains": [_data(s) for s in asked],
    }
    return JobExplanation(text="\n".join(short), long="\n\n".join(full), data=frozen(data))


def _statement(plan: StatementPlan, word: str = "statement") -> str:
    return "\n".join((f"{word} {plan.name} -> {sink_said(plan.sink)}", *_joins(plan)))


def _long(plan: StatementPlan, word: str = "statement") -> str:
    lines = [f"{word} {plan.name} -> {sink_said(plan.sink)}"]
    lines.extend(f"  input   {source_name(plan, i.number)}: {_input_said(i)}" for i in plan.inputs)
    lines.extend(
        f"  table   {source_name(plan, t.number)}: {_source_said(t.table.connector)}, {_reload(t.table.reload)}"
        for t in plan.tables
    )
    lines.extend(_joins(plan))
    if plan.where is not None:
        lines.append(f"  where   {written(plan.where.expr)}")
    columns = ", ".join(f"{c.name} {c.dtype}{'' if c.nullable else ' NOT NULL'}" for c in plan.output)
    lines.append(f"  output  {columns}")
    if plan.key_columns:
        lines.append(f"  key     {', '.join(plan.key_columns)}")
    if plan.has_watermark:
        lines.append(f"  emit    {emit_said(plan)}")
    return "\n".join(lines)


def sink_said(sink: SinkSpec) -> str:
    """Return where a statement writes, in a few words."""
    return _source_said(sink.connector)


def _source_said(connector: FrozenMap[str, Any]) -> str:
    said = [str(connector.get("connector", ""))]
    said += [redact(str(connector[k])) for k in ("path", "topic") if connector.get(k) is not None]
    said += [f"({connector['format']})"] if connector.get("format") is not None else []
    return " ".join(said)


def _reload(word: str) -> str:
    return "read again for each batch" if word == "batch" else "read at the first start"


def _input_said(source: Input) -> str:
    stream = source.stream
    names = ", ".join(stream.columns.fields[i].name for i in source.columns)
    time = f"event time {stream.event_time} ({stream.time_format})" if stream.event_time else "no event time"
    policies = [f"late {stream.late}", f"malformed {stream.malformed}"]
    policies += [f"one row for each {', '.join(stream.dedup)}"] if stream.dedup else []
    policies += [f"idle after {stream.idle}"] if stream.idle is not None else []
    said = _source_said(stream.connector)
    return f"{said}, {time}, {', '.join(policies)}; reads {names or 'no column'}"


def _joins(plan: StatementPlan) -> Iterator[str]:
    if not plan.steps:
        yield f"  no join: {plan.reason}"
    for step in plan.steps:
        left, right = left_name(plan, step), source_name(plan, step.right)
        yield f"  join {step.number}  {left} {step.how.upper()} JOIN {right}"
        for word, said in _lines(plan, step):
            yield f"    {word:<10} {said}"


def _lines(plan: StatementPlan, step: Step) -> Iterator[tuple[str, str]]:
    yield "keys", ", ".join(_key(plan, k) for k in step.keys)
    if isinstance(step, TableStep):
        if step.residual is not None:
            yield "condition", written(step.residual.expr)
        yield (
            "unmatched",
            "rows without a table row "
            + ("are dropped and counted" if step.how == "inner" else "come out padded at once"),
        )
        yield "executor", f"table lookup: {step.reason}"
        return
    yield "bound", _bound(plan, step)
    if step.residual is not None:
        yield "condition", _condition(step)
    if step.axis is not None:
        yield "watermark", _watermark(plan)
    yield "state", state_said(plan, step)
    if any(v is not None for v in (step.limits.max_state_rows, step.limits.max_rows_per_key)):
        yield "limits", _limits(step)
    yield "unmatched", unmatched_said(plan, step)
    yield "executor", f"{plan.executor}, format {FORMAT}: {plan.reason}"


def _key(plan: StatementPlan, key: StepKey) -> str:
    return f"{column_name(plan, key.left)} = {column_name(plan, key.right)} ({key.dtype})"


def _bound(plan: StatementPlan, step: KernelStep) -> str:
    match = step.match
    if step.axis is None:
        return "none: a table has no time"
    left, right = (time_name(plan, slot[1]) for slot in step.axis)
    if isinstance(match, Within):
        ends = f"[{Duration(step.lower)}, {Duration(step.upper)}]"
        return f"{right} - {left} in {ends}, both ends included ({step.bound_from})"
    assert isinstance(match, SameWindow)  # noqa: S101  # an axis has bounds or windows
    if match.kind == "session":
        gap = Duration(match.gap or 0)
        return f"{left} and {right} in one session: steps of at most {gap} ({step.bound_from})"
    size = Duration(match.size or 0)
    if match.kind == "tumbling":
        return f"{left} and {right} in one window of {size}, aligned to the epoch ({step.bound_from})"
    rows = "a row for each" if match.per_window else "a pair once, with the first"
    slide = Duration(match.slide or 0)
    return f"{left} and {right} share a window of {size} every {slide}: {rows} ({step.bound_from})"


def _condition(step: KernelStep) -> str:
    assert step.residual is not None  # noqa: S101  # the caller's own branch
    how = "on whole columns" if step.vectorised else "row by row, slower: more than plain comparisons"
    return f"{written(step.residual.expr)} ({how})"


def _watermark(plan: StatementPlan) -> str:
    sides = ", ".join(f"{i.alias}: max - {i.stream.delay}" for i in plan.inputs)
    return f"min({sides}); a row is late when its time is below it"


def _limits(step: KernelStep) -> str:
    limits, said = step.limits, []
    if limits.max_state_rows is not None:
        said.append(f"{limits.max_state_rows:,} rows a side")
    if limits.max_rows_per_key is not None:
        said.append(f"{limits.max_rows_per_key:,} rows a key and side")
    beyond = "the oldest go to the rejects" if limits.eviction == "oldest" else "the query stops"
    return f"at most {' and '.join(said)}; beyond that {beyond}"


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
    match = step.match
    window = None
    if isinstance(match, SameWindow):
        window = {"kind": match.kind, "size_us": match.size, "slide_us": match.slide, "gap_us": match.gap}
    session = isinstance(match, SameWindow) and match.kind == "session"
    bound = None if step.axis is None or session else {"lower_us": step.lower, "upper_us": step.upper}
    return {
        **common,
        "bound": bound,
        "window": window,
        "bound_from": step.bound_from,
        "condition": None if step.residual is None else written(step.residual.expr),
        "vectorised": step.vectorised,
        "retention_us": {"left": step.retention[0], "right": step.retention[1]},
        "emit": step.emit,
        "unmatched": unmatched_said(plan, step),
        "executor": plan.executor,
        "reason": plan.reason,
    }
