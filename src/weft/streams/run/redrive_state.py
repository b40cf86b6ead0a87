"""Late rows against the state that is still there: see `weft.streams.kernel.redrive`."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from weft.errors import Code, StreamError
from weft.streams.checkpoint.folder import Checkpoint, record_of
from weft.streams.checkpoint.manifest import last_batch
from weft.streams.checkpoint.rejects import RejectFile, read_rejects
from weft.streams.kernel.redrive import redone
from weft.streams.kernel.residual import arrow_type
from weft.streams.kernel.spec import JoinTask, KernelProblem, Side
from weft.streams.kernel.state_files import GroupPlace, open_group
from weft.streams.kernel.state_files import Places as Folder
from weft.streams.plan.kernel_spec import Child, Layout, kernel_spec, layout
from weft.streams.plan.resolved import Input, KernelStep, StatementPlan
from weft.streams.spark.kernel_stage import flat, result_type
from weft.streams.spark.select_stage import select_stage


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LookedUp:
    """Rows of the sink to add and to take back, and the rejected rows they are of."""

    plus: DataFrame
    minus: DataFrame
    taken: Mapping[RejectFile, tuple[int, ...]]
    taken_back: Mapping[str, int]


def looked_up(
    spark: SparkSession,
    plan: StatementPlan,
    checkpoint: Checkpoint,
    rows: Mapping[RejectFile, tuple[int, ...]],
    before: Counter[str],
    *,
    time_column: str | None = None,
) -> LookedUp:
    """Return what rejected rows change, as far as the state tells."""
    step = only_join(plan)
    task = kernel_spec(plan, step)
    children = layout(plan, step)
    batch = last_batch(checkpoint)
    plus: list[Any] = []
    minus: list[Any] = []
    taken: dict[RejectFile, tuple[int, ...]] = {}
    back: Counter[str] = Counter()
    for file, places in rows.items():
        side: Side = "left" if file.side == "left" else "right"
        place = GroupPlace(Folder(str(checkpoint.root)), step.number, file.group)
        try:
            state = open_group(place, batch, task, _schema(children.left), _schema(children.right))
        except KernelProblem as problem:
            raise StreamError(problem.message, code=_code(problem), help=problem.help) from problem
        late, times, until = _late(plan, step, side, children, file, places, time_column)
        done = redone(task, state, side, late, times, before + back, until)
        plus.extend(done.plus)
        minus.extend(done.minus)
        back.update(done.taken_back)
        taken[file] = tuple(places[i] for i in done.taken.tolist())
    today = dt.datetime.fromtimestamp(record_of(checkpoint).created / 1_000_000, dt.UTC).date()
    return LookedUp(
        plus=_selected(spark, plan, task, children, plus, today),
        minus=_selected(spark, plan, task, children, minus, today),
        taken=taken,
        taken_back=back,
    )


def only_join(plan: StatementPlan) -> KernelStep:
    """Return the one join whose state can be looked into; raise `StreamError` W2216 for other statements."""
    steps = plan.kernel_steps
    timed = steps[0].axis is not None if len(steps) == 1 else False
    why = ""
    if len(steps) != 1 or len(plan.steps) != 1 or not timed:
        why = "it is not one join of two streams"
    elif kernel_spec(plan, steps[0]).reach.kind == "session":
        why = "a late row may merge sessions whose rows are gone"
    if why:
        raise StreamError(
            f"late rows of {plan.name!r} cannot be looked up in its state: {why}",
            code="W2216",
            help="end its input with `weft stream run JOB --final`; a redrive then reads all inputs again",
        )
    return steps[0]


def _schema(children: tuple[Child, ...]) -> Any:
    return pa.schema([(c.name, arrow_type(str(c.dtype))) for c in children])


def _code(problem: KernelProblem) -> Code:
    found: Code = problem.code  # type: ignore[assignment]  # the kernel knows no list of codes
    return found


def _late(
    plan: StatementPlan,
    step: KernelStep,
    side: Side,
    children: Layout,
    file: RejectFile,
    places: tuple[int, ...],
    time_column: str | None,
) -> tuple[Any, Any, Any]:
    """Return rejected rows as the children of their side, their times, and the batch up to which each gave pairs."""
    table = read_rejects(file).take(pa.array(places))
    schema = _schema(children.left if side == "left" else children.right)
    rows = table.column("row").combine_chunks()
    whole = pa.table([rows.field(name) for name in schema.names], names=schema.names).cast(schema)
    times = table.column("event_time").combine_chunks()
    if times.null_count:
        number = step.left[0] if side == "left" else step.right
        given = whole.column(_time_child(plan, number, children, side, time_column)).combine_chunks()
        times = _filled(times, given.cast(pa.int64()))
        index = schema.names.index(f"t{number}")
        whole = whole.set_column(index, schema.field(index), times)
    until = pc.if_else(table.column("matched"), table.column("batch"), pa.scalar(-1, pa.int64()))
    return whole, times.to_numpy(zero_copy_only=False), until.to_numpy()


def _filled(times: Any, given: Any) -> Any:
    filled = pc.coalesce(times, given)
    if filled.null_count:
        raise StreamError(
            "rows without event time have none in the column of --time either",
            code="W2216",
            help="name a column that every one of them has",
        )
    return filled


def _time_child(
    plan: StatementPlan, number: int, children: Layout, side: Side, time_column: str | None
) -> str:
    source = plan.source(number)
    mine = children.left if side == "left" else children.right
    fields = source.stream.columns.fields if isinstance(source, Input) else ()
    for child in mine:
        slot = child.slot
        if slot[0] == "i" and fields[slot[2]].name == time_column and str(child.dtype) == "timestamp":
            return child.name
    raise StreamError(
        f"the rejected rows of {plan.name!r} hold no TIMESTAMP column {time_column!r}",
        code="W2216",
        help="only columns that the statement reads are kept: add it to the select list, or redrive after --final",
    )


def _selected(
    spark: SparkSession,
    plan: StatementPlan,
    task: JoinTask,
    children: Layout,
    found: list[Any],
    today: dt.date,
) -> DataFrame:
    """Return rows of the kernel as rows of the sink."""
    schema = result_type(task, children)
    if found:
        joined = spark.createDataFrame(pa.Table.from_batches(found), schema=schema)
    else:
        joined = spark.createDataFrame([], schema)
    return select_stage(flat(plan, task, joined, children), plan, today=today)
