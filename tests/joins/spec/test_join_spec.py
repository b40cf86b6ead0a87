"""JoinSpec: construction, its builders, merging, reversing, printing."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, fields, replace
from typing import Any

import pytest
from hypothesis import given

from refusals import refused
from spec_values import OTHER, everything, join_specs, specs
from weft.errors import ArgumentError, JoinSpecError, NoJoinKeysError
from weft.joins.spec import AsofOrder, AsofSpec, ColumnPredicate, ExpressionPredicate, JoinSpec

P = ColumnPredicate("order_date", ">=", "customer_since")
Q = ExpressionPredicate("right.flag")


def test_keys_and_predicates_become_tuples() -> None:
    spec = JoinSpec([["order_id", "id"]], [P, Q])  # type: ignore[list-item]
    assert spec.equal_keys == (("order_id", "id"),)
    assert spec.predicates == (P, Q)
    assert spec == JoinSpec(equal_keys=(("order_id", "id"),), predicates=iter((P, Q)))  # type: ignore[arg-type]


@pytest.mark.parametrize("keys", [b"id", {"a": "b"}, 5, None, {("a", "b")}, frozenset({("a", "b")})])
def test_equal_keys_of_another_kind_are_a_type_error(keys: Any) -> None:
    with refused(ArgumentError, "W0301", "equal_keys", type(keys).__name__, "[('order_id', 'id')]"):
        JoinSpec(keys)


@pytest.mark.parametrize("pair", [b"id", 5, None, {"a", "b"}, {"a": "b"}])
def test_an_element_that_is_not_a_pair_is_a_type_error_that_names_it(pair: Any) -> None:
    with refused(ArgumentError, "W0301", "equal_keys[1]"):
        JoinSpec([("a", "b"), pair])


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("id", [("id", "id")]),
        (["id", "day"], [("id", "id"), ("day", "day")]),
        (("id", ("day", "date")), [("id", "id"), ("day", "date")]),
        (["`a.b`", "id", "id"], [("`a.b`", "`a.b`"), ("id", "id")]),
    ],
)
def test_a_key_of_one_name_is_the_pair_of_that_name(short: Any, long: Any) -> None:
    assert JoinSpec(short) == JoinSpec(long)
    assert JoinSpec(short).fingerprint() == JoinSpec(long).fingerprint()
    assert JoinSpec.from_json(JoinSpec(short).to_json()) == JoinSpec(long)


@pytest.mark.parametrize("name", ["", "a.b", "a\nb"])
def test_a_key_of_one_name_is_checked_as_a_name(name: str) -> None:
    with refused(JoinSpecError, "W0303", "left key"):
        JoinSpec(name)  # type: ignore[arg-type]


@pytest.mark.parametrize("pair", [(), ("a",), ("a", "b", "c")])
def test_an_element_of_another_length_is_refused(pair: Any) -> None:
    with refused(JoinSpecError, "W0303", f"equal_keys[0] has {len(pair)} names"):
        JoinSpec([pair])


@pytest.mark.parametrize("name", [5, None, b"a", ["a"]])
def test_a_key_that_is_not_a_string_is_a_type_error(name: Any) -> None:
    with refused(ArgumentError, "W0301", "left key", type(name).__name__):
        JoinSpec([(name, "a")])
    with refused(ArgumentError, "W0301", "right key", type(name).__name__):
        JoinSpec([("a", name)])


@pytest.mark.parametrize("name", ["", " ", "\t", "a\rb"])
def test_an_empty_key_is_refused(name: str) -> None:
    with refused(JoinSpecError, "W0303", "left key"):
        JoinSpec([(name, "a")])


@pytest.mark.parametrize("name", ["orders.id", "a.", ".a", "left.id"])
def test_a_qualified_key_is_refused_with_the_spelling_for_a_dot(name: str) -> None:
    with refused(JoinSpecError, "W0303", "contains a dot", f"`{name}`"):
        JoinSpec([(name, "a")])


def test_a_pair_that_is_repeated_counts_once_and_two_partners_both_count() -> None:
    assert JoinSpec([("a", "x"), ("`a`", "x")]).equal_keys == (("a", "x"),)
    assert JoinSpec([("a", "x"), ("a", "y")]).equal_keys == (("a", "x"), ("a", "y"))


@pytest.mark.parametrize("predicates", ["x = 1", b"x", {"a": 1}, 5, P, Q, {P}])
def test_predicates_of_another_kind_are_a_type_error(predicates: Any) -> None:
    with refused(ArgumentError, "W0301", "predicates", type(predicates).__name__):
        JoinSpec([("a", "b")], predicates)


def test_a_predicate_of_another_class_is_a_type_error_that_shows_the_right_one() -> None:
    with refused(ArgumentError, "W0301", "predicates[1]", "str", "ExpressionPredicate('unsupported')"):
        JoinSpec([("a", "b")], [P, "unsupported"])  # type: ignore[list-item]


def test_no_predicates_may_be_written_as_none() -> None:
    assert JoinSpec([("a", "b")], None).predicates == ()  # type: ignore[arg-type]


def test_a_spec_without_key_and_predicate_is_refused() -> None:
    with refused(NoJoinKeysError, "W0104", "equal_keys", "cross_join"):
        JoinSpec([])
    assert JoinSpec([], [P]).equal_keys == ()


@pytest.mark.parametrize("value", [1, 0, None, "yes", "False"])
def test_nulls_equal_is_a_bool(value: Any) -> None:
    with refused(ArgumentError, "W0301", "nulls_equal", repr(value)):
        JoinSpec([("a", "b")], nulls_equal=value)


@pytest.mark.parametrize(
    ("option", "bad", "allowed"),
    [
        ("relationship", "1:n", "'1:m'"),
        ("relationship", "many_to_one", "'m:1'"),
        ("unmatched", "raise", "'error'"),
        ("unmatched", "none", "'both'"),
    ],
)
def test_an_option_takes_its_own_words_only(option: str, bad: Any, allowed: str) -> None:
    with refused(JoinSpecError, "W0302", option, repr(bad), allowed):
        JoinSpec([("a", "b")], **{option: bad})
    with refused(ArgumentError, "W0301", option):
        JoinSpec([("a", "b")], **{option: True})  # type: ignore[arg-type]


def test_options_are_keywords() -> None:
    with pytest.raises(TypeError):
        JoinSpec([("a", "b")], (), True)  # type: ignore[call-arg]


def test_from_tuples_takes_pairs_one_after_another() -> None:
    assert JoinSpec.from_tuples(("a", "x"), ("b", "y")) == JoinSpec([("a", "x"), ("b", "y")])
    spec = JoinSpec.from_tuples(("a", "x"), predicates=[P], relationship="m:1")
    assert spec == JoinSpec([("a", "x")], [P], relationship="m:1")
    with refused(NoJoinKeysError, "W0104"):
        JoinSpec.from_tuples()
    assert JoinSpec.from_tuples("id") == JoinSpec([("id", "id")])  # type: ignore[arg-type]


def test_from_kwargs_takes_shared_names_aliases_and_keys_in_that_order() -> None:
    spec = JoinSpec.from_kwargs("region", "day", keys={"order": "order_no"}, customer_ref="id", predicates=[P])
    assert spec.equal_keys == (
        ("region", "region"),
        ("day", "day"),
        ("customer_ref", "id"),
        ("order", "order_no"),
    )
    assert spec.predicates == (P,)


@pytest.mark.parametrize(
    "keys", [{"a": "x", "b": "b"}, [("a", "x"), "b"], (("a", "x"), ("b", "b")), [["a", "x"], ["b", "b"]]]
)
def test_keys_are_a_mapping_or_names_and_pairs(keys: Any) -> None:
    assert JoinSpec.from_kwargs(keys=keys).equal_keys == (("a", "x"), ("b", "b"))


@pytest.mark.parametrize("keys", [b"ab", 5, {"a", "b"}])
def test_keys_of_another_kind_are_a_type_error(keys: Any) -> None:
    with refused(ArgumentError, "W0301", "keys", type(keys).__name__):
        JoinSpec.from_kwargs(keys=keys)


def test_an_alias_to_something_that_is_not_a_string_is_a_type_error() -> None:
    with refused(ArgumentError, "W0301", "alias a=", "int"):
        JoinSpec.from_kwargs(a=5)  # type: ignore[arg-type]
    with refused(ArgumentError, "W0301", "alias a=", "int"):
        JoinSpec.from_kwargs(keys={"a": 5})  # type: ignore[dict-item]


def test_a_column_is_named_once_as_a_keyword_or_in_keys() -> None:
    with refused(ArgumentError, "W0305", "'A'", "keys="):
        JoinSpec.from_kwargs(a="x", keys={"A": "y"})


def test_parameter_names_can_be_columns_through_keys() -> None:
    assert JoinSpec.from_kwargs(keys={"keys": "k", "predicates": "p"}).equal_keys == (
        ("keys", "k"),
        ("predicates", "p"),
    )
    assert JoinSpec.from_kwargs(**dict[str, Any]({"order id": "x", "self": "y"})).equal_keys == (
        ("order id", "x"),
        ("self", "y"),
    )


def test_with_predicates_adds_after_those_there_are() -> None:
    spec = JoinSpec([("a", "b")], [P], nulls_equal=True)
    more = spec.with_predicates(Q)
    assert more.predicates == (P, Q)
    assert more.nulls_equal is True
    assert spec.predicates == (P,)
    with refused(ArgumentError, "W0301", "predicates[1]"):
        spec.with_predicates("x = 1")  # type: ignore[arg-type]


def test_merge_adds_keys_and_predicates_once() -> None:
    a = JoinSpec([("a", "x"), ("b", "y")], [P])
    b = JoinSpec([("b", "y"), ("c", "z")], [P, Q], relationship="m:1", nulls_equal=True)
    merged = a.merge(b)
    assert merged.equal_keys == (("a", "x"), ("b", "y"), ("c", "z"))
    assert merged.predicates == (P, Q)
    assert merged.relationship == "m:1"
    assert merged.nulls_equal is True


def test_merge_refuses_options_that_contradict() -> None:
    a, b = (JoinSpec([("a", "x")], relationship=r) for r in ("m:1", "1:1"))
    with refused(JoinSpecError, "W0305", "relationship", "'m:1'", "'1:1'"):
        a.merge(b)


def test_merge_takes_a_plain_spec_into_a_temporal_one_and_not_the_other_way() -> None:
    asof = AsofSpec([("s", "s")], order=AsofOrder("t", "q"), tolerance="5 s")
    plain = JoinSpec([("a", "x")], [P], nulls_equal=True)
    merged = asof.merge(plain)
    assert isinstance(merged, AsofSpec)
    assert merged.equal_keys == (("s", "s"), ("a", "x"))
    assert merged.tolerance == "5 s"
    assert merged.nulls_equal is True
    with refused(JoinSpecError, "W0305", "JoinSpec", "AsofSpec", "order"):
        plain.merge(asof)
    with refused(JoinSpecError, "W0305", "order"):
        asof.merge(replace(asof, order=AsofOrder("t", "other")))
    assert asof.merge(asof) == asof
    with refused(ArgumentError, "W0301", "JoinSpec", "dict"):
        plain.merge({})  # type: ignore[arg-type]


def test_reversing_exchanges_everything_that_has_a_side() -> None:
    spec = JoinSpec(
        [("a", "x"), ("b", "y")],
        [P, ExpressionPredicate("left.u > right.v")],
        relationship="m:1",
        unmatched="left",
    )
    turned = spec.reversed()
    assert turned.equal_keys == (("x", "a"), ("y", "b"))
    assert str(turned.predicates[0]) == "left.customer_since <= right.order_date"
    assert str(turned.predicates[1]) == "(right.u > left.v)"
    assert (turned.relationship, turned.unmatched) == ("1:m", "right")


@given(join_specs)
def test_a_spec_reversed_twice_is_itself(spec: JoinSpec) -> None:
    again = spec.reversed().reversed()
    columns = [p for p in spec.predicates if isinstance(p, ColumnPredicate)]
    assert [p for p in again.predicates if isinstance(p, ColumnPredicate)] == columns
    assert replace(again, predicates=spec.predicates) == spec


def test_a_spec_prints_as_one_condition() -> None:
    assert str(JoinSpec([("a", "x")], [P, Q])) == (
        "left.a = right.x AND left.order_date >= right.customer_since AND (right.flag)"
    )
    assert str(JoinSpec([("a", "x")], nulls_equal=True)) == "left.a <=> right.x"


def test_a_name_that_is_not_a_word_prints_in_backticks() -> None:
    assert str(JoinSpec([("order id", "`a.b`"), ("c`d", "1 OR 1")])) == (
        "left.`order id` = right.`a.b` AND left.`c``d` = right.`1 OR 1`"
    )


@given(specs)
def test_specs_survive_copies_and_pickles_and_cannot_be_changed(spec: Any) -> None:
    assert copy.deepcopy(spec) == spec
    assert pickle.loads(pickle.dumps(spec)) == spec  # noqa: S301  # our own bytes
    with pytest.raises(FrozenInstanceError):
        spec.equal_keys = ()


@given(everything)
def test_two_values_that_differ_in_one_field_differ_in_all_respects(value: Any) -> None:
    for f in fields(value):
        if not f.init or f.name not in OTHER:
            continue
        try:
            other = replace(value, **{f.name: OTHER[f.name](getattr(value, f.name))})
        except JoinSpecError:
            continue  # the change contradicts another field, as gap= does in a tumbling window
        assert other != value, f.name
        assert hash(other) != hash(value), f.name
        assert other.to_json() != value.to_json(), f.name
        assert other.fingerprint() != value.fingerprint(), f.name
