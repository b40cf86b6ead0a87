"""CSV, Parquet and JSON files: read as parts, columns by name and every line whole; written into a stage folder.

::

    csv       the first line names the columns, each file for itself; fields are texts until the dataset types them
    json      one object a line; a key that a line lacks is NULL, numbers keep their digits
    parquet   the footer names and types the columns

    Spark writes        part-00000-1f..-c000.snappy.parquet, _SUCCESS, .part-00000-..crc
    a stage holds       part-<run>-00000.parquet

Names carry the run, so that files of several runs can be in one folder and one run replaces its own.
"""

from __future__ import annotations

import importlib
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from weft.core.names import format_list, quote
from weft.core.types import DType
from weft.errors import ResolutionError, RunError
from weft.expr.spark.frames import functions_of, observation_of
from weft.expr.spark.types import from_spark
from weft.io.datasource import PERIOD, DataSource
from weft.io.location import PUBLISHED, Location, full_path, is_local, list_data_files, missing_data_error
from weft.io.options import PLAIN_CSV, CsvOptions, csv_options, is_set, is_utf8, read_header
from weft.io.spark.connector import FILE, ByPosition, Part, Scan, Staging
from weft.io.spark.strict import MARK
from weft.io.staged import Staged, StagedFile, file_hash

_CORRUPT = "__weft_corrupt"
_SIGNS = frozenset("{}[]*?\\")
_SHOWN = 200
_MOMENT = "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"
_CLOCK = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"
_TEXT_OPTIONS: dict[str, Any] = {"timestampFormat": _MOMENT, "timestampNTZFormat": _CLOCK, "timeZone": "UTC"}
# Excel also evaluates the full-width signs that East Asian keyboards type.
_FORMULA = "=+-@\t\r\n\uff1d\uff0b\uff0d\uff20"
"""First characters of strings that a spreadsheet would run as a formula."""

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A location that is there: its full path, and its files when they are on this machine."""

    location: Location
    path: str
    files: tuple[Path, ...]

    @property
    def paths(self) -> list[str]:
        """The paths for Spark to read; wildcards in file names are escaped."""
        return [escaped(str(f)) for f in self.files] if self.files else [self.path]


def escaped(path: str) -> str:
    r"""Return a path with its wildcards escaped.

    >>> print(escaped("/data/a[1].csv"))
    /data/a\[1\].csv
    """
    return "".join(f"\\{sign}" if sign in _SIGNS else sign for sign in path)


def places(locations: Iterable[Location], source: DataSource | None, root: Path) -> tuple[Place, ...]:
    """Return the locations whose data is there; raise W1309 with all that are not, unless they may be missing."""
    present, missing = [], []
    for location in locations:
        path = full_path(location, source, root)
        files = list_data_files(path) if is_local(path) else ()
        if files or not is_local(path):
            present.append(Place(location=location, path=path, files=files))
        elif location.missing == "fail":
            missing.append((location, path))
    if missing:
        raise missing_data_error(missing)
    return tuple(present)


def scan(request: Scan) -> list[Part]:
    """Return the rows of the files that the locations mean."""
    session, source = request.session, request.source
    there = places(request.locations, source, request.root)
    form = request.written_as or source
    if request.kind == "csv":
        return _csv(session, there, csv_options(form, published=source is None), request.columns)
    if request.kind == "json":
        return [_json(session, place, form) for place in there]
    return [
        Part(
            frame=session.read.parquet(*place.paths),
            period=place.location.period,
            label=repr(place.path),
            in_files=True,
        )
        for place in there
    ]


def current(rows: DataFrame, request: Staging) -> list[Part]:
    """Return the rows of the files at a target, written as its datasource says."""
    if not list_data_files(str(request.target)):
        return []
    at = Location(
        datasource_id=PUBLISHED,
        path=str(request.target),
        period_identifier="",
        data_level=PUBLISHED,
        resolver_id=PUBLISHED,
        resolver_version=1,
        rule_name=PUBLISHED,
    )
    names = (*rows.columns, PERIOD.name)
    return scan(
        Scan(
            session=rows.sparkSession,
            kind=request.kind,
            locations=(at,),
            root=request.target.parent,
            columns=ByPosition(table=request.target.name, names=names, needed=len(rows.columns)),
            written_as=request.source,
        )
    )


def _csv(session: SparkSession, there: Sequence[Place], options: CsvOptions, columns: ByPosition) -> list[Part]:
    """Return one part for all files with the same first line, and the same period where they do not say it."""
    groups: dict[tuple[tuple[str, ...], str | None], dict[str, str]] = {}
    for place in there:
        for path, label, names in _headers(session, place, options, columns):
            period = None if PERIOD.name in names else place.location.period
            groups.setdefault((names, period), {})[path] = label
    return [
        Part(
            frame=_whole_lines(_csv_frame(session, names, list(paths), options)),
            period=period,
            label=", ".join(map(repr, paths.values())),
            in_files=True,
        )
        for (names, period), paths in groups.items()
    ]


def _headers(
    session: SparkSession, place: Place, options: CsvOptions, columns: ByPosition
) -> Iterable[tuple[str, str, tuple[str, ...]]]:
    if not place.files:
        header = session.read.options(**_csv_reader_options(options)).csv(place.path).columns
        names = tuple(header) if options.has_header else _named(columns, len(header), place.path)
        yield place.path, place.path, names
    for file in place.files:
        line = read_header(file, options)
        names = line if options.has_header else _named(columns, len(line), str(file))
        yield escaped(str(file)), str(file), names


def _named(columns: ByPosition, count: int, path: str) -> tuple[str, ...]:
    """Return the names of the columns of a file that has no header."""
    if columns.needed <= count <= len(columns.names):
        return columns.names[:count]
    raise ResolutionError(
        f"{path!r} has {count} columns and no header; table {columns.table!r} has {columns.needed}",
        code="W1316",
        help=f"without a header the columns are {format_list(columns.names)}, in this order",
    )


def _csv_reader_options(options: CsvOptions) -> dict[str, str | bool]:
    return {
        "header": options.has_header,
        "sep": options.delimiter,
        "quote": options.quote,
        "escape": options.quote,
        "encoding": options.encoding,
        "multiLine": bool(options.multiline),
    }


def _csv_frame(session: SparkSession, names: Sequence[str], paths: list[str], options: CsvOptions) -> DataFrame:
    reader_options = _csv_reader_options(options) | {
        "columnNameOfCorruptRecord": _CORRUPT,
        # A parser that skips columns does not see that a line has too many or too few.
        "columnPruning": False,
    }
    return session.read.options(**reader_options).schema(_texts((*names, _CORRUPT))).csv(paths)


def _texts(names: Iterable[str]) -> StructType:
    return StructType([StructField(name, StringType()) for name in names])


def _json(session: SparkSession, place: Place, source: DataSource | None) -> Part:
    reader_options: dict[str, Any] = {
        "multiLine": is_set(source, "multiline", default=False),
        "columnNameOfCorruptRecord": _CORRUPT,
    }
    encoding = "" if source is None else str(source.options.get("encoding") or "")
    if not is_utf8(encoding or "UTF-8"):
        # Spark detects the ends of lines only in UTF-8.
        reader_options |= {"encoding": encoding, "lineSep": "\n"}
    # Read twice: first for the keys, then every value as its text, so that numbers keep their digits.
    keys = session.read.options(**reader_options, primitivesAsString=True).json(place.paths).columns
    names = [*(key for key in keys if key != _CORRUPT), _CORRUPT]
    frame = session.read.options(**reader_options).schema(_texts(names)).json(place.paths)
    return Part(frame=_whole_lines(frame), period=place.location.period, label=repr(place.path), in_files=True)


def _whole_lines(frame: DataFrame) -> DataFrame:
    """Return the rows of a text format, failing on an invalid line."""
    F: Any = functions_of(frame)
    message = F.concat(
        F.lit(f"{MARK} W1318 invalid line: "), F.substring(F.col(_CORRUPT), 1, _SHOWN), F.lit(" in "), F.col(FILE)
    )
    # The id of the partition makes the check not deterministic; otherwise a filter on a period could run first and drop
    # the line.
    whole = F.when(F.col(_CORRUPT).isNull(), F.spark_partition_id() >= F.lit(0))
    checked = frame.filter(whole.otherwise(F.raise_error(message).cast("boolean")))
    # A select keeps the hidden column with the file of a row; a drop would lose it.
    names = [name for name in frame.columns if name != _CORRUPT]
    return checked.select(*(F.col(quote(name)) for name in names), F.col("_metadata"))


def _options(format: str, csv: CsvOptions) -> dict[str, Any]:
    """Return the options of Spark's writer."""
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
        # Spark would strip whitespace from both ends of a string.
        "ignoreLeadingWhiteSpace": False,
        "ignoreTrailingWhiteSpace": False,
    }


