"""The ledger: all rows are somewhere, or nothing is committed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

import weft.testing.stream_engine as engine
from stream_checkpoints import BATCHES, as_set, on_disk, run
from weft.core.frozen import FrozenMap, thaw
from weft.errors import StreamError
from weft.streams.checkpoint.commit import commit_batch
from weft.streams.checkpoint.folder import Checkpoint, JobRecord, create_checkpoint, find_checkpoint
from weft.streams.checkpoint.ledger import (
    COUNTS,
    TaskReport,
    add_ledgers,
    add_stats,
    check_total,
    count_missing,
    max_event_times,
    select_reports,
    side_name,
    sum_counts,
)
from weft.streams.checkpoint.manifest import Counts, Heartbeat, Ledger, last_batch, last_manifest
from weft.streams.kernel import transition


def counts(**given: int) -> Counts:
    return FrozenMap({name: given.get(name.rstrip("_"), 0) for name in COUNTS} | {"in": given.get("in_", 0)})


def report(left: Counts, right: Counts | None = None, **given: Any) -> TaskReport:
    """Return the report of a task; `counters` are those of its batch."""
    both: FrozenMap[str, Counts] = FrozenMap(left=left, right=right or counts())
    return TaskReport(**{"join": 1, "task": 0, "batch": 0, "counters": both, "state": NOTHING, **given})


SIDE: FrozenMap[str, Any] = FrozenMap(segments=(), flags=())
NOTHING: FrozenMap[str, Any] = FrozenMap(join=1, first=0, last=1, batch=0, clock=(0, 0), left=SIDE, right=SIDE)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Checkpoint:
    return create_checkpoint(tmp_path, JobRecord(groups=1))


BEAT = Heartbeat(batch=0, wall_clock=7, watermark=None)


def test_a_balanced_batch_is_committed(checkpoint: Checkpoint) -> None:
    found = report(counts(in_=6, matched=1, waiting=1, unmatched=1, late=1, rejected=1, evicted=1))
    manifest = commit_batch(checkpoint, 0, [found], heartbeat=BEAT, inputs={"left": "o"})
    assert manifest.ledger["left"] == found.counters["left"]
    assert manifest.rows_in == {"o": 6}
    assert manifest.last_rows == {"o": 7}
    assert last_batch(checkpoint) == 0


def test_a_side_without_rows_in_a_batch_keeps_the_time_of_its_last_ones(checkpoint: Checkpoint) -> None:
    inputs = {"left": "o", "right": "s"}
    first = report(counts(in_=1, waiting=1), counts(in_=1, waiting=1))
    commit_batch(checkpoint, 0, [first], heartbeat=BEAT, inputs=inputs)
    second = report(counts(in_=1, waiting=1), batch=1, waited=FrozenMap(left=1, right=1))
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
    found = report(wrong) if side == "left" else report(counts(), wrong)
    with pytest.raises(StreamError, match=rf"ledger of {side} .* task 0 of batch 0: {reported}") as caught:
        commit_batch(checkpoint, 0, [found], heartbeat=BEAT)
    assert caught.value.code == "W2210"
    assert last_batch(checkpoint) is None


def test_two_tasks_whose_mistakes_cancel_out_are_found(checkpoint: Checkpoint) -> None:
    one, other = report(counts(in_=2, matched=1)), report(counts(in_=1, matched=2), task=1)
    assert count_missing(sum_counts([one, other])["left"]) == 0
    with pytest.raises(StreamError, match="task 0"):
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
    commit_batch(checkpoint, 0, [report(counts(in_=5, matched=5))], heartbeat=BEAT)
    with pytest.raises(StreamError, match="decreases in batch 1"):
        commit_batch(checkpoint, 1, [report(counts(in_=-1, matched=-1))], heartbeat=replace(BEAT, batch=1))
    assert last_batch(checkpoint) == 0


def test_a_state_that_lost_waiting_rows_stops_the_batch(checkpoint: Checkpoint) -> None:
    commit_batch(checkpoint, 0, [report(counts(in_=5, waiting=5))], heartbeat=BEAT)
    found = [report(counts(), waited=FrozenMap(left=2)), report(counts(), task=1, waited=FrozenMap(left=2))]
    with pytest.raises(StreamError, match="has 4 waiting rows at the start of batch 1, and the last commit counted 5"):
        commit_batch(checkpoint, 1, found, heartbeat=replace(BEAT, batch=1))
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


def test_a_task_that_reported_nothing_is_missed(checkpoint: Checkpoint) -> None:
    reports = [{**thaw_report(report(counts(), task=n))} for n in (0, 1, 1)]
    assert len(select_reports(checkpoint, 0, [1], 2, reports)) == 2
    with pytest.raises(StreamError, match="2 of 3 tasks of join 1 reported") as caught:
        select_reports(checkpoint, 0, [1], 3, reports)
    assert caught.value.code == "W2213"
    with pytest.raises(StreamError, match="0 of 2 tasks"):
        select_reports(checkpoint, 1, [1], 2, reports)  # those of an earlier batch do not count


def thaw_report(given: TaskReport) -> dict[str, Any]:
    return {field.name: thaw(getattr(given, field.name)) for field in fields(given)}


def test_a_batch_whose_files_are_on_another_disk_is_done_again_by_the_next_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the help of W2213 says."""

    def without_a_file(checkpoint: Checkpoint, batch: int, *named: Any) -> Any:
        if batch == 2:
            next(on_disk(checkpoint.join_state(1)).glob("2-?-*")).unlink()
        return select_reports(checkpoint, batch, *named)

    with monkeypatch.context() as patched:
        patched.setattr(engine, "select_reports", without_a_file)
        with pytest.raises(StreamError, match="and it is not there") as caught:
            run(tmp_path / "job")
    assert caught.value.code == "W2213"
    again, whole = run(tmp_path / "job"), run(tmp_path / "whole")
    assert as_set(again.rows) == as_set(whole.rows)
    assert again.ledger == whole.ledger


