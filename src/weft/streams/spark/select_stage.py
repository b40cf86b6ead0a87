"""The last stage of a statement: WHERE and the select list over joined rows, with a column for each slot."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Hashable
from types import ModuleType
from typing import Any

from pyspark.sql import Column, DataFrame

from weft.expr.spark.columns import compile_expr
from weft.expr.spark.frames import functions_of
from weft.expr.spark.types import cast_to
from weft.streams.plan.resolved import Slot, StatementPlan


def slot_name(slot: Slot) -> str:
    """Return the name of the flat column of a slot.

    >>> slot_name(("i", 0, 3)), slot_name(("t", 1)), slot_name(("w", 0))
    ('i0_3', 't1', 'w0')
    """
    return slot[0] + "_".join(str(part) for part in slot[1:])


def slot_resolver(F: ModuleType) -> Callable[[Hashable], Column]:
    """Return a function from slots to columns; windows are TIMESTAMP, not microseconds."""

    def column(slot: Any) -> Column:
        value: Column = F.col(slot_name(slot))
        return F.timestamp_micros(value) if slot[0] == "w" else value

    return column


EVENT_TIME = "__weft_event_time"
"""Column of event times in microseconds, for sinks that write them."""


def select_stage(frame: DataFrame, plan: StatementPlan, *, today: dt.date, with_event_time: bool = False) -> DataFrame:
    """Return the rows of the sink; `frame` has a flat column for every slot that the plan reads."""
    F: Any = functions_of(frame)
    column = slot_resolver(F)
    kept = frame
    if plan.where is not None:
        kept = kept.filter(compile_expr(plan.where, column, F, today=today))
    columns = [compile_expr(o.typed, column, F, today=today).cast(cast_to(o.dtype)).alias(o.name) for o in plan.output]
    if with_event_time:
        columns.append(event_time_of(frame, plan, today=today).alias(EVENT_TIME))
    return kept.select(*columns)


def event_time_of(frame: DataFrame, plan: StatementPlan, *, today: dt.date) -> Column:
    """Return the event time of an output row: as the statement defines it, else the greatest of its sources."""
    F: Any = functions_of(frame)
    if plan.event_time is not None:
        time_expr: Column = F.unix_micros(
            compile_expr(plan.event_time, slot_resolver(F), F, today=today).cast("timestamp")
        )
        return time_expr
    names = [slot_name(("t", i.number)) for i in plan.inputs if i.stream.event_time is not None]
    there = [F.col(name) for name in names if name in frame.columns]
    if len(there) < 2:  # Spark refuses GREATEST of fewer columns
        single: Column = there[0] if there else F.lit(None).cast("bigint")
        return single
    time: Column = F.greatest(*there)  # ignores NULL, so an unmatched row has the time of its only source
    return time
