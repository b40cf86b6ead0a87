"""What the as-of search returns: bounded however many left rows share a right row, and the same rows when folded."""

from __future__ import annotations

import random
import tracemalloc
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from weft.joins import choose
from weft.joins.spark.asof_result import Search, measure_sizes
from weft.joins.spark.asof_search import joined

BIG = 1 << 40
LEFT = {"k": pa.string(), "t": pa.int64(), "a": pa.list_(pa.string())}
RIGHT = {
    "k": pa.string(),
    "u": pa.int64(),
    "b": pa.string(),
    "c": pa.struct([("x", pa.binary()), ("y", pa.int16())]),
}
PIECE = 16 * 1024**2
POOLS: list[Any] = []  # a pool must live as long as what was allocated from it
NAMES = ("k", "t", "a", "u", "b", "c", "here", "folded")


def search(**changed: Any) -> Search:
    return Search(
        left_keys=(0,),
        right_keys=(0,),
        left_time=1,
        right_time=1,
        usable=None,
        nulls_equal=False,
        ties=(),
        skip_nulls=(),
        backward=True,
        forward=False,
        allow_exact=True,
        tolerance=None,
        tie_backward=True,
        keep_unmatched=True,
        left_out=(0, 1, 2),
        right_out=(1, 2, 3),
        names=NAMES,
        most=BIG,
        whole=BIG,
        piece=BIG,
    )._replace(**changed)


def table(columns: dict[str, Any], rows: list[tuple[Any, ...]]) -> pa.Table:
    return pa.table([pa.array([r[i] for r in rows], t) for i, t in enumerate(columns.values())], list(columns))


def sides(rng: random.Random) -> tuple[pa.Table, pa.Table]:
    def key_and_time() -> tuple[Any, Any]:
        return rng.choice(("A", "A", "B", None)), rng.choice((None, *range(9)))

    left = [(*key_and_time(), rng.choice((None, [], ["p", None, "qq"]))) for _ in range(rng.randrange(40))]
    right = [
        (*key_and_time(), rng.choice((None, "", "x" * 300)), rng.choice((None, {"x": b"12345", "y": 3})))
        for _ in range(rng.randrange(8))
    ]
    return table(LEFT, left), table(RIGHT, [r for r in right if r[0] is not None and r[1] is not None])


def unfolded(result: pa.Table) -> Counter[str]:
    """Return the rows as Spark unfolds them."""
    rows: Counter[str] = Counter()
    for row in result.to_pylist():
        many = row.pop("folded")
        for one in [None] if many is None else many:
            whole = row if one is None else row | dict(zip(("k", "t", "a"), one.values(), strict=True))
            rows[repr(whole)] += 1
    return rows


@pytest.mark.parametrize("piece", [1, 100, 600])
@pytest.mark.parametrize("skipped", [(), (2,), (2, 3)])
def test_folded_rows_and_rows_in_pieces_are_the_plain_rows(piece: int, skipped: tuple[int, ...]) -> None:
    rng = random.Random(f"{piece}/{skipped}")
    seen = set()
    for _ in range(40):
        left, right = sides(rng)
        asked = search(skip_nulls=skipped, keep_unmatched=rng.random() < 0.7, forward=rng.random() < 0.3)
        plain = joined(asked, left, right)
        assert plain.column("folded").null_count == len(plain)
        for whole in (BIG, piece):
            other = joined(asked._replace(whole=whole, piece=piece), left, right)
            assert other.schema == plain.schema
            assert unfolded(other) == unfolded(plain)
            seen.add(other.column("folded").null_count == len(other))
    assert seen == {True, False}


def test_rows_with_one_match_and_other_values_that_skip_nulls_are_folded_apart() -> None:
    left = table(LEFT, [("A", 4 + n % 2 * 2, None) for n in range(50)])
    right = table(RIGHT, [("A", 1, "low", None), ("A", 5, None, None), ("A", 9, "high", None)])
    asked = search(skip_nulls=(2,), forward=True)
    folded = joined(asked._replace(whole=600, piece=600), left, right)
    assert folded.column("folded").null_count == 0
    assert unfolded(folded) == unfolded(joined(asked, left, right))
    assert set(folded.column("b").to_pylist()) == {"low", "high"}


def test_rows_without_a_match_are_not_counted_with_the_values_of_any_right_row() -> None:
    left = table(LEFT, [("Z", n, None) for n in range(50)])
    right = table(RIGHT, [("A", 1, "x" * 300, None)])
    plain = joined(search(whole=600, piece=600), left, right)
    assert plain.column("folded").null_count == len(plain) == 50


def arrived(columns: dict[str, Any]) -> pa.Table:
    """Return a table in batches of 10,000 rows, as Spark sends it."""
    whole = pa.table(columns)
    parts = [whole.slice(a, 10_000) for a in range(0, len(whole), 10_000)]
    return pa.Table.from_batches(
        [pa.record_batch([pa.concat_arrays(c.chunks) for c in p.columns], NAMES[:4]) for p in parts]
    )


def repeated(value: str, count: int) -> Any:
    return pa.array([value]).take(pa.array(np.zeros(count, np.int64)))


