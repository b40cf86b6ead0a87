"""The Spark part of connectors: requests to read and to write, and the rows that they return.

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

    `period` is the period of all of them, None when each row has its own.  `label` is the name of
    the part in messages; for files the file of the row is named instead.
    """

    frame: DataFrame
    period: str | None
    label: str
    in_files: bool = False

    @property
    def types(self) -> Mapping[str, DType | None]:
        """The columns that are there; None is a type that no dataset can declare."""
        fields = self.frame.schema.fields
        return {f.name: _known(f.dataType) for f in fields if f.name != _METADATA}

    def place(self) -> Any:
        """Return a column with the place of a row: its file or the label of the part."""
        F = functions_of(self.frame)
        return F.col(FILE) if self.in_files else F.lit(self.label)


@dataclass(frozen=True, slots=True, kw_only=True)
class ByPosition:
    """The columns of files without a header: `names` in their order, of which the first `needed` must be there."""

    table: str
    names: tuple[str, ...]
    needed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """Locations that a connector reads.

    `source` has the prefix of paths, and the file format unless `written_as` has it: data that a run published has
    a full path, and the format of the datasource it was published to.
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

    File names contain `rows_of`, the run that a rerun repeats; `file_name` is set when the target is one file.
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

    def scan(self, request: Scan) -> list[Part]:
        """Return the rows at the locations."""

    def stage(self, rows: DataFrame, request: Staging) -> Staged:
        """Write the rows beside their target and return what was written."""

    def current(self, rows: DataFrame, request: Staging) -> list[Part]:
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
    available = list(part.types)
    close = [
        f"{name!r} could be {similar[0]!r}" for name in names if (similar := find_similar(name, available, most=1))
    ]
    return ResolutionError(
        f"{part.label} has no column {format_list(names)}, which {declared} declares",
        code="W1316",
        help=(", ".join(close) + "; " if close else "") + f"it has {format_list(available, most=30)}",
    )
