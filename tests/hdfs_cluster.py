"""HDFS for tests: a name node and a data node of Hadoop's own mini cluster, one process, gone at the end.

Its jars come by Maven once and stay in ``~/.cache/weft``.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from needed import stop_without
from s3_gateway import free_port
from weft.streams.run.connectors import fetch_artifacts

VERSION = "3.5.0"
START_SECONDS = 120
_ARTIFACT = ("org.apache.hadoop", "hadoop-client-minicluster", VERSION)
_JAVA = ("java", "-Xmx300m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
_SETTINGS = (
    "dfs.ls.limit=10",  # a page of a listing
    # How long a data node waits before it asks again whether a file is complete.
    "dfs.client.block.write.locateFollowingBlock.initial.delay.ms=20",
)


class NoHdfsError(Exception):
    """No HDFS can run here; the message says what is missing."""


@dataclass(frozen=True)
class Hdfs:
    """The ports of a running name node."""

    port: int
    http_port: int

    @property
    def address(self) -> str:
        return f"hdfs://127.0.0.1:{self.port}"

    @property
    def settings(self) -> dict[str, str]:
        return {"webhdfs": f"http://127.0.0.1:{self.http_port}"}


def hdfs_jars() -> Path:
    """Return the folder of Hadoop's jars, fetched when they are not there."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    place = Path(base, "weft", f"hdfs-{VERSION}")
    if place.is_dir():
        return place
    program = shutil.which("mvn")
    if program is None:
        raise NoHdfsError(f"HDFS needs its jars in {place}, and there is no mvn to fetch them")
    place.parent.mkdir(parents=True, exist_ok=True)
    stage = Path(tempfile.mkdtemp(prefix=".tmp-hdfs-", dir=place.parent))
    try:
        done, output = fetch_artifacts(program, (_ARTIFACT,), stage)
        if not done:
            raise NoHdfsError(f"Maven could not fetch Hadoop's mini cluster: {output[:2000]}")
        stage.chmod(0o755)
        stage.rename(place)
    finally:
        shutil.rmtree(stage, ignore_errors=True)
    return place


@contextmanager
def running_hdfs() -> Iterator[Hdfs]:
    """Yield a fresh HDFS; skip where there is none to start, which in CI is a failure."""
    try:
        if shutil.which("java") is None:
            raise NoHdfsError("HDFS needs java")  # noqa: TRY301  # one place says what CI makes of it
        jars = hdfs_jars()
    except NoHdfsError as cause:
        stop_without(str(cause))
    folder = Path(tempfile.mkdtemp(prefix="weft-hdfs-"))
    log, details, http_port = folder / "log", folder / "details", free_port()
    command = [*_JAVA, "-cp", f"{jars}/*", "org.apache.hadoop.test.MiniDFSClusterManager", "-datanodes", "1", "-format"]
    for setting in (f"hdfs.minidfs.basedir={folder}/data", *_SETTINGS):
        command += ["-D", setting]
    command += ["-httpport", str(http_port), "-writeDetails", str(details)]
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        yield Hdfs(_wait_for(details, process, log), http_port)
    finally:
        process.kill()
        process.wait(30)
        shutil.rmtree(folder, ignore_errors=True)


def _wait_for(details: Path, process: subprocess.Popen[bytes], log: Path) -> int:
    """Return the port of the name node, which writes its details when it and its data node are up."""
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        try:
            return int(json.loads(details.read_text())["namenode_port"])
        except (OSError, ValueError):  # not there, or half written
            time.sleep(0.1)
    return pytest.fail(f"HDFS did not start; its log ends:\n{log.read_text(errors='replace')[-2000:]}", pytrace=False)


if __name__ == "__main__":  # fetches it
    try:
        hdfs_jars()
    except NoHdfsError as problem:
        sys.exit(str(problem))
