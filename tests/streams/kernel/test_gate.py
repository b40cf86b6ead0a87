from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from kernel_runs import SCHEMA, Kernel, arrivals, interval, joined, shown
from weft.streams.kernel.gate import reject_table
from weft.streams.kernel.spec import NEVER, Clock, Counters, JoinTask, KernelProblem, Reach
from weft.streams.kernel.transition import StepResult, empty_state, step

FULL = interval(0, 10, "full")


def fed_raw(task: JoinTask, *, watermark: int = NEVER) -> StepResult:
    """Feed a row that reads and one that does not."""
    came = arrivals([("a", 1), (None, None)], raw=[None, '{"k": '])
    nothing = arrivals([])
    return step(
        task,
        empty_state(task, SCHEMA, SCHEMA),
        came,
        nothing,
        Clock(left=watermark, right=watermark),
        batch=0,
        watermark=watermark,
        wall_clock=0,
    )


def test_a_row_equal_to_the_watermark_is_on_time_and_one_below_is_late() -> None:
    kernel = Kernel(FULL)
    kernel.feed([("a", 100), ("b", 99)], watermark=100)
    assert kernel.rejected() == [("left", "LATE", "b")]
    assert kernel.state.left.counters == Counters(in_=2, waiting=1, late=1)


@pytest.mark.parametrize(("time", "late"), [(950, 0), (900, 0), (850, 1)])
def test_lateness_of_100_at_1000(time: int, late: int) -> None:
    kernel = Kernel(FULL)
    kernel.feed([("a", time)], watermark=900)
    assert kernel.state.left.counters.late == late
    assert kernel.state.left.stats.min_time == (None if late else time)


def test_late_rows_may_be_dropped_with_a_count() -> None:
    kernel = Kernel(interval(0, 10, left={"late": "drop"}))
    kernel.feed([("a", 1)], watermark=100)
    assert kernel.rejected() == []
    assert kernel.state.left.counters.late == 1


def test_nothing_is_late_before_there_is_a_watermark() -> None:
    kernel = Kernel(FULL)
    kernel.feed([("a", -(10**15))])
    assert kernel.state.left.counters.late == 0


@pytest.mark.parametrize(
    ("rules", "row", "code", "option"),
    [
        ({"late": "fail"}, ("a", 5), "W2206", "'late' = 'side_output'"),
        ({"missing_event_time": "fail"}, ("a", None), "W2207", "'join.missing_event_time' = 'reject'"),
    ],
)
def test_a_policy_that_fails_stops_the_batch(
    rules: dict[str, str], row: tuple[str, int | None], code: str, option: str
) -> None:
    kernel = Kernel(interval(0, 10, left=rules))
    with pytest.raises(KernelProblem) as caught:
        kernel.feed([row], watermark=100)
    assert caught.value.code == code
    assert option in caught.value.help


def test_a_row_that_cannot_be_read_is_rejected_with_its_text() -> None:
    stepped = fed_raw(FULL, watermark=1)
    (found,) = stepped.rejects
    assert (found.reason, found.raw.to_pylist()) == ("MALFORMED", ['{"k": '])
    assert stepped.state.left.counters == Counters(in_=2, waiting=1, rejected=1)
    table = reject_table([found], batch=3, group=1, watermark=1).to_pylist()
    assert table == [
        {
            "side": "left",
            "reason": "MALFORMED",
            "event_time": None,
            "watermark": 1,
            "batch": 3,
            "group": 1,
            "matched": False,
            "raw": '{"k": ',
            "row": {"k0": None, "v": 1},
        }
    ]


def test_a_row_that_cannot_be_read_may_stop_the_batch() -> None:
    with pytest.raises(KernelProblem, match=r"W2208.*cannot be parsed"):
        fed_raw(replace(FULL, left=replace(FULL.left, malformed="fail")))


def test_a_row_without_time_takes_the_wall_clock_and_does_not_move_the_watermark() -> None:
    kernel = Kernel(interval(0, 10, left={"missing_event_time": "wall_clock"}))
    assert kernel.feed([("a", None)], [("a", 205)], wall_clock=200) == [(0, 205, ("a", 0), ("a", 0))]
    assert kernel.stats[0].max_time is None
    assert kernel.stats[0].missing_time_count == 1
    kernel.feed([("b", None)], watermark=300, wall_clock=200)
    assert kernel.rejected() == [("left", "LATE", "b")]