def test_sides_of_later_joins_have_names_of_their_own() -> None:
    ledger = sum_counts([report(counts(in_=1, late=1)), report(counts(in_=2, late=2), join=2)])
    assert set(ledger) == {"left", "right", "join2.left", "join2.right"}
    assert ledger["join2.left"]["in"] == 2
    assert side_name(3, "right") == "join3.right"


def test_ledgers_of_tables_are_carried_from_batch_to_batch(checkpoint: Checkpoint) -> None:
    looked = FrozenMap({"join2.left": counts(in_=2, matched=1, unmatched=1)})
    for batch in range(3):
        commit_batch(checkpoint, batch, [report(counts())], heartbeat=replace(BEAT, batch=batch), tables=looked)
    manifest = last_manifest(checkpoint)
    assert manifest is not None
    assert manifest.ledger["join2.left"] == counts(in_=6, matched=3, unmatched=3)
    assert manifest.ledger["left"] == counts()
    assert add_ledgers(looked, FrozenMap())["join2.left"]["in"] == 2


def test_the_greatest_time_of_each_input_never_goes_back() -> None:
    known: dict[str, Any] = {
        "left": FrozenMap(max_time=7),
        "right": FrozenMap(max_time=9),
        "other": FrozenMap(max_time=None),
    }
    found = max_event_times(known, {"left": "o", "right": "s", "other": "x"}, {"o": 6, "s": 11})
    assert found == {"o": 7, "s": 11}


def test_statistics_are_added_up_and_greatest_ones_stay_greatest() -> None:
    before: dict[str, Any] = {"left": {**stats(10, 5, 2, 8)}}
    one = report(counts(), stats=FrozenMap(left=stats(2, None, 4, 3)))
    other = report(counts(), task=1, stats=FrozenMap(left=stats(3, 8, 1, 4)))
    found = {"lookups": 15, "max_time": 8, "max_lateness": 4, "current_size": 7, "peak_size": 8}
    assert add_stats(before, [one, other])["left"] == found
    assert add_stats({}, [one, other])["left"] == {**found, "lookups": 5, "peak_size": 7}


def stats(lookups: int, max_time: int | None, max_lateness: int, size: int) -> FrozenMap[str, Any]:
    return FrozenMap(lookups=lookups, max_time=max_time, max_lateness=max_lateness, current_size=size, peak_size=size)


@pytest.mark.parametrize("empty_first", [True, False])
def test_a_task_without_rows_hides_no_time_of_another_task(*, empty_first: bool) -> None:
    given: list[FrozenMap[str, Any]] = [FrozenMap(min_time=None, max_time=None), FrozenMap(min_time=3, max_time=8)]
    ordered = given if empty_first else given[::-1]
    found = add_stats({}, [report(counts(), task=n, stats=FrozenMap(left=one)) for n, one in enumerate(ordered)])
    assert found["left"] == {"min_time": 3, "max_time": 8}
