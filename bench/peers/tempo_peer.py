"""Tempo (dbl-tempo): its union and its broadcast form."""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from peers.protocol import Engine, RefusedError, serve
from peers.spark_session import SparkEngine, session
from pyspark.sql import DataFrame
from tempo import TSDF

MOST_BROADCAST = 30 * 1024 * 1024
"""Tempo takes its broadcast form when a side has fewer bytes, and its union otherwise."""


def make(job: dict[str, Any]) -> Engine:
    """Return ``tempo:union`` or ``tempo:broadcast``."""
    broadcast = job["engine"] == "tempo:broadcast"
    if job["kind"] != "asof" or job["direction"] != "backward":
        raise RefusedError("Tempo joins backward on one time axis alone")
    if broadcast and not job["keys"]:
        raise RefusedError("Tempo's broadcast form needs a key")
    sizes = [sum(f.stat().st_size for f in Path(job[side]).iterdir()) for side in ("left", "right")]
    if broadcast and min(sizes) >= MOST_BROADCAST:
        raise RefusedError("neither side has under 30 MB, so Tempo would take its union")

    def join(left: DataFrame, right: DataFrame) -> DataFrame:
        # Tempo wants one name for both time columns, and prefixes the right columns.
        sides = TSDF(left, "t", job["keys"]), TSDF(right.withColumnRenamed("rt", "t"), "t", job["keys"])
        tolerance = None if job["tolerance_us"] is None else job["tolerance_us"] / 1e6
        result: DataFrame = (
            sides[0].asofJoin(sides[1], right_prefix="right", sql_join_opt=broadcast, tolerance=tolerance).df
        )
        return result.withColumnRenamed("right_t", "rt")

    return SparkEngine(job, join, session(job), {"dbl-tempo": version("dbl-tempo")})


if __name__ == "__main__":
    serve(make)
