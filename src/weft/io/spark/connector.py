"""The Spark part of connectors: what they are asked to read and to write, and the rows that they return.

A connector is a module, named by `weft.io.connectors.Connector.spark`, with these functions::

    scan(Scan) -> list[Part]                rows at locations, as the source has them
    stage(rows, Staging) -> Staged          rows written beside their target, not yet visible
    current(rows, Staging) -> list[Part]    rows that a merge is computed with; none when the target merges by itself
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

from pyspark.sql import DataFrame, SparkSession

from weft.core.names import find_similar, format_list
from weft.core.types import DType
from weft.errors import JoinTypeError, ResolutionError
from weft.expr.spark.frames import functions_of
from weft.expr.spark.types import from_spark
from weft.io.connectors import find_connector
from weft.io.datasource import DataSource
from weft.io.location import Location
from weft.io.options import PLAIN_CSV, CsvOptions
from weft.io.staged import Staged

_METADATA = "_metadata"
FILE = f"{_METADATA}.file_path"
"""The hidden column in which Spark keeps the file that a row came from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Rows of one or several locations.

    `period` is the period of all of them, None when each row says its own.  `shown` is what messages call
    the part; in files the file of the row is told instead.
    """

    frame: DataFrame
    period: str | None
    shown: str
    in_files: bool = False

    @property
    def types(self) -> Mapping[str, DType | None]:
        """The columns that are there; None is a type that no dataset can declare."""
        fields = self.frame.schema.fields
        return {f.name: _known(f.dataType) for f in fields if f.name != _METADATA}

    def place(self) -> Any:
        """Return a column that says where a row lies."""
        F = functions_of(self.frame)
        return F.col(FILE) if self.in_files else F.lit(self.shown)


@dataclass(frozen=True, slots=True, kw_only=True)
class ByPosition:
    """The columns of files without a header: `names` in their order, of which the first `needed` must be there."""

    table: str
    names: tuple[str, ...]
    needed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """Locations that a connector reads.

    `source` says where paths start, and also how files are written unless `written_as` does: what a run published has
    a whole path, and the form of the datasource it was published to.
    """

    session: SparkSession
    kind: str
    locations: tuple[Location, ...]
    root: Path
    columns: ByPosition
    source: DataSource | None = None
    written_as: DataSource | None = None

    @property
    def datasource(self) -> DataSource:
        """The datasource; raise W1318 for data that a run or a service named, which has none."""
        if self.source is None:
            raise ResolutionError(
                f"{self.kind} data is read through a datasource, and {str(self.locations[0])!r} has none",
                code="W1318",
                help="name a datasource in the rule of the resolver",
            )
        return self.source


@dataclass(frozen=True, slots=True, kw_only=True)
class Staging:
    """Rows on their way to a target: files go to `folder`, rows of a database to a stage table beside the target.

    Names of files carry `rows_of`, the run that a rerun repeats; `file_name` is set when the target is one file.
    """

    kind: str
    folder: Path
    target: Path
    run_id: str
    rows_of: str
    seq: int
    root: Path
    source: DataSource | None = None
    table: str | None = None
    schema: str | None = None
    file_name: str | None = None
    csv: CsvOptions = PLAIN_CSV
    encoding: str = "UTF-8"


class SparkConnector(Protocol):
    """The functions of a connector's module; one without a sink has `scan` alone."""

    def scan(self, asked: Scan) -> list[Part]:
        """Return the rows at the locations."""

    def stage(self, rows: DataFrame, asked: Staging) -> Staged:
        """Write the rows beside their target and return what was written."""

    def current(self, rows: DataFrame, asked: Staging) -> list[Part]:
        """Return what the target holds, for a merge with `rows`."""


def spark_connector(kind: str) -> SparkConnector:
    """Return the module that reads and writes a type of datasource."""
    return cast("SparkConnector", importlib.import_module(find_connector(kind).spark))


def _known(dtype: Any) -> DType | None:
    try:
        return from_spark(dtype)
    except JoinTypeError:
        return None


def missing_columns(part: Part, names: list[str], declared: str) -> ResolutionError:
    """Return the error about declared columns that the data does not have."""
    there = list(part.types)
    close = [
        f"{name!r} could be {found[0]!r}" for name in names if (found := find_similar(name, there, most=1))
    ]
    return ResolutionError(
        f"{part.shown} has no column {format_list(names)}, which {declared} declares",
        code="W1316",
        help=(", ".join(close) + "; " if close else "") + f"it has {format_list(there, most=30)}",
    )
