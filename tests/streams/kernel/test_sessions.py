from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from kernel_runs import Kernel, joined
from weft.streams.kernel.spec import Limits, Reach


def session(gap: int, how: str = "inner", **rules: Any) -> Kernel:
    return Kernel(joined(Reach(kind="session", gap=gap), how, **rules))


def pairs(found: list[tuple[Any, ...]]) -> list[tuple[Any, Any]]:
    return sorted((row[-2], row[-1]) for row in found)


def test_a_step_of_the_gap_continues_a_session_and_one_more_does_not() -> None:
    assert len(session(60).feed([("a", 10)], [("a", 70)])) == 1
    assert session(60).feed([("a", 10)], [("a", 71)]) == []


def test_a_session_is_over_after_the_gap_and_not_at_it() -> None:
    kernel = session(60, "full", emit="final")
    assert kernel.feed([("a", 10)], [("a", 30)]) == []
    assert kernel.feed(watermark=90) == []
    assert len(kernel.feed(watermark=91)) == 1
    assert kernel.feed(watermark=500) == []
    assert kernel.state.left.stats.current_size == kernel.state.right.stats.current_size == 0


def test_rows_of_both_sides_extend_a_session() -> None:
    kernel = session(40)
    assert len(kernel.feed([("a", 10)], [("a", 50)])) == 1
    assert pairs(kernel.feed([], [("a", 80)])) == [(("a", 0), ("a", 0))]
    assert kernel.state.left.counters.matched == 1


def test_two_sessions_of_one_key_and_two_keys_stay_apart() -> None:
    kernel = session(5)
    found = kernel.feed([("a", 0, 1), ("a", 100, 2), ("b", 0, 3)], [("a", 3, 4), ("a", 104, 5), ("b", 50, 6)])
    assert pairs(found) == [(("a", 1), ("a", 4)), (("a", 2), ("a", 5))]


def test_a_bridge_brings_the_pairs_across_and_no_pair_twice() -> None:
    kernel = session(30)
    first = kernel.feed([("a", 0, 1), ("a", 60, 2)], [("a", 10, 3), ("a", 90, 4)])
    assert pairs(first) == [(("a", 1), ("a", 3)), (("a", 2), ("a", 4))]
    second = kernel.feed([("a", 35, 5)])
    assert pairs(second) == [
        (("a", 1), ("a", 4)),
        (("a", 2), ("a", 3)),
        (("a", 5), ("a", 3)),
        (("a", 5), ("a", 4)),
    ]
    assert kernel.feed([], [("b", 1)]) == []


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_sessions_do_not_depend_on_the_order_of_arrival(order: tuple[int, ...]) -> None:
    kernel = session(5)
    came = [("left", 0), ("right", 4), ("left", 9), ("right", 13)]
    found = []
    for n in order:
        side, time = came[n]
        row = [("a", time, time)]
        found += pairs(kernel.feed(row, []) if side == "left" else kernel.feed([], row))
    assert sorted(found) == [(("a", x), ("a", y)) for x in (0, 9) for y in (4, 13)]


def test_a_session_without_partner_comes_out_padded() -> None:
    kernel = session(5, "full")
    kernel.feed([("a", 0)], [("b", 2)])
    assert kernel.feed(watermark=6) == [(1, 0, ("a", 0), None)]
    assert kernel.feed(watermark=8) == [(2, 2, None, ("b", 0))]


def test_keys_that_share_a_hash_have_sessions_of_their_own() -> None:
    kernel = Kernel(joined(Reach(kind="session", gap=5), "full"), same_hash=True)
    kernel.feed([("a", 0), ("a", 8)], [("b", 4)])
    kernel.feed([], [("a", 20)])
    assert kernel.state.left.counters.matched == 0
    assert len(kernel.flush()) == 4


def test_final_gives_all_pairs_of_a_session_at_its_end_and_once() -> None:
    kernel = session(10, emit="final")
    assert kernel.feed([("a", 0), ("a", 5)], [("a", 3), ("b", 0)]) == []
    assert kernel.feed([("a", 12)], watermark=2) == []
    assert len(kernel.feed(watermark=23)) == 3
    assert kernel.flush() == []


def test_eviction_does_not_cut_a_session_in_two() -> None:
    kernel = Kernel(joined(Reach(kind="session", gap=5), left={"limits": Limits(max_state_rows=1)}))
    kernel.feed([("a", 4, 1)], [("a", 0, 2), ("a", 8, 3)])
    kernel.feed([("z", 9, 9)])  # evicts the left row that held the session together
    assert kernel.state.left.counters.matched == 1
    found = kernel.feed([("a", 12, 4)])
    assert pairs(found) == [(("a", 4), ("a", 2)), (("a", 4), ("a", 3))]


def test_sessions_survive_many_batches_of_one_row() -> None:
    kernel = session(2)
    count = 0
    for n in range(30):
        row = [("a", n, n)]
        count += len(kernel.feed(row, []) if n % 2 else kernel.feed([], row))
    assert count == 15 * 15
    assert len(kernel.state.left.segments) <= 8
