"""Both halves of a checkpoint: Spark's offsets and our commits must be of the same time, in every direction."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stream_checkpoints import on_disk, run, small_plan
from weft.core.frozen import EMPTY, FrozenMap
from weft.errors import StreamError
from weft.streams.checkpoint.folder import Checkpoint, create_checkpoint, read_job_record
from weft.streams.checkpoint.manifest import read_manifest, write_manifest
from weft.streams.checkpoint.offsets import (
    add_source,
    check_commits,
    check_offsets,
    check_reading,
    count_sources,
    describe_reading,
    planned_offsets,
)
from weft.streams.run.statement import Statement

LAST = 3
"""The last batch that the checkpoint of the test has committed."""


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.with_name(f".{path.name}.crc").write_bytes(b"crc")


def plan(spark: Path, batch: int, *offsets: str) -> None:
    """Write what Spark plans a batch to read: a file of each of two sources, unless offsets are given."""
    lines = offsets or (f'{{"logOffset":{batch}}}',) * 2
    write(spark / "offsets" / str(batch), "\n".join(("v1", "{}", *lines)))
    for source in range(2):
        entry = {"path": f"file:///in/{source}/{batch}.json", "timestamp": 16, "batchId": batch}
        write(spark / "sources" / str(source) / str(batch), f"v1\n{json.dumps(entry)}")


def as_spark_leaves_it(spark: Path, *, planned: int = LAST, done: int = LAST) -> None:
    write(spark / "metadata", '{"id":"11111111-aaaa"}')
    for batch in range(planned + 1):
        plan(spark, batch)
    for batch in range(done + 1):
        write(spark / "commits" / str(batch), "v1\n{}")


@pytest.fixture
def checkpoint(recorded_run: Checkpoint, tmp_path: Path) -> Checkpoint:
    """Return a checkpoint of its own for a test to damage."""
    folder = shutil.copytree(on_disk(recorded_run.root).parent, tmp_path / "status")
    return Checkpoint(folder / recorded_run.name)


@pytest.fixture(scope="module")
def recorded_run(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    """Return a checkpoint after four batches, each with a record of what it read."""
    made = run(tmp_path_factory.mktemp("recorded"), final=False).checkpoint
    as_spark_leaves_it(on_disk(made.spark))
    for batch in range(LAST + 1):
        manifest = read_manifest(made, batch)
        write_manifest(made, replace(manifest, read=describe_reading(made.spark, batch)))
    return made


def without_records(checkpoint: Checkpoint) -> Checkpoint:
    """Make the commits those of a version that did not record what a batch read."""
    for batch in range(LAST + 1):
        path = checkpoint.commit_file(batch)
        document = json.loads(path.read_text())
        path.write_text(json.dumps({k: v for k, v in document.items() if k not in ("read", "checksum")}))
        assert read_manifest(checkpoint, batch).read == EMPTY
    return checkpoint


def test_a_commit_says_what_its_batch_read(checkpoint: Checkpoint) -> None:
    known = read_manifest(checkpoint, 2).read
    assert (known["query"], known["since"], known["until"]) == (
        "11111111-aaaa",
        ('{"logOffset":1}',) * 2,
        ('{"logOffset":2}',) * 2,
    )
    assert [files.partition(" ")[0] for files in known["files"]] == ["1", "1"]
    assert known["files"][0] != known["files"][1]
    assert describe_reading(checkpoint.spark, 99) == EMPTY


def lost_spark(checkpoint: Checkpoint) -> None:
    shutil.rmtree(on_disk(checkpoint.spark))


def emptied_spark(checkpoint: Checkpoint) -> None:
    shutil.rmtree(on_disk(checkpoint.spark))
    checkpoint.spark.mkdir()


def older_spark(checkpoint: Checkpoint) -> None:
    shutil.rmtree(on_disk(checkpoint.spark))
    as_spark_leaves_it(on_disk(checkpoint.spark), planned=1, done=1)


def spark_older_by_one(checkpoint: Checkpoint) -> None:
    shutil.rmtree(on_disk(checkpoint.spark))
    as_spark_leaves_it(on_disk(checkpoint.spark), planned=LAST - 1, done=LAST - 1)


def lost_spark_commits(checkpoint: Checkpoint) -> None:
    shutil.rmtree(on_disk(checkpoint.spark / "commits"))


def older_commits(checkpoint: Checkpoint) -> None:
    for batch in (LAST, LAST - 1):
        checkpoint.commit_file(batch).unlink()


def commits_older_by_one(checkpoint: Checkpoint) -> None:
    checkpoint.commit_file(LAST).unlink()


def lost_commits(checkpoint: Checkpoint) -> None:
    shutil.rmtree(on_disk(checkpoint.commits))


DAMAGE = [
    lost_spark,
    emptied_spark,
    older_spark,
    spark_older_by_one,
    lost_spark_commits,
    older_commits,
    commits_older_by_one,
    lost_commits,
]


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("recorded", [True, False], ids=["recorded", "earlier version"])
def test_halves_of_different_times_are_refused(
    checkpoint: Checkpoint, damage: Callable[[Checkpoint], None], *, recorded: bool
) -> None:
    if not recorded:
        without_records(checkpoint)
    check_offsets(checkpoint)
    damage(checkpoint)
    with pytest.raises(StreamError) as caught:
        check_offsets(checkpoint)
    assert caught.value.code == "W2202"
    assert "--fresh" in caught.value.help


@pytest.mark.parametrize("final", [False, True])
def test_a_commit_that_is_missing_between_others_is_refused(checkpoint: Checkpoint, *, final: bool) -> None:
    """The rows that it lists would be written again by a redrive."""
    if final:
        write_manifest(checkpoint, replace(read_manifest(checkpoint, LAST), final=True))
    check_offsets(checkpoint)
    checkpoint.commit_file(1).unlink()
    for check in (check_commits, check_offsets):
        with pytest.raises(StreamError, match=f"commits up to batch {LAST}, but none of batch 1") as caught:
            check(checkpoint)
        assert caught.value.code == "W2202"
    checkpoint.commit_file(0).unlink()
    with pytest.raises(StreamError, match="none of batches 0, 1"):
        check_commits(checkpoint)


def another_query(spark: Path) -> None:
    write(spark / "metadata", '{"id":"22222222-bbbb"}')


def another_plan(spark: Path) -> None:
    plan(spark, LAST, '{"logOffset":3}', '{"logOffset":4}')


def lost_sources(spark: Path) -> None:
    shutil.rmtree(spark / "sources" / "1")


def other_files(spark: Path) -> None:
    entry = {"path": "file:///in/other.json", "timestamp": 16, "batchId": LAST}
    write(spark / "sources" / "0" / str(LAST), f"v1\n{json.dumps(entry)}")


CHANGES = [(another_query, False), (another_plan, True), (lost_sources, True), (other_files, False)]


@pytest.mark.parametrize(("change", "is_incomplete"), CHANGES)
def test_a_batch_that_read_something_else_than_its_commit_says_is_refused(
    checkpoint: Checkpoint, change: Callable[[Path], None], *, is_incomplete: bool
) -> None:
    change(on_disk(checkpoint.spark))
    with pytest.raises(StreamError, match=f"disagree about batch {LAST}") as caught:
        check_offsets(checkpoint)
    assert caught.value.code == "W2202"
    # The same when Spark brings a committed batch again: it is passed over only if it is the same one.
    with pytest.raises(StreamError, match=f"disagree about batch {LAST}"):
        check_reading(checkpoint, read_manifest(checkpoint, LAST))
    without_records(checkpoint)
    if is_incomplete:
        with pytest.raises(StreamError, match="does not list all files of the plan"):
            check_offsets(checkpoint)
    else:
        check_offsets(checkpoint)


def quiet_source(spark: Path) -> None:
    """Make the last two batches read source 1 only."""
    for batch in (LAST - 1, LAST):
        plan(spark, batch, '{"logOffset":1}', f'{{"logOffset":{batch}}}')
        (spark / "sources" / "0" / str(batch)).unlink()


def lost_quiet_source(spark: Path) -> None:
    shutil.rmtree(spark / "sources" / "0")


def lost_entry(spark: Path) -> None:
    (spark / "sources" / "0" / "0").unlink()


def lost_newest_entry(spark: Path) -> None:
    (spark / "sources" / "0" / "1").unlink()


@pytest.mark.parametrize("damage", [lost_quiet_source, lost_entry, lost_newest_entry])
def test_files_of_a_source_without_new_rows_are_not_forgotten(
    checkpoint: Checkpoint, damage: Callable[[Path], None]
) -> None:
    """The last batch read nothing of source 0: its commit says nothing about the files that were read before."""
    quiet_source(on_disk(checkpoint.spark))
    manifest = read_manifest(checkpoint, LAST)
    write_manifest(checkpoint, replace(manifest, read=describe_reading(checkpoint.spark, LAST)))
    check_offsets(checkpoint)
    damage(on_disk(checkpoint.spark))
    with pytest.raises(StreamError, match=r"'spark/sources/0' does not list all files of the plan") as caught:
        check_offsets(checkpoint)
    assert caught.value.code == "W2202"
    assert "--fresh" in caught.value.help


@pytest.mark.parametrize("first", [True, False], ids=["before the first commit", "after a commit"])
def test_a_planned_batch_whose_files_are_lost_is_refused(
    tmp_path: Path, checkpoint: Checkpoint, *, first: bool
) -> None:
    """Spark would run the planned batch again without rows, and take its files for read."""
    at = create_checkpoint(tmp_path / "new", replace(read_job_record(checkpoint), id="")) if first else checkpoint
    batch = 0 if first else LAST + 1
    plan(on_disk(at.spark), batch)
    check_offsets(at)
    (at.spark / "sources" / "1" / str(batch)).unlink()
    with pytest.raises(StreamError, match=r"'spark/sources/1'"):
        check_offsets(at)


def test_a_committed_batch_that_comes_again_with_other_files_is_refused(checkpoint: Checkpoint) -> None:
    nothing: Any = None
    statement = Statement(
        running=nothing,
        plan=small_plan(),
        checkpoint=checkpoint,
        record=read_job_record(checkpoint),
        sink=nothing,
        before=read_manifest(checkpoint, LAST),
        reports=nothing,
        tables={},
        places=(),
    )
    statement.finish_commit(LAST)
    other_files(on_disk(checkpoint.spark))
    with pytest.raises(StreamError, match=f"disagree about batch {LAST}"):
        statement.finish_commit(LAST)


@pytest.mark.parametrize(("planned", "done"), [(LAST, LAST), (LAST, LAST - 1), (LAST + 1, LAST)])
def test_what_a_crash_leaves_is_accepted(checkpoint: Checkpoint, planned: int, done: int) -> None:
    shutil.rmtree(on_disk(checkpoint.spark))
    as_spark_leaves_it(on_disk(checkpoint.spark), planned=planned, done=done)
    check_offsets(checkpoint)


def test_entries_that_spark_has_gathered_are_the_same_files(checkpoint: Checkpoint) -> None:
    for source in range(2):
        folder = checkpoint.spark / "sources" / str(source)
        lines = [(folder / str(n)).read_text().splitlines()[1] for n in range(LAST + 1)]
        shutil.rmtree(on_disk(folder))
        write(on_disk(folder) / f"{LAST}.compact", "\n".join(("v1", *lines)))
    check_offsets(checkpoint)


def test_a_checkpoint_before_its_first_batch_is_accepted(tmp_path: Path, checkpoint: Checkpoint) -> None:
    new = create_checkpoint(tmp_path / "new", replace(read_job_record(checkpoint), id=""))
    check_offsets(new)
    plan(on_disk(new.spark), 0)
    check_offsets(new)
    plan(on_disk(new.spark), 1)
    with pytest.raises(StreamError):
        check_offsets(new)


def test_offsets_that_were_taken_over_are_compared_with_the_commit_before_them(
    checkpoint: Checkpoint,
) -> None:
    record = replace(read_job_record(checkpoint), follows=checkpoint.name, first_batch=LAST + 1, id="")
    new = create_checkpoint(checkpoint.root.parent, record)
    with pytest.raises(StreamError):
        check_offsets(new)
    shutil.copytree(on_disk(checkpoint.spark), on_disk(new.spark))
    check_offsets(new)
    another_plan(on_disk(new.spark))
    with pytest.raises(StreamError, match="disagree"):
        check_offsets(new)


def test_nothing_is_compared_after_the_end_of_the_input(tmp_path: Path) -> None:
    sealed = run(tmp_path).checkpoint
    check_offsets(sealed)


def test_a_source_that_was_added_changes_nothing_of_what_was_read(checkpoint: Checkpoint) -> None:
    assert count_sources(checkpoint.root / "never") is None
    assert count_sources(checkpoint.spark) == 2
    add_source(checkpoint.spark)
    assert count_sources(checkpoint.spark) == 3
    assert planned_offsets(checkpoint.spark, LAST) == ('{"logOffset":3}', '{"logOffset":3}', "-")
    assert len(planned_offsets(checkpoint.spark, LAST - 1) or ()) == 3
    assert len(planned_offsets(checkpoint.spark, LAST - 2) or ()) == 2
    # A checksum of the old text would make Spark refuse the file.
    assert not (checkpoint.spark / "offsets" / f".{LAST}.crc").exists()
    check_offsets(checkpoint)


def test_offsets_of_other_sources_are_compared_as_they_are_written(checkpoint: Checkpoint) -> None:
    kafka: tuple[Any, ...] = ('{"orders":{"0":7}}', '{"logOffset":3}')
    plan(on_disk(checkpoint.spark), LAST, *kafka)
    manifest = read_manifest(checkpoint, LAST)
    write_manifest(checkpoint, replace(manifest, read=describe_reading(checkpoint.spark, LAST)))
    check_offsets(checkpoint)
    assert read_manifest(checkpoint, LAST).read["files"][0] == ""
    changed = FrozenMap(read_manifest(checkpoint, LAST).read, until=('{"orders":{"0":8}}', kafka[1]))
    write_manifest(checkpoint, replace(manifest, read=changed))
    with pytest.raises(StreamError, match="planned to read up to"):
        check_offsets(checkpoint)
