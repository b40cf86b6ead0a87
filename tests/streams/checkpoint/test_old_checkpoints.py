"""A checkpoint that an earlier version made is opened and goes on, as long as its format is the same.

``tests/data/streams/format1`` was written by the first version, after the second of four batches.  It is never
written again: a version that cannot open it has another format, and must say so.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from stream_checkpoints import as_set, run, small_plan
from weft.streams.checkpoint.folder import FORMAT, find_checkpoint, read_job_record
from weft.streams.plan.identity import compare_parts, describe_parts

OLD = Path(__file__).parents[2] / "data" / "streams" / "format1"


def test_a_checkpoint_of_the_first_version_goes_on(tmp_path: Path) -> None:
    shutil.copytree(OLD, tmp_path / "old")
    before = find_checkpoint(tmp_path / "old" / "streams" / "status")
    assert before is not None
    assert read_job_record(before).format == FORMAT == 1
    assert compare_parts(read_job_record(before).parts, describe_parts(small_plan(), groups=2)).keeps == "same"
    found, whole = run(tmp_path / "old"), run(tmp_path / "whole")
    assert found.checkpoint == before
    assert as_set(found.rows) == as_set(whole.rows)
    assert [b for b, _ in found.rows] == [b for b, _ in whole.rows]
    assert found.ledger == whole.ledger
    assert found.marks == whole.marks
