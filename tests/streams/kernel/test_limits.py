from __future__ import annotations

import pytest

from kernel_runs import Kernel, interval, with_limits
from weft.streams.kernel.spec import KernelProblem, Limits

WIDE = interval(-1000, 1000, "full")


def times_held(kernel: Kernel) -> list[int]:
    found: list[int] = []
    for segment, flags in zip(kernel.state.left.segments, kernel.state.left.flags, strict=True):
        found += [int(t) for t, f in zip(segment.times, flags, strict=True) if not f & 8]
    return sorted(found)


def test_five_stay_of_seven() -> None:
    kernel = Kernel(with_limits(WIDE, max_state_rows=5))
    kernel.feed([(f"k{n}", n * 10) for n in range(7)])
    assert times_held(kernel) == [20, 30, 40, 50, 60]
    assert kernel.state.left.counters.evicted == 2
    assert kernel.rejected() == [("left", "EVICTED", "k0"), ("left", "EVICTED", "k1")]


def test_three_stay_of_five_of_one_key_and_two_are_evicted() -> None:
    kernel = Kernel(with_limits(WIDE, max_rows_per_key=3))
    kernel.feed([("a", t) for t in (50, 10, 40, 20)] + [("b", 1)])
    kernel.feed([("a", 30)])
    assert times_held(kernel) == [1, 30, 40, 50]
    assert kernel.stats[0].records_evicted == 2
    assert kernel.stats[0].current_size == 4


def test_both_limits_hold_together() -> None:
    kernel = Kernel(with_limits(WIDE, max_rows_per_key=2, max_state_rows=3))
    kernel.feed([("a", 1), ("a", 2), ("a", 3), ("b", 4), ("c", 5)])
    assert times_held(kernel) == [3, 4, 5]
    assert kernel.stats[0].limit_hits == 2


def test_the_limit_of_one_side_does_not_touch_the_other() -> None:
    kernel = Kernel(interval(-9, 9, left={"limits": Limits(max_state_rows=1)}))
    kernel.feed([("a", 1), ("b", 2)], [("c", 1), ("d", 2)])
    assert (kernel.stats[0].current_size, kernel.stats[1].current_size) == (1, 2)


def test_a_row_probes_before_it_is_evicted_and_never_comes_out_padded() -> None:
    kernel = Kernel(with_limits(WIDE, max_state_rows=1))
    assert kernel.feed([("a", 1), ("b", 2)], [("a", 1)]) == [(0, 1, ("a", 0), ("a", 0))]
    assert kernel.last is not None
    assert [r.matched.tolist() for r in kernel.last.rejects] == [[True]]
    assert kernel.state.left.counters.evicted == 0
    assert kernel.state.left.counters.matched == 1
    assert kernel.feed([("c", 3)]) == []
    assert kernel.state.left.counters.evicted == 1
    assert kernel.flush() == [(1, 3, ("c", 0), None)]


def test_of_rows_with_one_time_the_earlier_batch_goes_and_then_the_lesser_content() -> None:
    kernel = Kernel(with_limits(WIDE, max_state_rows=3))
    kernel.feed([("c", 5, 1), ("a", 5, 2)])
    kernel.feed([("a", 5, 4), ("a", 5, 3), ("b", 5, 9)])
    assert kernel.rejected() == [("left", "EVICTED", "a"), ("left", "EVICTED", "c")]
    kernel.feed([("z", 6, 0)])
    assert kernel.last is not None
    assert [r.rows.to_pylist() for r in kernel.last.rejects] == [[{"k0": "a", "v": 3}]]


def test_the_batch_of_a_row_survives_the_merging_of_segments() -> None:
    kernel = Kernel(with_limits(WIDE, max_state_rows=20))
    for batch in range(12):
        kernel.feed([(f"k{batch:02}", 5, 100 - batch)])
    assert len(kernel.state.left.segments) <= 8
    kernel.task = with_limits(WIDE, max_state_rows=9)
    kernel.feed([("zz", 5, 0)])
    assert [key for _, _, key in kernel.rejected()] == ["k00", "k01", "k02", "k03"]


def test_rows_of_merged_segments_go_in_the_order_of_their_batches_and_not_of_their_keys() -> None:
    kernel = Kernel(with_limits(WIDE, max_state_rows=20))
    for batch in range(12):
        kernel.feed([(chr(ord("z") - batch), 5, batch)])
    assert len(kernel.state.left.segments) <= 8
    kernel.task = with_limits(WIDE, max_state_rows=9)
    kernel.feed()
    assert sorted(key for _, _, key in kernel.rejected()) == ["x", "y", "z"]


def test_rows_that_stay_of_a_merged_segment_keep_their_batches() -> None:
    kernel = Kernel(WIDE)
    for batch in range(12):
        old = [(f"{batch:02}{n}", 5, n) for n in range(3)]
        kernel.feed([*old, (chr(ord("z") - batch) * 4, 5000, batch)])
    assert len(kernel.state.left.segments) <= 8
    kernel.feed(watermark=2000)
    assert times_held(kernel) == [5000] * 12
    kernel.task = with_limits(WIDE, max_state_rows=9)
    kernel.feed(watermark=2000)
    assert sorted(key for _, _, key in kernel.rejected()) == ["xxxx", "yyyy", "zzzz"]


def test_keys_of_one_hash_are_limited_one_by_one() -> None:
    kernel = Kernel(with_limits(WIDE, max_rows_per_key=1), same_hash=True)
    kernel.feed([("a", 1), ("b", 2), ("a", 3)])
    assert times_held(kernel) == [2, 3]


@pytest.mark.parametrize("limit", ["max_state_rows", "max_rows_per_key"])
def test_a_limit_that_must_hold_stops_the_batch(limit: str) -> None:
    kernel = Kernel(with_limits(WIDE, **{limit: 1, "eviction": "fail"}))
    with pytest.raises(KernelProblem) as caught:
        kernel.feed([("a", 1), ("a", 2)])
    assert caught.value.code == "W2209"
    assert "join.eviction" in caught.value.help
    assert "left has 1 row more" in str(caught.value)


@pytest.mark.parametrize("limit", ["max_state_rows", "max_rows_per_key"])
def test_a_side_exactly_at_its_limit_is_within_it(limit: str) -> None:
    kernel = Kernel(with_limits(WIDE, **{limit: 2, "eviction": "fail"}))
    kernel.feed([("a", 1), ("a", 2)])
    assert times_held(kernel) == [1, 2]
    assert kernel.stats[0].limit_hits == 0


def test_ties_in_several_segments_are_each_settled_by_their_own_content() -> None:
    kernel = Kernel(with_limits(WIDE, max_state_rows=8))
    kernel.feed([("az", 7), ("ba", 7), ("a", 5), ("b", 5)])  # by hash "ba" comes before "az"
    kernel.feed([("g", 7), ("h", 7), ("e", 5), ("f", 5)])
    assert len(kernel.state.left.segments) == 2
    kernel.task = with_limits(WIDE, max_state_rows=3)
    kernel.feed()
    assert sorted(key for _, _, key in kernel.rejected()) == ["a", "az", "b", "e", "f"]


def test_without_limits_nothing_is_evicted() -> None:
    kernel = Kernel(WIDE)
    kernel.feed([("a", t) for t in range(500)])
    assert kernel.stats[0].records_evicted == 0
    assert kernel.stats[0].limit_hits == 0
