"""Starts several supervisors of one job at the same moment, many times; run as a process of its own.

Each try prints who ran, who was refused with which code, and what the files of the job say.  The supervisors
are real processes, forked so that a try costs no start of Python; the job is a shell that ends when asked.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from weft.errors import StreamError
from weft.streams.checkpoint.status import read_job_status
from weft.streams.checkpoint.supervisor import SupervisorFiles, read_record
from weft.streams.run.supervise import Environment, SpawnedProcess, stop_job, supervise

REFUSED = 8
CONTENDERS = 4
WORLD = Environment(sleep=lambda _seconds: time.sleep(0.01))
_SECONDS = 20.0


def contend(files: SupervisorFiles, gate: int, number: int) -> int:
    """Supervise the job when the gate opens; return the exit code."""
    os.read(gate, 1)

    def start() -> SpawnedProcess:
        (files.job / f"life-{number}").touch()
        script = f"until [ -e '{files.stop}' ]; do sleep 0.01; done"
        return SpawnedProcess(os.posix_spawn("/bin/sh", ["/bin/sh", "-c", script], os.environ))

    try:
        supervise(files, f"job-{number}", start, WORLD)
    except StreamError as refused:
        (files.job / f"code-{number}").write_text(refused.code)
        return REFUSED
    return 0


def race(folder: Path) -> dict[str, Any]:
    """Return what one try gave."""
    files = SupervisorFiles(folder)
    folder.mkdir(parents=True)
    gate, opening = os.pipe()
    pids = []
    for number in range(CONTENDERS):
        pid = os.fork()
        if pid == 0:
            os.close(opening)
            os._exit(contend(files, gate, number))
        pids.append(pid)
    os.close(gate)
    os.close(opening)
    ended = _wait(pids, CONTENDERS - 1)
    until = time.monotonic() + _SECONDS
    while (record := read_record(files)) is None or record.state == "starting":
        assert time.monotonic() < until, "nobody runs the job"
        time.sleep(0.002)
    reported = read_job_status("job", folder)
    stop_job(files, "job", timeout=_SECONDS, world=WORLD)
    ended |= _wait([pid for pid in pids if pid not in ended], CONTENDERS - len(ended))
    return {
        "winners": [number for number, pid in enumerate(pids) if ended.get(pid) == 0],
        "lives": sorted(int(p.name.rpartition("-")[2]) for p in folder.glob("life-*")),
        "codes": sorted(p.read_text() for p in folder.glob("code-*")),
        "recorded": [record.job, pids.index(record.pid)],
        "status": [reported.state, pids.index(reported.supervisor) if reported.supervisor in pids else None],
        "after": read_job_status("job", folder).state,
    }


def _wait(pids: list[int], count: int) -> dict[int, int]:
    """Wait until some processes have ended and return their exit codes."""
    ended: dict[int, int] = {}
    until = time.monotonic() + _SECONDS
    while len(ended) < count and time.monotonic() < until:
        for pid in (p for p in pids if p not in ended):
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                ended[pid] = os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    return ended


if __name__ == "__main__":
    for index in range(int(sys.argv[2])):
        print(json.dumps(race(Path(sys.argv[1]) / str(index))), flush=True)  # noqa: T201
