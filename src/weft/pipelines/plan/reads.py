"""Reads: the tables that a run opens, each with its version, places, filter and columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from weft.core.documents import WORD, Document
from weft.io.location import Location
from weft.pipelines.model.dataset import Dataset, TableDef
from weft.pipelines.model.words import ResolverSource
from weft.pipelines.plan.temporal import TemporalFilter

Role = Literal["input", "join", "append", "lookup"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetPin(Document):
    """The version of a dataset that a project takes, and the resolver that says where its data lies."""

    UNLISTED: ClassVar = ("seq", "alias", "resolver_id", "resolver_version")

    role: Annotated[Role, WORD]
    seq: int | None
    alias: str
    dataset_id: str
    dataset_version: int
    resolver_id: str
    resolver_version: int
    resolver_source: Annotated[ResolverSource, WORD]


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """A table to open: `name` is unique in a plan, ``input``, ``10.fx``, ``lookup.accounts``, ``30.source``.

    `columns` are those that the plan needs, declared ones and Weft's own.
    """

    name: str
    pin: DatasetPin
    dataset: Dataset
    table: TableDef
    locations: tuple[Location, ...]
    filter: TemporalFilter
    columns: tuple[str, ...]

    def __str__(self) -> str:
        where = ", ".join(map(str, self.locations))
        return f"{self.table.name} {where} ({self.filter})" if where else f"{self.table.name} ({self.filter})"
