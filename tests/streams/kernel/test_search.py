from __future__ import annotations

import random

import numpy as np
import pytest

from kernel_runs import arrivals, hash_of
from weft.streams.kernel import pairs
from weft.streams.kernel.pairs import expand_ranges
from weft.streams.kernel.segments import build_segment, find_merge_start, find_ranges, sort_order

TIMES = [1000, 2000, 3000, 4000]


def rows_in(low: int, high: int, times: list[int], key: int = 5) -> int:
    hashes = np.full(len(times), 5)
    _, start, stop = find_ranges(hashes, np.array(sorted(times)), np.array([key]), np.array([low]), np.array([high]))
    return int((stop - start).sum())


@pytest.mark.parametrize(
    ("low", "high", "times", "found"),
    [
        (1500, 3500, TIMES, 2),
        (0, 1500, TIMES, 1),
        (5000, 6000, TIMES, 0),
        (4000, 4000, TIMES, 1),
        (2000, 3000, list(range(1000, 4001, 100)), 11),
        (5000, 5000, [5000] * 5, 5),
    ],
)
def test_a_range_of_times_has_its_rows_and_both_ends(low: int, high: int, times: list[int], found: int) -> None:
    assert rows_in(low, high, times) == found


def test_an_unknown_key_has_no_rows() -> None:
    assert rows_in(0, 9000, TIMES, key=6) == 0
    assert rows_in(0, 9000, []) == 0


def test_random_ranges_equal_a_plain_scan() -> None:
    rng = random.Random(5)
    for _ in range(50):
        rows = sorted((rng.randrange(6), rng.randrange(30)) for _ in range(rng.randrange(40)))
        probes = [(rng.randrange(7), rng.randrange(30), rng.randrange(30)) for _ in range(20)]
        hashes, times = (np.array([r[i] for r in rows], dtype=np.int64) for i in (0, 1))
        wanted, low, high = (np.array([p[i] for p in probes], dtype=np.int64) for i in (0, 1, 2))
        probe, start, stop = find_ranges(hashes, times, wanted, low, high)
        found = {(p, r) for ps, rs in expand_ranges(probe, start, stop) for p, r in zip(ps, rs, strict=True)}
        assert found == {
            (n, m)
            for n, (h, a, b) in enumerate(probes)
            for m, (other, t) in enumerate(rows)
            if h == other and a <= t <= b
        }


def test_rows_are_ordered_by_hash_and_time() -> None:
    rng = np.random.default_rng(3)
    hashes, times = rng.integers(0, 9, 500), rng.integers(0, 50, 500)
    order = sort_order(hashes, times)
    assert sorted(order.tolist()) == list(range(500))
    found = list(zip(hashes[order].tolist(), times[order].tolist(), strict=True))
    assert found == sorted(found)


def test_a_hot_key_is_looked_at_piece_by_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs, "MAX_CHUNK", 3)
    ranges_ = np.array([4, 9]), np.array([0, 2]), np.array([8, 4])
    pieces = [(a.tolist(), b.tolist()) for a, b in expand_ranges(*ranges_)]
    assert max(len(a) for a, _ in pieces) <= 3
    assert [p for a, b in pieces for p in zip(a, b, strict=True)] == [
        *((4, n) for n in range(8)),
        (9, 2),
        (9, 3),
    ]


def test_arrived_rows_are_not_copied() -> None:
    came = arrivals([("b", 5, 1), ("a", 9, 2), ("a", 3, 3)])
    segment = build_segment(
        np.array([hash_of("b"), hash_of("a"), hash_of("a")]), np.array([5, 9, 3]), came.rows, None, 0
    )
    assert segment.child("v").to_pylist() == [3, 2, 1]
    assert segment.rows is came.rows


def test_rows_are_merged_in_runs_of_like_size() -> None:
    assert find_merge_start([1000, 500, 10, 10, 10, 10]) == 2
    assert find_merge_start([10, 10, 10, 10, 10, 10, 10, 10, 10]) == 0
    sizes: list[int] = []
    moved = 0
    for _ in range(4096):
        sizes.append(1)
        if len(sizes) > 8:
            first = find_merge_start(sizes)
            moved += sum(sizes[first:])
            sizes[first:] = [sum(sizes[first:])]
    assert len(sizes) <= 9
    assert moved < 4096 * 12
