"""ColumnPredicate and ExpressionPredicate: what they accept, say, and how they turn round."""

# ruff: noqa: RUF001  # look-alike characters are the point of some tests
from __future__ import annotations

import copy
import datetime as dt
import pickle
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given

from refusals import refused
from spec_values import column_predicates, predicates
from weft.errors import ArgumentError, JoinSpecError
from weft.joins.spec import ColumnPredicate, ExpressionPredicate


@pytest.mark.parametrize("operator", ["=", "!=", "<", "<=", ">", ">="])
def test_the_six_operators_are_accepted(operator: Any) -> None:
    assert ColumnPredicate("a", operator, "b").operator == operator


@pytest.mark.parametrize("operator", ["==", "<>", "=<", "", "LIKE", "<=>", "= 1 OR 1 =", "＝"])
def test_any_other_operator_is_refused_with_the_allowed_ones(operator: Any) -> None:
    with refused(JoinSpecError, "W0302", "operator", repr(operator), "'<='", "'!='"):
        ColumnPredicate("a", operator, "b")


@pytest.mark.parametrize("operator", [None, 1, b"=", ["="]])
def test_an_operator_that_is_not_a_string_is_a_type_error(operator: Any) -> None:
    with refused(ArgumentError, "W0301", "operator", type(operator).__name__):
        ColumnPredicate("a", operator, "b")


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("name", [None, 3, b"a", ("a",)])
def test_a_name_that_is_not_a_string_is_a_type_error(side: str, name: Any) -> None:
    given_names = {"left": "a", "right": "b", side: name}
    with refused(ArgumentError, "W0301", f"{side} column", type(name).__name__):
        ColumnPredicate(given_names["left"], "=", given_names["right"])


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("name", ["", "  ", "a\nb", "a\0", "\x7f", "\ud800"])
def test_an_empty_or_unprintable_name_is_refused(side: str, name: str) -> None:
    given_names = {"left": "a", "right": "b", side: name}
    with refused(JoinSpecError, "W0303", f"{side} column"):
        ColumnPredicate(given_names["left"], "=", given_names["right"])


def test_a_qualified_name_is_refused_with_the_way_to_write_a_dot() -> None:
    with refused(JoinSpecError, "W0303", "'quotes.ts'", "`quotes.ts`"):
        ColumnPredicate("quotes.ts", "=", "ts")


def test_names_are_kept_in_their_shortest_spelling() -> None:
    written = ColumnPredicate("`id`", "=", "`a.b`")
    assert (written.left, written.right) == ("id", "`a.b`")
    assert written == ColumnPredicate("id", "=", "`a.b`")


def test_the_same_name_may_be_on_both_sides() -> None:
    assert str(ColumnPredicate("observed_at", ">", "observed_at")) == "left.observed_at > right.observed_at"


@pytest.mark.parametrize(
    ("offset", "stored", "text"),
    [
        ("1 hour", "1 hour", "1 hour"),
        (" 5 s ", "5 s", "5 s"),
        ("-1 hour", "-1 hour", "-1 hour"),
        ("- 1 hour", "-1 hour", "-1 hour"),
        ("+1 hour", "1 hour", "1 hour"),
        (dt.timedelta(hours=-1), dt.timedelta(hours=-1), "-1 day, 23:00:00"),
        (5, 5, "5"),
        (-2.50, Decimal("-2.5"), "-2.5"),
        (Decimal("3.00"), 3, "3"),
        ("15", "15", "15"),
    ],
)
def test_an_offset_is_a_length_of_time_or_a_number(offset: Any, stored: Any, text: str) -> None:
    written = ColumnPredicate("a", "<=", "b", offset)
    assert written.offset == stored
    assert type(written.offset) is type(stored)
    assert str(written) == f"left.a <= right.b + {text}"


@pytest.mark.parametrize("offset", ["one hour", "1 month", "", "5", "1 OR TRUE", "INTERVAL 5", "--1 h", "1 hour; x"])
def test_an_offset_text_that_says_no_distance_is_refused(offset: str) -> None:
    if offset == "5":
        assert ColumnPredicate("a", "<", "b", offset).offset == "5"
        return
    with refused(JoinSpecError, "W0304", "offset"):
        ColumnPredicate("a", "<", "b", offset)


@pytest.mark.parametrize("offset", [float("nan"), float("inf"), Decimal("NaN"), Decimal("sNaN"), Decimal("1e9999")])
def test_an_offset_that_is_not_a_finite_number_is_refused(offset: Any) -> None:
    with refused(JoinSpecError, "W0304", "offset"):
        ColumnPredicate("a", "<", "b", offset)


