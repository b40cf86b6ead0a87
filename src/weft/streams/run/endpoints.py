"""The endpoints of a statement: its streams and tables as frames, and the sink that its rows go to.

Files are staged until the commit, messages are written immediately, a console prints after the commit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from weft.core.names import format_cell, format_table
from weft.io.stores.store_path import Place, spark_path
from weft.streams.checkpoint.folder import Checkpoint, JobRecord
from weft.streams.checkpoint.manifest import Manifest, Move, last_batch
from weft.streams.plan.resolved import StatementPlan
from weft.streams.spark.files import (
    as_files,
    prepare_folder,
    read_stream,
    remove_staging,
    sink_folder,
    stage_rows,
    staging_folder,
)
from weft.streams.spark.kafka import read_kafka, write_kafka
from weft.streams.spark.kernel_stage import pack, tick_rows
from weft.streams.spark.memory import Memory, find_rows, read_rate, tick_source, write_memory
from weft.streams.spark.paths import resolve_path
from weft.streams.spark.table_stage import pin_table, read_table, write_memory_table
from weft.streams.sql.spec import SinkSpec, StreamSpec, TableSpec

_MAX_ROWS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Reads the streams and tables of a job; `memory` are rows from a program."""

    spark: SparkSession
    root: Path
    memory: Memory
    memory_folder: Path

    def batches(self, plan: StatementPlan, *, with_ticks: bool) -> DataFrame:
        """Return all streams of a statement as one unbounded frame; `with_ticks` runs a batch every second."""
        frame = pack(plan, {i.number: self.stream(i.stream) for i in plan.inputs})
        return frame.unionByName(tick_rows(plan, tick_source(self.spark))) if with_ticks else frame

    def stream(self, stream: StreamSpec) -> DataFrame:
        """Return the rows of a stream as `t`, `raw`, `c0` .."""
        connector = stream.connector["connector"]
        if connector == "kafka":
            return read_kafka(self.spark, stream)
        if connector == "rate":
            return read_rate(self.spark, stream)
        if connector == "memory":
            files = write_memory(stream, find_rows(stream, self.memory), self.memory_folder / stream.name)
            return read_stream(self.spark, files, self.root)
        return read_stream(self.spark, stream, self.root)

    def places(self, plan: StatementPlan) -> tuple[str, ...]:
        """Return the path of each input of files, an empty string for other inputs."""
        return tuple(self._place(source.stream) for source in plan.inputs)

    def _place(self, stream: StreamSpec) -> str:
        connector = stream.connector["connector"]
        if connector == "memory":
            return str((self.memory_folder / stream.name).absolute())
        return resolve_path(str(stream.connector["path"]), self.root) if connector == "files" else ""

    def tables(self, plan: StatementPlan, checkpoint: Checkpoint) -> dict[int, Callable[[], DataFrame]]:
        """Return a function for each table that returns its rows in a batch: the copy, or the current rows."""
        readers: dict[int, Callable[[], DataFrame]] = {}
        is_used = last_batch(checkpoint) is not None
        for source in plan.tables:
            read = partial(self._table, source.table)
            # Copied before the first batch: a table that changes later must not change what a repeated batch joins.
            folder = checkpoint.tables / source.table.name
            frame = pin_table(self.spark, source.table, folder, read, is_used=is_used)
            readers[source.number] = read if source.table.reload == "batch" else partial(_return_frame, frame)
        return readers

    def _table(self, table: TableSpec) -> DataFrame:
        if table.connector["connector"] == "memory":
            table = write_memory_table(table, self.memory, self.memory_folder / table.name)
        return read_table(self.spark, table, self.root)


def _return_frame(frame: DataFrame) -> DataFrame:
    return frame


def check_sink(sink: SinkSpec, root: Path) -> None:
    """Raise `ConnectorError` W2308 or W2309 if the folder of a sink is not writable."""
    if sink.connector["connector"] == "files":
        prepare_folder(sink, sink_folder(sink, root))


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What a batch wrote: staged files, or a number of rows."""

    moves: tuple[Move, ...] = ()
    rows: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sink:
    """The sink of one statement on one checkpoint."""

    plan: StatementPlan
    spec: SinkSpec
    folder: Place | None
    checkpoint: str

    @classmethod
    def of(cls, plan: StatementPlan, root: Path, checkpoint: Checkpoint, record: JobRecord) -> Sink:
        """Return the sink of a plan; raise when it cannot be written to."""
        kind = plan.sink.connector["connector"]
        if kind == "kafka":
            return cls(plan=plan, spec=plan.sink, folder=None, checkpoint=record.id)
        folder: Place
        if kind == "files":
            folder, spec = sink_folder(plan.sink, root), plan.sink
        else:
            # Consoles and memory have files too, so that every sink is committed and restored in one way.
            folder, spec = checkpoint.memory, as_files(plan.sink, checkpoint.memory)
        prepare_folder(plan.sink, folder)
        return cls(plan=plan, spec=spec, folder=folder, checkpoint=record.id)

    @property
    def staging(self) -> Place | None:
        """Folder of staged files."""
        return None if self.folder is None else staging_folder(self.folder, self.checkpoint)

    @property
    def needs_event_time(self) -> bool:
        """Whether rows need a column with their event time."""
        return self.folder is None

    @property
    def format(self) -> str:
        """Format of the files or messages."""
        return str(self.spec.connector.get("format") or "")

    def location(self, root: Path) -> str:
        """Return where the rows are, as written in the job."""
        connector = self.plan.sink.connector
        if self.folder is None:
            return f"kafka topic {connector['topic']}"
        return str(connector["path"]) if connector["connector"] == "files" else str(_relative_to(self.folder, root))

    def write(self, frame: DataFrame, batch: int, *, keep_empty: bool) -> Written:
        """Run the batch: stage its rows, or send them to Kafka."""
        # Kafka cannot stage: rows of a batch that is repeated come again, each with the id that it had.
        if self.folder is None:
            return Written(rows=write_kafka(frame, self.plan, checkpoint=self.checkpoint, batch=batch))
        moves = stage_rows(
            frame, self.spec, self.folder, checkpoint=self.checkpoint, batch=batch, keep_empty=keep_empty
        )
        return Written(moves=moves)

    def forget_staging(self) -> None:
        """Remove the staging folder from the folder of the sink."""
        if self.folder is not None:
            remove_staging(self.folder, self.checkpoint)

    def shown(self, spark: SparkSession, manifest: Manifest) -> str:
        """Return the text of a committed batch for the console, empty for other sinks."""
        files = [spark_path(m.to) for m in manifest.sink if m.rows]
        if self.plan.sink.connector["connector"] != "console" or not files:
            return ""
        rows: list[Any] = spark.read.parquet(*files).limit(_MAX_ROWS).collect()
        names = [c.name for c in self.plan.output]
        head = f"{self.plan.name}, batch {manifest.batch}: {manifest.rows} rows"
        return f"{head}\n{format_table(names, [[format_cell(v) for v in row] for row in rows])}"


def _relative_to(folder: Place, root: Path) -> Place:
    return folder.relative_to(root) if isinstance(folder, Path) and root in folder.parents else folder
