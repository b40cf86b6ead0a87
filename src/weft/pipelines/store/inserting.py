"""The insert that decides who was first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, Table
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql.dml import ReturningInsert


def added(connection: Connection, table: Table, values: Mapping[str, Any]) -> ReturningInsert[Any]:
    """Return an insert that gives a row back when it added one, and nothing when the key is taken."""
    key = next(iter(table.primary_key))
    if connection.dialect.name == "postgresql":
        return postgresql.insert(table).values(**values).on_conflict_do_nothing().returning(key)
    return sqlite.insert(table).values(**values).on_conflict_do_nothing().returning(key)
