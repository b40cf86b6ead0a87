"""Checkpoints that lost a part: what Spark has read and what is committed must agree, and no row comes twice."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from stream_checkpoints import BATCHES, SQL, as_set, on_disk, order, run, shipment
from stream_spark import job_of, run_memory
from weft.errors import StreamError
from weft.streams.checkpoint.folder import Checkpoint, find_checkpoint, read_job_record
from weft.streams.checkpoint.manifest import last_batch, last_manifest, read_manifest
from weft.streams.checkpoint.offsets import count_sources
from weft.streams.run.job import run_job
from weft.streams.run.report import BatchReport, Listener

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def rows_in(sink: Path) -> list[tuple[Any, ...]]:
    """Return the rows that a reader of the sink sees."""
    lines = [line for file in sorted(sink.glob("part-*")) for line in file.read_text().splitlines()]
    shown = [(row["id"], row["total"], row["shipped"]) for row in map(json.loads, lines)]
    return sorted(shown, key=str)


def ids(rows: Any) -> list[str]:
    return sorted(row[0] for row in rows)


def statement(root: Path) -> Path:
    return root / ".weft" / "streams" / "job" / "status"


def in_use(root: Path) -> Checkpoint:
    found = find_checkpoint(statement(root))
    assert found is not None
    return found


def refused(spark: SparkSession, root: Path, **named: Any) -> StreamError:
    before = rows_in(root / "out")
    with pytest.raises(StreamError) as caught:
        run_memory(spark, job_of(SQL, root), BATCHES, **named)
    assert rows_in(root / "out") == before
    return caught.value


@pytest.fixture(scope="module")
def halfway(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a workspace after two batches, with copies of the checkpoint after the first in ``older``."""
    root = tmp_path_factory.mktemp("halfway")
    first = run_memory(spark, job_of(SQL, root), BATCHES[:1], final=False)
    shutil.copytree(on_disk(first.checkpoint.root), root / "older")
    run_memory(spark, job_of(SQL, root), BATCHES[:2], final=False)
    return root


@pytest.fixture
def root(halfway: Path, tmp_path: Path) -> Iterator[Path]:
    """Return the workspace for a test to damage, and bring it back afterwards: Spark knows files by their full path."""
    saved = shutil.copytree(halfway, tmp_path / "saved")
    yield halfway
    shutil.rmtree(halfway)
    shutil.copytree(saved, halfway)


def test_a_batch_commits_what_it_read_and_goes_on(spark: SparkSession, halfway: Path, tmp_path: Path) -> None:
    checkpoint = in_use(halfway)
    known = read_manifest(checkpoint, 1).read
    assert [json.loads(offset) for offset in known["until"]] == [{"logOffset": 1}] * 2
    assert [json.loads(offset) for offset in known["since"]] == [{"logOffset": 0}] * 2
    assert [files.partition(" ")[0] for files in known["files"]] == ["1", "1"]
    # Twelve files of each stream: Spark gathers the entries of its sources after ten.
    many = [{"orders": [order(str(n), n)], "shipments": [shipment(str(n), n)]} for n in range(13)]
    plan = job_of(SQL, tmp_path)
    for upto in (9, 11):
        run_memory(spark, plan, many[:upto], final=False)
    done = run_memory(spark, plan, many, final=False)
    assert ids(rows_in(tmp_path / "out")) == sorted(map(str, range(13)))
    assert list(done.checkpoint.spark.glob("sources/0/*.compact"))


def test_a_checkpoint_without_its_offsets_is_refused_and_begun_again(spark: SparkSession, root: Path) -> None:
    shutil.rmtree(on_disk(in_use(root).spark))
    error = refused(spark, root)
    assert (error.code, "'spark' is missing" in error.message) == ("W2202", True)
    run_memory(spark, job_of(SQL, root), BATCHES, fresh=True)
    assert ids(rows_in(root / "out")) == ids(as_set(run(root / "same").rows))


@pytest.mark.parametrize("half", ["spark", "commits"])
def test_a_half_that_was_restored_alone_is_refused(spark: SparkSession, root: Path, half: str) -> None:
    checkpoint = in_use(root)
    shutil.rmtree(on_disk(checkpoint.root) / half)
    shutil.copytree(root / "older" / half, on_disk(checkpoint.root) / half)
    error = refused(spark, root)
    assert (error.code, "older" in error.message) == ("W2202", True)


def test_a_checkpoint_that_was_restored_whole_behind_its_sink_is_refused(spark: SparkSession, root: Path) -> None:
    checkpoint = in_use(root)
    shutil.rmtree(on_disk(checkpoint.root))
    shutil.copytree(root / "older", on_disk(checkpoint.root))
    error = refused(spark, root)
    assert (error.code, "an older copy" in error.message) == ("W2202", True)
    for later in (root / "out").glob(f"part-{read_job_record(checkpoint).id}-000001-*"):
        later.unlink()
    run_memory(spark, job_of(SQL, root), BATCHES)
    assert ids(rows_in(root / "out")) == ids(as_set(run(root / "same").rows))


