"""A stream join on machines that share no disk: inputs, checkpoint and sink are in a store."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from cluster import Cluster, apart, started_cluster
from needed import stop_without
from s3_gateway import BUCKET, Gateway
from store_streams import BATCHES, ORDERS, SQL, count_commits, read_output, wait_for, write_inputs
from weft.io.spark.session import jars_folder


def kill_executor(cluster: Cluster, worker: int) -> None:
    """Kill the executor of a worker, which starts another one."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                is_executor = b"CoarseGrainedExecutorBackend" in (folder / "cmdline").read_bytes()
                group = os.getpgid(int(folder.name))
            except (OSError, ProcessLookupError):
                continue
            if is_executor and group == cluster.workers[worker].pid:
                os.kill(int(folder.name), signal.SIGKILL)
                return
    pytest.fail("there is no executor to kill")


@pytest.mark.slow
@pytest.mark.usefixtures("jvm")
def test_machines_without_a_shared_disk_lose_and_double_nothing(
    tmp_path: Path, s3_gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An executor is killed, then a worker with its executor."""
    if not (jars_folder() / "s3").is_dir():
        stop_without("Hadoop's client for S3 is not installed: weft connectors install s3")
    if not apart():
        stop_without("no process can have disks of its own here: unshare --mount")
    for key, value in s3_gateway.environment.items():
        monkeypatch.setenv(key, value)
    monkeypatch.setenv("PATH", os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])))
    place = f"s3://{BUCKET}/{uuid.uuid4().hex}"
    wanted = write_inputs(place)
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "job.sql").write_text(SQL.format(place=place))
    with started_cluster(tmp_path, hidden=[workspace]) as cluster:
        (workspace / "weft.yml").write_text(
            f"weft: 1\nspark:\n  master: {cluster.address}\n"
            "  conf: {spark.executor.memory: 512m, spark.driver.host: 127.0.0.1}\n"
        )
        for worker in cluster.workers:
            seen = Path(f"/proc/{worker.pid}/root{workspace}")
            assert list(seen.iterdir()) == []
        command = [sys.executable, "-m", "weft", "-C", str(workspace), "stream", "run", "job.sql", "--final", "--json"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            wait_for(process, lambda: count_commits(place) >= 4)
            kill_executor(cluster, 0)
            wait_for(process, lambda: count_commits(place) >= 10)
            os.killpg(cluster.workers[1].pid, signal.SIGKILL)
            stdout, stderr = process.communicate(timeout=600)
        shown = subprocess.run(
            [*command[:5], "stream", "status", "job.sql"], capture_output=True, text=True, check=True
        )
    assert process.returncode == 0, stdout + stderr
    assert "sealed" in shown.stdout
    assert place in shown.stdout
    assert read_output(place) == wanted
    (query,) = json.loads(stdout)["data"]["queries"]
    assert query["batches"] == BATCHES + 1
    left = query["ledger"]["left"]
    assert (left["in"], left["waiting"], left["matched"]) == (BATCHES * ORDERS, 0, BATCHES * ORDERS * 2 // 3)
