"""Readable diffs: what is equal, and what a person sees when it is not."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from typing import Any

import pytest

from weft.testing import T, assert_rows_equal

NAN = float("nan")


def diff_of(actual: Any, expected: Any, *args: Any, **options: Any) -> str:
    with pytest.raises(AssertionError) as caught:
        assert_rows_equal(actual, expected, *args, **options)
    return str(caught.value)


def test_rows_are_equal_in_any_order_with_duplicates_counted() -> None:
    assert_rows_equal([(1, "a"), (2, "b"), (1, "a")], [(2, "b"), (1, "a"), (1, "a")])
    assert diff_of([(1,), (1,)], [(1,)]) == "rows differ: 1 extra\nextra  1"
    assert diff_of([(1,)], [(1,), (1,)]) == "rows differ: 1 missing\nmissing  1"


def test_order_counts_when_it_is_asked_for() -> None:
    assert_rows_equal([(1,), (2,)], [(1,), (2,)], ordered=True)
    assert diff_of([(2,), (1,), (3,)], [(1,), (2,)], columns=["id"], ordered=True) == (
        "rows differ in 3 of 3 places\n"
        "            id\n"
        "1 expected  *1*\n"
        "1 actual    *2*\n"
        "2 expected  *2*\n"
        "2 actual    *1*\n"
        "3 actual    3"
    )


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (None, None),
        (NAN, NAN),
        (0.0, -0.0),
        (Decimal("1.0"), Decimal("1.00")),
        ([1, None], [1, None]),
        ({"a": NAN}, {"a": NAN}),
        ((1, "x"), (1, "x")),
        (
            dt.datetime(2024, 1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=1))),
            dt.datetime(2024, 1, 1, tzinfo=dt.UTC),
        ),
    ],
)
def test_equal_values(a: Any, b: Any) -> None:
    assert_rows_equal([(a,)], [(b,)])


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (None, 0),
        (None, ""),
        (True, 1),
        (1, 1.0),
        (1, Decimal(1)),
        (Decimal("0.1"), 0.1),
        (0.1 + 0.2, 0.3),
        ("1", 1),
        (b"a", "a"),
        ([1], (1,)),
        ([1], [1, 2]),
        ({"a": 1}, {"b": 1}),
        (dt.date(2024, 1, 1), dt.datetime(2024, 1, 1, tzinfo=dt.UTC)),
        (dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 1, tzinfo=dt.UTC)),  # noqa: DTZ001
    ],
)
def test_different_values(a: Any, b: Any) -> None:
    diff_of([(a,)], [(b,)])
    diff_of([(b,)], [(a,)])


def test_a_tolerance_is_for_floating_point_numbers_alone() -> None:
    assert_rows_equal([(0.1 + 0.2, NAN, float("inf"))], [(0.3, NAN, float("inf"))], tolerance=1e-9)
    diff_of([(0.5,)], [(0.3,)], tolerance=0.1)
    diff_of([(Decimal("0.31"),)], [(Decimal("0.3"),)], tolerance=1)
    diff_of([(float("inf"),)], [(1.0,)], tolerance=1)
    diff_of([(1,)], [(2,)], tolerance=5)


def test_with_a_tolerance_as_many_rows_as_possible_find_a_partner() -> None:
    assert_rows_equal([(1.0,), (2.0,)], [(1.5,), (1.0,)], tolerance=0.5)
    assert_rows_equal([(2.0,), (1.0,)], [(1.5,), (1.0,)], tolerance=0.5)


def test_numbers_of_two_types_are_equal_by_value_when_types_do_not_count() -> None:
    assert_rows_equal([(1, 1.0, Decimal(1))], [(1.0, Decimal(1), 1)], exact_types=False)
    diff_of([(True,)], [(1,)], exact_types=False)
    diff_of([("1",)], [(1,)], exact_types=False)


def test_tables_and_mappings_are_compared_by_name() -> None:
    table = T("a | b \n 1 | x \n 2 | y")
    assert_rows_equal([{"b": "y", "a": 2}, {"a": 1, "b": "x"}], table)
    assert_rows_equal(table, [{"b": "y", "a": 2}, {"a": 1, "b": "x"}])
    assert_rows_equal(table, [("x",), ("y",)], columns=["b"])
    assert_rows_equal(iter([(1, "x"), (2, "y")]), table)


def test_the_diff_marks_the_cells_that_differ_and_lists_the_rest() -> None:
    actual = T("""
        sym  | ts       | qty
        AAPL | 10:00:05 | 99
        MSFT | 10:00:06 | 7
        GOOG | 10:00:07 | 1
    """)
    expected = T("""
        sym  | ts       | qty
        AAPL | 10:00:05 | 100
        GOOG | 10:00:07 | 1
        null | 09:00    | 3
    """)
    assert diff_of(actual, expected) == (
        "rows differ: 1 of 3 differs, 1 missing, 1 extra\n"
        "          sym  | ts       | qty\n"
        "expected  AAPL | 10:00:05 | *100*\n"
        "actual    AAPL | 10:00:05 | *99*\n"
        "missing   null | 09:00:00 | 3\n"
        "extra     MSFT | 10:00:06 | 7"
    )


def test_the_diff_names_the_types_where_they_are_the_difference() -> None:
    assert diff_of([(1, 2)], [(1, Decimal(2))]) == (
        "rows differ: 1 of 1 differs\nexpected  1 | *2 (decimal)*\nactual    1 | *2 (integer)*"
    )
    assert "*null*" in diff_of([(1, None)], [(1, "null")])
    assert '*"null" (string)*' in diff_of([(1, None)], [(1, "null")])


def test_rows_of_different_length_are_shown() -> None:
    assert diff_of([(1, 2)], [(1,)]) == "rows differ: 1 missing, 1 extra\nmissing  1 |\nextra    1 | 2"


def test_a_long_diff_is_cut() -> None:
    text = diff_of([(n,) for n in range(100)], [])
    assert text.startswith("rows differ: 100 extra\n")
    assert text.endswith("extra  19\nand 80 more")


def test_many_rows_compare_quickly() -> None:
    rows = [(n, float(n), str(n % 7)) for n in range(20_000)]
    shuffled = random.Random(1).sample(rows, len(rows))
    assert_rows_equal(shuffled, rows)
