"""A temporal filter as a Spark condition, with the same meaning as `weft.pipelines.plan.temporal.keeps`."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from pyspark.sql import Column

from weft.core.types import DATE, TIMESTAMP, DType
from weft.expr.spark.casts import literal
from weft.io.datasource import PERIOD
from weft.pipelines.model.words import KNOWN_FROM, KNOWN_TO, PERIOD_FROM, PERIOD_TO
from weft.pipelines.plan.temporal import TemporalFilter

_RANGES = {PERIOD_FROM.name: DATE, PERIOD_TO.name: DATE}


def as_condition(filter: TemporalFilter, F: ModuleType, types: Mapping[str, DType] | None = None) -> Column:
    """Return the condition on the temporal columns of a frame.

    `types` are the temporal columns that the frame has, dates or timestamps; without them ranges are dates
    and there is no knowledge.  Timestamps are compared at 00:00 UTC of the day.
    """
    known = _RANGES if types is None else types
    conditions: list[Any] = []
    if filter.mode == "period":
        conditions.append(F.col(PERIOD.name).isin(*filter.identifiers))
    if filter.mode == "bitemporal" and filter.instant is not None:
        conditions.append(_within(F, filter.instant, PERIOD_FROM.name, PERIOD_TO.name, known))
    if filter.mode != "snapshot" and filter.known_at is not None and KNOWN_FROM.name in known:
        conditions.append(_within(F, filter.known_at, KNOWN_FROM.name, KNOWN_TO.name, known))
    found: Column = F.lit(True)
    for index, condition in enumerate(conditions):
        found = condition if index == 0 else found & condition
    return found


def _within(F: ModuleType, at: dt.date, start: str, end: str, types: Mapping[str, DType]) -> Any:
    begun = F.col(start) <= _moment(F, at, types[start])
    if end not in types:
        return begun
    return begun & (F.col(end).isNull() | (F.col(end) > _moment(F, at, types[end])))


def _moment(F: ModuleType, at: dt.date, dtype: DType) -> Any:
    if dtype == DATE or isinstance(at, dt.datetime):
        return literal(F, at, dtype)
    return literal(F, dt.datetime.combine(at, dt.time(), dt.UTC), TIMESTAMP)
