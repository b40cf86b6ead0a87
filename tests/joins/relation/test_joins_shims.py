"""Old spellings and warnings: what they say, where they point, and that the advice is right."""

from __future__ import annotations

import inspect
import re
import warnings
from typing import TYPE_CHECKING, Any

import pytest

import weft
from join_cases import relation_of, rows_of
from weft import ArgumentError, ColumnPredicate, ExpressionPredicate, JoinKeyWarning, JoinPredicate, JoinSpec
from weft.joins.relation import Relation
from weft.testing import T, assert_rows_equal

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

LEFT = T("""
    id | a.b | v
    1  | 10  | a
    2  | 20  | b
    3  | 30  | c
""")
RIGHT = T("""
    ID | A.B | w
    1  | 10  | x
    2  | 99  | y
    9  | 90  | z
""")
OTHER = T("""
    ref | w
    1   | x
    9   | z
""")


def advice(call: Callable[[], Any]) -> tuple[Any, str]:
    """Return what the call gives and the replacement that its warning names."""
    with pytest.warns(DeprecationWarning, match="is deprecated and will be removed in weft") as caught:
        result = call()
    assert len(caught) == 1
    found = re.search(r": call (.+)$", str(caught[0].message))
    assert found is not None
    return result, found[1]


def run(replacement: str, left: Relation, other: Relation) -> Relation:
    """Run the call that a warning advises, as a reader would after copying it."""
    result: Relation = eval(  # noqa: S307  # the text is our own message
        f"left.{replacement}", {"left": left, "other": other, "JoinSpec": JoinSpec}
    )
    return result


SHARED: dict[str, Callable[[Relation, Relation], Relation]] = {
    "join": lambda a, b: a.join(b),
    "join left": lambda a, b: a.join(b, how="left"),
    "join right": lambda a, b: a.join(b, how="right"),
    "join full": lambda a, b: a.join(b, how="full"),
    "join semi": lambda a, b: a.join(b, how="semi"),
    "join anti": lambda a, b: a.join(b, how="anti"),
    "left_join": lambda a, b: a.left_join(b),
    "inner_join on None": lambda a, b: a.inner_join(b, on=None),
    "left_outer on None": lambda a, b: a.left_outer(b, on=None),
}
ON: dict[str, Callable[[Relation, Relation], Relation]] = {
    "join by a mapping": lambda a, b: a.join(b, on={"id": "ref"}),
    "join by pairs": lambda a, b: a.join(b, how="full", on=[("id", "ref")]),
    "left_join by pairs": lambda a, b: a.left_join(b, on=[("id", "ref")]),
    "semi_join by a mapping": lambda a, b: a.semi_join(b, on={"id": "ref"}),
    "anti_join by a mapping": lambda a, b: a.anti_join(b, on={"id": "ref"}),
    "inner_join by a mapping": lambda a, b: a.inner_join(b, on={"id": "ref"}),
    "outer_join by a mapping": lambda a, b: a.outer_join(b, on={"id": "ref"}),
}
NAMED: dict[str, Callable[[Relation, Relation], Relation]] = {
    "join by a name": lambda a, b: a.join(b, on="id"),
    "join by names": lambda a, b: a.join(b, on=["id", "`a.b`"]),
}


@pytest.mark.parametrize("call", SHARED.values(), ids=SHARED)
def test_the_advice_of_a_shim_gives_the_same_rows(spark: SparkSession, call: Callable[..., Relation]) -> None:
    left, right = relation_of(spark, LEFT), relation_of(spark, RIGHT)
    old, replacement = advice(lambda: call(left, right))
    new = run(replacement, left, right)
    assert new.columns == old.columns
    assert_rows_equal(rows_of(new.df), rows_of(old.df))


@pytest.mark.parametrize("call", ON.values(), ids=ON)
def test_the_advice_of_a_shim_with_on_gives_the_same_rows(
    any_spark: SparkSession, call: Callable[..., Relation]
) -> None:
    left, right = relation_of(any_spark, LEFT), relation_of(any_spark, OTHER)
    old, replacement = advice(lambda: call(left, right))
    new = run(replacement, left, right)
    assert new.columns == old.columns
    assert_rows_equal(rows_of(new.df), rows_of(old.df))


@pytest.mark.parametrize("call", NAMED.values(), ids=NAMED)
def test_the_advice_of_a_shim_with_names_gives_the_same_rows(
    spark: SparkSession, call: Callable[..., Relation]
) -> None:
    left = relation_of(spark, LEFT)
    right = relation_of(spark, T("id | `a.b` \n 1 | 10 \n 2 | 99")).rename({"`a.b`": "A.B"})
    if call is NAMED["join by a name"]:
        right = right.select("id")
    old, replacement = advice(lambda: call(left, right))
    assert_rows_equal(rows_of(run(replacement, left, right).df), rows_of(old.df))


