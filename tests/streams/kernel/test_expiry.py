from __future__ import annotations

import pytest

from kernel_runs import Kernel, interval, joined
from weft.streams.kernel.pairs import expiry_threshold
from weft.streams.kernel.spec import EXPIRED, FOREVER, MATCHED, NEVER, PADDED, Clock, Reach

TUMBLING = Reach(kind="tumbling", size=60)


def test_a_left_row_is_over_when_the_right_clock_has_passed_its_reach() -> None:
    kernel = Kernel(interval(0, 10, "left"))
    assert kernel.feed([("a", 100)]) == []
    assert kernel.feed(watermark=110) == []
    assert kernel.feed(watermark=111) == [(1, 100, ("a", 0), None)]
    assert kernel.feed(watermark=200) == []
    assert kernel.state.left.counters.unmatched == 1


def test_each_side_waits_for_the_clock_of_the_other() -> None:
    kernel = Kernel(interval(-5, 10, "full"))
    kernel.feed([("a", 100)], [("b", 100)])
    assert kernel.feed(clock=Clock(left=105, right=110)) == []
    assert kernel.feed(clock=Clock(left=106, right=110)) == [(2, 100, None, ("b", 0))]
    assert kernel.feed(clock=Clock(left=106, right=111)) == [(1, 100, ("a", 0), None)]


def test_a_row_may_match_and_be_over_in_one_batch() -> None:
    kernel = Kernel(interval(-20, -10, "full"))
    kernel.feed([], [("a", 85)], watermark=80)
    assert kernel.feed([("a", 100)], watermark=91) == [(0, 100, ("a", 0), ("a", 0))]
    assert kernel.feed(watermark=106) == []
    assert kernel.state.left.stats.current_size == kernel.state.right.stats.current_size == 0


def test_the_rows_of_inner_sides_are_counted_and_not_given() -> None:
    kernel = Kernel(interval(0, 10))
    kernel.feed([("a", 1), ("b", 1)], [("b", 2)])
    assert kernel.flush() == []
    assert (kernel.state.left.counters.matched, kernel.state.left.counters.unmatched) == (1, 1)


@pytest.mark.parametrize(("watermark", "expired"), [(2500, 2), (4500, 3)])
def test_state_is_let_go_as_the_watermark_passes(watermark: int, expired: int) -> None:
    kernel = Kernel(interval(0, 1000))
    kernel.feed([("a", 1000), ("a", 1499), ("a", 3000)])
    kernel.feed(watermark=watermark)
    assert kernel.stats[0].records_expired == expired
    assert kernel.stats[0].current_size == 3 - expired


def test_rows_of_one_time_expire_together_whatever_their_order() -> None:
    kernel = Kernel(interval(0, 500))
    kernel.feed([("a", 3000), ("a", 1000), ("a", 2000), ("a", 1000)])
    kernel.feed(watermark=1600)
    assert kernel.stats[0].records_expired == 2


def test_retention_keeps_rows_without_effect() -> None:
    kernel = Kernel(interval(0, 10, "left", left={"retention": 50, "outer": True}))
    kernel.feed([("a", 100)])
    assert kernel.feed(watermark=111) == [(1, 100, ("a", 0), None)]
    assert kernel.state.left.flags[0].tolist() == [EXPIRED | PADDED]
    assert kernel.feed([], [("a", 111)], watermark=111) == []
    assert kernel.state.left.stats.current_size == 0
    assert kernel.feed(watermark=160) == []
    assert kernel.state.left.stats.current_bytes > 0
    kernel.feed(watermark=161)
    assert kernel.state.left.stats.current_bytes == 0


def test_retention_of_a_session_counts_from_its_end() -> None:
    kernel = Kernel(joined(Reach(kind="session", gap=5), "left", left={"retention": 50, "outer": True}))
    kernel.feed([("a", 100)])
    assert kernel.feed(watermark=106) == [(1, 100, ("a", 0), None)]
    kernel.feed(watermark=155)
    assert kernel.state.left.flags[0].tolist() == [EXPIRED | PADDED]
    kernel.feed(watermark=156)
    assert kernel.state.left.flags == ()


def test_nothing_is_over_before_there_is_a_watermark_and_all_is_at_the_end() -> None:
    kernel = Kernel(interval(0, 10, "full"))
    kernel.feed([("a", NEVER + 5), ("b", FOREVER)], [("c", 0)])
    assert len(kernel.flush()) == 3
    assert kernel.state.left.stats.current_size == kernel.state.right.stats.current_size == 0


