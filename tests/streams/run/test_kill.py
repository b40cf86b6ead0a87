"""Kill -9 where only Spark's own checkpoint can be wrong, then a restart: as a run without the kill, each row once.

Thirty points are tried without a JVM in tests/streams, chance moments with one in test_kills.py.
"""

from __future__ import annotations

import datetime as dt
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kills import TESTS, running
from stream_checkpoints import BATCHES, SQL, as_set, run
from stream_spark import Done, done, job_of
from weft.streams.checkpoint.folder import find_checkpoint
from weft.streams.checkpoint.manifest import sink_files
from weft.streams.run.job import run_job
from weft.streams.spark.memory import write_memory
from weft.testing.stream_engine import StreamResult

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES = "'connector' = 'files', 'path' = '{name}', 'format' = 'json', 'max.files.per.trigger' = 1"
WAIT = 600


def workspace(root: Path) -> Path:
    """Write the job and one file for each batch of each stream."""
    root.mkdir()
    sql = SQL
    plan = job_of(SQL, root).statements[0]
    for source in plan.inputs:
        name = source.stream.name
        write_memory(source.stream, [b[name] for b in BATCHES], root / name)
        sql = sql.replace("'connector' = 'memory'", FILES.format(name=name), 1)
    (root / "job.sql").write_text(sql)
    return root


def killed(root: Path, point: str) -> int:
    """Run the job in a process that ends at a point and return how it ended."""
    words = [str(TESTS / "stream_process.py"), str(root)]
    with running(words, log=root / "log.txt", crash_at=point) as process:
        return process.wait(WAIT)


@pytest.mark.slow
def test_files_that_were_noted_but_not_planned_come_in_the_batch_that_they_were_for(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The process ends after Spark's file sources noted files for a batch and before the batch had its offsets."""
    root = workspace(tmp_path / "job")
    assert killed(root, "stream_kernel:2") == -signal.SIGKILL
    checkpoint = find_checkpoint(root / ".weft" / "streams" / "job" / "status")
    assert checkpoint is not None
    (checkpoint.spark / "offsets" / "1").unlink()
    (checkpoint.spark / "offsets" / ".1.crc").unlink()
    assert (checkpoint.spark / "sources" / "0" / "1.compact").exists()
    assert_as_without_a_kill(finished(spark, root), run(tmp_path / "same"), root)


def assert_as_without_a_kill(found: Done, same: StreamResult, root: Path) -> None:
    assert as_set(found.rows) == as_set(_text(same.rows))
    assert found.ledger == {side: dict(counts) for side, counts in same.ledger.items()}
    shown = {p for p in (root / "out").rglob("*") if p.is_file()}
    assert shown == set(sink_files(found.checkpoint))


def finished(spark: SparkSession, root: Path) -> Done:
    """Run the job of a workspace to its end."""
    return done(spark, run_job(spark, job_of((root / "job.sql").read_text(), root), mode="final"))


def _text(rows: Sequence[tuple[int, Mapping[str, Any]]]) -> list[tuple[int, dict[str, Any]]]:
    """Return rows with times as JSON files have them."""
    return [(batch, {name: _shown(value) for name, value in row.items()}) for batch, row in rows]


def _shown(value: Any) -> Any:
    return value.strftime("%Y-%m-%dT%H:%M:%S.%fZ") if isinstance(value, dt.datetime) else value
