"""The store of a test: once in SQLite, once in PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from postgres import Server, running_server
from weft.pipelines.store.open import open_store, upgrade_store
from weft.pipelines.store.tables import METADATA
from weft.pipelines.store.writer import Store


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """Return a PostgreSQL server of our own."""
    with running_server() as server:
        yield server


@pytest.fixture(scope="session")
def team_url(postgres: Server) -> str:
    """Return the address of a database with the tables of a store."""
    url = postgres.create("team")
    upgrade_store(url, Path())
    return url


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the address of an empty store, of each kind in turn."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/store/weft.db"
    team: str = request.getfixturevalue("team_url")
    with open_store(team, tmp_path) as store:
        names = ", ".join(METADATA.tables)
        store.database.write(lambda c: c.execute(text(f"TRUNCATE {names} CASCADE")))
    return team


@pytest.fixture
def store(url: str, tmp_path: Path) -> Iterator[Store]:
    """Return an empty store that gives up soon when it cannot be reached."""
    with open_store(url, tmp_path, patience=1.0) as opened:
        yield opened
