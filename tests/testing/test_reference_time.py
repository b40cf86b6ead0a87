"""Interval and window joins of the reference engine, on the orders and shipments of the acceptance data."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import pytest

from by_hand import micros, resolved, run, window, within
from weft.joins.resolve.resolved import SameWindow
from weft.testing import (
    T,
    Table,
    Window,
    assert_rows_equal,
    matching_pairs,
    relationship_violations,
    shared_windows,
    windows_of,
)

ORDERS = T("""
    order_id | customer_id | ordered_at
    ORD-001  | 1001        | 2025-01-14T10:00:00
    ORD-002  | 1002        | 2025-01-14T10:05:00
    ORD-003  | 1003        | 2025-01-14T10:10:00
    ORD-004  | 1001        | 2025-01-14T10:15:00
    ORD-005  | 1004        | 2025-01-14T10:20:00
    ORD-006  | 1002        | 2025-01-14T10:25:00
    ORD-007  | 1005        | 2025-01-14T10:30:00
    ORD-008  | 1003        | 2025-01-14T10:35:00
    ORD-009  | 1001        | 2025-01-14T10:40:00
    ORD-010  | 1004        | 2025-01-14T10:45:00
""")
SHIPMENTS = T("""
    shipment_id | order_id | carrier | shipped_at
    SHP-001     | ORD-001  | FedEx   | 2025-01-14T10:10:00
    SHP-002     | ORD-002  | UPS     | 2025-01-14T10:15:00
    SHP-003     | ORD-003  | USPS    | 2025-01-14T10:20:00
    SHP-004     | ORD-004  | DHL     | 2025-01-14T10:25:00
    SHP-005     | ORD-005  | FedEx   | 2025-01-14T10:30:00
    SHP-006     | ORD-006  | UPS     | 2025-01-14T10:35:00
    SHP-007     | ORD-007  | FedEx   | 2025-01-14T10:40:00
    SHP-008     | ORD-008  | USPS    | 2025-01-14T10:45:00
