"""Promises of a join: how a broken one is reported, and that no plan around it hides the breach."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

import weft
from join_cases import relation_of, rows_of
from weft import AsofSpec, JoinContractError, JoinSpec
from weft.expr.spark.frames import functions_of
from weft.joins.relation import Relation
from weft.testing import T

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

LEFT = T("""
    order id | region | v
    7        | EU     | a
    8        | US     | b
""")
DOUBLED = T("""
    ref | region | w
    7   | EU     | x
    7   | EU     | y
    8   | US     | z
""")
LONELY = T("""
    ref | region | w
    8   | US     | z
""")
ASKED_FOR = T("""
    ref | region | w
    7   | EU     | x
    8   | US     | z
    9   | EU     | p
    9   | EU     | q
""")
KEYS = [("order id", "ref"), ("region", "region")]


def failure_of(run: Callable[[], Any]) -> tuple[str, JoinContractError]:
    """Return the text of the failed job and what `contract_failure` makes of it."""
    with pytest.raises(Exception, match=r"\[JOIN_CONTRACT\]") as caught:
        run()
    broken = weft.contract_failure(caught.value)
    assert broken is not None
    return str(caught.value), broken


def many_to_one(session: SparkSession, right: Any = DOUBLED, **options: Any) -> Relation:
    spec = JoinSpec(KEYS, relationship="m:1", **options)
    return relation_of(session, LEFT).left_outer(relation_of(session, right), spec)


def broken_ids(text: str) -> tuple[str, str] | None:
    found = re.search(r"\(spec ([0-9a-f]{12}), join ([0-9a-f]{12})\)", text)
    return None if found is None else (found[1], found[2])


def test_a_broken_relationship_names_code_key_and_fingerprint(any_spark: SparkSession) -> None:
    result = many_to_one(any_spark)
    text, broken = failure_of(result.df.collect)
    assert result.lineage is not None
    assert "[JOIN_CONTRACT] W0501 relationship 'm:1' is broken" in text
    assert result.lineage.spec is not None
    assert result.lineage.resolved.fingerprint[:12] in text
    spec, join = result.lineage.spec.fingerprint()[:12], result.lineage.resolved.fingerprint[:12]
    assert broken_ids(text) == (spec, join)
    assert broken.code == "W0501"
    assert isinstance(broken, ValueError)
    assert "`order id` = 7" in broken.message
    assert "region = 'EU'" in broken.message
    assert result.lineage.resolved.fingerprint[:12] in broken.message
    assert broken.help


def test_an_unmatched_row_names_code_key_and_fingerprint(any_spark: SparkSession) -> None:
    spec = JoinSpec(KEYS, unmatched="error")
    result = relation_of(any_spark, LEFT).inner_join(relation_of(any_spark, LONELY), spec)
    text, broken = failure_of(result.df.collect)
    assert result.lineage is not None
    assert "[JOIN_CONTRACT] W0502 a left row matches no right row" in text
    assert broken.code == "W0502"
    assert "`order id` = 7" in broken.message
    assert "region = 'EU'" in broken.message
    assert result.lineage.resolved.fingerprint[:12] in broken.message


def test_a_null_in_the_key_is_shown_as_null(any_spark: SparkSession) -> None:
    left = relation_of(any_spark, T("k: long | v \n | a"))
    right = relation_of(any_spark, T("k: long | w \n 1 | x"))
    _, broken = failure_of(left.natural_inner(right, unmatched="left").df.collect)
    assert "k = null" in broken.message


def test_a_text_key_may_hold_what_looks_like_our_own_message(any_spark: SparkSession) -> None:
    trick = "[JOIN_CONTRACT] W0501 (join 000000000000)"
    left = relation_of(any_spark, T(f'k: string | v \n "{trick}" | a'))
    right = relation_of(any_spark, T("k: string | w \n x | x"))
    _, broken = failure_of(left.natural_inner(right, unmatched="left").df.collect)
    assert broken.code == "W0502"


def test_actions_of_a_relation_raise_the_broken_promise_itself(any_spark: SparkSession) -> None:
    joined = many_to_one(any_spark)
    for action in (joined.count, joined.collect, joined.head, joined.show, joined.to_pandas, joined.to_arrow):
        with pytest.raises(JoinContractError) as caught:
            action()
        assert caught.value.code == "W0501"
        assert caught.value.__suppress_context__
        assert len(str(caught.value).splitlines()) == 2
    with pytest.raises(JoinContractError), weft.coded_errors():
        joined.df.collect()
    kept = relation_of(any_spark, LEFT)
    assert kept.count() == len(kept.collect()) == kept.to_pandas().shape[0] == kept.to_arrow().num_rows
    assert len(kept.head(1)) == 1


def test_another_failure_is_not_a_contract_failure(any_spark: SparkSession) -> None:
    with pytest.raises(Exception, match="no promise") as caught:
        any_spark.sql("SELECT raise_error('no promise of ours')").collect()
    assert weft.contract_failure(caught.value) is None


ACTIONS: dict[str, Callable[[Relation], Any]] = {
    "collect": lambda r: r.df.collect(),
    "count": lambda r: r.df.count(),
    "one column of the left": lambda r: r.select("v").df.collect(),
    "one column of the right": lambda r: r.select("w").df.collect(),
    "a filter on the other key": lambda r: r.df.filter("`order id` = 8").collect(),
    "a filter on a right column": lambda r: r.df.filter("w = 'z'").collect(),
    "a filter that keeps nothing": lambda r: r.df.filter("v = 'nobody'").collect(),
    "an aggregate": lambda r: r.df.groupBy("region").count().collect(),
    "a literal": lambda r: r.df.selectExpr("1 AS one").collect(),
    "a second join": lambda r: r.df.join(r.df.select("v"), "v").collect(),
    "distinct": lambda r: r.df.select("region").distinct().collect(),
}


METHODS = {"inner": "inner_join", "left": "left_outer", "right": "right_outer", "full": "full_outer"}
FEW = ("count", "one column of the left", "a filter on the other key", "a filter that keeps nothing")


def broken_relationship(session: SparkSession, how: str) -> Relation:
    left, right = relation_of(session, LEFT), relation_of(session, DOUBLED)
    result: Relation = getattr(left, METHODS[how])(right, JoinSpec(KEYS, relationship="m:1"))
    return result


def unmatched_left(session: SparkSession) -> Relation:
    left, right = relation_of(session, LEFT), relation_of(session, LONELY)
    return left.inner_join(right, JoinSpec(KEYS, unmatched="error"))


@pytest.mark.parametrize("action", ACTIONS)
def test_a_broken_relationship_fails_whatever_is_read(spark: SparkSession, action: str) -> None:
    result = broken_relationship(spark, "inner")
    assert failure_of(lambda: ACTIONS[action](result))[1].code == "W0501"


@pytest.mark.parametrize("action", ACTIONS)
def test_a_broken_promise_of_matches_fails_whatever_is_read(spark: SparkSession, action: str) -> None:
    result = unmatched_left(spark)
    assert failure_of(lambda: ACTIONS[action](result))[1].code == "W0502"


@pytest.mark.parametrize("action", FEW)
def test_a_broken_promise_fails_over_connect_whatever_is_read(connect: SparkSession, action: str) -> None:
    assert failure_of(lambda: ACTIONS[action](broken_relationship(connect, "inner")))[1].code == "W0501"
    assert failure_of(lambda: ACTIONS[action](unmatched_left(connect)))[1].code == "W0502"


@pytest.mark.parametrize("how", ["left", "right", "full"])
@pytest.mark.parametrize("action", FEW)
def test_a_broken_relationship_fails_in_every_kind_of_join(spark: SparkSession, how: str, action: str) -> None:
    result = broken_relationship(spark, how)
    assert failure_of(lambda: ACTIONS[action](result))[1].code == "W0501"


@pytest.mark.parametrize("action", FEW)
def test_a_relationship_with_a_predicate_fails_whatever_is_read(spark: SparkSession, action: str) -> None:
    result = many_to_one(spark, predicates=[weft.ExpressionPredicate("right.w <> 'nobody'")])
    assert failure_of(lambda: ACTIONS[action](result))[1].code == "W0501"


@pytest.mark.parametrize("how", METHODS)
def test_a_duplicate_that_nobody_asks_for_does_not_fail(any_spark: SparkSession, how: str) -> None:
    left, right = relation_of(any_spark, LEFT), relation_of(any_spark, ASKED_FOR)
    result = getattr(left, METHODS[how])(right, JoinSpec(KEYS, relationship="m:1"))
    assert result.df.count() == (4 if how in ("right", "full") else 2)
    assert result.df.filter("region = 'EU'").count() == (3 if how in ("right", "full") else 1)


@pytest.mark.parametrize("condition", ["w = 'p'", "region = 'EU'", "w IS NOT NULL", "ref = 9"])
def test_a_duplicate_that_nobody_asks_for_does_not_fail_under_a_filter(spark: SparkSession, condition: str) -> None:
    spec = JoinSpec(KEYS, relationship="m:1")
    project = weft.JoinProjection(right_keys="keep", suffixes=("", "_r"))
    result = relation_of(spark, LEFT).full_outer(relation_of(spark, ASKED_FOR), spec, project=project)
    assert len(result.df.filter(condition).collect()) > 0


def test_a_filter_below_the_join_narrows_the_promise(any_spark: SparkSession) -> None:
    right = relation_of(any_spark, DOUBLED)
    narrow = weft.relation(right.df.filter(functions_of(right.df).col("w") != "y"))
    result = relation_of(any_spark, LEFT).left_outer(narrow, JoinSpec(KEYS, relationship="1:1", unmatched="both"))
    assert len(rows_of(result.df)) == 2


def test_the_columns_that_checks_need_do_not_show(any_spark: SparkSession) -> None:
    result = many_to_one(any_spark, ASKED_FOR, predicates=[weft.ExpressionPredicate("right.w <> 'nobody'")])
    assert tuple(result.df.columns) == result.columns == ("order id", "region", "v", "w")


def test_a_promise_on_a_relation_joined_with_itself(any_spark: SparkSession) -> None:
    same = relation_of(any_spark, DOUBLED)
    spec = JoinSpec([("ref", "ref")], relationship="m:1")
    assert failure_of(
        same.semi_join(same, JoinSpec([("ref", "ref")])).left_outer(same, spec, suffixes=("", "_r")).df.count
    )


def test_two_promises_in_one_chain_are_distinguished(any_spark: SparkSession) -> None:
    left, right = relation_of(any_spark, LEFT), relation_of(any_spark, ASKED_FOR)
    first = left.left_outer(right, JoinSpec(KEYS, relationship="m:1"))
    second = first.inner_join(
        relation_of(any_spark, DOUBLED), JoinSpec(KEYS, relationship="m:1"), suffixes=("", "_again")
    )
    assert second.lineage is not None
    _, broken = failure_of(second.df.collect)
    assert second.lineage.resolved.fingerprint[:12] in broken.message


TRADES = T("""
    symbol | at
    A      | 2
    A      | 3
    B      | 5
