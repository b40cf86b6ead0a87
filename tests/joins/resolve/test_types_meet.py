"""Types of keys and compared columns: which have a common type, and the error when they do not."""

from __future__ import annotations

from typing import Any

import pytest

from refusals import refused
from weft.core.types import STRING, Field, Scalar, Schema, parse_type
from weft.errors import JoinTypeError
from weft.joins.resolve.join import resolve_join
from weft.joins.spec import AsofOrder, AsofSpec, ColumnPredicate, JoinSpec

LCASE = Scalar("string", "UTF8_LCASE")


def dtype_of(text: Any) -> Any:
    return parse_type(text) if isinstance(text, str) else text


def keyed(a: Any, b: Any) -> str:
    left, right = Schema((Field("k", dtype_of(a)),)), Schema((Field("j", dtype_of(b)),))
    return str(resolve_join(JoinSpec([("k", "j")]), left, right).keys[0].dtype)


MEET = [
    ("long", "long", "long"),
    ("byte", "long", "long"),
    ("integer", "short", "integer"),
    ("float", "float", "float"),
    ("float", "double", "double"),
    ("long", "double", "double"),
    ("decimal(10,2)", "double", "double"),
    ("decimal(10,2)", "decimal(5,4)", "decimal(12,4)"),
    ("integer", "decimal(10,2)", "decimal(12,2)"),
    ("date", "date", "date"),
    ("date", "timestamp", "timestamp"),
    ("date", "timestamp_ntz", "timestamp_ntz"),
    ("timestamp", "timestamp_ntz", "timestamp"),
    ("string", "string", "string"),
    (LCASE, LCASE, "string collate UTF8_LCASE"),
    ("boolean", "boolean", "boolean"),
    ("binary", "binary", "binary"),
    ("null", "long", "long"),
    ("string", "null", "string"),
    ("array<integer>", "array<long>", "array<long>"),
    ("struct<a:integer,b:string>", "struct<a:long,b:string>", "struct<a:long,b:string>"),
    ("time", "time", "time"),
    ("interval", "interval", "interval"),
]
APART = [
    ("integer", "string"),
    ("string", "long"),
    ("string", "date"),
    ("string", "timestamp"),
    ("string", "boolean"),
    ("boolean", "integer"),
    ("date", "long"),
    ("binary", "string"),
    ("time", "timestamp"),
    ("interval", "long"),
    ("string", LCASE),
    (LCASE, Scalar("string", "UNICODE_CI")),
    ("array<string>", "array<long>"),
    ("array<long>", "long"),
    ("struct<a:long>", "struct<b:long>"),
    ("struct<a:long>", "struct<a:long,b:long>"),
    ("map<string,long>", "map<string,long>"),
    ("struct<m:map<string,long>>", "struct<m:map<string,long>>"),
    ("variant", "variant"),
]


@pytest.mark.parametrize(("a", "b", "meet"), MEET)
def test_keys_that_meet_are_compared_in_one_type_either_way_round(a: Any, b: Any, meet: str) -> None:
    assert keyed(a, b) == meet
    assert keyed(b, a) == meet


@pytest.mark.parametrize(("a", "b"), APART)
@pytest.mark.parametrize("turned", [False, True])
def test_keys_that_do_not_meet_are_refused_with_both_columns_and_types(a: Any, b: Any, turned: bool) -> None:  # noqa: FBT001
    a, b = (b, a) if turned else (a, b)
    with refused(JoinTypeError, "W0105", f"left.k is {dtype_of(a)}", f"right.j is {dtype_of(b)}", "help:"):
        keyed(a, b)


def test_a_string_compared_with_a_number_is_reported_with_a_cast_of_the_string() -> None:
    with refused(JoinTypeError, "W0105", "CAST(k AS long)"):
        keyed("string", "long")
    with refused(JoinTypeError, "W0105", "CAST(j AS long)"):
        keyed("long", "string")


@pytest.mark.parametrize("dtype", ["map<string,long>", "struct<m:map<string,long>>", "array<map<string,long>>"])
def test_a_map_is_never_a_key(dtype: str) -> None:
    reported = "maps cannot be compared" if dtype.startswith("map") else "scalar values inside"
    with refused(JoinTypeError, "W0105", reported):
        keyed(dtype, dtype)


@pytest.mark.parametrize(("a", "b", "meet"), MEET)
@pytest.mark.parametrize("operator", ["=", "!=", "<", ">="])
def test_compared_columns_meet_like_keys(a: Any, b: Any, meet: str, operator: Any) -> None:
    left, right = Schema((Field("k", dtype_of(a)),)), Schema((Field("j", dtype_of(b)),))
    spec = JoinSpec([], [ColumnPredicate("k", operator, "j")])
    if meet == "boolean" and operator in ("<", ">="):
        with refused(JoinTypeError, "W0105", "a boolean has no order"):
            resolve_join(spec, left, right)
        return
    join = resolve_join(spec, left, right)
    assert str(join.predicates[0].dtype) == "boolean"


@pytest.mark.parametrize(("a", "b"), APART)
def test_compared_columns_that_do_not_meet_are_refused_alike(a: Any, b: Any) -> None:
    left, right = Schema((Field("k", dtype_of(a)),)), Schema((Field("j", dtype_of(b)),))
    with refused(JoinTypeError, "W0105", "left.k", str(dtype_of(a)), "right.j", str(dtype_of(b)), "help:"):
        resolve_join(JoinSpec([], [ColumnPredicate("k", "<", "j")]), left, right)


ORDERS = ["timestamp", "timestamp_ntz", "date", "long", "integer", "double", "decimal(10,2)"]


def family(text: str) -> str:
    return "time" if text in ("timestamp", "timestamp_ntz", "date") else "number"


@pytest.mark.parametrize("a", ORDERS)
@pytest.mark.parametrize("b", ORDERS)
def test_order_columns_are_both_times_or_both_numbers(a: str, b: str) -> None:
    left, right = Schema.of(t=a), Schema.of(q=b)
    spec = AsofSpec(order=AsofOrder("t", "q"))
    if family(a) == family(b):
        assert resolve_join(spec, left, right).how == "left"
        return
    with refused(JoinTypeError, "W0105", f"left.t ({a})", f"right.q ({b})", "cast one side"):
        resolve_join(spec, left, right)


@pytest.mark.parametrize("dtype", [STRING, "boolean", "binary", "array<long>", "interval", "time", "null"])
def test_an_order_column_of_another_type_is_refused(dtype: Any) -> None:
    schema = Schema((Field("t", dtype_of(dtype)),))
    with refused(JoinTypeError, "W0105", "left.t", "right.t", "timestamp"):
        resolve_join(AsofSpec(order=AsofOrder("t", "t")), schema, schema)
