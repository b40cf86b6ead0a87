"""Resolves the operations of a project in order and reports all errors before any data is read."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from weft.core.calendar import GREGORIAN, Calendar, Period
from weft.core.findings import ErrorCollector
from weft.errors import ActivationError, Code, Diagnostic, OperationError, WeftError
from weft.pipelines.model.operation import Operation, Unread, Update
from weft.pipelines.model.project import Project
from weft.pipelines.model.values import MISSING_INPUT, OperationType
from weft.pipelines.plan.catalog import Catalog, MissingDataset
from weft.pipelines.plan.failures import Failure
from weft.pipelines.plan.operations.context import PlanContext, missing_dataset_error
from weft.pipelines.plan.operations.output import resolve_output
from weft.pipelines.plan.operations.resolved import ResolvedOperation, ResolvedOutput, WorkingSet
from weft.pipelines.plan.operations.rows import build_working_set, resolve_aggregate, resolve_append, resolve_delete
from weft.pipelines.plan.operations.unknown import KEY_UNKNOWN, add_mentioned_columns, unknown_input
from weft.pipelines.plan.operations.update import resolve_update
from weft.pipelines.plan.reads import DatasetPin as DatasetPin  # noqa: PLC0414
from weft.pipelines.plan.reads import Read as Read  # noqa: PLC0414
from weft.pipelines.plan.scopes import resolve_lookups
from weft.pipelines.plan.shared_targets import (
    find_other_writers,
    find_output_failures,
    list_sample_periods,
    separate_outputs,
)
from weft.pipelines.plan.uses import check_unused_selectors, collect_reads, parse_selectors, share_reads

_RESOLVERS: Mapping[
    OperationType, Callable[[Operation, WorkingSet, PlanContext], tuple[ResolvedOperation | None, WorkingSet]]
] = {
    "update": resolve_update,
    "aggregate": resolve_aggregate,
    "append": resolve_append,
    "delete": resolve_delete,
    "output": resolve_output,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectPlan:
    """Everything that a run will do; only the data is still unknown.

    `reads` are all tables that are opened, the input first.  `period` is None when a project was checked without one.
    """

    project: Project
    period: Period | None
    calendar: str
    known_at: dt.datetime | None
    draft: bool
    input: Read
    reads: tuple[Read, ...]
    operations: tuple[ResolvedOperation, ...]
    final: WorkingSet
    warnings: tuple[Diagnostic, ...]

    @property
    def pins(self) -> tuple[DatasetPin, ...]:
        """The dataset versions that the run reads, in the order of `reads`."""
        return tuple(read.pin for read in self.reads)


def resolve_project(
    project: Project,
    catalog: Catalog,
    *,
    period: Period | None,
    calendar: Calendar,
    known_at: dt.datetime | None = None,
    draft: bool = False,
) -> ProjectPlan:
    """Return the plan of a run; raise `ActivationError` with all failures.

    Only the catalog is read: no session and no data are needed.
    """
    plan, failures, _ = _resolve(project, catalog, period, calendar, known_at, draft=draft)
    if plan is None or failures:
        error = ActivationError([f.diagnostic for f in failures])
        error.failures = failures
        raise error
    return plan


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectCheck:
    """The result of a check without a period: failures that prevent activation, and warnings.

    `outputs` are those that could be resolved, even when other operations could not.
    """

    failures: tuple[Failure, ...]
    warnings: tuple[Diagnostic, ...]
    outputs: tuple[ResolvedOutput, ...] = ()


def examine_project(project: Project, catalog: Catalog) -> ProjectCheck:
    """Return the failures and warnings of a project; resolvers are looked up, data is not located."""
    calendar, calendar_failures = _find_calendar(project, catalog)
    plan, failures, operations = _resolve(project, catalog, None, calendar, None, draft=False)
    reads = () if plan is None else plan.reads
    shared = find_output_failures(project, catalog, reads, list_sample_periods(calendar))
    return ProjectCheck(
        failures=(*calendar_failures, *failures, *shared),
        warnings=() if plan is None else plan.warnings,
        outputs=tuple(op for op in operations if isinstance(op, ResolvedOutput)),
    )


def _find_calendar(project: Project, catalog: Catalog) -> tuple[Calendar, tuple[Failure, ...]]:
    """Return the calendar of a project; when it is unusable, the Gregorian one and the failures."""
    try:
        return catalog.calendar(project.calendar), ()
    except WeftError as problem:
        at = project.at.of("calendar")
        failures = tuple(Failure.of(replace(d, at=d.at or at), None) for d in problem.diagnostics)
        return GREGORIAN, failures  # any calendar will do to check the rest


def check_project(project: Project, catalog: Catalog) -> tuple[Failure, ...]:
    """Return why a project cannot be activated; resolvers are looked up, data is not located."""
    shared = (Failure.of(finding, None) for finding in find_other_writers(project, catalog))
    return (*examine_project(project, catalog).failures, *shared)


def _resolve(
    project: Project,
    catalog: Catalog,
    period: Period | None,
    calendar: Calendar,
    known_at: dt.datetime | None,
    *,
    draft: bool,
) -> tuple[ProjectPlan | None, tuple[Failure, ...], tuple[ResolvedOperation, ...]]:
    failures: list[Failure] = []
    selectors = parse_selectors(project, failures)
    context = PlanContext(
        catalog=catalog,
        project=project,
        period=period,
        calendar=calendar,
        known_at=known_at,
        errors=ErrorCollector(),
        selectors=selectors,
        aliases=_collect_aliases(project),
        draft=draft,
    )
    # The input comes first: its columns and lookups are what every operation names.
    context, working, read = _open_input(project, context)
    _collect_failures(context.errors, None, failures)
    check_unused_selectors(project, working, context, failures)
    operations, final = _resolve_operations(project, working, context, failures)
    _check_seqs(project, failures)
    if read is None or failures:
        return None, _remove_duplicates(failures), operations
    _warn_of_unread(project, context)
    if draft:
        operations = separate_outputs(operations, f"{catalog.settings.sandbox.path.rstrip('/')}/{project.name}")
    reads = collect_reads(read, operations)
    plan = ProjectPlan(
        project=project,
        period=period,
        calendar=calendar.name,
        known_at=known_at,
        draft=draft,
        input=read,
        reads=reads,
        operations=share_reads(operations, reads),
        final=final,
        warnings=tuple(dict.fromkeys(context.warnings)),
    )
    return plan, (), operations


def _open_input(project: Project, context: PlanContext) -> tuple[PlanContext, WorkingSet, Read | None]:
    """Return the context with the lookups, the working set of the input, and its read.

    When the input is missing, the project is still checked, with unknown columns.
    """
    resolved = context.catalog.dataset(project.input)
    if isinstance(resolved, MissingDataset):
        at = project.input.at or project.at.of("input_dataset_id")
        # A missing `input_dataset_id` and an invalid file are reported when files are parsed.
        if project.input.name != MISSING_INPUT and resolved.kind != "unread":
            context.errors.add(missing_dataset_error(resolved, "input dataset", at))
        return context, unknown_input(project), None
    dataset = resolved.dataset
    with context.errors.collect():
        context = replace(context, lookups=resolve_lookups(dataset, context.catalog))
    working = build_working_set(dataset)
    columns = tuple(c.name for c in dataset.main_table.columns)
    return (context, working, context.read("input", "input", dataset, dataset.main_table, columns, alias="input"))


def _resolve_operations(
    project: Project, working: WorkingSet, context: PlanContext, failures: list[Failure]
) -> tuple[tuple[ResolvedOperation, ...], WorkingSet]:
    operations: list[ResolvedOperation] = []
    deleted = False
    for op in project.operations:
        if isinstance(op.arguments, Unread):
            # It may have added any column; later operations must not be blamed for reading one.
            working = replace(working, open=True)
            continue
        if working.open:
            working = add_mentioned_columns(working, op, context)
        inner = replace(context, errors=ErrorCollector(), may_delete=deleted)
        resolved, working = _RESOLVERS[op.type](op, working, inner)
        _collect_failures(inner.errors, op.seq, failures, but=KEY_UNKNOWN if working.open else ())
        if resolved is not None:
            operations.append(resolved)
        deleted = deleted or op.type == "delete"
    if not project.operations:
        problem = OperationError(
            "the project has no operations", code="W1401", help="add an operation", at=project.at.of("operations")
        )
        failures.append(Failure.of(problem.diagnostics[0], None))
    return tuple(operations), working


def _warn_of_unread(project: Project, context: PlanContext) -> None:
    """Warn about operations after the last output: their results are never written."""
    last = max((op.seq for op in project.operations if op.type == "output"), default=0)
    for op in project.operations:
        if op.seq > last and not isinstance(op.arguments, Unread):
            context.warn(
                "W1401", f"operation {op} has no effect on any output", "add an output after it", op.at.of("seq")
            )


def _check_seqs(project: Project, failures: list[Failure]) -> None:
    used: set[int] = set()
    for op in project.operations:
        if isinstance(op.arguments, Unread):
            continue
        if op.seq in used:
            finding = Diagnostic(
                "W1009", f"seq {op.seq} is used twice", help="give each operation its own seq", at=op.at.of("seq")
            )
            failures.append(Failure.of(finding, op.seq))
        used.add(op.seq)


def _collect_aliases(project: Project) -> Mapping[str, int]:
    aliases: dict[str, int] = {}
    for op in project.operations:
        if isinstance(op.arguments, Update):
            for join in op.arguments.joins:
                aliases.setdefault(join.alias.text, op.seq)
    return aliases


def _collect_failures(
    errors: ErrorCollector, seq: int | None, failures: list[Failure], but: tuple[Code, ...] = ()
) -> None:
    try:
        errors.raise_all()
    except WeftError as problem:
        failures += [Failure.of(d, seq) for d in problem.diagnostics if d.code not in but]


def _remove_duplicates(failures: list[Failure]) -> tuple[Failure, ...]:
    """Return each finding once: an invalid selector is reported for the first operation that uses it."""
    unique: dict[tuple[object, ...], Failure] = {}
    for failure in failures:
        finding = failure.diagnostic
        unique.setdefault((finding.code, finding.message, finding.at), failure)
    return tuple(unique.values())
