"""The ledger: all rows are somewhere, or nothing is committed."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import weft.testing.stream_engine as engine
from stream_checkpoints import BATCHES, as_set, run
from weft.core.frozen import FrozenMap
from weft.errors import StreamError
from weft.streams.checkpoint.commit import commit_batch
from weft.streams.checkpoint.folder import Checkpoint, JobRecord, create_checkpoint, find_checkpoint
from weft.streams.checkpoint.ledger import (
    COUNTS,
    GroupIndex,
    add_ledgers,
    check_total,
    count_missing,
    max_event_times,
    read_indexes,
    side_name,
    sum_counts,
    sum_stats,
)
from weft.streams.checkpoint.manifest import Counts, Heartbeat, Ledger, last_batch, last_manifest
from weft.streams.kernel import transition


def counts(**given: int) -> Counts:
    return FrozenMap({name: given.get(name.rstrip("_"), 0) for name in COUNTS} | {"in": given.get("in_", 0)})


def index(left: Counts, right: Counts | None = None, **given: Any) -> GroupIndex:
    both: FrozenMap[str, Counts] = FrozenMap(left=left, right=right or counts())
    return GroupIndex(**{"join": 1, "group": 0, "batch": 0, "counters": both, **given})


@pytest.fixture
def checkpoint(tmp_path: Path) -> Checkpoint:
    return create_checkpoint(tmp_path, JobRecord(groups=1))


BEAT = Heartbeat(batch=0, wall_clock=7, watermark=None)


def test_a_balanced_batch_is_committed(checkpoint: Checkpoint) -> None:
    found = index(counts(in_=6, matched=1, waiting=1, unmatched=1, late=1, rejected=1, evicted=1))
    manifest = commit_batch(checkpoint, 0, [found], heartbeat=BEAT, inputs={"left": "o"})
    assert manifest.ledger["left"] == found.counters["left"]
    assert manifest.rows_in == {"o": 6}
    assert manifest.last_rows == {"o": 7}
    assert last_batch(checkpoint) == 0


def test_a_side_without_rows_in_a_batch_keeps_the_time_of_its_last_ones(checkpoint: Checkpoint) -> None:
    inputs = {"left": "o", "right": "s"}
    first = index(counts(in_=1, waiting=1), counts(in_=1, waiting=1))
    commit_batch(checkpoint, 0, [first], heartbeat=BEAT, inputs=inputs)
    second = index(counts(in_=2, waiting=2), counts(in_=1, waiting=1), batch=1)
    manifest = commit_batch(checkpoint, 1, [second], heartbeat=replace(BEAT, batch=1, wall_clock=9), inputs=inputs)
    assert manifest.rows_in == {"o": 1, "s": 0}
    assert manifest.last_rows == {"o": 9, "s": 7}


@pytest.mark.parametrize(
    ("given", "reported"),
    [
        ({"in_": 2, "matched": 1}, "1 row is missing"),
        ({"in_": 1, "matched": 1, "late": 2}, "2 rows are counted twice"),
    ],
)
@pytest.mark.parametrize("side", ["left", "right"])
def test_a_ledger_that_does_not_balance_stops_the_batch(
    checkpoint: Checkpoint, given: dict[str, int], reported: str, side: str
) -> None:
    wrong = counts(**given)
    found = index(wrong) if side == "left" else index(counts(), wrong)
    with pytest.raises(StreamError, match=rf"ledger of {side} .* group 0 of batch 0: {reported}") as caught:
        commit_batch(checkpoint, 0, [found], heartbeat=BEAT)
    assert caught.value.code == "W2210"
    assert last_batch(checkpoint) is None


def test_two_groups_whose_mistakes_cancel_out_are_found(checkpoint: Checkpoint) -> None:
    one, other = index(counts(in_=2, matched=1)), index(counts(in_=1, matched=2), group=1)
    assert count_missing(sum_counts([one, other])["left"]) == 0
    with pytest.raises(StreamError, match="group 0"):
        commit_batch(checkpoint, 0, [one, other], heartbeat=BEAT)


def test_counts_that_go_back_stop_the_batch() -> None:
    before: Ledger = FrozenMap(left=counts(in_=5, matched=5))
    with pytest.raises(StreamError, match="decreases in batch 3: in was 5 and is 4") as caught:
        check_total(FrozenMap(left=counts(in_=4, matched=4)), 3, before)
    assert caught.value.code == "W2210"


@pytest.mark.parametrize("name", ["matched", "unmatched", "late", "rejected", "evicted"])
def test_no_count_but_that_of_waiting_rows_goes_back(name: str) -> None:
    before: Ledger = FrozenMap(left=counts(in_=5, **{name: 5}))
    check_total(FrozenMap(left=counts(in_=6, **{name: 5}, waiting=1)), 3, before)
    with pytest.raises(StreamError, match=rf"decreases in batch 3: {name} was 5 and is 4"):
        check_total(FrozenMap(left=counts(in_=5, **{name: 4}, waiting=1)), 3, before)
    check_total(FrozenMap(left=counts(in_=5, matched=5)), 3, FrozenMap(left=counts(in_=5, matched=4, waiting=1)))


def test_a_batch_whose_counts_go_back_is_not_committed(checkpoint: Checkpoint) -> None:
    commit_batch(checkpoint, 0, [index(counts(in_=5, matched=5))], heartbeat=BEAT)
    with pytest.raises(StreamError, match="decreases in batch 1"):
        commit_batch(checkpoint, 1, [index(counts(in_=4, matched=4))], heartbeat=replace(BEAT, batch=1))
    assert last_batch(checkpoint) == 0


def test_rows_that_wait_may_become_fewer() -> None:
    before: Ledger = FrozenMap(left=counts(in_=5, waiting=5))
    check_total(FrozenMap(left=counts(in_=5, matched=5)), 3, before)


def _one_too_many(state: Any) -> Any:
    return replace(state, counters=replace(state.counters, matched=state.counters.matched + 1))


def _one_forgotten(state: Any) -> Any:
    return replace(state, counters=replace(state.counters, in_=state.counters.in_ - 1))


@pytest.mark.parametrize("wrong", [_one_too_many, _one_forgotten])
def test_a_kernel_that_miscounts_stops_the_query_and_commits_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: Callable[[Any], Any]
) -> None:
    run(tmp_path, BATCHES[:2], final=False)
    right = transition.step

    def miscounting(*args: Any, **named: Any) -> Any:
        found = right(*args, **named)
        return replace(found, state=replace(found.state, left=wrong(found.state.left)))

    monkeypatch.setattr(engine, "step", miscounting)
    with pytest.raises(StreamError) as caught:
        run(tmp_path, BATCHES, final=False)
    assert caught.value.code == "W2210"
    found = find_checkpoint(tmp_path / "streams" / "status")
    assert found is not None
    assert last_batch(found) == 1


def test_a_missing_group_is_reported(tmp_path: Path) -> None:
    found = run(tmp_path, final=False).checkpoint
    assert len(read_indexes(found, 3, [1], 2)) == 2
    with pytest.raises(StreamError, match="wrote 2 of 3 groups of join 1") as caught:
        read_indexes(found, 3, [1], 3)
    assert caught.value.code == "W2213"


def test_a_batch_that_left_a_group_out_is_done_again_by_the_next_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the help of W2213 says."""

    def without_a_group(checkpoint: Checkpoint, batch: int, *named: Any) -> Any:
        if batch == 2:
            shutil.rmtree(checkpoint.join_state(1) / "2" / "1")
        return read_indexes(checkpoint, batch, *named)

    with monkeypatch.context() as patched:
        patched.setattr(engine, "read_indexes", without_a_group)
        with pytest.raises(StreamError) as caught:
            run(tmp_path / "job")
    assert caught.value.code == "W2213"
    again, whole = run(tmp_path / "job"), run(tmp_path / "whole")
    assert as_set(again.rows) == as_set(whole.rows)
    assert again.ledger == whole.ledger


