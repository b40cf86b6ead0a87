"""As-of joins of the reference engine against tables written by hand."""

from __future__ import annotations

import itertools
from decimal import Decimal
from typing import Any

import pytest

from by_hand import asof, resolved, run
from weft.testing import T, Table, assert_rows_equal

TRADES = T("""
    symbol | trade_ts | price
    A      | 10:00:03 | 10
    A      | 10:00:06 | 12
    B      | 10:00:04 | 15
""")


def check(left: Table, right: Table, expected: Table, at: tuple[str, str], keys: Any, **options: Any) -> None:
    how = options.pop("how", "left")
    where = options.pop("where", ())
    join = resolved(left, right, keys, asof(left, right, at, **options), how=how, where=where)
    assert join.schema.names == expected.schema.names
    assert_rows_equal(run(left, right, join), expected)


def test_a1_backward_takes_the_latest_quote_at_or_before_each_trade() -> None:
    quotes = T("""
        symbol | quote_ts | quote_price
        A      | 10:00:01 | 9
        A      | 10:00:05 | 11
        B      | 10:00:02 | 14
    """)
    expected = T("""
        symbol | trade_ts | price | quote_ts | quote_price
        A      | 10:00:03 | 10    | 10:00:01 | 9
        A      | 10:00:06 | 12    | 10:00:05 | 11
        B      | 10:00:04 | 15    | 10:00:02 | 14
    """)
    check(TRADES, quotes, expected, ("trade_ts", "quote_ts"), ["symbol"])


def test_a2_forward_takes_the_earliest_quote_at_or_after_each_trade() -> None:
    quotes = T("""
        symbol | quote_ts | quote_price
        A      | 10:00:04 | 13
        A      | 10:00:07 | 15
        B      | 10:00:06 | 18
    """)
    expected = T("""
        symbol | trade_ts | price | quote_ts | quote_price
        A      | 10:00:03 | 10    | 10:00:04 | 13
        A      | 10:00:06 | 12    | 10:00:07 | 15
        B      | 10:00:04 | 15    | 10:00:06 | 18
    """)
    check(TRADES, quotes, expected, ("trade_ts", "quote_ts"), ["symbol"], direction="forward")


NEAR_TRADES = T("""
    symbol | trade_ts | price
    A      | 10:00:06 | 12
    A      | 10:00:09 | 14
""")
NEAR_QUOTES = T("""
    symbol | quote_ts | quote_price
    A      | 10:00:04 | 10
    A      | 10:00:08 | 13
    A      | 10:00:15 | 16
""")


def test_a3_nearest_takes_the_earlier_of_two_equally_near_quotes() -> None:
    expected = T("""
        symbol | trade_ts | price | quote_ts | quote_price
        A      | 10:00:06 | 12    | 10:00:04 | 10
        A      | 10:00:09 | 14    | 10:00:08 | 13
    """)
    check(NEAR_TRADES, NEAR_QUOTES, expected, ("trade_ts", "quote_ts"), ["symbol"],
          direction="nearest", tolerance="3 seconds")  # fmt: skip


def test_nearest_tie_forward_takes_the_later_of_two_equally_near_quotes() -> None:
    expected = T("""
        symbol | trade_ts | price | quote_ts | quote_price
        A      | 10:00:06 | 12    | 10:00:08 | 13
        A      | 10:00:09 | 14    | 10:00:08 | 13
    """)
    check(NEAR_TRADES, NEAR_QUOTES, expected, ("trade_ts", "quote_ts"), ["symbol"],
          direction="nearest", tolerance="3 seconds", nearest_tie="forward")  # fmt: skip


EVENTS = T("""
    symbol | event_ts
    1      | 10
    1      | 50
""")
READINGS = T("""
    symbol | read_ts | value
    1      | 3       | 100
    1      | 30      | 200
""")


def test_a4_a_reading_out_of_tolerance_leaves_the_event_without_a_match() -> None:
    expected = T("""
        symbol | event_ts | read_ts | value
        1      | 10       | 3       | 100
        1      | 50       | null    | null
    """)
    check(EVENTS, READINGS, expected, ("event_ts", "read_ts"), ["symbol"], tolerance=Decimal(15))


