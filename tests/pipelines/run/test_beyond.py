"""Beyond one machine: the same project on a cluster and on a Connect server gives the same rows and ids."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cluster import running_cluster
from command_line import weft
from engine_data import CONVERT, WRITE, project_text, sample_workspace
from weft.io.spark.session import Session
from weft.pipelines.run.progress import Silent, watched
from weft.pipelines.spark.counts import OperationCounts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SRC = Path(__file__).parents[3] / "src"
PROJECT = project_text(CONVERT + WRITE.replace("columns: [", "columns: [_row_id, "))
RUN = ("run", "fx_reporting", "-p", "2026-01", "--json")
DOCTOR_AND_RUN = """
import contextlib, pathlib, sys
from weft.cli.main import run_command
root, *words = sys.argv[1:]
with (pathlib.Path(root) / "doctor.txt").open("w") as file, contextlib.redirect_stdout(file):
    run_command(["-C", root, "doctor"])
    run_command(["-C", root, "doctor", "--cluster"])
sys.exit(run_command(["-C", root, *words]))
"""


def workspace(folder: Path, spark_settings: str = "") -> Path:
    settings = f"weft: 1\ndefault_resolver: files\n{spark_settings}"
    return sample_workspace(folder, weft=settings, projects__fx_reporting=PROJECT)


def written(root: Path, spark: SparkSession) -> list[tuple[Any, ...]]:
    rows = spark.read.parquet(str(root / "out" / "processed_gl" / "period=2026-01")).collect()
    return sorted(tuple(row) for row in rows)


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> list[tuple[Any, ...]]:
    root = workspace(tmp_path_factory.mktemp("here"))
    ran = weft(*RUN, root=root, spark=spark)
    assert ran.code == 0, ran.out
    rows = written(root, spark)
    assert len({row[0] for row in rows}) == 10
    return rows


def counts(data: Any) -> Any:
    return [{key: op[key] for key in ("seq", "rows_in", "rows_out", "rows_changed", "joins")} for op in data]


def test_a_connect_server_gives_the_same_rows(
    tmp_path: Path, here: list[tuple[Any, ...]], spark: SparkSession, connect_server: str
) -> None:
    root = workspace(tmp_path, f"spark: {{remote: '{connect_server}'}}\n")
    ran = weft(*RUN, root=root)
    assert ran.code == 0, ran.out
    assert [op["rows_out"] for op in ran.data["operations"]] == [10, 10]
    assert written(root, spark) == here


class Hearing(Silent):
    """Records the progress of operations."""

    def __init__(self) -> None:
        self.reported: list[float] = []

    def operation(self, seq: int, fraction: float, counts: OperationCounts | None) -> None:
        assert (seq, counts) == (10, None)
        self.reported.append(fraction)


def test_a_connect_server_tells_how_far_it_is_and_stops_when_the_run_is_lost(connect: SparkSession) -> None:
    hearing, session = Hearing(), Session(connect)
    slow = connect.sql("SELECT sum(hash(a.id, b.id)) FROM range(0, 100000, 1, 64) a, range(100000) b")
    with (
        pytest.raises(Exception, match=r"OPERATION_CANCELED|cancel"),
        session.tagged("beyond"),
        watched(session, "beyond", [10], hearing, lambda: max(hearing.reported) > 0),
    ):
        slow.collect()
    assert hearing.reported[0] == 0.0
    assert hearing.reported == sorted(hearing.reported)
    assert 0 < hearing.reported[-1] < 1


def test_a_setting_that_a_server_does_not_take_is_reported(tmp_path: Path, connect_server: str) -> None:
    root = workspace(tmp_path, f"spark: {{remote: '{connect_server}', conf: {{spark.executor.memory: 1g}}}}\n")
    ran = weft(*RUN, root=root)
    assert (ran.code, ran.codes) == (1, ["W1808"])
    assert "rejects the setting spark.executor.memory = 1g" in ran.document["diagnostics"][0]["message"]


@pytest.mark.slow
def test_a_cluster_gives_the_same_rows(tmp_path: Path, here: list[tuple[Any, ...]], spark: SparkSession) -> None:
    with running_cluster(tmp_path) as master:
        conf = (
            "spark.cores.max: '2'",
            "spark.executor.memory: 512m",
            "spark.driver.host: 127.0.0.1",
            "spark.driver.bindAddress: 127.0.0.1",
            "spark.sql.shuffle.partitions: '3'",
            f"spark.local.dir: {tmp_path / 'local'}",
        )
        root = workspace(tmp_path, f"spark: {{master: '{master}', conf: {{{', '.join(conf)}}}}}\n")
        # A process of its own: this one has a session of this machine.
        ran = subprocess.run(
            [sys.executable, "-c", DOCTOR_AND_RUN, str(root), *RUN],
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
            env=os.environ | {"PYTHONPATH": str(SRC)},
        )
    assert ran.returncode == 0, ran.stdout + ran.stderr[-3000:]
    checks = (root / "doctor.txt").read_text()
    assert f"{master} is available" in checks
    assert re.search(rf"ok  workers +Python {re.escape(platform.python_version())} with numpy", checks), checks
    # Both workers are of this machine, and each is an executor with a folder of its own.
    asked = re.findall(r"ok  worker +\S+ \(executor (\d)\): Python ", checks)
    assert sorted(asked) == ["0", "1"], checks
    assert f"{root / 'out'} is the same folder on all workers" in checks
    joins = counts(json.loads(ran.stdout)["data"]["operations"])[0]["joins"]
    assert joins == [{"alias": "fx", "matched": 10, "unmatched": 0, "multiple": 0}]
    assert written(root, spark) == here


def test_the_doctor_asks_a_worker_of_a_server_for_its_packages(tmp_path: Path, connect_server: str) -> None:
    root = workspace(tmp_path, f"spark: {{remote: '{connect_server}'}}\n")
    ran = weft("doctor", "--json", root=root)
    asked = {check["name"]: check for check in ran.data["checks"]}["workers"]
    assert asked["ok"] is True
    assert f"Python {platform.python_version()} with numpy" in asked["found"]


def test_a_server_that_is_not_there_is_reported(tmp_path: Path) -> None:
    root = workspace(tmp_path, "spark: {remote: 'sc://127.0.0.1:1'}\n")
    ran = weft("doctor", "--json", root=root)
    assert (ran.code, ran.data["checks"][-1]["ok"]) == (1, False)
