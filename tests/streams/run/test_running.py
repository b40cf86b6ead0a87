"""Queries side by side, what is counted in a sink's files, and which process may run a statement."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

from stream_checkpoints import SQL
from stream_spark import job_of
from weft.core.frozen import FrozenMap
from weft.errors import StreamError
from weft.streams.checkpoint.commit import seal
from weft.streams.checkpoint.folder import find_checkpoint, read_job_record
from weft.streams.checkpoint.lease import find_runner
from weft.streams.checkpoint.manifest import Manifest
from weft.streams.run.opening import choose_tasks, find_sealed, open_checkpoint
from weft.streams.run.statement import StoppedError, wait_all
from weft.streams.spark import files as files_of_sinks
from weft.streams.spark.files import count_csv_rows, remove_staging, stage_rows, staging_folder
from weft.streams.sql.spec import SinkSpec


class Query:
    """Stands for a statement: goes on so many looks, then ends or fails."""

    def __init__(self, looks: int, failure: Exception | None = None) -> None:
        self.looks, self.failure, self.ended = looks, failure, False

    def wait(self, seconds: float | None = None) -> bool:
        if self.ended and seconds is None:
            if self.failure is None and self.looks > 0:
                raise StoppedError
            return True
        self.looks -= 1
        if self.looks <= 0 and self.failure is not None:
            raise self.failure
        return self.looks <= 0

    def end(self) -> None:
        self.ended = True


def watched(*queries: Query, **named: Any) -> None:
    wait_all(list(queries), named.get("stop"))  # type: ignore[arg-type]  # stand-ins


def test_queries_are_watched_until_all_have_ended() -> None:
    one, other = Query(3), Query(1)
    watched(one, other)
    assert one.looks <= 0
    assert one.ended
    assert other.ended


def test_a_query_that_fails_beside_one_that_goes_on_is_heard() -> None:
    going_on, failing = Query(10**9), Query(2, StreamError("gone", code="W2214", help="again"))
    with pytest.raises(StreamError, match="gone"):
        watched(going_on, failing)
    assert going_on.ended


def test_queries_end_on_request() -> None:
    going_on = Query(10**9)
    watched(going_on, stop=lambda: going_on.looks < 10**9 - 3)
    assert going_on.ended


@pytest.mark.parametrize(
    ("options", "text", "rows"),
    [
        ({}, 'h\n"a ""quoted"" text\nover two lines"\nplain\n', 2),
        ({"header": False}, "a\nb\n", 2),
        ({"quote": "'", "delimiter": ";"}, "h;i\n\"a;b\n'x\ny';c\n", 2),
        ({}, "h\n" + "x" * 300_000 + "\n", 1),
        ({}, "h\n", 0),
        ({}, "", 0),
    ],
)
def test_records_of_csv_files_are_counted_as_they_were_written(
    tmp_path: Path, options: dict[str, Any], text: str, rows: int
) -> None:
    (tmp_path / "a.csv").write_text(text, encoding="utf-8")
    sink = SinkSpec(name="s", connector=FrozenMap({"connector": "files", "format": "csv", **options}))
    assert count_csv_rows(tmp_path / "a.csv", sink) == rows


def test_files_whose_rows_are_not_counted_one_by_one_are_all_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of avro files the first one has the count of all."""
    files = [(tmp_path / "part-0", 5), (tmp_path / "part-1", None)]
    monkeypatch.setattr(files_of_sinks, "_count_files", lambda *_: files)
    sink = SinkSpec(name="s", connector=FrozenMap({"connector": "files", "format": "avro"}))
    moves = stage_rows(MagicMock(), sink, tmp_path, checkpoint="cp", batch=0, keep_empty=False)
    assert [(m.source, m.rows) for m in moves] == files


def test_staging_that_another_checkpoint_uses_stays(tmp_path: Path) -> None:
    for name in ("mine", "theirs"):
        staging_folder(tmp_path, name).mkdir(parents=True)
    remove_staging(tmp_path, "mine")
    assert [p.name for p in tmp_path.glob("*/*")] == ["theirs"]
    remove_staging(tmp_path, "theirs")
    assert list(tmp_path.iterdir()) == []


def test_a_statement_is_locked_before_its_first_checkpoint_begins(tmp_path: Path) -> None:
    job = job_of(SQL, tmp_path)
    with open_checkpoint(job, job.statements[0], cores=2) as found:
        assert find_runner(found.lock) is not None
        with pytest.raises(StreamError) as caught, open_checkpoint(job, job.statements[0], cores=2):
            pytest.fail("two processes have one statement")
        assert caught.value.code == "W2205"
    assert find_runner(found.lock) is None
    with open_checkpoint(job, job.statements[0], cores=7) as again:
        assert again == found


