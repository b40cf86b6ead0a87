from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa

from kernel_runs import Kernel, interval
from weft.streams.kernel.gate import Arrivals
from weft.streams.kernel.keys import number_keys, rank_by_content
from weft.streams.kernel.segments import Segment
from weft.streams.kernel.spec import NEVER, Clock, JoinTask, Reach, SideTask
from weft.streams.kernel.transition import empty_state, step


def numbers(rows: list[tuple[str, str]], hashes: list[int]) -> list[int]:
    table = pa.table({"k0": [a for a, _ in rows], "k1": [b for _, b in rows]})
    segment = Segment(
        hashes=np.array(hashes, dtype=np.int64),
        times=np.zeros(len(rows), dtype=np.int64),
        rows=table,
        batch=0,
    )
    found: list[int] = number_keys(("k0", "k1"), [(segment, np.arange(len(rows)))]).tolist()
    return found


def test_keys_that_share_a_hash_have_numbers_of_their_own() -> None:
    rows = [("12", "34"), ("123", "4"), ("12", "34"), ("", "1234")]
    found = numbers(rows, [7, 7, 7, 7])
    assert len(set(found)) == 3
    assert found[0] == found[2]


def test_keys_are_numbered_by_hash_where_that_is_exact() -> None:
    assert numbers([("a", "x"), ("b", "y"), ("a", "x")], [5, 9, 5]) == [0, 1, 0]


def test_rows_of_one_hash_and_different_keys_do_not_meet() -> None:
    kernel = Kernel(interval(0, 10, "full"), same_hash=True)
    assert kernel.feed([("a", 1), ("b", 2)], [("b", 3, 8)]) == [(0, 3, ("b", 1), ("b", 8))]
    assert kernel.feed([("c", 4)], [("a", 5, 9)]) == [(0, 5, ("a", 0), ("a", 9))]
    assert kernel.flush() == [(1, 4, ("c", 0), None)]


def test_composite_keys_meet_part_by_part() -> None:
    schema = pa.schema([("k0", pa.string()), ("k1", pa.int64())])
    task = JoinTask(
        number=1,
        reach=Reach(kind="interval", lower=-10, upper=10),
        left=SideTask(name="a", outer=False, raw=True),
        right=SideTask(name="b", outer=False, raw=True),
        keys=("k0", "k1"),
    )

    def come(rows: list[tuple[str, int]]) -> Arrivals:
        columns = {"k0": [a for a, _ in rows], "k1": [b for _, b in rows]}
        same = pa.array([1] * len(rows), pa.int64())
        return Arrivals(hashes=same, times=same, rows=pa.table(columns, schema=schema))

    stepped = step(
        task,
        empty_state(task, schema, schema),
        come([("EU", 42), ("12", 34)]),
        come([("US", 42), ("EU", 42), ("123", 4)]),
        Clock(left=NEVER, right=NEVER),
        batch=0,
        watermark=NEVER,
        wall_clock=0,
    )
    pairs = [row for batch in stepped.out for row in batch.to_pylist()]
    assert [(p["left"], p["right"]) for p in pairs] == [({"k0": "EU", "k1": 42}, {"k0": "EU", "k1": 42})]


def test_content_puts_nulls_first_and_compares_column_by_column() -> None:
    rows = pa.table(
        {
            "a": pa.array(["b", None, "a", "a"]),
            "b": pa.array([Decimal(1), Decimal(2), None, Decimal("0.5")]),
            "c": pa.array([[1], [2], [3], None]),
        }
    )
    assert rank_by_content(rows).tolist() == [3, 0, 1, 2]
