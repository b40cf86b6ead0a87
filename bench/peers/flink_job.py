"""PyFlink: the interval join in Flink SQL, from the same files, with state in memory or in RocksDB.

``flink:hashmap`` keeps state in memory, ``flink:rocksdb`` on disk; checkpoints every 5 seconds, two slots, a file of
each side for each slot.  Flink gives the unmatched rows of an outer join when the input ends.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from peers.protocol import Engine, serve
from peers.stream_answers import checksum_of
from pyflink.common import Configuration
from pyflink.table import EnvironmentSettings, TableEnvironment
from pyflink.version import __version__

SOURCES = """
CREATE TABLE orders (
  order_id STRING, customer_id BIGINT, amount DECIMAL(10,2), event_time BIGINT,
  ts AS TO_TIMESTAMP_LTZ(event_time, 3), WATERMARK FOR ts AS ts - INTERVAL '30' SECOND
) WITH ('connector'='filesystem', 'path'='file://{orders}', 'format'='json');

CREATE TABLE shipments (
  shipment_id STRING, order_id STRING, carrier STRING, event_time BIGINT,
  ts AS TO_TIMESTAMP_LTZ(event_time, 3), WATERMARK FOR ts AS ts - INTERVAL '30' SECOND
) WITH ('connector'='filesystem', 'path'='file://{shipments}', 'format'='json');

CREATE TABLE shipped (
  order_id STRING, customer_id BIGINT, amount DECIMAL(10,2), order_time BIGINT,
  shipment_id STRING, carrier STRING, shipment_time BIGINT
) WITH ('connector'='filesystem', 'path'='file://{out}', 'format'='json')
"""
JOIN = """
INSERT INTO shipped
SELECT o.order_id, o.customer_id, o.amount, o.event_time, s.shipment_id, s.carrier, s.event_time
FROM orders o LEFT JOIN shipments s
  ON o.order_id = s.order_id AND s.ts BETWEEN o.ts AND o.ts + INTERVAL '1' HOUR
"""


def settings(job: dict[str, Any], *, checkpoints: str = "5s") -> EnvironmentSettings:
    """Return a local cluster with as many slots as the job has cores."""
    conf = Configuration()
    reported = {
        "state.backend.type": job["engine"].partition(":")[2],
        "parallelism.default": str(job["cores"]),
        "taskmanager.numberOfTaskSlots": str(job["cores"]),
        "taskmanager.memory.process.size": "8g",
        "taskmanager.memory.managed.size": "2g",
        "execution.checkpointing.interval": checkpoints,
        "execution.checkpointing.dir": f"file://{job['scratch']}/checkpoints",
        "execution.checkpointing.incremental": "true",
        "io.tmp.dirs": job["scratch"],
        "table.local-time-zone": "UTC",
        "python.executable": sys.executable,
    }
    for name, value in reported.items():
        conf.set_string(name, value)
    return EnvironmentSettings.new_instance().in_streaming_mode().with_configuration(conf).build()


class FlinkEngine:
    """The join as a Flink job; every run is a job of its own on one local cluster."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.job = job
        self.about = {"apache-flink": __version__}
        self.out = Path(job["scratch"]) / "out"
        self.env = TableEnvironment.create(settings(job))
        reported = {"orders": job["orders"], "shipments": job["shipments"], "out": str(self.out)}
        for statement in SOURCES.format(**reported).split(";"):
            self.env.execute_sql(statement.strip())

    def checksum(self) -> dict[str, int]:
        """Run the join and add up the rows of its files."""
        self.run("checksum")
        return checksum_of(self.out)

    def run(self, name: str) -> None:  # noqa: ARG002  # Flink has no name for a run
        """Run the join into files and wait for its end."""
        shutil.rmtree(self.out, ignore_errors=True)
        self.env.execute_sql(JOIN.strip()).wait()

    def close(self) -> None:
        """Leave nothing; the cluster ends with the process."""
        shutil.rmtree(self.out, ignore_errors=True)


def make(job: dict[str, Any]) -> Engine:
    """Return the engine that the job names."""
    return FlinkEngine(job)


if __name__ == "__main__":
    serve(make)
