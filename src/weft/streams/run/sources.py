"""The sources of a statement as frames."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from weft.errors import ConnectorError
from weft.streams.checkpoint.folder import Checkpoint
from weft.streams.plan.resolved import StatementPlan
from weft.streams.spark.files import read_stream
from weft.streams.spark.kafka import read_kafka
from weft.streams.spark.kernel_stage import pack, tick_rows
from weft.streams.spark.memory import read_rate, tick_source, write_memory
from weft.streams.spark.paths import resolve_path
from weft.streams.spark.table_stage import pin_table, read_table, write_memory_table
from weft.streams.sql.spec import StreamSpec, TableSpec

Memory = Mapping[str, Sequence[Any]]
"""Rows from a program: a list of batches for a stream, a list of rows for a table."""


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
            files = write_memory(stream, self._given(stream), self.memory_folder / stream.name)
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
        for source in plan.tables:
            read = partial(self._table, source.table)
            frame = pin_table(self.spark, source.table, checkpoint.tables / source.table.name, read)
            readers[source.number] = read if source.table.reload == "batch" else partial(_return_frame, frame)
        return readers

    def _table(self, table: TableSpec) -> DataFrame:
        if table.connector["connector"] == "memory":
            table = write_memory_table(table, self.memory.get(table.name), self.memory_folder / table.name)
        return read_table(self.spark, table, self.root)

    def _given(self, stream: StreamSpec) -> Sequence[Any]:
        rows = self.memory.get(stream.name)
        if rows is None:
            raise ConnectorError(
                f"stream {stream.name!r} reads memory, but no rows were passed for it",
                code="W2301",
                help=f"weft.streams.run(spark, sql, memory={{{stream.name!r}: [[...rows of a batch...]]}})",
                at=stream.at,
            )
        return rows


def _return_frame(frame: DataFrame) -> DataFrame:
    return frame
