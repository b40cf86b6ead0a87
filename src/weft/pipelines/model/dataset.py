"""Dataset: tables, columns and lookups that have a name and a version; where the data lies is a resolver's business."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from weft.core import types
from weft.core.fingerprint import fingerprint
from weft.core.names import listed, near
from weft.core.source import NOWHERE, Sites
from weft.core.types import DType, Field, Schema
from weft.errors import UnknownColumnError
from weft.io.datasource import EntityStatus
from weft.pipelines.model.reference import PERIOD_START, AsOfSaid, DatasetRef
from weft.pipelines.model.words import Check, Origin, TemporalMode

__all__ = ["ColumnDef", "Dataset", "DatasetRef", "LookupDef", "TableDef", "type_text"]


def type_text(dtype: DType) -> str:
    """Return a type as dataset files write it: their ``integer`` has 64 bits.

    >>> type_text(types.LONG), type_text(types.Decimal(18, 2))
    ('integer', 'decimal(18,2)')
    """
    return "integer" if dtype == types.LONG else str(dtype)


@dataclass(frozen=True, slots=True)
class ColumnDef:
    """A column that a table declares; `previous_name` is the one it had in an older version."""

    name: str
    dtype: DType
    nullable: bool = True
    description: str = ""
    previous_name: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the form that a dataset file has."""
        return _without_empty(
            {
                "name": self.name,
                "type": type_text(self.dtype),
                "nullable": self.nullable,
                "description": self.description,
                "previous_name": self.previous_name,
            }
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDef:
    """A table: its columns, and how its rows are placed in time."""

    name: str
    columns: tuple[ColumnDef, ...]
    temporal_mode: TemporalMode = "period"
    overlap: Check = "off"
    at: Sites = field(default=NOWHERE, compare=False, repr=False)

    @property
    def schema(self) -> Schema:
        """The declared columns; names are told apart by case."""
        return Schema(tuple(Field(c.name, c.dtype, c.nullable) for c in self.columns), case_sensitive=True)

    def to_dict(self) -> dict[str, Any]:
        """Return the form that a dataset file has."""
        return {
            "name": self.name,
            "temporal_mode": self.temporal_mode,
            **({} if self.overlap == "off" else {"overlap": self.overlap}),
            "columns": [c.to_dict() for c in self.columns],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupDef:
    """A table or dataset whose columns every operation may read as ``alias.column``.

    `join_conditions` are pairs: a column of the main table, a column of the target.
    """

    alias: str
    target: TableDef | DatasetRef
    join_conditions: tuple[tuple[str, str], ...]
    as_of: AsOfSaid = PERIOD_START
    at: Sites = field(default=NOWHERE, compare=False, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the form that a dataset file has."""
        target = (
            {"type": "table", **self.target.to_dict()}
            if isinstance(self.target, TableDef)
            else {"type": "dataset", **self.target.to_dict(dataset="id", version="version")}
        )
        return {
            "alias": self.alias,
            "target": target,
            "join_conditions": [{"source_column": s, "target_column": t} for s, t in self.join_conditions],
            **({} if self.as_of == PERIOD_START else {"as_of": str(self.as_of)}),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """One version of a dataset.

    >>> rates = TableDef(name="rates", columns=(ColumnDef("rate", types.Decimal(18, 6)),))
    >>> gl = Dataset(id="fx", name="fx", version=1, status="active", main_table=rates)
    >>> gl.schema("rates").names, str(gl)
    (('rate',), 'fx v1')
    """

    id: str
    name: str
    version: int
    status: EntityStatus
    main_table: TableDef
    lookups: tuple[LookupDef, ...] = ()
    natural_key_columns: tuple[str, ...] = ()
    resolver_id: str | None = None
    check_keys: Check = "off"
    description: str = ""
    owner: str = ""
    origin: Origin = "file"
    at: Sites = field(default=NOWHERE, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.name} v{self.version}"

    @property
    def tables(self) -> tuple[TableDef, ...]:
        """The main table, then the tables of the lookups that are no datasets of their own."""
        own = (lookup.target for lookup in self.lookups)
        return (self.main_table, *(target for target in own if isinstance(target, TableDef)))

    def table(self, name: str) -> TableDef:
        """Return the table of that name, or the one a lookup of that alias reads."""
        for known, table in self._named():
            if known == name:
                return table
        names = [known for known, _ in self._named()]
        close = near(name, names, most=1)
        raise UnknownColumnError(
            f"dataset {self} has no table {name!r}",
            help=f"did you mean {close[0]!r}?" if close else f"it has {listed(dict.fromkeys(names))}",
        )

    def schema(self, table: str) -> Schema:
        """Return the declared columns of the table of that name or alias."""
        return self.table(table).schema

    def _named(self) -> Iterator[tuple[str, TableDef]]:
        yield self.main_table.name, self.main_table
        for lookup in self.lookups:
            if isinstance(lookup.target, TableDef):
                yield lookup.alias, lookup.target
                yield lookup.target.name, lookup.target

    def structure(self) -> dict[str, Any]:
        """Return what a new version is about: tables, columns, types, keys, lookups."""
        return {
            "natural_key_columns": list(self.natural_key_columns),
            "main_table": self.main_table.to_dict(),
            "lookups": [lookup.to_dict() for lookup in self.lookups],
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the canonical form of a dataset file; the store keeps it."""
        said = {
            "id": self.id,
            "name": self.name,
            "version": self.version,
            "status": self.status,
            "description": self.description,
            "owner": self.owner,
            "resolver_id": self.resolver_id,
            "check_keys": None if self.check_keys == "off" else self.check_keys,
            "origin": None if self.origin == "file" else self.origin,
        }
        return _without_empty(said) | self.structure()

    def fingerprint(self) -> str:
        """Return the hash of everything that can change a result; status and prose cannot."""
        said = self.to_dict()
        for key in ("status", "owner", "description", "origin"):
            said.pop(key, None)
        return fingerprint(said)


def _without_empty(said: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in said.items() if value is not None and value != ""}
