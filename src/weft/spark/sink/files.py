"""Rows as files of a stage folder, with a manifest that says what lies there.

Before::

    stage/            part-00000-1f..-c000.snappy.parquet, _SUCCESS, .part-00000-..crc

After::

    stage/            part-<run>-00000.parquet

Names carry the run, so that files of several runs can lie in one folder and one run replaces its own.
"""

from __future__ import annotations

import importlib
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.core.types import DType
from weft.spark.frames import functions_of, observation_of
from weft.spark.inputs import file_hash
from weft.spark.types import from_spark
from weft.store.records import Staged, StagedFile

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MOMENT = "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"
_CLOCK = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"
_TEXT_OPTIONS: dict[str, Any] = {"timestampFormat": _MOMENT, "timestampNTZFormat": _CLOCK, "timeZone": "UTC"}
_OPTIONS: dict[str, dict[str, Any]] = {
    "csv": {**_TEXT_OPTIONS, "header": True, "quote": '"', "escape": '"', "emptyValue": '""'},
    "json": {**_TEXT_OPTIONS, "ignoreNullFields": False},
    "parquet": {},
}


def stage_files(
    df: DataFrame, folder: Path, *, format: str, run_id: str, file_name: str | None = None
) -> Staged:
    """Write the rows into an empty folder and return what was written.

    Rows are counted in the footers of Parquet files, and otherwise on their way.  With `file_name` everything goes into one file of that name.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    rows = df.coalesce(1) if file_name is not None else df
    written = as_texts(rows) if format == "csv" else rows
    footers = _footers() if format == "parquet" else None
    counted, count = counting(written) if footers is None else (written, None)
    counted.write.format(format).options(**_OPTIONS[format]).save(str(folder))
    files = _settled(folder, run_id, format, file_name)
    if footers is not None:
        found = sum(footers(str(folder / file.path)).num_rows for file in files)
    else:
        found = 0 if count is None else count()
    return Staged(location=str(folder), rows=found, columns=tuple(df.columns), files=files)


def _footers() -> Any:
    """Return what reads the footer of a Parquet file, None where pyarrow is not installed."""
    try:
        return importlib.import_module("pyarrow.parquet").read_metadata
    except ImportError:
        return None


def counting(df: DataFrame) -> tuple[DataFrame, Any]:
    """Return the rows and a function that tells their number once an action has run."""
    F = functions_of(df)
    seen = observation_of(df, "weft_staged")
    watched = df.observe(seen, F.count(F.lit(1)).alias("rows"))
    return watched, lambda: int(seen.get["rows"])


def as_texts(df: DataFrame) -> DataFrame:
    """Return the rows with nested values as JSON and bytes as base64, for what holds no maps and no bytes."""
    F: Any = functions_of(df)

    def text(name: str, dtype: DType) -> Any:
        column = F.col(f"`{name.replace('`', '``')}`")
        if dtype.is_nested:
            return F.to_json(column).alias(name)
        return F.base64(column).alias(name) if str(dtype) == "binary" else column

    return df.select(*(text(f.name, from_spark(f.dataType)) for f in df.schema.fields))


def _settled(folder: Path, run_id: str, format: str, file_name: str | None) -> tuple[StagedFile, ...]:
    """Give the data files their names, drop what Spark keeps for itself, and return the manifest."""
    parts = sorted(file for file in folder.iterdir() if file.name.startswith("part-"))
    for other in folder.iterdir():
        if other not in parts:
            other.unlink()
    found = []
    for number, part in enumerate(parts):
        name = file_name or f"part-{run_id}-{number:05d}.{format}"
        file = part.rename(folder / name)
        found.append(StagedFile(path=name, bytes=file.stat().st_size, sha256=file_hash(file)))
    return tuple(found)


def broken_files(staged: Staged) -> tuple[str, ...]:
    """Return what is wrong with staged files: one that is gone, new, or no longer what was written."""
    folder = Path(staged.location)
    there = {f.name for f in folder.iterdir()} if folder.is_dir() else set()
    told = [f"{name} was not written" for name in sorted(there - {f.path for f in staged.files})]
    for file in staged.files:
        path = folder / file.path
        if file.path not in there:
            told.append(f"{file.path} is gone")
        elif path.stat().st_size != file.bytes or file_hash(path) != file.sha256:
            told.append(f"{file.path} is not what was written")
    return tuple(told)
