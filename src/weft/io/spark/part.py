"""Part: rows as a source has them, before they become the rows of a dataset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from weft.core.names import listed, near
from weft.core.types import DType
from weft.errors import JoinTypeError, ResolutionError
from weft.expr.spark.frames import functions_of
from weft.expr.spark.types import from_spark

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


def _known(dtype: Any) -> DType | None:
    try:
        return from_spark(dtype)
    except JoinTypeError:
        return None


def missing_columns(part: Part, names: list[str], declared: str) -> ResolutionError:
    """Return the error about declared columns that the data does not have."""
    there = list(part.types)
    close = [f"{name!r} could be {found[0]!r}" for name in names if (found := near(name, there, most=1))]
    return ResolutionError(
        f"{part.shown} has no column {listed(names)}, which {declared} declares",
        code="W1316",
        help=(", ".join(close) + "; " if close else "") + f"it has {listed(there, most=30)}",
    )
