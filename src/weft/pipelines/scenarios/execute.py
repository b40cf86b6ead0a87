"""Scenarios run by the real engine: planned, read and computed as a run would, but nothing is written."""

from __future__ import annotations

import datetime as dt
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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
from weft.pipelines.run.failing import explain_failure
from weft.pipelines.run.preview import Event, changed_rows, events_of, rows_of
from weft.pipelines.scenarios.compare import (
    Comparing,
    Mismatch,
    compare_rows,
    compare_trace,
    metadata_mismatches,
)
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
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Produced:
    """What a scenario made: the rows of the output it looks at, and what each operation did to each row."""

    plan: ProjectPlan
    fields: tuple[Field, ...]
    rows: tuple[Row, ...]
    events: tuple[Event, ...] = ()


def run_scenarios(
    scenarios: Sequence[Scenario],
    workspace: Workspace,
    *,
    reader: StoreReader | None,
    session: Session | Callable[[], Session],
    on_result: Callable[[ScenarioResult], None] | None = None,
) -> tuple[ScenarioResult, ...]:
    """Run scenarios one after another on one session and return what became of each."""
    opened_session: Session | None = None if callable(session) else session
    found = []
    for scenario in scenarios:
        if opened_session is None:
            assert callable(session)  # noqa: S101  # it was no session
            opened_session = session()
        result = run_scenario(scenario, workspace, reader=reader, session=opened_session)
        found.append(result)
        if on_result is not None:
            on_result(result)
    return tuple(found)


def run_scenario(
    scenario: Scenario, workspace: Workspace, *, reader: StoreReader | None, session: Session
) -> ScenarioResult:
    """Run one scenario and say whether what it expects came out."""
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
        mismatches = judged(scenario, produced, workspace.root, session)
    except WeftError as problem:
        if scenario.expect.errors and not isinstance(problem, ScenarioError):
            mismatches = _errors_expected(scenario.expect, problem)
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
    """Compute what a scenario looks at."""

    def read_parquet(path: Path) -> Sequence[Row]:
        frame = session.spark.read.parquet(str(path))
        return tuple(rows_of(frame, schema_of(frame).fields))

    made = plan_scenario(scenario, build_catalog(workspace, reader), folder, read_parquet)
    plan, catalog, period = made.plan, made.catalog, made.period
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
        return _computed(scenario, made, env)
    except Exception as failure:
        raise explain_failure(failure, f"scenario {scenario.name!r}", env) from failure


def _computed(scenario: Scenario, made: PlannedScenario, env: Lowering) -> Produced:
    plan, wanted = made.plan, made.output
    frame = opened(plan, env)
    events: list[Event] = []
    for op in plan.operations:
        if op is wanted:
            break
        if isinstance(op, ResolvedOutput):
            continue
        after = lower_operation(frame, op, env)
        if scenario.expect.trace is not None:
            events += events_of(changed_rows(frame, after), op.seq, frame.schema, after.schema)
        frame = after
    return Produced(plan=plan, fields=made.fields, rows=_rows(frame, made, env), events=tuple(events))


def _rows(frame: WorkingFrame, made: PlannedScenario, env: Lowering) -> tuple[Row, ...]:
    if made.output is None:
        return tuple(rows_of(frame.clean().filter(~frame.F.col(DELETED)), made.fields))
    return tuple(rows_of(lower_output(frame, made.output, env), made.fields))


def judged(scenario: Scenario, produced: Produced, root: Path, session: Session) -> tuple[Mismatch, ...]:
    """Return how what came out differs from what the scenario expects."""
    return tuple(_mismatches(scenario, produced, root, session))


def _mismatches(scenario: Scenario, produced: Produced, root: Path, session: Session) -> Iterator[Mismatch]:
    expect, rows = scenario.expect, produced.rows
    if expect.errors:
        codes = ", ".join(said.text for said in expect.errors)
        yield Mismatch(kind="missing_error", text=f"expected {codes}, and nothing failed")
    if expect.count is not None and expect.count != len(rows):
        yield Mismatch(kind="row_count", text=f"expected {expect.count} rows, {len(rows)} came out")
    yield from _pins(expect, produced.plan)
    if expect.metadata:
        yield from metadata_mismatches(rows)
    if expect.data is not None:
        yield from _data(scenario, produced, root, session)
    if expect.trace is not None:
        yield from compare_trace(expect, produced.events, traced_types(produced.plan))


def _data(scenario: Scenario, produced: Produced, root: Path, session: Session) -> Iterator[Mismatch]:
    expect = scenario.expect
    assert expect.data is not None  # noqa: S101  # the caller looked

    def read_parquet(path: Path) -> Sequence[Row]:
        frame = session.spark.read.parquet(str(path))
        return tuple(rows_of(frame, schema_of(frame).fields))

    written = written_rows(expect.data, scenario, root, read_parquet)
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
            yield Mismatch(
                kind="schema", columns=tuple(more), text=f"the output also has {format_list(more)}"
            )
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
            yield Mismatch(kind="pin", text=f"{alias}: expected version {version}, the plan takes {took}")


def _errors_expected(expect: Expect, problem: WeftError) -> tuple[Mismatch, ...]:
    """Return the expected codes that did not come."""
    missing, codes = missing_codes(expect, problem)
    if not missing:
        return ()
    text = f"expected {', '.join(missing)}, it failed with {', '.join(sorted(codes))}: {problem.message}"
    return (Mismatch(kind="missing_error", text=text),)
