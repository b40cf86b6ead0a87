from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kernel_runs import interval
from weft.streams.kernel.arrow_task import arrow_task
from weft.streams.kernel.ranges import range_of
from weft.streams.kernel.spec import FOREVER, NEVER, Clock, JoinTask, KernelProblem
from weft.streams.kernel.state_store import StateStore

TIMES = pa.timestamp("us", "Europe/Berlin")
TICK = (-1, None, None)


def batch(rows: list[tuple[int, int, str | None, int | None]]) -> pa.RecordBatch:
    """Return rows (task, side, key, time) as Spark sends them; two tasks share the keys."""
    sides = [
        (f"{name}_{child}", pa.array([r[place] if r[1] == side else None for r in rows], kind))
        for side, name in enumerate(("left", "right"))
        for child, place, kind in (("k0", 2, pa.string()), ("at", 3, TIMES))
    ]
    return pa.record_batch(
        {
            "__weft_route": pa.array(
                [range_of(r[0], 2).first if r[2] is None else hash_of(r) for r in rows], pa.int64()
            ),
            "__weft_side": pa.array([r[1] for r in rows], pa.int8()),
            "__weft_hash": pa.array([None if r[2] is None else hash_of(r) for r in rows], pa.int64()),
            "__weft_time": pa.array([r[3] for r in rows], pa.int64()),
            "__weft_raw": pa.nulls(len(rows), pa.string()),
            **dict(sides),
        }
    )


def hash_of(row: tuple[int, int, str | None, int | None]) -> int:
    return range_of(row[0], 2).first + ord(str(row[2])[0])


def run(
    root: Path,
    number: int,
    batches: list[pa.RecordBatch],
    watermark: int = NEVER,
    task: JoinTask | None = None,
    tasks: int = 2,
) -> list[tuple[Any, Any]]:
    """Do a batch after the last one that `commits` knows, and return the keys of both sides of what comes out."""
    listed = root / "listed.json"
    reports: list[dict[str, Any]] = []
    work = arrow_task(
        task or interval(0, 10, "full"),
        Clock(left=watermark, right=watermark),
        files=StateStore(str(root)),
        batch=number,
        state=json.loads(listed.read_text()) if listed.exists() else (),
        watermark=watermark,
        wall_clock=0,
        tasks=tasks,
        report=reports.append,
    )
    out: Iterator[pa.RecordBatch] = work(iter(batches))
    rows = [row for one in out for row in one.to_pylist()]
    listed.write_text(json.dumps([report["state"] for report in reports]))
    found = [(r["left"] and r["left"]["k0"], r["right"] and r["right"]["k0"]) for r in rows]
    return sorted(found, key=repr)


def ticks(*tasks: int) -> pa.RecordBatch:
    return batch([(g, *TICK) for g in tasks])


def state_files(root: Path) -> list[Path]:
    return sorted((root / "state" / "j1").iterdir())


def test_a_partition_may_hold_the_rows_of_several_tasks_in_any_order(tmp_path: Path) -> None:
    mixed = batch([(0, 0, "a", 1), (1, 1, "b", 2), (0, 1, "a", 3), (1, -1, None, None)])
    assert run(tmp_path, 0, [mixed, batch([(1, 0, "b", 1)]), ticks(0)]) == [("a", "a"), ("b", "b")]
    assert {p.name[:4] for p in state_files(tmp_path)} == {"0-0-", "0-1-"}


def test_time_passes_in_tasks_that_got_only_a_tick(tmp_path: Path) -> None:
    run(tmp_path, 0, [batch([(0, 0, "a", 1), (1, 1, "b", 2)])])
    assert run(tmp_path, 1, [ticks(0, 1)], watermark=5) == [(None, "b")]
    assert run(tmp_path, 2, [ticks(0, 1)], watermark=FOREVER) == [("a", None)]


def test_another_number_of_tasks_finds_all_rows(tmp_path: Path) -> None:
    """Two tasks, then one, then two again: rows, flags and what each key has matched stay."""
    run(tmp_path, 0, [batch([(0, 0, "a", 1), (0, 0, "c", 1), (1, 1, "b", 2)])])
    assert run(tmp_path, 1, [batch([(0, 1, "a", 2), (1, 0, "b", 1)])], tasks=1) == [("a", "a"), ("b", "b")]
    assert run(tmp_path, 2, [batch([(0, 1, "a", 3)]), ticks(1)], tasks=2) == [("a", "a")]
    assert run(tmp_path, 3, [ticks(0)], watermark=FOREVER, tasks=1) == [("c", None)]


def first_batch(root: Path) -> Any:
    """Return the task of the first batch of an interval join in one task."""
    clock = Clock(left=NEVER, right=NEVER)
    options: dict[str, Any] = {"batch": 0, "state": (), "watermark": NEVER, "wall_clock": 0, "tasks": 1}
    return arrow_task(interval(0, 10), clock, files=StateStore(str(root)), report=lambda _: None, **options)


