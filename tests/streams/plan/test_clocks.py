"""Watermarks and the clocks of joins: what is still to come, from the watermark alone."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from stream_jobs import planned
from weft.streams.kernel.spec import FOREVER, NEVER, Clock
from weft.streams.plan.clocks import (
    compute_clocks,
    compute_needed,
    compute_watermark,
    find_lagging_side,
    shift_clock,
)
from weft.streams.plan.resolved import StatementPlan

SECOND = 1_000_000
TWO = "SELECT a.id FROM a LEFT JOIN b ON a.k = b.k WITHIN ('5s', '10s')"
DELAYED = {"a": "100ms", "b": "0s"}


def two(**delays: str) -> StatementPlan:
    return planned(TWO, delays=delays)


def test_a_side_that_showed_no_row_keeps_the_watermark_undefined() -> None:
    plan = two()
    assert compute_watermark(plan, {}, None) is None
    assert compute_watermark(plan, {"a": 5 * SECOND}, None) is None
    assert compute_watermark(plan, {"a": 5 * SECOND, "b": None}, None) is None


def test_the_watermark_is_the_least_of_the_sides_less_their_delays() -> None:
    plan = two(**DELAYED)
    assert compute_watermark(plan, {"a": 1000 * 1000, "b": 5000 * 1000}, None) == 900 * 1000
    assert compute_watermark(plan, {"a": 9000 * 1000, "b": 5000 * 1000}, None) == 5000 * 1000


def test_a_row_is_late_below_the_watermark_and_on_time_at_it() -> None:
    mark = compute_watermark(two(**DELAYED), {"a": 1_000_000, "b": 5_000_000}, None)
    assert mark is not None
    assert [time * 1000 < mark for time in (950, 900, 850)] == [False, False, True]


def test_the_watermark_only_moves_forward() -> None:
    plan = two()
    assert compute_watermark(plan, {"a": 3000, "b": 4000}, 9000) == 9000
    assert compute_watermark(plan, {"a": 3000}, 9000) == 9000


def test_the_watermark_is_cut_to_whole_milliseconds_by_floor() -> None:
    plan = two()
    assert compute_watermark(plan, {"a": 1999, "b": 10_000}, None) == 1000
    assert compute_watermark(plan, {"a": -1, "b": 10_000}, None) == -1000


def test_an_idle_side_is_left_out_and_all_idle_moves_nothing() -> None:
    plan = two()
    shown = {"a": 5 * SECOND, "b": 1 * SECOND}
    assert compute_watermark(plan, shown, SECOND, idle={"b"}) == 5 * SECOND
    assert compute_watermark(plan, {"a": 5 * SECOND}, None, idle={"b"}) == 5 * SECOND
    assert compute_watermark(plan, shown, SECOND, idle={"a", "b"}) == SECOND
    assert find_lagging_side(plan, shown) == "b"
    assert find_lagging_side(plan, shown, idle={"b"}) == "a"
    assert find_lagging_side(plan, {"a": 1}) == "b"


def test_a_statement_without_two_streams_has_no_watermark() -> None:
    plan = planned("SELECT a.id FROM a JOIN tab ON a.k = tab.k")
    assert compute_watermark(plan, {"a": 5}, None) is None
    assert find_lagging_side(plan, {"a": 5}) is None
    assert compute_clocks(plan, None, ()) == ()


def test_the_clocks_of_one_join_are_the_watermark() -> None:
    plan = two()
    assert compute_clocks(plan, None, ()) == (Clock(left=NEVER, right=NEVER),)
    assert compute_clocks(plan, 7, ()) == (Clock(left=7, right=7),)
    assert compute_clocks(plan, FOREVER, ()) == (Clock(left=FOREVER, right=FOREVER),)


CHAIN = """SELECT a.id FROM a LEFT JOIN b ON a.k = b.k WITHIN ('5s', '10s')
LEFT JOIN c ON c.k = a.k AND c.t BETWEEN {axis}.t AND {axis}.t + INTERVAL '3' SECOND"""


def run(plan: StatementPlan, marks: list[int]) -> list[tuple[Clock, ...]]:
    """Return the clocks of each batch for a row of watermarks."""
    found: list[tuple[Clock, ...]] = []
    for mark in marks:
        found.append(compute_clocks(plan, mark, found[-1] if found else ()))
    return found


def test_behind_a_join_left_times_lag_by_the_upper_end_of_the_batch_before() -> None:
    clocks = run(planned(CHAIN.format(axis="a")), [100 * SECOND, 200 * SECOND, 300 * SECOND])
    assert [c[1].left for c in clocks] == [NEVER, 90 * SECOND, 190 * SECOND]
    assert [c[1].right for c in clocks] == [100 * SECOND, 200 * SECOND, 300 * SECOND]


def test_behind_a_join_right_times_lag_by_the_lower_end_of_the_batch_before() -> None:
    clocks = run(planned(CHAIN.format(axis="b")), [100 * SECOND, 200 * SECOND, 300 * SECOND])
    assert [c[1].left for c in clocks] == [NEVER, 95 * SECOND, 195 * SECOND]


def test_a_clock_behind_a_join_is_never_ahead_of_the_watermark() -> None:
    plan = planned(
        "SELECT a.id FROM a JOIN b ON a.k = b.k AND b.t BETWEEN a.t - INTERVAL '9' SECOND AND a.t - INTERVAL '7' SECOND"
        " JOIN c ON c.k = a.k AND c.t BETWEEN a.t AND a.t + INTERVAL '3' SECOND"
    )
    clocks = run(plan, [100 * SECOND, 101 * SECOND])
    assert clocks[1][1].left == 101 * SECOND


def test_windows_lag_by_their_size() -> None:
    plan = planned(
        "SELECT a.id FROM a JOIN b ON a.k = b.k WINDOW TUMBLING('1m')"
        " JOIN c ON c.k = a.k AND c.t BETWEEN a.t AND a.t + INTERVAL '3' SECOND"
    )
    clocks = run(plan, [100 * SECOND, 200 * SECOND])
    assert clocks[1][1].left == 100 * SECOND - (60 * SECOND - 1)


def test_a_time_off_the_axis_lags_by_the_axis_and_the_least_difference() -> None:
    plan = planned(
        "SELECT a.id FROM a JOIN b ON a.k = b.k WITHIN ('5s', '10s')"
        " JOIN c ON c.k = a.k AND c.t BETWEEN b.t AND b.t + INTERVAL '3' SECOND"
        " JOIN d ON d.k = a.k AND d.t BETWEEN a.t AND a.t + INTERVAL '1' SECOND"
    )
    clocks = run(plan, [1000 * SECOND, 2000 * SECOND, 3000 * SECOND])
    # Behind the first join: a at least 2000 - 10 = 1990, b at least 2000 - 5 = 1995.
    assert clocks[2][1].left == 1995 * SECOND
    # Behind the second: b at least min(1995, 2000 - 3) = 1995, a at least min(1990, 1995 - 10) = 1985.
    assert clocks[2][2].left == 1985 * SECOND


@given(st.lists(st.integers(-(10**9), 10**9), min_size=1, max_size=8))
def test_clocks_never_move_back(steps: list[int]) -> None:
    marks = sorted(steps)
    clocks = run(planned(CHAIN.format(axis="b")), marks)
    for one, other in pairwise(clocks):
        assert all(x.left <= y.left and x.right <= y.right for x, y in zip(one, other, strict=True))


def test_the_ends_of_time_do_not_move() -> None:
    assert shift_clock(FOREVER, -5) == FOREVER
    assert shift_clock(NEVER, 5) == NEVER
    assert shift_clock(FOREVER - 1, 5) == FOREVER


def test_what_a_join_needs_is_its_own_reach_and_what_is_held_back_before_it() -> None:
    one = two().kernel_steps
    assert compute_needed(one) == ((10 * SECOND, 5 * SECOND),)
    assert one[0].retention == (10 * SECOND, 5 * SECOND)
    chain = planned(CHAIN.format(axis="a")).kernel_steps
    assert compute_needed(chain) == ((10 * SECOND, 5 * SECOND), (3 * SECOND, 10 * SECOND))


def test_what_is_held_back_on_the_left_is_held_back_on_the_right_too() -> None:
    chain = planned(
        "SELECT a.id FROM a LEFT JOIN b ON a.k = b.k WITHIN ('5s', '10s') "
        "JOIN c ON a.k = c.k WITHIN ('1s', '3s') "
        "JOIN d ON c.k = d.k AND d.t BETWEEN c.t AND c.t + INTERVAL '2' SECOND"
    ).kernel_steps
    # Rows of c wait for rows of a that wait for b: d lags by 10 s and by the second before.
    assert compute_needed(chain)[2] == (2 * SECOND, 11 * SECOND)


def test_bounds_of_an_hour_back_and_half_an_hour_on_need_just_that() -> None:
    plan = planned("SELECT a.id FROM a JOIN b ON a.k = b.k WITHIN ('1h', '30m')")
    assert compute_needed(plan.kernel_steps) == ((1800 * SECOND, 3600 * SECOND),)


def test_under_final_right_rows_stay_for_the_left_rows_that_wait() -> None:
    plan = planned("SELECT a.id FROM a JOIN b ON a.k = b.k WITHIN ('5s', '10s') EMIT FINAL")
    assert compute_needed(plan.kernel_steps) == ((10 * SECOND, 15 * SECOND),)


def test_a_retention_is_kept_beyond_what_is_needed() -> None:
    plan = planned(TWO + " WITH ('join.retention'='1h')")
    assert plan.kernel_steps[0].needed == (10 * SECOND, 5 * SECOND)
    assert plan.kernel_steps[0].retention == (3600 * SECOND, 3600 * SECOND)
