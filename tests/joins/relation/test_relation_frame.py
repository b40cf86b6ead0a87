"""Relations as frames: columns are chosen, renamed, computed and sorted by checked names."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import TYPE_CHECKING, Any

import pytest

import weft
from join_cases import assert_schema_is_true, frame_of, relation_of, rows_of
from weft import ArgumentError, ColumnCollisionError, UnknownColumnError
from weft.errors import AmbiguousColumnError, ExpressionError
from weft.expr.spark.frames import functions_of
from weft.joins.relation import Relation
from weft.testing import T, assert_rows_equal

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

ROWS = [(1, 10, "x", "p"), (2, 20, "y", None), (2, 20, "y", None)]
TABLE = T("""
    id | a.b | order id | c`d
    1  | 10  | x        | p
    2  | 20  | y        |
    2  | 20  | y        |
""")

STEPS: dict[str, tuple[Callable[[Relation], Relation], tuple[str, ...], list[Any]]] = {
    "select": (lambda r: r.select("ID", "a.b"), ("id", "a.b"), [(1, 10), (2, 20), (2, 20)]),
    "select in backticks": (lambda r: r.select("`a.b`", "`c``d`"), ("a.b", "c`d"), [(10, "p"), (20, None), (20, None)]),
    "drop": (lambda r: r.drop("a.b", "c`d"), ("id", "order id"), [(1, "x"), (2, "y"), (2, "y")]),
    "rename": (lambda r: r.rename({"a.b": "ab"}, id="Key").select("Key", "ab"), ("Key", "ab"), [(1, 10), (2, 20), (2, 20)]),
    "rename a to b and b to a": (
        lambda r: r.select("id", "order id").rename({"order id": "id", "id": "order id"}),
        ("order id", "id"),
        [(1, "x"), (2, "y"), (2, "y")],
    ),
    "filter by a text": (lambda r: r.filter("`a.b` > 10 AND `order id` = 'y'").select("id"), ("id",), [(2,), (2,)]),
    "filter by a Column": (lambda r: r.filter(functions_of(r.df).col("id") == 1).select("id"), ("id",), [(1,)]),
    "a computed column": (
        lambda r: r.with_columns(twice="`a.b` * 2").select("id", "twice"), ("id", "twice"), [(1, 20), (2, 40), (2, 40)],
    ),
    "a replaced column keeps its place and its name": (
        lambda r: r.select("id", "a.b").with_columns(ID="id + 1"), ("id", "a.b"), [(2, 10), (3, 20), (3, 20)],
    ),
    "a column under an odd name": (
        lambda r: r.with_columns({"x.y": "id + 1"}).select("x.y"), ("x.y",), [(2,), (3,), (3,)],
    ),
    "select with an expression": (
        lambda r: r.select("id", twice="`a.b` * 2", a="1"), ("id", "twice", "a"), [(1, 20, 1), (2, 40, 1), (2, 40, 1)],
    ),
    "select with Columns": (
        lambda r: r.select(functions_of(r.df).col("`a.b`").alias("n"), "id", up=functions_of(r.df).col("id") + 1),
        ("n", "id", "up"),
        [(10, 1, 2), (20, 2, 3), (20, 2, 3)],
    ),
    "select computes a column under the name of another": (lambda r: r.select(id="`a.b`"), ("id",), [(10,), (20,), (20,)]),
    "groups": (
        lambda r: r.group_by("ID").agg(n="COUNT(*)", total="SUM(`a.b`) + 1"), ("id", "n", "total"), [(1, 1, 11), (2, 2, 41)],
    ),
    "groups by two columns": (
        lambda r: r.group_by("a.b", "id").agg({"x.y": "COUNT(`c``d`)"}), ("a.b", "id", "x.y"), [(10, 1, 1), (20, 2, 0)],
    ),
    "one group of all rows": (lambda r: r.group_by().agg(n="COUNT(*)"), ("n",), [(3,)]),
    "an aggregate as a Column": (
        lambda r: r.group_by("id").agg(most=functions_of(r.df).max("`a.b`")), ("id", "most"), [(1, 10), (2, 20)],
    ),
    "distinct": (lambda r: r.distinct().select("id"), ("id",), [(1,), (2,)]),
    "limit": (lambda r: r.order_by(("id", False)).limit(1).select("id"), ("id",), [(2,)]),
    "union": (lambda r: r.select("id").union(r.select("id")), ("id",), [(1,), (2,), (2,)] * 2),
    "repartition": (lambda r: r.repartition(3, "a.b").select("id"), ("id",), [(1,), (2,), (2,)]),
    "sample of all": (lambda r: r.sample(1.0).select("id"), ("id",), [(1,), (2,), (2,)]),
}  # fmt: skip


@pytest.mark.parametrize(("step", "columns", "rows"), STEPS.values(), ids=STEPS)
def test_a_step_gives_the_columns_and_rows_it_says(
    any_spark: SparkSession, step: Callable[[Relation], Relation], columns: tuple[str, ...], rows: list[Any]
) -> None:
    before = relation_of(any_spark, TABLE)
    after = step(before)
    found = rows_of(after.df)
    assert after.columns == columns
    assert_schema_is_true(after, found)
    assert_rows_equal(found, rows, columns, exact_types=False)
    assert before.columns == TABLE.schema.names  # the relation it came from is as it was
    assert after.session is before.session


def test_the_frame_comes_back_as_it_was(any_spark: SparkSession) -> None:
    frame = frame_of(any_spark, TABLE)
    assert weft.relation(frame).df is frame
    assert_rows_equal(rows_of(frame), ROWS)