""")
AT = ("ordered_at", "shipped_at")


def orders_of(match: Any, orders: Table = ORDERS, shipments: Table = SHIPMENTS, **options: Any) -> list[str]:
    join = resolved(orders, shipments, ["order_id"], match, **options)
    return sorted(row[0] for row in run(orders, shipments, join))


def numbered(*numbers: int) -> list[str]:
    return [f"ORD-{n:03d}" for n in numbers]


FIRST_EIGHT = numbered(*range(1, 9))


@pytest.mark.parametrize(
    ("lower", "upper", "expected"),
    [
        ("0s", "10m", FIRST_EIGHT),
        ("0s", "9m 59s 999ms", []),
        ("10m", "10m", FIRST_EIGHT),
        ("10m 1ms", "1h", []),
        (None, "10m", FIRST_EIGHT),
        ("-1h", None, FIRST_EIGHT),
        (None, "9m", []),
    ],
)
def test_an_interval_includes_both_ends(lower: str | None, upper: str | None, expected: list[str]) -> None:
    assert orders_of(within(ORDERS, SHIPMENTS, AT, lower, upper)) == expected


def test_an_interval_written_from_the_shipment_side_gives_the_same_pairs() -> None:
    match = within(SHIPMENTS, ORDERS, ("shipped_at", "ordered_at"), "-10m", "0s")
    assert len(run(SHIPMENTS, ORDERS, resolved(SHIPMENTS, ORDERS, ["order_id"], match))) == 8


@pytest.mark.parametrize(("how", "rows"), [("inner", 8), ("left", 10), ("right", 9), ("full", 11)])
def test_an_orphan_shipment_and_unshipped_orders_are_padded(how: str, rows: int) -> None:
    orphan = ("SHP-099", "ORD-404", "UPS", SHIPMENTS.rows[0][3])
    shipments = SHIPMENTS.with_rows([*SHIPMENTS.rows, orphan])
    found = orders_of(within(ORDERS, shipments, AT, "0s", "24h"), shipments=shipments, how=how)
    assert len(found) == rows
    assert ("ORD-404" in found) == (how in ("right", "full"))
    assert ("ORD-009" in found) == (how in ("left", "full"))


def test_semi_and_anti_interval_joins_split_the_orders() -> None:
    match = within(ORDERS, SHIPMENTS, AT, "0s", "24h")
    assert orders_of(match, how="semi") == FIRST_EIGHT
    assert orders_of(match, how="anti") == numbered(9, 10)


def test_an_interval_on_numbers_is_exact() -> None:
    left = T("id | t: decimal(4,1) \n 1 | 5.0")
    right = T("id | u: decimal(4,1) \n 1 | 4.9 \n 1 | 5.0 \n 1 | 5.3 \n 1 | 5.4")
    match = within(left, right, ("t", "u"), Decimal(0), Decimal("0.3"))
    rows = run(left, right, resolved(left, right, ["id"], match))
    assert_rows_equal([row[2:] for row in rows], T("u: decimal(4,1) \n 5.0 \n 5.3"))


def test_an_interval_with_a_null_time_matches_nothing() -> None:
    left, right = T("t: timestamp \n null \n 10:00"), T("u: timestamp \n null \n 10:00")
    join = resolved(left, right, [], within(left, right, ("t", "u"), None, "1h"), how="full")
    pairs = matching_pairs(join, left.rows, right.rows)
    assert pairs == [(1, 1)]


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ("10m", []),
        ("15m", numbered(1, 4, 7)),
        ("20m", numbered(1, 2, 5, 6)),
        ("30m", numbered(1, 2, 3, 4, 7, 8)),
        ("60m", FIRST_EIGHT),
    ],
)
def test_tumbling_windows_hold_the_computed_orders(size: str, expected: list[str]) -> None:
    assert orders_of(window(ORDERS, SHIPMENTS, AT, "tumbling", size=size)) == expected


@pytest.mark.parametrize(
    ("size", "slide", "rows"), [("20m", "10m", 8), ("30m", "10m", 16), ("60m", "10m", 40), ("60m", "30m", 14)]
)
def test_sliding_windows_give_one_row_a_pair_or_one_a_shared_window(size: str, slide: str, rows: int) -> None:
    once = window(ORDERS, SHIPMENTS, AT, "sliding", size=size, slide=slide)
    each = window(ORDERS, SHIPMENTS, AT, "sliding", size=size, slide=slide, per_window=True)
    assert orders_of(once) == FIRST_EIGHT
    assert len(orders_of(each)) == rows


def test_a_pair_that_shares_two_windows_is_one_match_of_a_relationship() -> None:
    match = window(ORDERS, SHIPMENTS, AT, "sliding", size="30m", slide="10m", per_window=True)
    join = resolved(ORDERS, SHIPMENTS, ["order_id"], match, relationship="1:1")
    pairs = matching_pairs(join, ORDERS.rows, SHIPMENTS.rows)
    assert len(pairs) > len(set(pairs))
    assert relationship_violations(join, pairs) == ((), ())


@pytest.mark.parametrize(("gap", "expected"), [("9m 59s 999ms", []), ("10m", FIRST_EIGHT), ("30m", FIRST_EIGHT)])
def test_a_session_joins_at_exactly_the_gap(gap: str, expected: list[str]) -> None:
    assert orders_of(window(ORDERS, SHIPMENTS, AT, "session", gap=gap)) == expected


def test_the_order_of_rows_does_not_matter_and_duplicates_multiply() -> None:
    rng = random.Random(7)
    twice_orders, twice_shipments = list(ORDERS.rows) * 2, list(SHIPMENTS.rows) * 2
    for match in (
        within(ORDERS, SHIPMENTS, AT, "0s", "10m"),
        window(ORDERS, SHIPMENTS, AT, "tumbling", size="60m"),
        window(ORDERS, SHIPMENTS, AT, "session", gap="10m"),
    ):
        rng.shuffle(twice_orders)
        rng.shuffle(twice_shipments)
        found = orders_of(match, ORDERS.with_rows(twice_orders), SHIPMENTS.with_rows(twice_shipments))
        assert found == sorted(FIRST_EIGHT * 4)


def of_kind(kind: Any, size: int | None = None, slide: int | None = None, gap: int | None = None) -> SameWindow:
    return SameWindow(left=0, right=0, kind=kind, size=size, slide=slide, gap=gap, per_window=False)


@pytest.mark.parametrize(
    ("time", "number"), [(0, 0), (30_000, 0), (59_999, 0), (60_000, 1), (90_000, 1), (-1, -1), (-60_000, -1)]
)
def test_a_tumbling_window_is_closed_at_its_start_and_open_at_its_end(time: int, number: int) -> None:
    assert windows_of(of_kind("tumbling", 60_000), time) == (Window(number * 60_000, (number + 1) * 60_000),)


def test_a_sliding_window_does_not_hold_a_time_after_its_end() -> None:
    starts = [w.start for w in windows_of(of_kind("sliding", 60_000, 30_000), 95_000)]
    assert starts == [60_000, 90_000]
    assert [w.start for w in windows_of(of_kind("sliding", 60_000, 30_000), 45_000)] == [0, 30_000]


def test_sliding_windows_go_below_zero() -> None:
    assert [w.start for w in windows_of(of_kind("sliding", 60, 30), 10)] == [-30, 0]
    assert [w.start for w in windows_of(of_kind("sliding", 60, 30), -1)] == [-60, -30]


def test_every_window_of_the_grid_that_holds_a_time_is_found() -> None:
    for size, slide in ((6, 2), (7, 3), (5, 5)):
        match = of_kind("sliding", size, slide)
        for time in range(-20, 20):
            expected = [k * slide for k in range(-20, 20) if k * slide <= time < k * slide + size]
            assert [w.start for w in windows_of(match, time)] == expected


def test_the_first_shared_window_comes_first() -> None:
    assert shared_windows(of_kind("sliding", 60, 30), 95, 100) == (Window(60, 120), Window(90, 150))
    assert shared_windows(of_kind("sliding", 60, 30), 95, 125) == (Window(90, 150),)
    assert shared_windows(of_kind("sliding", 60, 30), 95, 155) == ()


def test_null_and_nan_are_in_no_window() -> None:
    for kind in ("tumbling", "sliding", "session"):
        match = of_kind(kind, 60, 30, 10)
        assert windows_of(match, None, [1]) == windows_of(match, float("nan"), [1]) == ()


def test_a_session_is_a_chain_that_events_of_both_sides_extend() -> None:
    left = T("k | t \n a | 10:00:10 \n a | 10:01:20 \n b | 10:00:50")
    right = T("k | u \n a | 10:00:50 \n a | 10:03:00")
    join = resolved(left, right, ["k"], window(left, right, ("t", "u"), "session", gap="60s"))
    # 10 and 80 are 70 s apart and meet through 50; 180 is 100 s after 80; key b has a session of its own.
    assert matching_pairs(join, left.rows, right.rows) == [(0, 0), (1, 0)]


def test_a_late_event_bridges_two_sessions() -> None:
    left = T("t \n 10:00:00 \n 10:00:10")
    apart = T("u \n 10:00:50 \n 10:01:00")
    bridged = T("u \n 10:00:50 \n 10:01:00 \n 10:00:25")
    for right, expected in ((apart, 0), (bridged, 6)):
        join = resolved(left, right, [], window(left, right, ("t", "u"), "session", gap="30s"))
        assert len(matching_pairs(join, left.rows, right.rows)) == expected


def test_a_session_never_reaches_further_than_one_gap_from_an_event() -> None:
    left, right = T("t \n 10:00:10"), T("u \n 10:02:00")
    join = resolved(left, right, [], window(left, right, ("t", "u"), "session", gap="60s"))
    assert matching_pairs(join, left.rows, right.rows) == []


def test_the_window_of_a_session_ends_a_gap_after_its_last_event() -> None:
    match = of_kind("session", gap=micros("10s"))
    events = [0, micros("10s"), micros("20s"), micros("31s")]
    assert windows_of(match, micros("10s"), events) == (Window(0, micros("30s")),)
    assert windows_of(match, micros("31s"), events) == (Window(micros("31s"), micros("41s")),)


def test_rows_that_a_predicate_refuses_still_extend_a_session() -> None:
    left = T("t | ok \n 10:00:00 | true \n 10:00:50 | false")
    right = T("u \n 10:01:40")
    join = resolved(left, right, [], window(left, right, ("t", "u"), "session", gap="60s"), where=["left.ok"])
    assert matching_pairs(join, left.rows, right.rows) == [(0, 0)]


def test_null_keys_are_in_no_session_of_others() -> None:
    left = T("k | t \n null | 10:00:00 \n a | 10:00:00")
    right = T("k | u \n null | 10:00:00 \n b | 10:00:00")
    join = resolved(left, right, ["k"], window(left, right, ("t", "u"), "session", gap="60s"))
    assert matching_pairs(join, left.rows, right.rows) == []
