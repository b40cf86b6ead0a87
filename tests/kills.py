"""Processes that a test kills: each in a session of its own, so that Python and its JVM end together.

``--kills N`` says how many times the tests of streams, and those of runs, kill a process; ``--kill-seed S``
chooses the moments.  Both are in the head of a test report, so that a failure can be repeated.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from weft.core.crash import VARIABLE

TESTS = Path(__file__).parent
FAST_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""A JVM that is killed within seconds compiles nothing twice."""


@contextmanager
def running(
    words: Sequence[str], *, log: Path, crash_at: str = "", env: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Start Python with some words in a process group of its own; nothing of the group is left afterwards.

    `crash_at` is a point of `weft.core.crash` at which Python ends itself, such as ``stream_manifest:2``.
    What the processes print is added to `log`.
    """
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join((str(TESTS), str(TESTS.parent / "src"))),
        "SPARK_SUBMIT_OPTS": FAST_JVM,
        VARIABLE: crash_at,
        **(env or {}),
    }
    with log.open("ab") as out:
        process = subprocess.Popen(
            [sys.executable, *words],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        kill_group(process)


def kill_group(process: subprocess.Popen[bytes]) -> int:
    """Send SIGKILL to a process and to all that it started in its group; return how the process ended.

    The group outlives its leader: a JVM whose Python killed itself is killed here too.
    """
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    return process.wait()
