"""Reads: the tables that a run opens, each with its version, locations, temporal filter and columns.

A run reads the rows of its period, or the rows that are valid and known at a point in time.

Before::

    read exchange_rates for 2026-01

After::

    period       _period IN ('2026-01')
    bitemporal   _period_from <= DATE '2026-01-01' AND (_period_to IS NULL OR _period_to > DATE '2026-01-01')
                 AND _known_from <= :known_at AND (_known_to IS NULL OR _known_to > :known_at)
    snapshot     TRUE

Ranges are half-open: a row that starts on the date is included, one that ends on it is not.  A row whose start is NULL is
never valid.  The second line applies when the table has these columns.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from weft.core.calendar import Calendar, Period
from weft.core.documents import OPEN_WORD, Document
from weft.io.location import Location
from weft.pipelines.model.dataset import Dataset, TableDef
from weft.pipelines.model.values import (
    PERIOD_START,
    AsOfDay,
    ResolverSource,
    TemporalMode,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TemporalFilter:
    """The rows that a read keeps.

    `identifiers` are the periods of a period table, `instant` is the date of a bitemporal one, None when a join decides for
    each row.  When `known_at` is None, known times are not compared.
    """

    mode: TemporalMode
    identifiers: tuple[str, ...] = ()
    instant: dt.date | None = None
    known_at: dt.datetime | None = None

    def __str__(self) -> str:
        if self.mode == "snapshot":
            return "all rows"
        if self.mode == "period":
            return f"_period {', '.join(self.identifiers)}"
        return "as of each row's day" if self.instant is None else f"as of {self.instant}"


def build_filter(
    table: TableDef,
    period: Period,
    calendar: Calendar,
    *,
    as_of: AsOfDay = PERIOD_START,
    known_at: dt.datetime | None = None,
    data_level: str | None = None,
) -> TemporalFilter:
    """Return the temporal filter of a table in a run of `period`.

    A period table is filtered by the period and all periods inside it, so that a quarter reads rows tagged by month.
    Days are not reporting periods: they are included only when they are the `data_level`, the level of the data files.

    >>> from weft.core.calendar import GREGORIAN
    >>> table = TableDef(name="gl", columns=())
    >>> build_filter(table, GREGORIAN.parse("2026-Q1"), GREGORIAN).identifiers
    ('2026-Q1', '2026-01', '2026-02', '2026-03')
    >>> build_filter(table, GREGORIAN.parse("2026-01"), GREGORIAN).identifiers
    ('2026-01',)
    """
    mode = table.temporal_mode
    if mode == "period":
        identifiers = list_period_identifiers(period, calendar, data_level=data_level)
        return TemporalFilter(mode=mode, identifiers=identifiers, known_at=known_at)
    if mode == "snapshot":
        return TemporalFilter(mode=mode)  # one state without history, so `known_at` does not apply
    return TemporalFilter(mode=mode, instant=_instant(as_of, period), known_at=known_at)


def list_period_identifiers(period: Period, calendar: Calendar, *, data_level: str | None = None) -> tuple[str, ...]:
    """Return the identifier of a period and of all periods inside it, level by level."""
    identifiers = [period.identifier]
    # Rows may be tagged with any level; those of an enclosing period are not part of this one.
    for level in calendar.below(period.level):
        inside = calendar.within(period.start, period.end, level)
        if level == data_level or any(p.days > 1 for p in inside):
            identifiers += [p.identifier for p in inside]
    return tuple(dict.fromkeys(identifiers))


def _instant(as_of: AsOfDay, period: Period) -> dt.date | None:
    if as_of.kind == "period_start":
        return period.start_date
    return period.end_date if as_of.kind == "period_end" else as_of.date


Role = Literal["input", "join", "append", "lookup"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetPin(Document):
    """The version of a dataset that a project reads, and the resolver that locates its data."""

    UNLISTED: ClassVar = ("seq", "alias", "resolver_id", "resolver_version")

    role: Annotated[Role, OPEN_WORD]
    seq: int | None
    alias: str
    dataset_id: str
    dataset_version: int
    resolver_id: str
    resolver_version: int
    resolver_source: Annotated[ResolverSource, OPEN_WORD]


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """A table to open: `name` is unique in a plan, ``input``, ``10.fx``, ``lookup.accounts``, ``30.source``.

    `columns` are those that the plan needs, declared columns and Weft's own.
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
