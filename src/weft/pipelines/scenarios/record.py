"""record: a run, reduced to a few rows, as a scenario that can be repeated."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.core.calendar import Period
from weft.core.names import quote, suggest
from weft.errors import RunError, ScenarioError
from weft.expr.spark.frames import functions_of
from weft.io.spark.session import Session
from weft.pipelines.model.build import entity_from_node
from weft.pipelines.model.compose import compose
from weft.pipelines.model.scenario import Scenario
from weft.pipelines.model.values import KNOWN_FROM, KNOWN_TO, temporal_columns
from weft.pipelines.model.workspace import Workspace
from weft.pipelines.plan.catalog import Catalog
from weft.pipelines.plan.operations.resolved import ResolvedAppend, ResolvedOutput, ResolvedUpdate
from weft.pipelines.plan.project import ProjectPlan
from weft.pipelines.plan.reads import Read
from weft.pipelines.run.failing import explain_failure
from weft.pipelines.run.prepare import inputs_of
from weft.pipelines.run.preview import collect_rows
from weft.pipelines.run.publish import replay_plan
from weft.pipelines.run.resume import changed_inputs
from weft.pipelines.scenarios.execute import run_scenario
from weft.pipelines.scenarios.reports import ScenarioResult, kebab, row_yaml, yaml_cell
from weft.pipelines.scenarios.values import typed_value
from weft.pipelines.spark.frame import Lowering, RunMoment, compiled, started
from weft.pipelines.spark.lower import lower_operation, lower_output
from weft.pipelines.spark.read import read_table
from weft.pipelines.store.reader import StoreReader
from weft.pipelines.store.records import short_id

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MOST = 500
"""How many rows of one table a scenario may hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A recorded scenario and its result."""

    file: Path
    rows: int
    result: ScenarioResult


def record(
    run_id: str,
    keys: Mapping[str, Sequence[str]],
    workspace: Workspace,
    *,
    reader: StoreReader,
    session: Session,
    name: str | None = None,
    out: Path | None = None,
) -> Recorded:
    """Write a scenario with the input rows of a run whose columns have the given values.

    The rows that these rows join are included.  The scenario is run once and must pass.
    """
    run = reader.run(run_id)
    snapshot = reader.snapshot(run.id)
    plan, catalog = replay_plan(snapshot, workspace.root)
    # Rows of data that has changed since would not give the output of the run.
    changed = changed_inputs(snapshot["inputs"], inputs_of(plan, catalog, workspace.root))
    if changed:
        raise RunError(changed.values())
    scenario_name = name or f"{run.project_name} {run.period} from run {short_id(run.id)}"
    file = out or Path("scenarios") / f"{kebab(scenario_name)}.yml"
    if (workspace.root / file).exists():
        raise ScenarioError(f"{file} already exists", code="W1704", help="choose another name with --name or --out")
    try:
        given, expected, output = _cut(plan, catalog, keys, workspace.root, run.run_at, session, run.id)
    except Exception as failure:
        raise explain_failure(failure, "recording") from failure
    text = _text(scenario_name, run.project_name, plan, given, expected, output, snapshot)
    scenario = entity_from_node(Scenario, compose(text, file.as_posix()))
    result = run_scenario(scenario, workspace, reader=reader, session=session)
    if result.status == "error":
        raise ScenarioError(result.diagnostics)
    (workspace.root / file).parent.mkdir(parents=True, exist_ok=True)
    (workspace.root / file).write_text(text, encoding="utf-8")
    return Recorded(file=file, rows=len(expected), result=result)


def _cut(
    plan: ProjectPlan,
    catalog: Catalog,
    keys: Mapping[str, Sequence[str]],
    root: Path,
    run_at: Any,
    session: Session,
    run_id: str,
) -> tuple[dict[str, tuple[Read, list[dict[str, Any]]]], list[dict[str, Any]], ResolvedOutput | None]:
    """Return the tables that the chosen rows need, and the rows of the last output."""
    spark = session.spark
    period = plan.period
    assert isinstance(period, Period)  # noqa: S101  # a run has one
    moment = RunMoment(run_id=run_id, project_id=plan.project.id, period=period, at=run_at, today=run_at.date())
    env = Lowering(session=spark, read=lambda read: read_table(spark, read, catalog, root, run_at=run_at), run=moment)
    rows = _chosen(env.read(plan.input), plan.input, keys)
    given = {plan.input.table.name: (plan.input, _collected(rows, plan.input))}
    if not given[plan.input.table.name][1]:
        key_text = ", ".join(f"{k}={'|'.join(v)}" for k, v in keys.items())
        raise ScenarioError(f"the run read no row with {key_text}", code="W1706", help="check the values in the input")
    frame = started(rows, plan.operations[0].before)
    last: ResolvedOutput | None = None
    expected: list[dict[str, Any]] = []
    for op in plan.operations:
        # What an operation joins is read before the operation runs: it may change the columns that are joined on.
        for read, needed in _needed(op, frame, env):
            name = read.table.name if read.pin.role in ("input", "lookup") else read.dataset.name
            known = given.setdefault(name, (read, []))[1]
            known += [row for row in _collected(needed, read) if row not in known]
        if isinstance(op, ResolvedOutput):
            last = op
            fields = tuple(op.before.schema[n] for n in op.columns if not n.startswith("_"))
            expected = list(collect_rows(lower_output(frame, op, env), fields))
        else:
            frame = lower_operation(frame, op, env)
    return given, expected, last


def _chosen(rows: DataFrame, read: Read, keys: Mapping[str, Sequence[str]]) -> DataFrame:
    F: Any = functions_of(rows)
    schema = {c.name: c.dtype for c in read.table.columns}
    for name, values in keys.items():
        if name not in schema:
            hint = suggest(name, schema, "it has", most=1)
            raise ScenarioError(f"the input has no column {name!r}", code="W1706", help=hint)
        typed = [typed_value(v, schema[name]) for v in values]
        rows = rows.filter(F.col(quote(name)).isin(*typed))
    return rows


def _needed(op: Any, frame: Any, env: Lowering) -> list[tuple[Read, DataFrame]]:
    """Return the rows of other tables that an operation joins with the chosen rows."""
    if isinstance(op, ResolvedAppend):
        return [(op.read, env.read(op.read))]
    needed = []
    F = frame.F
    for step in op.lookups:
        right = env.read(step.read)
        if step.parent is None:
            left = frame.df.select(*(F.col(quote(a)).alias(f"__k{i}") for i, (a, _) in enumerate(step.keys)))
            right = _meeting(right, [b for _, b in step.keys], left, F)
        needed.append((step.read, right))
    for step in op.joins if isinstance(op, ResolvedUpdate) else ():
        right = env.read(step.read)
        if not step.extension:  # a condition on an earlier join is not evaluated: all rows are included
            keys = [compiled(typed, F, env).alias(f"__k{i}") for i, (_, typed) in enumerate(step.keys)]
            right = _meeting(right, list(step.right_keys), frame.df.select(*keys), F)
        needed.append((step.read, right))
    return needed


def _meeting(right: DataFrame, columns: Sequence[str], left: DataFrame, F: Any) -> DataFrame:
    if not columns:
        return right
    same = (F.col(quote(column)) == F.col(f"__k{i}") for i, column in enumerate(columns))
    return right.join(left.distinct(), reduce(operator.and_, same), "left_semi")


def _collected(rows: DataFrame, read: Read) -> list[dict[str, Any]]:
    own = [f for f in (*temporal_columns(read.table.temporal_mode), KNOWN_FROM, KNOWN_TO) if f.name in rows.columns]
    fields = [*(f for f in read.table.schema.fields if f.name in rows.columns), *own]
    # One row more than allowed shows that there are too many.
    collected = list(collect_rows(rows.limit(MOST + 1), fields))
    if len(collected) > MOST:
        raise ScenarioError(
            f"table {read.table.name!r} would have more than {MOST} rows", code="W1706", help="name fewer keys"
        )
    return collected


def _text(
    name: str,
    project: str,
    plan: ProjectPlan,
    given: Mapping[str, tuple[Read, list[dict[str, Any]]]],
    expected: Sequence[Mapping[str, Any]],
    output: ResolvedOutput | None,
    snapshot: Mapping[str, Any],
) -> str:
    lines = [
        "scenario:",
        f"  name: {yaml_cell(name)}",
        f"  project: {yaml_cell(project)}",
        f"  period: {yaml_cell(str(plan.period))}",
        f"  known_at: {yaml_cell(snapshot['known_at'])}",
        f"  today: {yaml_cell(snapshot['today'])}",
        "  given:",
    ]
    for table, (_, rows) in given.items():
        lines.append(f"    {table}:" if rows else f"    {table}: []")
        lines += [f"      - {row_yaml(row)}" for row in rows]
    lines += ["  expect:"]
    if output is not None:
        lines.append(f"    output: {output.seq}")
    lines += ["    match: exact", "    rows:" if expected else "    rows: []"]
    lines += [f"      - {row_yaml(row)}" for row in expected]
    return "\n".join(lines) + "\n"
