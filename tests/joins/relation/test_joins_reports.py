"""What a join tells of itself: match counts, fan-out, explanation and lineage."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import pytest

import weft
from join_cases import DIRECTED, relation_of, rows_of
from weft import (
    ArgumentError,
    JoinProjection,
    JoinSpec,
    MatchStats,
    build_join_spec,
    explain_join,
    inspect_keys,
)
from weft.testing import T, Table, assert_rows_equal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LEFT = T("""
    id | v
    1  | a
    1  | b
    2  | c
    3  | d
       | e
""")
RIGHT = T("""
    id | w
    1  | x
    1  | y
    2  | z
    9  | q
""")
COUNTS = {
    "inner": {"rows": 5, "matched": 5, "left_only": 0, "right_only": 0},
    "left": {"rows": 7, "matched": 5, "left_only": 2, "right_only": 0},
    "right": {"rows": 6, "matched": 5, "left_only": 0, "right_only": 1},
    "full": {"rows": 8, "matched": 5, "left_only": 2, "right_only": 1},
    "semi": {"rows": 3},
    "anti": {"rows": 2},
}


@pytest.mark.parametrize("how", COUNTS)
def test_match_stats_count_while_the_job_runs(any_spark: SparkSession, how: str) -> None:
    left, right = relation_of(any_spark, LEFT), relation_of(any_spark, RIGHT)
    natural, directed = MatchStats(), MatchStats()
    first = getattr(left, f"natural_{how}")(right, stats=natural)
    second = getattr(left, DIRECTED[how])(right, JoinSpec([("id", "id")]), stats=directed)
    assert len(first.df.collect()) == second.df.count() == COUNTS[how]["rows"]
    assert natural.get() == directed.get() == COUNTS[how]


def test_match_stats_of_a_cross_join(any_spark: SparkSession) -> None:
    stats = MatchStats()
    left, right = relation_of(any_spark, LEFT), relation_of(any_spark, RIGHT)
    left.cross_join(right, suffixes=("", "_r"), stats=stats).df.collect()
    assert stats.get() == {"rows": 20, "matched": 20, "left_only": 0, "right_only": 0}


def test_match_stats_beside_promises_and_an_indicator(any_spark: SparkSession) -> None:
    stats = MatchStats()
    left, right = relation_of(any_spark, LEFT), relation_of(any_spark, RIGHT)
    spec = JoinSpec([("id", "id")], relationship="m:m", unmatched=None)
    result = left.full_outer(right, spec, stats=stats, project=JoinProjection(indicator="side"))
    reported = sorted(row[-1] for row in rows_of(result.df))
    assert stats.get() == {
        "rows": 8,
        "matched": reported.count("both"),
        "left_only": reported.count("left_only"),
        "right_only": reported.count("right_only"),
    }


def test_match_stats_serve_one_join(any_spark: SparkSession) -> None:
    stats = MatchStats()
    left, right = relation_of(any_spark, LEFT), relation_of(any_spark, RIGHT)
    left.natural_inner(right, stats=stats)
    with pytest.raises(ArgumentError, match="already counts another join"):
        left.natural_left(right, stats=stats)


def test_match_stats_without_a_join_say_so() -> None:
    with pytest.raises(ArgumentError, match="counts no join yet"):
        MatchStats().get()


def test_match_stats_before_an_action_say_so_and_do_not_hang(any_spark: SparkSession) -> None:
    stats = MatchStats()
    joined = relation_of(any_spark, LEFT).natural_left(relation_of(any_spark, RIGHT), stats=stats)
    with pytest.raises(ArgumentError, match="no action has run"):
        stats.get(timeout=0.05)
    joined.df.collect()
    assert stats.get() == stats.get(timeout=0) == COUNTS["left"]


@pytest.mark.parametrize("timeout", [-1, True, "1", float("nan")])
def test_match_stats_wait_for_a_number_of_seconds(timeout: Any) -> None:
    with pytest.raises(ArgumentError, match="timeout must be"):
        MatchStats().get(timeout=timeout)


def test_match_stats_of_a_join_that_fails_its_checks_stay_free(any_spark: SparkSession) -> None:
    stats = MatchStats()
    left, right = relation_of(any_spark, LEFT), relation_of(any_spark, RIGHT)
    with pytest.raises(weft.UnknownColumnError):
        left.inner_join(right, JoinSpec([("nope", "id")]), stats=stats)
    left.natural_inner(right, stats=stats).df.collect()
    assert stats.get() == COUNTS["inner"]


def fan_out(session: SparkSession, left: Table, right: Table, *spec: JoinSpec) -> list[Any]:
    report = inspect_keys(relation_of(session, left), relation_of(session, right), *spec)
    assert report.columns[-4:] == ("left_count", "right_count", "pair_count", "shared")
    return rows_of(report.df)


def test_inspect_keys_counts_each_key_of_either_side(any_spark: SparkSession) -> None:
    left = T("segment \n north \n north \n south")
    right = T("segment \n north \n west \n west")
    expected = [("north", 2, 1, 2, True), ("south", 1, 0, 0, False), ("west", 0, 2, 0, False)]
    assert_rows_equal(fan_out(any_spark, left, right), expected)


def test_inspect_keys_pairs_null_keys_only_when_asked(any_spark: SparkSession) -> None:
    left = T("k: long | j \n | 1 \n | 1 \n 2 | 2")
    right = T("k: long | j \n | 1 \n 2 |")
    plain = [(None, 1, 2, 1, 0, False), (2, 2, 1, 0, 0, False), (2, None, 0, 1, 0, False)]
    assert_rows_equal(fan_out(any_spark, left, right), plain)
    equal = JoinSpec([("k", "k"), ("j", "j")], nulls_equal=True)
    met = [(None, 1, 2, 1, 2, True), (2, 2, 1, 0, 0, False), (2, None, 0, 1, 0, False)]
    assert_rows_equal(fan_out(any_spark, left, right, equal), met)


def test_inspect_keys_agrees_with_the_join_it_is_about(any_spark: SparkSession) -> None:
    left, right = relation_of(any_spark, LEFT), relation_of(any_spark, RIGHT)
    pairs = sum(row[-2] for row in rows_of(inspect_keys(left, right).df))
    assert pairs == left.natural_inner(right).df.count()


def test_inspect_keys_of_keys_with_two_names_and_types(any_spark: SparkSession) -> None:
    left = T("`a.b`: integer \n 1 \n 2")
    right = T("ref: decimal(10,2) \n 1.00 \n 1.50")
    expected = [(1, 1, 1, 1, True), (2, 1, 0, 0, False), (1.5, 0, 1, 0, False)]
    found = fan_out(any_spark, left, right, JoinSpec([("`a.b`", "ref")]))
    assert_rows_equal([(float(k), *rest) for k, *rest in found], [(float(k), *rest) for k, *rest in expected])


def test_inspect_keys_refuses_a_key_called_like_a_count(any_spark: SparkSession) -> None:
    table = T("left_count \n 1")
    with pytest.raises(weft.ColumnCollisionError, match="name of a count"):
        fan_out(any_spark, table, table)


def test_explain_join_of_two_relations_prints_what_it_returns(any_spark: SparkSession) -> None:
    left, right = relation_of(any_spark, LEFT), relation_of(any_spark, RIGHT)
    out = io.StringIO()
    reported = explain_join(left, right, JoinSpec([("id", "id")]), how="left", file=out)
    assert out.getvalue() == f"{reported}\n"
    assert reported.bound
    assert reported.title == "left join"


def test_explain_join_without_a_spec_tells_that_keys_are_shared(any_spark: SparkSession) -> None:
    left, right = relation_of(any_spark, LEFT), relation_of(any_spark, RIGHT)
    reported = explain_join(left, right, file=io.StringIO())
    assert reported.to_dict()["keys"] == [{"left": "left.id", "right": "right.id", "origin": "shared", "type": "long"}]


def test_explain_join_of_a_result_is_its_lineage(any_spark: SparkSession) -> None:
    left, right = relation_of(any_spark, LEFT), relation_of(any_spark, RIGHT)
    result = left.order_by("id").natural_left(right)
    reported = explain_join(result, file=io.StringIO())
    assert result.lineage is not None
    assert reported == result.lineage.explain()
    assert reported.to_dict()["keys"][0]["origin"] == "shared"
    assert "sorted by id ascending" in str(reported)


def test_explain_join_of_a_relation_that_is_not_a_join_says_so(any_spark: SparkSession) -> None:
    with pytest.raises(ArgumentError, match="is not the result of a join"):
        explain_join(relation_of(any_spark, LEFT))


def test_explanations_do_not_depend_on_the_session(spark: SparkSession, connect: SparkSession) -> None:
    reported = []
    for session in (spark, connect):
        left, right = relation_of(session, LEFT), relation_of(session, RIGHT)
        reported.append(str(explain_join(left.natural_full(right), file=io.StringIO())))
    assert reported[0] == reported[1]


def test_lineage_holds_the_spec_of_a_natural_join(any_spark: SparkSession) -> None:
    left, right = relation_of(any_spark, LEFT), relation_of(any_spark, T("ref | w \n 1 | x"))
    result = left.natural_left(right, id="ref", relationship="m:m")
    assert result.lineage is not None
    assert result.lineage.spec == JoinSpec([("id", "ref")], relationship="m:m")
    again = left.left_outer(right, JoinSpec.from_json(result.lineage.spec.to_json()))
    assert_rows_equal(rows_of(again.df), rows_of(result.df))
    assert again.lineage is not None
    assert again.lineage.resolved.fingerprint == result.lineage.resolved.fingerprint


def test_lineage_stays_with_rows_of_the_join(any_spark: SparkSession) -> None:
    joined = relation_of(any_spark, LEFT).natural_left(relation_of(any_spark, RIGHT))
    for step in (
        joined.filter("id > 1"),
        joined.limit(2),
        joined.order_by("id"),
        joined.order_by("v").limit(1),
    ):
        assert step.lineage is joined.lineage
        assert explain_join(step, file=io.StringIO()).title == "left join"


def test_lineage_ends_where_the_relation_changes(any_spark: SparkSession) -> None:
    left, right = relation_of(any_spark, LEFT), relation_of(any_spark, RIGHT)
    assert left.lineage is None
    joined = left.natural_left(right)
    for step in (joined.select("id"), joined.rename(id="key"), joined.with_columns(x="1"), joined.distinct()):
        assert step.lineage is None
    with pytest.raises(ArgumentError, match="was changed after it") as caught:
        explain_join(joined.select("id"))
    assert "filter, limit and order_by keep its lineage" in caught.value.help


def test_explanations_name_the_method_that_was_called(any_spark: SparkSession) -> None:
    left, right = relation_of(any_spark, LEFT), relation_of(any_spark, RIGHT)
    spec = JoinSpec([("id", "id")])
    for how, method in DIRECTED.items():
        for result, name in (
            (getattr(left, f"natural_{how}")(right), f"natural_{how}"),
            (getattr(left, method)(right, spec), method),
        ):
            reported = explain_join(result, file=io.StringIO()).to_dict()
            assert reported["method"].partition(" ")[0] == name
    order = weft.AsofOrder(left="id", right="at")
    nearest = left.natural_asof(right.rename(id="at"), order=order, v="w", order_check="ignore")
    assert explain_join(nearest, file=io.StringIO()).to_dict()["method"].startswith("natural_asof")


def test_explain_join_refuses_what_it_would_ignore(any_spark: SparkSession) -> None:
    left, right = relation_of(any_spark, LEFT), relation_of(any_spark, RIGHT)
    spec, project = JoinSpec([("id", "id")]), JoinProjection(suffixes=("", "_r"))
    joined = left.natural_left(right)
    calls: list[tuple[tuple[Any, ...], dict[str, Any], str]] = [
        ((spec, right), {}, "right="),
        ((spec,), {"spec": spec}, "spec="),
        ((spec,), {"project": project}, "project="),
        ((joined,), {"how": "left"}, "how="),
        ((joined,), {"project": project, "how": "inner"}, "how= or project="),
    ]
    for given, named, reported in calls:
        with pytest.raises(ArgumentError, match=f"takes no {reported}") as caught:
            explain_join(*given, **named)
        assert caught.value.code == "W0305"


def test_build_join_spec_is_what_a_natural_join_uses(any_spark: SparkSession) -> None:
    left, right = relation_of(any_spark, LEFT), relation_of(any_spark, RIGHT)
    spec = build_join_spec(left, right)
    assert spec == JoinSpec([("id", "id")])
    assert_rows_equal(rows_of(left.left_outer(right, spec).df), rows_of(left.natural_left(right).df))
