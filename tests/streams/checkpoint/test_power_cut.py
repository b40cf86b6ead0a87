"""A power cut, a full disk, a byte that changed: nothing of a stream is lost, and nothing comes twice.

The disk of the tests keeps what was synced and nothing else: the content of a file as it was at its last sync, and
the names in a folder as they were at the folder's last sync.
"""

from __future__ import annotations

import errno
import os
import random
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from stream_checkpoints import BATCHES, as_set, on_disk, order, run, shipment, small_plan
from weft.errors import StreamError
from weft.streams.checkpoint.commit import STAGING
from weft.streams.checkpoint.folder import Checkpoint, JobRecord, create_checkpoint, find_checkpoint
from weft.streams.checkpoint.manifest import Move, read_manifest
from weft.streams.checkpoint.recover import RedriveRecord, write_redrive
from weft.streams.checkpoint.rejects import list_reject_files, read_rejects
from weft.streams.kernel.spec import checked_files, list_files
from weft.streams.run.failing import explain_failure
from weft.testing.stream_engine import StreamResult, read_result

MEMORY = Path("/dev/shm")  # noqa: S108  # numbers of files are not used again there
POINTS = ("heartbeat", "kernel", "staged", "counted", "manifest", "renaming", "renamed", "cleaned")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Return a folder in memory where there is one."""
    made = Path(tempfile.mkdtemp(dir=MEMORY if MEMORY.is_dir() else tmp_path))
    yield made
    shutil.rmtree(made)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> StreamResult:
    return run(tmp_path_factory.mktemp("whole"))


class CutError(Exception):
    """The power is gone."""


class Disk:
    """Remembers what was synced; `survives` writes that to another folder, as a restart would see it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.files: dict[int, bytes] = {}
        self.folders: dict[int, dict[str, tuple[int, bool]]] = {}
        self.real = os.fsync
        root.mkdir(parents=True)
        self._note(root)

    def fsync(self, handle: int) -> None:
        self.real(handle)
        self._note(Path(f"/proc/self/fd/{handle}").readlink())

    def _note(self, path: Path) -> None:
        status = path.stat()
        if not stat.S_ISDIR(status.st_mode):
            self.files[status.st_ino] = path.read_bytes()
            return
        names = {e.name: (e.inode(), e.is_dir()) for e in os.scandir(path)}
        self.folders[status.st_ino] = names
        for inode, is_folder in names.values():
            if is_folder:
                self.folders.setdefault(inode, {})

    def survives(self, to: Path) -> Path:
        self._restore(self.root.stat().st_ino, to)
        return to

    def _restore(self, inode: int, to: Path) -> None:
        to.mkdir()
        for name, (inner, is_folder) in self.folders[inode].items():
            if is_folder:
                self._restore(inner, to / name)
            else:
                (to / name).write_bytes(self.files.get(inner, b""))


def cut_at(monkeypatch: pytest.MonkeyPatch, point: str, count: int) -> None:
    """Let the process end when it reaches a point for the n-th time."""
    passed = [0]

    def reached(name: str) -> None:
        passed[0] += name == f"stream_{point}"
        if passed[0] == count:
            raise CutError

    for module in ("weft.streams.checkpoint.commit", "weft.testing.stream_engine"):
        monkeypatch.setattr(f"{module}.crash_point", reached)


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("count", [1, 3])
def test_after_a_power_cut_a_run_goes_on_as_if_nothing_had_happened(
    folder: Path, whole: StreamResult, monkeypatch: pytest.MonkeyPatch, point: str, count: int
) -> None:
    disk = Disk(folder / "disk")
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", disk.fsync)
        cut_at(patched, point, count)
        with pytest.raises(CutError):
            run(disk.root)
    after = disk.survives(folder / "after")
    committed = len(list(after.rglob("commits/[0-9]*.json")))
    # A batch whose manifest was written has happened.
    assert committed == (count - (POINTS.index(point) < POINTS.index("manifest")))
    goes_on = run(after)
    assert as_set(goes_on.rows) == as_set(whole.rows)
    assert goes_on.ledger == whole.ledger


