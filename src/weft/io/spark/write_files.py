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
from weft.errors import RunError
from weft.expr.spark.frames import functions_of, observation_of
from weft.expr.spark.types import from_spark
from weft.io.options import PLAIN_CSV, CsvOptions, is_utf8
from weft.io.spark.strict import MARK
from weft.io.staged import Staged, StagedFile, file_hash

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MOMENT = "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"
_CLOCK = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"
_TEXT_OPTIONS: dict[str, Any] = {"timestampFormat": _MOMENT, "timestampNTZFormat": _CLOCK, "timeZone": "UTC"}
_FORMULA = "=+-@\t\r\n"
"""What the text of a cell starts with that a spreadsheet would run as a formula."""

_CHUNK = 1 << 20


def _options(format: str, csv: CsvOptions) -> dict[str, Any]:
    """Return what Spark's writer is told."""
    if format == "json":
        return {**_TEXT_OPTIONS, "ignoreNullFields": False}
    if format != "csv":
        return {}
    return {
        **_TEXT_OPTIONS,
        "header": csv.has_header,
        "sep": csv.delimiter,
        "quote": csv.quote,
        "escape": csv.quote,
        "emptyValue": csv.quote * 2,
        # Spark would cut blanks off both ends of a text.
        "ignoreLeadingWhiteSpace": False,
        "ignoreTrailingWhiteSpace": False,
    }


def stage_files(
    df: DataFrame,
    folder: Path,
    *,
    format: str,
    run_id: str,
    file_name: str | None = None,
    csv: CsvOptions = PLAIN_CSV,
    encoding: str = "UTF-8",
) -> Staged:
    """Write the rows into an empty folder and return what was written.

    Rows are counted in the footers of Parquet files, and otherwise on their way.  With `file_name` everything goes into one file of that name.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    rows = df.coalesce(1) if file_name is not None else df
    written = _as_cells(rows, csv) if format == "csv" else rows
    footers = _footers() if format == "parquet" else None
    counted, count = counting(written) if footers is None else (written, None)
    counted.write.format(format).options(**_options(format, csv)).save(str(folder))
    files = _settled(folder, run_id, format, file_name, "UTF-8" if format == "parquet" else encoding)
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


def _as_cells(df: DataFrame, csv: CsvOptions) -> DataFrame:
    """Return the rows as texts of CSV cells: formulas escaped, line ends refused, where the options say so."""
    F: Any = functions_of(df)
    formula = f"^[{_FORMULA.replace('-', chr(92) + '-')}]"

    def cell(name: str, *, is_text: bool) -> Any:
        column = F.col(f"`{name.replace('`', '``')}`")
        shown = name
        if is_text and csv.multiline is False:
            message = f"{MARK} W1318 column '{name}' holds a text with a line end, which lines without `multiline` cannot hold"
            column = F.when(column.rlike("[\r\n]"), F.raise_error(F.lit(message))).otherwise(column)
        if csv.escape_formulas:
            shown = f"'{name}" if name.startswith(tuple(_FORMULA)) else name
            if is_text:
                column = F.when(column.rlike(formula), F.concat(F.lit("'"), column)).otherwise(column)
        return column.alias(shown)

    texts = {f.name for f in df.schema.fields if str(from_spark(f.dataType)) == "string"}
    return as_texts(df).select(*(cell(name, is_text=name in texts) for name in df.columns))


def _settled(
    folder: Path, run_id: str, format: str, file_name: str | None, encoding: str
) -> tuple[StagedFile, ...]:
    """Give the data files their names, drop what Spark keeps for itself, and return the manifest."""
    parts = sorted(file for file in folder.iterdir() if file.name.startswith("part-"))
    for other in folder.iterdir():
        if other not in parts:
            other.unlink()
    found = []
    for number, part in enumerate(parts):
        name = file_name or f"part-{run_id}-{number:05d}.{format}"
        file = part.rename(folder / name)
        if not is_utf8(encoding):
            _recode(file, encoding)
        found.append(StagedFile(path=name, bytes=file.stat().st_size, sha256=file_hash(file)))
    return tuple(found)


def _recode(file: Path, encoding: str) -> None:
    """Write a file of UTF-8 again in another encoding; Spark would write `?` for what that cannot hold."""
    other = file.with_name(f".{file.name}.recoded")
    try:
        with (
            file.open(encoding="utf-8", newline="") as source,
            other.open("w", encoding=encoding, newline="") as target,
        ):
            while text := source.read(_CHUNK):
                target.write(text)
    except UnicodeEncodeError as cause:
        other.unlink()
        sign = cause.object[cause.start]
        raise RunError(
            f"the output holds {sign!r} (U+{ord(sign):04X}), which the encoding {encoding} does not have",
            code="W1422",
            help="set `encoding: UTF-8` in the datasource, or replace the character in an update",
        ) from cause
    other.replace(file)


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
