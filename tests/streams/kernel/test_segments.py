from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kernel_runs import SCHEMA, Kernel, arrivals, interval, joined, shown
from weft.streams.kernel import segments
from weft.streams.kernel.spec import FOREVER, MAX_GROUP_BYTES, NEVER, Clock, JoinTask, KernelProblem, Reach
from weft.streams.kernel.state_files import GroupFolder, StateStore, open_group, read_waiting, save_group
from weft.streams.kernel.transition import GroupState, check_size, empty_state, step

WIDE = interval(-100, 100, "full")
SESSION = joined(Reach(kind="session", gap=50), "full", left={"dedup": ("k0", "v"), "outer": True})


def place(root: Path, group: int = 3) -> GroupFolder:
    return GroupFolder(StateStore(str(root)), 1, group)


def saved(kernel: Kernel, root: Path) -> GroupState:
    return save_group(place(root), kernel.state, kernel.last.rejects if kernel.last else (), watermark=NEVER)


def opened(root: Path, batch: int, task: JoinTask = WIDE) -> GroupState:
    return open_group(place(root), batch, task, SCHEMA, SCHEMA)


def folder(root: Path, batch: int) -> Path:
    return root / "state" / "j1" / str(batch) / "3"


@pytest.mark.parametrize("task", [WIDE, SESSION, replace(WIDE, emit="final")])
def test_a_state_opened_from_disk_goes_on_like_the_one_in_memory(task: JoinTask, tmp_path: Path) -> None:
    kept, stored = Kernel(task), Kernel(task)
    for batch in range(14):
        left = [(f"k{batch % 3}", batch * 10, n) for n in range(batch % 4)]
        right = [(f"k{n}", batch * 10 + n, batch) for n in range(3)]
        watermark = batch * 10 - 40 if batch % 5 else NEVER
        assert kept.feed(left, right, watermark=watermark) == stored.feed(left, right, watermark=watermark)
        saved(stored, tmp_path)
        stored.state = opened(tmp_path, batch, task)
        assert stored.state.left.counters == kept.state.left.counters
        assert stored.state.right.stats == kept.state.right.stats
    assert kept.flush() == stored.flush()
    assert kept.state.left.stats.current_size == 0


def test_files_of_earlier_batches_are_listed_and_not_written_again(tmp_path: Path) -> None:
    kernel = Kernel(WIDE)
    kernel.feed([("a", 1)])
    kernel.state = saved(kernel, tmp_path)
    kernel.feed([("b", 2)])
    kernel.state = saved(kernel, tmp_path)
    index = json.loads((folder(tmp_path, 1) / "index.json").read_text())
    assert [s["path"] for s in index["segments"]] == ["0/3/left.arrow", "1/3/left.arrow"]
    kernel.feed(watermark=NEVER)
    kernel.state = saved(kernel, tmp_path)
    assert sorted(p.name for p in folder(tmp_path, 2).iterdir()) == ["index.json"]
    assert opened(tmp_path, 2).left.stats.current_size == 2


def test_flags_are_written_when_one_changed(tmp_path: Path) -> None:
    kernel = Kernel(WIDE)
    kernel.feed([("a", 1)])
    kernel.state = saved(kernel, tmp_path)
    kernel.feed([], [("a", 2)])
    kernel.state = saved(kernel, tmp_path)
    assert (folder(tmp_path, 1) / "left.flags").read_bytes() == b"\x01"
    assert not (folder(tmp_path, 1) / "left.arrow").exists()


def test_a_group_without_rows_has_a_folder_and_an_empty_state(tmp_path: Path) -> None:
    kernel = Kernel(SESSION)
    kernel.feed()
    saved(kernel, tmp_path)
    found = opened(tmp_path, 0, SESSION)
    assert (found.left.segments, found.left.sessions, found.batch) == ((), (), 0)
    assert open_group(place(tmp_path), None, WIDE, SCHEMA, SCHEMA).batch == -1


def test_the_folder_of_another_attempt_stays_and_ours_goes(tmp_path: Path) -> None:
    kernel = Kernel(WIDE)
    kernel.feed([("a", 1)])
    saved(kernel, tmp_path)
    before = (folder(tmp_path, 0) / "index.json").stat().st_ino
    saved(kernel, tmp_path)
    assert (folder(tmp_path, 0) / "index.json").stat().st_ino == before
    assert [p.name for p in (tmp_path / "state" / "j1").iterdir()] == ["0"]


def test_what_is_not_finished_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Kernel(WIDE)
    kernel.feed([("a", 1)])

    def full(_places: StateStore, made: str, name: str) -> None:
        raise OSError(28, f"No space left on device: {made} {name}")

    monkeypatch.setattr(StateStore, "place_folder", full)
    with pytest.raises(OSError, match="No space"):
        saved(kernel, tmp_path)
    assert not folder(tmp_path, 0).exists()


