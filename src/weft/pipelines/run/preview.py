"""preview: what one operation would do to the rows of a period, without writing anything."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from weft.core.calendar import Period
from weft.core.names import format_list
from weft.core.types import BOOLEAN, NULL, Field
from weft.errors import Diagnostic, ExpressionError, OperationError
from weft.expr import check, parse
from weft.io.spark.session import Session
from weft.pipelines.model.project import Project
from weft.pipelines.model.workspace import Workspace
from weft.pipelines.plan.operations.resolved import ResolvedOutput, WorkingSet
from weft.pipelines.plan.project import ProjectPlan, resolve_project
from weft.pipelines.plan.scopes import OperationScope
from weft.pipelines.run.execute import Opener, RunOptions
from weft.pipelines.run.failing import told
from weft.pipelines.run.trace import ROW_ID, changed_rows, events_of, rows_of
from weft.pipelines.spark.frame import Lowering, RunMoment, WorkingFrame, holds
from weft.pipelines.spark.lower import lower_operation, lower_output, opened
from weft.pipelines.spark.read import read_table
from weft.pipelines.store.lifecycle import build_catalog
from weft.pipelines.store.reader import StoreReader

PREVIEW = "preview"
"""The run id that rows of a preview carry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """Rows before and after an operation, pair by pair; before is None for a row that it adds.

    `changed` names, for each row, the columns that differ.
    """

    seq: int
    name: str
    type: str
    columns: tuple[str, ...]
    before: tuple[Mapping[str, Any] | None, ...]
    after: tuple[Mapping[str, Any], ...]
    changed: tuple[tuple[str, ...], ...]
    warnings: tuple[Diagnostic, ...] = ()


def preview(
    workspace: Workspace,
    project: Project,
    seq: int,
    period: Period | str,
    *,
    reader: StoreReader | None,
    session: Session | Opener,
    rows: int = 20,
    where: str | None = None,
    options: RunOptions = RunOptions(),  # noqa: B008  # a frozen value
) -> Preview:
    """Return up to `rows` rows that an operation changes, or that an output writes.

    `where` is a condition on the columns after the operation.
    """
    catalog = build_catalog(workspace, reader)
    calendar = catalog.calendar(project.calendar)
    wanted = calendar.parse(period) if isinstance(period, str) else period
    run_at = options.run_at or dt.datetime.now(dt.UTC)
    plan = resolve_project(
        project,
        catalog,
        period=wanted,
        calendar=calendar,
        known_at=options.known_at or run_at,
        draft=True,
    )
    position = next((i for i, op in enumerate(plan.operations) if op.seq == seq), None)
    if position is None:
        raise OperationError(
            f"project {project.name!r} has no operation {seq}",
            code="W1401",
            help=f"it has {format_list(str(op.seq) for op in plan.operations)}",
        )
    op = plan.operations[position]
    typed = None if where is None else _condition(where, op.after)
    spark = (session() if callable(session) else session).spark
    env = Lowering(
        session=spark,
        read=lambda read: read_table(spark, read, catalog, workspace.root, run_at=run_at),
        run=RunMoment(
            run_id=PREVIEW,
            project_id=project.id,
            period=wanted,
            at=run_at,
            today=options.today or run_at.date(),
        ),
    )
    try:
        frame = opened(plan, env)
        for earlier in plan.operations[:position]:
            frame = lower_operation(frame, earlier, env)
        if isinstance(op, ResolvedOutput):
            return _written(frame, op, env, plan, rows, typed)
        return _changed(frame, plan, position, env, rows, typed)
    except Exception as failure:
        error = told(failure, f"operation {op.seq} {op.name!r}", env)
        raise error from failure


def _condition(text: str, working: WorkingSet) -> Any:
    typed = check(parse(text), OperationScope(working=working))
    if typed.dtype not in (BOOLEAN, NULL):
        raise ExpressionError(
            f"the condition gives {typed.dtype}, true or false is wanted",
            code="W1406",
            help="compare it with something, as in ... = 1",
        )
    return typed


def _changed(
    frame: WorkingFrame, plan: ProjectPlan, position: int, env: Lowering, most: int, typed: Any
) -> Preview:
    op = plan.operations[position]
    after = lower_operation(frame, op, env)
    chosen = after if typed is None else after.with_rows(after.df.filter(holds(typed, after.F, env)))
    found = events_of(changed_rows(frame, chosen), op.seq, frame.schema, after.schema, most=most)
    found = tuple(sorted(found, key=lambda e: str(e.row[ROW_ID])))
    return Preview(
        seq=op.seq,
        name=op.name,
        type=next(o.type for o in plan.project.operations if o.seq == op.seq),
        columns=after.schema.names,
        before=tuple(e.before for e in found),
        after=tuple(e.row for e in found),
        changed=tuple(tuple(e.diff) if e.change != "deleted" else ("_deleted",) for e in found),
        warnings=plan.warnings,
    )


def _written(
    frame: WorkingFrame, op: ResolvedOutput, env: Lowering, plan: ProjectPlan, most: int, typed: Any
) -> Preview:
    if typed is not None:
        frame = frame.with_rows(frame.df.filter(holds(typed, frame.F, env)))
    written = lower_output(frame, op, env).limit(most)
    fields = tuple(Field(name, op.before.schema[name].dtype) for name in op.columns)
    rows = tuple(rows_of(written, fields))
    return Preview(
        seq=op.seq,
        name=op.name,
        type="output",
        columns=op.columns,
        before=rows,
        after=rows,
        changed=((),) * len(rows),
        warnings=plan.warnings,
    )
