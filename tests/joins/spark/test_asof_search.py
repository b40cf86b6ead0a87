"""The as-of search on Arrow tables, without Spark, and how it travels to workers."""

from __future__ import annotations

import datetime as dt
import math
import random
import subprocess
import sys
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from weft.core.types import LONG, Schema
from weft.joins.resolve.resolved import AsOf, OutputColumn, ResolvedJoin, ResolvedKey
from weft.joins.spark.asof_search import rank_values
from weft.joins.spark.sides import numbers_by_partition, spark_hash
from weft.testing import assert_rows_equal, reference_join

MATCH = AsOf(
    left=1,
    right=1,
    direction="backward",
    allow_exact=True,
    tolerance=None,
    nearest_tie="backward",
    tie_break=(),
)
LEFT, RIGHT = Schema.of(k="long", t="long"), Schema.of(k="long", u="long", v="long")
OUTPUT = (
    OutputColumn(name="k", dtype=LONG, nullable=True, source="left", left=0),
    OutputColumn(name="t", dtype=LONG, nullable=True, source="left", left=1),
    OutputColumn(name="u", dtype=LONG, nullable=True, source="right", right=1),
    OutputColumn(name="v", dtype=LONG, nullable=True, source="right", right=2),
)
JOIN = ResolvedJoin(
    how="left",
    left=LEFT,
    right=RIGHT,
    keys=(ResolvedKey(left=0, right=0, dtype=LONG, origin="spec"),),
    match=MATCH,
    output=OUTPUT,
)


def search_of(match: AsOf) -> Any:
    from weft.joins.spark.asof_result import Search

    return Search(
        left_keys=(0,),
        right_keys=(0,),
        left_time=1,
        right_time=1,
        usable=2,
        nulls_equal=False,
        ties=(2,),
        skip_nulls=(),
        backward=match.direction in ("backward", "nearest"),
        forward=match.direction in ("forward", "nearest"),
        allow_exact=match.allow_exact,
        tolerance=None if match.tolerance is None else int(match.tolerance),
        tie_backward=match.nearest_tie == "backward",
        keep_unmatched=True,
        left_out=(0, 1),
        right_out=(1, 2),
        names=("k", "t", "u", "v", "here", "folded"),
        most=1 << 30,
        whole=1 << 30,
        piece=1 << 30,
    )


@pytest.mark.parametrize("direction", ["backward", "forward", "nearest"])
@pytest.mark.parametrize("far", [1, 2**40, 2**61])
def test_the_search_agrees_with_the_reference_however_far_times_are_apart(direction: Any, far: int) -> None:
    from weft.joins.spark.asof_search import joined

    rng = random.Random(f"{direction}/{far}")
    for _ in range(60):
        left = [(rng.randrange(3), rng.randrange(-3, 4) * far) for _ in range(rng.randrange(6))]
        right = [
            (rng.randrange(3), rng.randrange(-3, 4) * far, rng.choice((None, 1, 2))) for _ in range(rng.randrange(9))
        ]
        match = replace(
            MATCH,
            direction=direction,
            allow_exact=rng.random() < 0.5,
            tolerance=rng.choice((None, 0, far, 2 * far)),
            nearest_tie=rng.choice(("backward", "forward")),
        )
        found = joined(search_of(match), table(left, usable=True), table(right))
        rows = [tuple(r.values())[:4] for r in found.to_pylist()]
        assert_rows_equal(rows, reference_join(replace(JOIN, match=match), left, right), ("k", "t", "u", "v"))


def table(rows: list[tuple[Any, ...]], *, usable: bool = False) -> pa.Table:
    width = 2 if usable else 3
    columns = [pa.array([r[i] for r in rows], pa.int64()) for i in range(width)]
    if usable:
        columns.append(pa.array([True] * len(rows), pa.bool_()))
    return pa.table(columns, names=[f"c{i}" for i in range(len(columns))])