def test_a4_an_inner_as_of_join_drops_the_event_without_a_match() -> None:
    expected = T("""
        symbol | event_ts | read_ts | value
        1      | 10       | 3       | 100
    """)
    check(EVENTS, READINGS, expected, ("event_ts", "read_ts"), ["symbol"], tolerance=Decimal(15), how="inner")


def test_a5_a_predicate_gives_each_row_a_tolerance_of_its_own() -> None:
    events = T("""
        symbol | event_ts | max_gap
        1      | 10       | 7
        1      | 20       | 3
        1      | 50       | 10
    """)
    readings = T("""
        symbol | read_ts | value
        1      | 4       | 100
        1      | 18      | 200
        1      | 45      | 300
    """)
    expected = T("""
        symbol | event_ts | max_gap | read_ts | value
        1      | 10       | 7       | 4       | 100
        1      | 20       | 3       | 18      | 200
        1      | 50       | 10      | 45      | 300
    """)
    check(events, readings, expected, ("event_ts", "read_ts"), ["symbol"],
          where=["left.event_ts - right.read_ts <= left.max_gap"])  # fmt: skip


def test_a6_each_reading_takes_the_calibration_of_its_device() -> None:
    readings = T("""
        device | read_at
        11     | 08:00
        11     | 09:00
        12     | 09:30
    """)
    calibrations = T("""
        device | calibrated_at | state
        11     | 07:55         | stable
        11     | 08:45         | drifting
        12     | 09:15         | stable
        12     | 10:00         | offline
    """)
    expected = T("""
        device | read_at | calibrated_at | state
        11     | 08:00   | 07:55         | stable
        11     | 09:00   | 08:45         | drifting
        12     | 09:30   | 09:15         | stable
    """)
    check(readings, calibrations, expected, ("read_at", "calibrated_at"), ["device"])


def test_a7_dates_are_ordered_and_a_tolerance_in_days_holds() -> None:
    sales = T("""
        sku   | region | sold_on
        SKU-1 | North  | 2024-03-01
        SKU-3 | South  | 2024-03-02
    """)
    forecasts = T("""
        sku   | made_on    | units
        SKU-1 | 2024-02-27 | 55
        SKU-1 | 2024-03-02 | 60
        SKU-3 | 2024-02-20 | 90
    """)
    expected = T("""
        sku   | region | sold_on    | made_on    | units
        SKU-1 | North  | 2024-03-01 | 2024-02-27 | 55
        SKU-3 | South  | 2024-03-02 | 2024-02-20 | 90
    """)
    check(sales, forecasts, expected, ("sold_on", "made_on"), ["sku"], tolerance="30 days")


def test_a_tolerance_is_inclusive_and_a_microsecond_more_is_too_far() -> None:
    left = T("""
        id | t
        1  | 10:00:05
        2  | 10:00:05.000001
    """)
    right = T("""
        u
        10:00:00
    """)
    expected = T("""
        id | t               | u
        1  | 10:00:05        | 10:00:00
        2  | 10:00:05.000001 | null
    """)
    check(left, right, expected, ("t", "u"), [], tolerance="5 seconds")


@pytest.mark.parametrize("direction", ["backward", "forward", "nearest"])
def test_equal_times_match_only_where_they_are_allowed(direction: str) -> None:
    left = T("t \n 10:00:05")
    right = T("u \n 10:00:05")
    matched = T("t | u \n 10:00:05 | 10:00:05")
    alone = T("t | u \n 10:00:05 | null")
    options = {"direction": direction, "tolerance": "0s"}
    check(left, right, matched, ("t", "u"), [], allow_exact=True, **options)
    check(left, right, alone, ("t", "u"), [], allow_exact=False, **options)


def test_without_exact_matches_the_next_quote_is_taken() -> None:
    left = T("t \n 10:00:05")
    right = T("u \n 10:00:05 \n 10:00:02 \n 10:00:09")
    for direction, taken in (("backward", "10:00:02"), ("forward", "10:00:09"), ("nearest", "10:00:02")):
        expected = T(f"t | u \n 10:00:05 | {taken}")
        check(left, right, expected, ("t", "u"), [], direction=direction, allow_exact=False)


