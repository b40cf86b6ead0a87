"""Plain Spark: a union and a window by hand, Spark's own as-of join, and a join on the condition."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from peers.protocol import Engine, RefusedError, serve
from peers.spark_session import SparkEngine, micros, session
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F


def _union(left: DataFrame, right: DataFrame, keys: list[str], row: Column, when: Column) -> DataFrame:
    """Put both sides under each other: left rows have no `r`, right rows nothing but their keys and `r`."""
    row_type = right.select(row.alias("r")).schema["r"].dataType
    payload = [c for c in left.columns if c not in {*keys, "t"}]
    none = [F.lit(None).cast(left.schema[c].dataType).alias(c) for c in payload]
    return left.select(*keys, "t", F.lit(1).alias("side"), *payload, F.lit(None).cast(row_type).alias("r")).unionByName(
        right.select(*keys, when.alias("t"), F.lit(0).alias("side"), *none, row.alias("r"))
    )


def union_window(left: DataFrame, right: DataFrame, job: dict[str, Any]) -> DataFrame:
    """Return the join as a careful hand writes it: one union, one shuffle, one sort, one running `last`."""
    keys = job["keys"]
    row = F.struct(*(c for c in right.columns if c not in keys))
    both = _union(left, right, keys, row, F.col("rt"))
    chosen = _nearest(keys) if job["direction"] == "nearest" else _running(keys, job["direction"])
    found = both.withColumn("chosen", chosen).where("side = 1")
    if job["tolerance_us"] is not None:
        away = F.abs(micros(F.col("t")) - micros(F.col("chosen.rt")))
        found = found.withColumn("chosen", F.when(away <= job["tolerance_us"], F.col("chosen")))
    return found.select(*left.columns, "chosen.*")


def _running(keys: list[str], direction: str) -> Column:
    order = F.col("t").asc() if direction == "backward" else F.col("t").desc()
    window = Window.partitionBy(*keys).orderBy(order, "side").rowsBetween(Window.unboundedPreceding, 0)
    return F.last("r", ignorenulls=True).over(window)


def _nearest(keys: list[str]) -> Column:
    before, after = _running(keys, "backward"), _running(keys, "forward")
    here = micros(F.col("t"))
    nearer = here - micros(before["rt"]) <= micros(after["rt"]) - here
    return F.when(after.isNull() | nearer, before).otherwise(after)


def two_axes(left: DataFrame, right: DataFrame, job: dict[str, Any]) -> DataFrame:
    """Return the bitemporal join by hand: a running best row for one cut-off, every candidate for two."""
    keys = job["keys"]
    row = F.struct("rt", "known", *(c for c in right.columns if c not in {*keys, "rt", "known"}))
    if job["known"] == "t":
        both = _union(left, right, keys, row, F.greatest("rt", "known"))
        window = Window.partitionBy(*keys).orderBy("t", "side").rowsBetween(Window.unboundedPreceding, 0)
        found = both.withColumn("best", F.max("r").over(window)).where("side = 1")
        found = found.withColumn("best", F.when(~F.col("best.deleted"), F.col("best")))
        return found.select(*left.columns, "best.*")
    best = (
        left.join(right, keys)
        .where(f"rt <= t AND known <= {job['known']}")
        .groupBy("id")
        .agg(F.max_by(row, F.struct("rt", "known")).alias("best"))
        .where("NOT best.deleted")
    )
    return left.join(best, "id", "left").select(*left.columns, "best.*")


def native(left: DataFrame, right: DataFrame, job: dict[str, Any], spark: SparkSession) -> DataFrame:
    """Return Spark's own as-of join, which its conf has to allow."""
    left.createOrReplaceTempView("l")
    right.createOrReplaceTempView("r")
    keys = job["keys"]
    terms = [f"l.{k} = r.{k}" for k in keys]
    forward = job["direction"] == "forward"
    if job["tolerance_us"] is not None:
        away = "unix_micros(r.rt) - unix_micros(l.t)" if forward else "unix_micros(l.t) - unix_micros(r.rt)"
        terms.append(f"{away} <= {job['tolerance_us']}")
    on = f" ON {' AND '.join(terms)}" if terms else ""
    wanted = ", ".join(f"r.{c}" for c in right.columns if c not in keys)
    return spark.sql(
        f"SELECT l.*, {wanted} FROM l LEFT ASOF JOIN r MATCH_CONDITION(l.t {'<=' if forward else '>='} r.rt){on}"  # noqa: S608
    )


def condition(left: DataFrame, right: DataFrame, job: dict[str, Any]) -> DataFrame:
    """Return an interval join on its condition, the smaller side broadcast where there is no key."""
    left_end, right_end = job["ends"]
    terms = [left[k] == right[k] for k in job["keys"]]
    terms.append(right["rt"] < left[left_end] if left_end else right["rt"] <= left["t"])
    terms.append(left["t"] < right[right_end])
    on = terms[0]
    for term in terms[1:]:
        on &= term
    if not job["keys"]:
        left, right = (F.broadcast(left), right) if job["rows"][0] < job["rows"][1] else (left, F.broadcast(right))
    return left.join(right, on, "inner").select(
        *(left[c] for c in left.columns), *(right[c] for c in right.columns if c not in job["keys"])
    )


def make(job: dict[str, Any]) -> Engine:
    """Return the engine that the job names."""
    form, kind = job["engine"].partition(":")[2], job["kind"]
    if form == "native" and (kind != "asof" or job["direction"] == "nearest"):
        raise RefusedError("Spark's own as-of join knows backward and forward alone")
    if form == "join" and kind != "interval":
        raise RefusedError("a join on the condition is for intervals; as-of it makes every pair")
    if form == "union" and kind == "interval":
        raise RefusedError("a union and a window give one match per row")
    spark = session(job, **({"spark.sql.join.asofJoin.enabled": "true"} if form == "native" else {}))
    if form == "native":
        return SparkEngine(job, lambda left, right: native(left, right, job, spark), spark)
    written = condition if form == "join" else two_axes if kind == "bitemporal" else union_window
    return SparkEngine(job, lambda left, right: written(left, right, job), spark)


if __name__ == "__main__":
    serve(make)
