"""A Spark cluster of its own on this machine: a standalone master and two workers, each a process."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

WORKERS = 2
START_SECONDS = 120
_MASTER = re.compile(r"Starting Spark master at (spark://\S+)")
_JOINED = re.compile(r"Registering worker ")


class NotStartedError(AssertionError):
    """A process of the cluster that did not come up; the message holds the end of its log."""


@contextmanager
def running_cluster(folder: Path) -> Iterator[str]:
    """Give the ``spark://`` address of a cluster that lives as long as the context."""
    with ExitStack() as stack:
        log = folder / "master.log"
        common = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        master = stack.enter_context(_process("master.Master", common, log))
        address = _found(_MASTER, log, master)[0]
        for number in range(WORKERS):
            words = [*common, "--cores", "1", "--memory", "1g", "--work-dir", str(folder / f"work{number}")]
            stack.enter_context(_process("worker.Worker", [*words, address], folder / f"worker{number}.log"))
        _found(_JOINED, log, master, WORKERS)
        yield address


@contextmanager
def _process(name: str, words: Sequence[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    import pyspark

    home = Path(pyspark.__file__).parent
    with log.open("wb") as out:
        process = subprocess.Popen(
            [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *words],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env=os.environ | {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "256m"},
            start_new_session=True,
        )
    try:
        yield process
    finally:
        _stop(process)


def _found(mark: re.Pattern[str], log: Path, process: subprocess.Popen[bytes], times: int = 1) -> list[str]:
    """Wait until a log has a mark so many times; return what it marks."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        found: list[str] = mark.findall(log.read_text(errors="replace"))
        if len(found) >= times:
            return found
        time.sleep(0.1)
    last = "\n".join(log.read_text(errors="replace").splitlines()[-30:])
    raise NotStartedError(f"{log.name} never says {mark.pattern!r}; it ends:\n{last}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End a process and those it started: executors are in its session."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is None:
            os.killpg(process.pid, sign)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            continue
        break
