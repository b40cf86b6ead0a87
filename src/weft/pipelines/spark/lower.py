"""Operations on DataFrames: the working set after each one, the rows that some add, the rows of each output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from weft.core.types import DATE, STRING, DType, Field, Schema
from weft.expr.spark.frames import functions_of
from weft.expr.spark.types import cast_to, literal
from weft.io.datasource import PERIOD
from weft.pipelines.model.values import PERIOD_FROM, PERIOD_TO, RowKind
from weft.pipelines.plan.operations.resolved import (
    HIDDEN,
    ResolvedAggregate,
    ResolvedAppend,
    ResolvedDelete,
    ResolvedOperation,
    ResolvedOutput,
    ResolvedUpdate,
)
from weft.pipelines.plan.project import ProjectPlan
from weft.pipelines.spark.counts import BORN, DIED
from weft.pipelines.spark.frame import DELETED, UPDATED_AT, Lowering, WorkingFrame, compiled, holds, nothing, started
from weft.pipelines.spark.system_columns import identity, named
from weft.pipelines.spark.update import active_rows, lower_update, with_lookups

if TYPE_CHECKING:
    from types import ModuleType

    from pyspark.sql import Column, DataFrame

    from weft.expr import Typed


Keys = tuple[tuple[str, "Typed"], ...]
Values = tuple[tuple[str, "Typed", DType], ...]


def added_row_id(F: ModuleType, word: str, seq: int, env: Lowering, values: Sequence[tuple[Column, DType]]) -> Column:
    """Return the id of an added row: it depends on the project, the operation, the period and the values."""
    run = env.run
    return identity(F, [*named(F, word, run.project_id, str(seq), run.period.identifier), *values])


def own_columns(
    F: ModuleType, kind: RowKind, seq: int, dataset_id: str, table: str, env: Lowering
) -> dict[str, Column]:
    """Return Weft's own columns of a row that operation `seq` adds, except its id."""
    run, now = env.run, env.now(F)
    return {
        "_row_kind": F.lit(kind),
        "_source_dataset_id": F.lit(dataset_id),
        "_source_table": F.lit(table),
        "_created_by_project_id": F.lit(run.project_id),
        "_created_by_run_id": F.lit(run.run_id),
        "_created_at": now,
        "_updated_at": now,
        "_operation_seq": F.lit(seq).cast("long"),
        "_deleted": F.lit(False),
        "_labels": F.create_map().cast("map<string,string>"),
        PERIOD.name: F.lit(run.period.identifier),
        PERIOD_FROM.name: literal(F, run.period.start, DATE),
        PERIOD_TO.name: literal(F, run.period.end, DATE),
    }


def with_rows(
    frame: WorkingFrame, schema: Schema, rows: DataFrame, columns: Mapping[str, Column], seq: int, env: Lowering
) -> WorkingFrame:
    """Return the working set with the rows that operation `seq` adds behind its own.

    `columns` gives the columns of the added rows; missing ones are NULL on them.  Columns that are
    new to the working set are NULL on the rows that were there.
    """
    F = frame.F
    hidden, tally = frame.hidden, frame.tally
    if env.counts is not None:
        hidden = hidden if BORN in hidden else (*hidden, BORN)
        tally = tally.added(seq)
        columns = {**columns, BORN.name: F.lit(seq).cast("long")}
    there = {f.name for f in (*frame.schema.fields, *frame.hidden)}
    fields: tuple[Field, ...] = (*schema.fields, *hidden)
    old = [F.col(f.name) if f.name in there else nothing(F, f).alias(f.name) for f in fields]
    new = [
        columns[f.name].cast(cast_to(f.dtype)).alias(f.name) if f.name in columns else nothing(F, f).alias(f.name)
        for f in fields
    ]
    df = frame.df.select(*old).union(rows.select(*new))
    return replace(frame.with_rows(df), schema=schema, hidden=hidden, tally=tally)


def lower_aggregate(frame: WorkingFrame, op: ResolvedAggregate, env: Lowering) -> WorkingFrame:
    """Return the working set with one more row for each group; no job runs."""
    frame = frame.settled()
    F = frame.F
    rows = with_lookups(frame, op.lookups, env).df
    active = active_rows(op.selector, frame, F, env)
    if not op.include_summaries:
        detail = F.col("_row_kind") != F.lit("summary")
        active = detail if active is None else active & detail
    grouped = groups(rows if active is None else rows.filter(active), op.keys, op.values, F, env)
    columns = own_columns(F, "summary", op.seq, op.before.dataset.id, op.before.table, env)
    columns |= group_columns(F, "agg", op.seq, op.keys, op.values, env)
    return with_rows(frame, op.after.schema, grouped, columns, op.seq, env)


def groups(rows: DataFrame, keys: Keys, values: Values, F: ModuleType, env: Lowering) -> DataFrame:
    """Return one row for each group, its columns under names that no column of the working set has."""
    by = [compiled(typed, F, env).alias(f"{HIDDEN}_g{i}") for i, (_, typed) in enumerate(keys)]
    aggregates = [compiled(typed, F, env).alias(f"{HIDDEN}_v{i}") for i, (_, typed, _) in enumerate(values)]
    return rows.groupBy(*by).agg(*aggregates)


