"""Numbers that the as-of kernel gives to keys: equal exactly where all keys are equal."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from weft.joins.spark import asof_search


class Search:
    """What the numbering reads of a search."""

    def __init__(self, keys: int) -> None:
        self.left_keys = self.right_keys = tuple(range(keys))


@pytest.mark.parametrize("many", [1, 30, 1 << 24], ids=["numbered anew each time", "now and then", "never"])
@pytest.mark.parametrize("keys", [0, 1, 2, 4])
def test_numbers_are_equal_where_keys_are(monkeypatch: pytest.MonkeyPatch, keys: int, many: int) -> None:
    monkeypatch.setattr(asof_search, "_MANY", many)
    rng = random.Random(f"{keys}/{many}")
    texts = ("a", "b", "", None)
    sides = [[tuple(rng.choice(texts) for _ in range(keys)) for _ in range(n)] for n in (60, 40)]
    tables = [
        pa.table(
            [pa.array([row[i] for row in rows], pa.string()) for i in range(keys)],
            names=[f"k{i}" for i in range(keys)],
        )
        if keys
        else pa.table({"t": pa.array(range(len(rows)))})
        for rows in sides
    ]
    codes = asof_search._codes(Search(keys), *tables)  # type: ignore[arg-type]
    assert [len(c) for c in codes] == [60, 40]
    numbered: dict[int, set[tuple[str | None, ...]]] = {}
    for rows, numbers in zip(sides, codes, strict=True):
        for row, number in zip(rows, numbers.tolist(), strict=True):
            numbered.setdefault(number, set()).add(row)
    assert all(len(rows) == 1 for rows in numbered.values())
    assert len(numbered) == len({row for rows in sides for row in rows})


def test_keys_whose_numbers_multiply_past_64_bits_stay_apart() -> None:
    distinct = (1 << 16) - 1  # four more keys of as many values, and the number of the first would be shifted out
    first = pa.array([0] * distinct + [1] * distinct)
    others = pa.array([*range(distinct), *range(distinct)])
    side = pa.table([first, *[others] * 4], names=[f"k{i}" for i in range(5)])
    left, right = asof_search._codes(Search(5), side, side)  # type: ignore[arg-type]
    assert left.tolist() == right.tolist()
    assert len(set(left.tolist())) == 2 * distinct
    assert int(left.min()) >= 0
    assert int(left.max()) < 1 << 31  # which leaves a time its room in 64 bits


def test_a_key_of_many_values_after_one_of_few_keeps_rows_apart() -> None:
    rows = [(few, many) for few in range(3) for many in range(50)]
    side = pa.table([pa.array([row[i] for row in rows]) for i in range(2)], names=["few", "many"])
    left, right = asof_search._codes(Search(2), side, side)  # type: ignore[arg-type]
    assert left.tolist() == right.tolist()
    assert len(set(left.tolist())) == len(rows)