def test_a_relation_cannot_be_changed(spark: SparkSession) -> None:
    relation: Any = relation_of(spark, TABLE)
    with pytest.raises(FrozenInstanceError):
        relation.df = None


def test_a_relation_prints_its_columns(spark: SparkSession) -> None:
    relation = relation_of(spark, T("id | v \n 1 | a"))
    assert str(relation) == repr(relation) == "Relation(id: long, v: string)"


@pytest.mark.parametrize("name", ["natural_left", "natural_anti", "left_outer", "semi_join"])
def test_the_help_of_a_method_shows_parameters_and_an_example(name: str) -> None:
    reported = getattr(Relation, name).__doc__
    for part in ("Parameters\n", "project, suffixes\n", "stats\n", f"orders.{name}(customers, "):
        assert part in reported


def test_a_computed_column_ends_the_order_marker_and_a_named_one_keeps_it(spark: SparkSession) -> None:
    ordered = relation_of(spark, TABLE).order_by("id", "a.b")
    assert ordered.select("id", twice="`a.b` * 2").ordering == (("id", True),)
    assert ordered.select(id="`a.b`").ordering == ()
    assert ordered.select("id", "a.b", twice="id").ordering == (("id", True), ("a.b", True))
    assert ordered.group_by("id").agg(n="COUNT(*)").ordering == ()


def test_groups_say_what_to_call(spark: SparkSession) -> None:
    assert "by 'id': call agg(...)" in repr(relation_of(spark, TABLE).group_by("id"))


def test_a_notebook_shows_columns_and_types_and_starts_no_job(spark: SparkSession) -> None:
    table = T("""
        <b>id:long | v:string
        1          | a
    """)
    relation = relation_of(spark, table)
    spark.sparkContext.setJobGroup("weft-html", "the page of this test")
    try:
        page = relation.order_by(("v", False))._repr_html_()
        assert spark.sparkContext.statusTracker().getJobIdsForGroup("weft-html") == []
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]  # None clears it
    assert "&lt;b&gt;id<br><small>long</small>" in page
    assert "2 columns; ordered by v descending; no job has run; show() prints rows" in page
    assert "<td>" not in page


WRONG: dict[str, tuple[Callable[[Any], Any], type[Exception]]] = {
    "select nothing": (lambda r: r.select(), ArgumentError),
    "select a number": (lambda r: r.select(1), ArgumentError),
    "drop an unknown column": (lambda r: r.drop("nope"), UnknownColumnError),
    "drop every column": (lambda r: r.drop(*r.columns), ArgumentError),
    "rename an unknown column": (lambda r: r.rename(nope="x"), UnknownColumnError),
    "rename to nothing": (lambda r: r.rename(id=""), ArgumentError),
    "order by nothing": (lambda r: r.order_by(), ArgumentError),
    "order by an unknown column": (lambda r: r.order_by("nope"), UnknownColumnError),
    "the same column twice": (lambda r: r.with_columns(x="id", X="id"), ColumnCollisionError),
    "a union with a text": (lambda r: r.union("r"), ArgumentError),
    "a limit that is a text": (lambda r: r.limit("a"), ArgumentError),
    "a negative limit": (lambda r: r.limit(-1), ArgumentError),
    "no partition": (lambda r: r.repartition(0), ArgumentError),
    "more than all rows": (lambda r: r.sample(2.0), ArgumentError),
    "a column that is a number": (lambda r: r.with_columns(z=5), ArgumentError),
    "a filter that is a bool": (lambda r: r.filter(True), ArgumentError),
    "a column without a name": (lambda r: r.with_columns({"": "1"}), ArgumentError),
    "a column selected twice": (lambda r: r.select("id", "ID"), ColumnCollisionError),
    "a sort order that is a text": (lambda r: r.order_by(("id", "desc")), ArgumentError),
    "select an expression without a name": (lambda r: r.select("id + 1"), UnknownColumnError),
    "select an expression with an unknown column": (lambda r: r.select(x="nope + 1"), ExpressionError),
    "select an aggregate": (lambda r: r.select(x="SUM(id)"), ExpressionError),
    "select a name and an expression of that name": (lambda r: r.select("id", ID="1"), AmbiguousColumnError),
    "group by a column twice": (lambda r: r.group_by("id", "ID"), ColumnCollisionError),
    "group by an unknown column": (lambda r: r.group_by("nope"), UnknownColumnError),
    "group by a number": (lambda r: r.group_by(1), ArgumentError),
    "no aggregate": (lambda r: r.group_by("id").agg(), ArgumentError),
    "an aggregate that is a number": (lambda r: r.group_by("id").agg(n=5), ArgumentError),
    "an aggregate that is a constant": (lambda r: r.group_by("id").agg(n="1"), ExpressionError),
    "an aggregate of single rows": (lambda r: r.group_by("id").agg(n="SUM(id) + id"), ExpressionError),
    "an aggregate with the name of a group": (lambda r: r.group_by("id").agg(ID="COUNT(*)"), ColumnCollisionError),
    "an aggregate without a name": (lambda r: r.group_by("id").agg({"": "COUNT(*)"}), ArgumentError),
    "sorted by nothing": (lambda r: r.check_sorted(), ArgumentError),
    "sorted by an unknown column": (lambda r: r.check_sorted("nope"), UnknownColumnError),
}


@pytest.mark.parametrize(("call", "kind"), WRONG.values(), ids=WRONG)
def test_a_step_that_means_nothing_is_refused(
    spark: SparkSession, call: Callable[[Any], Any], kind: type[Exception]
) -> None:
    with pytest.raises(kind) as caught:
        call(relation_of(spark, TABLE))
    assert isinstance(caught.value, weft.WeftError)
    assert caught.value.help
