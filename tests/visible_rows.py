"""Which rows a run sees, decided row by row: the reference for the filters that run on DataFrames."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

from weft.io.datasource import PERIOD
from weft.pipelines.model.values import KNOWN_FROM, KNOWN_TO, PERIOD_FROM, PERIOD_TO
from weft.pipelines.plan.reads import TemporalFilter


def is_visible(filter: TemporalFilter, row: Mapping[str, Any]) -> bool:
    """Whether a run reads the row; the same rule as `TemporalFilter`, in plain Python.

    >>> rates = TemporalFilter(mode="bitemporal", instant=dt.date(2026, 1, 1))
    >>> is_visible(rates, {"_period_from": dt.date(2025, 1, 1), "_period_to": dt.date(2026, 1, 1)})
    False
    >>> is_visible(rates, {"_period_from": dt.date(2026, 1, 1), "_period_to": None})
    True
    """
    if filter.mode == "snapshot":
        return True
    if (
        filter.known_at is not None
        and KNOWN_FROM.name in row
        and not _within(_moment(filter.known_at), row[KNOWN_FROM.name], row.get(KNOWN_TO.name))
    ):
        return False
    if filter.mode == "period":
        return row[PERIOD.name] in filter.identifiers
    if filter.instant is None:
        return True
    return _within(_moment(filter.instant), row[PERIOD_FROM.name], row[PERIOD_TO.name])


def _within(at: dt.datetime, start: dt.date | None, end: dt.date | None) -> bool:
    return start is not None and _moment(start) <= at and (end is None or _moment(end) > at)


def _moment(value: dt.date) -> dt.datetime:
    """Return a date as its midnight, and a timestamp without time zone as UTC."""
    if not isinstance(value, dt.datetime):
        return dt.datetime.combine(value, dt.time(), dt.UTC)
    return value.replace(tzinfo=dt.UTC) if value.tzinfo is None else value.astimezone(dt.UTC)
