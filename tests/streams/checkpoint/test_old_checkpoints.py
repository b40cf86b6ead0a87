"""A checkpoint that an earlier version made is opened, upgraded, and goes on.

``tests/data/streams/format1`` was written by the first version, after the second of four batches.  It is never
written again.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from stream_checkpoints import BATCHES, as_set, run, small_plan
from weft.errors import StreamError
from weft.streams.checkpoint.folder import find_checkpoint, read_job_record
from weft.streams.checkpoint.rejects import list_reject_files
from weft.streams.plan.identity import compare_parts, describe_parts
from weft.testing.stream_engine import run_statement

OLD = Path(__file__).parents[2] / "data" / "streams" / "format1"


def test_a_checkpoint_of_the_first_version_goes_on(tmp_path: Path) -> None:
    shutil.copytree(OLD, tmp_path / "old")
    before = find_checkpoint(tmp_path / "old" / "streams" / "status")
    assert before is not None
    assert read_job_record(before).format == 1
    assert compare_parts(read_job_record(before).parts, describe_parts(small_plan())).keeps == "same"
    found, whole = run(tmp_path / "old"), run(tmp_path / "whole")
    assert found.checkpoint == before
    assert as_set(found.rows) == as_set(whole.rows)
    assert [b for b, _ in found.rows] == [b for b, _ in whole.rows]
    assert found.ledger == whole.ledger
    assert found.marks == whole.marks
    # Its rejects are still listed, and nothing of the old layout is left.
    assert len(list_reject_files(found.checkpoint)) == len(list_reject_files(whole.checkpoint))
    assert [p for p in found.checkpoint.state.rglob("*") if p.is_dir()] == [found.checkpoint.join_state(1)]


def test_another_number_of_tasks_goes_on_with_a_checkpoint_of_the_first_version(tmp_path: Path) -> None:
    shutil.copytree(OLD, tmp_path / "old")
    found = run_statement(small_plan(), BATCHES, root=tmp_path / "old", groups=3)
    whole = run(tmp_path / "whole")
    assert as_set(found.rows) == as_set(whole.rows)
    assert found.ledger == whole.ledger


def test_a_group_of_an_earlier_version_that_is_missing_is_an_error(tmp_path: Path) -> None:
    shutil.copytree(OLD, tmp_path / "old")
    (index,) = (tmp_path / "old").rglob("state/j1/1/0/index.json")
    index.unlink()
    with pytest.raises(StreamError, match="the state of 1 groups, and batch 1 wrote 2") as caught:
        run(tmp_path / "old")
    assert caught.value.code == "W2202"
