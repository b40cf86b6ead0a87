"""Column types of the store that are the same in every database: times and JSON; the canonical text of a snapshot."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import ColumnElement, DateTime, Dialect, Text, func, literal
from sqlalchemy.types import TypeDecorator, TypeEngine

from weft.errors import ArgumentError


class Moment(TypeDecorator[dt.datetime]):
    """An instant: ``timestamptz`` in PostgreSQL, UTC text in SQLite, of one width so that it sorts."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Return the type that the database has for it."""
        if dialect.name == "postgresql":
            return dialect.type_descriptor(DateTime(timezone=True))
        return dialect.type_descriptor(Text())

    def process_bind_param(self, value: dt.datetime | None, dialect: Dialect) -> Any:
        """Return what is sent to the database."""
        if value is None:
            return None
        moment = utc(value)
        return moment if dialect.name == "postgresql" else moment_text(moment)

    def process_result_value(self, value: Any, dialect: Dialect) -> dt.datetime | None:
        """Return the instant that the database holds."""
        if value is None:
            return None
        return value.astimezone(dt.UTC) if dialect.name == "postgresql" else dt.datetime.fromisoformat(value)


class Json(TypeDecorator[Any]):
    """A JSON value as canonical text, so that equal values are equal bytes in every database."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:  # noqa: ARG002
        """Return the canonical text."""
        return None if value is None else json_text(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:  # noqa: ARG002
        """Return the value of the text."""
        return None if value is None else json.loads(value)


def first_of(column: ColumnElement[dt.datetime | None], now: dt.datetime) -> ColumnElement[Any]:
    """Return the instant that a column holds, or `now` where it holds none."""
    # The explicit type keeps SQLAlchemy from writing the value in SQLite's own format of times.
    return func.coalesce(column, literal(now, Moment()))


def utc(moment: dt.datetime) -> dt.datetime:
    """Return the instant in UTC; one without a zone is rejected as ambiguous."""
    if moment.tzinfo is None:
        raise ArgumentError(
            f"the time {moment.isoformat()} has no zone", help="give it one: datetime.now(datetime.UTC)"
        )
    return moment.astimezone(dt.UTC)


def moment_text(moment: dt.datetime) -> str:
    """Return the canonical text of an instant.

    All texts have the same width, so that a database that compares them as texts compares the instants.

    >>> moment_text(dt.datetime(2026, 11, 15, 12, 40, 2, tzinfo=dt.timezone(dt.timedelta(hours=1))))
    '2026-11-15T11:40:02.000000Z'
    """
    return utc(moment).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


_STORABLE = "use strings, integers, booleans, None, lists and mappings with string keys"


def json_text(value: Any) -> str:
    """Return the canonical JSON text of a value: keys sorted, no whitespace, valid JSON only.

    >>> json_text({"b": (1, 2), "a": None})
    '{"a":null,"b":[1,2]}'
    """
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False, default=_plain)
    except (TypeError, ValueError) as cause:
        raise ArgumentError(f"the store cannot keep this value: {cause}", help=_STORABLE) from cause


def _plain(value: Any) -> Any:
    """Return a mapping that is not a dict as one; the only values that `json.dumps` asks about and the store keeps."""
    if isinstance(value, Mapping):
        return dict(value)
    raise ArgumentError(f"the store cannot keep a value of type {type(value).__name__}", help=_STORABLE)


def snapshot_fingerprint(snapshot: Mapping[str, Any]) -> str:
    """Return the sha256 of the canonical JSON of a snapshot, in hex.

    >>> snapshot_fingerprint({"b": 1, "a": 2}) == snapshot_fingerprint({"a": 2, "b": 1})
    True
    """
    return hashlib.sha256(json_text(snapshot).encode()).hexdigest()
