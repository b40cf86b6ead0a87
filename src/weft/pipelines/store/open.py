"""Open the store of a workspace, to write or only to read."""

from __future__ import annotations

from pathlib import Path

from weft.errors import StoreError
from weft.pipelines.store.connections import PATIENCE, Database, address_of, engine_of
from weft.pipelines.store.reader import StoreReader
from weft.pipelines.store.schema_version import is_current, too_old, version_of
from weft.pipelines.store.writer import Store


def open_store(url: str, root: Path, *, patience: float = PATIENCE) -> Store:
    """Return the store at `url`; a SQLite file is made and brought up to date when it has to be."""
    return Store(_opened(url, root, patience))


def open_reader(url: str, root: Path, *, patience: float = PATIENCE) -> StoreReader | None:
    """Return the store at `url` for reading, or None when there is none yet: reading creates nothing."""
    address = address_of(url, root)
    if address.drivername == "sqlite" and not Path(str(address.database)).exists():
        return None
    return StoreReader(_opened(url, root, patience))


def upgrade_store(url: str, root: Path, *, patience: float = PATIENCE) -> str:
    """Bring the tables of a store up to date and return their version; for stores that a team shares."""
    database = _database(url, root, patience)
    try:
        if not database.read(lambda connection: is_current(connection, database.address)):
            _upgrade(database)
        return str(database.read(version_of))
    finally:
        database.close()


def _opened(url: str, root: Path, patience: float) -> Database:
    database = _database(url, root, patience)
    try:
        if not database.read(lambda connection: is_current(connection, database.address)):
            if database.engine.dialect.name != "sqlite":
                raise too_old(database.address, database.read(version_of))
            _upgrade(database)
    except StoreError:
        database.close()
        raise
    return database


def _upgrade(database: Database) -> None:
    from weft.pipelines.store.upgrade import migrate  # noqa: PLC0415  # Alembic takes a while to load

    database.write(migrate)


def _database(url: str, root: Path, patience: float) -> Database:
    address = address_of(url, root)
    if address.drivername == "sqlite":
        folder = Path(str(address.database)).parent
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as cause:
            raise StoreError(
                f"the folder {str(folder)!r} of the store cannot be made: {cause.strerror}",
                help="give the user of this process the right to write there, or name another store in weft.yml",
            ) from cause
    return Database(engine_of(address), patience)
