"""Mistakes: each is reported at the line that makes it, with the same message on classic and on Connect."""

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
    "a misspelt option with a pair": (
        lambda a, b: a.natural_left(b, sufixes=("", "_r")), ArgumentError, "W0301", "did you mean the parameter suffixes=?",
    ),
    "misspelt predicates": (
        lambda a, b: a.natural_left(b, predicate=[]), ArgumentError, "W0301", "did you mean the parameter predicates=?",
    ),
    "a misspelt option of build_join_spec": (
        lambda a, b: weft.build_join_spec(a, b, sufixes=("", "_r")),  # type: ignore[arg-type]
        ArgumentError, "W0301", "write sufixes='right_column'",
    ),
    "an alias that is not a string": (lambda a, b: a.natural_left(b, amount=3), ArgumentError, "W0301", "alias amount=3"),
    "a repeated name": (
        lambda a, b: a.natural_left(b, keys={"order_id": "customer_id"}, order_id="customer_id"),
        ArgumentError, "W0305", "'order_id'",
    ),
    "project and suffixes": (
        lambda a, b: a.inner_join(b, ID, project=JoinProjection(), suffixes=("", "_r")), ArgumentError, "W0305", "not both",
    ),
    "keywords for a directed join": (
        lambda a, b: a.left_outer(b, customer_id="id"), ArgumentError, "W0301", "JoinSpec.from_kwargs(customer_id='id')",
    ),
    "a promise for a directed join": (
        lambda a, b: a.left_outer(b, ID, nulls_equal=True),
        ArgumentError, "W0301", "put it in the JoinSpec: JoinSpec(..., nulls_equal=True)",
    ),
    "how for a directed join": (
        lambda a, b: a.inner_join(b, ID, how="left"), ArgumentError, "W0301", "call left_outer",
    ),
    "a misspelt option of a directed join": (
        lambda a, b: a.inner_join(b, ID, sufixes=("", "_r")), ArgumentError, "W0301", "did you mean the parameter suffixes=?",
    ),
    "keywords for an as-of join": (
        lambda a, b: a.asof_join(b, None, customer_id="id"),
        ArgumentError, "W0301", "AsofSpec.from_kwargs(customer_id='id', order=AsofOrder('left_time', 'right_time'))",
    ),
    "no spec": (lambda a, b: a.left_outer(b), ArgumentError, "W0301", "not NoneType"),
    "a list for a spec": (lambda a, b: a.semi_join(b, [("a", "b")]), ArgumentError, "W0301", "not list"),
    "an as-of spec in a plain join": (
        lambda a, b: a.inner_join(b, weft.AsofSpec(order=weft.AsofOrder("placed", "since"))),
        ArgumentError, "W0301", "asof_join",
    ),
    "a DataFrame for a relation": (lambda a, b: a.natural_inner(b.df), ArgumentError, "W0301", "weft.relation(df)"),
    "a text for a relation": (lambda a, _: a.natural_full("customers"), ArgumentError, "W0301", "not str"),
    "a text for a frame": (lambda *_: weft.relation("customers"), ArgumentError, "W0301", "not str"),
    "an unknown column in a fragment": (
        with_spec(("customer_id", "customer_id"), predicates=[ExpressionPredicate("right.stat = 'new'")]),
        UnknownColumnError, "W0207", "did you mean 'status'",
    ),
    "a name of both sides in a fragment": (
        with_spec(("customer_id", "customer_id"), predicates=[ExpressionPredicate("order > 1")]),
        AmbiguousColumnError, "W0216", "left.order or right.order",
    ),
    "a fragment that is not a condition": (
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
    "a filter that is not a condition": (lambda a, _: a.filter("amount + 1"), weft.WeftError, "W0209", "boolean"),
    "keys that are not there to inspect": (
        lambda a, b: weft.inspect_keys(a, b, JoinSpec([("amont", "id")])), UnknownColumnError, "W0101", "'amount'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_an_error_has_the_same_message_on_both_sessions(spark: SparkSession, connect: SparkSession, name: str) -> None:
    call, kind, code, part = MISTAKES[name]
    reported = []
    for session in (spark, connect):
        with pytest.raises(WeftError) as caught:
            call(relation_of(session, ORDERS), relation_of(session, CUSTOMERS))
        reported.append((type(caught.value), caught.value.code, str(caught.value)))
    assert reported[0] == reported[1]
    found, found_code, text = reported[0]
    assert issubclass(found, kind)
    assert found_code == code
    assert part in text


def message_of(call: Callable[[], Any]) -> tuple[weft.errors.Diagnostic, ...]:
    with pytest.raises(WeftError) as caught:
        call()
    return caught.value.diagnostics


def test_every_mistake_of_a_natural_join_is_reported_at_once(spark: SparkSession) -> None:
    a, b = relation_of(spark, ORDERS), relation_of(spark, CUSTOMERS)
    predicates = [ExpressionPredicate("right.stat = 'new'")]
    given = message_of(lambda: a.natural_left(b, custmer="id", amont="vipp", predicates=predicates))
    assert [d.code for d in given] == ["W0101", "W0101", "W0101", "W0207"]
    order = weft.AsofOrder("placd", "since")
    given = message_of(lambda: a.natural_asof(b, order=order, custmer="id", predicates=predicates))
    assert [d.code for d in given] == ["W0101", "W0207", "W0101"]


def test_each_parameter_is_checked_on_its_own(spark: SparkSession) -> None:
    a = relation_of(spark, ORDERS).rename(placed="stats")
    b = relation_of(spark, CUSTOMERS)
    wrong: dict[str, Any] = {
        "strict": "status", "exclude_shared": 3, "nulls_equal": 1, "relationship": "n:1",
        "unmatched": True, "stats": "since", "amount": 3,
    }  # fmt: skip
    given = message_of(lambda: a.natural_inner(b, **wrong))
    assert [d.message.split()[0] for d in given] == [
        "strict", "exclude_shared", "nulls_equal", "relationship", "unmatched", "stats", "alias",
    ]  # fmt: skip
    hinted = [d.help.partition("to alias column ")[2] for d in given]
    assert [h for h in hinted if h] == [
        "'strict' use keys={'strict': ...}",
        "'stats' use keys={'stats': ...}",
    ]


def test_each_parameter_of_an_as_of_join_is_checked_on_its_own(spark: SparkSession) -> None:
    a, b = relation_of(spark, ORDERS), relation_of(spark, CUSTOMERS)
    wrong: dict[str, Any] = {"order": "since", "direction": "up", "tolerance": True, "strict": "status"}
    given = message_of(lambda: a.natural_asof(b, **wrong))
    assert [d.message.split()[0] for d in given] == ["order", "direction", "tolerance", "strict"]
    assert ["to alias column" in d.help for d in given] == [True, False, False, True]


@pytest.mark.parametrize(
    "named",
    [
        {"customer_id": "customer_id"},
        {"customer_id": "customer_id", "class": "id"},
        {"keys": {"order": "order"}},
    ],
)
def test_the_call_that_a_directed_join_advises_runs(spark: SparkSession, named: dict[str, Any]) -> None:
    a = relation_of(spark, ORDERS).rename(strict="class")
    b = relation_of(spark, CUSTOMERS)
    (given,) = message_of(lambda: a.semi_join(b, **named))
    call = given.help.removeprefix("write ").splitlines()[0]
    joined = eval(f"a.{call}", {"a": a, "other": b, "JoinSpec": JoinSpec})  # noqa: S307  # our own text
    assert joined.columns == a.columns


def test_a_type_mismatch_advises_a_cast_that_runs(spark: SparkSession) -> None:
    a, b = relation_of(spark, ORDERS), relation_of(spark, CUSTOMERS)
    (given,) = message_of(lambda: a.semi_join(b, JoinSpec([("customer_id", "id")])))
    call = given.help.removeprefix("cast one side first, for example ")
    right = eval(call, {"left": a, "right": b})  # noqa: S307  # our own text
    assert a.semi_join(right, JoinSpec([("customer_id", "id")])).columns == a.columns


def test_build_join_spec_takes_the_promises(spark: SparkSession) -> None:
    a, b = relation_of(spark, ORDERS).select("customer_id"), relation_of(spark, CUSTOMERS)
    built = weft.build_join_spec(a, b, nulls_equal=True, relationship="m:1", unmatched="error")
    assert built == JoinSpec([("customer_id", "customer_id")], nulls_equal=True, relationship="m:1", unmatched="error")


def test_what_a_directed_join_refuses_the_type_checker_refuses_too(spark: SparkSession) -> None:
    """Each ignore below is needed: mypy reports one that is not."""
    a, b = relation_of(spark, ORDERS), relation_of(spark, CUSTOMERS)
    message_of(lambda: a.inner_join(b, customer_id="id"))  # type: ignore[call-overload]
    message_of(lambda: a.inner_join(b))  # type: ignore[call-overload]
    message_of(lambda: a.left_outer(b, nulls_equal=True))  # type: ignore[call-overload]
    message_of(lambda: a.semi_join(b, [("order", "order")]))  # type: ignore[call-overload]
    with pytest.warns(DeprecationWarning, match="on="):
        a.semi_join(b, on=["order"])
    assert a.semi_join(b, ID).select("amount").columns == ("amount",)
