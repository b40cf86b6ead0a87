"""Which version the tables of a store have, and whether this program can use them."""

from __future__ import annotations

from sqlalchemy import Connection, Text, column, inspect, select, table

from weft.core.names import listed
from weft.errors import StoreError
from weft.pipelines.store.tables import HEAD, METADATA, VERSION_TABLE


def version_of(connection: Connection) -> str | None:
    """Return the version that a store's tables have, or None when it has none."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    found = (
        connection.execute(select(column("version_num", Text)).select_from(table(VERSION_TABLE)))
        .scalars()
        .all()
    )
    if len(found) != 1:
        raise StoreError(
            f"the store says {len(found)} versions of its tables",
            code="W1602",
            help="restore it from a copy, or name another store in weft.yml",
        )
    return str(found[0])


def is_current(connection: Connection, address: str) -> bool:
    """Return whether the tables are those of this program; False when they are older.

    Raises `StoreError` when they are newer, or not all there.
    """
    version = version_of(connection)
    if version is None or version < HEAD:
        return False
    if version > HEAD:
        raise StoreError(
            f"the store {address} has tables of version {version}, this program knows {HEAD}",
            code="W1604",
            help="use the newer release of Weft that the others use: pip install --upgrade weft",
        )
    missing = set(METADATA.tables) - set(inspect(connection).get_table_names())
    if missing:
        raise StoreError(
            f"the store {address} has no table {listed(sorted(missing))}",
            code="W1602",
            help="restore it from a copy, or name another store in weft.yml",
        )
    return True


def too_old(address: str, version: str | None) -> StoreError:
    """Return the error for a shared store whose tables somebody has to bring up to date."""
    found = "no tables yet" if version is None else f"tables of version {version}"
    return StoreError(
        f"the store {address} has {found}, this program needs {HEAD}",
        code="W1603",
        help="run `weft doctor --upgrade-store` once, when no run is under way",
    )
