"""Processes that tests kill: the first of a group keeps its number until the group has ended."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from kills import running

LEADER = "import subprocess, sys; print(subprocess.Popen(['sleep', '60']).pid, flush=True); sys.exit(3)"


def wait_for_end(pid: int) -> None:
    deadline = time.monotonic() + 30
    while Path(f"/proc/{pid}/stat").exists() and " Z " not in Path(f"/proc/{pid}/stat").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_the_group_is_killed_after_its_first_process_has_ended(tmp_path: Path) -> None:
    with running(("-c", LEADER), log=tmp_path / "log") as process:
        assert process.wait(60) == 3
        assert process.poll() == 3
        # It is a zombie: nobody else can be given its number, which is the number of the group.
        os.kill(process.pid, 0)
        child = int((tmp_path / "log").read_text())
        assert os.getpgid(child) == process.pid
        assert process.end_group() == 3
        assert process.wait(0) == process.end_group() == 3  # a second time no signal is sent
    wait_for_end(child)
    with pytest.raises(ProcessLookupError):
        os.kill(process.pid, 0)


def test_a_process_that_runs_is_waited_for_and_killed(tmp_path: Path) -> None:
    with running(("-c", "import time; time.sleep(60)"), log=tmp_path / "log") as process:
        assert process.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.05)
        assert process.end_group() == -signal.SIGKILL
