"""CSV, Parquet and JSON files as parts: columns by name, every line whole.

::

    csv       the first line names the columns, each file for itself; fields are texts until the dataset types them
    json      one object a line; a key that a line lacks is NULL, numbers keep their digits
    parquet   the footer names and types the columns
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from weft.core.names import listed
from weft.errors import ResolutionError
from weft.expr.spark.frames import functions_of
from weft.io.datasource import PERIOD, DataSource
from weft.io.location import Location, no_data
from weft.io.options import CsvOptions, csv_options, is_set, is_utf8
from weft.io.paths import data_files, full_path, is_local
from weft.io.spark.headers import header_of
from weft.io.spark.part import FILE, Part
from weft.io.spark.strict import MARK

_CORRUPT = "__weft_corrupt"
_SIGNS = frozenset("{}[]*?\\")
_SHOWN = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A location that is there: its whole path, and the files it means when they lie on this machine."""

    location: Location
    path: str
    files: tuple[Path, ...]

    @property
    def paths(self) -> list[str]:
        """What Spark is told to read; names of files are no patterns."""
        return [escaped(str(f)) for f in self.files] if self.files else [self.path]


@dataclass(frozen=True, slots=True, kw_only=True)
class ByPosition:
    """The columns of files without a header: `names` in their order, of which the first `needed` must be there."""

    table: str
    names: tuple[str, ...]
    needed: int


def escaped(path: str) -> str:
    r"""Return a path in which no sign is a pattern.

    >>> print(escaped("/data/a[1].csv"))
    /data/a\[1\].csv
    """
    return "".join(f"\\{sign}" if sign in _SIGNS else sign for sign in path)


def places(locations: Iterable[Location], source: DataSource | None, root: Path) -> tuple[Place, ...]:
    """Return the locations whose data is there; raise W1309 with all that are not, unless they may be missing."""
    found, missing = [], []
    for location in locations:
        path = full_path(location, source, root)
        files = data_files(path) if is_local(path) else ()
        if files or not is_local(path):
            found.append(Place(location=location, path=path, files=files))
        elif location.missing == "fail":
            missing.append((location, path))
    if missing:
        raise no_data(missing)
    return tuple(found)


def scan(
    session: SparkSession,
    format: str,
    source: DataSource | None,
    locations: Sequence[Location],
    columns: ByPosition,
    root: Path,
    *,
    written_as: DataSource | None = None,
) -> list[Part]:
    """Return the rows of the files that the locations mean.

    `source` says where paths start, and also how files are written unless `written_as` does: what a run
    published has a whole path, and the form of the datasource it was published to.
    """
    there = places(locations, source, root)
    form = written_as or source
    if format == "csv":
        return _csv(session, there, csv_options(form, published=source is None), columns)
    if format == "json":
        return [_json(session, place, form) for place in there]
    return [
        Part(
            frame=session.read.parquet(*place.paths),
            period=place.location.period,
            shown=repr(place.path),
            in_files=True,
        )
        for place in there
    ]


def _csv(
    session: SparkSession, there: Sequence[Place], options: CsvOptions, columns: ByPosition
) -> list[Part]:
    """Return one part for all files with the same first line, and the same period where they do not say it."""
    groups: dict[tuple[tuple[str, ...], str | None], dict[str, str]] = {}
    for place in there:
        for path, told, names in _headers(session, place, options, columns):
            period = None if PERIOD.name in names else place.location.period
            groups.setdefault((names, period), {})[path] = told
    return [
        Part(
            frame=_whole_lines(_csv_frame(session, names, list(paths), options)),
            period=period,
            shown=", ".join(map(repr, paths.values())),
            in_files=True,
        )
        for (names, period), paths in groups.items()
    ]


def _headers(
    session: SparkSession, place: Place, options: CsvOptions, columns: ByPosition
) -> Iterable[tuple[str, str, tuple[str, ...]]]:
    if not place.files:
        said = session.read.options(**_csv_said(options)).csv(place.path).columns
        names = tuple(said) if options.has_header else _named(columns, len(said), place.path)
        yield place.path, place.path, names
    for file in place.files:
        line = header_of(file, options)
        names = line if options.has_header else _named(columns, len(line), str(file))
        yield escaped(str(file)), str(file), names


def _named(columns: ByPosition, count: int, path: str) -> tuple[str, ...]:
    """Return the names of the columns of a file that has no header."""
    if columns.needed <= count <= len(columns.names):
        return columns.names[:count]
    raise ResolutionError(
        f"{path!r} has {count} columns and no line with their names; table {columns.table!r} has {columns.needed}",
        code="W1316",
        help=f"without a header the columns are {listed(columns.names)}, in this order",
    )


def _csv_said(options: CsvOptions) -> dict[str, str | bool]:
    return {
        "header": options.has_header,
        "sep": options.delimiter,
        "quote": options.quote,
        "escape": options.quote,
        "encoding": options.encoding,
        "multiLine": bool(options.multiline),
    }


def _csv_frame(
    session: SparkSession, names: Sequence[str], paths: list[str], options: CsvOptions
) -> DataFrame:
    said = _csv_said(options) | {
        "columnNameOfCorruptRecord": _CORRUPT,
        # A parser that skips columns does not see that a line has too many or too few.
        "columnPruning": False,
    }
    return session.read.options(**said).schema(_texts((*names, _CORRUPT))).csv(paths)


def _texts(names: Iterable[str]) -> StructType:
    return StructType([StructField(name, StringType()) for name in names])


def _json(session: SparkSession, place: Place, source: DataSource | None) -> Part:
    said: dict[str, Any] = {
        "multiLine": is_set(source, "multiline", default=False),
        "columnNameOfCorruptRecord": _CORRUPT,
    }
    encoding = "" if source is None else str(source.options.get("encoding") or "")
    if not is_utf8(encoding or "UTF-8"):
        # Spark finds the ends of lines by itself in UTF-8 alone.
        said |= {"encoding": encoding, "lineSep": "\n"}
    keys = session.read.options(**said, primitivesAsString=True).json(place.paths).columns
    names = [*(key for key in keys if key != _CORRUPT), _CORRUPT]
    frame = session.read.options(**said).schema(_texts(names)).json(place.paths)
    return Part(
        frame=_whole_lines(frame), period=place.location.period, shown=repr(place.path), in_files=True
    )


def _whole_lines(frame: DataFrame) -> DataFrame:
    """Return the rows of a text format, failing on a line that is no row.

    The check is not deterministic, for a filter on a period would otherwise run first and drop the line.
    """
    F: Any = functions_of(frame)
    message = F.concat(
        F.lit(f"{MARK} W1318 a line is no row of the table: "),
        F.substring(F.col(_CORRUPT), 1, _SHOWN),
        F.lit(" in "),
        F.col(FILE),
    )
    whole = F.when(F.col(_CORRUPT).isNull(), F.spark_partition_id() >= F.lit(0))
    checked = frame.filter(whole.otherwise(F.raise_error(message).cast("boolean")))
    # A select keeps the hidden column with the file of a row; a drop would lose it.
    names = [name for name in frame.columns if name != _CORRUPT]
    return checked.select(*(F.col(f"`{name.replace('`', '``')}`") for name in names), F.col("_metadata"))