def test_the_state_is_there_before_the_first_row_comes_out(tmp_path: Path) -> None:
    work = first_batch(tmp_path)
    out = work([batch([(0, 0, "a", 1), (0, 1, "a", 1)])])
    assert not (tmp_path / "state").exists()
    next(out)
    assert {p.name.rpartition("-")[2] for p in state_files(tmp_path)} == {
        "left.arrow",
        "right.arrow",
        "left.flags",
        "right.flags",
    }


def test_instants_come_back_in_utc_whatever_the_zone_of_the_session(tmp_path: Path) -> None:
    work = first_batch(tmp_path)
    (given,) = work([batch([(0, 0, "a", 1), (0, 1, "a", 1)])])
    assert given.schema.names == ["kind", "time", "left", "right"]
    assert given.schema.field("left").type.field("at").type == pa.timestamp("us", "UTC")
    run(tmp_path, 0, [batch([(0, 0, "a", 1)])])
    assert run(tmp_path, 1, [batch([(0, 1, "a", 9)])]) == [("a", "a")]


def test_an_empty_partition_gives_nothing(tmp_path: Path) -> None:
    assert run(tmp_path, 0, []) == []
    assert not (tmp_path / "state").exists()


def test_a_side_without_children_is_refused(tmp_path: Path) -> None:
    wrong = batch([(0, 0, "a", 1)]).drop_columns(["left_k0", "left_at"])
    with pytest.raises(KernelProblem, match="W2201"):
        run(tmp_path, 0, [wrong])


def test_the_kernel_runs_where_there_is_no_weft(tmp_path: Path) -> None:
    """A worker gets it by value: bytes in, rows out, and `import weft` fails there."""
    made = (
        "import sys, weft.streams.kernel\n"
        "from pyspark import cloudpickle\n"
        "from weft.streams.kernel.arrow_task import arrow_task\n"
        "from weft.streams.kernel.spec import *\n"
        "from weft.streams.kernel.state_store import StateStore\n"
        "cloudpickle.register_pickle_by_value(weft.streams.kernel)\n"
        "side = dict(outer=True, raw=True)\n"
        "task = JoinTask(number=1, reach=Reach(kind='interval', upper=10), keys=('k0',),\n"
        "                left=SideTask(name='a', **side), right=SideTask(name='b', **side))\n"
        "work = arrow_task(task, Clock(left=NEVER, right=NEVER), files=StateStore(sys.argv[1]), batch=0, state=(),\n"
        "                  watermark=NEVER, wall_clock=0, tasks=1, report=print)\n"
        "sys.stdout.buffer.write(cloudpickle.dumps(work))"
    )
    used = (
        "import pickle, sys\n"
        "import pyarrow as pa\n"
        "sys.modules['weft'] = None\n"  # so that no import of it works
        "work = pickle.loads(open(sys.argv[1], 'rb').read())\n"
        "table = pa.ipc.open_file(sys.argv[2]).read_all()\n"
        "print([row['kind'] for out in work(table.to_batches()) for row in out.to_pylist()])"
    )
    rows = batch([(0, 0, "a", 1), (0, 1, "a", 3)])
    with pa.ipc.new_file(str(tmp_path / "rows.arrow"), rows.schema) as writer:
        writer.write_batch(rows)
    there = {"PYTHONPATH": str(Path(__file__).parents[3] / "src")}
    call = [sys.executable, "-c", made, str(tmp_path)]
    pickled = subprocess.run(call, capture_output=True, check=True, env=there).stdout
    (tmp_path / "work.bin").write_bytes(pickled)
    call = [sys.executable, "-c", used, str(tmp_path / "work.bin"), str(tmp_path / "rows.arrow")]
    ran = subprocess.run(call, capture_output=True, text=True, check=False, env={})
    assert ran.stdout.splitlines()[-1:] == ["[0]"], ran.stderr


@pytest.mark.parametrize(
    "nested",
    [
        pa.list_,
        lambda kind: pa.struct([("of", kind)]),
        lambda kind: pa.map_(pa.string(), kind),
        lambda kind: pa.list_(pa.struct([("of", pa.list_(kind))])),
    ],
)
def test_instants_inside_nested_values_are_in_utc_too(tmp_path: Path, nested: Callable[[pa.DataType], Any]) -> None:
    rows = batch([(0, 0, "a", 1), (0, 1, "a", 1)])
    rows = rows.append_column("left_seen", pa.nulls(2, nested(TIMES)))
    work = first_batch(tmp_path)
    (given,) = work([rows])
    assert given.schema.field("left").type.field("seen").type == nested(pa.timestamp("us", "UTC"))


def test_a_state_file_is_checked_by_each_process_that_reads_it(tmp_path: Path) -> None:
    run(tmp_path, 0, [batch([(0, 0, "a", 1)])])
    (rows,) = (p for p in state_files(tmp_path) if p.name.endswith("left.arrow"))
    rows.write_bytes(rows.read_bytes().replace(b"a\x00", b"b\x00"))
    with pytest.raises(KernelProblem, match="does not match its checksum"):
        run(tmp_path, 1, [ticks(0)])
