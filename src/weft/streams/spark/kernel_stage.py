"""A join with state inside a batch: rows to tasks, joined rows back.

One query reads all streams of a statement, packed into one frame::

    __weft_input  t  raw  i0             i1
    0             1  NULL {c0, c2}       NULL
    1             2  NULL NULL           {c1}

::

    rows of both sides + a tick for each task
      -> route, side, hash of the keys, time, raw, left_.., right_..
      -> one partition a task -> the kernel -> kind, time, left {..}, right {..}
      -> flat columns, one for each slot

The kernel is sent to workers by value, because they need no Weft.  Pickling and loading it costs more than a small
batch, so it is pickled once for each join, and a worker keeps what it has loaded.
"""

from __future__ import annotations

import hashlib
import pickle
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from types import ModuleType
from typing import Any

from pyspark import Accumulator, AccumulatorParam, cloudpickle
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import types as st

import weft.codes
import weft.core
import weft.errors
import weft.expr
import weft.redaction
import weft.streams.kernel
from weft.core.frozen import thaw
from weft.expr.spark.frames import functions_of
from weft.expr.spark.types import cast_to, to_spark
from weft.io.stores.store_path import Place, StorePath
from weft.joins.spark.sides import balanced_number
from weft.streams.checkpoint.cached_files import CachedFiles
from weft.streams.kernel import arrow_task as worker
from weft.streams.kernel.arrow_task import arrow_task
from weft.streams.kernel.ranges import range_of
from weft.streams.kernel.spec import NEVER, Clock, Entry, JoinTask
from weft.streams.kernel.state_store import StateFiles, StateStore
from weft.streams.plan.kernel_spec import Child, Layout, build_layout
from weft.streams.plan.resolved import Input, KernelStep, Slot, StatementPlan
from weft.streams.spark.readable import RAW, TIME, column_name
from weft.streams.spark.select_stage import slot_name

_BUILT = "_weft_built"
"""Module that holds what a worker has loaded; nothing else lives as long as the worker."""


@dataclass(frozen=True, slots=True)
class ShippedJoin:
    """A pickled join: the bytes and their hash."""

    task: JoinTask
    payload: bytes
    name: str


def ship_join(task: JoinTask, root: Place) -> ShippedJoin:
    """Pickle the kernel with one join; a condition that is evaluated by row needs the expressions too."""
    modules = [weft.streams.kernel]
    opening: Callable[[str], StateFiles] = StateStore
    if task.residual is not None and task.residual.rows is not None:
        modules += [weft.codes, weft.redaction, weft.errors, weft.core, weft.expr]
    if isinstance(root, StorePath):
        opening = CachedFiles  # not carried: workers that use a store have Weft, see docs/howto/cluster.md
    # Also this module, of which `worker_task` runs on workers.
    for module in (*modules, sys.modules[__name__]):
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]  # pyspark ships it untyped
    payload = cloudpickle.dumps((arrow_task, Clock, task, opening))  # type: ignore[no-untyped-call]
    return ShippedJoin(task, payload, hashlib.sha256(payload).hexdigest())


