"""Values that entities share: closed sets of words, system columns, references with their locations."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass, field
from typing import Any, Literal

from weft.core import types
from weft.core.source import Source
from weft.core.types import Field
from weft.io.datasource import PERIOD

OperationType = Literal["update", "aggregate", "append", "delete", "output"]
ProjectStatus = Literal["draft", "active", "inactive", "conflict"]
CalendarStatus = Literal["draft", "active", "deprecated"]
TemporalMode = Literal["period", "bitemporal", "snapshot"]
Materialization = Literal["eager", "runtime"]
Visibility = Literal["private", "public"]
Conformance = Literal["extended", "strict"]
OnMultiple = Literal["error", "first", "all"]
Check = Literal["off", "warn", "fail"]
AsOfKind = Literal["period_start", "period_end", "date", "column"]
ResolverSource = Literal["project_override", "dataset_resolver", "system_default"]
RowKind = Literal["detail", "summary", "appended"]
RunStatus = Literal["queued", "running", "completed", "failed", "cancelled"]
Origin = Literal["file", "registered"]

SYSTEM_COLUMNS: tuple[Field, ...] = (
    Field("_row_id", types.STRING, nullable=False),
    Field("_row_kind", types.STRING, nullable=False),
    Field("_source_dataset_id", types.STRING),
    Field("_source_table", types.STRING),
    Field("_created_by_project_id", types.STRING),
    Field("_created_by_run_id", types.STRING),
    Field("_created_at", types.TIMESTAMP),
    Field("_updated_at", types.TIMESTAMP),
    Field("_operation_seq", types.LONG),
    Field("_deleted", types.BOOLEAN, nullable=False),
    Field("_labels", types.Map(types.STRING, types.STRING)),
)
"""The columns that Weft adds to every row of a working set, after the business columns."""

PERIOD_FROM = Field("_period_from", types.DATE)
PERIOD_TO = Field("_period_to", types.DATE)
KNOWN_FROM = Field("_known_from", types.TIMESTAMP)
KNOWN_TO = Field("_known_to", types.TIMESTAMP)

RESERVED_TARGETS: frozenset[str] = frozenset(
    {
        *(f.name for f in SYSTEM_COLUMNS if f.name != "_labels"),
        *(f.name for f in (PERIOD, PERIOD_FROM, PERIOD_TO, KNOWN_FROM, KNOWN_TO)),
        # Names that other tools give to validity ranges: Weft reads none of them, see W1319.
        "_valid_from",
        "_valid_to",
    }
)
"""Columns that no assignment or aggregation can write; ``_labels`` is set with LABEL_SET."""


def temporal_columns(mode: TemporalMode, *, known: bool = False) -> tuple[Field, ...]:
    """Return the columns that assign a row to a period or a validity range.

    >>> [f.name for f in temporal_columns("bitemporal")]
    ['_period_from', '_period_to']
    """
    # A snapshot table has no period in its data, but its rows get the period of the run that reads them.
    validity = (PERIOD_FROM, PERIOD_TO) if mode == "bitemporal" else (PERIOD,)
    return (*validity, KNOWN_FROM, KNOWN_TO) if known else validity


@dataclass(frozen=True, slots=True)
class LocatedText:
    """A string that a user wrote, usually an expression, with its location."""

    text: str
    at: Source | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return self.text


MISSING_INPUT = "?"
"""Placeholder for the input dataset that a file does not name, so that the rest can be checked."""


# At most nine digits: a version must fit a 32-bit column of the store.
PINNED = re.compile(r"(.*\S)@([1-9][0-9]{0,8})")
"""A reference with a version: ``gl@3``."""


@dataclass(frozen=True, slots=True)
class DatasetRef:
    """A dataset by id or name, with its version if it is pinned.

    >>> str(DatasetRef("gl", 3)), str(DatasetRef("gl"))
    ('gl@3', 'gl')
    """

    name: str
    version: int | None = None
    at: Source | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return self.name if self.version is None else f"{self.name}@{self.version}"

    def to_dict(self, *, dataset: str = "dataset_id", version: str = "dataset_version") -> dict[str, Any]:
        """Return the reference as a mapping with the given keys."""
        return {dataset: self.name} | ({} if self.version is None else {version: self.version})


@dataclass(frozen=True, slots=True)
class AsOfDay:
    """The day at which a bitemporal table is read.

    >>> str(PERIOD_START), str(AsOfDay("date", date=dt.date(2026, 1, 31)))
    ('period_start', '2026-01-31')
    """

    kind: AsOfKind
    date: dt.date | None = None
    column: str | None = None

    def __str__(self) -> str:
        if self.date is not None:
            return self.date.isoformat()
        return self.column if self.column is not None else self.kind


PERIOD_START = AsOfDay("period_start")
PERIOD_END = AsOfDay("period_end")
