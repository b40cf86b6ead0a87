"""A Spark cluster of its own on this machine: a standalone master and two workers, each a process."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

WORKERS = 2
START_SECONDS = 120
_MASTER = re.compile(r"Starting Spark master at (spark://\S+)")
_JOINED = re.compile(r"Registering worker ")


class NotStartedError(AssertionError):
    """A process of the cluster that did not come up; the message holds the end of its log."""


@dataclass
class Cluster:
    """A cluster: the ``spark://`` address of its master, and its workers."""

    address: str
    workers: list[subprocess.Popen[bytes]]


@contextmanager
def running_cluster(folder: Path) -> Iterator[str]:
    """Give the ``spark://`` address of a cluster that lives as long as the context."""
    with started_cluster(folder) as cluster:
        yield cluster.address


@contextmanager
def started_cluster(folder: Path, *, hidden: Sequence[Path] = ()) -> Iterator[Cluster]:
    """Give a cluster whose workers do not see some folders: each has an empty disk of its own there."""
    with ExitStack() as stack:
        log = folder / "master.log"
        common = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        master = stack.enter_context(_process("master.Master", common, log))
        address = _found(_MASTER, log, master)[0]
        workers = []
        for number in range(WORKERS):
            words = [*common, "--cores", "1", "--memory", "1g", "--work-dir", str(folder / f"work{number}"), address]
            started = _process("worker.Worker", words, folder / f"worker{number}.log", hidden)
            workers.append(stack.enter_context(started))
        _found(_JOINED, log, master, WORKERS)
        yield Cluster(address, workers)


@cache
def apart() -> tuple[str, ...]:
    """Return the command before one that gets disks of its own; empty if no process can have them.

    Root may do that, and others where the system lets them be root in a namespace of their own.
    """
    for words in (("unshare", "--mount"), ("unshare", "--map-root-user", "--mount")):
        if (
            shutil.which("unshare")
            and not subprocess.run([*words, "true"], capture_output=True, check=False).returncode
        ):
            return words
    return ()


def _apart(hidden: Sequence[Path], command: Sequence[str]) -> list[str]:
    """Return a command that runs with an empty disk over each hidden folder."""
    if not hidden:
        return [*command]
    mounts = "".join(f"mount -t tmpfs none {shlex.quote(str(path))} && " for path in hidden)
    return [*apart(), "sh", "-c", f"{mounts}exec {shlex.join(command)}"]


@contextmanager
def _process(
    name: str, words: Sequence[str], log: Path, hidden: Sequence[Path] = ()
) -> Iterator[subprocess.Popen[bytes]]:
    import pyspark

    home = Path(pyspark.__file__).parent
    command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *words]
    with log.open("wb") as out:
        process = subprocess.Popen(
            _apart(hidden, command),
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