@pytest.mark.parametrize("offset", [True, b"1", [1], 1j])
def test_an_offset_of_another_kind_is_a_type_error(offset: Any) -> None:
    with refused(ArgumentError, "W0301", "offset", type(offset).__name__):
        ColumnPredicate("a", "<", "b", offset)


@given(column_predicates)
def test_a_column_predicate_reversed_twice_is_itself(predicate: ColumnPredicate) -> None:
    turned = predicate.reversed()
    assert turned.reversed() == predicate
    assert (turned.left, turned.right) == (predicate.right, predicate.left)


def test_reversing_mirrors_the_operator_and_the_sign_of_the_offset() -> None:
    assert str(ColumnPredicate("a", "<=", "b", "1 hour").reversed()) == "left.b >= right.a + -1 hour"
    assert str(ColumnPredicate("a", "!=", "b").reversed()) == "left.b != right.a"


def test_reversing_keeps_every_digit_of_an_offset() -> None:
    fine = Decimal("0." + "123456789" * 5)
    assert ColumnPredicate("a", "<", "b", fine).offset == fine
    assert ColumnPredicate("a", "<", "b", fine).reversed().offset == fine.copy_negate()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("left.x = right.y", "(left.x = right.y)"),
        ("l.x=r.y", "(l.x = r.y)"),
        ("flag", "(flag)"),
        ('right."is primary"', "(right.`is primary`)"),
        ("z = 5 OR z = 6", "(z = 5 OR z = 6)"),
    ],
)
def test_a_fragment_prints_as_one_node_in_parentheses(text: str, shown: str) -> None:
    assert str(ExpressionPredicate(text)) == shown


@pytest.mark.parametrize("text", [None, 5, b"x = 1", ["x"]])
def test_a_fragment_that_is_not_a_string_is_a_type_error(text: Any) -> None:
    with refused(ArgumentError, "W0301", "expression", type(text).__name__):
        ExpressionPredicate(text)


@pytest.mark.parametrize("text", ["", "   ", "left.x =", "(left.x", "left.x = 'a", "left.x ~ 1"])
def test_an_invalid_fragment_is_refused_with_a_caret(text: str) -> None:
    with pytest.raises(JoinSpecError) as caught:
        ExpressionPredicate(text)
    assert type(caught.value) is JoinSpecError
    assert caught.value.code in ("W0201", "W0202")
    assert "^" in str(caught.value)


@pytest.mark.parametrize("qualifier", ["orders", "t", "lefty", "LR", "`left.x`"])
def test_a_qualifier_that_is_not_a_side_is_refused_at_its_location(qualifier: str) -> None:
    with refused(JoinSpecError, "W0309", "is not a side", "left.x", "^"):
        ExpressionPredicate(f"1 = 1 AND {qualifier}.x = 1")


@pytest.mark.parametrize("qualifier", ["left", "right", "l", "r", "LEFT", "Right", "R"])
def test_sides_are_known_in_any_case(qualifier: str) -> None:
    assert ExpressionPredicate(f"{qualifier}.x = 1").expression == f"{qualifier}.x = 1"


@pytest.mark.parametrize(
    ("text", "args", "shown"),
    [
        ("right.a >= ?", [1000], "(right.a >= 1000)"),
        ("right.a IN (?, ?)", (1, "b'c"), "(right.a IN (1, 'b''c'))"),
        ("right.a = :x OR right.b = :x", {"x": Decimal("1.20")}, "(right.a = 1.20 OR right.b = 1.20)"),
        ("right.a = '?' AND right.b = ?", [None], "(right.a = '?' AND right.b = NULL)"),
        ("right.a > ?", [dt.date(2024, 1, 31)], "(right.a > DATE '2024-01-31')"),
    ],
)
def test_parameters_become_literals_of_the_tree(text: str, args: Any, shown: str) -> None:
    assert str(ExpressionPredicate(text, args)) == shown


@pytest.mark.parametrize(
    ("text", "args"),
    [
        ("a = ?", ()),
        ("a = 1", (1,)),
        ("a = ?", (1, 2)),
        ("a = :x", {}),
        ("a = :x", {"y": 1}),
        ("a = :x", {"x": 1, "y": 2}),
        ("a = ?", {"x": 1}),
        ("a = :x", [1]),
        ("a = ? AND b = :x", [1]),
        ("a = '?'", [1]),
    ],
)
def test_parameters_that_do_not_fit_are_refused(text: str, args: Any) -> None:
    with refused(JoinSpecError, "W0214"):
        ExpressionPredicate(text, args)


