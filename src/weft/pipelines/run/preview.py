"""preview: the effect of one operation on the rows of a period, without writing anything.

The rows before and after an operation, joined on ``_row_id``::

    after only                      created
    deleted after, not before       deleted
    a column differs                updated, with the old and the new value of each
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from weft.core.calendar import Period
from weft.core.names import format_list, quote
from weft.core.types import BOOLEAN, NULL, TIMESTAMP, Field, Schema
from weft.errors import Diagnostic, ExpressionError, OperationError
from weft.expr import check, parse
from weft.expr.spark.frames import functions_of
from weft.io.spark.session import Session
from weft.pipelines.model.project import Project
from weft.pipelines.model.workspace import Workspace
from weft.pipelines.plan.operations.resolved import OWN_NAMES, ResolvedOutput, WorkingSet
from weft.pipelines.plan.project import ProjectPlan, resolve_project
from weft.pipelines.plan.scopes import OperationScope
from weft.pipelines.run.execute import Opener, RunOptions, open_once
from weft.pipelines.run.failing import explain_failure
from weft.pipelines.run.prepare import is_small
from weft.pipelines.spark.frame import DELETED, Lowering, RunMoment, WorkingFrame, holds
from weft.pipelines.spark.lower import lower_operation, lower_output, opened
from weft.pipelines.spark.read import read_table
from weft.pipelines.store.lifecycle import build_catalog
from weft.pipelines.store.reader import StoreReader

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


ChangeKind = Literal["created", "updated", "deleted"]
ROW_ID = "_row_id"
LABELS = "_labels"
_BEFORE, _AFTER = "__weft_b_", "__weft_a_"
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A change of a row; `row` is the row after it, `diff` has the old and the new value of each changed column."""

    operation: int
    change: ChangeKind
    row: Mapping[str, Any]
    before: Mapping[str, Any] | None
    diff: Mapping[str, tuple[Any, Any]]


def traced(fields: Schema) -> tuple[Field, ...]:
    """Return the columns whose changes are traced: those of the user, and the labels."""
    return tuple(f for f in fields.fields if f.name not in OWN_NAMES or f.name == LABELS)


def changed_rows(before: WorkingFrame, after: WorkingFrame) -> DataFrame:
    """Return the rows that an operation changed: old columns and new ones side by side."""
    F: Any = after.F
    old = _named(before.clean(), before.schema, _BEFORE, F)
    new = _named(after.clean(), after.schema, _AFTER, F)
    joined = new.join(old, F.col(_AFTER + ROW_ID) == F.col(_BEFORE + ROW_ID), "left")
    known = {f.name for f in before.schema.fields}
    created = F.col(_BEFORE + ROW_ID).isNull()
    differs = created
    for field in traced(after.schema):
        # NULL equals NULL here: `!=` would be NULL, and the filter would drop the row.
        now = F.col(quote(_AFTER + field.name))
        was = F.col(quote(_BEFORE + field.name)) if field.name in known else F.lit(None)
        differs = differs | ~_comparable(now, field, F).eqNullSafe(_comparable(was, field, F))
    deleted = F.col(_AFTER + DELETED) & ~F.coalesce(F.col(_BEFORE + DELETED), F.lit(False))
    return joined.filter(differs | deleted)


def _named(df: DataFrame, schema: Schema, prefix: str, F: Any) -> DataFrame:
    return df.select(*(F.col(quote(f.name)).alias(prefix + f.name) for f in schema.fields))


def _comparable(column: Column, field: Field, F: Any) -> Column:
    """Return a value that Spark can compare: maps have no order."""
    comparable: Column = F.to_json(column) if field.dtype.is_nested else column
    return comparable


def events_of(
    rows: DataFrame, seq: int, before: Schema, after: Schema, *, most: int | None = None
) -> tuple[Event, ...]:
    """Return the events of changed rows."""
    F: Any = functions_of(rows)
    names = [(_BEFORE, f) for f in before.fields] + [(_AFTER, f) for f in after.fields]
    # By position: names of columns that differ in case only, or contain dots, are then no problem.
    columns = [plain_column(F.col(quote(p + f.name)), f, F).alias(f"c{i}") for i, (p, f) in enumerate(names)]
    wanted = rows.select(*columns)
    collected = (wanted if most is None else wanted.limit(most)).collect()
    values = ({p + f.name: plain_value(row[i], f) for i, (p, f) in enumerate(names)} for row in collected)
    return tuple(_event(value, seq, before, after) for value in values)


