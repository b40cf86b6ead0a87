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
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from weft.core.crash import VARIABLE

TESTS = Path(__file__).parent


class Leader(subprocess.Popen[bytes]):
    """The first process of a group, not reaped before its group has ended.

    Until then its number belongs to nobody else, so a signal to the group can never hit a stranger.
    """

    def poll(self) -> int | None:
        """Return the exit code of a process that has ended, None while it runs."""
        if self.returncode is not None:
            return self.returncode
        ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if ended is None:
            return None
        return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end of the process, and leave it to `end_group` to reap it."""
        until = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if until is not None and time.monotonic() >= until:
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
            time.sleep(0.02)
        return code

    def end_group(self) -> int:
        """Kill what is left of the group, the first process included, and return how that one ended."""
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            super().wait()
        return self.returncode


@contextmanager
def running(
    words: Sequence[str], *, log: Path, crash_at: str = "", env: Mapping[str, str] | None = None
) -> Iterator[Leader]:
    """Start Python with some words in a process group of its own; nothing of the group is left afterwards.

    `crash_at` is a point of `weft.core.crash` at which Python ends itself, such as ``stream_manifest:2``.
    What the processes print is added to `log`.
    """
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join((str(TESTS), str(TESTS.parent / "src"))),
        VARIABLE: crash_at,
        **(env or {}),
    }
    with log.open("ab") as out:
        process = Leader(
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
        process.end_group()
