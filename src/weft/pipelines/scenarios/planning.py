"""Planning of scenarios, without computing rows: the first part of `weft test`, and the check of `weft validate`."""

from __future__ import annotations

import datetime as dt
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from weft.core.calendar import Calendar, Level, Period
from weft.core.listed_calendar import ListedCalendar
from weft.core.names import format_list, suggest
from weft.core.types import DType, Field
from weft.errors import Diagnostic, PeriodError, ScenarioError, WeftError
from weft.pipelines.model.project import Project
from weft.pipelines.model.scenario import Expect, Scenario
from weft.pipelines.model.workspace import CalendarFile
from weft.pipelines.plan.catalog import Catalog
from weft.pipelines.plan.operations.resolved import ResolvedOutput
from weft.pipelines.plan.project import ProjectPlan, resolve_project
from weft.pipelines.scenarios.compare import typed_trace
from weft.pipelines.scenarios.given import with_given
from weft.pipelines.scenarios.values import ReadParquet, typed_rows, written_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedScenario:
    """The plan of a scenario, and the output to compare; None is the final working set."""

    plan: ProjectPlan
    catalog: Catalog
    period: Period
    output: ResolvedOutput | None

    @property
    def fields(self) -> tuple[Field, ...]:
        """The columns that are compared."""
        if self.output is None:
            return self.plan.final.schema.fields
        return tuple(self.output.before.schema[name] for name in self.output.columns)


def plan_scenario(scenario: Scenario, base: Catalog, folder: Path, read_parquet: ReadParquet) -> PlannedScenario:
    """Plan the project of a scenario on its given tables, which are written into a folder."""
    project = replace(project_of(scenario, base), status="draft")
    calendar = calendar_of(scenario, project, base)
    project = replace(project, calendar=calendar.name)
    period = _period(scenario, calendar)
    changed, project = with_given(scenario, project, base, period, folder, read_parquet)
    others = (file for file in changed.calendars if file.name != calendar.name)
    calendars = (*others, CalendarFile(name=calendar.name, calendar=calendar))
    catalog = replace(base, workspace=replace(changed, calendars=calendars))
    known_at = scenario.known_at or dt.datetime.now(dt.UTC)
    plan = resolve_project(project, catalog, period=period, calendar=calendar, known_at=known_at, draft=True)
    return PlannedScenario(plan=plan, catalog=catalog, period=period, output=_output(scenario, plan))


def project_of(scenario: Scenario, catalog: Catalog) -> Project:
    """Return the project that a scenario names or brings."""
    reference = scenario.project
    if isinstance(reference, Project):
        return reference
    project = catalog.project(reference.text)
    if project is None:
        names = [p.name for p in catalog.workspace.projects]
        raise ScenarioError(
            f"unknown project {reference.text!r}",
            code="W1701",
            help=suggest(reference.text, names, "projects are", most=1),
            at=reference.at,
        )
    return project


def calendar_of(scenario: Scenario, project: Project, catalog: Catalog) -> Calendar:
    """Return the calendar of a scenario: of the periods it brings, else the one it names, else the project's."""
    if not scenario.periods:
        return catalog.calendar(scenario.calendar or project.calendar)
    name = scenario.calendar or project.calendar
    periods = tuple(replace(p, calendar=name) for p in scenario.periods)
    # The levels follow from the lengths of the periods: a longer one contains shorter ones.
    by_length = sorted({p.level: p.days for p in periods}.items(), key=lambda item: -item[1])
    names = [level for level, _ in by_length]
    levels = tuple(Level(level, tuple(reversed(names[:i]))) for i, level in enumerate(names))
    return ListedCalendar(name, levels, periods)


def _period(scenario: Scenario, calendar: Calendar) -> Period:
    if not scenario.period.text:
        raise ScenarioError(
            "the scenario has no period", code="W1701", help="write period: 2026-01", at=scenario.at.whole
        )
    try:
        return calendar.parse(scenario.period.text)
    except PeriodError as problem:
        raise PeriodError(replace(finding, at=scenario.period.at) for finding in problem.diagnostics) from None


