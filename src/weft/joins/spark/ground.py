"""What Spark knows about two frames before a job runs: estimated sizes, and what workers can do."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from weft.joins.ground import Ground
from weft.joins.spark.local_python import missing_modules
from weft.joins.spark.workers import help_for_workers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "PiB": 2**50, "EiB": 2**60}
_SIZE = re.compile(r"Statistics\(sizeInBytes=([0-9.]+(?:E[+-]?\d+)?) (\w+)")
_BELIEVED = 2**50
"""Above this an estimate is a product of unknown sizes, not a size."""


def ground_of(left: DataFrame, right: DataFrame) -> Ground:
    """Return what is known of two frames; both are optimised for it, no job runs.

    Spark's Python workers run the kernel; `missing_modules` says what is known of them.
    """
    missing = missing_modules(left.sparkSession)
    conf = left.sparkSession.conf
    limit = str(conf.get("spark.sql.autoBroadcastJoinThreshold", "10MB"))
    return Ground(
        left_bytes=estimated_bytes(left),
        right_bytes=estimated_bytes(right),
        may_broadcast=not limit.strip().startswith("-"),
        cores=cores_in(conf.get("spark.master", None), conf.get("spark.cores.max", None)),
        partitions=int(conf.get("spark.sql.shuffle.partitions", "200") or 200),
        no_kernel=f"the Python of Spark's workers has no {' and no '.join(missing)}" if missing else "",
        worker_setting=help_for_workers(),
    )


def cores_in(master: str | None, most: str | None) -> int | None:
    """Return how many tasks run at once, from what a session says of its master.

    >>> cores_in("local[4]", None), cores_in("local", None), cores_in("spark://host:7077", "32")
    (4, 1, 32)
    >>> cores_in("yarn", None) is None
    True
    """
    local = re.fullmatch(r"local(?:\[(\d+|\*)(?:,\s*\d+)?\])?", master or "")
    if local is not None:
        return (os.cpu_count() or 1) if local[1] == "*" else int(local[1] or 1)
    return int(most) if most and most.isdigit() else None


def estimated_bytes(df: DataFrame) -> int | None:
    """Return the optimiser's estimate of a frame's size in bytes, None when it has none."""
    whole: Any = df
    if hasattr(whole, "_jdf"):
        plan = whole._jdf.queryExecution().optimizedPlan()  # noqa: SLF001  # the only door
        size = int(plan.stats().sizeInBytes())
        return size if size < _BELIEVED else _local_bytes(plan)
    if not hasattr(whole, "_explain_string"):
        return None
    return size_in(whole._explain_string(mode="cost"))  # noqa: SLF001  # what explain() prints


_ONE_TO_ONE = frozenset(
    "Project Filter Sort GlobalLimit LocalLimit Aggregate Repartition RepartitionByExpression LogicalRDD".split()
)
_BATCH_ROWS = 1024
_ROWS_OF_PYTHON = ("MapPartitionsRDD", "PythonRDD")


def _local_bytes(plan: Any) -> int | None:
    """Return the most that rows have which ``createDataFrame`` got from Python; Spark has no estimate for them.

    PySpark sends them in batches of up to 1024 rows, and the batches are there to be counted.  A row has the
    size that Spark takes for rows of its types.  Followed are only steps that add no rows.
    """
    node = plan
    while node.children().size() == 1 and node.getClass().getSimpleName() in _ONE_TO_ONE:
        node = node.children().apply(0)
    if node.getClass().getSimpleName() != "LogicalRDD":
        return None
    rdd = node.rdd()
    while rdd.getClass().getSimpleName() in _ROWS_OF_PYTHON and rdd.dependencies().size() == 1:
        rdd = rdd.dependencies().apply(0).rdd()
    if rdd.getClass().getSimpleName() != "ParallelCollectionRDD":
        return None
    batches = sum(int(part.values().size()) for part in rdd.partitions())
    return batches * _BATCH_ROWS * int(node.schema().defaultSize())


def size_in(plan: str) -> int | None:
    """Return the estimate for a whole plan from the text of ``explain(mode="cost")``.

    >>> size_in("== Optimized Logical Plan == Relation [a#1], Statistics(sizeInBytes=1.5 KiB)")
    1536
    """
    found = _SIZE.search(plan)
    if found is None or found[2] not in _UNITS:
        return None
    size = int(float(found[1]) * _UNITS[found[2]])
    return size if size < _BELIEVED else None