class ReportsParam(AccumulatorParam[list[dict[str, Any]]]):
    """Collects the reports of tasks on the driver; Spark adds those of an attempt when it has succeeded."""

    def zero(self, value: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return no reports."""
        return value[:0]

    def addInPlace(self, value1: list[dict[str, Any]], value2: list[dict[str, Any]]) -> list[dict[str, Any]]:  # noqa: N802
        """Add reports to others."""
        value1.extend(value2)
        return value1


def worker_task(
    join: ShippedJoin, clock: Clock, reports: Accumulator[list[dict[str, Any]]], *, root: str, **named: Any
) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Return the function for ``mapInArrow``; `named` is what `weft.streams.kernel.arrow_task` takes for a batch."""
    payload, name, left, right = join.payload, join.name, clock.left, clock.right

    def report(written: dict[str, Any]) -> None:
        reports.add([written])

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        kept: Any = sys.modules.setdefault(_BUILT, ModuleType(_BUILT))
        # By the hash of the bytes: a worker process is reused by later batches, and by other jobs.
        if not hasattr(kept, name):
            setattr(kept, name, pickle.loads(payload))  # noqa: S301  # made by our own driver
        make, clock_of, task, opening = getattr(kept, name)
        yield from make(task, clock_of(left=left, right=right), files=opening(root), report=report, **named)(batches)

    return run


INPUT = "__weft_input"
TICK = -1
"""Source number of rows that only trigger a batch."""


def pack(plan: StatementPlan, sources: Mapping[int, DataFrame]) -> DataFrame:
    """Return the rows of all inputs with the number of their source; `sources` are frames of t, raw, c0 .."""
    parts = [_pack_source(plan, source, sources[source.number]) for source in plan.inputs]
    return reduce(DataFrame.unionByName, parts)


def tick_rows(plan: StatementPlan, frame: DataFrame) -> DataFrame:
    """Return any rows in the form of `pack`, as rows of no input."""
    F: Any = functions_of(frame)
    empty = [F.lit(None).cast(struct_type(i)).alias(struct_name(i.number)) for i in plan.inputs]
    return frame.select(
        F.lit(TICK).alias(INPUT), F.lit(None).cast("bigint").alias(TIME), F.lit(None).cast("string").alias(RAW), *empty
    )


def struct_name(number: int) -> str:
    """Return the column that holds the columns of a source."""
    return f"i{number}"


def struct_type(source: Input) -> str:
    """Return the Spark type of the struct of a source."""
    fields = source.stream.columns.fields
    inner = ", ".join(f"{column_name(i)}: {to_spark(fields[i].dtype).simpleString()}" for i in _kept_columns(source))
    return f"struct<{inner}>"


def _kept_columns(source: Input) -> tuple[int, ...]:
    # A struct needs a field; if only the time of a stream is read, keep its first column.
    return source.columns or (0,)


def _pack_source(plan: StatementPlan, source: Input, frame: DataFrame) -> DataFrame:
    F: Any = functions_of(frame)
    columns = []
    for other in plan.inputs:
        if other is source:
            held = F.struct(*(F.col(column_name(i)) for i in _kept_columns(source)))
        else:
            held = F.lit(None).cast(struct_type(other))
        columns.append(held.alias(struct_name(other.number)))
    return frame.select(F.lit(source.number).alias(INPUT), F.col(TIME), F.col(RAW), *columns)


def empty_batch(spark: SparkSession, plan: StatementPlan) -> DataFrame:
    """Return a batch without rows."""
    structs = ", ".join(f"{struct_name(i.number)} {struct_type(i)}" for i in plan.inputs)
    return spark.createDataFrame([], f"{INPUT} int, {TIME} bigint, {RAW} string, {structs}")


FLAT_RAW = "__weft_raw"
"""Text of a malformed row, in rows that no join has checked yet."""

_SIDES = ("left", "right")


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchContext:
    """The parameters of a batch: its number, the state before it, watermark and wall clock, and where tasks report."""

    batch: int
    state: Sequence[Entry]
    watermark: int | None
    wall_clock: int
    root: str
    tasks: int
    reports: Accumulator[list[dict[str, Any]]]
    is_first: bool


def kernel_stage(
    plan: StatementPlan, step: KernelStep, join: ShippedJoin, rows: DataFrame, *, clock: Clock, moment: BatchContext
) -> DataFrame:
    """Return the joined rows as flat columns; `rows` come from `two_stream_rows`, `side_rows` or their union."""
    children = build_layout(plan, step)
    work = worker_task(
        join,
        clock,
        moment.reports,
        root=moment.root,
        batch=moment.batch,
        # Plain dicts: workers need no Weft.
        state=[thaw(entry) for entry in moment.state if entry["join"] == step.number],
        watermark=NEVER if moment.watermark is None else moment.watermark,
        wall_clock=moment.wall_clock,
        tasks=moment.tasks,
    )
    F: Any = functions_of(rows)
    ticking = rows.unionByName(_task_ticks(rows, moment.tasks))
    # A number of partitions that is given is not changed by adaptive execution: one partition for each task.
    routed = ticking.repartition(moment.tasks, balanced_number(F, _task_of(F, moment.tasks), moment.tasks))
    joined = routed.mapInArrow(work, result_type(join.task, children))
    return flatten(plan, join.task, joined, children)


def two_stream_rows(plan: StatementPlan, step: KernelStep, batch: DataFrame, moment: BatchContext) -> DataFrame:
    """Return the rows of a join of two streams, both straight from the batch, in one pass."""
    F: Any = functions_of(batch)
    children = build_layout(plan, step)
    (left,), right = step.left, step.right
    ours = F.col(INPUT) == F.lit(left)
    kept = batch.filter(F.col(INPUT).isin(left, right))
    sides = {
        side: _build_side(F, step, children, side, _column_reader(F, step, number, moment))
        for side, number in zip(_SIDES, (left, right), strict=True)
    }
    usable = F.col(RAW).isNull()
    hashed = F.when(usable & ours, sides["left"].hashed).when(usable & ~ours, sides["right"].hashed)
    whole = F.when(ours, sides["left"].whole).otherwise(sides["right"].whole)
    return kept.select(
        # Rows without a hash match nothing; the hash of all their values spreads them over the tasks.
        F.coalesce(hashed, F.xxhash64(whole, F.col(RAW))).alias(worker.ROUTE),
        F.when(ours, F.lit(0)).otherwise(F.lit(1)).cast("tinyint").alias(worker.SIDE),
        hashed.alias(worker.HASH),
        F.col(TIME).alias(worker.TIME),
        F.col(RAW).alias(worker.RAW),
        *(F.when(ours, value).alias(worker.LEFT + name) for name, value in sides["left"].values.items()),
        *(F.when(~ours, value).alias(worker.RIGHT + name) for name, value in sides["right"].values.items()),
    )


def stream_rows(
    plan: StatementPlan, step: KernelStep, number: int, batch: DataFrame, moment: BatchContext
) -> DataFrame:
    """Return the rows of one stream of the batch as its side of a join."""
    F: Any = functions_of(batch)
    side = "right" if number == step.right else "left"
    kept = batch.filter(F.col(INPUT) == F.lit(number))
    column = _column_reader(F, step, number, moment)
    return _side_rows(F, kept, plan, step, side, column, F.col(TIME), F.col(RAW))


def left_rows(plan: StatementPlan, step: KernelStep, rows: DataFrame) -> DataFrame:
    """Return rows of an earlier stage as the left side of a join."""
    F: Any = functions_of(rows)
    time = F.lit(None).cast("bigint") if step.axis is None else F.col(slot_name(step.axis[0]))
    raw = F.col(FLAT_RAW) if FLAT_RAW in rows.columns else F.lit(None).cast("string")
    return _side_rows(F, rows, plan, step, "left", lambda slot: F.col(slot_name(slot)), time, raw)


def table_rows(plan: StatementPlan, step: KernelStep, table: DataFrame) -> DataFrame:
    """Return the rows of a table, whose columns are named by their slots, as the right side of a join."""
    F: Any = functions_of(table)
    # A table has no time; any value will do, because such a join has no axis.
    time, raw = F.lit(0).cast("bigint"), F.lit(None).cast("string")
    return _side_rows(F, table, plan, step, "right", lambda slot: F.col(slot_name(slot)), time, raw)


def unpack(source: Input, batch: DataFrame) -> DataFrame:
    """Return the rows of one stream of the batch as flat columns, with the text of malformed rows."""
    F: Any = functions_of(batch)
    kept = batch.filter(F.col(INPUT) == F.lit(source.number))
    columns = [
        F.col(f"{struct_name(source.number)}.{column_name(i)}").alias(slot_name(("i", source.number, i)))
        for i in source.columns
    ]
    return kept.select(*columns, F.col(TIME).alias(slot_name(("t", source.number))), F.col(RAW).alias(FLAT_RAW))


@dataclass(frozen=True, slots=True)
class _Side:
    values: dict[str, Any]  # by the names of the children
    hashed: Any  # NULL when a key is
    whole: Any


def _build_side(F: Any, step: KernelStep, children: Layout, side: str, column: Callable[[Slot], Column]) -> _Side:
    mine = children.left if side == "left" else children.right
    values = [column(c.slot).cast(cast_to(c.dtype)) for c in mine]
    keys = values[: len(step.keys)]
    null = keys[0].isNull()
    for key in keys[1:]:
        null = null | key.isNull()
    # Spark has no hash of maps and variants.
    hashable = [v for v, c in zip(values, mine, strict=True) if c.dtype.is_orderable]
    named = {c.name: value for c, value in zip(mine, values, strict=True)}
    return _Side(named, F.when(~null, F.xxhash64(*keys)), F.xxhash64(*hashable))


def _side_rows(
    F: Any,
    frame: DataFrame,
    plan: StatementPlan,
    step: KernelStep,
    side: str,
    column: Callable[[Slot], Column],
    time: Column,
    raw: Column,
) -> DataFrame:
    children = build_layout(plan, step)
    built = _build_side(F, step, children, side, column)
    other = children.right if side == "left" else children.left
    nothing = {c.name: F.lit(None).cast(to_spark(c.dtype)) for c in other}
    hashed = F.when(raw.isNull(), built.hashed)
    left, right = (built.values, nothing) if side == "left" else (nothing, built.values)
    return frame.select(
        F.coalesce(hashed, F.xxhash64(built.whole, raw)).alias(worker.ROUTE),
        F.lit(_SIDES.index(side)).cast("tinyint").alias(worker.SIDE),
        hashed.alias(worker.HASH),
        time.alias(worker.TIME),
        raw.alias(worker.RAW),
        *(value.alias(worker.LEFT + name) for name, value in left.items()),
        *(value.alias(worker.RIGHT + name) for name, value in right.items()),
    )


def _column_reader(F: Any, step: KernelStep, number: int, moment: BatchContext) -> Callable[[Slot], Column]:
    def column(slot: Slot) -> Column:
        value: Column = F.col(TIME if slot[0] == "t" else f"{struct_name(number)}.{column_name(int(slot[-1]))}")
        if slot[0] == "t" and step.missing_event_time == "wall_clock":
            # The clock of the heartbeat, so that a repeated batch gives its rows the same time.
            value = F.coalesce(value, F.lit(moment.wall_clock).cast("bigint"))
        return value

    return column


def _task_of(F: Any, tasks: int) -> Column:
    """Return the task of a row, as `weft.streams.kernel.ranges.find_tasks` computes it."""
    upper = F.shiftright(F.col(worker.ROUTE), 32) + F.lit(2**31)
    task: Column = F.shiftright(upper * F.lit(tasks), 32).cast("int")
    return task


def _task_ticks(rows: DataFrame, tasks: int) -> DataFrame:
    """Return one row for each task, so that rows expire in tasks without new rows too."""
    F: Any = functions_of(rows)
    session: SparkSession = rows.sparkSession
    types = {f.name: f.dataType for f in rows.schema.fields}
    nothing = [F.lit(None).cast(types[n]).alias(n) for n in rows.columns[2:]]
    firsts = F.array(*(F.lit(range_of(number, tasks).first) for number in range(tasks)))
    return session.range(0, tasks, 1, 1).select(
        F.element_at(firsts, F.col("id").cast("int") + F.lit(1)).alias(worker.ROUTE),
        F.lit(worker.TICK).cast("tinyint").alias(worker.SIDE),
        *nothing,
    )


def _struct_of(children: tuple[Child, ...]) -> st.StructType:
    return st.StructType([st.StructField(c.name, to_spark(c.dtype)) for c in children])


def result_type(task: JoinTask, children: Layout) -> st.StructType:
    """Return the type of the output rows of the kernel."""
    windows = ("window_start", "window_end") if task.window_columns else ()
    return st.StructType(
        [
            st.StructField("kind", st.ByteType()),
            st.StructField("time", st.LongType()),
            *(st.StructField(name, st.LongType()) for name in windows),
            st.StructField("left", _struct_of(children.left)),
            st.StructField("right", _struct_of(children.right)),
        ]
    )


def flatten(plan: StatementPlan, task: JoinTask, joined: DataFrame, children: Layout) -> DataFrame:
    """Return the output rows of the kernel as flat columns, one for each slot."""
    F: Any = functions_of(joined)
    columns: dict[str, Column] = {}
    for side, mine in zip(_SIDES, (children.left, children.right), strict=True):
        for child in mine:
            # A key is also a child in the common type of both sides; only the one in its own type is a column.
            own = _declared_type(plan, child.slot)
            if own is None or own == child.dtype:
                columns[slot_name(child.slot)] = F.col(f"{side}.{child.name}")
    if task.window_columns:
        columns |= {"w0": F.col("window_start"), "w1": F.col("window_end")}
    return joined.select(*(column.alias(name) for name, column in columns.items()))


def _declared_type(plan: StatementPlan, slot: Slot) -> Any:
    if slot[0] != "i":
        return None
    source = plan.source(slot[1])
    schema = source.stream.columns if isinstance(source, Input) else source.table.columns
    return schema.fields[slot[2]].dtype
