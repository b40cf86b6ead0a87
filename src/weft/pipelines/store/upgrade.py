"""Bring the tables of a store up to date, step by step, with Alembic."""

from __future__ import annotations

from pathlib import Path

from alembic.config import Config
from alembic.runtime.environment import EnvironmentContext
from alembic.runtime.migration import MigrationContext, RevisionStep
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, text

from weft.pipelines.store.connections import WRITE
from weft.pipelines.store.open import version_of
from weft.pipelines.store.tables import HEAD, METADATA, VERSION_TABLE

_FOLDER = Path(__file__).parent / "migrations"
# Any number will do as long as it is always this one: upgrades of one database wait for each other.
_ADVISORY = 0x57454654


def upgrade(engine: Engine) -> str:
    """Apply what is missing in one transaction and return the version the store has then."""
    with engine.connect().execution_options(**WRITE) as connection, connection.begin():
        return migrate(connection)


def current(engine: Engine) -> str | None:
    """Return the version of the store's tables, or None when it has none."""
    with engine.connect() as connection:
        return version_of(connection)


def migrate(connection: Connection) -> str:
    """Apply what is missing inside the transaction of a connection and return the version then."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _ADVISORY})
    config = Config()
    config.set_main_option("script_location", str(_FOLDER).replace("%", "%%"))
    config.set_main_option("version_locations", str(_FOLDER).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    script = ScriptDirectory.from_config(config)

    def steps(at: str | tuple[str, ...], _context: MigrationContext) -> list[RevisionStep]:
        return script._upgrade_revs("head", at)  # type: ignore[arg-type]  # noqa: SLF001  # as Alembic's guide does

    with EnvironmentContext(config, script, fn=steps) as environment:
        environment.configure(
            connection=connection,
            target_metadata=METADATA,
            version_table=VERSION_TABLE,
            transactional_ddl=True,
        )
        environment.run_migrations()
    return HEAD