def group_columns(F: ModuleType, word: str, seq: int, keys: Keys, values: Values, env: Lowering) -> dict[str, Column]:
    """Return the columns of a group under the names they are stored in, and the id of its row."""
    by = [(F.col(f"{HIDDEN}_g{i}"), typed.dtype) for i, (_, typed) in enumerate(keys)]
    columns = {name: column for (name, _), (column, _) in zip(keys, by, strict=True)}
    columns |= {name: F.col(f"{HIDDEN}_v{i}") for i, (name, _, _) in enumerate(values)}
    return columns | {"_row_id": added_row_id(F, word, seq, env, by)}


def lower_append(frame: WorkingFrame, op: ResolvedAppend, env: Lowering) -> WorkingFrame:
    """Return the working set with the rows of the source; no job runs."""
    frame = frame.settled()
    rows = env.frame(op.read)
    F = functions_of(rows)
    if op.selector is not None:
        rows = rows.filter(holds(op.selector, F, env))
    columns = own_columns(F, "appended", op.seq, op.read.dataset.id, op.read.table.name, env)
    if op.keys is not None:
        rows = groups(rows, op.keys, op.values, F, env)
        columns |= group_columns(F, "app", op.seq, op.keys, op.values, env)
    else:
        columns |= _placed(op, F)
        # A new id: the source row may be in the working set already, or be appended by two operations.
        columns["_row_id"] = added_row_id(F, "app", op.seq, env, [(F.col("_row_id"), STRING)])
        columns |= {name: compiled(typed, F, env) for name, typed, _ in op.values}
    return with_rows(frame, op.after.schema, rows, columns, op.seq, env)


def _placed(op: ResolvedAppend, F: ModuleType) -> dict[str, Column]:
    """Return the time columns that rows of the source bring; others are those of the run."""
    if op.read.table.temporal_mode == "period":
        return {PERIOD.name: F.col(PERIOD.name)}
    if op.read.table.temporal_mode == "bitemporal":
        return {name: F.col(name) for name in (PERIOD_FROM.name, PERIOD_TO.name)}
    return {}


def lower_delete(frame: WorkingFrame, op: ResolvedDelete, env: Lowering) -> WorkingFrame:
    """Return the working set with the rows marked that the selector matches; no job runs."""
    frame = frame.settled()
    F = frame.F
    rows = with_lookups(frame, op.lookups, env)
    active = active_rows(op.selector, frame, F, env)
    hidden, tally = frame.hidden, frame.tally
    now = env.now(F)
    columns = {
        DELETED: F.lit(True) if active is None else F.col(DELETED) | active,
        UPDATED_AT: now if active is None else F.when(active, now).otherwise(F.col(UPDATED_AT)),
    }
    if env.counts is not None:
        seq = F.lit(op.seq).cast("long")
        before = F.col(DIED.name) if DIED in hidden else F.lit(None).cast("long")
        columns[DIED.name] = seq if active is None else F.when(active, seq).otherwise(before)
        hidden = hidden if DIED in hidden else (*hidden, DIED)
        tally = tally.deleted(op.seq)
    after = replace(frame.with_rows(rows.df.withColumns(columns)), hidden=hidden, tally=tally, deleted=True)
    return after.cut() if op.lookups else after


def lower_output(frame: WorkingFrame, op: ResolvedOutput, env: Lowering) -> DataFrame:
    """Return what an output writes; one action on it also counts every operation before it.

    An ordered output is one partition: the order is that of its file, and nothing is computed twice to
    find out where partitions begin.
    """
    F = frame.F
    df = with_lookups(frame, op.lookups, env).df
    out = None if op.selector is None else holds(op.selector, F, env)
    if frame.deleted and not op.include_deleted:
        visible = ~F.col(DELETED)
        out = visible if out is None else visible & out
    if env.counts is not None:
        df = env.counts.observed(df, frame.tally.written(op.seq), out)
    if out is not None:
        df = df.filter(out)
    if op.order_by:
        order = [F.col(n).asc_nulls_last() if up else F.col(n).desc_nulls_last() for n, up in op.order_by]
        df = df.repartition(1).sortWithinPartitions(*order, F.col("_row_id"))
    return df.select(*op.columns)


def lower_checkpoint(frame: WorkingFrame, env: Lowering) -> DataFrame:
    """Return the whole working set to be written down; one action on it counts every operation before it."""
    df = frame.df if env.counts is None else env.counts.observed(frame.df, frame.tally)
    return df.select(*frame.schema.names)


def opened(plan: ProjectPlan, env: Lowering) -> WorkingFrame:
    """Return the working set before the first operation: the rows of the input."""
    first = plan.operations[0].before if plan.operations else plan.final
    return started(env.read(plan.input), first)


def lower_operation(frame: WorkingFrame, op: ResolvedOperation, env: Lowering) -> WorkingFrame:
    """Return the working set after an operation; an output leaves it as it is."""
    match op:
        case ResolvedUpdate():
            return lower_update(frame, op, env)
        case ResolvedAggregate():
            return lower_aggregate(frame, op, env)
        case ResolvedAppend():
            return lower_append(frame, op, env)
        case ResolvedDelete():
            return lower_delete(frame, op, env)
        case _:
            return frame
