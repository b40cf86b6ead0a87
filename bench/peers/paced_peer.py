"""Latency of Weft and of Spark by hand: a join runs while files come at a steady pace.

Output is there when its file can be read: Weft renames files at its commit, Spark's sink lists them in
``_spark_metadata``.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from peers.paced import Pace
from peers.protocol import Engine, serve
from peers.spark_session import session
from peers.stream_peer import JOB, NativeEngine
from pyspark.sql import SparkSession

from weft.streams.plan.resolve import plan_job
from weft.streams.run.job import run_job
from weft.streams.sql.lower import read_spec

TRIGGER = "100 milliseconds"


class PacedEngine:
    """Runs a join while files come, and reads from its files when each pair came out."""

    def __init__(self, job: dict[str, Any], spark: SparkSession) -> None:
        self.spark = spark
        self.about: dict[str, Any] = {"pyspark": spark.version}
        self.pace = Pace(Path(job["scratch"]), job["paced_seconds"])
        self.job = {**job, **{name: str(side) for name, side in self.pace.sides.items()}}

    def checksum(self) -> dict[str, int]:
        """Run the paced join; its result is part of the engine's description."""
        there = self._weft() if self.job["engine"] == "weft:sql" else self._spark()
        self.about |= self.pace.reported(there)
        return {}

    def _weft(self) -> dict[Path, float]:
        out = self.pace.out
        text = JOB.format(**self.job, out=out) + "SET 'trigger' = '100ms';"
        plan = plan_job(read_spec(text), out.parent)
        self.pace.start()
        run_job(self.spark, plan, mode="continuous", fresh=True, stop=self.pace.is_over)
        return {f: f.stat().st_ctime for f in out.glob("part-*.json")}

    def _spark(self) -> dict[Path, float]:
        native, out = NativeEngine(self.job, self.spark), self.pace.out
        self.pace.start()
        query = (
            native._joined()  # noqa: SLF001  # the same join as in the other benchmark
            .writeStream.format("json")
            .option("path", str(out))
            .option("checkpointLocation", str(out.parent / "checkpoint"))
            .trigger(processingTime=TRIGGER)
            .start()
        )
        while not self.pace.is_over():
            time.sleep(0.2)
        query.stop()
        return _listed(out)

    def run(self, name: str) -> None:
        """Do nothing: the paced run is the check."""

    def close(self) -> None:
        """Stop Spark."""
        self.spark.stop()


def _listed(out: Path) -> dict[Path, float]:
    """Return the files of Spark's sink with the time at which their batch was listed."""
    found: dict[Path, float] = {}
    entries = [e for e in (out / "_spark_metadata").iterdir() if e.stem.isdigit()]
    # Every tenth batch is listed together with all before it.
    for entry in sorted(entries, key=lambda e: int(e.stem)):
        when = entry.stat().st_ctime
        for line in entry.read_text(encoding="utf-8").splitlines()[1:]:
            found.setdefault(Path(json.loads(line)["path"].removeprefix("file://")), when)
    return found


def make(job: dict[str, Any]) -> Engine:
    """Return the engine that the job names."""
    return PacedEngine(job, session(job, **{"spark.sql.shuffle.partitions": str(job["cores"])}))


if __name__ == "__main__":
    serve(make)
