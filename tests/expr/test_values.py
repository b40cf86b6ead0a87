"""What the evaluator computes with: the order of values and the types of decimal results."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal as Number
from typing import Any

import pytest

from weft.core.types import DATE, TIMESTAMP, TIMESTAMP_NTZ, Decimal
from weft.errors import EvaluationError
from weft.expr.casts import cast_value
from weft.expr.values import fit, order, result_type


@pytest.mark.parametrize(
    ("less", "greater"),
    [
        ([None], [1]),
        ([1, None], [1, 0]),
        ([1], [1, None]),
        ({"a": None, "b": 9}, {"a": 1, "b": 0}),
        ([[None]], [[0]]),
        (math.inf, math.nan),
        ([2.0], [math.nan]),
    ],
)
def test_null_is_the_least_and_nan_the_greatest_value_also_inside(less: Any, greater: Any) -> None:
    assert (order(less, greater), order(greater, less)) == (-1, 1)
    assert (order(less, less), order(greater, greater)) == (0, 0)


@pytest.mark.parametrize(
    ("op", "a", "b", "expected"),
    [
        # Past 38 digits the fraction gives way down to six digits, or to what it has when that is less.
        ("+", (38, 2), (38, 2), (38, 2)),
        ("+", (38, 10), (38, 10), (38, 9)),
        ("*", (38, 0), (38, 2), (38, 2)),
        ("*", (38, 10), (38, 10), (38, 6)),
        ("*", (20, 3), (20, 3), (38, 6)),
        ("/", (38, 2), (10, 0), (38, 6)),
        ("%", (38, 2), (38, 10), (38, 10)),
    ],
)
def test_a_decimal_result_has_the_type_that_spark_gives_it(
    op: str, a: tuple[int, int], b: tuple[int, int], expected: tuple[int, int]
) -> None:
    assert result_type(op, Decimal(*a), Decimal(*b)) == Decimal(*expected)


@pytest.mark.parametrize("digits", ["9" * 38, "-" + "9" * 38, "1" * 37 + "5"])
def test_a_number_of_38_digits_fits_as_it_is_and_one_of_39_does_not(digits: str) -> None:
    assert str(fit(Number(digits), Decimal(38, 0))) == digits
    with pytest.raises(EvaluationError, match="does not fit"):
        fit(Number(digits + "0"), Decimal(38, 0))


def test_the_date_of_an_instant_is_the_one_in_the_zone_of_the_session() -> None:
    moment = dt.datetime(2026, 1, 31, 23, 30, tzinfo=dt.UTC)
    east, west = (dt.timezone(dt.timedelta(hours=hours)) for hours in (2, -2))
    assert cast_value(moment, TIMESTAMP, DATE, east) == dt.date(2026, 2, 1)
    assert cast_value(moment, TIMESTAMP, DATE, west) == dt.date(2026, 1, 31)
    assert cast_value(moment.replace(tzinfo=None), TIMESTAMP_NTZ, DATE, east) == dt.date(2026, 1, 31)


def test_the_clock_of_an_instant_is_that_of_the_zone_of_the_session() -> None:
    moment = dt.datetime(2026, 1, 31, 23, 30, tzinfo=dt.UTC)
    east, local = dt.timezone(dt.timedelta(hours=2)), dt.datetime(2026, 2, 1, 1, 30)  # noqa: DTZ001  # the clock alone
    assert cast_value(moment, TIMESTAMP, TIMESTAMP_NTZ, east) == local
    assert cast_value(local, TIMESTAMP_NTZ, TIMESTAMP, east) == moment
