"""One batch of a statement, from rows to the commit.

::

    committed already?   put its files into place and go on
    heartbeat            watermark and clocks, written before anything is judged by them
    one job              joins with state, joins with tables, SELECT: rows staged, state written
    commit               ledger checked, manifest written: the batch has happened
"""

from __future__ import annotations

import datetime as dt
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from weft.core.crash import crash_point
from weft.core.frozen import EMPTY, FrozenMap
from weft.streams.checkpoint.commit import commit, finish
from weft.streams.checkpoint.folder import Checkpoint, JobRecord
from weft.streams.checkpoint.ledger import SIDES, read_indexes, side_name
from weft.streams.checkpoint.manifest import (
    Heartbeat,
    Manifest,
    read_heartbeat,
    read_manifest,
    write_heartbeat,
)
from weft.streams.checkpoint.offsets import check_reading, reading_of
from weft.streams.kernel.spec import FOREVER, Clock
from weft.streams.plan.clocks import clocks, watermark
from weft.streams.plan.kernel_spec import is_raw
from weft.streams.plan.resolved import Input, StatementPlan
from weft.streams.run.report import Listener, batch_report
from weft.streams.run.sinks import Sink
from weft.streams.run.stages import Stages
from weft.streams.spark.kernel_stage import Moment
from weft.streams.spark.packed import empty_batch
from weft.streams.spark.select_stage import select_stage
from weft.streams.spark.shipping import Carried

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


class StoppedError(Exception):
    """A batch that was not begun because the run is asked to stop; never leaves `weft.pipelines.run`."""


@dataclass(slots=True, eq=False, kw_only=True)
class Batches:
    """Does the batches of one statement; Spark calls it with each.

    `before` is what the last committed batch did; the lock of the checkpoint lets nobody else commit.  `idle`
    gives the sides that are left out of the watermark now, by what each last showed.  `places` is where the files of
    each input are.
    """

    spark: SparkSession
    plan: StatementPlan
    checkpoint: Checkpoint
    record: JobRecord
    sink: Sink
    before: Manifest | None
    joins: Mapping[int, Carried]
    tables: Mapping[int, Callable[[], DataFrame]]
    idle: Callable[[Mapping[str, int]], FrozenMap[str, Any]]
    listener: Listener
    show: Callable[[str], None]
    places: tuple[str, ...] = ()
    error: Exception | None = None
    stopping: bool = False
    busy: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, frame: DataFrame, batch: int) -> None:
        """Do a batch that Spark brings; what goes wrong is kept, for Spark would wrap it in text."""
        with self.busy:
            try:
                self._check_going_on()
                # An earlier batch happened in the checkpoint whose offsets this one took over.
                if batch >= self.record.first_batch:
                    self.done(frame, batch, final=False)
            except Exception as error:
                self.error = error
                raise

    def _check_going_on(self) -> None:
        if self.stopping:
            raise StoppedError

    def flush(self) -> Manifest:
        """Do one batch without rows after which nothing more can come."""
        crash_point("stream_flush")
        batch = self.record.first_batch if self.before is None else self.before.batch + 1
        return self.done(empty_batch(self.spark, self.plan), batch, final=True)

    def done(self, frame: DataFrame, batch: int, *, final: bool) -> Manifest:
        """Do a batch and return what it did; one that has happened already is passed over."""
        if self.checkpoint.commit_file(batch).exists():
            committed = read_manifest(self.checkpoint, batch)
            check_reading(self.checkpoint, committed)
            finish(committed)
            return committed
        began = time.monotonic()
        before = self.before
        heartbeat = self._heartbeat(batch, before, final=final)
        crash_point("stream_heartbeat")
        stages = Stages(
            plan=self.plan,
            joins=self.joins,
            tables=self.tables,
            clocks=tuple(Clock(left=left, right=right) for left, right in heartbeat.clocks),
            moment=Moment(
                batch=batch,
                previous=None if before is None else before.batch,
                watermark=heartbeat.watermark,
                wall_clock=heartbeat.wall_clock,
                root=str(self.checkpoint.root.absolute()),
                groups=self.record.groups,
            ),
        )
        with stages.kept(frame) as rows:
            joined = stages.joined(rows)
            selected = select_stage(
                joined,
                self.plan,
                today=_day(heartbeat.wall_clock),
                with_event_time=self.sink.needs_event_time,
            )
            nothing_yet = before is None or before.total_rows == 0
            written = self.sink.write(selected, batch, keep_empty=final and nothing_yet)
        crash_point("stream_kernel")
        crash_point("stream_staged")
        joins = [s.number for s in self.plan.kernel_steps]
        manifest = commit(
            self.checkpoint,
            batch,
            read_indexes(self.checkpoint, batch, joins, self.record.groups),
            written.moves,
            before=before,
            heartbeat=heartbeat,
            inputs=raw_sides(self.plan),
            tables=stages.table_counts(),
            rows=written.rows,
            read=EMPTY if final else FrozenMap(reading_of(self.checkpoint.spark, batch), places=self.places),
            seconds=time.monotonic() - began,
        )
        self.before = manifest
        self._tell(manifest)
        return manifest

    def _heartbeat(self, batch: int, before: Manifest | None, *, final: bool) -> Heartbeat:
        known = read_heartbeat(self.checkpoint, batch)
        if known is not None and known.final == final:
            return known
        earlier = before or Manifest(batch=-1)
        idle = EMPTY if final else self.idle(earlier.last_rows)
        mark = watermark(self.plan, earlier.max_times, earlier.watermark, idle=tuple(idle))
        past = tuple(Clock(left=left, right=right) for left, right in earlier.clocks)
        now = clocks(self.plan, FOREVER if final else mark, past)
        heartbeat = Heartbeat(
            batch=batch,
            wall_clock=time.time_ns() // 1000,
            watermark=mark,
            clocks=tuple((c.left, c.right) for c in now),
            idle=idle,
            final=final,
        )
        write_heartbeat(self.checkpoint, heartbeat)
        return heartbeat

    def _tell(self, manifest: Manifest) -> None:
        text = self.sink.shown(self.spark, manifest)
        if text:
            self.show(text)
        self.listener.on_batch(batch_report(self.plan, manifest))


def raw_sides(plan: StatementPlan) -> FrozenMap[str, str]:
    """Return the sides of the ledger that take rows from a source, with its alias."""
    found: dict[str, str] = {}
    for step in plan.kernel_steps:
        for side, numbers in zip(SIDES, (step.left, (step.right,)), strict=True):
            for source in plan.inputs:
                if source.number in numbers and is_raw(plan, step, source.number):
                    found[side_name(step.number, side)] = source.alias
    if not found:
        found["left"] = _first(plan).alias
    return FrozenMap(found)


def _first(plan: StatementPlan) -> Input:
    return plan.inputs[0]


def _day(wall_clock: int) -> dt.date:
    return (_EPOCH + dt.timedelta(microseconds=wall_clock)).date()