def test_a_null_key_meets_nothing_and_leaves_an_outer_side_at_once() -> None:
    kernel = Kernel(FULL)
    assert kernel.feed([(None, 1)], [(None, 1)]) == [(1, 1, (None, 0), None), (2, 1, None, (None, 0))]
    assert kernel.state.left.counters == Counters(in_=1, unmatched=1)
    inner = Kernel(interval(0, 10))
    assert inner.feed([(None, 1)], [(None, 1)]) == []
    assert inner.state.right.counters == Counters(in_=1, unmatched=1)


def test_a_row_of_an_earlier_join_without_time_leaves_at_once_and_is_never_late() -> None:
    kernel = Kernel(interval(0, 10, "left", left={"raw": False, "outer": True}))
    assert kernel.feed([("a", None), ("b", 50)], watermark=100) == [
        (1, 50, ("b", 1), None),
        (1, None, ("a", 0), None),
    ]
    assert kernel.state.left.counters == Counters(in_=2, unmatched=2)


def test_of_duplicates_the_first_by_time_and_content_stays() -> None:
    kernel = Kernel(interval(0, 10, left={"dedup": ("k0",)}))
    kernel.feed([("a", 7, 1), ("a", 5, 9), ("a", 5, 3), ("b", 1, 1)])
    assert kernel.rejected() == [("left", "DUPLICATE", "a")] * 2
    assert kernel.feed([], [("a", 6, 0)]) == [(0, 6, ("a", 3), ("a", 0))]
    kernel.feed([("a", 8)])
    assert kernel.rejected() == [("left", "DUPLICATE", "a")]
    assert kernel.state.left.counters.rejected == 3


def test_keys_are_remembered_until_the_watermark_passes_their_time() -> None:
    kernel = Kernel(interval(0, 10, left={"dedup": ("k0",)}))
    kernel.feed([("a", 5)])
    kernel.feed([("a", 6)], watermark=5)
    assert kernel.rejected() == [("left", "DUPLICATE", "a")]
    kernel.feed([("a", 7)], watermark=6)
    assert kernel.rejected() == []
    assert kernel.state.left.seen.num_rows == 1


def test_null_keys_of_duplicates_are_equal_to_each_other() -> None:
    kernel = Kernel(interval(0, 10, left={"dedup": ("k0",)}))
    kernel.feed([(None, 5), (None, 6)])
    assert kernel.state.left.counters == Counters(in_=2, unmatched=1, rejected=1)


def test_no_time_counts_beside_a_table() -> None:
    kernel = Kernel(joined(Reach(kind="table"), "full", right={"raw": False, "outer": True}))
    out = kernel.feed([("a", None), ("z", 3)], [("a", 0), ("b", 0)])
    assert out == [(0, None, ("a", 0), ("a", 0)), (1, 3, ("z", 1), None)]
    assert kernel.feed([("a", -5)], watermark=100) == [(0, -5, ("a", 0), ("a", 0))]
    assert kernel.state.left.stats.current_size == 0
    assert kernel.flush() == [(2, None, None, ("b", 1))]
    assert kernel.state.right.counters == Counters(in_=2, matched=1, unmatched=1)


def test_arrivals_may_come_in_pieces() -> None:
    came = arrivals([("a", 1), ("b", 2), ("a", 3)])
    pieces = pa.Table.from_batches(came.rows.to_batches(max_chunksize=1))
    assert pieces.column(0).num_chunks == 3
    chunked = replace(came, rows=pieces, hashes=pa.chunked_array([came.hashes[:1], came.hashes[1:]]))
    stepped = step(
        FULL,
        empty_state(FULL, SCHEMA, SCHEMA),
        chunked,
        arrivals([("a", 4)]),
        Clock(left=NEVER, right=NEVER),
        batch=0,
        watermark=NEVER,
        wall_clock=0,
    )
    assert shown(stepped) == [(0, 4, ("a", 0), ("a", 0)), (0, 4, ("a", 2), ("a", 0))]


def test_a_row_that_is_rejected_before_there_is_a_watermark_has_none() -> None:
    (found,) = fed_raw(FULL).rejects
    (row,) = reject_table([found], batch=0, group=0, watermark=NEVER).to_pylist()
    assert (row["reason"], row["watermark"]) == ("MALFORMED", None)
