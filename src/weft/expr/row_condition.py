"""A condition on pairs of rows, asked pair by pair: exact for every expression, and slow."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from weft.expr.evaluate import evaluate
from weft.expr.typed import Typed


class RowCondition:
    """Answers for each pair whether a condition is true; `places` say which side and child a column is.

    >>> from weft.core.types import Schema
    >>> from weft.expr import TableScope, check, parse
    >>> tables = TableScope({"a": Schema.of(x="long"), "b": Schema.of(y="long")})
    >>> same = check(parse("a.x % 10 = b.y % 10"), tables)
    >>> asked = RowCondition(same, {("a", 0): ("left", "x"), ("b", 0): ("right", "y")})
    >>> asked([{"x": 12}, {"x": 12}, {"x": 12}], [{"y": 2}, {"y": 3}, {"y": None}])
    [True, False, False]
    """

    __slots__ = ("places", "typed")

    def __init__(self, typed: Typed, places: Mapping[Hashable, tuple[str, str]]) -> None:
        self.typed = typed
        self.places = dict(places)

    def __call__(self, left: Sequence[dict[str, Any]], right: Sequence[dict[str, Any]]) -> list[bool]:
        """Return whether the condition is true of each pair; NULL is not."""
        return [self._is_true(a, b) for a, b in zip(left, right, strict=True)]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RowCondition) and (self.typed, self.places) == (other.typed, other.places)

    def __hash__(self) -> int:
        return hash(self.typed)

    def _is_true(self, left: dict[str, Any], right: dict[str, Any]) -> bool:
        def lookup(slot: Hashable) -> object:
            side, child = self.places[slot]
            return (left if side == "left" else right)[child]

        return evaluate(self.typed, lookup) is True
