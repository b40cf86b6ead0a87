"""The order marker of a relation: what keeps it, cuts it and clears it."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

import pytest

import weft
from join_cases import relation_of, rows_of
from weft import JoinSpec
from weft.expr.spark.frames import functions_of
from weft.joins.relation import Relation
from weft.testing import T

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

TABLE = T("""
    k | ts | v
    2 | 5  | a
    1 | 9  | b
    1 | 7  | c
""")
BOTH = (("k", True), ("ts", False))
ONE = (("k", True),)
OTHER = T("k | w \n 1 | x")


def doubled(relation: Relation) -> Relation:
    return relation.with_columns(twice=functions_of(relation.df).col("v"))


def ts_replaced(relation: Relation) -> Relation:
    return relation.with_columns(ts=functions_of(relation.df).lit(0))


def k_replaced(relation: Relation) -> Relation:
    return relation.with_columns(K=functions_of(relation.df).lit(0))


ROWS: dict[str, tuple[Callable[[Relation], Relation], tuple[tuple[str, bool], ...]]] = {
    "filter keeps it": (lambda r: r.filter("ts > 5"), BOTH),
    "filter by a Column keeps it": (lambda r: r.filter(functions_of(r.df).col("ts") > 5), BOTH),
    "limit keeps it": (lambda r: r.limit(2), BOTH),
    "with_columns beside it keeps it": (doubled, BOTH),
    "with_columns by a text keeps it": (lambda r: r.with_columns(twice="ts * 2"), BOTH),
    "rename renames it": (lambda r: r.rename(k="key"), (("key", True), ("ts", False))),
    "rename of another column keeps it": (lambda r: r.rename(v="value"), BOTH),
    "select of its columns keeps it": (lambda r: r.select("TS", "k"), BOTH),
    "drop of another column keeps it": (lambda r: r.drop("v"), BOTH),
    "select without its last column cuts it": (lambda r: r.select("k", "v"), ONE),
    "drop of its last column cuts it": (lambda r: r.drop("ts"), ONE),
    "drop of its first column ends it": (lambda r: r.drop("k"), ()),
    "with_columns over its last column cuts it": (ts_replaced, ONE),
    "with_columns over its first column ends it": (k_replaced, ()),
    "a natural join clears it": (lambda r: r.natural_left(relation_of(r.session, OTHER)), ()),
    "a directed join clears it": (
        lambda r: r.inner_join(relation_of(r.session, OTHER), JoinSpec([("k", "k")])),
        (),
    ),
    "a semi join clears it": (lambda r: r.natural_semi(relation_of(r.session, OTHER)), ()),
    "an anti join clears it": (lambda r: r.natural_anti(relation_of(r.session, OTHER)), ()),
    "a cross join clears it": (
        lambda r: r.cross_join(relation_of(r.session, OTHER), suffixes=("", "_r")),
        (),
    ),
    "union clears it": (lambda r: r.union(r), ()),
    "distinct clears it": (lambda r: r.distinct(), ()),
    "repartition clears it": (lambda r: r.repartition(2), ()),
    "repartition by a column clears it": (lambda r: r.repartition(2, "k"), ()),
    "sample clears it": (lambda r: r.sample(0.5, seed=1), ()),
    "a group clears it, for it leaves the relation": (
        lambda r: weft.relation(r.df.groupBy("k").count()),
        (),
    ),
    "unwrapping and wrapping again clears it": (lambda r: weft.relation(r.df), ()),
    "sorting again replaces it": (lambda r: r.order_by("v"), (("v", True),)),
}


@pytest.mark.parametrize(("step", "expected"), ROWS.values(), ids=ROWS)
def test_the_order_marker(
    any_spark: SparkSession, step: Callable[[Relation], Relation], expected: tuple[tuple[str, bool], ...]
) -> None:
    ordered = relation_of(any_spark, TABLE).order_by("k", ("ts", False))
    assert ordered.ordering == BOTH
    assert step(ordered).ordering == expected


def test_a_new_relation_has_no_marker(any_spark: SparkSession) -> None:
    assert relation_of(any_spark, TABLE).ordering == ()


def test_order_by_really_sorts(any_spark: SparkSession) -> None:
    ordered = relation_of(any_spark, TABLE).order_by("K", ("ts", False))
    assert [row[2] for row in rows_of(ordered.df)] == ["b", "c", "a"]
    assert str(ordered).endswith("ordered by k, ts)")


def test_the_marker_of_the_right_side_is_cleared_too(any_spark: SparkSession) -> None:
    left, right = relation_of(any_spark, OTHER), relation_of(any_spark, TABLE).order_by("ts")
    assert left.natural_right(right).ordering == ()


def pieces(session: SparkSession, *ranges: tuple[int, int]) -> Relation:
    """Return numbers in partitions of their own, one after another."""
    frames = [session.range(low, high, 1, 1) for low, high in ranges]
    return weft.relation(reduce(lambda a, b: a.union(b), frames))


@pytest.mark.parametrize(
    ("ranges", "is_sorted"),
    [
        (((0, 3), (3, 6)), True),
        (((0, 3), (2, 6)), True),  # 2 and 2 meet at the border
        (((0, 3), (1, 6)), False),  # each piece is sorted, their border is not
        (((0, 3), (9, 9), (1, 6)), False),  # an empty piece hides no border
        (((0, 3), (9, 9), (3, 6)), True),
        (((5, 5),), True),
    ],
)
def test_rows_are_checked_across_partitions(
    any_spark: SparkSession, ranges: tuple[tuple[int, int], ...], is_sorted: object
) -> None:
    assert pieces(any_spark, *ranges).check_sorted("id") is is_sorted


def test_rows_are_sorted_after_order_by_and_not_before(any_spark: SparkSession) -> None:
    mixed = relation_of(any_spark, T("a.b: double | v \n nan | a \n | b \n 1.0 | d \n 1.0 | c \n -1.0 | e \n | a"))
    assert not mixed.check_sorted("a.b")
    ascending = mixed.order_by("a.b", "v")
    assert ascending.check_sorted("a.b", "v")
    assert ascending.check_sorted("`a.b`")
    assert ascending.check_sorted()
    assert not ascending.check_sorted("v")
    assert not mixed.order_by(("a.b", False)).check_sorted("a.b")
    assert ascending.filter("v <> 'b'").check_sorted()


def test_many_rows_over_many_partitions_are_checked_as_a_list_is(any_spark: SparkSession) -> None:
    rows = weft.relation(any_spark.range(0, 1000, 1, 7))
    assert rows.check_sorted("id")
    assert not rows.with_columns(x="CASE WHEN id = 143 THEN 0 ELSE id END").check_sorted("x")
    assert not rows.with_columns(x="CASE WHEN id = 999 THEN 0 ELSE id END").check_sorted("x")
    assert rows.with_columns(x="CASE WHEN id = 0 THEN NULL ELSE id END").check_sorted("x")


def test_a_descending_marker_is_not_checked_as_an_ascending_one(spark: SparkSession) -> None:
    with pytest.raises(weft.ArgumentError, match="no ascending order marker"):
        relation_of(spark, TABLE).order_by("k", ("ts", False)).check_sorted()


def test_a_column_without_order_is_refused(spark: SparkSession) -> None:
    maps = weft.relation(spark.sql("SELECT map('a', 1) AS m"))
    with pytest.raises(weft.JoinTypeError, match="has no order"):
        maps.check_sorted("m")
