"""Rows that repeat: however wide they are and however often they match, output comes in pieces of bounded size."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kernel_runs import Kernel, arrivals, interval
from kernel_runs import joined as joined_by
from weft.streams.kernel import keys as module
from weft.streams.kernel.gate import Arrivals
from weft.streams.kernel.keys import number_keys, row_widths
from weft.streams.kernel.redrive import find_corrections
from weft.streams.kernel.segments import Segment
from weft.streams.kernel.spec import FOREVER, NEVER, Clock, JoinTask, Reach, Residual
from weft.streams.kernel.transition import check_size, empty_state, step

TEXTS = pa.schema([("k0", pa.string()), ("v", pa.string())])
KINDS: list[tuple[Any, list[Any]]] = [
    (pa.int32(), [1, None, 3, 4]),
    (pa.bool_(), [True, None, False, True]),
    (pa.decimal128(10, 2), [None] * 4),
    (pa.string(), ["", "abc", None, "x" * 100]),
    (pa.binary(), [b"", b"abc", None, b"x" * 9]),
    (pa.large_string(), ["", "abc", None, "x" * 100]),
    (pa.list_(pa.string()), [["a", "bcd"], [], None, ["x" * 50]]),
    (pa.list_(pa.list_(pa.int64())), [[[1], [2, 3]], [], None, [[]]]),
    (pa.struct([("a", pa.string()), ("b", pa.int64())]), [{"a": "x", "b": 1}, None, {"a": None, "b": 2}, {"a": "y" * 30, "b": 3}]),
    (pa.map_(pa.string(), pa.string()), [[("k", "v")], [], None, [("long" * 9, "w"), ("b", None)]]),
    (pa.null(), [None] * 4),
]  # fmt: skip


def bytes_of(value: Any, kind: Any) -> int:
    """Return the bytes of one value, the slow and obvious way."""
    if pa.types.is_struct(kind):
        return sum(bytes_of((value or {}).get(field.name), field.type) for field in kind)
    if pa.types.is_map(kind):
        return 4 + sum(bytes_of(k, kind.key_type) + bytes_of(v, kind.item_type) for k, v in value or ())
    if pa.types.is_list(kind):
        return 4 + sum(bytes_of(one, kind.value_type) for one in value or ())
    size = module.fixed_width(kind)
    return 4 + len(value or "") if size is None else size


@pytest.mark.parametrize(
    ("kind", "values"), KINDS, ids=lambda value: str(value) if isinstance(value, pa.DataType) else ""
)
@pytest.mark.parametrize("skipped", [0, 1])
def test_a_row_is_as_wide_as_its_values(kind: Any, values: list[Any], skipped: int) -> None:
    column = pa.array(values, kind)[skipped:]
    chosen = np.array([random.Random(1).randrange(len(column)) for _ in range(9)])
    each = row_widths([column, pa.chunked_array([column])], chosen)
    given = each.fixed + (np.zeros(9, dtype=np.int64) if each.each is None else each.each)
    assert given.tolist() == [2 * bytes_of(values[skipped + n], kind) for n in chosen.tolist()]


def texts(rows: list[tuple[str, int, str]]) -> Arrivals:
    """Return rows (key, time, value) as arrivals; keys are numbered, not hashed, for they are long."""
    numbers: dict[str, int] = {}
    return Arrivals(
        hashes=pa.array([numbers.setdefault(key, len(numbers)) for key, _, _ in rows], pa.int64()),
        times=pa.array([time for _, time, _ in rows], pa.int64()),
        rows=pa.table([[r[0] for r in rows], [r[2] for r in rows]], schema=TEXTS),
    )


def joined(task: JoinTask, left: Arrivals, right: Arrivals) -> Any:
    clock = Clock(left=NEVER, right=NEVER)
    return step(task, empty_state(task, TEXTS, TEXTS), left, right, clock, batch=0, watermark=NEVER, wall_clock=0).out


@pytest.mark.parametrize("wide", ["left", "right"])
def test_one_wide_row_among_narrow_ones_makes_small_batches(monkeypatch: pytest.MonkeyPatch, wide: str) -> None:
    """The rows of the wide side are narrow on average: their average says nothing of the one that repeats."""
    monkeypatch.setattr(module, "MAX_PIECE_BYTES", 100_000)
    many = texts([("a", n, "") for n in range(1000)])
    one = texts([("a", 500, "w" * 2000), *(("b", n, "") for n in range(5000))])
    sides = (one, many) if wide == "left" else (many, one)
    out = joined(interval(-1000, 1000), *sides)
    sizes = [(batch.num_rows, batch.nbytes) for batch in out]
    assert sum(rows for rows, _ in sizes) == 1000
    assert max(size for _, size in sizes) < 110_000


def test_long_keys_are_compared_piece_by_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PIECE_BYTES", 100_000)
    seen: list[int] = []
    real = Segment.child

    def watched(self: Segment, name: str, places: Any = None) -> Any:
        column = real(self, name, places)
        seen.append(column.nbytes)
        return column

    monkeypatch.setattr(Segment, "child", watched)
    key = "k" * 2000
    condition = Residual(program=("<>", ("ref", "left", "v"), ("ref", "right", "v")))
    task = interval(-1000, 1000, residual=condition)
    out = joined(task, texts([(key, n, "x") for n in range(1000)]), texts([(key, 5, "w" * 500)]))
    assert sum(batch.num_rows for batch in out) == 1000
    assert max(seen) < 110_000


def test_output_of_many_gigabytes_overflows_no_column() -> None:
    """70,000 rows meet one of 40 kB: 2.8 GB, more than one Arrow column of strings holds."""
    count = 70_000
    left = texts([("a", 0, "")] * count)
    right = texts([("a", 0, "w" * 40_000), *(("b", n, "") for n in range(5000))])
    rows, widest = 0, 0
    for batch in joined(interval(0, 0), left, right):
        rows, widest = rows + batch.num_rows, max(widest, batch.nbytes)
    assert rows == count
    assert widest < 1.1 * module.MAX_PIECE_BYTES


def test_a_million_candidates_with_long_keys_overflow_no_column() -> None:
    """1,200 x 1,000 rows of one key of 2 kB: each candidate repeats the key of both sides."""
    condition = Residual(program=("=", ("ref", "left", "v"), ("ref", "right", "v")))
    task = interval(0, 0, residual=condition)
    left = texts([("k" * 2000, 0, str(n)) for n in range(1200)])
    right = texts([("k" * 2000, 0, str(n + 1199)) for n in range(1000)])
    assert sum(batch.num_rows for batch in joined(task, left, right)) == 1


def sessions(residual: Residual, *, final: bool) -> JoinTask:
    return joined_by(Reach(kind="session", gap=10), emit="final" if final else "changes", residual=residual)


@pytest.mark.parametrize("final", [False, True], ids=["changes", "final"])
def test_pairs_of_a_session_are_compared_piece_by_piece(monkeypatch: pytest.MonkeyPatch, *, final: bool) -> None:
    monkeypatch.setattr(module, "MAX_PIECE_BYTES", 100_000)
    seen: list[int] = []
    real = Segment.child

    def watched(self: Segment, name: str, places: Any = None) -> Any:
        column = real(self, name, places)
        if name == "v":
            seen.append(column.nbytes)
        return column

    monkeypatch.setattr(Segment, "child", watched)
    condition = Residual(program=("<>", ("ref", "left", "v"), ("ref", "right", "v")))
    left, right = texts([("a", n % 10, "x") for n in range(300)]), texts([("a", 5, f"{n:0500}") for n in range(50)])
    task = sessions(condition, final=final)
    state, none, rows = empty_state(task, TEXTS, TEXTS), texts([]), 0
    for batch, (clock, sides) in enumerate(((NEVER, (left, right)), (FOREVER, (none, none)))):
        both = Clock(left=clock, right=clock)
        done = step(task, state, *sides, both, batch=batch, watermark=clock, wall_clock=0)
        rows, state = rows + sum(out.num_rows for out in done.out), done.state
    assert rows == 300 * 50
    assert max(seen) < 110_000


def test_rows_of_a_session_reach_a_condition_in_pieces() -> None:
    """A condition that is evaluated row by row gets as many rows at once as in every other join."""
    seen: list[int] = []

    def unequal(left: Any, right: Any) -> Any:
        seen.append(len(left))
        return [a["v"] != b["v"] for a, b in zip(left, right, strict=True)]

    task = sessions(Residual(rows=unequal), final=False)
    some = texts([("a", n, str(n)) for n in range(400)])
    assert sum(batch.num_rows for batch in joined(task, some, some)) == 400 * 400 - 400
    assert max(seen) <= module.MAX_PIECE_ROWS


def test_a_million_pairs_of_a_session_overflow_no_column() -> None:
    """1,200 x 1,000 rows of one session with a string of 2 kB: each pair repeats the strings of both sides."""
    task = sessions(Residual(program=("=", ("ref", "left", "v"), ("ref", "right", "v"))), final=False)
    left = texts([("a", 0, f"{n:02000}") for n in range(1200)])
    right = texts([("a", 0, f"{n + 1199:02000}") for n in range(1000)])
    assert sum(batch.num_rows for batch in joined(task, left, right)) == 1


def test_late_rows_with_long_keys_are_distinguished_without_repeating_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MAX_PIECE_BYTES", 100_000)
    kernel = Kernel(interval(-10, 10, left={"retention": 1000}, right={"retention": 1000}))
    kernel.feed([("k" * 2000, 5, 1), *((f"x{n}", 5, n) for n in range(500))])
    rows = pa.table([["k" * 2000], [9]], schema=kernel.state.left.schema)
    done = find_corrections(kernel.task, kernel.state, "right", rows, np.array([6]), {})
    assert [row["right"]["v"] for batch in done.plus for row in batch.to_pylist()] == [9]
    column = pa.array(["k" * 2000] * 3)
    none = np.zeros(3, dtype=np.int64)
    part = Segment(hashes=none, times=none, rows=pa.table([column], names=["k0"]), batch=0)
    assert number_keys(("k0",), [(part, np.arange(3))]).tolist() == [0, 0, 0]


def test_the_text_of_rows_that_cannot_be_read_counts_too() -> None:
    task = interval(0, 10)
    some = arrivals([("a", 1)], raw=["x" * 1000])
    state = empty_state(task, some.rows.schema, some.rows.schema)
    check_size(state, some, arrivals([]), tasks=2, most=2000)
    with pytest.raises(Exception, match="W2211"):
        check_size(state, some, arrivals([]), tasks=2, most=1000)
