"""The joins of a statement over one batch; malformed rows are rejected here if no join has state."""

from __future__ import annotations

import datetime as dt
import io
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import StorageLevel
from pyspark.sql import DataFrame

from weft.core.frozen import FrozenMap
from weft.errors import StreamError
from weft.expr.spark.frames import functions_of, observation_of
from weft.io.stores import open_store
from weft.streams.checkpoint.ledger import COUNTS, side_name
from weft.streams.checkpoint.manifest import Heartbeat, Ledger
from weft.streams.kernel.spec import Clock
from weft.streams.plan.resolved import Input, KernelStep, StatementPlan, TableStep
from weft.streams.spark.kernel_stage import (
    FLAT_RAW,
    BatchContext,
    ShippedJoin,
    kernel_stage,
    left_rows,
    stream_rows,
    table_rows,
    two_stream_rows,
    unpack,
)
from weft.streams.spark.select_stage import select_stage
from weft.streams.spark.table_stage import join_table, table_slots


def write_malformed(unread: DataFrame, moment: BatchContext) -> int:
    """Write malformed rows to the reject table, as the kernel does, and return their number."""
    # A job of its own before the batch: malformed rows are few, and without a kernel no worker writes files.
    texts: list[Any] = [row[0] for row in unread.select(FLAT_RAW).collect()]
    if not texts:
        return 0
    count = len(texts)
    table = pa.table(
        {
            "side": pa.array(["left"] * count, pa.string()),
            "reason": pa.array(["MALFORMED"] * count, pa.string()),
            "event_time": pa.nulls(count, pa.int64()),
            "watermark": pa.nulls(count, pa.int64()),
            "batch": pa.array([moment.batch] * count, pa.int64()),
            "group": pa.array([0] * count, pa.int32()),
            "matched": pa.array([False] * count, pa.bool_()),
            "raw": pa.array(texts, pa.string()),
        }
    )
    content = io.BytesIO()
    pq.write_table(table, content, write_page_checksum=True)
    # A repeated batch replaces the file: the rows of its first attempt must not remain beside those of the second.
    open_store(moment.root).put(f"rejects/left/{moment.batch}-j0-0.parquet", content.getvalue())
    return count


_TWO = 2
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


@dataclass(slots=True, eq=False, kw_only=True)
class Stages:
    """Builds the frame of a batch with its heartbeat; nothing runs until the sink writes it."""

    plan: StatementPlan
    joins: Mapping[int, ShippedJoin]
    tables: Mapping[int, Callable[[], DataFrame]]
    heartbeat: Heartbeat
    moment: BatchContext
    began: float
    observed: dict[str, Any] = field(default_factory=dict)
    malformed: int = 0

    @contextmanager
    def cache(self, frame: DataFrame) -> Iterator[DataFrame]:
        """Yield the rows of the batch, cached if several stages read them."""
        # A single kernel join reads both of its streams in one pass, see `two_stream_rows`.
        once = len(self.plan.inputs) <= _TWO and bool(self.plan.steps) and isinstance(self.plan.steps[0], KernelStep)
        if once:
            yield frame
            return
        held = frame.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            yield held
        finally:
            held.unpersist()

    def join(self, batch: DataFrame) -> DataFrame:
        """Return the joined rows as flat columns."""
        current: DataFrame | None = None
        due = iter(Clock(left=left, right=right) for left, right in self.heartbeat.clocks)
        for step in self.plan.steps:
            if isinstance(step, TableStep):
                current = self._looked_up(self._begun(step.left[0], batch) if current is None else current, step)
            else:
                rows = self._arriving(step, batch, current)
                join, clock = self.joins[step.number], next(due)
                current = kernel_stage(self.plan, step, join, rows, clock=clock, moment=self.moment)
        return self._alone(batch) if current is None else current

    def select(self, joined: DataFrame, *, with_event_time: bool) -> DataFrame:
        """Return the rows for the sink: WHERE and the select list over joined rows."""
        today = (_EPOCH + dt.timedelta(microseconds=self.heartbeat.wall_clock)).date()
        return select_stage(joined, self.plan, today=today, with_event_time=with_event_time)

    def table_counts(self) -> Ledger:
        """Return the counts of joins with tables, after the batch has run."""
        ledger: dict[str, FrozenMap[str, int]] = {}
        malformed = self.malformed
        for side, observation in self.observed.items():
            observed = observation.get  # waits until the job of the batch has filled it
            counts = dict.fromkeys(COUNTS, 0)
            counts |= {"in": observed["in"] + malformed, "matched": observed["matched"], "rejected": malformed}
            counts["unmatched"] = observed["in"] - observed["matched"]
            # Malformed rows were taken out before the first table, so they are of its side only.
            ledger[side], malformed = FrozenMap(counts), 0
        return FrozenMap(ledger)

    def _arriving(self, step: KernelStep, batch: DataFrame, current: DataFrame | None) -> DataFrame:
        right = self.plan.source(step.right)
        if current is None and isinstance(right, Input):
            return two_stream_rows(self.plan, step, batch, self.moment)
        if current is None:
            left = stream_rows(self.plan, step, step.left[0], batch, self.moment)
        else:
            left = left_rows(self.plan, step, current)
        if isinstance(right, Input):
            return left.unionByName(stream_rows(self.plan, step, step.right, batch, self.moment))
        if not self.moment.is_first:
            return left  # the table is in the state since the first batch
        table = table_slots(right, self.tables[right.number]())
        return left.unionByName(table_rows(self.plan, step, table))

    def _begun(self, number: int, batch: DataFrame) -> DataFrame:
        source = self.plan.source(number)
        assert isinstance(source, Input)  # noqa: S101  # a statement begins with a stream
        rows = unpack(source, batch)
        return rows if self.plan.kernel_steps else self._readable(source, rows)

    def _looked_up(self, rows: DataFrame, step: TableStep) -> DataFrame:
        F: Any = functions_of(rows)
        table = self.tables[step.right]()
        unread = None
        if FLAT_RAW in rows.columns and self.plan.kernel_steps:
            # Malformed rows have no key to look up; the first join with state rejects them.
            unread, rows = rows.filter(F.col(FLAT_RAW).isNotNull()), rows.filter(F.col(FLAT_RAW).isNull())
        joined, observation = join_table(rows, self.plan, step, table)
        self.observed[side_name(step.number, "left")] = observation
        return joined if unread is None else joined.unionByName(unread, allowMissingColumns=True)

    def _alone(self, batch: DataFrame) -> DataFrame:
        """Return the rows of a statement without a join."""
        rows = self._begun(self.plan.inputs[0].number, batch)
        F: Any = functions_of(rows)
        count = F.count(F.lit(1))
        observation = observation_of(rows, f"weft_rows_{self.moment.batch}")
        self.observed["left"] = observation
        return rows.observe(observation, count.alias("in"), count.alias("matched"))

    def _readable(self, source: Input, rows: DataFrame) -> DataFrame:
        """Return the valid rows; write the others as rejects, because no join with state does."""
        F: Any = functions_of(rows)
        unread = rows.filter(F.col(FLAT_RAW).isNotNull())
        self.malformed = write_malformed(unread, self.moment)
        if self.malformed and source.stream.malformed == "fail":
            raise StreamError(
                f"{self.malformed} rows of {source.alias!r} cannot be parsed in batch {self.moment.batch}",
                code="W2208",
                help="nothing of the batch is committed; correct the rows, or write 'malformed'='reject'",
            )
        return rows.filter(F.col(FLAT_RAW).isNull()).drop(FLAT_RAW)
