"""Rows in the reference engine of streams, and rejected rows."""

from __future__ import annotations

import datetime as dt
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from weft.errors import ArgumentError
from weft.streams.plan.resolved import Input, TableInput, column_slot, time_slot
from weft.testing.values import microseconds

Row = Mapping[str, Any] | str
"""A row as a source has it: values by column, or the text of an invalid line."""

_EPOCH = {"epoch_seconds": 1_000_000, "epoch_millis": 1_000, "epoch_micros": 1}


@dataclass(slots=True, eq=False)
class Item:
    """One row: values by slot, the time that the next join compares, the batch in which it arrived."""

    values: dict[Hashable, Any]
    time: int | None = None
    batch: int = 0
    unread: str | None = None
    matched: bool = False
    over: bool = False
    evicted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """A rejected row: side, reason, its time, the watermark, the batch, its values."""

    side: str
    reason: str
    time: int | None
    watermark: int | None
    batch: int
    matched: bool = False
    values: Mapping[str, Any] = field(default_factory=dict)


def of_stream(source: Input, row: Row, batch: int) -> Item:
    """Return a row of a stream as an item."""
    if isinstance(row, str):
        return Item({time_slot(source.number): None}, None, batch, unread=row)
    values: dict[Hashable, Any] = {
        column_slot(source.number, i): row.get(f.name) for i, f in enumerate(source.stream.columns)
    }
    time = time_of(source, row)
    values[time_slot(source.number)] = time
    return Item(values, time, batch)


def of_table(source: TableInput, row: Mapping[str, Any]) -> Item:
    """Return a row of a table as an item."""
    return Item({column_slot(source.number, i): row.get(f.name) for i, f in enumerate(source.table.columns)})


def time_of(source: Input, row: Mapping[str, Any]) -> int | None:
    """Return the event time of a row in microseconds, or None."""
    name = source.stream.event_time
    value = None if name is None else row.get(name)
    if value is None or isinstance(value, dt.datetime):
        return None if value is None else microseconds(value)
    if isinstance(value, int) and source.stream.time_format in _EPOCH:
        return value * _EPOCH[source.stream.time_format]
    if isinstance(value, str):
        return microseconds(dt.datetime.fromisoformat(value))
    raise ArgumentError(
        f"{value!r} is not an event time in the format {source.stream.time_format!r}",
        help="use a datetime, an ISO string, or an integer with an epoch format",
    )