def test_everything_that_a_commit_lists_is_on_the_disk_before_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the sync before the manifest a power cut would leave a commit of files that are not there."""
    disk = Disk(folder / "disk")
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", disk.fsync)
        cut_at(patched, "manifest", 2)
        with pytest.raises(CutError):
            run(disk.root)
    left = disk.survives(folder / "after")
    staged = sorted((left / "sink").rglob("part-000001-*"))
    assert [p.stat().st_size > 0 for p in staged] == [True]
    checkpoint = find_checkpoint(left / "streams" / "status")
    assert checkpoint is not None
    assert checkpoint.commit_file(1).exists()
    listed = [name for entry in read_manifest(checkpoint, 1).state or () for name in list_files(entry)]
    assert listed
    assert all((checkpoint.join_state(1) / name).stat().st_size for name in listed)


def test_corrections_are_on_the_disk_before_the_record_of_their_redrive(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(folder / "disk")
    checkpoint = create_checkpoint(disk.root / "streams" / "status", JobRecord(groups=1))
    sink = disk.root / "out.corrections"
    move = Move(source=sink / STAGING / "id" / "1-abc" / "part-0.json", to=sink / "part-id-000001.json", rows=1)
    move.source.parent.mkdir(parents=True)
    move.source.write_text("{}")

    def cut(_: Any) -> None:
        raise CutError

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", disk.fsync)
        patched.setattr("weft.streams.checkpoint.recover.finish_redrive", cut)
        with pytest.raises(CutError):
            write_redrive(checkpoint, RedriveRecord(number=1, at=0, reasons=("LATE",), files=(move,)))
    left = disk.survives(folder / "after")
    assert (left / on_disk(move.source).relative_to(disk.root)).read_text() == "{}"


class FullDisk:
    """Lets the n-th step that needs room fail, as a disk without room does."""

    def __init__(self, patch: pytest.MonkeyPatch, fails_at: int) -> None:
        self.fails_at, self.steps = fails_at, 0
        for place, name in ((os, "fsync"), (Path, "replace"), (Path, "open")):
            patch.setattr(place, name, self._failing(getattr(place, name)))

    def _failing(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def step(*given: Any, **named: Any) -> Any:
            mode = "".join((*given[1:2], named.get("mode", ""))) if real.__name__ == "open" else "w"
            writes = "w" in mode or "x" in mode
            self.steps += writes
            if writes and self.steps == self.fails_at:
                raise OSError(errno.ENOSPC, "No space left on device")
            return real(*given, **named)

        return step


def count_steps(folder: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    with monkeypatch.context() as patched:
        disk = FullDisk(patched, 0)
        run(folder / "counted", BATCHES[:3])
    return disk.steps


def test_a_disk_without_room_at_any_step_loses_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = count_steps(folder, monkeypatch)
    assert steps > 100
    wanted = read_result(small_plan(), folder / "counted")
    chosen = random.Random(26).sample(range(1, steps + 1), 24)  # the same steps in every run
    for number in sorted(chosen):
        root = folder / str(number)
        with monkeypatch.context() as patched:
            FullDisk(patched, number)
            with pytest.raises(OSError, match="No space left") as caught:
                run(root, BATCHES[:3])
        error = explain_failure(caught.value, "status")
        assert (error.code, "free space" in error.help) == ("W2309", True)
        # Room was made, and the job was started again; a flush that was committed is sealed by then.
        try:
            run(root, BATCHES[:3])
        except StreamError as sealed:
            assert sealed.code == "W2204"
        goes_on = read_result(small_plan(), root)
        assert as_set(goes_on.rows) == as_set(wanted.rows), number
        assert goes_on.ledger == wanted.ledger
        assert not list(root.rglob(".tmp-*"))


MORE = (*BATCHES, {"orders": [order("g", 64)], "shipments": [shipment("f", 65)]})
KINDS = ("job.json", "commits/4.json", ".arrow", ".flags", ".parquet")


def files_of(checkpoint: Checkpoint, kind: str) -> list[Path]:
    """Return the files of a kind that a restart reads."""
    if kind == ".parquet":
        return sorted(on_disk(checkpoint.rejects).rglob("*.parquet"))
    if kind.endswith(".json"):
        return [on_disk(checkpoint.root) / kind]
    paths = {path for entry in read_manifest(checkpoint, 4).state or () for path in list_files(entry)}
    return [on_disk(checkpoint.join_state(1)) / path for path in sorted(paths) if path.endswith(kind)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_byte_that_changed_is_seen_before_it_is_used(folder: Path, kind: str) -> None:
    run(folder / "kept", MORE, final=False)
    wanted = run(folder / "whole", MORE)
    found = find_checkpoint(folder / "kept" / "streams" / "status")
    assert found is not None
    chosen = random.Random(26)
    seen = 0
    files = files_of(found, kind)
    assert files
    for number in range(24):
        file = files[number % len(files)]
        root = shutil.copytree(folder / "kept", folder / str(number))
        damaged = root / file.relative_to(folder / "kept")
        content = bytearray(damaged.read_bytes())
        place = chosen.randrange(len(content))
        content[place] ^= 1 << chosen.randrange(8)
        damaged.write_bytes(content)
        try:
            if kind == ".parquet":
                assert read_rejects(list_reject_files(moved(found, root))[files.index(file)]).equals(
                    read_rejects(list_reject_files(found)[files.index(file)])
                )
            else:
                # A byte of white space, or of the name of the checksum, changes nothing that is used.
                assert as_set(run(root, MORE).rows) == as_set(wanted.rows), (file, place)
        except StreamError as error:
            assert error.code == "W2202"
            seen += 1
        shutil.rmtree(root)
    assert seen >= (8 if kind.endswith(".json") else 24)


def moved(checkpoint: Checkpoint, root: Path) -> Checkpoint:
    return Checkpoint(root / "streams" / "status" / checkpoint.name)


def test_a_file_is_read_in_full_once_by_each_process(folder: Path) -> None:
    run(folder, BATCHES[:2], final=False)
    checked_files().clear()
    run(folder, BATCHES[:3], final=False)
    before = {path for sums in checked_files().values() for path in sums}
    run(folder, final=False)
    after = {path for sums in checked_files().values() for path in sums}
    assert before
    # What the newest state does not list any more is forgotten.
    assert len(after) <= len(before) + 8
    assert before - after