def test_sides_of_later_joins_have_names_of_their_own() -> None:
    ledger = sum_counts([index(counts(in_=1, late=1)), index(counts(in_=2, late=2), join=2)])
    assert set(ledger) == {"left", "right", "join2.left", "join2.right"}
    assert ledger["join2.left"]["in"] == 2
    assert side_name(3, "right") == "join3.right"


def test_ledgers_of_tables_are_carried_from_batch_to_batch(checkpoint: Checkpoint) -> None:
    looked = FrozenMap({"join2.left": counts(in_=2, matched=1, unmatched=1)})
    for batch in range(3):
        commit_batch(checkpoint, batch, [index(counts())], heartbeat=replace(BEAT, batch=batch), tables=looked)
    manifest = last_manifest(checkpoint)
    assert manifest is not None
    assert manifest.ledger["join2.left"] == counts(in_=6, matched=3, unmatched=3)
    assert manifest.ledger["left"] == counts()
    assert add_ledgers(looked, FrozenMap())["join2.left"]["in"] == 2


def test_the_greatest_time_of_each_input_never_goes_back() -> None:
    one = index(counts(), max_times=FrozenMap(left=5, right=9))
    other = index(counts(), group=1, max_times=FrozenMap(left=7))
    found = max_event_times([one, other], {"left": "o", "right": "s"}, {"o": 6, "s": 11})
    assert found == {"o": 7, "s": 11}


def test_statistics_are_added_up_and_greatest_ones_stay_greatest() -> None:
    one = index(counts(), stats=FrozenMap(left=FrozenMap(lookups=2, max_time=None, max_lateness=4)))
    other = index(counts(), group=1, stats=FrozenMap(left=FrozenMap(lookups=3, max_time=8, max_lateness=1)))
    assert sum_stats([one, other])["left"] == {"lookups": 5, "max_time": 8, "max_lateness": 4}


@pytest.mark.parametrize("empty_first", [True, False])
def test_a_group_without_rows_hides_no_time_of_another_group(*, empty_first: bool) -> None:
    stats: list[FrozenMap[str, Any]] = [FrozenMap(min_time=None, max_time=None), FrozenMap(min_time=3, max_time=8)]
    ordered = stats if empty_first else stats[::-1]
    found = sum_stats([index(counts(), group=n, stats=FrozenMap(left=given)) for n, given in enumerate(ordered)])
    assert found["left"] == {"min_time": 3, "max_time": 8}
