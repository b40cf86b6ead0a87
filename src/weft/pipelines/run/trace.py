"""Trace: what one operation did to each row, from the working set before and after it.

Before and after, joined on ``_row_id``::

    after only                      created
    deleted after, not before       deleted
    a column differs                updated, with the old and the new value of each
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from weft.core.names import quote
from weft.core.types import TIMESTAMP, Field, Schema
from weft.expr.spark.frames import functions_of
from weft.pipelines.plan.operations.resolved import OWN_NAMES
from weft.pipelines.spark.frame import DELETED, WorkingFrame

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

ChangeKind = Literal["created", "updated", "deleted"]
ROW_ID = "_row_id"
LABELS = "_labels"
_BEFORE, _AFTER = "__weft_b_", "__weft_a_"
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What became of a row; `row` is the row after it, `diff` the old and the new value of what changed."""

    operation: int
    change: ChangeKind
    row: Mapping[str, Any]
    before: Mapping[str, Any] | None
    diff: Mapping[str, tuple[Any, Any]]


def traced(fields: Schema) -> tuple[Field, ...]:
    """Return the columns whose change counts: those of the user, and the labels."""
    return tuple(f for f in fields.fields if f.name not in OWN_NAMES or f.name == LABELS)


def changed_rows(before: WorkingFrame, after: WorkingFrame) -> DataFrame:
    """Return the rows that an operation changed: old columns and new ones side by side."""
    F: Any = after.F
    old = _named(before.clean(), before.schema, _BEFORE, F)
    new = _named(after.clean(), after.schema, _AFTER, F)
    joined = new.join(old, F.col(_AFTER + ROW_ID) == F.col(_BEFORE + ROW_ID), "left")
    known = {f.name for f in before.schema.fields}
    created = F.col(_BEFORE + ROW_ID).isNull()
    differs = created
    for field in traced(after.schema):
        now = F.col(quote(_AFTER + field.name))
        was = F.col(quote(_BEFORE + field.name)) if field.name in known else F.lit(None)
        differs = differs | ~_comparable(now, field, F).eqNullSafe(_comparable(was, field, F))
    deleted = F.col(_AFTER + DELETED) & ~F.coalesce(F.col(_BEFORE + DELETED), F.lit(False))
    return joined.filter(differs | deleted)


def _named(df: DataFrame, schema: Schema, prefix: str, F: Any) -> DataFrame:
    return df.select(*(F.col(quote(f.name)).alias(prefix + f.name) for f in schema.fields))


def _comparable(column: Column, field: Field, F: Any) -> Column:
    """Return a value that Spark can compare: maps have no order."""
    found: Column = F.to_json(column) if field.dtype.is_nested else column
    return found


def events_of(
    rows: DataFrame, seq: int, before: Schema, after: Schema, *, most: int | None = None
) -> tuple[Event, ...]:
    """Return the events of changed rows."""
    F: Any = functions_of(rows)
    names = [(_BEFORE, f) for f in before.fields] + [(_AFTER, f) for f in after.fields]
    columns = [plain_column(F.col(quote(p + f.name)), f, F).alias(f"c{i}") for i, (p, f) in enumerate(names)]
    wanted = rows.select(*columns)
    found = (wanted if most is None else wanted.limit(most)).collect()
    return tuple(_event(_values(row, names), seq, before, after) for row in found)


def _values(row: Any, names: Sequence[tuple[str, Field]]) -> dict[str, Any]:
    return {p + f.name: plain_value(row[i], f) for i, (p, f) in enumerate(names)}


def _event(values: Mapping[str, Any], seq: int, before: Schema, after: Schema) -> Event:
    old = {f.name: values[_BEFORE + f.name] for f in before.fields}
    new = {f.name: values[_AFTER + f.name] for f in after.fields}
    is_new = old[ROW_ID] is None
    diff = {
        f.name: (None if is_new else old.get(f.name), new[f.name])
        for f in traced(after)
        if is_new or old.get(f.name) != new[f.name]
    }
    change: ChangeKind = "created" if is_new else "updated"
    if not is_new and new[DELETED] and not old[DELETED]:
        change = "deleted"
    return Event(operation=seq, change=change, row=new, before=None if is_new else old, diff=diff)


def plain_column(column: Column, field: Field, F: Any) -> Column:
    """Return a column in a form that every client gives back the same: times as microseconds since 1970."""
    found: Column = F.unix_micros(column) if field.dtype == TIMESTAMP else column
    return found


def plain_value(value: Any, field: Field) -> Any:
    """Return a value of a `plain_column`: times in UTC."""
    if value is not None and field.dtype == TIMESTAMP:
        return _EPOCH + dt.timedelta(microseconds=value)
    return value


def rows_of(df: DataFrame, fields: Sequence[Field]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a frame as Python values."""
    F: Any = functions_of(df)
    wanted = df.select(
        *(plain_column(F.col(quote(f.name)), f, F).alias(f"c{i}") for i, f in enumerate(fields))
    )
    for row in wanted.collect():
        yield {f.name: plain_value(row[i], f) for i, f in enumerate(fields)}