def test_a_folder_that_cannot_be_renamed_is_an_error_and_keeps_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = Kernel(WIDE)
    kernel.feed([("a", 1)])

    def refuse(made: str, name: str) -> None:
        raise OSError(5, f"Input/output error: {made} {name}")

    monkeypatch.setattr("weft.streams.kernel.state_files.os.rename", refuse)
    with pytest.raises(OSError, match="Input/output"):
        saved(kernel, tmp_path)
    assert [p.name for p in (tmp_path / "state" / "j1").glob(".tmp-*/index.json")] == ["index.json"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("index.json", b"{"),
        ("index.json", b"{}"),
        ("index.json", b'{"format": 9}'),
        ("left.arrow", b"ARROW1"),
        ("left.arrow", b""),
        ("left.flags", b"\x00"),
        ("left.flags", b"\x00" * 3),
    ],
)
def test_a_file_of_another_length_is_named(name: str, content: bytes, tmp_path: Path) -> None:
    kernel = Kernel(WIDE)
    kernel.feed([("a", 1), ("b", 2)], [("c", 1)])
    saved(kernel, tmp_path)
    (folder(tmp_path, 0) / name).write_bytes(content)
    with pytest.raises(KernelProblem) as caught:
        opened(tmp_path, 0)
    assert caught.value.code == "W2202"
    assert name in caught.value.message
    assert "--fresh" in caught.value.help


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    kernel = Kernel(WIDE)
    kernel.feed([("a", 1)])
    saved(kernel, tmp_path)
    (folder(tmp_path, 0) / "left.arrow").unlink()
    with pytest.raises(KernelProblem, match=r"W2202.*left\.arrow"):
        opened(tmp_path, 0)


def test_state_with_other_columns_is_refused(tmp_path: Path) -> None:
    kernel = Kernel(WIDE)
    kernel.feed([("a", 1)])
    saved(kernel, tmp_path)
    other = pa.schema([("k0", pa.string()), ("v", pa.string())])
    with pytest.raises(KernelProblem, match="W2202"):
        open_group(place(tmp_path), 0, WIDE, other, SCHEMA)


def test_rejected_rows_are_in_a_table_of_their_own(tmp_path: Path) -> None:
    kernel = Kernel(WIDE)
    kernel.feed([("a", 1), ("b", 200)], [(None, None)], watermark=100)
    saved(kernel, tmp_path)
    found = {p.parent.name: pq.read_table(p).to_pylist() for p in (tmp_path / "rejects").rglob("*.parquet")}
    assert [(r["reason"], r["event_time"], r["row"]["k0"]) for r in found["left"]] == [("LATE", 1, "a")]
    assert [(r["reason"], r["event_time"], r["group"]) for r in found["right"]] == [("NO_EVENT_TIME", None, 3)]
    assert (tmp_path / "rejects" / "left" / "0-j1-3.parquet").exists()


def test_the_rows_that_wait_can_be_given_up_with_the_state(tmp_path: Path) -> None:
    kernel = Kernel(WIDE)
    kernel.feed([("a", 1), ("b", 2)], [("a", 3), ("c", 4)])
    saved(kernel, tmp_path)
    given_up = read_waiting(place(tmp_path), 0)
    assert {(r.side, r.reason): r.rows.column("k0").to_pylist() for r in given_up} == {
        ("left", "ABANDONED"): ["b"],
        ("right", "ABANDONED"): ["c"],
    }


def test_rows_of_a_changed_file_are_not_given_up(tmp_path: Path) -> None:
    kernel = Kernel(WIDE)
    kernel.feed([("a", 1), ("b", 2)], [("a", 3)])
    saved(kernel, tmp_path)
    (folder(tmp_path, 0) / "left.flags").write_bytes(bytes(2))  # of the right length: both rows would seem to wait
    with pytest.raises(KernelProblem, match=r"W2202.*left\.flags.*checksum"):
        read_waiting(place(tmp_path), 0)


def test_many_small_segments_become_few_and_lose_nothing() -> None:
    kernel = Kernel(interval(0, 10_000, "left"))
    for batch in range(40):
        kernel.feed([(f"k{n}", batch * 10, batch) for n in range(3)], [("k1", batch * 10, batch)])
        assert len(kernel.state.left.segments) <= segments.MAX_SEGMENTS
        assert kernel.state.left.stats.current_size == 3 * (batch + 1)
    assert len(kernel.feed([], [("k1", 395, 99)])) == 40
    for segment in kernel.state.left.segments:
        assert (segment.least, segment.greatest) == (segment.times.min(), segment.times.max())
        rows = list(zip(segment.hashes.tolist(), segment.times.tolist(), strict=True))
        assert rows == sorted(rows)


