"""Conditions on the order pair of an as-of join that become part of the match."""

from __future__ import annotations

from typing import Any

import pytest

from weft.core.types import Schema
from weft.joins.resolve.join import resolve_join
from weft.joins.resolve.predicates import fold_order_conditions
from weft.joins.resolve.resolved import AsOf, ResolvedJoin
from weft.joins.spec import AsofOrder, AsofSpec, ExpressionPredicate

TRADES = Schema.of(symbol="string", ts="timestamp", qty="long")
QUOTES = Schema.of(symbol="string", at="timestamp", bid="double")
SECOND = 1_000_000


def fold(condition: str, **options: Any) -> tuple[AsOf, ResolvedJoin]:
    """Return the match of a join with a condition after folding, and the join."""
    spec = AsofSpec(
        [("symbol", "symbol")],
        order=AsofOrder("ts", "at"),
        predicates=[ExpressionPredicate(condition)],
        **options,
    )
    join = fold_order_conditions(resolve_join(spec, TRADES, QUOTES))
    assert isinstance(join.match, AsOf)
    return join.match, join


@pytest.mark.parametrize(
    ("direction", "condition", "tolerance", "expected"),
    [
        ("backward", "left.ts <= right.at + INTERVAL '3s'", None, 3 * SECOND),
        ("backward", "left.ts <= right.at + INTERVAL '3s'", "5s", 3 * SECOND),
        ("backward", "left.ts <= right.at + INTERVAL '3s'", "2s", 2 * SECOND),
        ("forward", "left.ts >= right.at + INTERVAL '-3s'", "5s", 3 * SECOND),
        ("forward", "left.ts >= right.at + INTERVAL '-3s'", "2s", 2 * SECOND),
    ],
)
def test_of_a_tolerance_and_a_distance_the_smaller_one_counts(
    direction: Any, condition: str, tolerance: Any, expected: int
) -> None:
    match, join = fold(condition, direction=direction, tolerance=tolerance)
    assert (match.direction, match.tolerance) == (direction, expected)
    assert join.conditions == ()


@pytest.mark.parametrize(
    ("condition", "allow_exact", "expected"),
    [
        ("left.ts >= right.at", True, ("backward", True)),
        ("left.ts > right.at", True, ("backward", False)),
        ("right.at <= left.ts", False, ("backward", False)),
        ("left.ts <= right.at", True, ("forward", True)),
        ("left.ts <= right.at", False, ("forward", False)),
        ("right.at > left.ts", True, ("forward", False)),
    ],
)
def test_a_comparison_of_the_times_gives_a_nearest_join_its_direction(
    condition: str, *, allow_exact: bool, expected: tuple[str, bool]
) -> None:
    match, join = fold(condition, direction="nearest", tolerance="unbounded", allow_exact_matches=allow_exact)
    assert (match.direction, match.allow_exact) == expected
    assert join.conditions == ()


@pytest.mark.parametrize(
    ("direction", "condition"),
    [
        ("forward", "left.ts >= right.at"),
        ("backward", "left.ts < right.at + INTERVAL '3s'"),
        ("nearest", "left.ts <= right.at + INTERVAL '3s'"),
        ("backward", "left.ts >= right.at + INTERVAL '3s'"),
    ],
)
def test_what_the_match_cannot_say_stays_a_condition(direction: Any, condition: str) -> None:
    match, join = fold(condition, direction=direction, tolerance="unbounded")
    assert (match.direction, match.tolerance, match.allow_exact) == (direction, None, True)
    assert len(join.conditions) == 1
