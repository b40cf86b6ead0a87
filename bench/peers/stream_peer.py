"""Stream joins on Spark: Weft's SQL, Weft's streaming relations, and the same join written by hand.

``weft:sql``       a job of streaming SQL, run to its end and sealed
``weft:relation``  `interval_join` of two streaming relations
``spark:hand``     Structured Streaming as its guide writes it, with the settings of ``weft:relation``

The last two leave the unmatched rows of the last hour in state: Spark has no end of input.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from peers.protocol import Engine, serve
from peers.spark_session import session
from peers.stream_answers import checksum_of
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import weft
import weft.streams

JOB = """
SET 'checkpoint' = '{scratch}/checkpoint';
CREATE STREAM orders (order_id STRING, customer_id BIGINT, amount DECIMAL(10,2), event_time BIGINT)
WITH ('connector'='files', 'path'='{orders}', 'format'='json', 'event.time.field'='event_time',
      'event.time.format'='epoch_millis', 'watermark.max_out_of_orderness'='30s', 'max.files.per.trigger'='2');
CREATE STREAM shipments (shipment_id STRING, order_id STRING, carrier STRING, event_time BIGINT)
WITH ('connector'='files', 'path'='{shipments}', 'format'='json', 'event.time.field'='event_time',
      'event.time.format'='epoch_millis', 'watermark.max_out_of_orderness'='30s', 'max.files.per.trigger'='2');
CREATE STREAM shipped WITH ('connector'='files', 'path'='{out}', 'format'='json') AS
SELECT o.order_id, o.customer_id, o.amount, o.event_time AS order_time, s.shipment_id, s.carrier,
       s.event_time AS shipment_time
FROM orders o LEFT JOIN shipments s ON o.order_id = s.order_id WITHIN ('0s', '1h');
"""
SCHEMAS = {
    "orders": "order_id string, customer_id bigint, amount decimal(10,2), event_time bigint",
    "shipments": "shipment_id string, order_id string, carrier string, event_time bigint",
}
COLUMNS = ("order_id", "customer_id", "amount", "order_time", "shipment_id", "carrier", "shipment_time")


class SqlEngine:
    """Weft's own engine; a run begins with an empty checkpoint and ends with a sealed one."""

    def __init__(self, job: dict[str, Any], spark: SparkSession) -> None:
        self.job, self.spark = job, spark
        self.about: dict[str, Any] = {"pyspark": spark.version, "weft": weft.__version__}
        self.out = Path(job["scratch"]) / "out"
        self.text = JOB.format(**job, out=self.out)

    def checksum(self) -> dict[str, int]:
        """Run the join and add up the rows of its files."""
        self.run("checksum")
        return checksum_of(self.out)

    def run(self, name: str) -> None:
        """Run the job to its end."""
        self.spark.sparkContext.setJobGroup(name, name)
        report = weft.streams.run(self.spark, self.text, final=True, fresh=True, listener=_Peak(self))
        ledger = report.query("shipped").ledger
        self.about["ledger"] = ledger and {side: dict(counts) for side, counts in ledger.items()}

    def close(self) -> None:
        """Stop Spark."""
        self.spark.stop()


class _Peak(weft.streams.Listener):
    """Keeps how many rows waited in state at most."""

    def __init__(self, engine: SqlEngine) -> None:
        self.about = engine.about
        self.about |= {"peak_state_rows": [0, 0], "peak_state_of_both": 0, "batches": 0}

    def on_batch(self, report: weft.streams.BatchReport) -> None:
        """Look at the state after a batch."""
        peak = self.about["peak_state_rows"]
        self.about["peak_state_rows"] = [
            max(peak[0], report.left.current_size),
            max(peak[1], report.right.current_size),
        ]
        both = report.left.current_size + report.right.current_size
        self.about["peak_state_of_both"] = max(self.about["peak_state_of_both"], both)
        self.about["batches"] += 1


class NativeEngine:
    """Spark's symmetric hash join, by hand or through a relation."""

    def __init__(self, job: dict[str, Any], spark: SparkSession) -> None:
        self.job, self.spark = job, spark
        self.about: dict[str, Any] = {"pyspark": spark.version, "weft": weft.__version__}
        self.out = Path(job["scratch"]) / "out"

    def _side(self, name: str) -> DataFrame:
        files = self.spark.readStream.schema(SCHEMAS[name]).option("maxFilesPerTrigger", 2)
        timed = files.json(self.job[name]).withColumn("at", F.timestamp_millis("event_time"))
        return timed.withWatermark("at", "30 seconds")

    def _joined(self) -> DataFrame:
        orders, shipments = self._side("orders"), self._side("shipments")
        if self.job["engine"] == "weft:relation":
            joined = weft.relation(orders.withColumnRenamed("event_time", "order_time")).interval_join(
                weft.relation(shipments.withColumnRenamed("event_time", "shipment_time")),
                weft.IntervalSpec(
                    equal_keys=[("order_id", "order_id")],
                    order=weft.AsofOrder(left="at", right="at"),
                    lower="0s",
                    upper="1h",
                    how="left",
                ),
            )
            return joined.df.select(*COLUMNS)
        left = orders.withColumnRenamed("event_time", "order_time").alias("o")
        right = shipments.withColumnRenamed("event_time", "shipment_time").alias("s")
        near = F.expr("o.order_id = s.order_id AND s.at >= o.at AND s.at <= o.at + INTERVAL 1 HOUR")
        return left.join(right, near, "left_outer").select("o.order_id", *COLUMNS[1:])

    def checksum(self) -> dict[str, int]:
        """Run the join and add up the rows of its files."""
        self.run("checksum")
        return checksum_of(self.out)

    def run(self, name: str) -> None:
        """Run the join over all files."""
        self.spark.sparkContext.setJobGroup(name, name)
        checkpoint = Path(self.job["scratch"]) / "checkpoint"
        for place in (self.out, checkpoint):
            shutil.rmtree(place, ignore_errors=True)
        query = (
            self._joined()
            .writeStream.format("json")
            .option("path", str(self.out))
            .option("checkpointLocation", str(checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        progress = [p for p in query.recentProgress if p["stateOperators"]]
        if progress:
            self.about["peak_state_rows"] = max(p["stateOperators"][0]["numRowsTotal"] for p in progress)
            self.about["left_in_state"] = progress[-1]["stateOperators"][0]["numRowsTotal"]

    def close(self) -> None:
        """Stop Spark."""
        self.spark.stop()


def make(job: dict[str, Any]) -> Engine:
    """Return the engine that the job names."""
    spark = session(job, **{"spark.sql.shuffle.partitions": str(job["cores"])})
    return SqlEngine(job, spark) if job["engine"] == "weft:sql" else NativeEngine(job, spark)


if __name__ == "__main__":
    serve(make)
