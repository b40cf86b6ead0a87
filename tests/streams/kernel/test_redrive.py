"""Late rows against the state that is still there: pairs to add, padded rows to take back, and no third thing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kernel_runs import SCHEMA, Kernel, interval, joined
from stream_checkpoints import BATCHES, SQL, order, run, shipment
from weft.core.frozen import FrozenMap
from weft.errors import StreamError
from weft.streams.checkpoint import recover as recovering
from weft.streams.checkpoint.commit import sync_staged
from weft.streams.checkpoint.manifest import Move
from weft.streams.checkpoint.recover import (
    RedriveRecord,
    collect_taken,
    count_retracted,
    finish_redrive,
    read_redrives,
    write_redrive,
)
from weft.streams.checkpoint.rejects import list_reject_files
from weft.streams.kernel.redrive import RedriveResult, find_corrections
from weft.streams.kernel.spec import Clock, Limits, Reach, Residual, Side
from weft.streams.plan.resolve import plan_job
from weft.streams.run import redrive_rows
from weft.streams.sql.lower import read_spec
from weft.testing.stream_engine import run_statement


def again(
    kernel: Kernel,
    side: Side,
    rows: Sequence[tuple[str, int, int]],
    before: Counter[str] | None = None,
    until: Sequence[int] | None = None,
) -> RedriveResult:
    """Look rows (key, time, value) of a side up; `until` is the batch up to which each gave pairs."""
    table = pa.table(
        {"k0": pa.array([r[0] for r in rows], pa.string()), "v": pa.array([r[2] for r in rows], pa.int64())},
        schema=SCHEMA,
    )
    times = np.array([r[1] for r in rows], dtype=np.int64)
    given = None if until is None else np.array(until, dtype=np.int64)
    return find_corrections(kernel.task, kernel.state, side, table, times, before or Counter(), given)


def shown(out: Any) -> list[tuple[Any, ...]]:
    found = []
    for batch in out:
        for row in batch.to_pylist():
            sides = [None if row[s] is None else (row[s]["k0"], row[s]["v"]) for s in ("left", "right")]
            found.append((row["kind"], *sides))
    return sorted(found, key=repr)


def rules(how: str, **outers: bool) -> dict[str, Any]:
    left = {"outer": how in ("left", "full"), "retention": 1000}
    right = {"outer": how in ("right", "full"), "retention": 1000}
    return {"left": left | outers, "right": right | outers}


def kept_join(how: str = "left", **more: Any) -> Kernel:
    """Return a join [0, 10] whose rows stay after their end."""
    return Kernel(interval(0, 10, how, **rules(how), **more))


def test_the_padded_row_of_a_partner_is_taken_back_and_the_pair_is_added() -> None:
    kernel = kept_join()
    kernel.feed([("a", 100, 1), ("b", 100, 2)])
    assert kernel.feed(watermark=200) == [(1, 100, ("a", 1), None), (1, 100, ("b", 2), None)]
    done = again(kernel, "right", [("a", 105, 9)])
    assert shown(done.plus) == [(0, ("a", 1), ("a", 9))]
    assert shown(done.minus) == [(1, ("a", 1), None)]
    assert done.taken.tolist() == [0]


def test_a_padded_row_is_taken_back_once() -> None:
    kernel = kept_join()
    kernel.feed([("a", 100, 1)])
    kernel.feed(watermark=200)
    first = again(kernel, "right", [("a", 105, 9)])
    second = again(kernel, "right", [("a", 106, 8)], Counter(first.taken_back))
    assert shown(second.plus) == [(0, ("a", 1), ("a", 8))]
    assert shown(second.minus) == []
    both = again(kernel, "right", [("a", 105, 9), ("a", 106, 8)])
    assert len(shown(both.plus)) == 2
    assert len(shown(both.minus)) == 1


def test_equal_rows_that_were_given_padded_are_each_taken_back() -> None:
    kernel = kept_join()
    kernel.feed([("a", 100, 1), ("a", 100, 1)])
    kernel.feed(watermark=200)
    done = again(kernel, "right", [("a", 105, 9)])
    assert shown(done.minus) == [(1, ("a", 1), None)] * 2
    assert len(set(done.taken_back)) == 1
    later = again(kernel, "right", [("a", 106, 8)], Counter(done.taken_back[:1]))
    assert shown(later.minus) == [(1, ("a", 1), None)]


def test_a_row_whose_partner_still_waits_on_an_outer_side_is_put_off() -> None:
    kernel = kept_join("full")
    kernel.feed([("a", 100, 1)], [("b", 50, 2)], watermark=40)
    # The padded row of a may still arrive, so a pair now could be a second output.
    done = again(kernel, "right", [("a", 101, 9)])
    assert (shown(done.plus), shown(done.minus), done.taken.tolist()) == ([], [], [])
    inner = kept_join("inner")
    inner.feed([("a", 100, 1)])
    assert shown(again(inner, "right", [("a", 101, 9)]).plus) == [(0, ("a", 1), ("a", 9))]


def test_a_row_that_meets_one_who_waits_is_put_off_whole() -> None:
    kernel = kept_join()
    kernel.feed([("a", 100, 1)], watermark=50)
    kernel.feed(watermark=111)
    kernel.feed([("a", 112, 2)], watermark=111)
    done = again(kernel, "right", [("a", 110, 7), ("a", 112, 8)])
    assert shown(done.plus) == [(0, ("a", 1), ("a", 7))]
    assert done.taken.tolist() == [0]
    wide = Kernel(interval(0, 50, "left", **rules("left")))
    wide.feed([("a", 100, 1)], watermark=50)
    wide.feed(watermark=151)
    wide.feed([("a", 148, 2)], watermark=140)
    assert again(wide, "right", [("a", 149, 7)]).taken.tolist() == []


def test_a_partner_that_has_matched_gets_another_pair_and_nothing_is_taken_back() -> None:
    kernel = kept_join("full")
    kernel.feed([("a", 100, 1)], [("a", 101, 2)])
    kernel.feed(watermark=200)
    for side, row, pair in (
        ("right", ("a", 102, 9), (0, ("a", 1), ("a", 9))),
        ("left", ("a", 99, 8), (0, ("a", 8), ("a", 2))),
    ):
        done = again(kernel, "left" if side == "left" else "right", [row])
        assert (shown(done.plus), shown(done.minus)) == ([pair], [])


@pytest.mark.parametrize(("side", "row"), [("right", ("a", 102, 9)), ("left", ("a", 99, 9))])
def test_a_partner_that_has_matched_and_still_waits_puts_nothing_off(side: Side, row: tuple[str, int, int]) -> None:
    kernel = kept_join("full")
    kernel.feed([("a", 100, 1)], [("a", 101, 2)], watermark=50)
    # Both can still meet others; neither will come out padded, so the pair is right at once.
    done = again(kernel, side, [row])
    pair = (("a", 1), ("a", 9)) if side == "right" else (("a", 9), ("a", 2))
    assert (shown(done.plus), shown(done.minus)) == ([(0, *pair)], [])
    assert done.taken.tolist() == [0]


def evicting(how: str = "inner", **more: Any) -> Kernel:
    """Return a join [0, 10] that keeps one left row."""
    rule = rules(how)
    return Kernel(
        interval(0, 10, how, left={**rule["left"], "limits": Limits(max_state_rows=1)}, right=rule["right"], **more)
    )


def test_pairs_that_an_evicted_row_gave_are_not_given_again() -> None:
    kernel = evicting()
    first = kernel.feed([("a", 100, 1)], [("a", 101, 2)])
    assert [row[2:] for row in first] == [(("a", 1), ("a", 2))]
    kernel.feed([("b", 100, 3)], [("a", 102, 4)])  # the new row of a is met before the limit drops the old one
    assert kernel.rejected() == [("left", "EVICTED", "a")]
    kernel.feed([], [("a", 103, 5)])
    assert kernel.last is not None
    done = again(kernel, "left", [("a", 100, 1)], until=[1])
    assert shown(done.plus) == [(0, ("a", 1), ("a", 5))]
    assert done.taken.tolist() == [0]
    unmatched = again(kernel, "left", [("a", 100, 1)], until=[-1])
    assert len(shown(unmatched.plus)) == 3


def test_a_row_whose_pairs_are_all_given_stays_undecided() -> None:
    kernel = evicting()
    kernel.feed([("a", 100, 1)], [("a", 101, 2)])
    kernel.feed([("b", 100, 3)])
    done = again(kernel, "left", [("a", 100, 1)], until=[1])
    assert (shown(done.plus), done.taken.tolist()) == ([], [])


def test_the_batch_of_a_partner_is_known_after_segments_were_merged() -> None:
    kernel = evicting()
    kernel.feed([("a", 100, 1)], [("a", 101, 0)])
    kernel.feed([("b", 100, 3)])
    for number in range(1, 12):
        kernel.feed([], [("a", 100, number)])
    assert len(kernel.state.right.segments) < 12
    done = again(kernel, "left", [("a", 100, 1)], until=[1])
    assert sorted(row[2][1] for row in shown(done.plus)) == list(range(1, 12))


def test_under_emit_final_an_evicted_row_with_pairs_waits_for_the_end_of_the_input() -> None:
    task = joined(Reach(kind="tumbling", size=100), **rules("inner"), emit="final")
    kernel = Kernel(task)
    kernel.feed([("a", 110, 1)], [("a", 120, 2)])
    kernel.feed(watermark=250)
    assert shown(again(kernel, "left", [("a", 111, 1)], until=[1]).plus) == []
    assert len(shown(again(kernel, "left", [("a", 111, 1)], until=[-1]).plus)) == 1


@pytest.mark.parametrize("row", [("a", 99, 9), ("a", 111, 9), ("b", 105, 9)])
def test_a_row_without_a_partner_stays_undecided(row: tuple[str, int, int]) -> None:
    kernel = kept_join()
    kernel.feed([("a", 100, 1)])
    kernel.feed(watermark=200)
    done = again(kernel, "right", [row])
    assert (shown(done.plus), shown(done.minus), done.taken.tolist()) == ([], [], [])


def test_a_partner_that_is_gone_from_the_state_is_not_found() -> None:
    kernel = Kernel(interval(0, 10, "left"))
    kernel.feed([("a", 100, 1)])
    kernel.feed(watermark=200)
    assert shown(again(kernel, "right", [("a", 105, 9)]).plus) == []


def test_keys_that_share_a_hash_are_distinguished() -> None:
    kernel = Kernel(interval(0, 10, "left", **rules("left")), same_hash=True)
    kernel.feed([("a", 100, 1), ("b", 100, 2)])
    kernel.feed(watermark=200)
    done = again(kernel, "right", [("b", 105, 9), ("b", 106, 8), ("c", 105, 7)])
    assert shown(done.plus) == [(0, ("b", 2), ("b", 8)), (0, ("b", 2), ("b", 9))]
    assert shown(done.minus) == [(1, ("b", 2), None)]
    assert done.taken.tolist() == [0, 1]


def test_conditions_beside_keys_and_time_hold_here_too() -> None:
    condition = Residual(program=("<", ("ref", "left", "v"), ("ref", "right", "v")))
    kernel = kept_join(residual=condition)
    kernel.feed([("a", 100, 5)])
    kernel.feed(watermark=200)
    assert shown(again(kernel, "right", [("a", 105, 5)]).plus) == []
    assert shown(again(kernel, "right", [("a", 105, 6)]).plus) == [(0, ("a", 5), ("a", 6))]


def test_windows_are_shared_as_in_the_join() -> None:
    task = joined(Reach(kind="tumbling", size=60), "left", **rules("left"), window_columns=True)
    kernel = Kernel(task)
    kernel.feed([("a", 59, 1), ("a", 60, 2)])
    kernel.feed(clock=Clock(left=300, right=300), watermark=300)
    done = again(kernel, "right", [("a", 10, 9)])
    (batch,) = list(done.plus)
    (row,) = batch.to_pylist()
    assert (row["window_start"], row["window_end"], row["left"]["v"]) == (0, 60, 1)
    assert shown(done.minus) == [(1, ("a", 1), None)]


def test_the_state_is_read_and_not_changed() -> None:
    kernel = kept_join()
    kernel.feed([("a", 100, 1)])
    kernel.feed(watermark=200)
    before = [flags.copy() for flags in kernel.state.left.flags]
    again(kernel, "right", [("a", 105, 9)])
    assert all((a == b).all() for a, b in zip(before, kernel.state.left.flags, strict=True))
    assert shown(again(kernel, "right", [("a", 105, 9)]).plus) == [(0, ("a", 1), ("a", 9))]


def test_a_padded_row_is_taken_back_once_although_late_rows_are_in_two_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_job(read_spec(SQL.rstrip() + " WITH ('join.retention' = '1h')"), tmp_path).statements[0]
    batches = [
        {"orders": [order("a", 0), order("x", 100)], "shipments": [shipment("x", 100)]},
        {"orders": [order("y", 101)], "shipments": [shipment("y", 101)]},
        {"shipments": [shipment("a", 5)]},
        {"shipments": [shipment("a", 6)]},
    ]
    checkpoint = run_statement(plan, batches, root=tmp_path, groups=1, final=False).checkpoint
    monkeypatch.setattr(redrive_rows, "_select_rows", lambda *written: written[4])
    files = list_reject_files(checkpoint)
    assert [file.batch for file in files] == [2, 3]
    no_session: Any = None
    done = redrive_rows.look_up_rejects(no_session, plan, checkpoint, dict.fromkeys(files, (0,)), Counter())
    assert [sum(b.num_rows for b in found) for found in (done.plus, done.minus)] == [2, 1]  # type: ignore[attr-defined]


def test_a_redrive_has_happened_with_its_file_and_is_finished_after_a_crash(tmp_path: Path) -> None:
    checkpoint = run(tmp_path, BATCHES, final=False).checkpoint
    staged, shown_at = tmp_path / "stage" / "1" / "a.json", tmp_path / "out.corrections" / "a.json"
    staged.parent.mkdir(parents=True)
    staged.write_text("{}\n")
    record = RedriveRecord(
        number=1,
        at=5,
        reasons=("LATE",),
        taken=FrozenMap({"left/2-j1-0.parquet": (0, 3)}),
        taken_back=FrozenMap({"x": 2}),
        plus=1,
        files=(Move(source=staged, to=shown_at, rows=1),),
    )
    write_redrive(checkpoint, record)
    assert shown_at.read_text() == "{}\n"
    assert read_redrives(checkpoint) == (record,)
    assert collect_taken(read_redrives(checkpoint)) == {"left/2-j1-0.parquet": {0, 3}}
    assert count_retracted((record, record)) == {"x": 4}
    # As a crash between the file and the rename leaves it.
    staged.parent.mkdir(parents=True)
    shown_at.rename(staged)
    finish_redrive(read_redrives(checkpoint)[-1])
    assert shown_at.exists()
    (checkpoint.redriven / "1.json").write_text('{"number": 1}')
    with pytest.raises(StreamError) as caught:
        read_redrives(checkpoint)
    assert caught.value.code == "W2202"


def test_rows_of_one_file_that_several_redrives_took_are_all_taken() -> None:
    def record(number: int, *places: int) -> RedriveRecord:
        return RedriveRecord(number=number, at=5, reasons=("LATE",), taken=FrozenMap({"left/2-j1-0.parquet": places}))

    assert collect_taken((record(1, 0, 3), record(2, 1))) == {"left/2-j1-0.parquet": {0, 1, 3}}


def test_the_files_of_a_redrive_are_on_the_disk_before_its_record_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = run(tmp_path, BATCHES, final=False).checkpoint
    staged, order_of = tmp_path / "stage" / "1" / "a.json", []
    staged.parent.mkdir(parents=True)
    staged.write_text("{}\n")

    def sync(moves: Sequence[Move]) -> None:
        order_of.append(list(checkpoint.redriven.glob("*.json")))
        sync_staged(moves)

    monkeypatch.setattr(recovering, "sync_staged", sync)
    move = Move(source=staged, to=tmp_path / "out" / "a.json", rows=1)
    write_redrive(checkpoint, RedriveRecord(number=1, at=5, reasons=("LATE",), files=(move,)))
    # A record that survives a power cut must not list a file that does not.
    assert order_of == [[]]
    assert move.to.exists()
