"""Plain joins of the reference engine: kinds of join, NULL, NaN, types, promises."""

from __future__ import annotations

from typing import Any

import pytest

from by_hand import resolved, run, with_indicator
from weft.core import types
from weft.errors import ArgumentError
from weft.testing import (
    T,
    assert_rows_equal,
    matching_pairs,
    relationship_violations,
    unmatched_rows,
)
from weft.testing.values import as_type, compare, distance, microseconds

LEFT = T("""
    id   | a
    1    | one
    1    | uno
    2    | two
    null | nil
""")
RIGHT = T("""
    id   | b
    1    | R1
    1    | R2
    3    | R3
    null | R0
""")
PAIRS = [(1, "one", "R1"), (1, "one", "R2"), (1, "uno", "R1"), (1, "uno", "R2")]
LEFT_ALONE = [(2, "two", None), (None, "nil", None)]
RIGHT_ALONE = [(3, None, "R3"), (None, None, "R0")]


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("inner", PAIRS),
        ("left", PAIRS + LEFT_ALONE),
        ("right", PAIRS + RIGHT_ALONE),
        ("full", PAIRS + LEFT_ALONE + RIGHT_ALONE),
        ("semi", [(1, "one"), (1, "uno")]),
        ("anti", [(2, "two"), (None, "nil")]),
    ],
)
def test_each_kind_of_join_keeps_its_rows_and_duplicates(how: str, expected: list[Any]) -> None:
    assert_rows_equal(run(LEFT, RIGHT, resolved(LEFT, RIGHT, ["id"], how=how)), expected)


def test_nulls_equal_lets_a_null_key_meet_a_null_key() -> None:
    join = resolved(LEFT, RIGHT, ["id"], how="full", nulls_equal=True)
    expected = [*PAIRS, (None, "nil", "R0"), (2, "two", None), (3, None, "R3")]
    assert_rows_equal(run(LEFT, RIGHT, join), expected)


def test_nulls_equal_does_not_let_null_meet_a_value() -> None:
    left, right = T("id: long \n null"), T("id: long \n 1")
    assert run(left, right, resolved(left, right, ["id"], nulls_equal=True)) == []


def test_a_cross_join_gives_all_pairs() -> None:
    left, right = T("a \n 1 \n null"), T("b \n 7 \n 7 \n 8")
    join = resolved(left, right, how="cross")
    assert_rows_equal(run(left, right, join), [(a, b) for a in (1, None) for b in (7, 7, 8)])


def test_an_empty_side_gives_what_the_other_side_keeps() -> None:
    empty = LEFT.with_rows([])
    assert run(empty, RIGHT, resolved(empty, RIGHT, ["id"], how="left")) == []
    assert len(run(empty, RIGHT, resolved(empty, RIGHT, ["id"], how="full"))) == len(RIGHT)


def test_the_indicator_says_which_side_a_row_comes_from() -> None:
    rows = run(LEFT, RIGHT, with_indicator(resolved(LEFT, RIGHT, ["id"], how="full")))
    assert [row[-1] for row in rows] == ["both"] * 4 + ["left_only"] * 2 + ["right_only"] * 2


def test_a_key_must_match_in_every_column_and_twice_where_it_is_named_twice() -> None:
    left = T("a | n \n 1 | x \n 2 | y")
    right = T("x | y \n 1 | 1 \n 2 | 3")
    assert run(left, right, resolved(left, right, [("a", "x"), ("a", "y")])) == [(1, "x")]


def test_nan_equals_nan_and_minus_zero_equals_zero() -> None:
    left = T("k: double | a \n nan | 1 \n -0.0 | 2 \n 1.0 | 3")
    right = T("k: double | b \n nan | 7 \n 0.0 | 8 \n inf | 9")
    assert [row[1:] for row in run(left, right, resolved(left, right, ["k"]))] == [(1, 7), (2, 8)]


