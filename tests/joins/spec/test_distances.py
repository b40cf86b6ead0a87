"""Distances: how they are stored, measured and negate_distance."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refusals import refused
from spec_values import signed_durations, signed_numbers
from weft.core.duration import Duration
from weft.errors import ArgumentError, JoinSpecError
from weft.joins.spec.values import check_distance, is_number, negate_distance, parse_distance


@given(signed_durations | signed_numbers)
def test_negating_twice_gives_the_distance_back(distance: Any) -> None:
    stored = check_distance(distance, "offset", signed=True)
    assert negate_distance(negate_distance(stored)) == stored
    assert parse_distance(negate_distance(stored), "offset", signed=True) == -parse_distance(
        stored, "offset", signed=True
    )


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**40), max_value=10**40))
def test_a_number_is_stored_with_every_digit(number: Decimal) -> None:
    stored = check_distance(number, "offset", signed=True)
    assert stored == number
    assert check_distance(stored, "offset", signed=True) == stored


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_is_stored_as_it_prints(number: float) -> None:
    stored = check_distance(number, "offset", signed=True)
    assert stored == Decimal(str(number))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (5, 5.0),
        (5, Decimal("5.000")),
        (2.5, Decimal("2.50")),
        ("+5 s", "5 s"),
        ("- 5 s", "-5 s"),
        (" 5 s", "5 s"),
    ],
)
def test_spellings_of_one_number_are_stored_alike(one: Any, other: Any) -> None:
    assert check_distance(one, "x", signed=True) == check_distance(other, "x", signed=True)


def test_a_duration_is_stored_as_a_timedelta() -> None:
    assert check_distance(Duration.parse("90m"), "x") == dt.timedelta(minutes=90)


@pytest.mark.parametrize("value", [-1, -0.5, Decimal(-3), "-1", "-1 s", dt.timedelta(-1)])
def test_a_negative_distance_is_refused_where_none_is_wanted(value: Any) -> None:
    with refused(JoinSpecError, "W0304", "tolerance", "must not be negative"):
        check_distance(value, "tolerance")


@pytest.mark.parametrize("value", [0, "0", "0 s", dt.timedelta(0), 0.0, Decimal("0.00")])
def test_a_zero_distance_is_refused_where_none_is_wanted(value: Any) -> None:
    assert parse_distance(check_distance(value, "tolerance"), "tolerance") == 0
    with refused(JoinSpecError, "W0304", "size", "greater than zero"):
        check_distance(value, "size", zero=False)


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(10**1000, id="a thousand digits"),
        pytest.param(-(10**5000), id="more digits than Python prints"),
        Decimal("1e1000"),
        float("nan"),
        Decimal("sNaN"),
    ],
)
def test_a_number_beyond_measure_is_refused(value: Any) -> None:
    with refused(JoinSpecError, "W0304", "is not a valid distance"):
        check_distance(value, "tolerance", signed=True)


@pytest.mark.parametrize("value", [True, None, b"5 s", [], 1j])
def test_a_distance_of_another_kind_is_a_type_error(value: Any) -> None:
    with refused(ArgumentError, "W0301", type(value).__name__, "5 seconds"):
        check_distance(value, "tolerance")


@pytest.mark.parametrize(
    ("stored", "number"),
    [
        (1, True),
        (Decimal("0.5"), True),
        ("15", True),
        ("-1.5", True),
        ("15 s", False),
        ("1e5", False),
        ("٣", False),
    ],
)
def test_a_text_is_a_number_only_in_plain_digits(stored: Any, number: bool) -> None:  # noqa: FBT001
    assert is_number(stored) is number
