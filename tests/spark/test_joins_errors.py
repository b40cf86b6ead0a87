"""Mistakes: each is told at the line that makes it, in the same words on classic and on Connect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import weft
from join_cases import relation_of
from weft import (
    AmbiguousColumnError,
    ArgumentError,
    ColumnCollisionError,
    ColumnPredicate,
    ExpressionPredicate,
    JoinProjection,
    JoinSpec,
    JoinSpecError,
    JoinTypeError,
    MatchStats,
    NoJoinKeysError,
    UnknownColumnError,
    WeftError,
)
from weft.testing import T

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

ORDERS = T("""
    order_id | customer_id | order | strict | amount: decimal(10,2) | placed: date
    1        | 10          | 7     | x      | 9.99                  | 2024-01-01
""")
CUSTOMERS = T("""
    customer_id | id: string | order | status | vip  | since: timestamp
    10          | a          | 7     | new    | true | 2024-01-01T00:00
""")
ID = JoinSpec([("customer_id", "customer_id")])
Mistake = tuple["Callable[[Any, Any], Any]", type[WeftError], str, str]


def with_spec(*keys: tuple[str, str], **options: Any) -> Callable[[Any, Any], Any]:
    return lambda a, b: a.inner_join(b, JoinSpec(list(keys), **options), suffixes=("", "_c"))


MISTAKES: dict[str, Mistake] = {
    "a misspelt left key": (with_spec(("custmer_id", "id")), UnknownColumnError, "W0101", "did you mean 'customer_id'"),
    "a misspelt right key": (with_spec(("customer_id", "idd")), UnknownColumnError, "W0101", "right relation"),
    "a misspelt alias": (lambda a, b: a.natural_inner(b, custmer="id"), UnknownColumnError, "W0101", "'custmer'"),
    "a misspelt option": (
        lambda a, b: a.natural_inner(b, projct="id"), UnknownColumnError, "W0101", "or the parameter project=?",
    ),
    "a misspelt excluded column": (
        lambda a, b: a.natural_inner(b, exclude_shared=["ordr"]), UnknownColumnError, "W0101", "did you mean 'order'",
    ),
    "nothing shared": (
        lambda a, b: a.select("amount").natural_inner(b.select("vip")), NoJoinKeysError, "W0104", "cross_join",
    ),
    "a collision": (lambda a, b: a.inner_join(b, ID), ColumnCollisionError, "W0103", "suffixes=('', '_right')"),
    "suffixes that collide again": (
        lambda a, b: a.rename(strict="order_r").inner_join(b, ID, suffixes=("", "_r")),
        ColumnCollisionError, "W0103", "'order_r'",
    ),
    "a number against a text": (with_spec(("customer_id", "id")), JoinTypeError, "W0105", "CAST"),
    "a column named like a parameter": (
        lambda a, b: a.natural_inner(b, strict="status"), ArgumentError, "W0301", "use keys={'strict': ...}",
    ),
    "an alias that is no text": (lambda a, b: a.natural_left(b, amount=3), ArgumentError, "W0301", "alias amount=3"),
    "a name said twice": (
        lambda a, b: a.natural_left(b, keys={"order_id": "customer_id"}, order_id="customer_id"),
        ArgumentError, "W0305", "'order_id'",
    ),
    "project and suffixes": (
        lambda a, b: a.inner_join(b, ID, project=JoinProjection(), suffixes=("", "_r")), ArgumentError, "W0305", "not both",
    ),
    "keywords for a directed join": (
        lambda a, b: a.left_outer(b, customer_id="id"), ArgumentError, "W0301", "JoinSpec.from_kwargs(customer_id='id')",
    ),
    "no spec": (lambda a, b: a.left_outer(b), ArgumentError, "W0301", "not NoneType"),
    "a list for a spec": (lambda a, b: a.semi_join(b, [("a", "b")]), ArgumentError, "W0301", "not list"),
    "an as-of spec in a plain join": (
        lambda a, b: a.inner_join(b, weft.AsofSpec(order=weft.AsofOrder("placed", "since"))),
        ArgumentError, "W0301", "asof_join",
    ),
    "a DataFrame for a relation": (lambda a, b: a.natural_inner(b.df), ArgumentError, "W0301", "weft.relation(df)"),
    "a text for a relation": (lambda a, _: a.natural_full("customers"), ArgumentError, "W0301", "not str"),
    "a text for a frame": (lambda *_: weft.relation("customers"), ArgumentError, "W0301", "not str"),  # type: ignore[arg-type]
    "an unknown column in a fragment": (
        with_spec(("customer_id", "customer_id"), predicates=[ExpressionPredicate("right.stat = 'new'")]),
        UnknownColumnError, "W0207", "did you mean 'status'",
    ),
    "a name of both sides in a fragment": (
        with_spec(("customer_id", "customer_id"), predicates=[ExpressionPredicate("order > 1")]),
        AmbiguousColumnError, "W0216", "left.order or right.order",
    ),
    "a fragment that is no condition": (
        with_spec(("customer_id", "customer_id"), predicates=[ExpressionPredicate("left.amount + 1")]),
        JoinSpecError, "W0309", "boolean",
    ),
    "a fragment that mixes types": (
        with_spec(("customer_id", "customer_id"), predicates=[ExpressionPredicate("left.amount = right.status")]),
        JoinTypeError, "W0209", "CAST",
    ),
    "columns that cannot be compared": (
        with_spec(("customer_id", "customer_id"), predicates=[ColumnPredicate("amount", ">", "status")]),
        JoinTypeError, "W0105", "right.status is string",
    ),
    "a column kept that is not there": (
        lambda a, b: a.inner_join(b, ID, project=JoinProjection(keep=["left.amont"])),
        UnknownColumnError, "W0101", "'left.amount'",
    ),
    "a bare name of both sides kept": (
        lambda a, b: a.inner_join(b, ID, project=JoinProjection(keep=["order"])), AmbiguousColumnError, "W0102", "left.order",
    ),
    "a key kept that is not repeated": (
        lambda a, b: a.inner_join(b, ID, project=JoinProjection(keep=["right.customer_id"])),
        JoinSpecError, "W0307", "right_keys='keep'",
    ),
    "an indicator on a semi join": (
        lambda a, b: a.semi_join(b, ID, project=JoinProjection(indicator="_m")), JoinSpecError, "W0307", "no indicator",
    ),
    "an indicator that takes a name": (
        lambda a, b: a.inner_join(b, ID, project=JoinProjection(indicator="amount", suffixes=("", "_r"))),
        ColumnCollisionError, "W0103", "'amount'",
    ),
    "a promise on a semi join": (
        lambda a, b: a.semi_join(b, JoinSpec([("customer_id", "customer_id")], relationship="m:1")),
        JoinSpecError, "W0305", "semi",
    ),
    "stats that are a dictionary": (
        lambda a, b: a.natural_inner(b, exclude_shared=["order"], suffixes=("", "_r"), stats={}),
        ArgumentError, "W0301", "MatchStats",
    ),
    "stats that count another join": (
        lambda a, b: [a.inner_join(b, ID, suffixes=("", "_r"), stats=s) for s in [MatchStats()] * 2],
        ArgumentError, "W0301", "already counts",
    ),
    "an unknown column selected": (lambda a, _: a.select("amont"), UnknownColumnError, "W0101", "'amount'"),
    "a column renamed to one that is there": (
        lambda a, _: a.rename(amount="Strict"), AmbiguousColumnError, "W0106", "Strict",
    ),
    "relations of other columns in a union": (lambda a, b: a.union(b), ArgumentError, "W0301", "on one side only"),
    "columns of other types in a union": (
        lambda a, b: a.select("order_id").union(b.select("id").rename(id="order_id")),
        JoinTypeError, "W0105", "order_id",
    ),
    "an unknown column in a filter": (lambda a, _: a.filter("amont > 1"), weft.WeftError, "W0207", "'amount'"),
    "a filter that is no condition": (lambda a, _: a.filter("amount + 1"), weft.WeftError, "W0209", "boolean"),
    "keys that are not there to inspect": (
        lambda a, b: weft.inspect_keys(a, b, JoinSpec([("amont", "id")])), UnknownColumnError, "W0101", "'amount'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_told_in_the_same_words_on_both_sessions(
    spark: SparkSession, connect: SparkSession, name: str
) -> None:
    call, kind, code, part = MISTAKES[name]
    told = []
    for session in (spark, connect):
        with pytest.raises(WeftError) as caught:
            call(relation_of(session, ORDERS), relation_of(session, CUSTOMERS))
        told.append((type(caught.value), caught.value.code, str(caught.value)))
    assert told[0] == told[1]
    found, found_code, text = told[0]
    assert issubclass(found, kind)
    assert found_code == code
    assert part in text