""")
QUOTES = T("""
    symbol | quoted
    A      | 1
    B      | 1
    B      | 9
""")
BROKEN = {
    "W0502 right, left": ({"unmatched": "right"}, "a right row matches no left row: symbol = 'B'"),
    "W0502 right, inner": ({"unmatched": "both", "how": "inner"}, "a right row matches no left row: symbol = 'B'"),
    "W0502 right, right": ({"unmatched": "error", "how": "right"}, "a right row matches no left row: symbol = 'B'"),
    "W0502 left, right": (
        {"unmatched": "left", "how": "right", "tolerance": 3}, "a left row matches no right row: symbol = 'B'"
    ),
    "W0501 left": ({"relationship": "1:1"}, "a right row matches several left rows: symbol = 'A'"),
    "W0501 full": ({"relationship": "1:m", "how": "full"}, "a right row matches several left rows: symbol = 'A'"),
}  # fmt: skip


@pytest.mark.parametrize("broken", BROKEN)
@pytest.mark.parametrize("strategy", ["kernel", "union"])
def test_promises_about_right_rows_of_an_as_of_join(spark: SparkSession, strategy: str, broken: str) -> None:
    options, message = BROKEN[broken]
    spec = AsofSpec("symbol", order=("at", "quoted"), **options)  # type: ignore[arg-type]
    result = relation_of(spark, TRADES).asof_join(relation_of(spark, QUOTES), spec, strategy=strategy)
    text, _ = failure_of(result.df.collect)
    assert f"{broken[:5]} " in text
    assert message in text


@pytest.mark.parametrize("how", ["inner", "left", "right", "full"])
def test_an_as_of_join_that_keeps_its_promises(any_spark: SparkSession, how: Any) -> None:
    trades, quotes = T("symbol | at \n A | 2 \n B | 5"), T("symbol | quoted \n A | 1 \n B | 5")
    spec = AsofSpec("symbol", order=("at", "quoted"), how=how, relationship="1:1", unmatched="both")  # type: ignore[arg-type]
    result = relation_of(any_spark, trades).asof_join(relation_of(any_spark, quotes), spec)
    assert sorted(rows_of(result.df)) == [("A", 2, 1), ("B", 5, 5)]
    same = relation_of(any_spark, quotes).rename(quoted="at").with_columns(n="at")
    result = relation_of(any_spark, trades).natural_asof(same, order="at", by="symbol", how=how, skip_nulls="n")
    assert sorted(rows_of(result.df)) == [("A", 2, 1, 1), ("B", 5, 5, 5)]
