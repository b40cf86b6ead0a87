"""delete on Spark: rows are marked, never taken away."""

from __future__ import annotations

from dataclasses import replace

from weft.pipelines.plan.operations.resolved import ResolvedDelete
from weft.pipelines.spark.counts import DIED
from weft.pipelines.spark.frame import DELETED, UPDATED_AT, Lowering, WorkingFrame, run_time
from weft.pipelines.spark.update import active_rows, with_lookups


def lower_delete(frame: WorkingFrame, op: ResolvedDelete, env: Lowering) -> WorkingFrame:
    """Return the working set with the rows marked that the selector matches; no job runs."""
    frame = frame.settled()
    F = frame.F
    rows = with_lookups(frame, op.lookups, env)
    active = active_rows(op.selector, frame, F, env)
    hidden, tally = frame.hidden, frame.tally
    now = run_time(F, env)
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
