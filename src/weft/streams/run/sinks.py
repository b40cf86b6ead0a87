"""The sink of a statement: files are staged, messages written, a console prints after the commit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from weft.core.frozen import FrozenMap
from weft.streams.checkpoint.folder import Checkpoint, JobRecord
from weft.streams.checkpoint.manifest import Manifest, Move
from weft.streams.plan.resolved import StatementPlan
from weft.streams.spark.files import prepare_folder, remove_staging, sink_folder, stage_rows, staging_folder
from weft.streams.spark.kafka import write_kafka
from weft.streams.sql.spec import SinkSpec

_MAX_ROWS = 20


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
    folder: Path | None
    checkpoint: str

    @classmethod
    def of(cls, plan: StatementPlan, root: Path, checkpoint: Checkpoint, record: JobRecord) -> Sink:
        """Return the sink of a plan; raise when it cannot be written to."""
        kind = plan.sink.connector["connector"]
        if kind == "kafka":
            return cls(plan=plan, spec=plan.sink, folder=None, checkpoint=record.id)
        if kind == "files":
            folder, spec = sink_folder(plan.sink, root), plan.sink
        else:
            folder = checkpoint.memory
            spec = replace(plan.sink, connector=FrozenMap(connector=kind, path=str(folder), format="parquet"))
        prepare_folder(plan.sink, folder)
        return cls(plan=plan, spec=spec, folder=folder, checkpoint=record.id)

    @property
    def staging(self) -> Path | None:
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
        return (
            str(connector["path"])
            if connector["connector"] == "files"
            else str(_relative_to(self.folder, root))
        )

    def write(self, frame: DataFrame, batch: int, *, keep_empty: bool) -> Written:
        """Run the batch: stage its rows, or send them to Kafka."""
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
        files = [str(m.to) for m in manifest.sink if m.rows]
        if self.plan.sink.connector["connector"] != "console" or not files:
            return ""
        rows: list[Any] = spark.read.parquet(*files).limit(_MAX_ROWS).collect()
        names = [c.name for c in self.plan.output]
        head = f"{self.plan.name}, batch {manifest.batch}: {manifest.rows} rows"
        return "\n".join((head, *_format_table(names, [[_format_cell(v) for v in row] for row in rows])))


def _relative_to(folder: Path, root: Path) -> Path:
    return folder.relative_to(root) if root in folder.parents else folder


def _format_cell(value: Any) -> str:
    return "NULL" if value is None else str(value)


def _format_table(names: list[str], rows: list[list[str]]) -> list[str]:
    lines = [names, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(names))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]