def test_a_segment_is_dropped_when_no_row_is_left_and_rewritten_when_few_are() -> None:
    kernel = Kernel(interval(0, 10))
    kernel.feed([("a", t) for t in range(100)])
    kernel.feed(watermark=50)
    assert [len(s) for s in kernel.state.left.segments] == [100]
    kernel.feed(watermark=80)
    assert [len(s) for s in kernel.state.left.segments] == [30]
    kernel.feed(watermark=200)
    assert [len(s) for s in kernel.state.left.segments] == []


def test_rows_that_are_gone_are_left_out_when_segments_are_merged() -> None:
    """A third of each segment is gone: too little to rewrite it alone, and nothing to keep when it is merged."""
    kernel = Kernel(interval(0, 10))
    for _ in range(segments.MAX_SEGMENTS):
        kernel.feed([("a", 1), ("b", 1000), ("c", 1000)])
    kernel.feed(watermark=500)
    assert [len(s) for s in kernel.state.left.segments] == [3] * segments.MAX_SEGMENTS
    kernel.feed([("d", 1000)], watermark=500)
    assert [len(s) for s in kernel.state.left.segments] == [2 * segments.MAX_SEGMENTS + 1]


def test_pairs_beyond_what_is_remembered_are_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [("a", t, t) for t in range(30)]
    wanted = Kernel(WIDE).feed(rows, rows)
    monkeypatch.setattr("weft.streams.kernel.emit.MAX_KNOWN_PAIRS", 100)
    monkeypatch.setattr("weft.streams.kernel.pairs.MAX_CHUNK", 64)
    monkeypatch.setattr("weft.streams.kernel.keys.MAX_PIECE_ROWS", 50)
    kernel = Kernel(WIDE)
    assert kernel.feed(rows, rows) == wanted
    assert len(wanted) == 900
    assert kernel.last is not None
    assert shown(kernel.last) == wanted  # a second time gives the same
    assert max(batch.num_rows for batch in kernel.last.out) == 50


def test_pairs_found_again_leave_out_rows_that_were_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.streams.kernel.emit.MAX_KNOWN_PAIRS", 0)
    kernel = Kernel(interval(0, 10, left={"retention": 1000}))
    kernel.feed([("a", 5, 1), ("a", 50, 2)])
    kernel.feed(watermark=40)
    assert kernel.feed([], [("a", 55, 3)], watermark=40) == [(0, 55, ("a", 2), ("a", 3))]


def test_wide_rows_come_in_small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.streams.kernel.keys.MAX_PIECE_BYTES", 400)
    kernel = Kernel(WIDE)
    rows = [("a" * 30, t, t) for t in range(5)]
    assert len(kernel.feed(rows, rows)) == 25
    assert kernel.last is not None
    sizes = [given.num_rows for given in kernel.last.out]
    assert sum(sizes) == 25
    assert max(sizes) <= 5


@pytest.mark.parametrize("final", [False, True])
def test_pairs_of_sessions_are_found_again_too(monkeypatch: pytest.MonkeyPatch, *, final: bool) -> None:
    task = joined(Reach(kind="session", gap=5), emit="final" if final else "changes")

    def run() -> list[list[tuple[object, ...]]]:
        kernel = Kernel(task)
        first = [("a", t, t) for t in range(0, 40, 3)]
        second = [("a", t, t) for t in (60, 64)]
        bridge = [("a", t, t) for t in range(41, 60, 3)]
        return [kernel.feed(first, second), kernel.feed(second, first), kernel.feed(bridge), kernel.flush()]

    wanted = run()
    monkeypatch.setattr("weft.streams.kernel.emit.MAX_KNOWN_PAIRS", 0)
    assert run() == wanted
    assert sum(len(batch) for batch in wanted) > 300


def test_a_group_that_is_too_large_says_how_many_groups_there_should_be() -> None:
    state = empty_state(WIDE, SCHEMA, SCHEMA)
    came = arrivals([("a", 1)] * 1000)
    check_size(state, came, came, groups=2)
    with pytest.raises(KernelProblem, match=r"W2211.*SET 'groups' = '\d+'"):
        check_size(state, came, came, groups=2, most=10_000)
    assert MAX_GROUP_BYTES == 2**31


def test_the_same_rows_in_any_order_give_the_same_set() -> None:
    rows = [(f"k{n % 5}", n % 7, n) for n in range(60)]

    def run(left: list[tuple[str, int, int]]) -> list[tuple[object, ...]]:
        stepped = step(
            WIDE,
            empty_state(WIDE, SCHEMA, SCHEMA),
            arrivals(left),
            arrivals(left[::-1]),
            Clock(left=FOREVER, right=FOREVER),
            batch=0,
            watermark=NEVER,
            wall_clock=0,
        )
        return shown(stepped)

    assert run(rows) == run(rows[::-1]) == run(sorted(rows))
