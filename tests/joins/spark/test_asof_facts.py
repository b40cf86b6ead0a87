"""Statistics on request: one small job, facts that are true, and the plan that follows from them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from join_cases import rows_of
from weft import AsofOrder, AsofSpec, JoinSpecError, Relation, explain_join, relation
from weft.joins.facts import Facts
from weft.joins.spark import facts as facts_module
from weft.joins.spark import heavy_keys
from weft.joins.spark.heavy_keys import Survey
from weft.testing import assert_rows_equal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

ORDER = AsofOrder("t", "u")
SKEWED = [("A" if i % 10 else "B", i * 7 % 1000, i) for i in range(1000)]


def sides(session: SparkSession, rows: list[tuple[Any, ...]] = SKEWED) -> tuple[Relation, Relation]:
    """Return the same rows as a left and as a right side."""
    return (
        relation(session.createDataFrame(rows, "k string, t long, a long")),
        relation(session.createDataFrame(rows, "k string, u long, b long")),
    )


def reported(result: Relation) -> Facts:
    """Return the facts that the join was chosen by."""
    assert result.lineage is not None
    assert result.lineage.choice.facts is not None
    return result.lineage.choice.facts


def test_a_heavy_key_is_found_and_takes_the_slices(any_spark: SparkSession) -> None:
    left, right = sides(any_spark)
    spec = AsofSpec([("k", "k")], order=ORDER)
    result = left.asof_join(right, spec, statistics="sample", order_check="ignore")
    facts = reported(result)
    assert (facts.left_rows, facts.right_rows, facts.is_exact) == (1000, 1000, True)
    assert [(k.values, k.share) for k in facts.skewed] == [(("A",), 0.9)]
    explained = explain_join(result)
    assert explained.strategy is not None
    assert explained.strategy.strategy == "slices"
    assert "key 'A' has 90 % of them (sample of 2,000 rows)" in str(explained)
    plain = left.asof_join(right, spec, strategy="union", order_check="ignore")
    assert_rows_equal(rows_of(result.df), rows_of(plain.df), result.columns)


def test_without_a_key_all_rows_are_cut(any_spark: SparkSession) -> None:
    left, right = (side.drop("k") for side in sides(any_spark))
    result = left.asof_join(right, AsofSpec(order=ORDER), statistics="sample", order_check="ignore")
    assert reported(result).heavy[0].values == ()
    assert len(reported(result).heavy[0].cuts) == 3
    plain = left.asof_join(right, AsofSpec(order=ORDER), strategy="union", order_check="ignore")
    assert_rows_equal(rows_of(result.df), rows_of(plain.df), result.columns)


def test_large_sides_are_estimated(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heavy_keys, "_LEAST_SAMPLED", 2000)
    left = relation(spark.range(40_000).selectExpr("concat('K', id % 50) k", "id t", "id a"))
    right = relation(spark.range(10_000).selectExpr("concat('K', id % 50) k", "id u", "id b"))
    facts = reported(
        left.asof_join(right, AsofSpec([("k", "k")], order=ORDER), statistics="sample", order_check="ignore")
    )
    assert facts.sampled == 2000
    assert 0.85 < facts.left_rows / 40_000 < 1.15
    assert 0.8 < facts.right_rows / 10_000 < 1.2
    assert facts.skewed == ()


@pytest.mark.parametrize(
    ("widest", "is_enough"),
    [
        pytest.param(100, True, id="a share of the rows"),
        pytest.param(0.001, False, id="too few, so all rows"),
    ],
)
def test_a_share_of_large_sides_is_as_good_as_all_of_them(
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    widest: float,
    is_enough: bool,  # noqa: FBT001
) -> None:
    monkeypatch.setattr(heavy_keys, "_LEAST_SAMPLED", 2000)
    monkeypatch.setattr(facts_module, "_WIDEST", widest)
    shares = []
    sampled = facts_module._sampled

    def noted(survey: Survey) -> Any:
        shares.append(survey.share)
        return sampled(survey)

    monkeypatch.setattr(facts_module, "_sampled", noted)
    left = relation(spark.range(80_000).selectExpr("if(id % 10 = 0, concat('K', id), 'A') k", "id t", "id a"))
    right = relation(spark.range(20_000).selectExpr("if(id % 10 = 0, concat('K', id), 'A') k", "id u", "id b"))
    facts = reported(
        left.asof_join(right, AsofSpec([("k", "k")], order=ORDER), statistics="sample", order_check="ignore")
    )
    assert shares[0] < 0.2
    assert shares[1:] == ([] if is_enough else [1.0])
    assert 0.85 < facts.left_rows / 80_000 < 1.15
    assert 0.8 < facts.right_rows / 20_000 < 1.2
    assert [k.values for k in facts.skewed] == [("A",)]
    assert 0.85 < facts.skewed[0].share < 0.95


def test_rows_that_can_match_nothing_are_not_counted(spark: SparkSession) -> None:
    rows: list[tuple[Any, ...]] = [(None, 1, 1), ("A", None, 2), ("A", 3, 3)]
    left, right = sides(spark, rows)
    facts = reported(
        left.asof_join(right, AsofSpec([("k", "k")], order=ORDER), statistics="sample", order_check="ignore")
    )
    assert (facts.left_rows, facts.right_rows) == (1, 1)


def test_empty_sides_have_no_rows_and_no_heavy_key(spark: SparkSession) -> None:
    left, right = (side.filter("1 = 0") for side in sides(spark))
    for keys in ([("k", "k")], []):
        spec = AsofSpec(keys, order=ORDER)
        one, other = (left, right) if keys else (left.drop("k"), right)
        result = one.asof_join(other, spec, statistics="sample", order_check="ignore")
        assert (reported(result).left_rows, reported(result).right_rows, reported(result).heavy) == (0, 0, ())
        assert rows_of(result.df) == []


def test_facts_of_every_kind_of_time_go_into_the_plan(spark: SparkSession) -> None:
    for kind in (
        "timestamp_micros(id * 1000000)",
        "date_add(date'2020-01-01', cast(id as int))",
        "cast(timestamp_micros(id * 7) as timestamp_ntz)",
        "cast(id as decimal(20,3))",
        "cast(id as double)",
    ):
        left = relation(spark.range(200).selectExpr("'A' k", f"{kind} t", "id a"))
        right = relation(spark.range(0, 200, 3).selectExpr("'A' k", f"{kind} u", "id b"))
        spec = AsofSpec([("k", "k")], order=ORDER)
        result = left.asof_join(right, spec, statistics="sample", order_check="ignore")
        assert reported(result).skewed
        assert sorted(row[4] for row in rows_of(result.df.select("k", "t", "a", "u", "b"))) == sorted(
            i // 3 * 3 for i in range(200)
        )


@pytest.fixture
def in_berlin(any_spark: SparkSession) -> Iterator[SparkSession]:
    """Let all live where clocks were set back from 3 to 2 on 2023-10-29, at 1 o'clock UTC."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "Europe/Berlin")
        time.tzset()
        any_spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
        yield any_spark
        any_spark.conf.set("spark.sql.session.timeZone", "UTC")
    time.tzset()


