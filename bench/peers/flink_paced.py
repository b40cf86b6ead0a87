"""Latency of PyFlink: the same join in Flink SQL runs while files come at a steady pace.

Folders are looked at every 100 ms.  Flink's file sink gives a file its name when a checkpoint is complete, so the
interval of checkpoints bounds from below how soon a pair can be read; it is short here.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from peers.flink_job import JOIN, SOURCES, settings
from peers.paced import Pace
from peers.protocol import Engine, serve
from pyflink.table import TableEnvironment
from pyflink.version import __version__

CHECKPOINTS = os.environ.get("WEFT_BENCH_FLINK_CHECKPOINTS", "500ms")
WATCHED = "'source.monitor-interval'='100ms', "
SHORT = "'sink.rolling-policy.rollover-interval'='100ms', 'sink.rolling-policy.check-interval'='100ms', "


class PacedFlink:
    """A Flink job that runs while files come."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.about: dict[str, Any] = {"apache-flink": __version__, "checkpoints": CHECKPOINTS}
        self.pace = Pace(Path(job["scratch"]), job["paced_seconds"])
        self.env = TableEnvironment.create(settings(job, checkpoints=CHECKPOINTS))
        reported = {name: str(side) for name, side in self.pace.sides.items()} | {"out": str(self.pace.out)}
        for statement in SOURCES.format(**reported).split(";"):
            extra = SHORT if "TABLE shipped" in statement else WATCHED
            self.env.execute_sql(statement.strip().replace("WITH (", f"WITH ({extra}"))

    def checksum(self) -> dict[str, int]:
        """Run the paced join; its result is part of the engine's description."""
        client = self.env.execute_sql(JOIN.strip()).get_job_client()
        self.pace.start()
        while not self.pace.is_over():
            time.sleep(0.2)
        client.cancel().result()
        self.about |= self.pace.reported({f: f.stat().st_ctime for f in self.pace.out.glob("part-*")})
        return {}

    def run(self, name: str) -> None:
        """Do nothing: the paced run is the check."""

    def close(self) -> None:
        """Leave nothing; the cluster ends with the process."""


def make(job: dict[str, Any]) -> Engine:
    """Return the engine that the job names."""
    return PacedFlink(job)


if __name__ == "__main__":
    serve(make)
