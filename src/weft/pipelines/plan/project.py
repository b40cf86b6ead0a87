"""A project against a catalog: every operation resolved in order, every mistake told, before data is read."""

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
from weft.pipelines.plan.failures import Failure as Failure  # noqa: PLC0414  # asked for together with a plan
from weft.pipelines.plan.operations.aggregate import resolve_aggregate
from weft.pipelines.plan.operations.append import resolve_append, working_of
from weft.pipelines.plan.operations.context import PlanContext, not_usable
from weft.pipelines.plan.operations.delete import resolve_delete
from weft.pipelines.plan.operations.output import resolve_output
from weft.pipelines.plan.operations.resolved import ResolvedOperation, ResolvedOutput, WorkingSet
from weft.pipelines.plan.operations.unknown import KEY_UNKNOWN, unknown_input, with_mentioned
from weft.pipelines.plan.operations.update import resolve_update
from weft.pipelines.plan.reads import DatasetPin as DatasetPin  # noqa: PLC0414
from weft.pipelines.plan.reads import Read as Read  # noqa: PLC0414
from weft.pipelines.plan.scopes import lookup_nodes
from weft.pipelines.plan.shared_targets import (
    find_other_writers,
    find_output_failures,
    list_sample_periods,
    separate_outputs,
)
from weft.pipelines.plan.uses import check_unused_selectors, collect_reads, parse_selectors, share_reads
from weft.pipelines.plan.uses import find_column_uses as column_uses_of

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
    """Everything that a run will do, with nothing left to find out but the data.

    `reads` holds every table that is opened, the input first.  `period` is None when a project was
    checked without one.
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
        """The dataset versions that the run takes, in the order of `reads`."""
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
    """Return the plan of a run; raise `ActivationError` with everything that stands against it.

    Nothing is read but what the catalog holds: no session, no data.
    """
    plan, failures, _ = _resolved(project, catalog, period, calendar, known_at, draft=draft)
    if plan is None or failures:
        error = ActivationError([f.diagnostic for f in failures])
        error.failures = failures
        raise error
    return plan


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectCheck:
    """What a check without a period finds: failures that stand against activation, and warnings.

    `outputs` are those that could be resolved, also where something else in the project could not.
    """

    failures: tuple[Failure, ...]
    warnings: tuple[Diagnostic, ...]
    outputs: tuple[ResolvedOutput, ...] = ()


def examine_project(project: Project, catalog: Catalog) -> ProjectCheck:
    """Return what is wrong and what is odd with a project; resolvers are found, data is not located."""
    calendar, told = _calendar(project, catalog)
    plan, failures, operations = _resolved(project, catalog, None, calendar, None, draft=False)
    reads = () if plan is None else plan.reads
    shared = find_output_failures(project, catalog, reads, list_sample_periods(calendar))
    return ProjectCheck(
        failures=(*told, *failures, *shared),
        warnings=() if plan is None else plan.warnings,
        outputs=tuple(op for op in operations if isinstance(op, ResolvedOutput)),
    )


def _calendar(project: Project, catalog: Catalog) -> tuple[Calendar, tuple[Failure, ...]]:
    """Return the calendar of a project; another one, with what is wrong, when it cannot be used."""
    try:
        return catalog.calendar(project.calendar), ()
    except WeftError as problem:
        at = project.at.of("calendar")
        told = tuple(Failure.of(replace(d, at=d.at or at), None) for d in problem.diagnostics)
        return GREGORIAN, told


def check_project(project: Project, catalog: Catalog) -> tuple[Failure, ...]:
    """Return why a project cannot be activated; resolvers are found, data is not located."""
    shared = (Failure.of(finding, None) for finding in find_other_writers(project, catalog))
    return (*examine_project(project, catalog).failures, *shared)


def find_column_uses(plan: ProjectPlan) -> Mapping[tuple[str, str], tuple[int, ...]]:
    """Return which operations use each column of a dataset: ``(dataset id, "table.column") -> seqs``."""
    return column_uses_of(plan.input, plan.operations)


def _resolved(
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
        mistakes=ErrorCollector(),
        selectors=selectors,
        aliases=_aliases(project),
        draft=draft,
    )
    context, working, read = _started(project, context)
    _tell(context.mistakes, None, failures)
    check_unused_selectors(project, working, context, failures)
    operations, final = _operations(project, working, context, failures)
    _check_seqs(project, failures)
    if read is None or failures:
        return None, _once(failures), operations
    _warn_of_unread(project, context)
    if draft:
        operations = separate_outputs(
            operations, f"{catalog.settings.sandbox.path.rstrip('/')}/{project.name}"
        )
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


def _started(project: Project, context: PlanContext) -> tuple[PlanContext, WorkingSet, Read | None]:
    """Return the context with its lookups, the columns of the input and how it is read.

    Without its input a project is still checked, with columns that nobody knows.
    """
    found = context.catalog.dataset(project.input)
    if isinstance(found, MissingDataset):
        at = project.input.at or project.at.of("input_dataset_id")
        # A file without an input, and one that does not read, are reported when they are read.
        if project.input.name != MISSING_INPUT and found.kind != "unread":
            context.mistakes.add(not_usable(found, "input dataset", at))
        return context, unknown_input(project), None
    dataset = found.dataset
    with context.mistakes.collect():
        context = replace(context, lookups=lookup_nodes(dataset, context.catalog))
    working = working_of(dataset)
    columns = tuple(c.name for c in dataset.main_table.columns)
    return (
        context,
        working,
        context.read("input", "input", dataset, dataset.main_table, columns, alias="input"),
    )


def _operations(
    project: Project, working: WorkingSet, context: PlanContext, failures: list[Failure]
) -> tuple[tuple[ResolvedOperation, ...], WorkingSet]:
    found: list[ResolvedOperation] = []
    deleted = False
    for op in project.operations:
        if isinstance(op.arguments, Unread):
            working = replace(working, open=True)
            continue
        if working.open:
            working = with_mentioned(working, op, context)
        inner = context.at_operation(ErrorCollector(), may_delete=deleted)
        resolved, working = _RESOLVERS[op.type](op, working, inner)
        _tell(inner.mistakes, op.seq, failures, but=KEY_UNKNOWN if working.open else ())
        if resolved is not None:
            found.append(resolved)
        deleted = deleted or op.type == "delete"
    if not project.operations:
        problem = OperationError(
            "the project has no operations",
            code="W1401",
            help="give it an operation",
            at=project.at.of("operations"),
        )
        failures.append(Failure.of(problem.diagnostics[0], None))
    return tuple(found), working


def _warn_of_unread(project: Project, context: PlanContext) -> None:
    """Note operations behind the last output: nothing they do is ever written."""
    last = max((op.seq for op in project.operations if op.type == "output"), default=0)
    for op in project.operations:
        if op.seq > last and not isinstance(op.arguments, Unread):
            context.warn(
                "W1401",
                f"operation {op} changes nothing that is written",
                "give the project an output after it",
                op.at.of("seq"),
            )


def _check_seqs(project: Project, failures: list[Failure]) -> None:
    seen: set[int] = set()
    for op in project.operations:
        if isinstance(op.arguments, Unread):
            continue
        if op.seq in seen:
            finding = Diagnostic(
                "W1009",
                f"seq {op.seq} is used twice",
                help="give each operation a seq of its own",
                at=op.at.of("seq"),
            )
            failures.append(Failure.of(finding, op.seq))
        seen.add(op.seq)


def _aliases(project: Project) -> Mapping[str, int]:
    found: dict[str, int] = {}
    for op in project.operations:
        if isinstance(op.arguments, Update):
            for join in op.arguments.joins:
                found.setdefault(join.alias.text, op.seq)
    return found


def _tell(
    mistakes: ErrorCollector, seq: int | None, failures: list[Failure], but: tuple[Code, ...] = ()
) -> None:
    try:
        mistakes.raise_all()
    except WeftError as problem:
        failures += [Failure.of(d, seq) for d in problem.diagnostics if d.code not in but]


def _once(failures: list[Failure]) -> tuple[Failure, ...]:
    """Return each finding once: a selector that several operations use is told for the first of them."""
    found: dict[tuple[object, ...], Failure] = {}
    for failure in failures:
        told = failure.diagnostic
        found.setdefault((told.code, told.message, told.at), failure)
    return tuple(found.values())
