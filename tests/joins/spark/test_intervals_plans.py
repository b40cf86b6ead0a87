"""What interval and window joins ask of Spark: exchanges, hints, no job while they are built, counts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

import weft
from join_cases import relation_of
from near_joins import joined
from weft import MatchStats
from weft.joins.spec.asof import AsofOrder
from weft.joins.spec.temporal import IntervalSpec, WindowSpec
from weft.testing import T

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ORDER = AsofOrder("t", "s")
KEYS = [("k", "k")]
LEFT = T("k | t: timestamp | e: timestamp \n 1 | 10:00 | 11:00 \n 1 | 10:30 | 10:40 \n 2 | 10:00 |")
RIGHT = T("k | s: timestamp | f: timestamp \n 1 | 10:20 | 10:35 \n 1 | 12:00 | 12:30 \n 3 | 10:00 |")
NEAR = {"lower": "-1h", "upper": "1h"}
SPECS: dict[str, tuple[type, dict[str, Any]]] = {
    "near": (IntervalSpec, NEAR),
    "equal": (IntervalSpec, {"lower": "1h", "upper": "1h"}),
    "open": (IntervalSpec, {"lower": "0s"}),
    "in range": (IntervalSpec, {"right_end": "f"}),
    "holds": (IntervalSpec, {"left_end": "e"}),
    "ranges": (IntervalSpec, {"left_end": "e", "right_end": "f"}),
    "tumbling": (WindowSpec, {"window": "tumbling", "size": "1h"}),
    "sliding": (WindowSpec, {"window": "sliding", "size": "1h", "slide": "15m"}),
    "session": (WindowSpec, {"window": "session", "gap": "15m"}),
}
# Shuffles of rows, without those of the few counts by which lengths are measured.
TWO_JOINS = ("near", "in range", "holds", "ranges", "sliding")
HOWS = ("inner", "left", "right", "full", "semi", "anti")


def spec_of(name: str, how: Any = "inner", **more: Any) -> Any:
    kind, given = SPECS[name]
    return kind(KEYS, order=ORDER, how=how, **given, **more)


@pytest.fixture
def without_broadcasts(spark: SparkSession) -> Iterator[SparkSession]:
    before = spark.conf.get("spark.sql.autoBroadcastJoinThreshold") or "10485760"
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    yield spark
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", before)


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("name", SPECS)
def test_no_more_is_shuffled_than_each_plan_needs(without_broadcasts: SparkSession, name: str, how: str) -> None:
    left, right = relation_of(without_broadcasts, LEFT), relation_of(without_broadcasts, RIGHT)
    plan = joined(left, right, spec_of(name, how)).df._jdf.queryExecution().executedPlan()
    nodes = [str(n) for n in _main(plan)]
    shuffles = sum(n.startswith("Exchange") for n in nodes)
    assert shuffles == (4 if name == "session" or (how == "full" and name in TWO_JOINS) else 2)
    assert not any("NestedLoop" in n or "Cartesian" in n for n in nodes)
    assert not any(n.startswith(("Window", "HashAggregate")) for n in nodes) or name == "session"


def _main(node: Any) -> Iterator[str]:
    """Yield the first line of each operator, subqueries left out."""
    if node.nodeName() == "AdaptiveSparkPlan":
        node = node.initialPlan()
    yield node.simpleStringWithNodeId().split(") ", 1)[-1]
    children = node.children()
    for i in range(children.size()):
        yield from _main(children.apply(i))


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("name", ["near", "in range", "holds", "ranges", "tumbling", "sliding"])
def test_a_broadcast_hint_reaches_the_join(without_broadcasts: SparkSession, name: str, side: str) -> None:
    from pyspark.sql import functions as F

    left, right = relation_of(without_broadcasts, LEFT).df, relation_of(without_broadcasts, RIGHT).df
    one, other = (F.broadcast(left), right) if side == "left" else (left, F.broadcast(right))
    result = joined(weft.relation(one), weft.relation(other), spec_of(name))
    nodes = list(_main(result.df._jdf.queryExecution().executedPlan()))
    assert any(n.startswith("BroadcastHashJoin") for n in nodes)
    assert not any(n.startswith("Exchange") for n in nodes)


@pytest.mark.parametrize("name", SPECS)
def test_building_a_join_starts_no_job_and_changes_no_setting(spark: SparkSession, name: str) -> None:
    context, before = spark.sparkContext, dict(spark.conf.getAll)
    left, right = relation_of(spark, LEFT), relation_of(spark, RIGHT)
    context.setJobGroup(f"weft-near-{name}", "the joins of this test")
    try:
        results = [joined(left, right, spec_of(name, how)) for how in HOWS]
        assert context.statusTracker().getJobIdsForGroup(f"weft-near-{name}") == []
        results[0].df.collect()
        assert context.statusTracker().getJobIdsForGroup(f"weft-near-{name}")  # or it would prove nothing
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]  # None clears it
    assert dict(spark.conf.getAll) == before


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("near", (2, 1, 2)),
        ("in range", (1, 2, 2)),
        ("holds", (1, 2, 2)),
        ("ranges", (2, 1, 2)),
        ("sliding", (2, 1, 2)),
        ("session", (1, 2, 2)),
    ],
)
def test_match_stats_count_rows_of_the_result(any_spark: SparkSession, name: str, counts: tuple[int, int, int]) -> None:
    stats = MatchStats()
    left, right = relation_of(any_spark, LEFT), relation_of(any_spark, RIGHT)
    verb = left.interval_join if isinstance(spec_of(name), IntervalSpec) else left.window_join
    verb(right, spec_of(name, "full"), stats=stats).df.collect()
    matched, left_only, right_only = counts
    assert stats.get() == {
        "rows": sum(counts), "matched": matched, "left_only": left_only, "right_only": right_only,
    }  # fmt: skip