def test_beginning_again_is_the_way_out_of_a_damaged_checkpoint(tmp_path: Path) -> None:
    job = job_of(SQL, tmp_path)
    with open_checkpoint(job, job.statements[0], cores=2) as found:
        pointer = found.root.parent / "current.json"
    pointer.write_text("damaged")
    with pytest.raises(StreamError), open_checkpoint(job, job.statements[0], cores=2):
        pytest.fail("a damaged checkpoint is opened")
    with open_checkpoint(job, job.statements[0], cores=2, fresh=True) as fresh:
        assert fresh != found


def test_a_checkpoint_that_takes_offsets_over_is_used_only_when_it_has_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = job_of(SQL, tmp_path)
    with open_checkpoint(job, job.statements[0], cores=2) as old:
        old.spark.mkdir()

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("shutil.copytree", full)
    wider = job_of(SQL.replace("'10' SECOND", "'15' SECOND"), tmp_path)
    with (
        pytest.raises(OSError, match="No space left"),
        open_checkpoint(wider, wider.statements[0], cores=2, keep="offsets"),
    ):
        pytest.fail("a checkpoint without offsets is opened")
    assert find_checkpoint(old.root.parent) == old


def test_offsets_are_not_kept_when_the_inputs_are_others(tmp_path: Path) -> None:
    job = job_of(SQL, tmp_path)
    with open_checkpoint(job, job.statements[0], cores=2) as old:
        pass
    read_from_files = SQL.replace("'connector' = 'memory'", "'path' = 'in', 'format' = 'json'", 1)
    other = job_of(read_from_files, tmp_path)
    with (
        pytest.raises(StreamError) as caught,
        open_checkpoint(other, other.statements[0], cores=2, keep="offsets"),
    ):
        pytest.fail("offsets of another source are taken over")
    assert caught.value.code == "W2203"
    assert "--keep offsets" not in caught.value.help
    assert find_checkpoint(old.root.parent) == old


OTHER = "CREATE STREAM other WITH ('connector' = 'files', 'path' = 'other', 'format' = 'json') AS"
PAIRS = "SELECT o.id FROM orders o JOIN shipments s ON o.id = s.id WITHIN '5s'"
TWO = ";".join((SQL, f"{OTHER} {PAIRS}"))


def ended(root: Path, names: tuple[str, ...], sql: str = TWO, **named: Any) -> set[str]:
    """Seal statements of a job with two, then ask which of them an earlier run has ended."""
    job = job_of(TWO, root)
    for plan in job.statements:
        with open_checkpoint(job, plan, cores=2) as found:
            if plan.name in names:
                seal(found, Manifest(batch=0))
    later = job_of(sql, root)
    return set(find_sealed(later, later.statements, **named))


def test_a_job_that_died_between_two_statements_goes_on_with_the_second(tmp_path: Path) -> None:
    assert ended(tmp_path / "none", ()) == set()
    assert ended(tmp_path / "one", ("status",)) == {"status"}
    assert ended(tmp_path / "fresh", ("status", "other"), fresh=True) == set()
    with pytest.raises(StreamError) as caught:
        ended(tmp_path / "both", ("status", "other"))
    assert [d.code for d in caught.value.diagnostics] == ["W2204", "W2204"]


def test_everything_that_prevents_statements_is_reported_before_the_first_runs(tmp_path: Path) -> None:
    changed = TWO.replace("'10' SECOND", "'20' SECOND").replace("WITHIN '5s'", "WITHIN '9s'")
    with pytest.raises(StreamError) as caught:
        ended(tmp_path / "a", (), changed)
    assert [d.code for d in caught.value.diagnostics] == ["W2203", "W2203"]
    with pytest.raises(StreamError) as caught:
        ended(tmp_path / "b", ("status",), changed)
    assert [d.code for d in caught.value.diagnostics] == ["W2204", "W2203"]
    assert ended(tmp_path / "c", (), changed, keep="offsets") == set()
    with pytest.raises(StreamError):
        ended(tmp_path / "d", (), changed, keep="state")


@pytest.mark.parametrize(
    ("settings", "limit", "tasks"),
    [
        ("", "", 4),
        ("SET 'groups' = '3';", "", 3),
        ("SET 'groups' = '64';", "", 4),
        ("", "WITH ('join.max_state_rows' = 500)", 4),
    ],
)
def test_a_batch_has_a_task_for_each_core_unless_the_job_wants_fewer(
    tmp_path: Path, settings: str, limit: str, tasks: int
) -> None:
    job = job_of(settings + SQL + limit, tmp_path, groups=None)
    assert choose_tasks(job, 4) == tasks
    with open_checkpoint(job, job.statements[0], cores=4) as found:
        assert read_job_record(found).groups == tasks


def test_a_large_state_is_shared_by_more_tasks(tmp_path: Path) -> None:
    sizes = {"left": {"current_bytes": 3 * 2**30}, "right": {"current_bytes": None}}
    job = job_of(SQL, tmp_path, groups=None)
    assert choose_tasks(job, 2, sizes) == 6
    limited = job_of("SET 'groups' = '4';" + SQL, tmp_path, groups=None)
    assert choose_tasks(limited, 2, sizes) == 4
