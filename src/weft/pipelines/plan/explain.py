"""The plan of a project as a string and as a document: ``weft plan``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

from weft.core.documents import OPEN_WORD, Document
from weft.errors import Diagnostic
from weft.expr.render import render
from weft.io.location import Location
from weft.pipelines.model.values import OnMultiple, OperationType, ResolverSource, TemporalMode
from weft.pipelines.plan.catalog import Catalog
from weft.pipelines.plan.compare import Change
from weft.pipelines.plan.operations.resolved import (
    LookupStep,
    ResolvedAggregate,
    ResolvedAppend,
    ResolvedJoinStep,
    ResolvedOperation,
    ResolvedOutput,
    ResolvedUpdate,
)
from weft.pipelines.plan.project import ProjectPlan
from weft.pipelines.plan.reads import DatasetPin, Read
from weft.pipelines.plan.stages import Stage, list_stages, operation_type

BROADCAST_UP_TO = 32 << 20
"""Largest size in bytes of a joined side that is broadcast."""

_ON_MULTIPLE = {"error": "at most 1 match (checked)", "first": "the first match", "all": "all matches"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedAssignment(Document):
    """A column that an update writes."""

    column: str
    type: str
    creates: bool
    level: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedValue(Document):
    """A column that an aggregation or append adds values to."""

    column: str
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedOperation(Document):
    """An operation of a plan; the optional fields depend on its type."""

    OPTIONAL: ClassVar = ("lookups", "joins", "assignments", "keys", "values", "columns")

    seq: int
    name: str
    type: Annotated[OperationType, OPEN_WORD]
    selector: str | None
    lookups: tuple[str, ...] | None = None
    joins: tuple[str, ...] | None = None
    assignments: tuple[PlannedAssignment, ...] | None = None
    keys: tuple[str, ...] | None = None
    values: tuple[PlannedValue, ...] | None = None
    columns: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedJoin(Document):
    """A runtime join of a plan, and how it is run."""

    UNLISTED: ClassVar = (
        "pinned", "resolver_source", "table", "mode", "own_filter", "columns", "broadcast", "bytes"
    )  # fmt: skip

    seq: int
    alias: str
    dataset: str
    dataset_version: int
    pinned: bool
    resolver_source: ResolverSource
    table: str
    mode: TemporalMode
    as_of: str | None
    on: str
    own_filter: str | None
    on_multiple: OnMultiple
    columns: tuple[str, ...]
    strategy: str
    reason: str
    broadcast: bool | None
    bytes: int | None
    extensions: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedWrite(Document):
    """What an output of a plan writes."""

    UNLISTED: ClassVar = ("format", "columns", "dataset", "dataset_version")

    seq: int
    location: str
    format: str
    mode: str
    columns: tuple[str, ...]
    dataset: str | None
    dataset_version: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanReport(Document):
    """A plan as a document; `changes` is set for a project that has run before, and `fingerprint` identifies the plan."""

    UNLISTED: ClassVar = ("warnings",)

    project: str
    version: int
    status: str
    period: str | None
    sandbox: bool
    operations: tuple[PlannedOperation, ...]
    pins: tuple[DatasetPin, ...]
    joins: tuple[PlannedJoin, ...]
    writes: tuple[PlannedWrite, ...]
    stages: tuple[Stage, ...]
    warnings: tuple[Diagnostic, ...]
    changes: tuple[Change, ...] = ()
    fingerprint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanDocument:
    """A plan: `text` to print, `report` as JSON."""

    text: str
    report: PlanReport


def describe_plan(
    plan: ProjectPlan, *, catalog: Catalog | None = None, sizes: Mapping[str, int | None] | None = None
) -> PlanDocument:
    """Return the plan as text and as a document.

    `catalog` is needed for the version of a registered output; `sizes` are the bytes of each read by name.
    """
    sizes = sizes or {}
    return PlanDocument(text=_text(plan, catalog, sizes), report=_report(plan, catalog, sizes))


def _report(plan: ProjectPlan, catalog: Catalog | None, sizes: Mapping[str, int | None]) -> PlanReport:
    return PlanReport(
        project=plan.project.name,
        version=plan.project.version,
        status=plan.project.status,
        period=None if plan.period is None else plan.period.identifier,
        sandbox=plan.draft,
        operations=tuple(map(_operation, plan.operations)),
        pins=plan.pins,
        joins=tuple(
            _join(op.seq, step, sizes) for op in plan.operations if isinstance(op, ResolvedUpdate) for step in op.joins
        ),
        writes=tuple(_write(op, catalog) for op in plan.operations if isinstance(op, ResolvedOutput)),
        stages=list_stages(plan),
        warnings=plan.warnings,
    )


def _operation(op: ResolvedOperation) -> PlannedOperation:
    selector = None if op.selector is None else render(op.selector)
    planned = PlannedOperation(seq=op.seq, name=op.name, type=operation_type(op), selector=selector)
    match op:
        case ResolvedUpdate():
            assignments = (
                PlannedAssignment(column=a.column, type=str(a.dtype), creates=a.creates, level=a.level)
                for a in op.assignments
            )
            lookups, joins = (tuple(step.alias for step in steps) for steps in (op.lookups, op.joins))
            return replace(planned, lookups=lookups, joins=joins, assignments=tuple(assignments))
        case ResolvedAggregate() | ResolvedAppend():
            values = tuple(PlannedValue(column=n, type=str(t)) for n, _, t in op.values)
            return replace(planned, keys=tuple(name for name, _ in op.keys or ()), values=values)
        case ResolvedOutput():
            return replace(planned, columns=tuple(op.columns))
        case _:
            return planned


def _join(seq: int, step: ResolvedJoinStep, sizes: Mapping[str, int | None]) -> PlannedJoin:
    return PlannedJoin(
        seq=seq,
        alias=step.alias,
        dataset=step.dataset.name,
        dataset_version=step.dataset.version,
        pinned=step.pinned,
        resolver_source=step.read.pin.resolver_source,
        table=step.table.name,
        mode=step.table.temporal_mode,
        as_of=_describe_filter(step) if step.table.temporal_mode == "bitemporal" else None,
        on=step.on,
        own_filter=step.own_text or None,
        on_multiple=step.on_multiple,
        columns=tuple(step.columns),
        strategy=step.choice.strategy,
        reason=step.choice.reason,
        broadcast=is_broadcast(step, sizes.get(step.read.name)),
        bytes=sizes.get(step.read.name),
        extensions=step.extension,
    )


_WITHOUT_PERIOD = {"period_start": "as of the period's first day", "period_end": "as of the period's last day"}


def _describe_filter(step: ResolvedJoinStep) -> str:
    """Return which rows a join reads; a plan without a period has no date yet."""
    known = step.read.filter
    if known.mode == "bitemporal" and known.instant is None and step.as_of.kind in _WITHOUT_PERIOD:
        return _WITHOUT_PERIOD[step.as_of.kind]
    return "rows of the period" if known.mode == "period" and not known.identifiers else str(known)


def is_broadcast(step: ResolvedJoinStep | LookupStep, size: int | None) -> bool | None:
    """Whether the joined side is broadcast; None leaves the decision to Spark."""
    if isinstance(step, ResolvedJoinStep) and step.broadcast is not None:
        return step.broadcast
    # A join by the day of each row has strategies of its own, and an unknown size is left to Spark.
    if size is None or step.as_of.kind == "column":
        return None
    return size <= BROADCAST_UP_TO


def _write(op: ResolvedOutput, catalog: Catalog | None) -> PlannedWrite:
    return PlannedWrite(
        seq=op.seq,
        location=op.target.location,
        format=op.target.format,
        mode=op.mode,
        columns=tuple(op.columns),
        dataset=op.register_as,
        dataset_version=_next_version(op, catalog),
    )


def _next_version(op: ResolvedOutput, catalog: Catalog | None) -> int | None:
    return None if op.register_as is None or catalog is None else catalog.next_version(op.register_as)


def _text(plan: ProjectPlan, catalog: Catalog | None, sizes: Mapping[str, int | None]) -> str:
    lines = [_format_header(plan)]
    wide = max((len(op.name) for op in plan.operations), default=0)
    seqs = max((len(str(op.seq)) for op in plan.operations), default=0)
    for op in plan.operations:
        start = f"  {op.seq:>{seqs}} {op.name:<{wide}}   {operation_type(op):<9} "
        details = _describe_operation(op, catalog, sizes) or [""]
        lines.append((start + details[0]).rstrip())
        lines += [" " * len(start) + line for line in details[1:]]
    lines.append("Reads  " + "   ".join(_format_read(read, catalog) for read in plan.reads))
    marks = [stage for stage in list_stages(plan) if stage.kind == "checkpoint"]
    lines += [f"{stage.title}: {stage.detail[0]}" for stage in marks]
    return "\n".join(lines)


def _shorten(texts: list[str], most: int) -> str:
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more


def _format_location(location: Location, catalog: Catalog | None) -> str:
    """Return a location for display: below the folder of its datasource."""
    source = None if catalog is None else catalog.datasource(location.datasource_id)
    prefix = "" if source is None or location.path is None else str(source.options.get("path_prefix", ""))
    return f"{prefix.rstrip('/')}/{location}" if prefix else str(location)


def _format_read(read: Read, catalog: Catalog | None) -> str:
    places = [_format_location(location, catalog) for location in read.locations]
    return f"{read.table.name} {_shorten(places, 3)} ({read.filter})" if places else read.table.name


def _format_header(plan: ProjectPlan) -> str:
    project = plan.project
    parts = [f"{project.name} v{project.version} ({project.status})"]
    if plan.period is not None:
        parts.append(f"{plan.period.identifier}  {plan.period.start_date} .. {plan.period.end_date}")
    parts.append(f"input {plan.input.dataset}")
    parts.append("known at run start" if plan.known_at is None else f"known at {plan.known_at.isoformat()}")
    if plan.draft:
        parts.append("into the sandbox")
    return "   ".join(parts)


def _describe_operation(op: ResolvedOperation, catalog: Catalog | None, sizes: Mapping[str, int | None]) -> list[str]:
    lines: list[str] = []
    if op.selector is not None and not isinstance(op, ResolvedAppend):
        lines.append(f"where {render(op.selector)}")
    match op:
        case ResolvedUpdate():
            for step in op.joins:
                lines += _describe_join(step, sizes)
            lines.append(f"sets {_shorten([a.column for a in op.assignments], 8)}")
        case ResolvedAggregate():
            lines.append(f"one row for each {', '.join(n for n, _ in op.keys)}")
        case ResolvedAppend():
            lines.append(f"rows of {op.read.dataset}" + (f" where {render(op.selector)}" if op.selector else ""))
        case ResolvedOutput():
            version = _next_version(op, catalog)
            registered = f"  -> {op.register_as}" + (f" v{version}" if version else "") if op.register_as else ""
            lines.append(f"{op.target.location}  {op.mode}{registered}")
    if op.lookups:
        lines.append(f"lookups {', '.join(step.alias for step in op.lookups)}")
    return lines


def _describe_join(step: ResolvedJoinStep, sizes: Mapping[str, int | None]) -> list[str]:
    version = "pinned" if step.pinned else "latest"
    first = f"join {step.alias} -> {step.dataset} ({version}, {step.read.pin.resolver_source})"
    size = sizes.get(step.read.name)
    sent = is_broadcast(step, size)
    details = [_describe_filter(step), _ON_MULTIPLE[step.on_multiple]]
    if sent is not None:
        suffix = "" if size is None else f": {size:,} bytes"
        details.append(("broadcast" if sent else "not broadcast") + suffix)
    lines = [first, ", ".join(details)]
    return lines + [f"extension: {text}" for text in step.extension]