def check_memory(asked: Search, left: pa.Table, right: pa.Table, elements: int = 0) -> pa.Table:
    """Join and compare the peak with what explain_join and the documents state for a task."""
    held = left.nbytes + right.nbytes
    pool, counted = pa.default_memory_pool(), pa.proxy_memory_pool(pa.system_memory_pool())
    POOLS.append(counted)
    pa.set_memory_pool(counted)
    tracemalloc.start()
    try:
        result = joined(asked, left, right)
        searched = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(pool)
    assert "three times its share of both sides, 100 bytes a row and 32 MB" in choose._COSTS["kernel"]
    assert held + counted.max_memory() < 3 * held + 2 * PIECE
    assert searched < 100 * (len(left) + len(right) + elements)
    return result


@pytest.mark.parametrize("count", [1_200_000, 60_000, 8_000])
def test_a_wide_right_row_that_all_left_rows_share_is_sent_few_times(count: int) -> None:
    width = 2000
    left = arrived({"k": repeated("A", count), "t": np.arange(count), "a": np.arange(count), "more": np.arange(count)})
    right = arrived({"k": ["A"], "u": [0], "b": ["x" * width], "c": pa.array([7], pa.int64())})
    result = check_memory(search(whole=1 << 27, piece=PIECE), left, right)
    folded = result.column("folded").combine_chunks()
    assert set(result.column("b").to_pylist()) == {"x" * width}
    assert max(batch.nbytes for batch in result.to_batches()) < 2 * PIECE
    if count == 8_000:  # 16 MB as plain rows
        assert folded.null_count == result.num_rows == count
        return
    assert folded.null_count == 0
    assert len(folded.flatten()) == count
    assert result.num_rows < 20  # plain rows would have up to 2.4 GB of the text


def test_plain_rows_take_no_more_memory_than_their_right_values() -> None:
    count, rights = 1_000_000, 300_000
    left = arrived({"k": repeated("A", count), "t": np.arange(count), "a": np.arange(count), "more": np.arange(count)})
    right = arrived(
        {"k": repeated("A", rights), "u": np.arange(rights) * 3, "b": np.arange(rights), "c": np.arange(rights)}
    )
    result = check_memory(search(whole=1 << 27, piece=PIECE), left, right)
    assert result.num_rows == count
    assert result.column("folded").null_count == count


@pytest.mark.parametrize("long", [1, 10, 1000])
def test_nested_values_that_break_ties_take_little_memory(long: int) -> None:
    count = 1_000_000 // long
    rng = np.random.default_rng(1)
    each = pa.StructArray.from_arrays(
        [pa.array(rng.integers(0, 3, count * long)), repeated("s", count * long)], names=["x", "y"]
    )
    lists = pa.ListArray.from_arrays(pa.array(np.arange(0, count * long + 1, long), pa.int32()), each)
    left = arrived({"k": repeated("A", 100), "t": np.arange(100), "a": np.arange(100), "more": np.arange(100)})
    right = arrived({"k": repeated("A", count), "u": np.arange(count) // 20, "b": np.arange(count), "c": lists})
    check_memory(search(whole=1 << 27, piece=PIECE, ties=(3,)), left, right, elements=count * long)


def test_plain_rows_are_cut_by_bytes() -> None:
    left = table(LEFT, [("A", n, ["p"] * (n % 50)) for n in range(2000)])
    right = table(RIGHT, [("A", n * 10, "x" * n, None) for n in range(200)])
    result = joined(search(piece=20_000), left, right)
    assert result.num_rows == 2000
    pieces = [batch.nbytes for batch in result.to_batches()]
    assert len(pieces) > 10
    assert max(pieces) < 2 * 20_000


def test_a_right_row_larger_than_a_piece_is_repeated_for_no_more_bytes_than_its_left_rows() -> None:
    left = table(LEFT, [("A", n, None) for n in range(4000)])
    right = table(RIGHT, [("A", 0, "x" * 100_000, None)])
    result = joined(search(whole=1 << 20, piece=1000), left, right)
    assert unfolded(result).total() == 4000
    assert 1 < result.num_rows < 10


@pytest.mark.parametrize(
    ("values", "kind", "sizes"),
    [
        (["a", None, "bcd"], pa.string(), [5, 4, 7]),
        (["a", None, "bcd"], pa.large_string(), [5, 4, 7]),
        ([1, None], pa.int64(), [8, 8]),
        ([True, None], pa.bool_(), [1, 1]),
        ([None, None], pa.null(), [0, 0]),
        ([["ab"], None, [], ["a", "b"]], pa.list_(pa.string()), [10, 4, 4, 14]),
        ([{"x": "ab", "y": 1}, None], pa.struct([("x", pa.string()), ("y", pa.int32())]), [10, 8]),
        ([[("k", 1)], None], pa.map_(pa.string(), pa.int64()), [17, 4]),
    ],
)
def test_sizes_of_values(values: list[Any], kind: Any, sizes: list[int]) -> None:
    array = pa.array(values, kind)
    assert measure_sizes(array).tolist() == sizes
    assert measure_sizes(array.slice(1)).tolist() == sizes[1:]
    assert measure_sizes(pa.chunked_array([array, array.slice(1)])).tolist() == sizes + sizes[1:]
    assert measure_sizes(pa.chunked_array([], kind)).tolist() == []
