"""Processes of this machine: which one a number means, and whether it still runs.

The system gives numbers of ended processes to new ones.  A process is therefore known by its number and
the moment it began, which Linux counts from the start of the machine: the start is part of it, so that a
process before a reboot, or on another machine, is never taken for one of this machine.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

_ENDED = ("Z", "X")
_SINCE = "/"
_BOOT = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class Process:
    """A process by its number and its beginning, as `began` tells it."""

    pid: int
    began: str

    @property
    def runs(self) -> bool:
        """Whether this very process still runs."""
        now = began(self.pid)
        # Files of earlier versions have the moment without the start of the machine.
        return bool(self.began) and self.began in (now, now.rpartition(_SINCE)[2])


def this_process() -> Process:
    """Return the process that asks.

    >>> this_process().runs
    True
    """
    return process(os.getpid())


def process(pid: int) -> Process:
    """Return the process that has a number now; one that is gone has no beginning.

    >>> process(2**22 + 1).runs
    False
    """
    return Process(pid, began(pid))


def began(pid: int) -> str:
    """Return when a process began, in the system's own words; empty when there is none or it has ended."""
    if pid <= 0:
        return ""
    if not Path("/proc/self/stat").exists():
        return _told_by_ps(pid)
    try:
        told = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    # The name is in brackets and may hold anything; the fields behind it are numbers.
    fields = told.rpartition(")")[2].split()
    return "" if fields[0] in _ENDED else _since_boot(fields[19])


def _since_boot(ticks: str) -> str:
    try:
        return f"{_BOOT.read_text(encoding='ascii').strip()[:8]}{_SINCE}{ticks}"
    except OSError:
        return ticks


def _told_by_ps(pid: int) -> str:
    program = shutil.which("ps")
    if program is None:
        return ""
    told = subprocess.run(  # noqa: S603  # the system's own program, a number as its argument
        [program, "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    state, _, start = told.stdout.strip().partition(" ")
    return "" if not state or state[0] in _ENDED else start.strip()
