"""Weft, by the plan it chooses or by one that is forced."""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

sys.path.insert(0, str(Path(__file__).parents[1]))

from peers.protocol import Engine, RefusedError, serve
from peers.spark_session import SparkEngine, session
from pyspark.sql import DataFrame

import weft
from weft.errors import StrategyRefusedError

MOST_PAIRS = 2e8
"""A plan that makes every candidate pair is left out above this: it would fill the disk."""


def spec_of(job: dict[str, Any]) -> weft.AsofSpec | weft.IntervalSpec:
    """Return the join as a Weft spec."""
    keys = [(k, k) for k in job["keys"]]
    order = weft.AsofOrder(left="t", right="rt")
    if job["kind"] == "interval":
        left_end, right_end = job["ends"]
        return weft.IntervalSpec(equal_keys=keys, order=order, left_end=left_end, right_end=right_end)
    tolerance = None if job["tolerance_us"] is None else timedelta(microseconds=job["tolerance_us"])
    second = job["kind"] == "bitemporal"
    return weft.AsofSpec(
        equal_keys=keys,
        order=order,
        direction=job["direction"],
        tolerance=tolerance,
        known=weft.AsofOrder(left=job["known"], right="known") if second else None,
        tombstone="deleted" if second else None,
    )


def make(job: dict[str, Any]) -> Engine:
    """Return the engine that the job names: ``weft``, ``weft:sample`` or ``weft:<strategy>``.

    ``weft:sample`` chooses by itself after a sample of both sides; the sample is part of its time.
    """
    strategy = job["engine"].partition(":")[2] or "auto"
    statistics: Literal["sample"] | None = None
    if strategy == "sample":
        strategy, statistics = "auto", "sample"
    spec = spec_of(job)
    if isinstance(spec, weft.IntervalSpec) and job["engine"] != "weft":
        raise RefusedError("strategies by name are for as-of joins")
    if strategy == "rank" and job["pairs"] > MOST_PAIRS:
        raise RefusedError(f"it would make {job['pairs']:.0e} pairs")
    about: dict[str, Any] = {"weft": weft.__version__}
    spark = session(job)

    def join(left: DataFrame, right: DataFrame) -> DataFrame:
        sides = weft.relation(left), weft.relation(right)
        try:
            if isinstance(spec, weft.IntervalSpec):
                result = sides[0].interval_join(sides[1], spec)
            else:
                result = sides[0].asof_join(
                    sides[1], spec, strategy=strategy, statistics=statistics, order_check="ignore"
                )
        except StrategyRefusedError as refusal:
            raise RefusedError(str(refusal).splitlines()[0].partition(": ")[2]) from refusal
        if result.lineage is not None:
            engine.about["strategy"] = result.lineage.choice.strategy
            engine.about["reason"] = result.lineage.choice.reason
        return result.df

    engine = SparkEngine(job, join, spark, about)
    return engine


if __name__ == "__main__":
    serve(make)
