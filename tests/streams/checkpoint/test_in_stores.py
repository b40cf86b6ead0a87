"""A checkpoint and its sink in a store: the same rows as on a disk, after any crash, and with any number of tasks."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any, cast

import pytest

from s3_gateway import BUCKET, Gateway
from stream_checkpoints import BATCHES, as_set, run, small_plan
from weft.core.crash import CRASH
from weft.io.stores.store_path import StorePath, as_place
from weft.streams.checkpoint.rejects import list_reject_files, read_rejects
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
