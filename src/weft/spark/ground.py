"""What Spark knows about two frames before a job runs: estimated sizes, and what workers can do."""

from __future__ import annotations

import os
import re
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from weft.plan.ground import Ground

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "PiB": 2**50, "EiB": 2**60}
_SIZE = re.compile(r"Statistics\(sizeInBytes=([0-9.]+(?:E[+-]?\d+)?) (\w+)")
_BELIEVED = 2**50
"""Above this an estimate is a product of unknown sizes, not a size."""


def ground_of(left: DataFrame, right: DataFrame) -> Ground:
    """Return what is known of two frames; both are optimised for it, no job runs.

    Spark's Python workers run the kernel; a driver without pyarrow and numpy is taken as a sign
    that workers have none either.
    """
    missing = [name for name in ("pyarrow", "numpy", "pandas") if find_spec(name) is None]
    conf = left.sparkSession.conf
    limit = str(conf.get("spark.sql.autoBroadcastJoinThreshold", "10MB"))
    return Ground(
        left_bytes=estimated_bytes(left),
        right_bytes=estimated_bytes(right),
        may_broadcast=not limit.strip().startswith("-"),
        cores=cores_in(conf.get("spark.master", None), conf.get("spark.cores.max", None)),
        partitions=int(conf.get("spark.sql.shuffle.partitions", "200") or 200),
        no_kernel=f"{' and '.join(missing)} not installed" if missing else "",
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
        size = int(whole._jdf.queryExecution().optimizedPlan().stats().sizeInBytes())  # noqa: SLF001  # the only door
        return size if size < _BELIEVED else None
    if not hasattr(whole, "_explain_string"):
        return None
    return size_in(whole._explain_string(mode="cost"))  # noqa: SLF001  # what explain() prints


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
