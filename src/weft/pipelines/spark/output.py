"""output on Spark: the rows and columns that are written, counted on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.pipelines.plan.operations.resolved import ResolvedOutput
from weft.pipelines.spark.frame import DELETED, Lowering, WorkingFrame, holds
from weft.pipelines.spark.update import with_lookups

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


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
