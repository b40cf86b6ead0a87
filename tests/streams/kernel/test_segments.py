from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kernel_runs import SCHEMA, Kernel, arrivals, hash_of, interval, joined, shown
from weft.streams.kernel import segments, state_files
from weft.streams.kernel.gate import Arrivals
from weft.streams.kernel.ranges import ALL, HashRange, range_of
from weft.streams.kernel.spec import (
    FOREVER,
    MAX_GROUP_BYTES,
    NEVER,
    Clock,
    JoinTask,
    KernelProblem,
    Reach,
    checked_files,
    list_files,
)
from weft.streams.kernel.state_files import SIDES, JoinFolder, open_state, read_waiting, save_state
from weft.streams.kernel.state_store import StateStore
from weft.streams.kernel.transition import GroupState, check_size, empty_state, step

WIDE = interval(-100, 100, "full")
SESSION = joined(Reach(kind="session", gap=50), "full", left={"dedup": ("k0", "v"), "outer": True})


def place(root: Path) -> JoinFolder:
    return JoinFolder(StateStore(str(root)), 1)


class Stored:
    """A kernel whose state is written after each batch and read again before the next."""

    def __init__(self, task: JoinTask, root: Path) -> None:
        self.kernel, self.root = Kernel(task), root
        self.entries: list[Any] = []
        self.report: dict[str, Any] = {}

    def feed(self, *rows: Any, **named: Any) -> list[tuple[Any, ...]]:
        before = self.kernel.state
        given = self.kernel.feed(*rows, **named)
        rejects = self.kernel.last.rejects if self.kernel.last else ()
        _, self.report = save_state(place(self.root), before, self.kernel.state, rejects, watermark=NEVER)
        self.entries = [json.loads(json.dumps(self.report["state"]))]
        self.kernel.state = self.opened()
        return given

    def opened(self, schema: Any = SCHEMA) -> GroupState:
        return open_state(place(self.root), self.entries, ALL, self.kernel.task, schema, SCHEMA)

    def file(self, side: str, kind: str) -> Path:
        """Return the newest file of a kind that the state lists."""
        mine = self.entries[0][side][kind]
        return self.root / "state" / "j1" / str(mine[-1]["path"])


def files(root: Path) -> list[str]:
    return sorted(p.name for p in (root / "state" / "j1").iterdir())


@pytest.mark.parametrize("task", [WIDE, SESSION, replace(WIDE, emit="final")])
def test_a_state_opened_from_disk_goes_on_like_the_one_in_memory(task: JoinTask, tmp_path: Path) -> None:
    kept, stored = Kernel(task), Stored(task, tmp_path)
    counted: dict[str, int] = {}
    for batch in range(14):
        left = [(f"k{batch % 3}", batch * 10, n) for n in range(batch % 4)]
        right = [(f"k{n}", batch * 10 + n, batch) for n in range(3)]
        watermark = batch * 10 - 40 if batch % 5 else NEVER
        assert kept.feed(left, right, watermark=watermark) == stored.feed(left, right, watermark=watermark)
        for name, count in stored.report["counters"]["left"].items():
            counted[name] = counted.get(name, 0) + count
        assert counted == kept.state.left.counters.to_dict()
        assert stored.report["stats"]["right"]["current_size"] == kept.state.right.stats.current_size
        assert stored.kernel.state.left.counters.waiting == kept.state.left.counters.waiting
    assert kept.flush() == stored.feed(watermark=FOREVER)
    assert stored.report["stats"]["left"]["current_size"] == 0


