"""A reversed spec means the same pairs the other way round, by the reference engine."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from typing import Any

import pytest

from weft.core.types import Schema
from weft.joins.resolve.join import resolve_join
from weft.joins.spec import (
    AsofOrder,
    ColumnPredicate,
    ExpressionPredicate,
    IntervalSpec,
    JoinProjection,
    JoinSpec,
    WindowSpec,
)
from weft.testing import matching_pairs, reference_join

LEFT = Schema.of(k="long", t="timestamp", d="date", n="long", s="string")
RIGHT = Schema.of(k="long", t="timestamp", d="date", n="decimal(10,1)", s="string")
START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
ALL = JoinProjection(suffixes=("_a", "_b"), right_keys="keep")
TIMES = AsofOrder("t", "t")
SPECS: dict[str, JoinSpec] = {
    "keys": JoinSpec([("k", "k"), ("s", "s")]),
    "null-safe keys": JoinSpec([("k", "k")], nulls_equal=True),
    "two partners": JoinSpec([("k", "k"), ("k", "n")]),
    "comparison": JoinSpec([("k", "k")], [ColumnPredicate("n", "<", "n")]),
    "not equal": JoinSpec([], [ColumnPredicate("s", "!=", "s")]),
    "time offset": JoinSpec([], [ColumnPredicate("t", "<=", "t", "90 minutes")]),
    "negative offset": JoinSpec([], [ColumnPredicate("t", ">", "t", "-1 hour")]),
    "timedelta offset": JoinSpec([], [ColumnPredicate("t", "=", "t", dt.timedelta(hours=1))]),
    "date offset": JoinSpec([], [ColumnPredicate("d", ">=", "d", "1 day")]),
    "numeric offset": JoinSpec([], [ColumnPredicate("n", "<", "n", Decimal("1.5"))]),
    "numeric text": JoinSpec([], [ColumnPredicate("n", ">=", "n", "-2")]),
    "fragment": JoinSpec([], [ExpressionPredicate("left.n > right.n OR left.s = right.s AND right.k IS NULL")]),
    "fragment with parameters": JoinSpec(
        [("k", "k")], [ExpressionPredicate("left.n + ? >= right.n", [Decimal("0.5")])]
    ),
    "interval": IntervalSpec([("k", "k")], order=TIMES, lower="-1 h", upper="2 h"),
    "half-open interval": IntervalSpec(order=TIMES, lower=None, upper="-30 minutes"),
    "numeric interval": IntervalSpec(order=AsofOrder("n", "n"), lower=Decimal("-0.5"), upper="1"),
    "tumbling": WindowSpec([("k", "k")], order=TIMES, window="tumbling", size="2 h"),
    "sliding": WindowSpec(order=TIMES, window="sliding", size="2 h", slide="1 h", per_window=True),
    "session": WindowSpec([("k", "k")], order=TIMES, window="session", gap="45 minutes"),
}


def rows(rng: random.Random, number: Any) -> list[tuple[Any, ...]]:
    def maybe(value: Any) -> Any:
        return None if rng.random() < 0.15 else value

    return [
        (
            maybe(rng.randrange(3)),
            maybe(START + dt.timedelta(minutes=30 * rng.randrange(12))),
            maybe(START.date() + dt.timedelta(days=rng.randrange(3))),
            maybe(number(rng.randrange(4))),
            maybe(rng.choice("xy")),
        )
        for _ in range(rng.randrange(9))
    ]


@pytest.mark.parametrize("name", SPECS)
def test_a_reversed_spec_gives_the_swapped_pairs(name: str) -> None:
    spec = SPECS[name]
    there = resolve_join(spec, LEFT, RIGHT, project=ALL)
    back = resolve_join(spec.reversed(), RIGHT, LEFT, project=ALL)
    again = resolve_join(spec.reversed().reversed(), LEFT, RIGHT, project=ALL)
    found = 0
    for seed in range(40):
        rng = random.Random(f"{name} {seed}")
        left, right = rows(rng, int), rows(rng, Decimal)
        pairs = matching_pairs(there, left, right)
        found += len(pairs)
        assert sorted(pairs) == sorted((i, j) for j, i in matching_pairs(back, right, left)), f"seed {seed}"
        assert pairs == matching_pairs(again, left, right), f"seed {seed}"
    assert found > 0, "no data set had a match, so nothing was compared"


@pytest.mark.parametrize(
    ("how", "turned"), [("left", "right"), ("right", "left"), ("full", "full"), ("inner", "inner")]
)
def test_a_reversed_outer_interval_join_keeps_the_same_rows(how: Any, turned: str) -> None:
    spec = IntervalSpec([("k", "k")], order=TIMES, lower="-1 h", upper="2 h", how=how)
    there, back = (
        resolve_join(spec, LEFT, RIGHT, project=ALL),
        resolve_join(spec.reversed(), RIGHT, LEFT, project=ALL),
    )
    assert back.how == turned
    width = len(LEFT)
    for seed in range(40):
        rng = random.Random(f"{how} {seed}")
        left, right = rows(rng, int), rows(rng, Decimal)
        swapped = [row[width:] + row[:width] for row in reference_join(back, right, left)]
        assert sorted(map(repr, swapped)) == sorted(map(repr, reference_join(there, left, right))), f"seed {seed}"


def test_the_promises_of_a_spec_turn_with_it() -> None:
    spec = JoinSpec([("k", "k")], relationship="m:1", unmatched="left")
    there, back = (
        resolve_join(spec, LEFT, RIGHT, project=ALL),
        resolve_join(spec.reversed(), RIGHT, LEFT, project=ALL),
    )
    assert (there.relationship, there.unmatched) == ("m:1", ("left",))
    assert (back.relationship, back.unmatched) == ("1:m", ("right",))
