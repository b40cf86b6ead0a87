"""Two processes on one checkpoint in a store: the older one is cut off, and wakes up while the newer one runs."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

from needed import stop_without
from s3_gateway import BUCKET, Gateway
from store_streams import BATCHES, ORDERS, SQL, count_commits, read_output, wait_for, write_inputs
from weft.io.spark.session import jars_folder
from weft.io.stores.store_path import as_place
from weft.streams.checkpoint import lease
from weft.streams.checkpoint.lease import find_runner

APART = ("unshare", "--uts", "true")
ELSEWHERE = "localhost"  # a name that has an address
# With leases of seconds, so that the test need not wait a minute.
DRIVER = """
import sys
from weft.streams.checkpoint import lease
lease.LASTS, lease.RENEWED = 5.0, 0.5
from weft.cli.main import run_command
sys.exit(run_command(["-C", sys.argv[1], "stream", "run", "job.sql", "--final", "--json"]))
"""


def start(workspace: Path, host: str = "") -> subprocess.Popen[str]:
    """Start the job as a process of its own group, on a machine of another name if one is given."""
    command = [sys.executable, "-c", DRIVER, str(workspace)]
    if host:
        command = [*APART[:-1], "sh", "-c", f"hostname {host} && exec {shlex.join(command)}"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)


@pytest.mark.slow
@pytest.mark.usefixtures("jvm")
def test_the_older_of_two_processes_is_fenced(
    tmp_path: Path, s3_gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not (jars_folder() / "s3").is_dir():
        stop_without("Hadoop's client for S3 is not installed: weft connectors install s3")
    if subprocess.run(APART, capture_output=True, check=False).returncode:
        stop_without("no process can have a host name of its own here: unshare --uts")
    for key, value in s3_gateway.environment.items():
        monkeypatch.setenv(key, value)
    monkeypatch.setattr(lease, "LASTS", 5.0)
    place = f"s3://{BUCKET}/{uuid.uuid4().hex}"
    wanted = write_inputs(place)
    (tmp_path / "job.sql").write_text(SQL.format(place=place))
    (tmp_path / "weft.yml").write_text("weft: 1\nspark: {master: 'local[2]', conf: {spark.driver.memory: 512m}}\n")
    lock = as_place(f"{place}/checkpoint/status/lock")
    older = newer = start(tmp_path, ELSEWHERE)
    try:
        wait_for(older, lambda: count_commits(place) >= 4)
        assert older.poll() is None, older.communicate()
        os.killpg(older.pid, signal.SIGSTOP)
        by = find_runner(lock)
        assert by is not None
        assert by.host == ELSEWHERE
        while find_runner(lock) is not None:  # its lease ends
            time.sleep(0.2)
        before = count_commits(place)
        newer = start(tmp_path)
        wait_for(newer, lambda: count_commits(place) >= before + 2)
        os.killpg(older.pid, signal.SIGCONT)
        stdout, stderr = newer.communicate(timeout=300)
        lost, _ = older.communicate(timeout=120)
    finally:
        for process in (older, newer):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    assert newer.returncode == 0, stdout + stderr
    assert older.returncode != 0
    assert [finding["code"] for finding in json.loads(lost)["diagnostics"]] == ["W2205"], lost
    assert read_output(place) == wanted
    (query,) = json.loads(stdout)["data"]["queries"]
    assert query["batches"] == BATCHES + 1
    assert query["ledger"]["left"]["in"] == BATCHES * ORDERS