def test_a_time_at_the_end_of_the_range_is_a_time_and_no_sign_for_none() -> None:
    kernel = Kernel(interval(0, 10, "left"))
    assert kernel.feed([("a", NEVER), ("b", FOREVER)], [("a", NEVER)]) == [(0, NEVER + 1, ("a", 0), ("a", 0))]
    assert kernel.flush() == [(1, FOREVER - 1, ("b", 1), None)]


@pytest.mark.parametrize(("clock", "below"), [(59, 0), (60, 60), (119, 60), (120, 120), (-1, -60), (0, 0)])
def test_a_tumbling_row_is_over_at_the_end_of_its_window(clock: int, below: int) -> None:
    task = joined(TUMBLING)
    assert expiry_threshold(task, "left", Clock(left=NEVER, right=clock)) == below
    assert expiry_threshold(task, "right", Clock(left=clock, right=NEVER)) == below


def test_a_sliding_row_is_over_at_the_end_of_its_last_window() -> None:
    task = joined(Reach(kind="sliding", size=60, slide=30))
    assert expiry_threshold(task, "left", Clock(left=NEVER, right=90)) == 60
    assert expiry_threshold(task, "left", Clock(left=NEVER, right=89)) == 30


def test_final_rows_of_the_right_wait_for_left_rows_that_may_still_close() -> None:
    kernel = Kernel(interval(0, 10, "full", emit="final"))
    assert kernel.feed([("a", 100)], [("a", 100), ("b", 100)]) == []
    assert kernel.feed(watermark=110) == []
    assert kernel.feed(watermark=111) == [(0, 100, ("a", 0), ("a", 0)), (2, 100, None, ("b", 1))]
    assert kernel.feed(watermark=130) == []


def test_a_final_window_gives_its_pairs_when_it_closes_and_once() -> None:
    kernel = Kernel(joined(TUMBLING, "full", emit="final", window_columns=True))
    assert kernel.feed([("a", 10), ("a", 60)], [("a", 50), ("b", 70)]) == []
    assert kernel.feed(watermark=59) == []
    assert kernel.feed(watermark=60) == [(0, 50, 0, 60, ("a", 0), ("a", 0))]
    assert kernel.feed(watermark=119) == []
    assert kernel.feed(watermark=130) == [(1, 60, 60, 120, ("a", 1), None), (2, 70, 60, 120, None, ("b", 1))]


def test_an_unmatched_row_without_time_has_no_window() -> None:
    # A row of an earlier outer join: its time was filled with NULL, and the gate does not reject it.
    kernel = Kernel(joined(TUMBLING, "left", left={"raw": False, "outer": True}, window_columns=True))
    found = kernel.feed([("a", None), ("b", 70)])
    assert found == [(1, None, None, None, ("a", 0), None)]
    assert kernel.flush() == [(1, 70, 60, 120, ("b", 1), None)]


def test_changes_of_a_window_come_at_once_and_not_again_when_it_closes() -> None:
    kernel = Kernel(joined(TUMBLING, window_columns=True))
    kernel.feed([("a", 10), ("a", 20)])
    assert len(kernel.feed([], [("a", 30)])) == 2
    assert len(kernel.feed([], [("a", 40)])) == 2
    assert kernel.feed(watermark=60) == []
    assert kernel.flush() == []


def test_a_pair_of_sliding_windows_comes_with_its_first_shared_window() -> None:
    kernel = Kernel(joined(Reach(kind="sliding", size=60, slide=30), window_columns=True))
    assert kernel.feed([("a", 45)], [("a", 70, 1), ("a", 20, 2), ("a", 95, 3)]) == [
        (0, 45, 0, 60, ("a", 0), ("a", 2)),
        (0, 70, 30, 90, ("a", 0), ("a", 1)),
    ]


def test_a_row_for_each_shared_window() -> None:
    reach = Reach(kind="sliding", size=60, slide=20, per_window=True)
    changes = Kernel(joined(reach, window_columns=True))
    assert [row[2] for row in changes.feed([("a", 45)], [("a", 50)])] == [0, 20, 40]
    final = Kernel(joined(reach, window_columns=True, emit="final"))
    assert final.feed([("a", 45)], [("a", 50)]) == []
    assert [[row[2] for row in final.feed(watermark=w)] for w in (60, 90, 100, 200)] == [[0], [20], [40], []]
    assert final.state.left.counters.matched == 1


def test_flags_say_what_happened() -> None:
    kernel = Kernel(interval(0, 10, left={"retention": 1000}))
    kernel.feed([("a", 1), ("b", 1)], [("a", 2)])
    kernel.feed(watermark=100)
    assert sorted(kernel.state.left.flags[0].tolist()) == [EXPIRED, EXPIRED | MATCHED]