def test_a_workspace_that_was_moved_reads_nothing_again(spark: SparkSession, halfway: Path, tmp_path: Path) -> None:
    """Spark knows files by their full path; this was written for ``halfway`` and is a copy of it."""
    copy = shutil.copytree(halfway, tmp_path / "copy")
    error = refused(spark, copy)
    assert (error.code, str(copy) in error.message, str(halfway) in error.message) == ("W2218", True, True)


def test_a_missing_pointer_never_begins_beside_the_old_folder(spark: SparkSession, root: Path) -> None:
    (statement(root) / "current.json").unlink()
    assert refused(spark, root).code == "W2202"
    run_memory(spark, job_of(SQL, root), BATCHES, fresh=True)
    assert ids(rows_in(root / "out")) == ids(as_set(run(root / "same").rows))


def test_a_pointer_to_a_folder_that_is_gone_replaces_its_output(spark: SparkSession, root: Path) -> None:
    shutil.rmtree(on_disk(in_use(root).root))
    assert refused(spark, root).code == "W2202"
    run_memory(spark, job_of(SQL, root), BATCHES, fresh=True)
    assert ids(rows_in(root / "out")) == ids(as_set(run(root / "same").rows))


def test_beginning_again_after_offsets_were_kept_doubles_nothing(spark: SparkSession, root: Path) -> None:
    wider = SQL.replace("'10' SECOND", "'15' SECOND")
    # The process died after its commit, before Spark wrote its own: Spark brings the batch again.
    first = in_use(root)
    for name in ("1", ".1.crc"):
        (first.spark / "commits" / name).unlink(missing_ok=True)
    kept = run_memory(spark, job_of(wider, root), BATCHES[:3], final=False, keep="offsets")
    assert (read_job_record(kept.checkpoint).follows, last_batch(kept.checkpoint)) == (first.name, 2)
    # Rows of the first two batches do not come again: they are rejects of the new checkpoint.
    assert kept.ledger["left"]["in"] == 3
    run_memory(spark, job_of(wider, root), BATCHES, fresh=True)
    assert ids(rows_in(root / "out")) == ["a", "b", "c", "d", "e", "f"]


def test_two_jobs_that_are_texts_run_in_one_session(spark: SparkSession, tmp_path: Path) -> None:
    """Both are called ``job`` and have a statement of one name."""
    started = threading.Barrier(2)
    failures: list[BaseException] = []

    class Meeting(Listener):
        def on_batch(self, report: BatchReport) -> None:
            if report.batch == 0:
                started.wait(60)  # neither goes on before both run

    def go(name: str) -> None:
        try:
            run_memory(spark, job_of(SQL, tmp_path / name), BATCHES, listener=Meeting())
        except BaseException as cause:  # noqa: BLE001  # shown by the thread of the test
            failures.append(cause)
            started.abort()

    threads = [threading.Thread(target=go, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert rows_in(tmp_path / "one" / "out") == rows_in(tmp_path / "two" / "out")


def test_idle_sides_change_no_sources_whatever_the_mode_is(spark: SparkSession, tmp_path: Path) -> None:
    memory: dict[str, list[Any]] = {
        "orders": [[order("a", 0)], [order("b", 100)], [order("c", 200)]],
        "shipments": [[shipment("a", 1)], [], []],
    }

    def upto(count: int) -> dict[str, list[Any]]:
        return {name: rows[:count] for name, rows in memory.items()}

    # A checkpoint as earlier versions left it: a run over what there is had no source of ticks.
    plain = job_of("SET 'trigger' = '100ms';" + SQL, tmp_path)
    run_job(spark, plain, mode="available", memory=upto(1))
    checkpoint = in_use(tmp_path)
    assert count_sources(checkpoint.spark) == 2
    idle = job_of("SET 'trigger' = '100ms'; SET 'idle.timeout' = '1s';" + SQL, tmp_path)
    out = threading.Event()

    class Waiting(Listener):
        def on_batch(self, report: BatchReport) -> None:
            if not any(report.rows_in.values()):  # a tick alone
                out.set()

    run_job(spark, idle, mode="continuous", memory=upto(3), listener=Waiting(), stop=out.is_set)
    assert count_sources(checkpoint.spark) == 3
    # Then the other way round, and without the option that brought the ticks.
    run_job(spark, idle, mode="available", memory=upto(3))
    run_job(spark, plain, mode="available", memory=upto(3))
    run_job(spark, idle, mode="final", memory=upto(3))
    manifest = last_manifest(checkpoint)
    assert manifest is not None
    assert manifest.ledger["left"]["in"] == 3
    assert ids(rows_in(tmp_path / "out")) == ["a", "b", "c"]
