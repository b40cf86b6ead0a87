"""Operation: one step of a project; what it does is said by its type and arguments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from weft.core.frozen import FrozenMap
from weft.core.source import NOWHERE, Sites
from weft.io.datasource import FileFormat, WriteMode
from weft.pipelines.model.reference import PERIOD_END, PERIOD_START, AsOfSaid, DatasetRef, Said
from weft.pipelines.model.words import OnMultiple, OperationType

__all__ = [
    "PERIOD_END",
    "PERIOD_START",
    "Aggregate",
    "Aggregation",
    "Append",
    "Arguments",
    "AsOfSaid",
    "Assignment",
    "DatasetRef",
    "Delete",
    "Destination",
    "Operation",
    "Output",
    "RuntimeJoin",
    "Said",
    "Unread",
    "Update",
]


@dataclass(frozen=True, slots=True)
class Assignment:
    """A column and the expression that gives its value."""

    column: Said
    expression: Said

    def to_dict(self) -> dict[str, Any]:
        """Return the form that a project file has."""
        return {"column": self.column.text, "expression": self.expression.text}


@dataclass(frozen=True, slots=True)
class Aggregation:
    """A column of summary rows and the aggregate that gives its value."""

    column: Said
    expression: Said

    def to_dict(self) -> dict[str, Any]:
        """Return the form that a project file has."""
        return {"column": self.column.text, "expression": self.expression.text}


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeJoin:
    """A dataset whose columns the assignments of one update may read as ``alias.column``."""

    alias: Said
    dataset: DatasetRef
    on: Said
    table: str | None = None
    as_of: AsOfSaid = PERIOD_START
    on_multiple: OnMultiple = "error"
    order_by: tuple[str, ...] = ()
    broadcast: bool | None = None
    nulls_equal: bool = False
    at: Sites = field(default=NOWHERE, compare=False, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the form that a project file has; what nobody said is left out."""
        said: dict[str, Any] = {"alias": self.alias.text, **self.dataset.to_dict(), "on": self.on.text}
        return said | _said(
            table=self.table,
            as_of=None if self.as_of == PERIOD_START else str(self.as_of),
            on_multiple=None if self.on_multiple == "error" else self.on_multiple,
            order_by=list(self.order_by) or None,
            broadcast=self.broadcast,
            nulls_equal=self.nulls_equal or None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """Set columns of the rows that the selector matches, with joined datasets at hand."""

    assignments: tuple[Assignment, ...]
    joins: tuple[RuntimeJoin, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the form that a project file has."""
        joins = {"joins": [join.to_dict() for join in self.joins]} if self.joins else {}
        return joins | {"assignments": [a.to_dict() for a in self.assignments]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate:
    """Add one summary row for each group."""

    group_by: tuple[Said, ...]
    aggregations: tuple[Aggregation, ...]
    include_summaries: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the form that a project file has."""
        return {
            "group_by": [column.text for column in self.group_by],
            "aggregations": [a.to_dict() for a in self.aggregations],
            **_said(include_summaries=self.include_summaries or None),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Append:
    """Add the rows of another dataset, as they are, renamed by `columns`, or aggregated."""

    source: DatasetRef
    source_selector: Said | None = None
    aggregation: Aggregate | None = None
    columns: FrozenMap[str, Said] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the form that a project file has."""
        return {"source": self.source.to_dict()} | _said(
            source_selector=self.source_selector and self.source_selector.text,
            aggregation=self.aggregation and self.aggregation.to_dict(),
            columns=self.columns and {name: said.text for name, said in self.columns.items()},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """Mark the rows that the selector matches as deleted."""

    def to_dict(self) -> dict[str, Any]:
        """Return the form that a project file has."""
        return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """Where an output is written: a table of a datasource, or a path."""

    datasource: str | None = None
    table: str | None = None
    schema: str | None = None
    path: str | None = None
    format: FileFormat | None = None
    at: Sites = field(default=NOWHERE, compare=False, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the form that a project file has."""
        return _said(
            datasource_id=self.datasource,
            table=self.table,
            schema=self.schema,
            path=self.path,
            format=self.format,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """Write rows and columns of the working set; the only operation that leaves something behind."""

    destination: Destination
    columns: tuple[Said, ...] | None = None
    include_deleted: bool = False
    register_as_dataset: str | None = None
    mode: WriteMode = "replace_period"
    order_by: tuple[Said, ...] = ()
    escape_formulas: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the form that a project file has."""
        return {"destination": self.destination.to_dict()} | _said(
            columns=None if self.columns is None else [c.text for c in self.columns],
            include_deleted=self.include_deleted or None,
            register_as_dataset=self.register_as_dataset,
            mode=None if self.mode == "replace_period" else self.mode,
            order_by=[c.text for c in self.order_by] or None,
            escape_formulas=self.escape_formulas or None,
        )


@dataclass(frozen=True, slots=True)
class Unread:
    """An operation that does not read; nobody knows which columns it makes.

    Only projects that are checked hold one, never a project that runs.
    """

    text: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return what the file says."""
        return {"text": self.text}


Arguments = Update | Aggregate | Append | Delete | Output | Unread


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One step of a project, on the rows that its selector matches."""

    id: str
    seq: int
    name: str
    type: OperationType
    arguments: Arguments
    selector: Said | None = None
    description: str = ""
    checkpoint: bool = False
    at: Sites = field(default=NOWHERE, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.seq} {self.name}"

    def to_dict(self) -> dict[str, Any]:
        """Return the canonical form: seq, name, type, selector, arguments."""
        return {
            "id": self.id,
            "seq": self.seq,
            "name": self.name,
            **_said(description=self.description or None),
            "type": self.type,
            **_said(selector=self.selector and self.selector.text, checkpoint=self.checkpoint or None),
            "arguments": self.arguments.to_dict(),
        }


def _said(**parts: Any) -> dict[str, Any]:
    """Return the parts that somebody said."""
    return {key: value for key, value in parts.items() if value is not None and not _is_empty_map(value)}


def _is_empty_map(value: Any) -> bool:
    return isinstance(value, Mapping) and not value
