"""Offsets that are taken over from a checkpoint that never committed: what it was to replace is still replaced."""

from __future__ import annotations

from pathlib import Path

import pytest

from stream_checkpoints import SQL, order, run, shipment
from stream_spark import job_of
from weft.errors import StreamError
from weft.streams.checkpoint.folder import Checkpoint, find_checkpoint, read_job_record, remove_path
from weft.streams.checkpoint.manifest import Manifest, Move, write_manifest
from weft.streams.checkpoint.offsets import check_offsets
from weft.streams.checkpoint.recover import recover
from weft.streams.checkpoint.rejects import list_reject_files, read_rejects
from weft.streams.run.opening import Keep, open_checkpoint

LAST = 3


def plan_of_spark(checkpoint: Checkpoint, batch: int) -> None:
    """Write what Spark leaves of a batch that it planned and finished."""
    for name, text in (("offsets", "v1\n{}\n-\n-"), ("commits", "v1\n{}")):
        path = checkpoint.spark / name / str(batch)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def start(root: Path, seconds: int, *, fresh: bool = False, keep: Keep | None = None) -> Checkpoint:
    """Open the checkpoint of a join with a bound, as a process that dies right after it."""
    job = job_of(SQL.replace("'10' SECOND", f"'{seconds}' SECOND"), root)
    with open_checkpoint(job, job.statements[0], cores=1, fresh=fresh, keep=keep) as checkpoint:
        return checkpoint


@pytest.fixture
def first(tmp_path: Path) -> Checkpoint:
    """Return a checkpoint with commits up to the last batch, a file in the sink and the plans of Spark."""
    checkpoint = start(tmp_path, 10)
    rows = tmp_path / "out" / "part-first.json"
    rows.parent.mkdir()
    rows.write_text("{}")
    for batch in range(LAST + 1):
        write_manifest(checkpoint, Manifest(batch=batch, sink=(Move(source=tmp_path / "gone", to=rows),)))
        plan_of_spark(checkpoint, batch)
    return checkpoint


@pytest.mark.parametrize("times", [1, 2])
def test_a_fresh_start_that_died_replaces_the_output_also_after_offsets_were_kept(
    first: Checkpoint, tmp_path: Path, times: int
) -> None:
    fresh = start(tmp_path, 10, fresh=True)
    assert read_job_record(fresh).replaces == first.name
    kept = fresh
    for more in range(times):
        kept = start(tmp_path, 15 + more, keep="offsets")
    assert kept not in (first, fresh)
    assert list((tmp_path / "out").glob("*.json"))
    recover(kept, sink=tmp_path / "out")
    assert not list((tmp_path / "out").glob("*.json"))


def test_output_of_a_checkpoint_whose_offsets_were_kept_stays(first: Checkpoint, tmp_path: Path) -> None:
    kept = start(tmp_path, 15, keep="offsets")
    assert (read_job_record(kept).follows, read_job_record(kept).replaces) == (first.name, None)
    recover(kept, sink=tmp_path / "out")
    assert list((tmp_path / "out").glob("*.json"))


def test_offsets_that_are_kept_twice_go_on_at_the_same_batch(first: Checkpoint, tmp_path: Path) -> None:
    assert find_checkpoint(first.root.parent) == first
    kept = start(tmp_path, 15, keep="offsets")
    abandoned = kept.rejects / "j0" / f"{LAST}-0.arrow"
    abandoned.parent.mkdir(parents=True)
    abandoned.write_text("rows that waited")
    again = start(tmp_path, 20, keep="offsets")
    recover(again)
    assert (again.rejects / "j0" / abandoned.name).read_text() == "rows that waited"
    record = read_job_record(again)
    assert (record.first_batch, record.follows) == (LAST + 1, first.name)
    check_offsets(again)
    assert start(tmp_path, 20) == again


@pytest.mark.parametrize("lost", ["", "j1", "j1/0-*-left.arrow", "j1/1-*-left.arrow"])
def test_waiting_rows_are_rejects_of_the_next_checkpoint_and_a_lost_state_is_refused(tmp_path: Path, lost: str) -> None:
    first = {"orders": [order("a", 0), order("b", 1)], "shipments": [shipment("x", 2)]}
    made = run(tmp_path, [first, {"orders": [order("c", 3)]}], final=False)
    plan_of_spark(made.checkpoint, 1)
    waiting = [made.ledger[side]["waiting"] for side in ("left", "right")]
    assert waiting == [3, 1]
    job = job_of("SET 'checkpoint' = 'streams';" + SQL.replace("'10' SECOND", "'15' SECOND"), tmp_path)
    opened = open_checkpoint(job, job.statements[0], cores=1, keep="offsets")
    if not lost:
        with opened as kept:
            reasons = [read_rejects(file).column("reason").to_pylist() for file in list_reject_files(kept)]
        assert [reason for of_file in reasons for reason in of_file] == ["ABANDONED"] * sum(waiting)
        return
    for path in made.checkpoint.state.glob(lost):
        remove_path(path)
    with pytest.raises(StreamError, match="it is missing, and batch 1 lists it") as caught, opened:
        pytest.fail("waiting rows are lost")
    assert caught.value.code == "W2202"
    assert find_checkpoint(made.checkpoint.root.parent) == made.checkpoint