def test_keys_of_two_types_are_compared_in_their_common_type() -> None:
    left = T("k | a \n 2 | x \n 10 | y")
    right = T("k: decimal(10,2) | b \n 2.00 | u \n 10.01 | v")
    rows = run(left, right, resolved(left, right, ["k"], how="full"))
    assert_rows_equal(rows, T("k: decimal(22,2) | a | b \n 2.00 | x | u \n 10 | y | null \n 10.01 | null | v"))


def test_a_decimal_meets_a_double_as_a_double() -> None:
    left = T("k: decimal(3,1) \n 0.1")
    right = T("k: double \n 0.1 \n 0.10000000000000002")
    assert matching_pairs(resolved(left, right, ["k"]), left.rows, right.rows) == [(0, 0)]


def test_a_date_meets_a_timestamp_at_midnight_utc() -> None:
    left = T("k: date \n 2024-01-01")
    right = T("k: timestamp \n 2024-01-01T00:00:00Z \n 2024-01-01T01:00:00+01:00 \n 2024-01-01T00:00:01Z")
    assert matching_pairs(resolved(left, right, ["k"]), left.rows, right.rows) == [(0, 0), (0, 1)]


def test_a_predicate_that_is_null_is_not_true() -> None:
    left = T("id | day: date \n 1 | 2024-01-05 \n 2 | null")
    right = T("id | since: date \n 1 | 2024-01-01 \n 1 | null \n 2 | 2024-01-01")
    join = resolved(left, right, ["id"], how="left", where=["left.day >= right.since"])
    assert_rows_equal(
        run(left, right, join),
        T("id | day | since: date \n 1 | 2024-01-05 | 2024-01-01 \n 2 | null | null"),
    )


def test_a_predicate_with_or_has_parentheses_of_its_own() -> None:
    left, right = T("id \n 1 \n 2"), T("id | z \n 1 | 5 \n 3 | 6")
    join = resolved(left, right, ["id"], where=["right.z = 5 OR right.z = 6"])
    assert run(left, right, join) == [(1, 5)]


@pytest.mark.parametrize(
    ("relationship", "lefts", "rights"),
    [(None, (), ()), ("m:m", (), ()), ("m:1", (0, 1), ()), ("1:m", (), (0, 1)), ("1:1", (0, 1), (0, 1))],
)
def test_a_relationship_names_the_rows_that_match_too_often(
    relationship: str | None, lefts: tuple[int, ...], rights: tuple[int, ...]
) -> None:
    join = resolved(LEFT, RIGHT, ["id"], relationship=relationship)
    pairs = matching_pairs(join, LEFT.rows, RIGHT.rows)
    assert relationship_violations(join, pairs) == (lefts, rights)


def test_unmatched_rows_are_named_for_each_side() -> None:
    pairs = matching_pairs(resolved(LEFT, RIGHT, ["id"]), LEFT.rows, RIGHT.rows)
    assert unmatched_rows(pairs, LEFT.rows, RIGHT.rows) == ((2, 3), (2, 3))


def test_null_sorts_below_all_and_nan_above_all() -> None:
    values = [None, float("-inf"), -1.5, 0.0, 2.0, float("inf"), float("nan")]
    for i, a in enumerate(values):
        for j, b in enumerate(values):
            assert compare(a, b) == (i > j) - (i < j)


def test_nested_values_compare_element_by_element() -> None:
    assert compare([1, None], [1, 0]) == -1
    assert compare([1], [1, None]) == -1
    assert compare((1, "b"), (1, "a")) == 1
    assert compare([float("nan")], [float("nan")]) == 0


def test_equal_positions_have_no_distance_even_at_infinity() -> None:
    inf, nan = float("inf"), float("nan")
    assert distance(inf, inf) == distance(nan, nan) == 0
    assert distance(nan, 1.0) == distance(1.0, inf) == inf
    assert distance(3, 10) == distance(10, 3) == 7


def test_times_before_1970_are_negative() -> None:
    [[value]] = T("t \n 1969-12-31T23:59:59.999999Z").rows
    assert microseconds(value) == -1


def test_a_collation_is_refused() -> None:
    with pytest.raises(ArgumentError, match="UNICODE_CI"):
        as_type("a", types.Scalar("string", "UNICODE_CI"))
