"""As-of joins with one side broadcast: what Spark is asked to do, and searches in long and odd arrays."""

from __future__ import annotations

import random
from bisect import bisect_left, bisect_right
from contextlib import redirect_stdout
from io import StringIO
from typing import TYPE_CHECKING, Any

import pytest

from join_cases import relation_of
from weft import AsofOrder, AsofSpec, Relation, asof_strategies, relation
from weft.errors import StrategyRefusedError
from weft.expr.spark.frames import functions_of
from weft.joins.spark.asof_broadcast import count_before
from weft.testing import T

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

ORDER = AsofOrder("t", "u")
LEFT = T("k: string | t: long | a: long \n A | 1 | 1 \n A | 5 | 2 \n B | 2 | 3 \n | 4 | 4")
RIGHT = T("k: string | u: long | b: long \n A | 1 | 10 \n A | 3 | 20 \n A | 3 | 30 \n C | 2 | 40")
DIRECTIONS = ("backward", "forward", "nearest")


def plan_of(df: DataFrame) -> str:
    """Return what ``explain`` prints."""
    reported = StringIO()
    with redirect_stdout(reported):
        df.explain()
    return reported.getvalue()


def joined(session: SparkSession, strategy: str, **given: Any) -> Relation:
    spec = AsofSpec(given.pop("keys", [("k", "k")]), order=ORDER, **given)
    left, right = relation_of(session, LEFT), relation_of(session, RIGHT)
    return left.asof_join(right, spec, strategy=strategy, order_check="ignore", suffixes=("", "_right"))


def clustered(count: int, seed: int) -> list[int]:
    """Return numbers of which most are close together and a few very far away."""
    rng = random.Random(seed)
    near = [rng.randrange(10**6, 10**6 + 4 * count) for _ in range(count)]
    return [*near, -(2**62), 2**62, *near[: count // 4]]


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("how", ["left", "inner"])
def test_no_left_row_is_shuffled_when_the_right_side_is_broadcast(
    spark: SparkSession, direction: Any, how: Any
) -> None:
    plan = plan_of(joined(spark, "broadcast", direction=direction, how=how, tolerance=9).df.select("a", "b", "u"))
    assert plan.count("BroadcastExchange") == 1
    assert plan.count("Exchange hashpartitioning") == 1, "the right side is grouped by key"
    assert "Window" not in plan
    assert "Sort " not in plan


def test_no_key_is_a_search_in_one_array(spark: SparkSession) -> None:
    plan = plan_of(joined(spark, "broadcast", keys=[]).df)
    assert "BroadcastNestedLoopJoin BuildRight" in plan
    assert plan.count("Exchange SinglePartition") == 1


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_only_possible_answers_are_shuffled_when_the_left_side_is_tiny(spark: SparkSession, direction: Any) -> None:
    plan = plan_of(joined(spark, "tiny_left", direction=direction, tolerance=9).df)
    assert "LeftSemi, BuildRight" in plan
    assert "SortAggregate" not in plan, "times are aggregated by hashing"


@pytest.mark.parametrize("strategy", ["broadcast", "tiny_left"])
def test_a_filter_on_the_result_does_not_unfold_the_search(spark: SparkSession, strategy: str) -> None:
    result = joined(spark, strategy, how="inner").df.filter("b > 15 AND u IS NOT NULL AND a < 9")
    assert len(plan_of(result)) < 60_000
    assert [tuple(row) for row in result.select("k", "t", "b").collect()] == [("A", 5, 30)]


@pytest.mark.parametrize("size", [0, 1, 2, 7, 8, 1000])
def test_places_in_arrays_of_all_sizes(any_spark: SparkSession, size: int) -> None:
    values = sorted(random.Random(size).choices(range(2 * size), k=size))
    asked = list(range(-1, 2 * size + 2))
    F: Any = functions_of(any_spark.range(1))
    literal = F.array(*(F.lit(v) for v in values)) if values else F.array().cast("array<int>")
    frame = any_spark.createDataFrame([(i, i) for i in asked], "at int, same int").withColumn("values", literal)
    frame = count_before(F, frame, "before", values="values", at="at", inclusive=False)
    frame = count_before(F, frame, "upto", values="values", at="at", inclusive=True)
    found = sorted(tuple(row) for row in frame.select("at", "before", "upto").collect())
    assert found == [(at, bisect_left(values, at), bisect_right(values, at)) for at in asked]


@pytest.mark.parametrize("keys", [[("k", "j")], []], ids=["keyed", "keyless"])
@pytest.mark.parametrize("strategy", ["broadcast", "tiny_left"])
def test_clustered_and_far_values_find_their_row(spark: SparkSession, strategy: str, keys: Any) -> None:
    lefts, rights = clustered(400, 1), clustered(3000, 2)
    left = spark.createDataFrame([("A", t) for t in lefts], "k string, t long")
    right = spark.createDataFrame([("A", u) for u in rights], "j string, u long")
    spec = AsofSpec(keys, order=ORDER)
    result = relation(left).asof_join(relation(right), spec, strategy=strategy, order_check="ignore")
    ordered = sorted(rights)
    expected = sorted((t, ordered[bisect_right(ordered, t) - 1]) for t in lefts)
    assert sorted(tuple(row) for row in result.df.select("t", "u").collect()) == expected


def test_sides_too_wide_to_be_compiled_are_refused(spark: SparkSession) -> None:
    wide = spark.range(1).selectExpr("id k", "id t", *(f"id c{i}" for i in range(120)))
    other = spark.range(1).selectExpr("id k", "id u", "id b")
    spec = AsofSpec([("k", "k")], order=ORDER)
    with pytest.raises(StrategyRefusedError, match="refuses 125 columns"):
        relation(wide).asof_join(relation(other), spec, strategy="broadcast", order_check="ignore")
    served = relation(wide).asof_join(relation(other), spec, strategy="tiny_left", order_check="ignore")
    assert served.df.select("c7", "b").collect()[0] == (0, 0)


@pytest.fixture
def in_berlin(spark: SparkSession) -> Iterator[SparkSession]:
    """Let the session live where clocks were set back from 3 to 2 on 2023-10-29, at 1 o'clock UTC."""
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    yield spark
    spark.conf.set("spark.sql.session.timeZone", "UTC")


@pytest.mark.parametrize("strategy", asof_strategies())
def test_a_distance_is_the_time_that_passes_not_what_clocks_show(in_berlin: SparkSession, strategy: str) -> None:
    left = in_berlin.sql("SELECT 1 k, TIMESTAMP '2023-10-29T01:30:00Z' t")  # clocks show 2:30
    right = in_berlin.sql("SELECT 1 k, TIMESTAMP '2023-10-29T00:30:00Z' u")  # and showed 2:30 an hour before
    spec = AsofSpec([("k", "k")], order=ORDER, tolerance="30 minutes")
    result = relation(left).asof_join(relation(right), spec, strategy=strategy, order_check="ignore")
    assert result.df.filter("u IS NOT NULL").count() == 0


@pytest.mark.parametrize("column", ["b", "a"])
def test_the_result_of_a_search_can_be_joined(spark: SparkSession, column: str) -> None:
    result = joined(spark, "broadcast").df
    other = spark.createDataFrame([(1,), (30,)], f"{column} long")
    assert len(plan_of(result.join(other, column))) < 60_000
    assert [row[column] for row in result.join(other, column).collect()] == [{"a": 1, "b": 30}[column]]