@pytest.mark.parametrize("task", [WIDE, SESSION, replace(WIDE, emit="final")])
def test_any_number_of_tasks_continues_the_state_of_any_other(task: JoinTask, tmp_path: Path) -> None:
    """As after restarts on 2, 8 and 3 cores; duplicates of a row with a NULL key are found too."""
    whole = Kernel(task)
    entries: list[Any] = []
    for batch, tasks in enumerate((2, 2, 8, 8, 3, 1, 3)):
        left = [(f"k{n % 7}", batch * 10 + n, n) for n in range(9)] + [(None, batch * 10, 1), (None, 70, 5)]
        right = [(f"k{n}", batch * 10 + n, batch) for n in range(7)]
        watermark = batch * 10 - 30
        wanted = whole.feed(left, right, watermark=watermark)
        found, reports = [], []
        for number in range(tasks):
            keys = range_of(number, tasks)
            before = open_state(place(tmp_path), entries, keys, task, SCHEMA, SCHEMA)
            stepped = step(
                task,
                before,
                routed(left, keys),
                routed(right, keys),
                Clock(left=watermark, right=watermark),
                batch=batch,
                watermark=watermark,
                wall_clock=0,
            )
            found += shown(stepped)
            reports.append(
                save_state(
                    place(tmp_path), before, stepped.state, stepped.rejects, watermark=watermark, keys=keys, task=number
                )[1]
            )
        entries = [json.loads(json.dumps(report["state"])) for report in reports]
        assert sorted(found, key=repr) == wanted
        assert whole.last is not None
        for side in SIDES:
            waiting = sum(report["waited"][side] + report["counters"][side]["waiting"] for report in reports)
            assert waiting == whole.state.side(side).counters.waiting
            rejected: int = sum(report["counters"][side]["rejected"] for report in reports)
            assert rejected == sum(len(r) for r in whole.last.rejects if r.side == side and r.reason != "LATE")


def routed(rows: Any, keys: HashRange) -> Arrivals:
    """Return the rows of a task, with hashes that differ in their upper bits."""
    spread = [(hash_of(r[0] or "") * 0x9E3779B97F4A7C15 + 2**63) % 2**64 - 2**63 for r in rows]
    mine = [n for n, h in enumerate(spread) if keys.first <= h <= keys.last]
    given = arrivals([rows[n] for n in mine])
    hashes = pa.array([None if rows[n][0] is None else spread[n] for n in mine], pa.int64())
    return replace(given, hashes=hashes, routes=np.array([spread[n] for n in mine], dtype=np.int64))


def test_files_of_earlier_batches_are_listed_and_not_written_again(tmp_path: Path) -> None:
    stored = Stored(WIDE, tmp_path)
    stored.feed([("a", 1)])
    stored.feed([("b", 2)])
    paths = [s["path"] for s in stored.entries[0]["left"]["segments"]]
    assert [p[:4] for p in paths] == ["0-0-", "1-0-"]
    assert files(tmp_path) == sorted(paths)
    stored.feed(watermark=NEVER)
    assert files(tmp_path) == sorted(paths)
    assert len(stored.kernel.state.left.flags) == 2


def test_only_flags_that_changed_are_written(tmp_path: Path) -> None:
    stored = Stored(WIDE, tmp_path)
    stored.feed([(f"k{n}", 1) for n in range(10_000)])
    rows = stored.file("left", "segments")
    stored.feed([], [("k7", 2)])
    assert stored.file("left", "flags").stat().st_size < 2_000
    assert stored.file("left", "segments") == rows
    stored.feed([], [("k7", 3), ("k8", 3)])
    flags = stored.kernel.state.left.flags[0]
    assert [int(flags.sum()), len(stored.entries[0]["left"]["flags"])] == [2, 2]


def test_files_with_few_flags_are_merged(tmp_path: Path) -> None:
    stored = Stored(WIDE, tmp_path)
    stored.feed([(f"k{n}", 1) for n in range(100)])
    for n in range(60):
        stored.feed([], [(f"k{n}", 2)])
        assert len(stored.entries[0]["left"]["flags"]) <= state_files.MAX_FLAG_FILES
    assert sum(int(flags.sum()) for flags in stored.kernel.state.left.flags) == 60
    assert sum(file["count"] for file in stored.entries[0]["left"]["flags"]) == 60


def test_a_task_without_rows_has_an_empty_state(tmp_path: Path) -> None:
    stored = Stored(SESSION, tmp_path)
    stored.feed()
    found = stored.opened()
    assert (found.left.segments, found.left.sessions, found.batch) == ((), (), 0)
    assert open_state(place(tmp_path), (), ALL, WIDE, SCHEMA, SCHEMA).batch == -1


