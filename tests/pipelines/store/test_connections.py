from __future__ import annotations

import sqlite3
import sys
from pathlib import Path

import pytest
from sqlalchemy.exc import OperationalError

from store_values import new_run
from weft.errors import StoreError
from weft.pipelines.store import open as opening
from weft.pipelines.store.connections import Database, address_of, engine_of
from weft.pipelines.store.open import open_reader, open_store


def test_relative_files_are_below_the_workspace(tmp_path: Path) -> None:
    assert address_of("sqlite:///.weft/weft.db", tmp_path).database == f"{tmp_path}/.weft/weft.db"
    assert address_of("sqlite:////var/weft.db", tmp_path).database == "/var/weft.db"


@pytest.mark.parametrize(
    "given", ["postgresql://ann@db/weft", "postgres://ann@db/weft", "postgresql+psycopg://ann@db/weft"]
)
def test_every_spelling_of_postgresql_is_the_same(given: str, tmp_path: Path) -> None:
    address = address_of(given, tmp_path)
    assert (address.drivername, address.host, address.database) == ("postgresql+psycopg", "db", "weft")


def test_the_address_may_be_in_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(StoreError, match="'WEFT_STORE', which is not set"):
        address_of("env:WEFT_STORE", tmp_path)
    monkeypatch.setenv("WEFT_STORE", "sqlite:///other.db")
    assert address_of("env:WEFT_STORE", tmp_path).database == f"{tmp_path}/other.db"


@pytest.mark.parametrize(
    ("given", "reported"),
    [
        ("weft.db", "is not a database URL"),
        ("postgresql://ann:geheim@db:port/weft", "is not a database URL"),
        ("", "is not a database URL"),
        ("mysql://db/weft", "unsupported store 'mysql'"),
        ("sqlite://", "would forget every run"),
        ("sqlite:///:memory:", "would forget every run"),
    ],
)
def test_an_invalid_address_is_reported(given: str, reported: str, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=reported) as refused:
        address_of(given, tmp_path)
    assert refused.value.code == "W1601"
    assert "sqlite:///.weft/weft.db" in refused.value.help
    assert "geheim" not in str(refused.value)


def test_reading_creates_nothing(tmp_path: Path) -> None:
    assert open_reader("sqlite:///.weft/weft.db", tmp_path) is None
    assert list(tmp_path.iterdir()) == []


def test_a_reader_sees_what_was_written(tmp_path: Path) -> None:
    with open_store("sqlite:///weft.db", tmp_path) as store:
        run = store.create_run(new_run())
        with open_reader("sqlite:///weft.db", tmp_path) as reader:  # type: ignore[union-attr]
            assert reader.run(run.id) == run
            assert not hasattr(reader, "create_run")


def test_a_writer_that_never_ends_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from weft.pipelines.store import connections

    monkeypatch.setattr(connections, "_BUSY_MS", 10)
    with open_store("sqlite:///weft.db", tmp_path, patience=0.1) as store:
        other = sqlite3.connect(tmp_path / "weft.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="database is locked") as refused:
            store.create_run(new_run())
        assert (refused.value.code, "another process" in refused.value.help) == ("W1601", True)
        assert store.runs() == ()  # readers are not in the way of writers, nor writers of readers
        other.execute("ROLLBACK")
        other.close()
        store.create_run(new_run())


def test_a_writer_takes_its_lock_when_it_begins_and_a_reader_takes_none(tmp_path: Path) -> None:
    other = sqlite3.connect(tmp_path / "weft.db", isolation_level=None, timeout=0)

    def is_free(_connection: object) -> bool:
        try:
            other.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return False
        other.execute("ROLLBACK")
        return True

    with open_store("sqlite:///weft.db", tmp_path) as store:
        assert not store.database.write(is_free)
        assert store.database.read(is_free)
    other.close()


def test_a_folder_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    (tmp_path / ".weft").touch()
    with pytest.raises(StoreError, match="cannot be created") as refused:
        open_store("sqlite:///.weft/weft.db", tmp_path)
    assert refused.value.code == "W1601"


def test_a_folder_in_place_of_the_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "weft.db").mkdir()
    with pytest.raises(StoreError, match="unable to open") as refused:
        open_store("sqlite:///weft.db", tmp_path)
    assert (refused.value.code, "write permission" in refused.value.help) == ("W1601", True)


def test_a_file_that_is_not_a_database_is_reported_as_damaged(tmp_path: Path) -> None:
    (tmp_path / "weft.db").write_text("not a database " * 100)
    with pytest.raises(StoreError, match="missing or damaged tables: file is not a database") as refused:
        open_store("sqlite:///weft.db", tmp_path)
    assert (refused.value.code, "restore it" in refused.value.help) == ("W1602", True)


def test_a_missing_driver_is_reported_with_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(StoreError) as refused:
        engine_of(address_of("postgresql://ann@db/weft", tmp_path))
    assert refused.value.help == 'pip install "weft[postgres]"'


def test_a_message_of_the_database_does_not_show_the_secrets_of_the_address(tmp_path: Path) -> None:
    engine = engine_of(address_of("postgresql://ann:geheim@db/weft?sslpassword=verborgen", tmp_path))
    cause = OperationalError("SELECT 1", {}, Exception("no entry for ann, geheim, verborgen"))
    reported = Database(engine).explain(cause)
    assert reported.message.endswith("cannot be reached: no entry for ann, ***, ***")


def test_alembic_is_not_loaded_to_look_at_runs(tmp_path: Path) -> None:
    import os
    import subprocess

    with open_store("sqlite:///weft.db", tmp_path):
        pass
    code = (
        "import sys; from pathlib import Path; from weft.pipelines.store.open import open_reader\n"
        f"print(len(open_reader('sqlite:///weft.db', Path({str(tmp_path)!r})).runs()), 'alembic' in sys.modules)"
    )
    root = Path(opening.__file__).parents[2]
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        env=os.environ | {"PYTHONPATH": str(root)},
    )  # fmt: skip
    assert run.stdout.split() == ["0", "False"]
