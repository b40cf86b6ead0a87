"""Where the time of the kernel plan goes: the same rows, one step more at a time.

::

    read      both sides read, nothing else
    shuffled  and sent to 8 partitions by their keys
    sorted    and brought together by group, as a cogroup of Spark does before it calls Python
    moved     and sent to Python and back by a cogroup that joins nothing; as many columns come out as of the join
    weft      the join

``python bench/breakdown.py uniform-10M W1`` writes ``bench/results/breakdown.json`` and the table in docs/benchmarks.md.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from machine import machine, source_state
from report import DOCUMENT
from workloads import WORKLOADS

from data import tables

RESULTS = Path(__file__).parent / "results" / "breakdown.json"
BEGIN, END = "<!-- breakdown -->", "<!-- end of breakdown -->"
STEPS = ("read", "shuffled", "sorted", "moved", "weft")
REPEAT = 3
ABOUT = """The same rows with one step more at a time, in seconds: both sides read; sent to 8 partitions by key; brought together by
group, as a cogroup does; sent to Python and back by a cogroup that joins nothing; joined by the kernel."""


def moved(left: Any, right: Any) -> Any:
    """Return the left rows beside as many right rows, whichever they are."""
    import pyarrow as pa

    rights = right.drop_columns([*(c for c in right.column_names if c in left.column_names)])
    beside = rights.slice(0, left.num_rows)
    if beside.num_rows < left.num_rows:
        beside = pa.concat_tables([beside] * (left.num_rows // max(beside.num_rows, 1) + 1)).slice(0, left.num_rows)
    found = left
    for name in beside.column_names:
        found = found.append_column(name, beside.column(name))
    return found.drop_columns(["g"])


def steps(spark: Any, job: dict[str, Any]) -> dict[str, Callable[[], Iterable[Any]]]:
    """Return the frames of each step."""
    from peers.weft_peer import spec_of
    from pyspark.sql import functions as F

    import weft

    keys = job["keys"]

    def sides() -> list[Any]:
        return [spark.read.parquet(job[side]) for side in ("left", "right")]

    def grouped() -> list[Any]:
        group = F.pmod(F.xxhash64(*keys), F.lit(8)).cast("int")
        return [side.withColumn("g", group) for side in sides()]

    def join_group() -> Iterable[Any]:
        left, right = grouped()
        rest = [f for f in right.schema.fields if f.name not in left.columns]
        schema = left.drop("g").schema
        for field in rest:
            schema = schema.add(field)
        return [left.groupBy("g").cogroup(right.groupBy("g")).applyInArrow(moved, schema)]

    def joined() -> Iterable[Any]:
        left, right = map(weft.relation, sides())
        spec = spec_of(job)
        assert isinstance(spec, weft.AsofSpec)  # noqa: S101  # the workloads are as-of joins
        return [left.asof_join(right, spec, strategy="kernel", order_check="ignore").df]

    return {
        "read": sides,
        "shuffled": lambda: [side.repartition(8, "g") for side in grouped()],
        "sorted": lambda: [side.repartition(8, "g").sortWithinPartitions("g") for side in grouped()],
        "moved": join_group,
        "weft": joined,
    }


def measured_steps(name: str) -> dict[str, Any]:
    """Time the steps of a workload, in turns."""
    from peers.spark_session import session
    from temporal import job_of

    work = WORKLOADS[name]
    tables(work)
    with tempfile.TemporaryDirectory(prefix="weft-breakdown-") as scratch:
        events = Path(scratch, "events")
        events.mkdir()
        job = job_of(work, 1, check=False) | {"scratch": scratch, "events": str(events)}
        spark = session(job)
        try:
            found = steps(spark, job)
            times: dict[str, list[float]] = {step: [] for step in STEPS}
            for turn in range(REPEAT + 1):
                for step in STEPS:
                    start = time.perf_counter()
                    for frame in found[step]():
                        frame.write.format("noop").mode("overwrite").save()
                    if turn:  # the first warms up
                        times[step].append(time.perf_counter() - start)
                    print(f"  {name} {step:<9} {time.perf_counter() - start:6.2f} s", file=sys.stderr)
        finally:
            spark.stop()
    medians = {step: statistics.median(t) for step, t in times.items()}
    return {"seconds": times, "median": medians, "machine": machine(), "code": source_state()}


def table(results: dict[str, Any]) -> str:
    """Return the medians as Markdown."""
    lines = ["| workload | " + " | ".join(STEPS) + " |", "|---|" + "--:|" * len(STEPS)]
    for name, found in results.items():
        lines.append(f"| {name} | " + " | ".join(f"{found['median'][s]:.2f}" for s in STEPS) + " |")
    return "\n\n".join([BEGIN, ABOUT, "\n".join(lines), END])


def main(names: list[str]) -> None:
    """Time the steps of the workloads, keep what was found and show it in the document."""
    results = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    for name in names:
        results[name] = measured_steps(name)
        RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    page = DOCUMENT.read_text(encoding="utf-8")
    before, after = page.partition(BEGIN)[0], page.partition(END)[2]
    DOCUMENT.write_text(before + table(results) + after, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:] or ["uniform-10M", "W1"])
