"""Files as a sink: a batch is written aside, counted, and shown by renaming when it is committed.

::

    <path>/.weft-staging/<checkpoint>/<batch>-<attempt>/part-*.parquet   what Spark wrote
    <path>/part-<checkpoint>-<batch>-<n>.parquet                        what readers see after the commit
"""

from __future__ import annotations

import csv
import sys
import uuid
from contextlib import suppress
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from weft.errors import ConnectorError
from weft.streams.checkpoint.commit import STAGING
from weft.streams.checkpoint.durable import remove
from weft.streams.checkpoint.manifest import Move
from weft.streams.spark.paths import is_remote, located
from weft.streams.sql.spec import SinkSpec

_ENDINGS = {"parquet": "parquet", "json": "json", "csv": "csv", "avro": "avro"}


def sink_folder(sink: SinkSpec, root: Path) -> Path:
    """Return the folder of a sink; raise W2308 when files there cannot be renamed in one step."""
    said = str(sink.connector["path"])
    path = located(said, root)
    if is_remote(path):
        raise ConnectorError(
            f"sink {sink.name!r} writes to {said!r}, where a rename is not one step",
            code="W2308",
            help="write to a folder of this machine or a mounted one; copy the files from there",
            at=sink.at,
        )
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise ConnectorError(
            f"sink {sink.name!r} writes to {said!r}, which is a file",
            code="W2309",
            help="name a folder: every batch adds files to it",
            at=sink.at,
        )
    return folder


def prepare(sink: SinkSpec, folder: Path) -> None:
    """Make the folder of a sink; raise W2309 when it cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / STAGING
        probe.mkdir(exist_ok=True)
    except OSError as cause:
        raise ConnectorError(
            f"sink {sink.name!r} cannot write to {str(folder)!r}: {cause}",
            code="W2309",
            help="see the permissions of the folder and the space on its disk",
            at=sink.at,
        ) from cause


def staging_of(folder: Path, checkpoint: str) -> Path:
    """Return where the files of a checkpoint wait in the folder of a sink."""
    return folder / STAGING / checkpoint


def stage(
    frame: DataFrame, sink: SinkSpec, folder: Path, *, checkpoint: str, batch: int, keep_empty: bool
) -> tuple[Move, ...]:
    """Write the rows of a batch aside and return the renames that will show them.

    Files without rows are left out; with `keep_empty` one of them stays when there is no other, so
    that a sealed sink has its columns.
    """
    # A name of its own: tasks of a process that was killed may go on for a moment and end up in theirs.
    staging = staging_of(folder, checkpoint) / f"{batch}-{uuid.uuid4().hex[:8]}"
    form = str(sink.connector["format"])
    writer = frame.write.format(form).mode("overwrite")
    if form == "csv":
        writer = writer.options(**csv_options(sink))
    if form == "json":
        writer = writer.options(
            ignoreNullFields="false", timestampFormat="yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX", timeZone="UTC"
        )
    writer.save(str(staging))
    ending = _ENDINGS[form]
    counted = _counted(frame, sink, staging)
    nothing = not any(rows for _, rows in counted)
    kept = [] if nothing else [(p, rows) for p, rows in counted if rows != 0]
    if nothing and keep_empty:
        kept = counted[:1]
    return tuple(
        Move(source=path, to=folder / f"part-{checkpoint}-{batch:06}-{number:05}.{ending}", rows=rows)
        for number, (path, rows) in enumerate(kept)
    )


def csv_options(sink: SinkSpec) -> dict[str, str]:
    """Return how the CSV files of a sink are written, and read back."""
    said = sink.connector
    quote = str(said.get("quote") or '"')
    return {
        "header": str(said.get("header", True)).lower(),
        "sep": str(said.get("delimiter") or ","),
        "quote": quote,
        "escape": quote,
        "nullValue": str(said.get("null.value") or ""),
        "emptyValue": f"{quote}{quote}",
        "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
        "timeZone": "UTC",
    }


def _counted(frame: DataFrame, sink: SinkSpec, staging: Path) -> list[tuple[Path, int | None]]:
    """Return the files that Spark wrote with their rows, None where only the first one tells for all."""
    form = str(sink.connector["format"])
    files = sorted(p for p in staging.iterdir() if p.name.startswith("part-"))
    if form == "avro":
        rows = frame.sparkSession.read.format(form).load(str(staging)).count()
        return [(p, None if number else rows) for number, p in enumerate(files)]
    if form == "csv":
        return [(p, csv_rows(p, sink)) for p in files]
    return [(p, _rows(p, form)) for p in files]


def _rows(file: Path, form: str) -> int:
    if form == "parquet":
        return int(pq.read_metadata(file).num_rows)
    with file.open("rb") as lines:
        return sum(1 for _ in lines)


def csv_rows(file: Path, sink: SinkSpec) -> int:
    """Return the records of a file as it was written: a quoted field may hold line ends, and be of any length."""
    said = csv_options(sink)
    csv.field_size_limit(sys.maxsize)
    with file.open(encoding="utf-8", newline="") as lines:
        records = csv.reader(lines, delimiter=said["sep"], quotechar=said["quote"], doublequote=True)
        return max(sum(1 for _ in records) - (said["header"] == "true"), 0)


def forget_staging(folder: Path, checkpoint: str) -> None:
    """Remove the staging folder of a checkpoint that writes no more, and the folder above when it is empty."""
    remove(staging_of(folder, checkpoint))
    with suppress(OSError):
        (folder / STAGING).rmdir()
