"""Rows that took no part are kept with their reason, and nothing is lost: out and rejected are what came in."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from stream_checkpoints import BATCHES, run, small_plan
from weft.errors import StreamError
from weft.streams.checkpoint.folder import Checkpoint, read_job_record, record_change
from weft.streams.checkpoint.manifest import last_manifest
from weft.streams.checkpoint.rejects import list_reject_files, read_last_rejects, read_rejects
from weft.streams.checkpoint.status import plan_facts


@pytest.fixture
def checkpoint(tmp_path: Path) -> Checkpoint:
    found = run(tmp_path, final=False).checkpoint
    record_change(found, read_job_record(found).parts, plan_facts(small_plan()), "all")
    return found


def test_every_row_has_its_reason(checkpoint: Checkpoint) -> None:
    assert Counter((r.side, r.reason) for r in read_last_rejects(checkpoint, 99)) == {
        ("orders", "NO_EVENT_TIME"): 1,
        ("orders", "LATE"): 1,
        ("orders", "MALFORMED"): 1,
    }


def test_a_rejected_row_says_what_it_was_judged_by(checkpoint: Checkpoint) -> None:
    (late,) = (r for r in read_last_rejects(checkpoint, 99) if r.reason == "LATE")
    assert late.to_dict() == {
        "side": "orders",
        "reason": "LATE",
        "event_time": "2026-01-15T10:00:03.000Z",
        "watermark": "2026-01-15T10:00:15.000Z",
        "batch": 2,
        "matched": False,
        "row": '{"id": "late", "total": 1}',
    }


def test_a_row_that_cannot_be_read_keeps_its_text(checkpoint: Checkpoint) -> None:
    (found,) = (r for r in read_last_rejects(checkpoint, 99) if r.reason == "MALFORMED")
    assert (found.raw, found.event_time, found.to_dict()["row"]) == ("not a row", None, "not a row")


def test_the_newest_come_first(checkpoint: Checkpoint) -> None:
    assert [r.batch for r in read_last_rejects(checkpoint, 99)] == [2, 2, 0]
    assert [r.batch for r in read_last_rejects(checkpoint, 1)] == [2]


def test_rejects_of_a_batch_that_has_not_happened_are_not_shown(checkpoint: Checkpoint) -> None:
    (file, *_) = list_reject_files(checkpoint)
    (file.path.parent / "9-j1-0.parquet").write_bytes(file.path.read_bytes())
    assert {f.batch for f in list_reject_files(checkpoint)} == {0, 2}


def test_a_damaged_file_is_reported(checkpoint: Checkpoint) -> None:
    (file, *_) = list_reject_files(checkpoint)
    file.path.write_bytes(b"PAR1 and nothing more")
    with pytest.raises(StreamError) as caught:
        read_rejects(file)
    assert caught.value.code == "W2202"


def test_a_value_that_changed_on_the_disk_is_reported(checkpoint: Checkpoint) -> None:
    file = next(f for f in list_reject_files(checkpoint) if b"late" in f.path.read_bytes())
    content = file.path.read_bytes()
    file.path.write_bytes(content.replace(b"late", b"lace"))
    with pytest.raises(StreamError) as caught:
        read_rejects(file)
    assert caught.value.code == "W2202"


def test_nothing_is_lost(checkpoint: Checkpoint) -> None:
    manifest = last_manifest(checkpoint)
    assert manifest is not None
    came = sum(len(batch["orders"]) for batch in BATCHES)
    left = manifest.ledger["left"]
    assert left["in"] == came
    assert left["late"] + left["rejected"] == len(read_last_rejects(checkpoint, 99))
    assert left["matched"] + left["unmatched"] + left["waiting"] + left["late"] + left["rejected"] == came


def test_no_more_rows_are_shown_than_asked_for_from_all_files_together(tmp_path: Path) -> None:
    batches = [{"orders": ["x", "y", "z"], "shipments": []}, {"orders": ["w"], "shipments": []}]
    found = run(tmp_path, batches, final=False).checkpoint
    assert [r.batch for r in read_last_rejects(found, 2)] == [1, 0]
    assert [r.batch for r in read_last_rejects(found, 3)] == [1, 0, 0]