def test_doubles_become_integers_that_sort_alike() -> None:
    from weft.joins.spark.asof_search import numbers

    values = [float("-inf"), -1.5, -0.0, 0.0, 1e-300, 2.0, float("inf"), float("nan")]
    found = list(numbers(pa.chunked_array([pa.array([None, *values])])))
    assert found == sorted(found)
    assert found[3] == found[4]
    assert len(set(found)) == len(found) - 1


@pytest.mark.parametrize("partitions", [1, 2, 7, 8, 64, 200])
def test_each_group_number_has_a_partition_of_its_own(partitions: int) -> None:
    assert [spark_hash(n) % partitions for n in numbers_by_partition(partitions)] == list(range(partitions))


def test_instants_are_returned_in_utc() -> None:
    from weft.joins.spark.asof_result import cast_to_utc

    berlin, utc = pa.timestamp("us", "Europe/Berlin"), pa.timestamp("us", "UTC")
    for here, there, value in (
        (berlin, utc, 7),
        (pa.list_(berlin), pa.list_(utc), [7]),
        (pa.struct([("a", berlin)]), pa.struct([("a", utc)]), {"a": 7}),
        (pa.map_(pa.int64(), berlin), pa.map_(pa.int64(), utc), [(1, 7)]),
        (pa.timestamp("us"), pa.timestamp("us"), 7),
    ):
        moved = cast_to_utc(pa.array([value, None], here))
        assert moved.type == there
        assert moved.equals(pa.array([value, None], there))


def test_a_group_too_large_to_hold_is_refused_with_advice() -> None:
    from weft.joins.spark.asof_search import join_group

    run = join_group(search_of(MATCH)._replace(most=40))
    small = run(table([(1, 5)], usable=True), table([]))
    assert small.num_rows == 1
    with pytest.raises(MemoryError, match=r"W0110.*refuses a group of 2 left.*slices"):
        run(table([(1, 5), (1, 6)], usable=True), table([(1, 4, 7)]))


def test_the_search_reaches_workers_that_do_not_have_weft() -> None:
    from pyspark import cloudpickle

    from weft.joins.spark import asof_result, asof_search
    from weft.joins.spark.workers import ship_by_value

    run = ship_by_value((asof_search, asof_result), asof_search.join_group(search_of(MATCH)))
    shipped = cloudpickle.dumps(run)  # type: ignore[no-untyped-call]  # pyspark ships it untyped
    program = (
        "import sys, importlib.abc\n"
        "class No(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] == 'weft': raise ImportError(name)\n"
        "sys.meta_path.insert(0, No())\n"
        "import pyarrow as pa\n"
        "from pyspark import cloudpickle\n"
        "run = cloudpickle.loads(sys.stdin.buffer.read())\n"
        "left = pa.table({'k': [1], 't': [5], 'u': [True]})\n"
        "right = pa.table({'k': [1, 1], 't': [4, 6], 'v': [7, 8]})\n"
        "print(run(left, right).to_pylist())\n"
    )
    reported = subprocess.run([sys.executable, "-c", program], input=shipped, capture_output=True, check=True)
    assert reported.stdout.decode().strip() == "[{'k': 1, 't': 5, 'u': 4, 'v': 7, 'here': True, 'folded': None}]"


def test_ties_are_settled_by_lists_and_structs_too() -> None:
    from weft.joins.spark.asof_search import joined

    kind = pa.list_(pa.struct([("x", pa.float64()), ("y", pa.string())]))
    values = [
        None,
        [],
        [None],
        [{"x": None, "y": "z"}],
        [{"x": 1.0, "y": "a"}],
        [{"x": float("nan"), "y": "a"}],
    ]
    left = table([(1, 5)], usable=True)
    for count in range(1, len(values) + 1):  # written in ascending order: the last of those there are wins
        some = values[:count]
        order = random.Random(count).sample(range(count), count)
        right = pa.table([[1] * count, [5] * count, pa.array([some[i] for i in order], kind)], ["k", "u", "v"])
        (row,) = joined(search_of(MATCH), left, right).to_pylist()
        assert repr(row["v"]) == repr(some[-1])


