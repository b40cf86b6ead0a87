from __future__ import annotations

from kernel_runs import Kernel, interval
from weft.streams.kernel.spec import Counters, SideStats


def test_five_left_three_right_three_matches() -> None:
    kernel = Kernel(interval(0, 10))
    kernel.feed([(f"k{n}", 1) for n in range(5)], [(f"k{n}", 2) for n in range(3)])
    left, right = kernel.stats
    assert (left.records_stored, right.records_stored) == (5, 3)
    assert left.matches_found == right.matches_found == 3
    assert (left.lookups, right.lookups) == (5, 3)
    assert (left.current_size, left.current_keys, left.peak_size) == (5, 5, 5)
    assert left.max_time == 1


def test_rows_without_key_or_time_are_counted_and_not_stored() -> None:
    kernel = Kernel(interval(0, 10))
    kernel.feed([(None, 1), ("a", None), ("b", 3)])
    left = kernel.stats[0]
    assert (left.missing_key_count, left.missing_time_count, left.records_stored) == (1, 1, 1)
    assert kernel.state.left.counters == Counters(in_=3, waiting=1, unmatched=1, rejected=1)


def test_what_is_held_falls_as_rows_expire_and_the_peak_stays() -> None:
    kernel = Kernel(interval(0, 10))
    kernel.feed([("a", 1), ("a", 2), ("b", 50)])
    before = kernel.stats[0]
    kernel.feed(watermark=40)
    after = kernel.stats[0]
    assert (after.current_size, after.current_keys, after.peak_size, after.records_expired) == (1, 1, 3, 2)
    assert 0 < after.current_bytes < before.current_bytes
    kernel.flush()
    assert (kernel.stats[0].current_size, kernel.stats[0].current_bytes) == (0, 0)


def test_keys_are_counted_once_over_all_segments() -> None:
    kernel = Kernel(interval(0, 100))
    kernel.feed([("a", 1), ("b", 2)])
    kernel.feed([("a", 3), ("c", 4)])
    assert kernel.stats[0].current_keys == 3


def test_the_greatest_lateness_is_counted() -> None:
    kernel = Kernel(interval(0, 100))
    kernel.feed([("a", 95), ("a", 60), ("a", 100)], watermark=100)
    assert kernel.state.left.counters.late == 2
    assert kernel.stats[0].max_lateness == 40
    assert kernel.stats[0].max_time == 100


def test_a_late_row_does_not_move_the_greatest_time() -> None:
    kernel = Kernel(interval(0, 100))
    kernel.feed([("a", 500)])
    kernel.feed([("a", 95)], watermark=100)
    assert kernel.stats[0].max_time == 500


def test_counters_and_stats_go_to_json_and_back() -> None:
    counters = Counters(in_=5, matched=2, waiting=1, unmatched=1, late=1)
    assert counters.to_dict()["in"] == 5
    assert Counters.from_dict(counters.to_dict()) == counters
    stats = SideStats(records_stored=3, max_time=None)
    assert SideStats.from_dict(stats.to_dict()) == stats


def test_a_ledger_that_lost_a_row_does_not_balance() -> None:
    assert Counters(in_=2, matched=1, evicted=1).balances
    assert not Counters(in_=2, matched=1).balances
