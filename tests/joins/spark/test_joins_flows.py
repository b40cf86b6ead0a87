"""Joins in chains, as they are written at work."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import weft
from join_cases import relation_of, rows_of
from weft import ColumnPredicate, ExpressionPredicate, JoinProjection, JoinSpec
from weft.testing import T, assert_rows_equal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_events_meet_segments_and_targets(any_spark: SparkSession) -> None:
    events = T("""
        event | user_id | channel | occurred_at
        1     | u1      | email   | 2024-03-01T09:00
        2     | u2      | ads     | 2024-03-01T10:00
        3     | u1      | email   | 2024-03-02T09:00
        4     | u3      | ads     | 2024-03-02T10:00
    """)
    segments = T("""
        user_id | segment_start    | region
        u1      | 2024-02-01T00:00 | NA
        u2      | 2024-02-15T00:00 | EMEA
        u3      | 2024-04-01T00:00 | APAC
    """)
    targets = T("""
        channel | region | quota_amount
        email   | NA     | 900
        ads     | EMEA   | 1300
        ads     | APAC   | 5000
    """)
    since = JoinSpec([("user_id", "user_id")], [ColumnPredicate("occurred_at", ">=", "segment_start")])
    quota = JoinSpec([("channel", "channel"), ("region", "region")], [ExpressionPredicate("quota_amount >= ?", [1000])])
    result = (
        relation_of(any_spark, events)
        .left_outer(relation_of(any_spark, segments), since, project=JoinProjection(drop=["segment_start"]))
        .left_outer(relation_of(any_spark, targets), quota)
        .select("event", "region", "quota_amount")
    )
    expected = [(1, "NA", None), (2, "EMEA", 1300), (3, "NA", None), (4, None, None)]
    assert_rows_equal(rows_of(result.df), expected)


def test_a_backlog_is_open_orders_without_a_shipment_and_their_risk(any_spark: SparkSession) -> None:
    orders = T("""
        order_id | status | customer
        1        | open   | C1
        2        | open   | C2
        3        | closed | C1
        4        | open   | C3
    """)
    shipments = T("order_id | carrier \n 2 | DHL")
    risk = T("customer | risk \n C1 | high")
    backlog = (
        relation_of(any_spark, orders)
        .filter("status = 'open'")
        .anti_join(relation_of(any_spark, shipments), JoinSpec.from_kwargs("order_id"))
        .natural_left(relation_of(any_spark, risk))
    )
    assert backlog.columns == ("order_id", "status", "customer", "risk")
    assert_rows_equal(rows_of(backlog.df), [(1, "open", "C1", "high"), (4, "open", "C3", None)])


def test_features_of_active_customers_come_from_three_relations(any_spark: SparkSession) -> None:
    customers = relation_of(any_spark, T("customer_id | name \n 1 | Ann \n 2 | Bob \n 3 | Cy"))
    active = relation_of(any_spark, T("customer_id \n 1 \n 3 \n 3"))
    spend = relation_of(any_spark, T("customer_id | spend \n 1 | 10 \n 2 | 20 \n 3 | 30"))
    visits = relation_of(any_spark, T("Customer_Id | visits \n 1 | 5 \n 3 | 7"))
    scores = relation_of(any_spark, T("customer_id | score: double \n 3 | 0.5 \n 1 | 0.25"))
    features = (
        customers.semi_join(active, JoinSpec([("customer_id", "customer_id")]))
        .natural_inner(spend)
        .natural_inner(visits, relationship="1:1")
        .natural_inner(scores, unmatched="both")
    )
    assert features.columns == ("customer_id", "name", "spend", "visits", "score")
    assert_rows_equal(rows_of(features.df), [(1, "Ann", 10, 5, 0.25), (3, "Cy", 30, 7, 0.5)])


def test_the_collision_of_bookings_and_fulfillments_names_its_columns(any_spark: SparkSession) -> None:
    bookings = relation_of(any_spark, T("booking | sku | quantity | unit_price \n A-100 | S | 1 | 2"))
    filled = relation_of(any_spark, T("booking | sku | quantity | unit_price \n A-100 | S | 1 | 2"))
    with pytest.raises(weft.ColumnCollisionError, match="quantity, sku, unit_price") as caught:
        bookings.inner_join(filled, JoinSpec([("booking", "booking")]))
    assert "suffixes=('', '_right')" in caught.value.help
    result = bookings.inner_join(filled, JoinSpec([("booking", "booking")]), suffixes=("", "_right"))
    assert len(result.columns) == 7


def test_two_columns_equal_but_for_case_are_refused_when_wrapped(any_spark: SparkSession) -> None:
    frame = any_spark.sql("SELECT 1 AS Id, 2 AS ID")
    with pytest.raises(weft.AmbiguousColumnError) as caught:
        weft.relation(frame)
    assert caught.value.code == "W0106"
    assert "'Id'" in str(caught.value)
    assert "'ID'" in str(caught.value)


def test_a_case_sensitive_session_joins_exact_names_only(any_spark: SparkSession) -> None:
    any_spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        both = weft.relation(any_spark.sql("SELECT 1 AS Id, 2 AS ID, 'a' AS v"))
        other = weft.relation(any_spark.sql("SELECT 1 AS Id, 'b' AS w"))
        result = both.natural_inner(other)
        assert result.columns == ("Id", "ID", "v", "w")
        assert_rows_equal(rows_of(result.df), [(1, 2, "a", "b")])
        with pytest.raises(weft.UnknownColumnError):
            both.natural_inner(other, v="W")
    finally:
        any_spark.conf.set("spark.sql.caseSensitive", "false")


@pytest.mark.parametrize("method", ["left_outer", "full_outer", "semi_join", "inner_join", "anti_join"])
@pytest.mark.parametrize("keyword", ["how", "method", "left", "spec", "self"])
def test_a_directed_join_takes_no_keyword_for_a_key(spark: SparkSession, method: str, keyword: str) -> None:
    left, right = relation_of(spark, T("id | v \n 1 | a")), relation_of(spark, T("id | w \n 1 | x"))
    reported = "takes no keyword how=" if keyword == "how" else "takes its keys from a JoinSpec, not from keywords"
    with pytest.raises(weft.ArgumentError, match=reported):
        getattr(left, method)(right, JoinSpec([("id", "id")]), **{keyword: "anti"})
