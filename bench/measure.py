"""What a run costs besides time: memory of its processes, and what Spark's tasks moved and spilled."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PROC = Path("/proc")
PAGE = os.sysconf("SC_PAGE_SIZE")
EVERY = 0.25
"""Seconds between two looks at the memory."""


def total_memory() -> int:
    """Return the bytes of memory of the machine."""
    return os.sysconf("SC_PHYS_PAGES") * PAGE


def members(session: int) -> Iterator[int]:
    """Yield the processes of a session: an engine's process and all it started."""
    for entry in PROC.iterdir() if PROC.exists() else ():
        if entry.name.isdigit():
            try:
                # The name in parentheses may hold anything; what follows it is numbers.
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it ended while we looked
                continue
            if int(fields[3]) == session:
                yield int(entry.name)


def is_paused(pid: int) -> bool:
    """Whether somebody stopped the process (SIGSTOP), to go on later."""
    try:
        return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] == "T"
    except OSError:
        return False


def resident(pid: int) -> int:
    """Return the bytes of a process that are in memory, shared ones included."""
    try:
        return int((PROC / str(pid) / "statm").read_text().split()[1]) * PAGE
    except (OSError, IndexError):
        return 0


def _is_python_worker(pid: int) -> bool:
    try:
        return b"pyspark.daemon" in (PROC / str(pid) / "cmdline").read_bytes()
    except OSError:
        return False


def end_session(session: int) -> None:
    """Kill every process of a session that is left."""
    for pid in list(members(session)):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


class MemoryWatch(threading.Thread):
    """Measures the memory of a session of processes until it is stopped.

    `peak` is the most that all processes held at one time, `worker` the most that one Python worker of
    Spark held.  A session that takes more than `most` bytes is ended, so that the machine lives.
    """

    def __init__(self, session: int, most: int) -> None:
        super().__init__(daemon=True)
        self.session, self.most = session, most
        self.peak = self.worker = 0
        self.over = False
        self._done = threading.Event()

    def run(self) -> None:
        """Look every quarter of a second."""
        while not self._done.wait(EVERY):
            self.look()

    def look(self) -> None:
        """Look once."""
        held = {pid: resident(pid) for pid in members(self.session)}
        self.peak = max(self.peak, sum(held.values()))
        workers = [size for pid, size in held.items() if size > self.worker and _is_python_worker(pid)]
        self.worker = max([self.worker, *workers])
        if sum(held.values()) > self.most:
            self.over = True
            end_session(self.session)

    def reset(self) -> None:
        """Forget what was seen so far."""
        self.peak = self.worker = 0

    def stop(self) -> None:
        """Look no more."""
        self._done.set()
        self.join()


def spark_costs(folder: Path) -> dict[str, dict[str, int]]:
    """Read the event log of a session and return what the jobs of each run moved, by the name of the run."""
    run_of_stage: dict[int, str] = {}
    costs: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for file in sorted(folder.iterdir()):
        with file.open(encoding="utf-8") as lines:
            for line in lines:
                event = json.loads(line)
                if event["Event"] == "SparkListenerJobStart":
                    run = event.get("Properties", {}).get("spark.jobGroup.id", "")
                    run_of_stage.update(dict.fromkeys(event["Stage IDs"], run))
                    costs[run]["jobs"] += 1
                elif event["Event"] == "SparkListenerTaskEnd" and "Task Metrics" in event:
                    _add_task(costs[run_of_stage.get(event["Stage ID"], "")], event["Task Metrics"])
    return {run: dict(found) for run, found in costs.items()}


def _add_task(cost: dict[str, int], metrics: dict[str, Any]) -> None:
    read, written = metrics["Shuffle Read Metrics"], metrics["Shuffle Write Metrics"]
    cost["tasks"] += 1
    cost["shuffle_read_bytes"] += read["Remote Bytes Read"] + read["Local Bytes Read"]
    cost["shuffle_write_bytes"] += written["Shuffle Bytes Written"]
    cost["shuffle_write_records"] += written["Shuffle Records Written"]
    cost["spill_disk_bytes"] += metrics["Disk Bytes Spilled"]
    cost["spill_memory_bytes"] += metrics["Memory Bytes Spilled"]
    peak = metrics.get("Peak Execution Memory", 0)
    cost["peak_task_bytes"] = max(cost["peak_task_bytes"], peak)
