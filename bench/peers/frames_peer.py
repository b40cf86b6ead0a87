"""Polars and pandas: tables in memory, sorted by time, all columns of the result as one table."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from peers.protocol import PRIME, WEIGHTS, Engine, RefusedError, serve

MOST_PANDAS_ROWS = 10_000_000


class PolarsEngine:
    """`join_asof` and `join_where` over lazy scans, collected."""

    def __init__(self, job: dict[str, Any]) -> None:
        os.environ["POLARS_MAX_THREADS"] = str(job["cores"])
        import polars as pl

        if job["kind"] == "bitemporal":
            raise RefusedError("Polars has no as-of join on two time axes")
        self.job, self.pl = job, pl
        self.about = {"polars": pl.__version__, "out": "collect"}

    def _result(self) -> Any:
        pl, job = self.pl, self.job
        left, right = (pl.scan_parquet(f"{job[side]}/*.parquet") for side in ("left", "right"))
        if job["kind"] == "interval":
            left_end, right_end = job["ends"]
            terms = [pl.col(k) == pl.col(f"{k}_right") for k in job["keys"]]
            terms += [pl.col("rt") < pl.col(left_end) if left_end else pl.col("rt") <= pl.col("t")]
            joined = left.join_where(right, *terms, pl.col("t") < pl.col(right_end))
            return joined.drop([f"{k}_right" for k in job["keys"]])
        tolerance = None if job["tolerance_us"] is None else f"{job['tolerance_us']}us"
        return left.sort("t").join_asof(
            right.sort("rt"),
            left_on="t",
            right_on="rt",
            by=job["keys"] or None,
            strategy=job["direction"],
            tolerance=tolerance,
            coalesce=False,
            check_sortedness=False,  # with keys Polars cannot check, and says so
        )

    def checksum(self) -> dict[str, int]:
        """Run the join and add up what was matched."""
        pl = self.pl
        if self.job["kind"] == "interval":
            matched, reported = pl.col("rid").count(), (pl.col("id") * 31 + pl.col("rid")) % PRIME
        else:
            times = sum(pl.col(c).dt.epoch("us") for c in self.job["checked"])
            matched, reported = pl.col("rt").count(), times % PRIME * (pl.col("id") % WEIGHTS + 1)
        summed = self._result().select(pl.len(), matched.alias("matched"), reported.sum().alias("sum"))
        return dict(zip(("rows", "matched", "sum"), summed.collect().row(0), strict=True))

    def run(self, name: str) -> None:  # noqa: ARG002  # runs have names for the engines that log them
        """Run the join and hold its result as a table in memory."""
        self._result().collect()

    def close(self) -> None:
        """Nothing to let go."""


class PandasEngine:
    """`merge_asof` over tables that were read and sorted."""

    def __init__(self, job: dict[str, Any]) -> None:
        import pandas as pd

        if job["kind"] != "asof":
            raise RefusedError("pandas has as-of joins on one time axis alone")
        if max(job["rows"]) > MOST_PANDAS_ROWS:
            raise RefusedError("pandas is measured up to 10M rows a side")
        self.job, self.pd = job, pd
        self.about = {"pandas": pd.__version__, "out": "a DataFrame"}

    def _result(self) -> Any:
        pd, job = self.pd, self.job
        left = pd.read_parquet(job["left"]).sort_values("t")
        right = pd.read_parquet(job["right"]).sort_values("rt")
        return pd.merge_asof(
            left,
            right,
            left_on="t",
            right_on="rt",
            by=job["keys"] or None,
            direction=job["direction"],
            tolerance=None if job["tolerance_us"] is None else pd.Timedelta(job["tolerance_us"], unit="us"),
        )

    def checksum(self) -> dict[str, int]:
        """Run the join and add up what was matched."""
        result = self._result()
        hit = result[result["rt"].notna()]
        reported = hit["rt"].astype("int64") % PRIME * (hit["id"] % WEIGHTS + 1)
        return {"rows": len(result), "matched": len(hit), "sum": int(reported.sum())}

    def run(self, name: str) -> None:  # noqa: ARG002  # runs have names for the engines that log them
        """Run the join and hold its result as a table in memory."""
        self._result()

    def close(self) -> None:
        """Nothing to let go."""


def make(job: dict[str, Any]) -> Engine:
    """Return the engine that the job names."""
    return PolarsEngine(job) if job["engine"] == "polars" else PandasEngine(job)


if __name__ == "__main__":
    serve(make)
