"""Every way to run a join that is compared, and one measurement of one of them in a process of its own."""

from __future__ import annotations

import json
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from measure import MemoryWatch, end_session, is_paused, members, spark_costs, total_memory

HERE = Path(__file__).parent
READY_SECONDS = 300
"""How long an engine may take to start, and to clean up."""
MOST_MEMORY = 0.85
"""The share of the machine's memory that an engine may take."""


def peers_python() -> str:
    """Return the Python of the peers' environment; ``WEFT_BENCH_PEERS`` names another one."""
    return os.environ.get("WEFT_BENCH_PEERS") or str(HERE / ".venv-peers" / "bin" / "python")


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """An engine by name, the script that runs it and whether that needs the peers' environment."""

    name: str
    script: str
    is_peer: bool = False

    @property
    def is_forced(self) -> bool:
        """Whether Weft got more than the join: a plan, or to sample; timed in the first turn alone."""
        return self.name.startswith("weft:")

    @property
    def python(self) -> str:
        """The interpreter that runs it."""
        return peers_python() if self.is_peer else sys.executable


def engines() -> dict[str, EngineChoice]:
    """Return all engines, Weft first: the others' time limits hang on it."""
    import weft

    found = [
        EngineChoice("weft", "weft_peer.py"),
        EngineChoice("duckdb", "duckdb_peer.py", is_peer=True),
        EngineChoice("polars", "frames_peer.py", is_peer=True),
        EngineChoice("pandas", "frames_peer.py", is_peer=True),
        *(EngineChoice(f"weft:{name}", "weft_peer.py") for name in ("sample", *weft.asof_strategies())),
        EngineChoice("spark:union", "spark_peer.py"),
        EngineChoice("spark:native", "spark_peer.py"),
        EngineChoice("spark:join", "spark_peer.py"),
        EngineChoice("tempo:union", "tempo_peer.py", is_peer=True),
        EngineChoice("tempo:broadcast", "tempo_peer.py", is_peer=True),
    ]
    return {e.name: e for e in found}


@dataclass(slots=True)
class Outcome:
    """The result of one process of an engine: a status, times, a checksum and costs."""

    status: str = "ok"
    reason: str = ""
    seconds: list[float] = field(default_factory=list)
    checksum: dict[str, int] | None = None
    about: dict[str, Any] = field(default_factory=dict)
    peak_rss_bytes: int = 0
    peak_python_worker_bytes: int = 0
    limit_seconds: float | None = None
    spark: list[dict[str, int]] = field(default_factory=list)
    """Costs of the timed runs, as Spark counted them."""


def measured(engine: EngineChoice, job: dict[str, Any], limit: float) -> Outcome:
    """Run an engine's process to its end, or until a run takes longer than `limit` seconds."""
    scratch = Path(tempfile.mkdtemp(prefix="weft-bench-"))
    events = scratch / "events"
    events.mkdir()
    reported = job | {"engine": engine.name, "scratch": str(scratch / "work"), "events": str(events)}
    (scratch / "work").mkdir()
    try:
        with (scratch / "stderr").open("w+") as errors:
            process = subprocess.Popen(  # noqa: S603  # our own scripts
                [engine.python, str(HERE / "peers" / engine.script), json.dumps(reported)],
                stdin=subprocess.PIPE,  # held open: its end tells the engine that we are gone
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                cwd=scratch,
                env=_environment(engine, job),
                start_new_session=True,
            )
            outcome = _followed(process, limit)
            if outcome.status == "failed" and not outcome.reason:
                errors.seek(0)
                outcome.reason = (errors.read().strip().splitlines() or ["it ended without a word"])[-1][:300]
        runs = spark_costs(events)
        outcome.spark = [cost for run, cost in sorted(runs.items()) if run.startswith("timed-")]
        return outcome
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _environment(engine: EngineChoice, job: dict[str, Any]) -> dict[str, str]:
    paths = [str(HERE.parent / "src"), os.environ.get("PYTHONPATH", "")]
    return os.environ | {
        "PYSPARK_PYTHON": engine.python,
        "PYSPARK_DRIVER_PYTHON": engine.python,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)) if not engine.is_peer else "",
        "POLARS_MAX_THREADS": str(job["cores"]),
    }


def _followed(process: subprocess.Popen[str], limit: float) -> Outcome:
    """Listen to an engine's process; end it when it is over its time or its memory."""
    outcome, is_done = Outcome(), False
    heard: queue.Queue[dict[str, Any] | None] = queue.Queue()
    threading.Thread(target=_listen, args=(process, heard), daemon=True).start()
    watch = MemoryWatch(process.pid, int(total_memory() * MOST_MEMORY))
    watch.start()
    allowed, running = float(READY_SECONDS), False
    try:
        while True:
            event = _next(heard, allowed, process)
            if event is None or event["event"] == "done":
                is_done = event is not None
                break
            if event["event"] == "late":
                if running:
                    outcome.status, outcome.limit_seconds = "did not finish", allowed
                else:
                    outcome.status, outcome.reason = (
                        "failed",
                        f"it reported nothing for {allowed:.0f} s between runs",
                    )
                break
            running = event["event"] == "begin"
            allowed = limit if running else READY_SECONDS
            _note(outcome, event, watch)
    finally:
        watch.stop()
        end_session(process.pid)
        code = process.wait()
    if watch.over:
        outcome.status, outcome.reason = "failed", f"it took more than {MOST_MEMORY:.0%} of the memory"
    elif code and outcome.status == "ok" and not is_done:
        outcome.status = "failed"
    return outcome


def _next(
    heard: queue.Queue[dict[str, Any] | None], allowed: float, process: subprocess.Popen[str]
) -> dict[str, Any] | None:
    """Return what the engine says next, None when it has ended, or that it is late.

    While somebody pauses the engine, or us, no time passes.  What an engine started may outlive it and hold
    its output open, so its own end is looked for.
    """
    spent = 0.0
    while spent < allowed:
        ended = process.poll() is not None
        began = time.monotonic()
        try:
            return heard.get(timeout=0.5)
        except queue.Empty:
            if ended:
                return None
            paused = any(map(is_paused, members(process.pid)))
            spent += 0.0 if paused else min(time.monotonic() - began, 1.0)
    return {"event": "late"}


def _listen(process: subprocess.Popen[str], heard: queue.Queue[dict[str, Any] | None]) -> None:
    assert process.stdout is not None  # noqa: S101  # it is a pipe
    for line in process.stdout:
        if line.startswith("{"):
            heard.put(json.loads(line))
    heard.put(None)


def _note(outcome: Outcome, event: dict[str, Any], watch: MemoryWatch) -> None:
    outcome.about |= event.get("about", {})
    if event["event"] in {"refused", "failed"}:
        outcome.status, outcome.reason = event["event"], event["reason"]
    elif event["event"] == "begin":
        if event["run"] == "timed-0":
            watch.reset()
    elif event["event"] == "end":
        outcome.checksum = event.get("checksum", outcome.checksum)
        if event["run"].startswith("timed-"):
            outcome.seconds.append(event["seconds"])
            watch.look()  # a run may be shorter than the time between two looks
            outcome.peak_rss_bytes = watch.peak
            outcome.peak_python_worker_bytes = watch.worker