def test_null_keys_and_null_times_never_match() -> None:
    left = T("""
        sym  | t
        null | 10:00:05
        A    | null
        A    | 10:00:05
    """)
    right = T("""
        sym  | u        | px
        null | 10:00:01 | 1
        A    | null     | 2
    """)
    expected = T("""
        sym  | t        | u: timestamp | px: long
        null | 10:00:05 |              |
        A    | null     |              |
        A    | 10:00:05 |              |
    """)
    check(left, right, expected, ("t", "u"), ["sym"])


def test_predicates_filter_before_the_choice_is_made() -> None:
    left = T("t \n 10:00:05")
    right = T("""
        u        | px
        10:00:01 | 100
        10:00:04 | 1
    """)
    expected = T("t | u | px \n 10:00:05 | 10:00:01 | 100")
    check(left, right, expected, ("t", "u"), [], where=["right.px >= 50"])


TIED = T("""
    u        | seq  | px
    10:00:01 | 2    | 5
    10:00:01 | 3    | 1
    10:00:01 | null | 9
    10:00:01 | 3    | 0
""")


@pytest.mark.parametrize("direction", ["backward", "forward", "nearest"])
@pytest.mark.parametrize(
    ("tie_break", "winner"), [(("seq",), (3, 1)), (("px",), (None, 9)), ((), (3, 1)), (("seq", "px"), (3, 1))]
)
def test_of_right_rows_with_equal_time_the_greatest_wins_in_any_order_of_input(
    direction: str, tie_break: tuple[str, ...], winner: tuple[Any, Any]
) -> None:
    left = T("t \n 10:00:01")
    for rows in itertools.permutations(TIED.rows):
        right = TIED.with_rows(rows)
        join = resolved(left, right, [], asof(left, right, ("t", "u"), direction=direction, tie_break=tie_break))
        [found] = run(left, right, join)
        assert found[2:] == winner


def test_nan_is_the_greatest_of_a_tie() -> None:
    left = T("t \n 10:00:01")
    right = T("""
        u        | px: double
        10:00:01 | inf
        10:00:01 | nan
        10:00:01 | 1.0
    """)
    expected = T("t | u | px: double \n 10:00:01 | 10:00:01 | nan")
    check(left, right, expected, ("t", "u"), [])


def test_duplicate_left_rows_are_all_kept_with_a_tolerance() -> None:
    left = T("t \n 10:00:05 \n 10:00:05 \n 10:00:05")
    right = T("u \n 10:00:04 \n 10:00:03")
    expected = T("t | u \n 10:00:05 | 10:00:04 \n 10:00:05 | 10:00:04 \n 10:00:05 | 10:00:04")
    check(left, right, expected, ("t", "u"), [], tolerance="5s")


def test_a_date_is_its_midnight_when_it_meets_a_timestamp() -> None:
    left = T("t \n 2024-01-01T00:00:00 \n 2023-12-31T23:59:59.999999")
    right = T("u \n 2024-01-01")
    expected = T("t | u: date \n 2024-01-01T00:00:00 | 2024-01-01 \n 2023-12-31T23:59:59.999999 | null")
    check(left, right, expected, ("t", "u"), [])


def test_long_decimals_keep_every_digit_of_their_order() -> None:
    left = T("t: decimal(38,10) \n 1234567890123456789012345678.0000000002")
    right = T("""
        u: decimal(38,10)
        1234567890123456789012345678.0000000001
        1234567890123456789012345678.0000000003
    """)
    join = resolved(left, right, [], asof(left, right, ("t", "u"), tolerance=Decimal("0.0000000001")))
    assert run(left, right, join) == [(left.rows[0][0], right.rows[0][0])]


def test_nan_orders_above_every_number_and_is_far_from_all_of_them() -> None:
    left = T("t: double \n nan \n 1.0")
    right = T("u: double \n nan \n 0.5")
    free = T("t: double | u: double \n nan | nan \n 1.0 | 0.5")
    check(left, right, free, ("t", "u"), [])
    check(left, right, free, ("t", "u"), [], tolerance=Decimal(1))
    numbers = T("u: double \n 0.5 \n 0.7")
    check(left, numbers, T("t: double | u: double \n nan | 0.7 \n 1.0 | 0.7"), ("t", "u"), [])
    check(
        left,
        numbers,
        T("t: double | u: double \n nan | null \n 1.0 | 0.7"),
        ("t", "u"),
        [],
        tolerance=Decimal(9),
    )
