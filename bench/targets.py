"""What the figures are meant to reach, and whether the results do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Results = dict[str, Any]
Finding = tuple[str, bool | None] | None
"""The figure and whether it is enough, None for one without a target; None in all where a figure is missing."""


@dataclass(frozen=True, slots=True)
class Target:
    """One aim: on which workload, what is asked, and how the results answer."""

    workload: str
    aim: str
    find: Callable[[Results], Finding]


def record(results: Results, workload: str, engine: str = "weft") -> dict[str, Any] | None:
    """Return the record of an engine on a workload, if there is one."""
    found: dict[str, Any] | None = results["workloads"].get(workload, {}).get("engines", {}).get(engine)
    return found


def median(results: Results, workload: str, engine: str = "weft") -> float | None:
    """Return the median time of an engine on a workload, if it finished with the right answer."""
    found = record(results, workload, engine)
    return found["median"] if found and found["status"] == "ok" else None


def _ratio(
    upper: tuple[str, str], lower: tuple[str, str], most: float, per: float = 1.0
) -> Callable[[Results], Finding]:
    """Ask that one time is at most `most` times another one (divided by `per`, for growth)."""

    def find(results: Results) -> Finding:
        above, below = median(results, *upper), median(results, *lower)
        if above is None or below is None:
            return None
        return f"{above / below / per:.2f} x", above / below / per <= most

    return find


def _faster(workload: str, other: str, least: float) -> Callable[[Results], Finding]:
    """Ask that another engine takes `least` times our time, or was stopped after as long."""

    def find(results: Results) -> Finding:
        ours, theirs = median(results, workload), record(results, workload, other)
        if ours is None or theirs is None:
            return None
        if theirs["status"] == "did not finish":
            limit = theirs["limit_seconds"]
            return f"stopped after {limit:.0f} s = {limit / ours:.0f} x", limit / ours >= least * 0.95
        if theirs["status"] != "ok":
            return None
        return f"{theirs['median'] / ours:.1f} x", theirs["median"] / ours >= least

    return find


def _two_cores(results: Results) -> Finding:
    two, one = median(results, "nokey-5M"), median(results, "nokey-5M-1core")
    return None if two is None or one is None else (f"{one / two:.2f} x", one / two >= 1.6)


def _left_stays(results: Results) -> Finding:
    found = record(results, "right-1M")
    if found is None or not found["spark"]:
        return None
    moved = max(cost["shuffle_write_records"] for cost in found["spark"])
    return f"{moved:,} rows shuffled", moved < results["workloads"]["right-1M"]["left_rows"] / 10


def _bounded(results: Results) -> Finding:
    reported = []
    for name in ("uniform-1M", "uniform-10M", "uniform-50M"):
        found = record(results, name, "weft:sample" if name == "uniform-50M" else "weft")
        if found is None or not found["spark"]:
            return None
        task = max(cost["peak_task_bytes"] for cost in found["spark"])
        reported.append(f"{task / 2**20:.0f} + {found['peak_python_worker_bytes'] / 2**20:.0f} MB")
    return ", ".join(reported), None


def _weft(name: str) -> tuple[str, str]:
    return name, "weft"


TARGETS = (
    Target("uniform-10M", "at most 0.5 x the union and window by hand", _ratio(_weft("uniform-10M"), ("uniform-10M", "spark:union"), 0.5)),
    Target("uniform-10M", "at most 3 x DuckDB", _ratio(_weft("uniform-10M"), ("uniform-10M", "duckdb"), 3)),
    Target("uniform-10M", "Spark's own does not finish in 20 x our time", _faster("uniform-10M", "spark:native", 20)),
    Target("W1", "at most 0.4 x the union and window by hand", _ratio(_weft("W1"), ("W1", "spark:union"), 0.4)),
    Target("W1", "50 x faster than Spark's own", _faster("W1", "spark:native", 50)),
    Target("zipf-10M", "at most 1.4 x the uniform time", _ratio(_weft("zipf-10M"), _weft("uniform-10M"), 1.4)),
    Target("zipf-10M", "with a sample, at most 1.4 x the uniform time", _ratio(("zipf-10M", "weft:sample"), _weft("uniform-10M"), 1.4)),
    Target("heavy-10M", "at most 1.4 x the uniform time", _ratio(_weft("heavy-10M"), _weft("uniform-10M"), 1.4)),
    Target("heavy-10M", "with a sample, at most 1.4 x the uniform time", _ratio(("heavy-10M", "weft:sample"), _weft("uniform-10M"), 1.4)),
    Target("nokey-5M", "1.6 x faster on two cores than on one", _two_cores),
    Target("right-1M", "no shuffle of the left side", _left_stays),
    Target("right-1M", "at most 2 x DuckDB", _ratio(_weft("right-1M"), ("right-1M", "duckdb"), 2)),
    Target("nearest-10M", "at most 1.6 x our backward time", _ratio(_weft("nearest-10M"), _weft("uniform-10M"), 1.6)),
    Target("uniform-10M", "1M to 10M within 1.3 x of linear", _ratio(_weft("uniform-10M"), _weft("uniform-1M"), 1.3, 10)),
    Target("uniform-50M", "10M to 50M within 1.3 x of linear", _ratio(_weft("uniform-50M"), _weft("uniform-10M"), 1.3, 5)),
    Target("uniform-50M", "with a sample, 10M to 50M within 1.3 x of linear", _ratio(("uniform-50M", "weft:sample"), ("uniform-10M", "weft:sample"), 1.3, 5)),
    Target("uniform-50M", "peak memory of a task (Spark + Python) at 1M, 10M, 50M", _bounded),
)  # fmt: skip
"""Every aim, in the order of the report."""