@pytest.mark.parametrize("direction", ["backward", "forward", "nearest"])
def test_the_hour_that_comes_twice_is_two_hours(in_berlin: SparkSession, direction: Any) -> None:
    micros = "timestamp_micros((1698537600 + {}) * 1000000)"  # from 2023-10-29 00:00 UTC
    key, moment = micros.format("id % 2 * 3600 + 1800"), micros.format("id * 12")
    left = relation(in_berlin.range(600).selectExpr(f"{key} k", f"{moment} t", "id a"))
    right = relation(in_berlin.range(0, 600, 3).selectExpr(f"{key} k", f"{moment} u", "id b"))
    for keys in ([("k", "k")], []):
        theirs = right if keys else right.drop("k")
        spec = AsofSpec(
            keys, order=ORDER, direction=direction, tolerance="unbounded" if direction == "nearest" else None
        )
        result = left.asof_join(theirs, spec, strategy="slices", statistics="sample", order_check="ignore")
        assert len(reported(result).heavy) == max(1, 2 * len(keys))
        assert not any(key.carried for key in reported(result).heavy)
        plain = left.asof_join(theirs, spec, strategy="union", order_check="ignore")
        found, wanted = (rows_of(joined.df.select("a", "b")) for joined in (result, plain))
        assert_rows_equal(found, wanted, ("a", "b"))


def test_natural_joins_take_statistics_too(spark: SparkSession) -> None:
    left, right = sides(spark)
    result = left.natural_asof(right, order=ORDER, statistics="sample", order_check="ignore")
    assert reported(result).skewed


def test_no_job_runs_unless_asked(spark: SparkSession) -> None:
    context = spark.sparkContext
    left, right = sides(spark)
    for asked, group in ((None, "weft-no-facts"), ("sample", "weft-facts")):
        context.setJobGroup(group, "the joins of this test")
        try:
            statistics: Any = asked
            left.natural_asof(right, order=ORDER, statistics=statistics, order_check="ignore")
            assert bool(context.statusTracker().getJobIdsForGroup(group)) is (asked is not None)
        finally:
            context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]  # None clears it


def test_a_word_that_is_not_a_statistics_option_is_reported(spark: SparkSession) -> None:
    left, right = sides(spark)
    wrong: Any = "smaple"
    with pytest.raises(JoinSpecError, match="statistics 'smaple' is not one of 'sample'") as caught:
        left.natural_asof(right, order=ORDER, statistics=wrong)
    assert "did you mean 'sample'" in str(caught.value)
    with pytest.raises(JoinSpecError, match="statistics 'smaple' is not one of 'sample'"):
        left.asof_join(right, AsofSpec([("k", "k")], order=ORDER), statistics=wrong, order_check="ignore")


@pytest.mark.parametrize("wide", [10, 10_000])
def test_rows_from_python_have_the_size_of_their_values(spark: SparkSession, wide: int) -> None:
    rows = [(i, chr(97 + i % 26) * wide) for i in range(3_000)]
    size = facts_module.estimate_bytes(spark.createDataFrame(rows, "a long, b string").filter("a >= 0"))
    assert size is not None
    assert 0.5 * 3_000 * wide < size < 3 * 3_000 * (wide + 40)
