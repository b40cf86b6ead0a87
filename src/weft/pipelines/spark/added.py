"""Rows that an operation adds: Weft's own columns on them, and the union with the rows that are there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import TYPE_CHECKING

from weft.core.types import DATE, DType, Field, Schema
from weft.expr.spark.casts import literal
from weft.expr.spark.types import cast_to
from weft.io.datasource import PERIOD
from weft.pipelines.model.words import PERIOD_FROM, PERIOD_TO, RowKind
from weft.pipelines.spark.counts import BORN
from weft.pipelines.spark.frame import Lowering, WorkingFrame, nothing, run_time
from weft.pipelines.spark.system_columns import identity, named

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """What the added rows are and where they come from."""

    kind: RowKind
    seq: int
    dataset_id: str
    table: str


def made_id(
    F: ModuleType, word: str, seq: int, env: Lowering, values: Sequence[tuple[Column, DType]]
) -> Column:
    """Return the id of an added row: it depends on the project, the operation, the period and the values."""
    run = env.run
    return identity(F, [*named(F, word, run.project_id, str(seq), run.period.identifier), *values])


def own_columns(F: ModuleType, origin: Origin, env: Lowering) -> dict[str, Column]:
    """Return Weft's own columns of an added row, except its id."""
    run = env.run
    now = run_time(F, env)
    return {
        "_row_kind": F.lit(origin.kind),
        "_source_dataset_id": F.lit(origin.dataset_id),
        "_source_table": F.lit(origin.table),
        "_created_by_project_id": F.lit(run.project_id),
        "_created_by_run_id": F.lit(run.run_id),
        "_created_at": now,
        "_updated_at": now,
        "_operation_seq": F.lit(origin.seq).cast("long"),
        "_deleted": F.lit(False),
        "_labels": F.create_map().cast("map<string,string>"),
        PERIOD.name: F.lit(run.period.identifier),
        PERIOD_FROM.name: literal(F, run.period.start, DATE),
        PERIOD_TO.name: literal(F, run.period.end, DATE),
    }


def with_rows(
    frame: WorkingFrame,
    schema: Schema,
    rows: DataFrame,
    columns: Mapping[str, Column],
    origin: Origin,
    env: Lowering,
) -> WorkingFrame:
    """Return the working set with rows added behind its own.

    `columns` gives the columns of the added rows; what it leaves out is NULL on them.  Columns that are
    new to the working set are NULL on the rows that were there.
    """
    F = frame.F
    hidden, tally = frame.hidden, frame.tally
    if env.counts is not None:
        hidden = hidden if BORN in hidden else (*hidden, BORN)
        tally = tally.added(origin.seq)
        columns = {**columns, BORN.name: F.lit(origin.seq).cast("long")}
    there = {f.name for f in (*frame.schema.fields, *frame.hidden)}
    fields: tuple[Field, ...] = (*schema.fields, *hidden)
    old = [F.col(f.name) if f.name in there else nothing(F, f).alias(f.name) for f in fields]
    new = [
        columns[f.name].cast(cast_to(f.dtype)).alias(f.name)
        if f.name in columns
        else nothing(F, f).alias(f.name)
        for f in fields
    ]
    df = frame.df.select(*old).union(rows.select(*new))
    return replace(frame.with_rows(df), schema=schema, hidden=hidden, tally=tally)