def _output(scenario: Scenario, plan: ProjectPlan) -> ResolvedOutput | None:
    """Return the output that a scenario compares; None is the final working set."""
    outputs = {op.seq: op for op in plan.operations if isinstance(op, ResolvedOutput)}
    requested = scenario.expect.output
    if requested == "working" or (requested is None and not outputs):
        return None
    if requested is None:
        return outputs[max(outputs)]
    if requested not in outputs:
        raise ScenarioError(
            f"operation {requested} of project {plan.project.name!r} is not an output",
            code="W1701",
            help=f"outputs are {format_list(map(str, outputs)) or 'none'}; `working` is the final working set",
            at=scenario.expect.at.of("output"),
        )
    return outputs[requested]


def traced_types(plan: ProjectPlan) -> Mapping[int, Mapping[str, DType]]:
    """Return the columns after each operation that can change rows."""
    return {
        op.seq: {f.name: f.dtype for f in op.after.schema.fields}
        for op in plan.operations
        if not isinstance(op, ResolvedOutput)
    }


def missing_codes(expect: Expect, problem: WeftError) -> tuple[list[str], set[str]]:
    """Return the expected codes that an error does not have, and those it has.

    Rule names such as VR-001 are accepted for their codes.
    """
    rules = {failure.rule for failure in getattr(problem, "failures", ())}
    codes = {d.code for d in problem.diagnostics} | rules
    # VR-001 to VR-008 are the codes W1201 to W1208.
    codes |= {f"VR-{code[3:]:0>3}" for code in codes if code.startswith("W120") and code != "W1209"}
    return [code.text for code in expect.errors if code.text not in codes], codes


def check_scenarios(catalog: Catalog, wrong: Collection[str | None] = ()) -> Iterator[Diagnostic]:
    """Yield the errors of scenarios that `weft test` would report before it computes rows; Spark is not started.

    Scenarios and projects in `wrong` files are skipped: their errors are reported already.
    """
    for scenario in catalog.workspace.scenarios:
        reference = scenario.project
        project = reference if isinstance(reference, Project) else catalog.project(reference.text)
        if project is None or {_file(scenario), _file(project)} & set(wrong):
            continue
        with tempfile.TemporaryDirectory(prefix="weft-scenario-") as folder:
            yield from _checked(scenario, catalog, Path(folder))


def _file(entity: Scenario | Project) -> str | None:
    return None if entity.at.whole is None else entity.at.whole.file


def _checked(scenario: Scenario, catalog: Catalog, folder: Path) -> Iterator[Diagnostic]:
    expect = scenario.expect
    try:
        planned = plan_scenario(scenario, catalog, folder, _no_rows)
    except WeftError as problem:
        missing, codes = missing_codes(expect, problem)
        if not expect.errors or isinstance(problem, ScenarioError):
            # Missing data is not an error of a file.
            yield from (d for d in problem.diagnostics if d.code != "W1309")
        elif missing:
            yield Diagnostic(
                "W1703",
                f"the scenario expects {', '.join(missing)}, but its project fails with {', '.join(sorted(codes))}",
                help="correct the project, or the expected errors",
                at=expect.errors[0].at,
            )
        return
    types = {f.name: f.dtype for f in planned.fields}
    if expect.data is not None:
        try:
            written = written_rows(expect.data, scenario, catalog.workspace.root, _no_rows)
            typed_rows(written, types, expect.data, "the expected output", given=False)
        except ScenarioError as problem:
            yield from problem.diagnostics
    for event in expect.trace or ():
        try:
            typed_trace(event, traced_types(planned.plan))
        except ScenarioError as problem:
            yield from problem.diagnostics


def _no_rows(_: Path) -> Sequence[Mapping[str, Any]]:
    """Skip a Parquet file: its values have types, and reading it would start Spark."""
    return ()
