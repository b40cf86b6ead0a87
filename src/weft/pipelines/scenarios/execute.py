"""Execution of scenarios by the real engine: planned, read and computed like a run, without writing."""

from __future__ import annotations

import datetime as dt
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from weft.core.names import format_list
from weft.core.types import DType, Field
from weft.errors import Diagnostic, ScenarioError, WeftError
from weft.expr.spark.frames import schema_of
from weft.io.spark.session import Session
from weft.pipelines.model.scenario import Expect, Scenario
from weft.pipelines.model.workspace import Workspace
from weft.pipelines.plan.operations.resolved import OWN_NAMES, ResolvedOutput
from weft.pipelines.plan.project import ProjectPlan
from weft.pipelines.run.execute import Opener, open_once
from weft.pipelines.run.failing import explain_failure
from weft.pipelines.run.preview import Event, changed_rows, collect_rows, events_of
from weft.pipelines.scenarios.compare import Comparing, Mismatch, compare_rows, compare_trace, metadata_mismatches
from weft.pipelines.scenarios.planning import PlannedScenario, missing_codes, plan_scenario, traced_types
from weft.pipelines.scenarios.reports import ScenarioResult
from weft.pipelines.scenarios.values import typed_rows, written_rows
from weft.pipelines.spark.frame import DELETED, Lowering, RunMoment, WorkingFrame
from weft.pipelines.spark.lower import lower_operation, lower_output, opened
from weft.pipelines.spark.read import read_table
from weft.pipelines.store.lifecycle import build_catalog
from weft.pipelines.store.reader import StoreReader

TEST_RUN = "00000000-0000-7000-8000-000000000000"
"""The run id that rows of a scenario carry."""

_RUN_AT = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
"""A fixed moment, so that a scenario gives the same rows on every day."""
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Produced:
    """The result of a scenario: the rows of its output, and the changes of each operation."""

    plan: ProjectPlan
    fields: tuple[Field, ...]
    rows: tuple[Row, ...]
    events: tuple[Event, ...] = ()


def run_scenarios(
    scenarios: Sequence[Scenario],
    workspace: Workspace,
    *,
    reader: StoreReader | None,
    session: Session | Opener,
    on_result: Callable[[ScenarioResult], None] | None = None,
) -> tuple[ScenarioResult, ...]:
    """Run scenarios one after another on one session and return their results."""
    open_session = open_once(session)
    results = []
    for scenario in scenarios:
        result = run_scenario(scenario, workspace, reader=reader, session=open_session(is_small=True))
        results.append(result)
        if on_result is not None:
            on_result(result)
    return tuple(results)


def run_scenario(
    scenario: Scenario, workspace: Workspace, *, reader: StoreReader | None, session: Session
) -> ScenarioResult:
    """Run one scenario and compare the result with its expectations."""
    started = time.monotonic()
    key: tuple[str, ...] = ()
    mismatches: tuple[Mismatch, ...] = ()
    actual: tuple[Row, ...] | None = None
    warnings: tuple[Diagnostic, ...] = ()
    problems: tuple[Diagnostic, ...] = ()
    try:
        with tempfile.TemporaryDirectory(prefix="weft-scenario-") as folder:
            produced = produce(scenario, workspace, reader, session, Path(folder))
        actual, warnings = produced.rows, produced.plan.warnings
        key = produced.plan.input.dataset.natural_key_columns
        mismatches = tuple(_mismatches(scenario, produced, workspace.root, session))
    except WeftError as problem:
        if scenario.expect.errors and not isinstance(problem, ScenarioError):
            mismatches = tuple(_errors_expected(scenario.expect, problem))
        else:
            problems = problem.diagnostics
    return ScenarioResult(
        name=scenario.name,
        file=scenario.file,
        status="error" if problems else "fail" if mismatches else "pass",
        seconds=time.monotonic() - started,
        mismatches=mismatches,
        diagnostics=problems,
        warnings=warnings,
        actual=actual,
        key=key,
    )


def produce(
    scenario: Scenario, workspace: Workspace, reader: StoreReader | None, session: Session, folder: Path
) -> Produced:
    """Compute the output and the changes of a scenario."""
    planned = plan_scenario(scenario, build_catalog(workspace, reader), folder, partial(_read_parquet, session))
    plan, catalog, period = planned.plan, planned.catalog, planned.period
    moment = RunMoment(
        run_id=TEST_RUN,
        project_id=plan.project.id,
        period=period,
        at=scenario.known_at or _RUN_AT,
        today=scenario.today or period.end_date,
    )
    env = Lowering(
        session=session.spark,
        read=lambda read: read_table(session.spark, read, catalog, workspace.root, run_at=moment.at),
        run=moment,
    )
    try:
        return _compute(scenario, planned, env)
    except Exception as failure:
        raise explain_failure(failure, f"scenario {scenario.name!r}", env) from failure