def test_attempts_of_a_task_do_not_meet(tmp_path: Path) -> None:
    kernel = Kernel(WIDE)
    before = kernel.state
    kernel.feed([("a", 1)])
    one, other = (save_state(place(tmp_path), before, kernel.state, watermark=NEVER)[1] for _ in range(2))
    assert not {*list_files(one["state"])} & {*list_files(other["state"])}
    assert one["counters"] == other["counters"]


def test_a_file_that_could_not_be_written_leaves_no_half(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Kernel(WIDE)
    before = kernel.state
    kernel.feed([("a", 1)])

    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("weft.streams.kernel.state_store.os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        save_state(place(tmp_path), before, kernel.state, watermark=NEVER)
    assert files(tmp_path) == []


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("segments", b"ARROW1"),
        ("segments", b""),
        ("flags", b"\x00"),
        ("flags", b""),
    ],
)
def test_a_file_of_another_length_is_named(kind: str, content: bytes, tmp_path: Path) -> None:
    stored = Stored(WIDE, tmp_path)
    stored.feed([("a", 1), ("b", 2)], [("a", 1)])
    file = stored.file("left", kind)
    file.write_bytes(content)
    with pytest.raises(KernelProblem) as caught:
        stored.opened()
    assert caught.value.code == "W2202"
    assert file.name in caught.value.message
    assert "--fresh" in caught.value.help


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    stored = Stored(WIDE, tmp_path)
    stored.feed([("a", 1)])
    stored.file("left", "segments").unlink()
    with pytest.raises(KernelProblem, match=r"W2202.*left\.arrow"):
        stored.opened()


def test_state_with_other_columns_is_refused(tmp_path: Path) -> None:
    stored = Stored(WIDE, tmp_path)
    stored.feed([("a", 1)])
    with pytest.raises(KernelProblem, match="W2202"):
        stored.opened(pa.schema([("k0", pa.string()), ("v", pa.string())]))


def test_rejected_rows_are_in_a_table_of_their_own(tmp_path: Path) -> None:
    stored = Stored(WIDE, tmp_path)
    stored.feed([("a", 1), ("b", 200)], [(None, None)], watermark=100)
    found = {p.parent.name: pq.read_table(p).to_pylist() for p in (tmp_path / "rejects").rglob("*.parquet")}
    assert [(r["reason"], r["event_time"], r["row"]["k0"]) for r in found["left"]] == [("LATE", 1, "a")]
    assert [(r["reason"], r["event_time"], r["group"]) for r in found["right"]] == [("NO_EVENT_TIME", None, 0)]
    assert sorted(
        str(p.relative_to(tmp_path / "rejects")) for p in (tmp_path / "rejects").rglob("*.parquet")
    ) == sorted(stored.report["rejects"])


def test_the_rows_that_wait_can_be_given_up_with_the_state(tmp_path: Path) -> None:
    stored = Stored(WIDE, tmp_path)
    stored.feed([("a", 1), ("b", 2)], [("a", 3), ("c", 4)])
    given_up = read_waiting(place(tmp_path), stored.entries[0])
    assert {(r.side, r.reason): r.rows.column("k0").to_pylist() for r in given_up} == {
        ("left", "ABANDONED"): ["b"],
        ("right", "ABANDONED"): ["c"],
    }


def test_rows_of_a_changed_file_are_not_given_up(tmp_path: Path) -> None:
    stored = Stored(WIDE, tmp_path)
    stored.feed([("a", 1), ("b", 2)], [("a", 3)])
    file = stored.file("left", "flags")
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    checked_files().clear()  # another process has not read it yet
    with pytest.raises(KernelProblem, match=r"W2202.*left\.flags.*checksum"):
        read_waiting(place(tmp_path), stored.entries[0])


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


def test_a_task_that_is_too_large_says_how_many_there_should_be() -> None:
    state = empty_state(WIDE, SCHEMA, SCHEMA)
    came = arrivals([("a", 1)] * 1000)
    check_size(state, came, came, tasks=2)
    with pytest.raises(KernelProblem, match=r"W2211.*'groups', allow '\d+' or more"):
        check_size(state, came, came, tasks=2, most=10_000)
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
