"""Publishing plain staged folders: all outputs together, in every mode, or none."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from engine_data import CONVERT, project_text, sample_workspace
from staged_runs import TARGETS, TWO_OUTPUTS, contents, opened, staged_run
from weft.errors import RunError
from weft.io.staged import exchange
from weft.pipelines.run import moving
from weft.pipelines.run.moving import OLD, remove_old, stage_root, staged_runs
from weft.pipelines.run.publish import recover
from weft.pipelines.store.writer import Store

FIRST, SECOND = TARGETS


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return sample_workspace(tmp_path, {"projects/fx_reporting.yml": TWO_OUTPUTS})


@pytest.fixture
def store(root: Path) -> Iterator[Store]:
    with opened(root) as found:
        yield found


def with_mode(tmp_path: Path, mode: str) -> Path:
    output = f"""\
- seq: 20
  name: Write
  type: output
  arguments:
    destination: {{datasource_id: warehouse, table: processed_gl}}
    columns: [journal_id, amount_reporting]
    mode: {mode}
"""
    return sample_workspace(tmp_path, {"projects/fx_reporting.yml": project_text([CONVERT, output])})


def test_every_output_comes_to_its_target_and_nothing_stays_staged(root: Path, store: Store) -> None:
    run = staged_run(root, store)
    run.publish()
    assert (contents(root, FIRST), contents(root, SECOND)) == (["new 20"], ["new 30"])
    assert store.run(run.run_id).status == "completed"
    assert {o.state for o in store.outputs(run.run_id)} == {"published"}
    assert staged_runs(root) == ()
    assert store.locks() == ()


def test_a_second_run_replaces_the_period_and_registers_the_next_version(root: Path, store: Store) -> None:
    staged_run(root, store, "old", number=1).publish()
    run = staged_run(root, store, "new", number=2)
    run.publish()
    assert contents(root, FIRST) == ["new 20"]
    assert [d.version for d in store.dataset_versions("gl_usd")] == [1, 2]
    first = {o.seq: o for o in store.outputs(run.run_id)}[20]
    assert (first.register_as, first.dataset_version) == ("gl_usd", 2)


def test_a_registered_dataset_says_its_columns_key_and_place(root: Path, store: Store) -> None:
    staged_run(root, store).publish()
    (found,) = store.registered()
    names = [c.name for c in found.dataset.main_table.columns]
    assert names == ["journal_id", "line_number", "currency", "amount_local", "amount_reporting"]
    assert found.dataset.natural_key_columns == ("journal_id", "line_number")
    assert found.dataset.main_table.temporal_mode == "period"
    assert [(p.period, p.path, p.format) for p in found.locations] == [("2026-01", FIRST, "parquet")]


def test_append_keeps_what_was_there_and_replaces_its_own_files(tmp_path: Path) -> None:
    root = with_mode(tmp_path, "append")
    with opened(root) as store:
        staged_run(root, store, "old", number=1).publish()
        run = staged_run(root, store, "new", number=2)
        own = root / FIRST / f"part-{run.run_id}-00000.parquet"
        own.write_text("of an earlier try", encoding="utf-8")
        run.publish()
        assert contents(root, FIRST) == ["new 20", "old 20"]


def test_a_rerun_that_appends_replaces_the_files_of_the_run_it_repeats(tmp_path: Path) -> None:
    root = with_mode(tmp_path, "append")
    with opened(root) as store:
        first = staged_run(root, store, "old", number=1)
        first.publish()
        staged_run(root, store, "other", number=2).publish()
        again = staged_run(root, store, "new", number=3)
        again.moves = tuple(replace(move, rows_of=(first.run_id,)) for move in again.moves)
        again.publish()
        assert contents(root, FIRST) == ["new 20", "other 20"]


def test_fail_if_exists_is_refused_before_a_run_begins(tmp_path: Path) -> None:
    root = with_mode(tmp_path, "fail_if_exists")
    with opened(root) as store:
        staged_run(root, store, "old").publish()
        with pytest.raises(RunError, match=r"W1507.*processed_gl/period=2026-01 already exists"):
            staged_run(root, store, "new", number=2)
        assert len(store.runs()) == 1


def test_a_target_that_appears_while_the_run_works_is_found_before_anything_moves(tmp_path: Path) -> None:
    root = with_mode(tmp_path, "fail_if_exists")
    with opened(root) as store:
        run = staged_run(root, store)
        (root / FIRST).mkdir(parents=True)
        with pytest.raises(RunError, match="W1507"):
            run.publish()
        assert {o.state for o in store.outputs(run.run_id)} == {"staged"}
        assert contents(root, FIRST) == []


def test_a_single_file_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    output = '- {seq: 20, name: Write, type: output, arguments: {destination: {path: "exports/{{period}}.csv"}}}'
    root = sample_workspace(tmp_path, {"projects/fx_reporting.yml": project_text([CONVERT, output])})
    with opened(root) as store:
        staged_run(root, store, "old", number=1).publish()
        staged_run(root, store, "new", number=2).publish()
    assert (root / "exports" / "2026-01.csv").read_text(encoding="utf-8") == "new 20"
    assert [p.name for p in (root / "exports").iterdir()] == ["2026-01.csv"]


def test_staged_files_and_the_mark_are_on_the_disk_before_a_target_is_exchanged(
    root: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power cut after the exchange must not leave names of files that are empty."""
    staged_run(root, store, "old", number=1).publish()
    run = staged_run(root, store, "new", number=2)
    marks = {move.source: move.mark for move in run.moves}
    synced: list[int] = []
    exchanged: list[Path] = []
    real = os.fsync

    def fsync(handle: int) -> None:
        synced.append(os.fstat(handle).st_ino)
        real(handle)

    def swap(source: Path, target: Path) -> bool:
        needed = (source, *source.rglob("*"), marks[source], marks[source].parent)
        assert [p for p in needed if p.stat().st_ino not in synced] == []
        synced.clear()
        exchanged.append(target)
        return exchange(source, target)

    def reached(point: str) -> None:
        if point == "renamed_in":  # the name of the new folder is on the disk too
            assert exchanged[-1].parent.stat().st_ino in synced

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(moving, "exchange", swap)
    monkeypatch.setattr(moving, "crash_point", reached)
    run.publish()
    assert exchanged == [root / FIRST, root / SECOND]


