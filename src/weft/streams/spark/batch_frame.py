"""A statement over all existing rows as one batch query, with the joins of the batch API.

Before::

    SELECT .. FROM orders o LEFT JOIN shipments s ON .. WITHIN '24h'        a plan for streams

After::

    admitted rows of o  interval join  admitted rows of s, then WHERE and the select list

Malformed rows, rows without a time and duplicates are left out by the policies of their stream, as in a stream;
no row is late, because all rows are available.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from weft.core.types import DType
from weft.errors import StreamPlanError
from weft.expr.spark.frames import functions_of, window_of
from weft.expr.spark.types import to_spark
from weft.joins.resolve.resolved import Exact, OutputColumn, SameWindow, Side
from weft.joins.spark import equi, interval, window_join
from weft.streams.plan.resolved import Input, KernelStep, Slot, StatementPlan, Step, TableInput, column_slot, time_slot
from weft.streams.spark.files import read_batch
from weft.streams.spark.kafka import read_kafka_batch
from weft.streams.spark.readable import RAW, ROW_MARK, TIME, column_name, raise_where
from weft.streams.spark.select_stage import select_stage, slot_name
from weft.streams.spark.table_stage import read_table, table_slots
from weft.streams.sql.spec import StreamSpec

_FIRST = "__weft_place"


def batch_frame(
    spark: SparkSession,
    plan: StatementPlan,
    root: Path,
    *,
    started: dt.datetime,
    inputs: Mapping[str, DataFrame] | None = None,
) -> DataFrame:
    """Return the rows of a statement's sink; no job runs.

    `inputs` gives the rows of streams by name where they are not read from their source: frames of
    `t`, `raw`, `c0` ..  `started` is the clock of rows without a time and of TODAY().
    """
    frames = {}
    for source in plan.inputs:
        own = (inputs or {}).get(source.stream.name)
        rows = read_rows(spark, source.stream, root) if own is None else own
        frames[source.number] = _admitted_rows(rows, plan, source, started)
    frames |= {source.number: table_slots(source, read_table(spark, source.table, root)) for source in plan.tables}
    joined = frames[plan.steps[0].left[0] if plan.steps else plan.inputs[0].number]
    for step in plan.steps:
        joined = _join_step(joined, frames[step.right], plan, step)
    return select_stage(joined, plan, today=started.astimezone(dt.UTC).date())


def read_rows(spark: SparkSession, stream: StreamSpec, root: Path) -> DataFrame:
    """Return the existing rows of a stream of files or Kafka; raise W2122 for other connectors."""
    connector = stream.connector["connector"]
    if connector == "files":
        return read_batch(spark, stream, root)
    if connector == "kafka":
        return read_kafka_batch(spark, stream)
    raise StreamPlanError(
        f"stream {stream.name!r} has the connector {connector!r}, which has no rows before it runs",
        code="W2122",
        help="run it as a stream: `weft stream run JOB --available`",
        at=stream.at,
    )


def _admitted_rows(rows: DataFrame, plan: StatementPlan, source: Input, started: dt.datetime) -> DataFrame:
    """Return the rows that the policies of the stream admit, with a flat column for each slot."""
    F: Any = functions_of(rows)
    stream = source.stream
    raw, time = F.col(RAW), F.col(TIME)
    if stream.malformed == "fail":
        problem = f"{ROW_MARK} W2208 stream {stream.name!r} has a row that cannot be parsed"
        rows = raise_where(F, rows, raw.isNotNull(), raw, problem)
    rows = rows.filter(raw.isNull())
    policy = _missing_time_policy(plan, source)
    if policy == "fail":
        problem = f"{ROW_MARK} W2207 stream {stream.name!r} has a row without event time"
        row = F.to_json(F.struct(*(name for name in rows.columns if name not in (TIME, RAW))))
        rows = raise_where(F, rows, time.isNull(), row, problem)
    if policy == "wall_clock":
        micros = (started - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1)
        rows = rows.withColumn(TIME, F.coalesce(time, F.lit(micros).cast("bigint")))
    elif policy is not None:
        rows = rows.filter(time.isNotNull())
    if stream.dedup:
        rows = _deduplicate(rows, stream)
    columns = [F.col(column_name(i)).alias(slot_name(column_slot(source.number, i))) for i in source.columns]
    return rows.select(*columns, time.alias(slot_name(time_slot(source.number))))


def _missing_time_policy(plan: StatementPlan, source: Input) -> str | None:
    """Return the policy for rows without a time; None if no join uses the time of the stream."""
    for step in plan.kernel_steps:
        if source.number in (*step.left, step.right):
            return step.missing_event_time if step.axis is not None else None
    return None


def _deduplicate(rows: DataFrame, stream: StreamSpec) -> DataFrame:
    """Return the earliest row of each key; of equal times the least by its columns, NULL first."""
    F: Any = functions_of(rows)
    names = [column_name(stream.columns.index(name)) for name in stream.dedup]
    # All columns, so that the kept row does not depend on the order in which Spark reads files.
    order = [F.col(n).asc_nulls_first() for n in (TIME, *rows.columns[2:])]
    place = F.row_number().over(window_of(rows).partitionBy(*names).orderBy(*order))
    return rows.withColumn(_FIRST, place).filter(F.col(_FIRST) == 1).drop(_FIRST)


def _join_step(left: DataFrame, right: DataFrame, plan: StatementPlan, step: Step) -> DataFrame:
    """Return the join of a step by the batch API, as flat columns."""
    F: Any = functions_of(left)
    sides: dict[Side, list[tuple[Slot, DType]]] = {
        "left": [slot for number in step.left for slot in _list_slots(plan, number)],
        "right": _list_slots(plan, step.right),
    }
    match = step.resolved.match
    # Windows are added to the joined rows below: the batch join has no columns for them.
    per_window = isinstance(match, SameWindow) and match.per_window
    resolved = replace(
        step.resolved,
        match=replace(match, per_window=False) if isinstance(match, SameWindow) else match,
        output=tuple(_output_columns(sides, {"left": left.columns, "right": right.columns})),
    )
    lower = equi.lower if isinstance(match, Exact) else interval.lower
    if isinstance(match, SameWindow):
        lower = window_join.lower
    joined = lower(_declared_columns(F, left, sides["left"]), _declared_columns(F, right, sides["right"]), resolved)
    # The batch API joins on timestamps; stages of a stream have times in microseconds.
    times = [slot_name(s) for both in sides.values() for s, _ in both if s[0] == "t"]
    joined = joined.withColumns({t: F.unix_micros(F.col(t)) for t in times if t in joined.columns})
    if isinstance(step, KernelStep) and isinstance(match, SameWindow) and step.reach.has_windows:
        joined = _add_windows(F, joined, step, match, per_window=per_window)
    return joined


def _list_slots(plan: StatementPlan, number: int) -> list[tuple[Slot, DType]]:
    """Return the columns of a source in the order in which a resolved join has them."""
    source = plan.source(number)
    declared = source.table.columns if isinstance(source, TableInput) else source.stream.columns
    slots: list[tuple[Slot, DType]] = [(column_slot(number, i), f.dtype) for i, f in enumerate(declared.fields)]
    if isinstance(source, Input):
        slots.append((time_slot(number), declared.fields[0].dtype))
    return slots


def _declared_columns(F: Any, frame: DataFrame, slots: list[tuple[Slot, DType]]) -> DataFrame:
    """Return a side with all columns of its schema; unused ones are NULL."""
    there = set(frame.columns)
    columns = []
    for slot, dtype in slots:
        name = slot_name(slot)
        if slot[0] == "t":
            columns.append(F.timestamp_micros(F.col(name)).alias(name))
        else:
            columns.append(F.col(name) if name in there else F.lit(None).cast(to_spark(dtype)).alias(name))
    return frame.select(*columns)


def _output_columns(
    sides: Mapping[Side, list[tuple[Slot, DType]]], there: Mapping[Side, list[str]]
) -> list[OutputColumn]:
    return [
        OutputColumn(
            name=slot_name(slot),
            dtype=dtype,
            nullable=True,
            source=side,
            left=index if side == "left" else None,
            right=index if side == "right" else None,
        )
        for side, slots in sides.items()
        for index, (slot, dtype) in enumerate(slots)
        if slot_name(slot) in there[side]
    ]


def _add_windows(F: Any, joined: DataFrame, step: KernelStep, match: SameWindow, *, per_window: bool) -> DataFrame:
    """Return the rows with their first window, or a row for each window that both times share."""
    assert step.axis is not None and match.size is not None  # noqa: S101, PT018  # windows have both
    size, slide = match.size, match.slide or match.size
    times = [F.col(slot_name(slot)) for slot in step.axis]
    # Both ignore NULL, so for an unmatched row each is its own time.
    earlier, later = F.least(*times), F.greatest(*times)
    first = _floor(F, later - F.lit(size).cast("bigint"), slide) + F.lit(slide).cast("bigint")
    start = slot_name(("w", 0))
    if per_window:
        last = F.when(times[0].isNotNull() & times[1].isNotNull(), _floor(F, earlier, slide)).otherwise(first)
        joined = joined.withColumn(start, F.explode(F.sequence(first, last, F.lit(slide).cast("bigint"))))
    else:
        joined = joined.withColumn(start, first)
    return joined.withColumn(slot_name(("w", 1)), F.col(start) + F.lit(size).cast("bigint"))


def _floor(F: Any, time: Any, slide: int) -> Any:
    return time - F.pmod(time, F.lit(slide).cast("bigint"))