def _event(values: Mapping[str, Any], seq: int, before: Schema, after: Schema) -> Event:
    old = {f.name: values[_BEFORE + f.name] for f in before.fields}
    new = {f.name: values[_AFTER + f.name] for f in after.fields}
    is_new = old[ROW_ID] is None
    diff = {
        f.name: (None if is_new else old.get(f.name), new[f.name])
        for f in traced(after)
        if is_new or old.get(f.name) != new[f.name]
    }
    change: ChangeKind = "created" if is_new else "updated"
    if not is_new and new[DELETED] and not old[DELETED]:
        change = "deleted"
    return Event(operation=seq, change=change, row=new, before=None if is_new else old, diff=diff)


def plain_column(column: Column, field: Field, F: Any) -> Column:
    """Return a column that every client returns alike: times as microseconds since 1970."""
    # Clients convert a timestamp to the zone of their process, classic and Connect in different ways.
    plain: Column = F.unix_micros(column) if field.dtype == TIMESTAMP else column
    return plain


def plain_value(value: Any, field: Field) -> Any:
    """Return a value of a `plain_column`: times in UTC."""
    if value is not None and field.dtype == TIMESTAMP:
        return _EPOCH + dt.timedelta(microseconds=value)
    return value


def collect_rows(df: DataFrame, fields: Sequence[Field]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a frame as Python values."""
    F: Any = functions_of(df)
    wanted = df.select(*(plain_column(F.col(quote(f.name)), f, F).alias(f"c{i}") for i, f in enumerate(fields)))
    for row in wanted.collect():
        yield {f.name: plain_value(row[i], f) for i, f in enumerate(fields)}


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
        project, catalog, period=wanted, calendar=calendar, known_at=options.known_at or run_at, draft=True
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
    spark = open_once(session)(is_small=is_small(plan, catalog, workspace.root)).spark
    env = Lowering(
        session=spark,
        read=lambda read: read_table(spark, read, catalog, workspace.root, run_at=run_at),
        run=RunMoment(
            run_id=PREVIEW, project_id=project.id, period=wanted, at=run_at, today=options.today or run_at.date()
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
        raise explain_failure(failure, f"operation {op.seq} {op.name!r}", env) from failure


def _condition(text: str, working: WorkingSet) -> Any:
    typed = check(parse(text), OperationScope(working=working))
    if typed.dtype not in (BOOLEAN, NULL):
        raise ExpressionError(
            f"the condition has type {typed.dtype}; it must be boolean",
            code="W1406",
            help="compare it with a value, for example ... = 1",
        )
    return typed


def _changed(frame: WorkingFrame, plan: ProjectPlan, position: int, env: Lowering, most: int, typed: Any) -> Preview:
    op = plan.operations[position]
    after = lower_operation(frame, op, env)
    chosen = after if typed is None else after.with_rows(after.df.filter(holds(typed, after.F, env)))
    events = events_of(changed_rows(frame, chosen), op.seq, frame.schema, after.schema, most=most)
    # Spark returns rows in no fixed order.
    events = tuple(sorted(events, key=lambda e: str(e.row[ROW_ID])))
    return Preview(
        seq=op.seq,
        name=op.name,
        type=next(o.type for o in plan.project.operations if o.seq == op.seq),
        columns=after.schema.names,
        before=tuple(e.before for e in events),
        after=tuple(e.row for e in events),
        changed=tuple(tuple(e.diff) if e.change != "deleted" else ("_deleted",) for e in events),
        warnings=plan.warnings,
    )


def _written(
    frame: WorkingFrame, op: ResolvedOutput, env: Lowering, plan: ProjectPlan, most: int, typed: Any
) -> Preview:
    if typed is not None:
        frame = frame.with_rows(frame.df.filter(holds(typed, frame.F, env)))
    written = lower_output(frame, op, env).limit(most)
    fields = tuple(Field(name, op.before.schema[name].dtype) for name in op.columns)
    rows = tuple(collect_rows(written, fields))
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
