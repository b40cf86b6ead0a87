"""Files of a batch run: those of the same statement are replaced, and at no time is there none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stream_spark import job_of
from weft.streams.checkpoint.manifest import Move
from weft.streams.run import batch as module
from weft.streams.run.batch import run_batch
from weft.streams.spark.files import staging_folder

NO_SESSION: Any = None
ORDERS = "CREATE STREAM orders (id STRING, t TIMESTAMP) WITH ('path'='in', 'format'='json', 'event.time.field'='t');"


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list of the rows that the next runs write, a file each."""
    rows: list[str] = []

    def stage(_frame: Any, _sink: Any, folder: Path, *, checkpoint: str, batch: int, keep_empty: bool) -> list[Move]:
        assert keep_empty
        staging = staging_folder(folder, checkpoint) / "0"
        staging.mkdir(parents=True, exist_ok=True)
        moves = []
        for number, row in enumerate(rows):
            source = staging / str(number)
            source.write_text(row)
            moves.append(Move(source=source, to=folder / f"part-{checkpoint}-{batch:06}-{number:05}.json", rows=1))
        return moves

    monkeypatch.setattr(module, "stage_rows", stage)
    monkeypatch.setattr(module, "batch_frame", lambda *_, **__: None)
    return rows


def run(root: Path, name: str, to: str = "out") -> None:
    select = f"CREATE STREAM {name} WITH ('path'='{to}', 'format'='json') AS SELECT o.id FROM orders o"  # noqa: S608  # not sent to a database
    run_batch(NO_SESSION, job_of(ORDERS + select, root))


def read(root: Path) -> list[str]:
    """Return the rows that a reader of the folder sees."""
    return sorted(p.read_text() for p in (root / "out").glob("*.json"))


def test_a_second_run_replaces_the_files_of_its_own_statement_only(tmp_path: Path, rows: list[str]) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "part-batch-notes.json").write_text("of a user")
    rows[:] = ["a", "b"]
    run(tmp_path, "seen")
    # The jobs of several files may share a folder; the name of one statement may start with that of another.
    for other in ("later", "`seen-again`", "`seen-000000`", "`000000`"):
        rows[:] = [other]
        run(tmp_path, other)
    rows[:] = ["c"]
    run(tmp_path, "seen")
    assert read(tmp_path) == ["`000000`", "`seen-000000`", "`seen-again`", "c", "later", "of a user"]
    assert [p.name for p in (tmp_path / "out").iterdir() if p.is_dir()] == []


def test_files_of_an_earlier_version_are_replaced(tmp_path: Path, rows: list[str]) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "part-batch-000000-00000.json").write_text("old")
    rows[:] = ["new"]
    run(tmp_path, "seen")
    assert read(tmp_path) == ["new"]


def test_a_run_that_dies_while_it_publishes_leaves_the_earlier_rows(
    tmp_path: Path, rows: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows[:] = ["a", "b"]
    run(tmp_path, "seen")
    rows[:] = ["c", "d"]
    with monkeypatch.context() as patch:
        real = Path.replace

        def dying(self: Path, to: Path) -> Path:
            assert {"a", "b"} <= set(read(tmp_path))
            if self.name == "1":
                raise KeyboardInterrupt
            return real(self, to)

        patch.setattr(Path, "replace", dying)
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path, "seen")
    assert {"a", "b"} <= set(read(tmp_path))
    run(tmp_path, "seen")
    assert read(tmp_path) == ["c", "d"]


def test_a_long_name_makes_no_longer_file_name(tmp_path: Path, rows: list[str]) -> None:
    rows[:] = ["a"]
    run(tmp_path, "x" * 250)
    run(tmp_path, "x" * 249 + "y")
    assert read(tmp_path) == ["a", "a"]
