"""append on Spark: rows of another dataset, added behind those that are there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.core.types import STRING
from weft.expr.spark.frames import functions_of
from weft.io.datasource import PERIOD
from weft.pipelines.model.words import PERIOD_FROM, PERIOD_TO
from weft.pipelines.plan.operations.resolved import ResolvedAppend
from weft.pipelines.spark.added import Origin, made_id, own_columns, with_rows
from weft.pipelines.spark.aggregate import group_columns, groups, key_values
from weft.pipelines.spark.frame import Lowering, WorkingFrame, compiled, holds

if TYPE_CHECKING:
    from types import ModuleType

    from pyspark.sql import Column


def lower_append(frame: WorkingFrame, op: ResolvedAppend, env: Lowering) -> WorkingFrame:
    """Return the working set with the rows of the source; no job runs."""
    frame = frame.settled()
    rows = env.frame(op.read)
    F = functions_of(rows)
    if op.selector is not None:
        rows = rows.filter(holds(op.selector, F, env))
    origin = Origin(kind="appended", seq=op.seq, dataset_id=op.read.dataset.id, table=op.read.table.name)
    columns = own_columns(F, origin, env)
    if op.keys is not None:
        rows = groups(rows, op.keys, op.values, F, env)
        columns["_row_id"] = made_id(F, "app", op.seq, env, key_values(op.keys, F))
        columns |= group_columns(op.keys, op.values, F)
    else:
        columns |= _placed(op, F)
        columns["_row_id"] = made_id(F, "app", op.seq, env, [(F.col("_row_id"), STRING)])
        columns |= {name: compiled(typed, F, env) for name, typed, _ in op.values}
    return with_rows(frame, op.after.schema, rows, columns, origin, env)


def _placed(op: ResolvedAppend, F: ModuleType) -> dict[str, Column]:
    """Return the time columns that rows of the source bring; others are those of the run."""
    if op.read.table.temporal_mode == "period":
        return {PERIOD.name: F.col(PERIOD.name)}
    if op.read.table.temporal_mode == "bitemporal":
        return {name: F.col(name) for name in (PERIOD_FROM.name, PERIOD_TO.name)}
    return {}
