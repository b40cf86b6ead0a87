"""aggregate on Spark: groups of the rows that are there, added behind them.

Before::

    group_by: region        total := SUM(amount)

After::

    SELECT region, amount, NULL AS total, ... FROM working
    UNION ALL
    SELECT region, NULL, sum(amount), ... FROM working
    WHERE NOT _deleted AND _row_kind <> 'summary' GROUP BY region
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.core.types import DType
from weft.pipelines.plan.operations.resolved import HIDDEN, ResolvedAggregate
from weft.pipelines.spark.added import Origin, made_id, own_columns, with_rows
from weft.pipelines.spark.frame import Lowering, WorkingFrame, compiled
from weft.pipelines.spark.update import active_rows, with_lookups

if TYPE_CHECKING:
    from types import ModuleType

    from pyspark.sql import Column, DataFrame

    from weft.expr import Typed


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
    dataset = op.before.dataset
    origin = Origin(kind="summary", seq=op.seq, dataset_id=dataset.id, table=op.before.table)
    columns = own_columns(F, origin, env)
    columns["_row_id"] = made_id(F, "agg", op.seq, env, key_values(op.keys, F))
    columns |= group_columns(op.keys, op.values, F)
    return with_rows(frame, op.after.schema, grouped, columns, origin, env)


def groups(
    rows: DataFrame,
    keys: tuple[tuple[str, Typed], ...],
    values: tuple[tuple[str, Typed, DType], ...],
    F: ModuleType,
    env: Lowering,
) -> DataFrame:
    """Return one row for each group, its columns under names of their own."""
    by = [compiled(typed, F, env).alias(f"{HIDDEN}_g{i}") for i, (_, typed) in enumerate(keys)]
    made = [compiled(typed, F, env).alias(f"{HIDDEN}_v{i}") for i, (_, typed, _) in enumerate(values)]
    return rows.groupBy(*by).agg(*made)


def group_columns(
    keys: tuple[tuple[str, Typed], ...], values: tuple[tuple[str, Typed, DType], ...], F: ModuleType
) -> dict[str, Column]:
    """Return the columns of a group under the names they are stored in."""
    found = {name: F.col(f"{HIDDEN}_g{i}") for i, (name, _) in enumerate(keys)}
    return found | {name: F.col(f"{HIDDEN}_v{i}") for i, (name, _, _) in enumerate(values)}


def key_values(keys: tuple[tuple[str, Typed], ...], F: ModuleType) -> list[tuple[Column, DType]]:
    """Return the group values as parts of an id."""
    return [(F.col(f"{HIDDEN}_g{i}"), typed.dtype) for i, (_, typed) in enumerate(keys)]