def stage(rows: DataFrame, request: Staging) -> Staged:
    """Write the rows into files of the requested kind."""
    return stage_files(
        rows,
        request.folder,
        format=request.kind,
        run_id=request.rows_of,
        file_name=request.file_name,
        csv=request.csv,
        encoding=request.encoding,
    )


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

    Rows are counted in the footers of Parquet files, and otherwise on their way.  With `file_name` everything goes
    into one file of that name.
    """
    # An attempt that died may have left files here, and their names carry the same run.
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    # One partition is one file; `coalesce` adds no shuffle, which would lose the order of the rows.
    rows = df.coalesce(1) if file_name is not None else df
    written = _as_cells(rows, csv) if format == "csv" else rows
    footers = _footers() if format == "parquet" else None
    counted, count = counting(written) if footers is None else (written, None)
    counted.write.format(format).options(**_options(format, csv)).save(str(folder))
    files = _finish_files(folder, run_id, format, file_name, "UTF-8" if format == "parquet" else encoding)
    if footers is not None:
        total = sum(footers(str(folder / file.path)).num_rows for file in files)
    else:
        total = 0 if count is None else count()
    return Staged(location=str(folder), rows=total, columns=tuple(df.columns), files=files)


def _footers() -> Any:
    """Return what reads the footer of a Parquet file, None where pyarrow is not installed."""
    try:
        return importlib.import_module("pyarrow.parquet").read_metadata
    except ImportError:
        return None


def counting(df: DataFrame) -> tuple[DataFrame, Any]:
    """Return the rows and a function that returns their number once an action has run."""
    F = functions_of(df)
    seen = observation_of(df, "weft_staged")
    watched = df.observe(seen, F.count(F.lit(1)).alias("rows"))
    return watched, lambda: int(seen.get["rows"])


def as_texts(df: DataFrame) -> DataFrame:
    """Return the rows with nested values as JSON and bytes as base64, for what holds no maps and no bytes."""
    F: Any = functions_of(df)

    def text(name: str, dtype: DType) -> Any:
        column = F.col(quote(name))
        if dtype.is_nested:
            return F.to_json(column).alias(name)
        return F.base64(column).alias(name) if str(dtype) == "binary" else column

    return df.select(*(text(f.name, from_spark(f.dataType)) for f in df.schema.fields))


def escape_formula(F: Any, column: Any) -> Any:
    """Return a string column whose formulas have a leading quote, so that a spreadsheet shows them."""
    formula = f"^[{_FORMULA.replace('-', chr(92) + '-')}]"
    return F.when(column.rlike(formula), F.concat(F.lit("'"), column)).otherwise(column)


def escape_formula_name(name: str) -> str:
    """Return the name of a column as the first line of a CSV file has it.

    >>> escape_formula_name("=1+1"), escape_formula_name("amount")
    ("'=1+1", 'amount')
    """
    return f"'{name}" if name.startswith(tuple(_FORMULA)) else name


def _as_cells(df: DataFrame, csv: CsvOptions) -> DataFrame:
    """Return the rows as texts of CSV cells: formulas escaped, line ends refused, where the options say so."""
    F: Any = functions_of(df)

    def cell(name: str, *, is_text: bool) -> Any:
        column = F.col(quote(name))
        shown = name
        if is_text and csv.multiline is False:
            message = f"{MARK} W1318 column '{name}' holds a string with a line end, which files without `multiline` cannot hold"
            column = F.when(column.rlike("[\r\n]"), F.raise_error(F.lit(message))).otherwise(column)
        if csv.escape_formulas:
            shown = escape_formula_name(name)
            if is_text:
                column = escape_formula(F, column)
        return column.alias(shown)

    texts = {f.name for f in df.schema.fields if str(from_spark(f.dataType)) == "string"}
    return as_texts(df).select(*(cell(name, is_text=name in texts) for name in df.columns))


def _finish_files(
    folder: Path, run_id: str, format: str, file_name: str | None, encoding: str
) -> tuple[StagedFile, ...]:
    """Give the data files their names, drop what Spark keeps for itself, and return the manifest."""
    parts = sorted(file for file in folder.iterdir() if file.name.startswith("part-"))
    for other in folder.iterdir():
        if other not in parts:
            other.unlink()
    staged = []
    for number, part in enumerate(parts):
        name = file_name or f"part-{run_id}-{number:05d}.{format}"
        file = part.rename(folder / name)
        if not is_utf8(encoding):
            _recode(file, encoding)
        staged.append(StagedFile(path=name, bytes=file.stat().st_size, sha256=file_hash(file)))
    return tuple(staged)


def _recode(file: Path, encoding: str) -> None:
    """Write a file of UTF-8 again in another encoding; Spark would write `?` for characters that it lacks."""
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
