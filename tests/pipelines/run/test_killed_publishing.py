"""Real runs that are killed: the next one leaves every row exactly once, and the store says what happened."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import run_process
from command_line import weft
from engine_data import sample_workspace
from engine_runs import opened, ran, rows
from weft.io.spark.session import Session
from weft.pipelines.run.publish import recover
from weft.pipelines.run.resume import resume

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OUT = "out/processed_gl/period=2026-01"
SETTINGS = """\
weft: 1
default_resolver: files
spark: {master: "local[1]", conf: {spark.driver.memory: 512m, spark.sql.shuffle.partitions: "1"}}
"""


@pytest.mark.parametrize(
    ("point", "status"),
    [("operation", "failed"), ("marked", "completed"), ("after_commit", "completed")],
)
def test_a_run_that_was_killed_is_recovered(tmp_path: Path, spark: SparkSession, point: str, status: str) -> None:
    root = sample_workspace(tmp_path, {"weft.yml": SETTINGS})
    done = subprocess.run(
        [sys.executable, run_process.__file__, str(root)],
        env=os.environ | {"WEFT_CRASH_AT": point, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    with opened(root) as store:
        found = recover(store, root)
        assert [r.outcome for r in found] == ([] if point == "after_commit" else [status])
        run = store.run("LAST")
        shown = weft("runs", "show", "LAST", "--json", root=root).data
        assert (run.status, shown["status"], shown["run_id"]) == (status, status, run.id)
        assert (root / OUT).exists() == (status == "completed")
        if status == "failed":
            again = resume(run.id, root=root, store=store, session=Session(spark))
            assert (again.status, again.attempt) == ("completed", 2), again.diagnostics
        assert len(rows(spark, root / OUT)) == 10
        assert ran(root, store, spark).ok
        assert len(rows(spark, root / OUT)) == 10
        assert [d.version for d in store.dataset_versions("gl_usd")] == [1, 2]
