"""What the runner and an engine's process say to each other, one line of JSON at a time.

An engine's process gets a job as its one argument, says ``ready``, then ``begin`` and ``end`` around each
run: the untimed ``checksum``, the ``warm-up``, and the timed ones, and ``done`` at last.  It may say ``refused`` or
``failed`` with a reason instead.  Its input has nothing to say; when it ends, the runner is gone.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

PRIME = 1_000_003
"""Times are added modulo this prime, weighted by the left id, so that ties do not matter and mix-ups do."""
WEIGHTS = 97


class RefusedError(Exception):
    """The engine has no way to say this join."""


class Engine(Protocol):
    """One way to run one join."""

    about: dict[str, Any]
    """Versions and settings that a reader of the figures wants to know."""

    def checksum(self) -> dict[str, int]:
        """Run the join and return its rows, its matched rows and the weighted sum of right times."""

    def run(self, name: str) -> None:
        """Run the join and bring out all columns."""

    def close(self) -> None:
        """Let everything go."""


def say(event: str, **more: Any) -> None:
    """Tell the runner something."""
    print(json.dumps({"event": event, **more}), flush=True)


def _end_with_runner() -> None:
    os.read(0, 1)
    os._exit(1)


def serve(make: Callable[[dict[str, Any]], Engine]) -> None:
    """Do what the job in the first argument asks for and tell how it went."""
    threading.Thread(target=_end_with_runner, daemon=True).start()
    job = json.loads(sys.argv[1])
    try:
        engine = make(job)
        say("ready", about=engine.about)
        if job["check"]:
            say("begin", run="checksum")
            say("end", run="checksum", checksum=engine.checksum(), about=engine.about)
        rest = () if job.get("once") else ("warm-up", *(f"timed-{i}" for i in range(job["repeat"])))
        for name in rest:
            say("begin", run=name)
            start = time.perf_counter()
            engine.run(name)
            say("end", run=name, seconds=time.perf_counter() - start, about=engine.about)
        engine.close()
        say("done")
    except RefusedError as refusal:
        say("refused", reason=str(refusal))
    except Exception as error:  # whatever a peer fails with is its result
        given = str(error).strip().splitlines() or [""]
        say("failed", reason=f"{type(error).__name__}: {given[0][:300]}")
        raise SystemExit(1) from error
