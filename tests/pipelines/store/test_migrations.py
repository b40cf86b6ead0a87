from __future__ import annotations

import re
import shutil
import sqlite3
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Engine, inspect, text

from postgres import Server
from store_values import new_run
from weft.errors import StoreError
from weft.pipelines.store import open as opening
from weft.pipelines.store.connections import Database, address_of, engine_of
from weft.pipelines.store.open import migrate, open_reader, open_store, upgrade_store, version_of
from weft.pipelines.store.tables import HEAD, METADATA, VERSION_TABLE


def engine(url: str, tmp_path: Path) -> Engine:
    return engine_of(address_of(url, tmp_path))


def test_the_steps_lead_to_the_tables_that_the_code_uses(url: str, tmp_path: Path) -> None:
    with open_store(url, tmp_path) as store, store.database.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
        assert compare_metadata(context, METADATA) == []
        for table in METADATA.tables.values():
            wanted = {c.name for c in table.constraints if type(c).__name__ == "CheckConstraint"}
            assert {c["name"] for c in inspect(connection).get_check_constraints(table.name)} == wanted


def test_upgrading_twice_is_upgrading_once(url: str, tmp_path: Path) -> None:
    assert upgrade_store(url, tmp_path) == HEAD
    database = Database(engine(url, tmp_path))
    assert database.write(migrate) == HEAD
    assert database.read(version_of) == HEAD
    database.close()


def test_the_newest_step_is_the_one_the_code_names() -> None:
    steps = sorted(p.stem for p in (Path(engine_of.__code__.co_filename).parent / "migrations").glob("0*.py"))
    assert steps[-1].partition("_")[0] == HEAD


def test_a_sqlite_store_makes_itself(tmp_path: Path) -> None:
    with open_store("sqlite:///.weft/weft.db", tmp_path) as store:
        store.create_run(new_run())
    assert (tmp_path / ".weft" / "weft.db").is_file()
    with sqlite3.connect(tmp_path / ".weft" / "weft.db") as raw:
        assert raw.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    raw.close()


def test_an_empty_sqlite_file_is_a_store_without_tables(tmp_path: Path) -> None:
    (tmp_path / "weft.db").touch()
    reader = open_reader("sqlite:///weft.db", tmp_path)
    assert reader is not None
    assert reader.runs() == ()
    reader.close()


def test_a_team_store_is_upgraded_by_hand(postgres: Server, tmp_path: Path) -> None:
    url = postgres.create("by_hand")
    with pytest.raises(StoreError, match="has no tables yet") as old:
        open_store(url, tmp_path)
    assert old.value.code == "W1603"
    assert "weft doctor --upgrade-store" in old.value.help
    assert upgrade_store(url, tmp_path) == HEAD
    with open_store(url, tmp_path) as store:
        assert store.runs() == ()


@pytest.mark.parametrize(
    ("change", "code", "reported"),
    [
        ("UPDATE store_version SET version_num = '9999'", "W1604", "tables of version 9999"),
        ("DROP TABLE locks", "W1602", "has no table 'locks'"),
        ("DELETE FROM store_version", "W1602", "has 0 versions"),
    ],
)
def test_a_store_that_does_not_fit_is_reported(tmp_path: Path, change: str, code: str, reported: str) -> None:
    url = "sqlite:///weft.db"
    with open_store(url, tmp_path) as store:
        store.database.write(lambda c: c.execute(text(change)))
    for opened in (open_store, open_reader, upgrade_store):
        with pytest.raises(StoreError, match=reported) as refused:
            opened(url, tmp_path)
        assert refused.value.code == code


def test_a_newer_team_store_is_not_touched(postgres: Server, tmp_path: Path) -> None:
    url = postgres.create("newer")
    upgrade_store(url, tmp_path)
    made = Database(engine(url, tmp_path))
    made.write(lambda c: c.execute(text("UPDATE store_version SET version_num = '9999'")))
    with pytest.raises(StoreError) as refused:
        open_store(url, tmp_path)
    assert refused.value.code == "W1604"
    assert made.read(version_of) == "9999"
    made.close()


def test_a_file_that_is_not_a_database_is_reported(tmp_path: Path) -> None:
    (tmp_path / "weft.db").write_text("this is not a database but a text of more than a page\n" * 100)
    with pytest.raises(StoreError) as refused:
        open_store("sqlite:///weft.db", tmp_path)
    assert refused.value.code == "W1602"


def test_the_migration_of_the_contributing_page_keeps_the_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = Path(__file__).parents[3] / "CONTRIBUTING.md"
    (block,) = re.findall(r"```py\n(\"\"\"Runs have.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    with open_store("sqlite:///weft.db", tmp_path) as store:
        store.create_run(new_run())
        (run,) = store.runs()
    folder = tmp_path / "migrations"
    shutil.copytree(opening._MIGRATIONS, folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "0002_run_note.py").write_text(block, encoding="utf-8")
    monkeypatch.setattr(opening, "_MIGRATIONS", folder)
    migrated = engine("sqlite:///weft.db", tmp_path)
    with migrated.begin() as connection:
        migrate(connection)
        assert version_of(connection) == "0002"
        rows = connection.execute(text("SELECT id, note FROM runs")).all()
    migrated.dispose()
    assert [tuple(row) for row in rows] == [(run.id, None)]
