"""Latency: files of both sides come at a steady pace; a pair is timed from its later file to its output file.

Two files of 2,000 orders and 1,600 shipments come each second.  A shipment comes in the file after its order's, so a
pair can be known when that file is there.  Output is there when its file can be read: Weft renames files at its
commit, Spark's sink lists them in ``_spark_metadata``.
"""

from __future__ import annotations

import json
import statistics
import sys
import threading
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from peers.protocol import Engine, serve
from peers.spark_session import session
from peers.stream_peer import JOB, NativeEngine
from pyspark.sql import SparkSession

from weft.front.sql.lower import read_spec
from weft.plan.streams.resolve import plan_job
from weft.run.streams.job import run_job

ORDERS = 2_000
SHIPPED = 1_600
START = 1_768_435_200_000
WARM_UP = 5
"""Files at the start that are not counted: code is compiled while they are read."""
TRIGGER = "100 milliseconds"


class PacedEngine:
    """Runs a join while files come, and reads from its files when each pair came out."""

    def __init__(self, job: dict[str, Any], spark: SparkSession) -> None:
        self.job, self.spark = job, spark
        self.about: dict[str, Any] = {"pyspark": spark.version}
        scratch = Path(job["scratch"])
        self.sides = {name: scratch / name for name in ("orders", "shipments")}
        self.out = scratch / "out"
        for side in self.sides.values():
            side.mkdir()
        self.came: list[float] = []
        self.fed = threading.Event()

    def checksum(self) -> dict[str, int]:
        """Run the paced join; what it found is told with the engine's description."""
        feeder = threading.Thread(target=self._feed, daemon=True)
        watched = {**self.job, **{name: str(side) for name, side in self.sides.items()}}
        if self.job["engine"] == "weft:sql":
            self._weft(watched, feeder)
            there = {f: f.stat().st_ctime for f in self.out.glob("part-*.json")}
        else:
            self._spark(watched, feeder)
            there = self._listed()
        waits = sorted(self._waits(there))
        self.about |= {
            "pairs": len(waits),
            "wanted": SHIPPED * (len(self.came) - 1 - WARM_UP),
            "p50_seconds": round(statistics.median(waits), 3) if waits else None,
            "p99_seconds": round(waits[int(len(waits) * 0.99)], 3) if waits else None,
            "events_a_second": ORDERS + SHIPPED,
        }
        return {}

    def _weft(self, job: dict[str, Any], feeder: threading.Thread) -> None:
        text = JOB.format(**job, out=self.out) + "SET 'trigger' = '100ms';"
        plan = plan_job(read_spec(text), self.out.parent)
        feeder.start()
        run_job(self.spark, plan, mode="continuous", fresh=True, stop=self._over)

    def _spark(self, job: dict[str, Any], feeder: threading.Thread) -> None:
        native = NativeEngine(job, self.spark)
        feeder.start()
        query = (
            native._joined()  # noqa: SLF001  # the same join as in the other benchmark
            .writeStream.format("json")
            .option("path", str(self.out))
            .option("checkpointLocation", str(self.out.parent / "checkpoint"))
            .trigger(processingTime=TRIGGER)
            .start()
        )
        while not self._over():
            time.sleep(0.2)
        query.stop()

    def _feed(self) -> None:
        for number in range(self.job["paced_seconds"]):
            began = time.monotonic()
            self._file("orders", number, [self._order(number, i) for i in range(ORDERS)])
            if number:
                self._file("shipments", number, [self._shipment(number, i) for i in range(SHIPPED)])
            self.came.append(time.time())
            time.sleep(max(0.0, 1.0 - (time.monotonic() - began)))
        self.fed.set()

    def _over(self) -> bool:
        """Whether everything has come, and ten seconds more have passed."""
        return self.fed.is_set() and time.time() - self.came[-1] > 10.0

    def _file(self, side: str, number: int, rows: list[dict[str, Any]]) -> None:
        beside = self.sides[side] / f".{number:05}"
        beside.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        beside.rename(self.sides[side] / f"{number:05}.json")

    def _order(self, number: int, i: int) -> dict[str, Any]:
        at = START + number * 1000 + i % 1000
        return {"order_id": f"O{number:04}{i:05}", "customer_id": i, "amount": 1.5, "event_time": at}

    def _shipment(self, number: int, i: int) -> dict[str, Any]:
        at = START + number * 1000 + i % 1000
        return {
            "shipment_id": f"S{number:04}{i:05}",
            "order_id": f"O{number - 1:04}{i:05}",
            "carrier": "UPS",
            "event_time": at,
        }

    def _listed(self) -> dict[Path, float]:
        """Return the files of Spark's sink with the time at which their batch was listed."""
        found: dict[Path, float] = {}
        entries = [e for e in (self.out / "_spark_metadata").iterdir() if e.stem.isdigit()]
        # Every tenth batch is listed together with all before it.
        for entry in sorted(entries, key=lambda e: int(e.stem)):
            when = entry.stat().st_ctime
            for line in entry.read_text(encoding="utf-8").splitlines()[1:]:
                found.setdefault(Path(json.loads(line)["path"].removeprefix("file://")), when)
        return found

    def _waits(self, there: dict[Path, float]) -> list[float]:
        waits = []
        for file, when in there.items():
            for line in file.read_text(encoding="utf-8").splitlines():
                shipment = json.loads(line).get("shipment_id")
                if shipment is not None and (number := int(shipment[1:5])) > WARM_UP:
                    waits.append(when - self.came[number])
        return waits

    def run(self, name: str) -> None:
        """Do nothing: the paced run is the check."""

    def close(self) -> None:
        """Stop Spark."""
        self.spark.stop()


def make(job: dict[str, Any]) -> Engine:
    """Return the engine that the job names."""
    return PacedEngine(job, session(job, **{"spark.sql.shuffle.partitions": str(job["cores"])}))


if __name__ == "__main__":
    serve(make)
