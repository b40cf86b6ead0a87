"""The words that the files of a workspace take, each a closed set, and the columns that are Weft's own."""

from __future__ import annotations

from typing import Literal

from weft.core import types
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
"""The columns that every row of a working set carries behind its own, in this order."""

PERIOD_FROM = Field("_period_from", types.DATE)
PERIOD_TO = Field("_period_to", types.DATE)
KNOWN_FROM = Field("_known_from", types.TIMESTAMP)
KNOWN_TO = Field("_known_to", types.TIMESTAMP)

RESERVED_TARGETS: frozenset[str] = frozenset(
    {
        *(f.name for f in SYSTEM_COLUMNS if f.name != "_labels"),
        *(f.name for f in (PERIOD, PERIOD_FROM, PERIOD_TO, KNOWN_FROM, KNOWN_TO)),
        "_valid_from",
        "_valid_to",
    }
)
"""Columns that no assignment or aggregation may write; ``_labels`` is written by LABEL_SET alone."""


def temporal_columns(mode: TemporalMode, *, known: bool = False) -> tuple[Field, ...]:
    """Return the columns that place a row in time, behind the system columns.

    >>> [f.name for f in temporal_columns("bitemporal")]
    ['_period_from', '_period_to']
    """
    placed = (PERIOD_FROM, PERIOD_TO) if mode == "bitemporal" else (PERIOD,)
    return (*placed, KNOWN_FROM, KNOWN_TO) if known else placed
