"""The Spark session that every engine on Spark gets, and what they share around a join."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from peers.protocol import PRIME, WEIGHTS
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F


def session(job: dict[str, Any], **settings: str) -> SparkSession:
    """Start Spark with the job's cores; the event log keeps what each task read, wrote and spilled."""
    builder = SparkSession.builder.master(f"local[{job['cores']}]").appName("weft-bench")
    fixed = {
        "spark.driver.memory": "8g",
        "spark.sql.shuffle.partitions": "8",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": job["scratch"],
        "spark.sql.warehouse.dir": f"{job['scratch']}/warehouse",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": f"file://{job['events']}",
    }
    for name, value in (fixed | settings).items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def micros(column: Column) -> Column:
    """Return a timestamp as microseconds since 1970."""
    return F.unix_micros(column)


def checksum(result: DataFrame, job: dict[str, Any]) -> dict[str, int]:
    """Return the rows, the matched rows and the weighted sum of what was matched."""
    if job["kind"] == "interval":
        matched, reported = F.count("rid"), (F.col("id") * 31 + F.col("rid")) % PRIME
    else:
        matched = F.count("rt")
        reported = sum((micros(F.col(c)) for c in job["checked"]), F.lit(0)) % PRIME * (F.col("id") % WEIGHTS + 1)
    row = result.agg(F.count(F.lit(1)), matched, F.coalesce(F.sum(reported), F.lit(0))).collect()[0]
    return {"rows": row[0], "matched": row[1], "sum": row[2]}


class SparkEngine:
    """A join on Spark: read again for each run, so that nothing is carried from one to the next."""

    def __init__(
        self,
        job: dict[str, Any],
        join: Callable[[DataFrame, DataFrame], DataFrame],
        spark: SparkSession,
        about: dict[str, Any] | None = None,
    ) -> None:
        self.job, self.join, self.spark = job, join, spark
        self.about = {"pyspark": spark.version, **(about or {})}

    def _result(self, name: str) -> DataFrame:
        self.spark.sparkContext.setJobGroup(name, name)
        read = self.spark.read.parquet
        return self.join(read(self.job["left"]), read(self.job["right"]))

    def checksum(self) -> dict[str, int]:
        """Run the join and add up what was matched."""
        return checksum(self._result("checksum"), self.job)

    def run(self, name: str) -> None:
        """Run the join into the `noop` sink, which takes every column of every row."""
        self._result(name).write.format("noop").mode("overwrite").save()

    def close(self) -> None:
        """Stop Spark, which completes the event log."""
        self.spark.stop()
