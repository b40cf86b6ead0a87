"""Spark's estimates of two frames before a job runs, and what one small job over a sample adds."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame

from weft.joins.facts import Facts, HeavyKey, SessionFacts
from weft.joins.resolve.predicates import fold_order_conditions
from weft.joins.resolve.resolved import AsOf, ResolvedJoin
from weft.joins.spark.failures import coded_errors
from weft.joins.spark.heavy_keys import HASHES, Survey
from weft.joins.spark.sides import Sides, count_partitions
from weft.joins.spark.streams import check_not_streaming
from weft.joins.spark.workers import format_worker_help, missing_modules

_UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "PiB": 2**50, "EiB": 2**60}
_SIZE = re.compile(r"Statistics\(sizeInBytes=([0-9.]+(?:E[+-]?\d+)?) (\w+)")
_BELIEVED = 2**50
"""Above this an estimate is a product of unknown sizes, not a size."""


def read_session_facts(left: DataFrame, right: DataFrame) -> SessionFacts:
    """Return what is known of two frames; both are optimised for it, no job runs.

    Spark's Python workers run the kernel; `missing_modules` says what is known of them.
    """
    missing = missing_modules(left.sparkSession)
    conf = left.sparkSession.conf
    limit = str(conf.get("spark.sql.autoBroadcastJoinThreshold", "10MB"))
    return SessionFacts(
        left_bytes=estimate_bytes(left),
        right_bytes=estimate_bytes(right),
        may_broadcast=not limit.strip().startswith("-"),
        cores=cores_in(conf.get("spark.master", None), conf.get("spark.cores.max", None)),
        partitions=count_partitions(left),
        no_kernel=f"the Python of Spark's workers has no {' and no '.join(missing)}" if missing else "",
        worker_setting=format_worker_help(),
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


def estimate_bytes(df: DataFrame) -> int | None:
    """Return the optimiser's estimate of a frame's size in bytes, None when it has none."""
    whole: Any = df
    if hasattr(whole, "_jdf"):
        plan = whole._jdf.queryExecution().optimizedPlan()  # noqa: SLF001  # there is no public access
        size = int(plan.stats().sizeInBytes())
        return size if size < _BELIEVED else _local_bytes(plan)
    if not hasattr(whole, "_explain_string"):
        return None
    return size_in(whole._explain_string(mode="cost"))  # noqa: SLF001  # what explain() prints


_ONE_TO_ONE = frozenset(
    "Project Filter Sort GlobalLimit LocalLimit Aggregate Repartition RepartitionByExpression LogicalRDD".split()
)
_ROWS_OF_PYTHON = ("MapPartitionsRDD", "PythonRDD")


def _local_bytes(plan: Any) -> int | None:
    """Return the size of rows that ``createDataFrame`` got from Python; Spark has no estimate for them.

    The driver holds these rows as serialised batches until a job needs them.  Their real size counts: a string
    may be far longer than the 20 bytes that Spark assumes for one.
    """
    node = plan  # only through steps that add no rows
    while node.children().size() == 1 and node.getClass().getSimpleName() in _ONE_TO_ONE:
        node = node.children().apply(0)
    if node.getClass().getSimpleName() != "LogicalRDD":
        return None
    rdd = node.rdd()
    while rdd.getClass().getSimpleName() in _ROWS_OF_PYTHON and rdd.dependencies().size() == 1:
        rdd = rdd.dependencies().apply(0).rdd()
    if rdd.getClass().getSimpleName() != "ParallelCollectionRDD":
        return None
    # The first batch of a partition stands for the others: py4j copies each batch to Python to tell its length.
    filled = [values for part in rdd.partitions() if (values := part.values()).size()]
    return sum(int(values.size()) * len(values.head()) for values in filled)


def size_in(plan: str) -> int | None:
    """Return the estimate for a whole plan from the text of ``explain(mode="cost")``.

    >>> size_in("== Optimized Logical Plan == Relation [a#1], Statistics(sizeInBytes=1.5 KiB)")
    1536
    """
    estimate = _SIZE.search(plan)
    if estimate is None or estimate[2] not in _UNITS:
        return None
    size = int(float(estimate[1]) * _UNITS[estimate[2]])
    return size if size < _BELIEVED else None


_WIDEST = 512
"""Bytes that a row may have in files for a share to hold as many rows as are wanted; wider ones are read twice."""


def sample_facts(left: DataFrame, right: DataFrame, join: ResolvedJoin) -> Facts:
    """Run the job of ``statistics="sample"`` for an as-of join: one pass over keys and times."""
    for df in (left, right):
        check_not_streaming(df, 'statistics="sample"')
    simple = fold_order_conditions(join)
    assert isinstance(simple.match, AsOf)  # noqa: S101  # the caller asks for nothing else
    survey = Survey.of(Sides.of(left, right, simple), simple.match)
    # Sorting all rows for the smallest hashes could cost as much as the join: only a share of them is sorted.
    survey = replace(survey, share=_share(read_session_facts(left, right).both_bytes, survey.most_sampled))
    row, counts = _sampled(survey)
    if survey.share < 1.0 and sum(counts) < survey.most_sampled // 2:  # fewer rows than their size promised
        survey = replace(survey, share=1.0)
        row, counts = _sampled(survey)
    sampled = sum(counts)
    # A sample of the smallest hashes: how far they reach is how much of all rows it is.
    reached = survey.share
    if sampled >= survey.most_sampled:
        reached = (int(row["reached"]) + HASHES // 2) / HASHES
    left_rows, right_rows = (round(n / reached) for n in counts)
    heavy = [_heavy_key(struct, len(join.keys), sampled) for struct in row["heavy"]]
    return Facts(
        left_rows=left_rows,
        right_rows=right_rows,
        sampled=sampled,
        partitions=survey.partitions,
        heavy=tuple(sorted(heavy, key=lambda k: (-k.share, repr(k.values)))),
    )


def _sampled(survey: Survey) -> tuple[Any, tuple[int, int]]:
    with coded_errors():
        row = survey.one_row().collect()[0]
    return row, (int(row["left_rows"] or 0), int(row["right_rows"] or 0))


def _share(size: int | None, wanted: int) -> float:
    """Return a share of the rows of both sides that holds a sample, however wide they are.

    >>> _share(None, 1000), _share(1 << 20, 1000), _share(1 << 30, 1024)
    (1.0, 0.48828125, 0.00048828125)
    """
    return 1.0 if not size else min(1.0, wanted * _WIDEST / size)


def _heavy_key(struct: Any, keys: int, sampled: int) -> HeavyKey:
    share = struct["rows"] / sampled
    return HeavyKey(values=tuple(struct[:keys]), share=share, cuts=tuple(struct["cuts"]), carried=struct["carried"])