def _compute(scenario: Scenario, planned: PlannedScenario, env: Lowering) -> Produced:
    plan, target = planned.plan, planned.output
    frame = opened(plan, env)
    events: list[Event] = []
    for op in plan.operations:
        # Operations behind the output that is compared cannot change its rows.
        if op is target:
            break
        if isinstance(op, ResolvedOutput):
            continue
        after = lower_operation(frame, op, env)
        if scenario.expect.trace is not None:
            events += events_of(changed_rows(frame, after), op.seq, frame.schema, after.schema)
        frame = after
    return Produced(plan=plan, fields=planned.fields, rows=_rows(frame, planned, env), events=tuple(events))


def _rows(frame: WorkingFrame, planned: PlannedScenario, env: Lowering) -> tuple[Row, ...]:
    if planned.output is None:
        return tuple(collect_rows(frame.clean().filter(~frame.F.col(DELETED)), planned.fields))
    return tuple(collect_rows(lower_output(frame, planned.output, env), planned.fields))


def _read_parquet(session: Session, path: Path) -> Sequence[Row]:
    frame = session.spark.read.parquet(str(path))
    return tuple(collect_rows(frame, schema_of(frame).fields))


def _mismatches(scenario: Scenario, produced: Produced, root: Path, session: Session) -> Iterator[Mismatch]:
    expect, rows = scenario.expect, produced.rows
    if expect.errors:
        codes = ", ".join(code.text for code in expect.errors)
        yield Mismatch(kind="missing_error", text=f"expected {codes}, but nothing failed")
    if expect.count is not None and expect.count != len(rows):
        yield Mismatch(kind="row_count", text=f"expected {expect.count} rows, found {len(rows)}")
    yield from _pins(expect, produced.plan)
    if expect.metadata:
        yield from metadata_mismatches(rows)
    if expect.data is not None:
        yield from _data(scenario, produced, root, session)
    if expect.trace is not None:
        yield from compare_trace(expect, produced.events, traced_types(produced.plan))


def _data(scenario: Scenario, produced: Produced, root: Path, session: Session) -> Iterator[Mismatch]:
    expect = scenario.expect
    assert expect.data is not None  # noqa: S101  # checked by the caller

    written = written_rows(expect.data, scenario, root, partial(_read_parquet, session))
    types: dict[str, DType] = {f.name: f.dtype for f in produced.fields}
    named = dict.fromkeys(name for row in written for name in row)
    missing = [name for name in named if name not in types]
    if missing:
        text = f"the output has no column {format_list(missing)}; it has {format_list(types, most=40)}"
        yield Mismatch(kind="schema", columns=tuple(missing), text=text)
        written = tuple({n: v for n, v in row.items() if n in types} for row in written)
    if expect.columns == "exact":
        more = [n for n in types if n not in named and (expect.metadata or n not in OWN_NAMES)]
        if more and written:
            yield Mismatch(kind="schema", columns=tuple(more), text=f"the output also has {format_list(more)}")
    expected = typed_rows(written, types, expect.data, "the expected output", given=False)
    how = Comparing(
        match=expect.match,
        ordered=expect.ordered,
        key=produced.plan.input.dataset.natural_key_columns,
        tolerance=expect.tolerance,
    )
    yield from compare_rows(expected, produced.rows, how)


def _pins(expect: Expect, plan: ProjectPlan) -> Iterator[Mismatch]:
    known = {pin.alias: pin.dataset_version for pin in plan.pins}
    for alias, version in expect.pins.items():
        if known.get(alias) != version:
            took = "nothing of that name" if alias not in known else f"version {known[alias]}"
            yield Mismatch(kind="pin", text=f"{alias}: expected version {version}, the plan reads {took}")


def _errors_expected(expect: Expect, problem: WeftError) -> Iterator[Mismatch]:
    missing, codes = missing_codes(expect, problem)
    if missing:
        text = f"expected {', '.join(missing)}, but it failed with {', '.join(sorted(codes))}: {problem.message}"
        yield Mismatch(kind="missing_error", text=text)
