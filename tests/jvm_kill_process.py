"""A command whose JVM is killed: ``python jvm_kill_process.py POINT SECONDS WORDS...``.

The JVM gets signal 9 when Python reaches a point of `weft.core.crash`, or some seconds later.
"""

from __future__ import annotations

import os
import signal
import sys
from threading import Timer
from typing import Any

from weft.core import crash


def kill_jvm() -> None:
    from pyspark import SparkContext

    gateway: Any = SparkContext._gateway
    os.kill(gateway.proc.pid, signal.SIGKILL)
    gateway.proc.wait()


def main(point: str, seconds: float, words: list[str]) -> int:
    def crash_point(name: str) -> None:
        if name == point:
            timer = Timer(seconds, kill_jvm)
            timer.start()
            if not seconds:
                timer.join()

    # Modules of a run take the function by name when they are imported, which the command below does first.
    crash.crash_point = crash_point
    from weft.cli.main import run_command

    return run_command(words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], float(sys.argv[2]), sys.argv[3:]))