def test_join_on_gives_a_spec_and_the_call_that_builds_it(spark: SparkSession) -> None:
    left = relation_of(spark, LEFT)
    predicates: list[JoinPredicate] = [
        ColumnPredicate("v", "<", "w"),
        ExpressionPredicate("right.w <> ?", args=["x"]),
    ]
    for call in (
        lambda: left.join_on(("id", "ref")),
        lambda: left.join_on(on={"id": "ref"}),
        lambda: left.join_on("id", "v"),
        lambda: left.join_on(("id", "ref"), predicates=predicates),
    ):
        old, replacement = advice(call)
        names = {
            "JoinSpec": JoinSpec,
            "ColumnPredicate": ColumnPredicate,
            "ExpressionPredicate": ExpressionPredicate,
        }
        assert eval(replacement, names) == old  # noqa: S307  # the text is our own message


def test_join_on_takes_keys_in_one_way_only(spark: SparkSession) -> None:
    with pytest.raises(ArgumentError, match="keys or on=, not both"):
        relation_of(spark, LEFT).join_on("id", on="id")


def test_a_spec_and_on_at_once_are_refused(spark: SparkSession) -> None:
    left: Any = relation_of(spark, LEFT)  # a type checker refuses it too
    right = relation_of(spark, OTHER)
    with pytest.raises(ArgumentError, match="a JoinSpec or on=, not both"):
        left.inner_join(right, JoinSpec([("id", "ref")]), on={"id": "ref"})


def test_a_shim_refuses_a_kind_of_join_it_does_not_know(spark: SparkSession) -> None:
    left: Any = relation_of(spark, LEFT)
    with pytest.raises(weft.JoinSpecError, match="outer"):
        left.join(left, how="outer")


def line() -> int:
    """Return the line of the caller."""
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    return frame.f_back.f_lineno


WARNERS: dict[str, Callable[[Relation, Relation], tuple[int, Any]]] = {
    "a shim": lambda a, b: (line(), a.join(b, on={"id": "ref"})),
    "a directed method": lambda a, b: (line(), a.left_outer(b, on={"id": "ref"})),
    "inner_join": lambda a, b: (line(), a.inner_join(b, on={"id": "ref"})),
    "join_on": lambda a, _: (line(), a.join_on("id")),
    "natural_inner": lambda a, b: (line(), a.natural_inner(b, strict=False, id="ref", nope="ref")),
    "natural_left": lambda a, b: (line(), a.natural_left(b, strict=False, id="ref", nope="ref")),
    "build_join_spec": lambda a, b: (line(), weft.build_join_spec(a, b, strict=False, id="ref", nope="ref")),
}


@pytest.mark.parametrize("call", WARNERS.values(), ids=WARNERS)
def test_a_warning_points_at_the_line_of_the_caller(
    spark: SparkSession, call: Callable[[Relation, Relation], tuple[int, Any]]
) -> None:
    left, right = relation_of(spark, LEFT), relation_of(spark, OTHER)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        number, _ = call(left, right)
    assert [(w.filename, w.lineno) for w in caught] == [(__file__, number)]


def test_a_lenient_join_says_which_alias_it_dropped(any_spark: SparkSession) -> None:
    left, right = relation_of(any_spark, LEFT), relation_of(any_spark, T("id | w \n 1 | x"))
    with pytest.warns(JoinKeyWarning, match="ignores nope='w'") as caught:
        result = left.natural_inner(right, strict=False, nope="w")
    assert len(caught) == 1
    assert result.df.count() == 1
    assert result.lineage is not None
    assert result.lineage.resolved.dropped_aliases == (("nope", "w"),)
    assert "nope='w' (strict=False)" in str(result.lineage.explain())


def test_a_lenient_join_without_a_key_left_is_refused(any_spark: SparkSession) -> None:
    left, right = relation_of(any_spark, LEFT), relation_of(any_spark, OTHER)
    with pytest.raises(weft.NoJoinKeysError, match=r"dropped because strict=False: \{'nope': 'ref'\}"):
        left.natural_inner(right, strict=False, nope="ref")


@pytest.mark.parametrize("kind", ["double", "float", "array<integer>"])
def test_a_shared_key_that_is_risky_to_compare_is_reported(spark: SparkSession, kind: str) -> None:
    frame = spark.sql(f"SELECT 1 AS id, CAST(NULL AS {kind.replace('integer', 'int')}) AS price")
    with pytest.warns(JoinKeyWarning, match=r"shared column 'price' of type .* exclude_shared=\('price',\)"):
        weft.relation(frame).natural_inner(weft.relation(frame))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        weft.relation(frame).natural_inner(weft.relation(frame), exclude_shared=("price",), suffixes=("", "_r"))