@pytest.mark.parametrize("args", ["abc", b"abc", 5, None, {1}, iter([1])])
def test_parameters_of_another_kind_are_a_type_error(args: Any) -> None:
    with refused(ArgumentError, "W0301", "args", type(args).__name__):
        ExpressionPredicate("a = ?", args)


@pytest.mark.parametrize("value", [object(), 1j, {1, 2}])
def test_a_parameter_that_cannot_be_stored_is_a_type_error(value: Any) -> None:
    with refused(ArgumentError, "W0301", type(value).__name__):
        ExpressionPredicate("a = ?", [value])


@pytest.mark.parametrize("value", [float("nan"), float("inf"), Decimal("NaN"), [1], {"a": 1}, 10**40, b"x"])
def test_a_parameter_that_no_literal_can_hold_is_refused_at_its_location(value: Any) -> None:
    with refused(JoinSpecError, "W0214", "the value of ?", "^"):
        ExpressionPredicate("a = ?", [value])


def test_parameters_nested_without_end_are_refused() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with refused(ArgumentError, "W0301", "nested"):
        ExpressionPredicate("a = ?", [deep])


def test_named_parameters_cannot_be_changed_afterwards() -> None:
    args = {"x": 1}
    predicate = ExpressionPredicate("a = :x", args)
    before = hash(predicate)
    args["x"] = 2
    assert predicate == ExpressionPredicate("a = :x", {"x": 1})
    assert hash(predicate) == before
    with pytest.raises(TypeError):
        predicate.args["x"] = 2  # type: ignore[index]


ONES = (1, True, Decimal(1), 1.0, "1", Decimal("1.0"))


@pytest.mark.parametrize("one", ONES)
@pytest.mark.parametrize("other", ONES)
def test_parameters_that_python_calls_equal_are_different_predicates(one: Any, other: Any) -> None:
    a, b = ExpressionPredicate("a = ?", [one]), ExpressionPredicate("a = ?", [other])
    same = one is other
    assert (a == b) is same
    assert (a.to_json() == b.to_json()) is same
    assert (a.fingerprint() == b.fingerprint()) is same
    assert (hash(a) == hash(b)) is same


def test_the_order_of_named_parameters_does_not_matter() -> None:
    a = ExpressionPredicate("a = :x AND b = :y", {"x": 1, "y": 2})
    b = ExpressionPredicate("a = :x AND b = :y", {"y": 2, "x": 1})
    assert a == b
    assert hash(a) == hash(b)
    assert a.fingerprint() == b.fingerprint()


@pytest.mark.parametrize(
    ("text", "turned"),
    [
        ("left.x = right.y", "right.x = left.y"),
        ("l.x > 1 AND r.y IS NULL", "right.x > 1 AND left.y IS NULL"),
        ("flag OR left.x = 'left.x'", "flag OR right.x = 'left.x'"),
        (
            "CASE WHEN left.a IN (1, 2) THEN right.b ELSE COALESCE(left.c, right.d) END BETWEEN 1 AND left.e",
            "CASE WHEN right.a IN (1, 2) THEN left.b ELSE COALESCE(right.c, left.d) END BETWEEN 1 AND right.e",
        ),
    ],
)
def test_a_fragment_turns_round_by_exchanging_the_sides(text: str, turned: str) -> None:
    assert ExpressionPredicate(text).reversed().tree == ExpressionPredicate(turned).tree


@given(predicates)
def test_a_predicate_reversed_twice_says_the_same(predicate: Any) -> None:
    again = predicate.reversed().reversed()
    if isinstance(predicate, ColumnPredicate):
        assert again == predicate
    else:
        plain = str(predicate).replace("l.", "left.").replace("r.", "right.")
        assert str(again) == plain or again.tree == predicate.tree


@given(predicates)
def test_predicates_survive_copies_and_pickles(predicate: Any) -> None:
    assert copy.deepcopy(predicate) == predicate
    assert pickle.loads(pickle.dumps(predicate)) == predicate  # noqa: S301  # our own bytes


@given(predicates)
def test_predicates_cannot_be_changed(predicate: Any) -> None:
    with pytest.raises(AttributeError):
        predicate.expression = "x"


def test_predicates_of_two_classes_are_never_equal() -> None:
    assert ColumnPredicate("x", "=", "y") != ExpressionPredicate("left.x = right.y")
