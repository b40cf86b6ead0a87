"""What a start makes good: whatever a crash left, the last commit is what has happened, and no more."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from stream_checkpoints import BATCHES, as_set, on_disk, run, small_plan
from weft.core.frozen import FrozenMap
from weft.errors import StreamError
from weft.streams.checkpoint.commit import STAGING, check_open, decide_heartbeat, is_sealed
from weft.streams.checkpoint.folder import (
    Checkpoint,
    JobRecord,
    activate,
    create_checkpoint,
    find_checkpoint,
    find_replaced,
    move_file,
    read_document,
    read_job_record,
    write_document,
)
from weft.streams.checkpoint.manifest import (
    Heartbeat,
    Move,
    last_manifest,
    read_heartbeat,
    read_manifest,
    sink_files,
    write_heartbeat,
    write_manifest,
)
from weft.streams.checkpoint.recover import RedriveRecord, read_redrives, recover, write_redrive
from weft.streams.kernel.spec import FOREVER, list_files
from weft.testing.stream_engine import run_statement


@pytest.fixture
def checkpoint(tmp_path: Path) -> Checkpoint:
    """Return a checkpoint with four committed batches."""
    return run(tmp_path, final=False).checkpoint


def test_a_checkpoint_without_a_crash_stays_as_it_is(checkpoint: Checkpoint) -> None:
    before = sorted(map(str, checkpoint.root.rglob("*")))
    assert recover(checkpoint) == 3
    assert sorted(map(str, checkpoint.root.rglob("*"))) == before


def test_files_of_the_last_batch_go_into_place(checkpoint: Checkpoint, tmp_path: Path) -> None:
    staging = tmp_path / "sink" / STAGING / "9"
    staging.mkdir(parents=True)
    moves = []
    for number in range(2):
        (staging / f"part-{number}").write_text(str(number))
        moves.append(Move(source=staging / f"part-{number}", to=tmp_path / "sink" / f"shown-{number}", rows=1))
    manifest = last_manifest(checkpoint)
    assert manifest is not None
    write_manifest(checkpoint, replace(manifest, batch=4, sink=tuple(moves)))
    # The crash came between the two renames.
    move_file(moves[0].source, moves[0].to)
    assert recover(checkpoint) == 4
    assert [m.to.read_text() for m in moves] == ["0", "1"]
    assert not staging.exists()
    assert recover(checkpoint) == 4


def staged_batch(checkpoint: Checkpoint, sink: Path, count: int) -> list[Move]:
    """Commit a batch whose files are all staged, as a crash right after the commit leaves it."""
    staging = sink / STAGING / "9"
    staging.mkdir(parents=True)
    moves = [Move(source=staging / f"part-{n}", to=sink / f"shown-{n}", rows=1) for n in range(count)]
    for move in moves:
        move.source.write_text(move.source.name)
    manifest = last_manifest(checkpoint)
    assert manifest is not None
    write_manifest(checkpoint, replace(manifest, batch=4, sink=tuple(moves)))
    return moves


@pytest.mark.parametrize("renamed", [1, 2, 3])
@pytest.mark.parametrize("taken", [1, 2, 3])
def test_a_reader_may_remove_files_while_others_wait_to_be_renamed(
    checkpoint: Checkpoint, tmp_path: Path, renamed: int, taken: int
) -> None:
    moves = staged_batch(checkpoint, tmp_path / "sink", 3)
    # The crash came after some renames, and a reader took some of those files before the restart.
    for move in moves[:renamed]:
        move_file(move.source, move.to)
    for move in moves[: min(taken, renamed)]:
        move.to.unlink()
    assert recover(checkpoint) == 4
    kept = sorted(p.name for p in (tmp_path / "sink").glob("shown-*"))
    assert kept == [m.to.name for m in moves[min(taken, renamed) :]]
    assert recover(checkpoint) == 4


def test_a_staged_file_that_was_lost_before_its_rename_is_refused(checkpoint: Checkpoint, tmp_path: Path) -> None:
    moves = staged_batch(checkpoint, tmp_path / "sink", 2)
    moves[1].source.unlink()  # files are renamed in order, so nobody can have taken the second one
    with pytest.raises(StreamError, match="neither staged nor at") as caught:
        recover(checkpoint)
    assert caught.value.code == "W2202"


def test_output_that_somebody_took_away_stops_nothing(checkpoint: Checkpoint) -> None:
    for path in sink_files(checkpoint):
        path.unlink()
    assert recover(checkpoint) == 3


def test_what_a_later_batch_began_is_removed(checkpoint: Checkpoint, tmp_path: Path) -> None:
    left = [
        checkpoint.state / "j1" / "4-0-abc-left.arrow",
        checkpoint.state / "j1" / "3-0-abc-left.arrow",  # of another attempt of the last batch
        checkpoint.state / "j2" / "4" / "0" / "index.json",  # of an earlier version
        checkpoint.rejects / "left" / "4-j1-0.abc.parquet",
        checkpoint.rejects / "left" / "3-j1-0.abc.parquet",
        checkpoint.rejects / "left" / "4-j1-0.parquet",
        checkpoint.commits / ".tmp-4.json-abc",
        tmp_path / "staging" / "4" / "part-0",
    ]
    for path in left:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("begun")
    kept = list_names(checkpoint)
    assert kept
    assert recover(checkpoint, tmp_path / "staging") == 3
    assert [p for p in left if p.exists()] == []
    assert list_names(checkpoint) == kept
    assert list(checkpoint.rejects.rglob("2-j1-*.parquet"))


def test_the_heartbeat_of_a_batch_that_comes_again_is_kept(checkpoint: Checkpoint) -> None:
    write_heartbeat(checkpoint, Heartbeat(batch=4, wall_clock=77, watermark=5))
    recover(checkpoint)
    found = read_heartbeat(checkpoint, 4)
    assert found is not None
    assert found.wall_clock == 77


def test_the_heartbeat_of_a_flush_that_did_not_happen_is_forgotten(checkpoint: Checkpoint) -> None:
    write_heartbeat(checkpoint, Heartbeat(batch=4, wall_clock=77, watermark=5, final=True))
    recover(checkpoint)
    assert read_heartbeat(checkpoint, 4) is None


def test_a_flush_that_happened_is_sealed(tmp_path: Path) -> None:
    found = run(tmp_path).checkpoint
    found.sealed_file.unlink()
    recover(found)
    assert is_sealed(found)
    with pytest.raises(StreamError, match="is sealed") as caught:
        check_open(found, "status")
    assert caught.value.code == "W2204"
    assert "--fresh" in caught.value.help


def test_a_sink_that_is_ahead_of_an_older_copy_of_the_checkpoint_is_refused(
    checkpoint: Checkpoint, tmp_path: Path
) -> None:
    sink = tmp_path / "out"
    sink.mkdir()
    own = read_job_record(checkpoint).id
    kept = [sink / f"part-{own}-000003-00000.json", sink / "part-00000000-000009-00000.json"]
    for path in kept:
        path.write_text("{}")
    assert recover(checkpoint, sink=sink) == 3
    later = sink / f"part-{own}-000004-00000.json"
    later.write_text("{}")
    with pytest.raises(StreamError, match="1 files of batches after the last commit") as caught:
        recover(checkpoint, sink=sink)
    assert (caught.value.code, later.name in caught.value.message) == ("W2202", True)
    assert all(path.exists() for path in (*kept, later))


@pytest.mark.parametrize("text", ["", '{"format": 1, "ba', "[1]", '{"batch": 3}', '{"batch": 3, "sink": [{}]}'])
def test_a_damaged_manifest_is_refused(checkpoint: Checkpoint, text: str) -> None:
    checkpoint.commit_file(3).write_text(text)
    with pytest.raises(StreamError) as caught:
        recover(checkpoint)
    assert caught.value.code == "W2202"
    assert str(checkpoint.commit_file(3)) in caught.value.message


def test_a_truncated_segment_is_refused(checkpoint: Checkpoint, tmp_path: Path) -> None:
    segment = next(checkpoint.join_state(1) / name for name in list_names(checkpoint) if name.endswith(".arrow"))
    segment.write_bytes(segment.read_bytes()[:-40])
    with pytest.raises(StreamError) as caught:
        run_statement(small_plan(), BATCHES, root=tmp_path)
    assert caught.value.code == "W2202"


def list_names(checkpoint: Checkpoint) -> list[str]:
    """Return the files that the state of the last commit consists of."""
    manifest = last_manifest(checkpoint)
    assert manifest is not None
    names = sorted(name for entry in manifest.state or () for name in list_files(entry))
    assert all((checkpoint.join_state(1) / name).exists() for name in names)
    return names


def test_a_disk_that_is_full_leaves_the_document_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_document(tmp_path / "a.json", {"a": 1})

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("weft.streams.checkpoint.folder.os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_document(tmp_path / "a.json", {"a": 2})
    monkeypatch.undo()
    assert read_document(tmp_path / "a.json")["a"] == 1
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]


def test_a_checkpoint_that_replaces_another_takes_its_output_away(tmp_path: Path) -> None:
    old = run(tmp_path).checkpoint
    files = sink_files(old)
    assert files
    stranger = files[0].parent / "somebody-else.json"
    stranger.write_text("{}")
    new = create_checkpoint(old.root.parent, replace(read_job_record(old), replaces=old.name, id=""))
    recover(new)
    assert [p for p in files if p.exists()] == []
    assert stranger.exists()
    recover(new)


def test_beginning_again_takes_the_output_of_every_earlier_checkpoint_away(tmp_path: Path) -> None:
    first = run(tmp_path).checkpoint
    files = sink_files(first)
    # As versions wrote it that did not record whose offsets a checkpoint took over.
    second = create_checkpoint(first.root.parent, replace(read_job_record(first), id=""))
    activate(second)
    third = create_checkpoint(first.root.parent, replace(read_job_record(first), replaces=second.name, id=""))
    recover(third)
    assert files
    assert [p for p in files if p.exists()] == []


def test_the_output_of_a_checkpoint_whose_folder_is_gone_is_taken_away_too(tmp_path: Path) -> None:
    sink = tmp_path / "out"
    sink.mkdir()
    gone = create_checkpoint(tmp_path / "cp", JobRecord(groups=1))
    activate(gone)
    (sink / f"part-{read_job_record(gone).id}-000000-00000.json").write_text("{}")
    shutil.rmtree(on_disk(gone.root))
    with pytest.raises(StreamError):
        find_checkpoint(gone.root.parent)
    fresh = create_checkpoint(gone.root.parent, JobRecord(groups=1, replaces=find_replaced(gone.root.parent)))
    activate(fresh)
    recover(fresh, sink=sink)
    assert list(sink.iterdir()) == []


def test_a_checkpoint_that_replaces_another_leaves_its_own_output(tmp_path: Path) -> None:
    old = run(tmp_path / "a").checkpoint
    new = create_checkpoint(old.root.parent, JobRecord(groups=2, replaces=old.name))
    manifest = read_manifest(old, 0)
    write_manifest(new, manifest)
    recover(new)
    assert all(move.to.exists() for move in manifest.sink)


def test_a_run_that_is_continued_gives_what_one_run_gives(tmp_path: Path) -> None:
    whole = run(tmp_path / "whole")
    for batches in range(1, len(BATCHES)):
        root = tmp_path / str(batches)
        run(root, BATCHES[:batches], final=False)
        assert as_set(run(root).rows) == as_set(whole.rows)


def test_output_is_found_even_when_the_replaced_checkpoint_is_damaged(tmp_path: Path) -> None:
    sink = tmp_path / "out"
    sink.mkdir()
    first = create_checkpoint(tmp_path / "cp", JobRecord(groups=1))
    second = create_checkpoint(tmp_path / "cp", JobRecord(groups=1, replaces=first.name))
    files = [sink / f"part-{read_job_record(cp).id}-000000-00000.json" for cp in (first, second)]
    other = sink / "part-00000-0.json"
    for path in (*files, other):
        path.write_text("{}")
    first.commits.mkdir()
    first.commit_file(0).write_text("damaged")
    third = create_checkpoint(tmp_path / "cp", JobRecord(groups=1, replaces=second.name))
    assert recover(third, sink=sink) is None
    assert list(sink.iterdir()) == [other]


def test_a_flush_and_a_batch_with_rows_of_one_number_have_clocks_of_their_own(checkpoint: Checkpoint) -> None:
    before = last_manifest(checkpoint)

    def decided(*, final: bool, wall_clock: int) -> Heartbeat:
        return decide_heartbeat(
            checkpoint, small_plan(), 4, before, idle=FrozenMap(), wall_clock=wall_clock, final=final
        )

    with_rows = decided(final=False, wall_clock=1)
    assert decided(final=False, wall_clock=2) == with_rows
    flush = decided(final=True, wall_clock=3)
    assert (flush.final, flush.clocks) == (True, ((FOREVER, FOREVER),))
    assert decided(final=False, wall_clock=4).clocks == with_rows.clocks


def test_staged_files_of_the_last_batch_go_into_place_before_their_folder_goes(
    checkpoint: Checkpoint, tmp_path: Path
) -> None:
    sink = tmp_path / "sink"
    moves = staged_batch(checkpoint, sink, 2)
    assert recover(checkpoint, sink / STAGING, sink=sink) == 4
    assert [m.to.read_text() for m in moves] == [m.source.name for m in moves]
    assert not (sink / STAGING).exists()


def test_a_checkpoint_that_only_takes_over_offsets_leaves_the_output_of_the_earlier_one(tmp_path: Path) -> None:
    old = run(tmp_path, final=False).checkpoint
    files = sink_files(old)
    record = replace(read_job_record(old), follows=old.name, first_batch=4, id="")
    recover(create_checkpoint(old.root.parent, record))
    assert files
    assert all(path.exists() for path in files)


def test_a_redrive_that_is_missing_between_others_is_refused(checkpoint: Checkpoint, tmp_path: Path) -> None:
    """Its rows would be taken again, and the next redrive would replace the record of the last one."""
    sink = tmp_path / "out.corrections"
    for number in (1, 2):
        file = sink / STAGING / f"part-{number}"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(file.name)
        moves = (Move(source=file, to=sink / file.name, rows=1),)
        write_redrive(checkpoint, RedriveRecord(number=number, at=0, reasons=("LATE",), files=moves))
    assert [record.number for record in read_redrives(checkpoint)] == [1, 2]
    (checkpoint.redriven / "1.json").unlink()
    with pytest.raises(StreamError, match="later redrives exist") as caught:
        read_redrives(checkpoint)
    assert caught.value.code == "W2202"
    # A fresh start removes the corrections that are still listed.
    recover(create_checkpoint(checkpoint.root.parent, JobRecord(groups=2, replaces=checkpoint.name)))
    assert [p.name for p in sink.iterdir() if p.is_file()] == ["part-1"]
