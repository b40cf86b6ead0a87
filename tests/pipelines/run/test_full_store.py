"""A store whose disk is full: what was not written was not done, and the next command goes on when there is room."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import event

from engine_data import project_text, sample_workspace
from pipelines import update
from staged_runs import contents, opened, staged_run
from weft.errors import StoreError
from weft.pipelines.run.publish import recover
from weft.pipelines.store.records import Registration, RunRecord
from weft.pipelines.store.writer import Store

TARGET = "out/gl/period=2026-01"
# So many columns that the registered dataset does not fit into a page that the store has already.
WIDE = project_text(
    [
        update(**{f"column_with_a_long_name_{n}": "1" for n in range(150)}),
        "- {seq: 20, name: Write, type: output, arguments: {destination: {path: out/gl}, register_as_dataset: wide}}",
    ]
)


@contextmanager
def full(store: Store) -> Iterator[None]:
    """Let the file of the store grow no more, as on a disk without room: SQLite itself refuses."""
    engine = store.database.engine

    def limit(connection: sqlite3.Connection, _record: object) -> None:
        connection.execute("PRAGMA max_page_count = 1")  # as many pages as there are

    event.listen(engine, "connect", limit)
    engine.dispose()
    try:
        yield
    finally:
        event.remove(engine, "connect", limit)
        engine.dispose()


def test_a_run_that_the_store_has_no_room_for_does_not_begin(tmp_path: Path) -> None:
    root = sample_workspace(tmp_path, {"projects/fx_reporting.yml": WIDE})
    with opened(root) as store:
        staged_run(root, store, "old", number=1).publish()
        with full(store), pytest.raises(StoreError, match=r"W1601.*full(.|\n)*free space"):
            staged_run(root, store, "new", number=2)
        assert (len(store.runs()), store.locks()) == (1, ())
        staged_run(root, store, "new", number=2).publish()
        assert contents(root, TARGET) == ["new 20"]


def test_a_run_that_cannot_be_completed_is_completed_when_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = sample_workspace(tmp_path, {"projects/fx_reporting.yml": WIDE})
    with opened(root) as store:
        staged_run(root, store, "old", number=1).publish()
        run = staged_run(root, store, "new", number=2)
        with full(store), pytest.raises(StoreError, match=r"W1601.*full"):
            run.publish()
        assert contents(root, TARGET) == ["old 20"]  # nothing moves before the store knows of it
        complete = store.complete

        def without_room(run_id: str, wanted: Iterable[Registration]) -> RunRecord:
            with full(store):
                return complete(run_id, wanted)

        with monkeypatch.context() as patched:
            patched.setattr(store, "complete", without_room)
            with pytest.raises(StoreError, match=r"W1601.*full"):
                run.publish()
        # Its files are at their target, the old ones are kept, and nothing says that the run has ended.
        assert contents(root, TARGET) == ["new 20"]
        assert contents(root, f".weft/stage/{run.run_id}/20.before") == ["old 20"]
        assert store.run(run.run_id).status == "running"
        monkeypatch.setattr("weft.pipelines.store.locks.stale", lambda *_: True)
        assert [r.outcome for r in recover(store, root)] == ["completed"]
        assert (contents(root, TARGET), store.locks()) == (["new 20"], ())
        assert [d.version for d in store.dataset_versions("wide")] == [1, 2]