def test_a_target_that_has_come_to_lead_out_of_the_workspace_is_not_published_to(
    root: Path, store: Store, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The plan saw no link: it was put there while the run worked."""
    run = staged_run(root, store)
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (root / "exports").symlink_to(elsewhere, target_is_directory=True)
    with pytest.raises(RunError, match=r"W1311.*leads out of the workspace"):
        run.publish()
    assert list(elsewhere.iterdir()) == []
    assert contents(root, FIRST) == []
    assert {o.state for o in store.outputs(run.run_id)} == {"staged"}


def test_a_publication_that_died_is_not_completed_out_of_the_workspace(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan allows absolute paths, wherever they lead: it does not see the link."""
    text = TWO_OUTPUTS.replace("path: exports/gl", f"path: {tmp_path}/fx/exports/gl")
    root = sample_workspace(tmp_path, {"projects/fx_reporting.yml": text})
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    with opened(root) as store:
        run = staged_run(root, store)
        store.begin_publish(run.run_id, [move.output for move in run.moves])
        (root / "exports").symlink_to(elsewhere, target_is_directory=True)
        monkeypatch.setattr("weft.pipelines.store.locks.stale", lambda *_: True)
        (recovered,) = recover(store, root)
        assert recovered.outcome == "failed"
        assert "leads out of the workspace" in recovered.note.message
        assert list(elsewhere.iterdir()) == []
        assert contents(root, FIRST) == []
        assert {o.state for o in store.outputs(run.run_id)} == {"discarded"}


@pytest.mark.parametrize("content", ["tampered", "new 31"], ids=["another size", "the same size"])
def test_staged_data_that_somebody_changed_is_not_published(root: Path, store: Store, content: str) -> None:
    staged_run(root, store, "old", number=1).publish()
    run = staged_run(root, store, "new", number=2)
    next(Path(run.moves[1].output.stage).iterdir()).write_text(content, encoding="utf-8")
    with pytest.raises(RunError, match=r"W1512.*output 30.*has changed since it was written"):
        run.publish()
    assert (contents(root, FIRST), contents(root, SECOND)) == (["old 20"], ["old 30"])


def test_a_move_that_fails_puts_every_target_back(root: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    staged_run(root, store, "old", number=1).publish()
    run = staged_run(root, store, "new", number=2)
    real = Path.rename

    def rename(self: Path, target: Path) -> Path:
        if self == run.moves[1].source:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(self, target)

    monkeypatch.setattr(Path, "rename", rename)
    with pytest.raises(RunError, match=r"W1508.*no space"):
        run.publish()
    monkeypatch.undo()
    assert (contents(root, FIRST), contents(root, SECOND)) == (["old 20"], ["old 30"])
    assert {o.state for o in store.outputs(run.run_id)} == {"staged"}
    run.publish()
    assert (contents(root, FIRST), contents(root, SECOND)) == (["new 20"], ["new 30"])


def test_a_folder_that_cannot_be_moved_says_why(root: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    run = staged_run(root, store)

    def rename(_self: Path, _target: Path) -> Path:
        raise OSError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(Path, "rename", rename)
    with pytest.raises(RunError, match=r"W1512.*Permission denied"):
        run.publish()


def test_a_target_on_another_disk_is_staged_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "mnt"
    monkeypatch.setattr("weft.pipelines.run.moving._disk", lambda p: 2 if p.is_relative_to(other) else 1)
    assert stage_root(other / "gl" / "period=1", tmp_path) == other / "gl" / ".weft_stage"
    assert stage_root(tmp_path / "out" / "period=1", tmp_path) == tmp_path / ".weft" / "stage"


def test_two_runs_do_not_publish_to_one_target_at_once(root: Path, store: Store) -> None:
    run = staged_run(root, store)
    store.begin_publish(run.run_id, [m.output for m in run.moves])
    other = sample_workspace(root / "other", {"projects/fx_reporting.yml": TWO_OUTPUTS})
    with opened(root) as second:
        text = TWO_OUTPUTS.replace("0000000000f1", "0000000000f2").replace("fx_reporting", "fx_other")
        (root / "projects" / "fx_reporting.yml").write_text(text, encoding="utf-8")
        rival = staged_run(root, second, number=3)
        with pytest.raises(RunError, match=r"W1501.*publishes to"):
            rival.publish()
    assert contents(other, FIRST) == []


def test_verify_wants_every_file(root: Path, store: Store) -> None:
    move = staged_run(root, store).moves[0]
    moving.verify(move)
    next(Path(move.output.stage).iterdir()).unlink()
    with pytest.raises(RunError, match=r"W1512.*is missing"):
        moving.verify(move)
    assert not moving.is_whole(move)
    gone = replace(move, output=replace(move.output, stage=str(root / "nowhere")))
    with pytest.raises(RunError, match="neither staged nor at its target"):
        moving.move_in(gone)


READER = """\
import os, sys
target, stop = sys.argv[1:]
seen = absent = empty = 0
while not os.path.exists(stop):
    try:
        names = os.listdir(target)
    except FileNotFoundError:
        absent += 1
    else:
        seen += 1
        empty += not [n for n in names if n.startswith("part-")]
print(seen, absent, empty)
"""


@pytest.mark.parametrize("mode", ["replace_period", "append"])
def test_whoever_lists_a_target_sees_files_at_every_moment(tmp_path: Path, mode: str) -> None:
    root, stop = with_mode(tmp_path, mode), tmp_path / "stop"
    with opened(root) as store:
        staged_run(root, store, "first", number=1).publish()
        words = [sys.executable, "-c", READER, str(root / FIRST), str(stop)]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as reader:
            for number in range(2, 22):
                run = staged_run(root, store, f"run {number}", number=number)
                run.publish()
            stop.touch()
            out = reader.communicate()[0]
    seen, absent, empty = map(int, out.split())
    assert seen > 0
    assert (absent, empty) == (0, 0)
    assert len(contents(root, FIRST)) == (1 if mode == "replace_period" else 21)


def test_a_target_is_put_back_without_being_absent(root: Path, store: Store, tmp_path: Path) -> None:
    staged_run(root, store, "old", number=1).publish()
    stop = tmp_path / "stop"
    words = [sys.executable, "-c", READER, str(root / FIRST), str(stop)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as reader:
        move = staged_run(root, store, "new", number=2).moves[0]
        for _ in range(200):
            moving.move_in(move)
            assert contents(root, FIRST) == ["new 20"]
            moving.move_back(move)
            assert contents(root, FIRST) == ["old 20"]
        stop.touch()
        out = reader.communicate()[0]
    assert out.split()[1:] == ["0", "0"]


def test_a_move_that_was_taken_back_leaves_no_mark(root: Path, store: Store) -> None:
    """The number in a mark is used again for other folders: an old mark could name one of them."""
    staged_run(root, store, "old", number=1).publish()
    move = staged_run(root, store, "new", number=2).moves[0]
    moving.move_in(move)
    assert move.mark.exists()
    moving.move_back(move)
    assert not move.mark.exists()


def test_the_old_content_of_a_target_is_kept_for_a_minute(
    root: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, content in enumerate(("old", "new"), 1):
        staged_run(root, store, content, number=number).publish()
    remove_old(root / OLD)
    assert contents(root, str(OLD)) == ["old 20", "old 30"]
    for entry in (root / OLD).iterdir():
        entry.rename(entry.with_name(f"1000-{entry.name.partition('-')[2]}"))
    for now, kept in ((1060, ["old 20", "old 30"]), (1061, [])):
        monkeypatch.setattr("time.time", lambda now=now: now)
        remove_old(root / OLD)
        assert contents(root, str(OLD)) == kept


def test_a_disk_that_cannot_exchange_renames_twice(root: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moving, "exchange", lambda *_: False)
    staged_run(root, store, "old", number=1).publish()
    run = staged_run(root, store, "new", number=2)
    moving.move_in(run.moves[0])
    moving.move_back(run.moves[0])
    assert contents(root, FIRST) == ["old 20"]
    run.publish()
    assert (contents(root, FIRST), contents(root, SECOND)) == (["new 20"], ["new 30"])


def test_paths_that_cannot_change_places_stay_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.write_text("file", encoding="utf-8")
    assert exchange(one, other)
    assert (one.is_file(), other.is_dir()) == (True, True)
    with pytest.raises(FileNotFoundError):
        exchange(one, tmp_path / "nothing")
    monkeypatch.setattr("sys.platform", "plan9")
    assert not exchange(one, other)
    assert (one.is_file(), other.is_dir()) == (True, True)


def test_a_move_that_cannot_be_taken_back_is_left_to_the_next_command(
    root: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second output does not move, and the first does not come back: nothing is removed, but nothing failed yet."""
    staged_run(root, store, "old", number=1).publish()
    run = staged_run(root, store, "new", number=2)
    real, calls = moving.exchange, []

    def once(one: Path, other: Path) -> bool:
        calls.append(one)
        if len(calls) > 1:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return real(one, other)

    with monkeypatch.context() as patched:
        patched.setattr(moving, "exchange", once)
        with pytest.raises(RunError, match=r"W1516.*interrupted while it published"):
            run.publish()
    assert {o.state for o in store.outputs(run.run_id)} == {"publishing"}
    monkeypatch.setattr("weft.pipelines.store.locks.stale", lambda *_: True)
    assert [r.outcome for r in recover(store, root)] == ["completed"]
    assert (contents(root, FIRST), contents(root, SECOND)) == (["new 20"], ["new 30"])


@pytest.mark.parametrize("change", ["added", "changed", "rewritten", "removed", "nothing"])
def test_a_target_that_changed_while_it_was_merged_is_not_replaced(tmp_path: Path, change: str) -> None:
    root = with_mode(tmp_path, "replace_period")
    with opened(root) as store:
        staged_run(root, store, "old", number=1).publish()
        run = staged_run(root, store, "merged", number=2)
        read = moving.listing(root / FIRST)
        (file,) = (root / FIRST).iterdir()
        if change == "added":
            (root / FIRST / "theirs").write_text("theirs", encoding="utf-8")
        elif change == "changed":
            file.write_text("another", encoding="utf-8")
        elif change == "rewritten":  # with as many bytes
            before = file.stat()
            file.write_text(file.read_text(encoding="utf-8").replace("old", "odd"), encoding="utf-8")
            os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns + 1_000_000_000))
        elif change == "removed":
            file.unlink()
        now = contents(root, FIRST)
        if change == "nothing":
            run.publish(merged={20: read})
            assert contents(root, FIRST) == ["merged 20"]
            return
        with pytest.raises(RunError, match=r"W1512.*was changed while output 20 was merged"):
            run.publish(merged={20: read})
        assert contents(root, FIRST) == now
        assert {o.state for o in store.outputs(run.run_id)} == {"staged"}


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
@pytest.mark.parametrize("call", ["_write_mark", "_link_kept_files", "exchange"])
def test_a_full_disk_leaves_every_target_and_the_stage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, number: int
) -> None:
    root = with_mode(tmp_path, "append")

    def full(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    with opened(root) as store:
        staged_run(root, store, "old", number=1).publish()
        run = staged_run(root, store, "new", number=2)
        with monkeypatch.context() as patched:
            patched.setattr(moving, call, full)
            with pytest.raises(RunError, match="W1508"):
                run.publish()
        assert contents(root, FIRST) == ["old 20"]
        assert {o.state for o in store.outputs(run.run_id)} == {"staged"}
        run.publish()
        assert contents(root, FIRST) == ["new 20", "old 20"]


def test_a_target_that_another_program_wrote_while_the_old_one_was_put_aside_is_kept(root: Path, store: Store) -> None:
    move = staged_run(root, store).moves[0]
    both = {move.target: "of another program", move.backup: "old"}
    for folder, text in both.items():
        folder.mkdir(parents=True)
        (folder / "part-0").write_text(text, encoding="utf-8")
    with pytest.raises(RunError, match=r"W1512.*reappeared while it was exchanged"):
        moving.move_in(move)
    assert {folder: (folder / "part-0").read_text(encoding="utf-8") for folder in both} == both
    assert move.source.exists()
