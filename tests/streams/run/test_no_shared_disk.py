"""A stream join on machines that share no disk: inputs, checkpoint and sink are in a store."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from cluster import Cluster, can_hide_folders, started_cluster
from needed import stop_without
from s3_gateway import BUCKET, Gateway
from weft.io.spark.session import jars_folder
from weft.io.stores import open_store

BATCHES, ORDERS = 24, 12
SQL = """
SET 'checkpoint' = '{place}/checkpoint';
CREATE STREAM orders (id STRING, t TIMESTAMP) WITH ('path' = '{place}/orders', 'format' = 'json',
  'event.time.field' = 't', 'watermark.max_out_of_orderness' = '5s', 'max.files.per.trigger' = 1);
CREATE STREAM shipments (id STRING, t TIMESTAMP) WITH ('path' = '{place}/shipments', 'format' = 'json',
  'event.time.field' = 't', 'watermark.max_out_of_orderness' = '5s', 'max.files.per.trigger' = 1);
CREATE STREAM status WITH ('path' = '{place}/out', 'format' = 'json') AS
  SELECT o.id, s.t AS shipped FROM orders o LEFT JOIN shipments s
    ON o.id = s.id AND s.t BETWEEN o.t AND o.t + INTERVAL '90' SECOND
"""


def write_inputs(place: str) -> Counter[tuple[str, str | None]]:
    """Write the files of all batches, and return the rows that the join gives; every third order is not shipped."""
    store = open_store(place)
    wanted: Counter[tuple[str, str | None]] = Counter()
    for batch in range(BATCHES):
        orders, shipments = [], []
        for number in range(ORDERS):
            name, second = f"{batch}-{number}", 2 * number
            orders.append({"id": name, "t": f"2026-01-15T10:{batch:02}:{second:02}Z"})
            shipped = None
            if number % 3:
                # Some are shipped in the next minute, which the next batch reads.
                minute = batch + (number % 2)
                shipped = f"2026-01-15T10:{minute:02}:{second + 1:02}Z"
                shipments.append({"id": name, "t": shipped})
            wanted[name, shipped and shipped.replace("Z", ".000000Z")] += 1
        for folder, rows in (("orders", orders), ("shipments", shipments)):
            store.put(f"{folder}/{batch:03}.json", "".join(f"{json.dumps(row)}\n" for row in rows).encode())
        time.sleep(0.02)  # Spark reads files in the order of their times
    return wanted


def read_output(place: str) -> Counter[tuple[str, str | None]]:
    store = open_store(f"{place}/out")
    lines = [line for file in store.list("part-") for line in store.read(file.name).decode().splitlines()]
    rows = map(json.loads, lines)
    return Counter((row["id"], row["shipped"]) for row in rows)


def count_commits(place: str) -> int:
    return sum(
        "/commits/" in file.name and "/spark/" not in file.name for file in open_store(place).list("checkpoint/")
    )


def wait_for(process: subprocess.Popen[str], reached: Callable[[], bool]) -> None:
    """Wait until something is so, or the process has ended."""
    while process.poll() is None and not reached():
        time.sleep(0.05)


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
    if not can_hide_folders():
        stop_without("only root can give a process disks of its own: unshare --mount")
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