def test_a_left_row_that_cannot_match_gets_no_skipped_value_either() -> None:
    from weft.joins.spark.asof_search import joined

    left = pa.table({"k": [1, 1], "t": [5, 5], "usable": [True, False]})
    right = table([(1, 3, 7), (1, 4, None)])
    rows = joined(search_of(MATCH)._replace(skip_nulls=(2,), ties=()), left, right).to_pylist()
    assert [(r["u"], r["v"], r["here"]) for r in rows] == [(4, 7, True), (None, None, False)]


@pytest.mark.parametrize(("nulls_equal", "expected"), [(True, (4, 7)), (False, (None, None))])
def test_null_keys_match_only_where_nulls_are_equal(*, nulls_equal: bool, expected: Any) -> None:
    from weft.joins.spark.asof_search import joined

    search = search_of(MATCH)._replace(usable=None, nulls_equal=nulls_equal)
    left = pa.table({"k": pa.array([None], pa.int64()), "t": [5]})
    (row,) = joined(search, left, table([(None, 4, 7)])).to_pylist()
    assert (row["u"], row["v"]) == expected


def comparable(value: Any) -> tuple[Any, ...]:
    """Return something that compares as Spark compares arrays and structs: NULL first, NaN last."""
    if value is None:
        return (0,)
    if isinstance(value, list | dict):
        return (1, tuple(map(comparable, value.values() if isinstance(value, dict) else value)))
    if isinstance(value, float):
        return (1, math.isnan(value), 0.0 if math.isnan(value) else value + 0.0)
    return (1, value)


@pytest.mark.parametrize(
    ("kind", "leaves"),
    [
        (pa.float64(), (0.0, -0.0, 1.5, float("nan"), float("-inf"))),
        (pa.string(), ("", "a", "ab", "\U0001f600", "\uffff")),
        (pa.bool_(), (True, False)),
        (pa.decimal128(9, 2), (Decimal("1.00"), Decimal("-1.00"))),
        (pa.timestamp("us", "UTC"), (dt.datetime(2026, 1, 1, tzinfo=dt.UTC), dt.datetime(1960, 1, 1, tzinfo=dt.UTC))),
        (pa.struct([("x", pa.int8()), ("y", pa.binary())]), ({"x": 1, "y": b"a"}, {"x": None, "y": b""})),
        (pa.list_(pa.int16()), ([], [1], [1, None], [None, 1, 2, 3])),
    ],
)
def test_nested_values_are_ranked_as_their_python_values_compare(kind: Any, leaves: tuple[Any, ...]) -> None:
    rng = random.Random(str(kind))

    def made() -> Any:
        return rng.choice((None, *leaves))

    for shape in (pa.list_(kind), pa.struct([("a", kind), ("b", pa.list_(kind))])):
        for _ in range(30):
            lists = [[made() for _ in range(rng.randrange(6))] for _ in range(rng.randrange(20))]
            rows = lists if pa.types.is_list(shape) else [{"a": made(), "b": one} for one in lists]
            values = pa.array([rng.choice((row, row, row, None)) for row in rows], shape)
            keys = [comparable(value) for value in values.to_pylist()]
            for part in (slice(None), slice(3, None)):
                ranks = rank_values(values[part]).tolist()
                order = {key: rank for rank, key in enumerate(sorted(set(keys[part])))}
                found = {rank: n for n, rank in enumerate(sorted(set(ranks)))}
                assert [found[rank] for rank in ranks] == [order[key] for key in keys[part]]


def test_of_two_rows_of_one_time_the_one_known_later_is_taken() -> None:
    from weft.joins.spark.order import tie_slots

    join = replace(JOIN, right=Schema.of(k="long", u="long", v="long", known="long", w="long"))
    assert tie_slots(join, replace(MATCH, known=(1, 3))) == (("right", 3), ("right", 2), ("right", 4))
    assert tie_slots(join, replace(MATCH, known=(1, 3), tie_break=(4, 3)))[:2] == (("right", 3), ("right", 4))
