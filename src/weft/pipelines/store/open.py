"""Open the store of a workspace for writing or reading, and migrate its tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Text, column, inspect, select, table, text

from weft.core.names import format_list
from weft.errors import StoreError
from weft.pipelines.store.connections import PATIENCE, Database, address_of, engine_of
from weft.pipelines.store.reader import StoreReader
from weft.pipelines.store.tables import HEAD, METADATA, VERSION_TABLE
from weft.pipelines.store.writer import Store

_MIGRATIONS = Path(__file__).parent / "migrations"
_UPGRADE_LOCK = 0x57454654
"""Key of the advisory lock that serializes upgrades of one PostgreSQL database; any fixed number will do."""


def version_of(connection: Connection) -> str | None:
    """Return the version that a store's tables have, or None when it has none."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    versions = connection.execute(select(column("version_num", Text)).select_from(table(VERSION_TABLE))).scalars().all()
    if len(versions) != 1:
        raise StoreError(
            f"the store has {len(versions)} versions of its tables",
            code="W1602",
            help="restore it from a copy, or name another store in weft.yml",
        )
    return str(versions[0])


def is_current(connection: Connection, address: str) -> bool:
    """Return whether the tables are those of this program; False when they are older.

    Raises `StoreError` when they are newer, or not all there.
    """
    version = version_of(connection)
    # Versions are numbers of four digits, so they compare as texts.
    if version is None or version < HEAD:
        return False
    if version > HEAD:
        raise StoreError(
            f"the store {address} has tables of version {version}, this release supports {HEAD}",
            code="W1604",
            help="install a newer release: pip install --upgrade weft",
        )
    missing = set(METADATA.tables) - set(inspect(connection).get_table_names())
    if missing:
        raise StoreError(
            f"the store {address} has no table {format_list(sorted(missing))}",
            code="W1602",
            help="restore it from a copy, or name another store in weft.yml",
        )
    return True


def too_old(address: str, version: str | None) -> StoreError:
    """Return the error for a shared store whose tables must be migrated by hand."""
    present = "no tables yet" if version is None else f"tables of version {version}"
    return StoreError(
        f"the store {address} has {present}, this release needs {HEAD}",
        code="W1603",
        help="run `weft doctor --upgrade-store` once, when no run is under way",
    )


def open_store(url: str, root: Path, *, patience: float = PATIENCE) -> Store:
    """Return the store at `url`; a SQLite file is created and migrated as needed."""
    return Store(_opened(url, root, patience))


def open_reader(url: str, root: Path, *, patience: float = PATIENCE) -> StoreReader | None:
    """Return the store at `url` for reading, or None when there is none yet: reading creates nothing."""
    address = address_of(url, root)
    if address.drivername == "sqlite" and not Path(str(address.database)).exists():
        return None
    return StoreReader(_opened(url, root, patience))


def upgrade_store(url: str, root: Path, *, patience: float = PATIENCE) -> str:
    """Migrate the tables of a shared store and return their version."""
    database = _database(url, root, patience)
    try:
        if not database.read(lambda connection: is_current(connection, database.address)):
            database.write(migrate)
        return str(database.read(version_of))
    finally:
        database.close()


def _opened(url: str, root: Path, patience: float) -> Database:
    database = _database(url, root, patience)
    try:
        if not database.read(lambda connection: is_current(connection, database.address)):
            # The server is shared: the programs of others may still need the old tables.
            if database.engine.dialect.name != "sqlite":
                raise too_old(database.address, database.read(version_of))
            database.write(migrate)
    except StoreError:
        database.close()
        raise
    return database


def migrate(connection: Connection) -> str:
    """Apply the missing migrations inside the transaction of a connection and return the new version."""
    # Alembic takes a while to load, and few commands need it.
    from alembic.config import Config  # noqa: PLC0415
    from alembic.runtime.environment import EnvironmentContext  # noqa: PLC0415
    from alembic.script import ScriptDirectory  # noqa: PLC0415

    # In SQLite the transaction of a writer serializes upgrades.
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _UPGRADE_LOCK})
    # Alembic reads its options as a file of configparser, in which a percent sign is doubled.
    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    config.set_main_option("version_locations", str(_MIGRATIONS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    script = ScriptDirectory.from_config(config)

    def steps(at: Any, _context: Any) -> Any:
        return script._upgrade_revs("head", at)  # noqa: SLF001  # as Alembic's guide does

    with EnvironmentContext(config, script, fn=steps) as environment:
        environment.configure(
            connection=connection, target_metadata=METADATA, version_table=VERSION_TABLE, transactional_ddl=True
        )
        environment.run_migrations()
    return HEAD


def _database(url: str, root: Path, patience: float) -> Database:
    address = address_of(url, root)
    if address.drivername == "sqlite":
        folder = Path(str(address.database)).parent
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as cause:
            raise StoreError(
                f"the folder {str(folder)!r} of the store cannot be created: {cause.strerror}",
                help="give the user of this process write permission, or name another store in weft.yml",
            ) from cause
    return Database(engine_of(address), patience)
