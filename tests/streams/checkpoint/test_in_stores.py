"""A checkpoint and its sink in a store: the same rows as on a disk, after any crash, and with any number of tasks."""

from __future__ import annotations

import json
import shutil
import socket
import threading
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from s3_gateway import BUCKET, Gateway
from stream_checkpoints import BATCHES, as_set, run, small_plan
from weft.core.crash import CRASH
from weft.errors import FileStoreError, StreamError
from weft.io.stores.store_path import StorePath, as_place
from weft.streams.checkpoint import lease
from weft.streams.checkpoint.cached_files import CachedFiles
from weft.streams.checkpoint.commit import commit_batch, remove_unused
from weft.streams.checkpoint.lease import find_runner, lock_statement
from weft.streams.checkpoint.lock import this_process
from weft.streams.checkpoint.manifest import (
    Heartbeat,
    last_batch,
    last_manifest,
    list_batches,
    read_manifest,
    write_manifest,
)
from weft.streams.checkpoint.rejects import list_reject_files, read_rejects
from weft.streams.kernel.spec import checked_files, list_files
from weft.streams.run.failing import explain_failure
from weft.testing.stream_engine import StreamResult, run_statement


@pytest.fixture
def bucket(s3_gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> StorePath:
    """Return a folder of its own in a store."""
    for key, value in s3_gateway.environment.items():
        monkeypatch.setenv(key, value)
    return cast("StorePath", as_place(f"s3://{BUCKET}/{uuid.uuid4().hex}"))


def run_in(bucket: StorePath, batches: Any = BATCHES, **named: Any) -> StreamResult:
    return run_statement(small_plan(), batches, root=cast("Path", bucket), **named)


def test_a_run_in_a_store_gives_the_rows_of_one_on_a_disk(bucket: StorePath, tmp_path: Path) -> None:
    found, whole = run_in(bucket), run(tmp_path)
    assert as_set(found.rows) == as_set(whole.rows)
    assert found.ledger == whole.ledger
    rejects = [len(read_rejects(file)) for file in list_reject_files(found.checkpoint)]
    assert sum(rejects) == sum(len(read_rejects(file)) for file in list_reject_files(whole.checkpoint)) > 0
    assert str(found.checkpoint.root).startswith("s3://")


@pytest.mark.parametrize("groups", [2, (2, 3, 1)])
def test_crashes_lose_and_double_nothing(bucket: StorePath, tmp_path: Path, groups: Any) -> None:
    given = [CRASH, BATCHES[0], CRASH, BATCHES[1], BATCHES[2], CRASH, BATCHES[3]]
    found, whole = run_in(bucket, given, groups=groups), run(tmp_path)
    assert as_set(found.rows) == as_set(whole.rows)
    assert found.ledger == whole.ledger


@pytest.mark.parametrize("point", ["stream_counted", "stream_manifest", "stream_renaming", "stream_renamed"])
def test_a_commit_that_was_cut_off_is_finished_by_the_next_start(
    bucket: StorePath, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    def cut(name: str) -> None:
        if name == point:
            raise ConnectionAbortedError(name)

    with monkeypatch.context() as patched:
        patched.setattr("weft.streams.checkpoint.commit.crash_point", cut)
        with pytest.raises(ConnectionAbortedError):
            run_in(bucket)
    found, whole = run_in(bucket), run(tmp_path)
    assert as_set(found.rows) == as_set(whole.rows)
    assert found.ledger == whole.ledger


def test_a_store_is_cleaned_by_the_next_commit(bucket: StorePath) -> None:
    """Not by a start: a process that was cut off may still commit what it wrote."""
    found = run_in(bucket, BATCHES[:2], final=False).checkpoint
    left = [found.join_state(1) / "2-0-abc-left.arrow", found.rejects / "left" / "2-j1-0.abc.parquet"]
    for path in left:
        cast("StorePath", path).write_bytes(b"of another process")
    run_in(bucket, BATCHES[:2], final=False)
    assert all(path.is_file() for path in left)
    run_in(bucket, BATCHES[:3], final=False)
    assert not any(path.is_file() for path in left)
    listed = [entry for batch in (1, 2) for entry in read_manifest(found, batch).state or ()]
    names = {found.join_state(1) / name for entry in listed for name in list_files(entry)}
    assert set(found.state.rglob("*")) == names


def test_of_two_processes_that_commit_a_batch_one_succeeds(bucket: StorePath) -> None:
    checkpoint = run_in(bucket, BATCHES[:2], final=False).checkpoint
    manifest = last_manifest(checkpoint)
    assert manifest is not None
    write_manifest(checkpoint, replace(manifest, batch=2, rows=1))
    with pytest.raises(StreamError, match="another process has committed batch 2") as caught:
        write_manifest(checkpoint, replace(manifest, batch=2, rows=2))
    assert caught.value.code == "W2205"
    assert read_manifest(checkpoint, 2).rows == 1


def test_a_lease_is_held_by_one_process(bucket: StorePath) -> None:
    lock = bucket / "status" / "lock"
    assert find_runner(lock) is None
    with lock_statement(lock, "status") as held:
        by = find_runner(lock)
        assert by is not None
        assert by.process == this_process()
        with (
            pytest.raises(StreamError, match="is already running in process") as caught,
            lock_statement(lock, "status"),
        ):
            pytest.fail("two processes hold the lease")
        assert caught.value.code == "W2205"
        assert held is not None
        held.check()
    assert find_runner(lock) is None
    with lock_statement(lock, "status") as again:
        assert again is not None
        assert again.path.stem == "000002"
        assert len(list(bucket.rglob("*.json"))) == 2


def another_machine(lock: StorePath, *, seconds: float, monkeypatch: pytest.MonkeyPatch) -> StorePath:
    """Take the lease as a process of another machine, which renewed it some seconds ago."""
    path = lock.with_name("lease") / "000007.json"
    path.write_text(json.dumps({"host": "elsewhere", "pid": 1, "began": "x/1", "held": True}))
    clock = lease._read_clock
    monkeypatch.setattr(lease, "_read_clock", lambda folder: clock(folder) + seconds)
    return path


def test_a_lease_of_another_machine_ends_when_it_is_not_renewed(
    bucket: StorePath, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = bucket / "status" / "lock"
    with monkeypatch.context() as patched:
        another_machine(lock, seconds=lease.LASTS - 5, monkeypatch=patched)
        with pytest.raises(StreamError, match="process 1 on elsewhere"), lock_statement(lock, "status"):
            pytest.fail("it was renewed")
    another_machine(lock, seconds=lease.LASTS + 1, monkeypatch=monkeypatch)
    with lock_statement(lock, "status") as held:
        assert held is not None
        assert held.path.stem == "000008"


def test_a_process_that_was_cut_off_commits_nothing(bucket: StorePath, tmp_path: Path) -> None:
    """It wakes up after another one took the lease: in the middle of a batch, and right before its commit."""
    checkpoint = run_in(bucket, BATCHES[:2], final=False).checkpoint
    lock = cast("StorePath", checkpoint.lock)
    with lock_statement(lock, "status") as older:
        assert older is not None
        taken = older.path.with_name("000099.json")
        taken.write_text(json.dumps({"host": "elsewhere", "pid": 1, "began": "x/1", "held": True}))
        manifest = last_manifest(checkpoint)
        with pytest.raises(StreamError, match="is now running in process 1 on elsewhere") as caught:
            commit_batch(
                replace(checkpoint, lease=older),
                2,
                (),
                heartbeat=Heartbeat(batch=2, wall_clock=0, watermark=None),
                before=manifest,
            )
        assert caught.value.code == "W2205"
        assert last_batch(checkpoint) == 1
        taken.unlink()
    whole = run(tmp_path)
    assert as_set(run_in(bucket).rows) == as_set(whole.rows)


def test_a_lease_is_renewed_while_it_is_held(bucket: StorePath, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "RENEWED", 0.01)
    renewed = threading.Event()
    write = StorePath.write_text

    def noticed(path: StorePath, text: str) -> None:
        write(path, text)
        if '"held": true' in text:
            renewed.set()

    monkeypatch.setattr(StorePath, "write_text", noticed)
    with lock_statement(bucket / "status" / "lock", "status"):
        assert renewed.wait(30)


def test_a_store_that_does_not_answer_stops_the_job_with_its_name(bucket: StorePath, s3_gateway: Gateway) -> None:
    run_in(bucket, BATCHES[:1], final=False)
    s3_gateway.kill()
    try:
        with pytest.raises(FileStoreError) as caught:
            run_in(bucket, BATCHES[:2], final=False)
        assert caught.value.code == "W1905"
        assert explain_failure(caught.value, "status") is caught.value
    finally:
        s3_gateway.start()
    assert len(list_batches(run_in(bucket, BATCHES[:2], final=False).checkpoint.commits)) == 2


def test_a_state_file_that_is_gone_is_named(bucket: StorePath) -> None:
    checkpoint = run_in(bucket, BATCHES[:2], final=False).checkpoint
    manifest = last_manifest(checkpoint)
    assert manifest is not None
    (name, *_) = (name for entry in manifest.state or () for name in list_files(entry) if name.endswith(".arrow"))
    cast("StorePath", checkpoint.join_state(1) / name).unlink()
    shutil.rmtree(CachedFiles(str(checkpoint.root)).folder)  # as on another machine
    checked_files().clear()
    with pytest.raises(StreamError, match=name) as caught:
        run_in(bucket)
    assert caught.value.code == "W2202"


def test_a_late_process_removes_nothing_that_a_later_commit_lists(bucket: StorePath, tmp_path: Path) -> None:
    """It committed batch 1, was cut off before it cleaned up, and wakes up after another one has committed batch 2."""
    found = run_in(bucket, BATCHES[:3], final=False).checkpoint
    remove_unused(found, read_manifest(found, 1), read_manifest(found, 0))
    listed = read_manifest(found, 2).state or ()
    assert all((found.join_state(1) / name).is_file() for entry in listed for name in list_files(entry))
    assert as_set(run_in(bucket).rows) == as_set(run(tmp_path).rows)


def test_without_the_last_lease_nothing_is_removed(bucket: StorePath) -> None:
    found = run_in(bucket, BATCHES[:2], final=False).checkpoint
    unlisted = cast("StorePath", found.join_state(1) / "1-0-abc-left.arrow")
    unlisted.write_bytes(b"of another attempt")
    manifest = read_manifest(found, 1)
    with lock_statement(found.lock, "status") as held:
        assert held is not None
        later = held.path.with_name("000099.json")
        later.write_text("{}")
        remove_unused(replace(found, lease=held), manifest)
        assert unlisted.is_file()
        later.unlink()
        remove_unused(replace(found, lease=held), manifest)
        assert not unlisted.is_file()


def test_a_copy_that_a_power_cut_left_is_read_again(bucket: StorePath, tmp_path: Path) -> None:
    checkpoint = run_in(bucket, BATCHES[:2], final=False).checkpoint
    copies = [path for path in CachedFiles(str(checkpoint.root)).folder.iterdir() if path.name.endswith(".arrow")]
    assert copies
    for path in copies:
        path.write_bytes(path.read_bytes()[:-9])
    checked_files().clear()
    assert as_set(run_in(bucket).rows) == as_set(run(tmp_path).rows)


def test_machines_may_have_the_same_name(bucket: StorePath) -> None:
    """The id of a process of the other machine says nothing here."""
    lock = bucket / "status" / "lock"
    document = {"host": socket.gethostname(), "pid": 2**22 - 1, "began": "another0/7", "held": True}
    (lock.with_name("lease") / "000001.json").write_text(json.dumps(document))
    by = find_runner(lock)
    assert by is not None
    assert by.process.pid == 2**22 - 1


def test_an_address_with_credentials_is_no_place() -> None:
    with pytest.raises(FileStoreError) as caught:
        as_place("s3://lake/checkpoint?secret_key=abc")
    assert caught.value.code == "W1902"
    assert "abc" not in str(caught.value)


def test_rejects_of_an_attempt_that_no_commit_lists_are_not_there(bucket: StorePath) -> None:
    """A task that outlived its batch may still write them; before the first commit there are none at all."""
    found = run_in(bucket, BATCHES[:2], final=False).checkpoint
    (one, *_) = listed = list_reject_files(found)
    late = one.path.with_name(f"{one.batch}-j1-0.0123456789ab.parquet")
    cast("StorePath", late).write_bytes(one.path.read_bytes())
    assert list_reject_files(found) == listed
    found.commit_file(0).unlink()
    found.commit_file(1).unlink()
    assert list_reject_files(found) == ()
