"""Random joins of every flavour, packed so that one Spark job runs many examples.

``random_join(rng)`` gives one pair of schemas and one spec with MANY data sets.  Each data set has a
number, which is a column of both sides and an extra equality key, so data sets never meet and the
whole pack is one join.  ``expected(join, pack)`` runs the reference engine on each data set alone.

Everything follows from the seed, which ``str(pack)`` prints; the environment variable
``WEFT_EXAMPLES`` asks for more packs than a test runs by itself.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from random_columns import (
    KEY_TYPES,
    NAMES,
    NUMBER_TYPES,
    TIME_TYPES,
    RandomColumn,
    columns,
    order_values,
)
from weft.core.names import canonical_name, quote
from weft.core.types import LONG, Field, Schema, common_type
from weft.joins.resolve.resolved import ResolvedJoin
from weft.testing import Table, reference_join

Flavour = Literal["join", "asof", "interval", "window", "cross"]
FLAVOURS: tuple[Flavour, ...] = ("join", "asof", "interval", "window")
CASE = "__case__"
_OPERATORS = ("=", "!=", "<", "<=", ">", ">=")
_ALONG = {
    "backward": (">", ">=", "!="),
    "forward": ("<", "<=", "!="),
    "nearest": ("<", "<=", ">", ">=", "!="),
}
_HOWS = ("inner", "left", "right", "full", "semi", "anti")
_SUFFIXES = (["", "_right"], ["_l", "_r"], [".l", " r"])


@dataclass(frozen=True)
class RandomJoin:
    """Two tables that hold many data sets, and the spec that joins each of them."""

    seed: int | None
    flavour: Flavour
    left: Table
    right: Table
    spec: dict[str, Any]
    how: str
    project: dict[str, Any]
    self_join: bool
    datasets: int

    def __str__(self) -> str:
        columns = " | ".join(map(str, self.left.schema)), " | ".join(map(str, self.right.schema))
        return (
            f"seed={self.seed} {self.how} {self.spec}\nproject={self.project}\nleft:  {columns[0]}\nright: {columns[1]}"
        )

    def only(self, number: int) -> RandomJoin:
        """Return the pack with one of its data sets, to look at a failure."""
        left, right = (t.with_rows(r for r in t.rows if r[0] == number) for t in (self.left, self.right))
        return replace(self, left=left, right=right, datasets=1)


def seeds(count: int) -> list[int]:
    """Return the seeds a test runs: `count` of them, times ``WEFT_EXAMPLES``."""
    return list(range(count * int(os.environ.get("WEFT_EXAMPLES", "1"))))


def seeded_join(seed: int, flavour: Flavour | None = None, datasets: int = 100) -> RandomJoin:
    """Return the pack of a seed."""
    return replace(random_join(random.Random(f"{seed}/{flavour}"), flavour, datasets), seed=seed)


def random_join(rng: random.Random, flavour: Flavour | None = None, datasets: int = 100) -> RandomJoin:
    """Return a random pack of one flavour, or of any."""
    chosen = rng.choice(FLAVOURS) if flavour is None else flavour
    sides = _Sides(rng, chosen)
    spec, how = _SPECS[chosen](rng, sides)
    # All pairs of a cross join meet, so its pack is one data set.
    numbers = range(1 if chosen == "cross" else datasets)
    left = _table(rng, sides.left, numbers, "left")
    right = left if sides.is_self else _table(rng, sides.right, numbers, "right")
    return RandomJoin(
        seed=None,
        flavour=chosen,
        left=left,
        right=right,
        spec=spec,
        how=how,
        project=_projection(rng, how),
        self_join=sides.is_self,
        datasets=len(numbers),
    )


def expected(join: ResolvedJoin, pack: RandomJoin) -> list[tuple[Any, ...]]:
    """Return the rows of all data sets, each joined alone by the reference engine."""
    rows: list[tuple[Any, ...]] = []
    for number in range(pack.datasets):
        lefts, rights = ([r for r in t.rows if r[0] == number] for t in (pack.left, pack.right))
        rows += reference_join(join, lefts, rights)
    return rows


class _Sides:
    """The columns of both sides and the parts they play."""

    def __init__(self, rng: random.Random, flavour: Flavour) -> None:
        self.is_self = rng.random() < 0.15
        names = [iter(rng.sample(NAMES, len(NAMES))) for _ in range(2)]
        self.left: list[RandomColumn] = []
        self.right: list[RandomColumn] = []
        self.keys: list[tuple[RandomColumn, RandomColumn]] = []
        self.order: tuple[RandomColumn, RandomColumn] | None = None
        self.second: tuple[RandomColumn, RandomColumn] | None = None
        for _ in range(rng.choice((0, 0, 1, 1, 1, 1, 2, 2, 3, 4))):
            self.keys.append(self.pair(rng, names, rng.choice(KEY_TYPES)))
        if flavour in ("asof", "interval", "window"):
            kinds = rng.choice(TIME_TYPES if flavour == "window" or rng.random() < 0.6 else NUMBER_TYPES)
            self.order = self.pair(rng, names, kinds, order_values(rng, kinds))
            if flavour in ("asof", "interval") and rng.random() < 0.5:
                self.second = self.pair(rng, names, kinds, order_values(rng, kinds))
        number = rng.choice(("long", "decimal(10,2)", "double", "integer"))
        self.numbers = self.pair(rng, names, (number, rng.choice((number, "long"))))
        self.texts = self.pair(rng, names, ("string", "string"))
        self.flags = self.pair(rng, names, ("boolean", "boolean"))
        rng.shuffle(self.left)
        rng.shuffle(self.right)
        if self.is_self:
            self.right = self.left

    def pair(
        self,
        rng: random.Random,
        names: Sequence[Iterator[str]],
        kinds: tuple[str, str],
        values: Sequence[Any] | None = None,
    ) -> tuple[RandomColumn, RandomColumn]:
        """Add a column to each side; a relation joined with itself adds both to the one side, or one twice."""
        a, b = columns(rng, (next(names[0]), next(names[0 if self.is_self else 1])), kinds, values)
        self.left.append(a)
        if self.is_self and rng.random() < 0.7:
            return a, a
        (self.left if self.is_self else self.right).append(b)
        return a, b


def _table(rng: random.Random, chosen: Sequence[RandomColumn], numbers: range, side: str) -> Table:
    schema = Schema((Field(CASE, LONG, nullable=False), *(c.field for c in chosen)))
    rows = []
    for number in numbers:
        count = rng.choice((0, 1, 2, 3, 4, 6) if side == "left" else (0, 2, 3, 5, 8, 12))
        drawn = [(number, *(c.value(rng) for c in chosen)) for _ in range(count)]
        # Exact copies of a row are where engines lose count.
        rows += drawn + [rng.choice(drawn) for _ in drawn[:1] if rng.random() < 0.3]
    rng.shuffle(rows)
    return Table(schema, tuple(rows))


def _base(rng: random.Random, sides: _Sides, kind: str) -> dict[str, Any]:
    keys = [[CASE, CASE], *([canonical_name(a.name), canonical_name(b.name)] for a, b in sides.keys)]
    spec: dict[str, Any] = {"type": kind, "equal_keys": keys}
    if predicates := [_predicate(rng, sides) for _ in range(rng.choice((0, 0, 0, 1, 1, 2)))]:
        spec["predicates"] = predicates
    if rng.random() < 0.2:
        spec["nulls_equal"] = True
    if sides.order is not None:
        spec["order"] = {"type": "order", **_names(*sides.order)}
    return spec


def _names(a: RandomColumn, b: RandomColumn) -> dict[str, str]:
    return {"left": canonical_name(a.name), "right": canonical_name(b.name)}


def _join(rng: random.Random, sides: _Sides) -> tuple[dict[str, Any], str]:
    return _base(rng, sides, "join"), rng.choice(_HOWS)


def _cross(_rng: random.Random, _sides: _Sides) -> tuple[dict[str, Any], str]:
    return {}, "cross"


def _asof(rng: random.Random, sides: _Sides) -> tuple[dict[str, Any], str]:
    spec, how = _base(rng, sides, "asof"), rng.choice(("left", "left", "inner", "right", "full", "semi", "anti"))
    assert sides.order is not None
    spec["how"] = how
    spec["direction"] = rng.choice(("backward", "forward", "nearest"))
    spec["allow_exact_matches"] = rng.random() < 0.7
    spec["nearest_tie"] = rng.choice(("backward", "forward"))
    if rng.random() < 0.6:
        spec["tolerance"] = _distance(rng, sides, signed=False)
    elif spec["direction"] == "nearest":
        spec["tolerance"] = "unbounded"
    if rng.random() < 0.5:
        chosen = rng.sample(sides.right, rng.randint(1, 2))
        spec["tie_break"] = [canonical_name(c.name) for c in chosen]
    if rng.random() < 0.3:
        predicate = _compared(*sides.order, rng.choice(_ALONG[spec["direction"]]))
        if rng.random() < 0.5:
            predicate["offset"] = _offset(rng, sides.order[1])
        spec["range_predicates"] = [predicate]
    spec.update(_second_axis(rng, sides, backward=spec["direction"] == "backward"))
    fills = how not in ("semi", "anti") and "tombstone" not in spec and "until" not in spec
    if fills and rng.random() < 0.1:
        spec["skip_nulls"] = "all"
    elif fills and rng.random() < 0.3:
        spec["skip_nulls"] = [canonical_name(c.name) for c in rng.sample(sides.right, rng.randint(1, 2))]
    if "range_predicates" not in spec:  # they name the order columns
        _express_order(rng, sides, spec["order"])
    return spec, how


def _express_order(rng: random.Random, sides: _Sides, order: dict[str, Any]) -> None:
    """Write one order column now and then as an expression with the same values."""
    assert sides.order is not None
    side, column = rng.choice(tuple(zip(("left", "right"), sides.order, strict=True)))
    if rng.random() < 0.15:
        order[side] = f"COALESCE({side}.{quote(column.name)}, {quote(column.name)})"


def _second_axis(rng: random.Random, sides: _Sides, *, backward: bool) -> dict[str, Any]:
    """Return knowledge times, an end and a tombstone, each now and then."""
    given: dict[str, Any] = {}
    if sides.second is not None and sides.order is not None and rng.random() < 0.6:
        asked = sides.order[0] if rng.random() < 0.6 else sides.second[0]
        given["known"] = {"type": "order", **_names(asked, sides.second[1])}
    elif sides.second is not None and backward:
        given["until"] = canonical_name(sides.second[1].name)
    if rng.random() < 0.15:
        given["tombstone"] = canonical_name(sides.flags[1].name)
    return given


def _interval(rng: random.Random, sides: _Sides) -> tuple[dict[str, Any], str]:
    spec, how = _base(rng, sides, "interval"), rng.choice(_HOWS)
    spec["how"] = how
    _express_order(rng, sides, spec["order"])
    if sides.second is not None:
        return spec | _ends(rng, *sides.second), how
    small, large = sorted((_steps(rng), _steps(rng)))
    spec["lower"], spec["upper"] = _written(small, sides), _written(large, sides)
    if rng.random() < 0.25:
        spec[rng.choice(("lower", "upper"))] = None
    return spec, how


def _ends(rng: random.Random, left: RandomColumn, right: RandomColumn) -> dict[str, Any]:
    """Return the ends of ranges on one side or on both; many are open, empty or the wrong way round."""
    which = rng.choice(("left_end", "right_end", "both"))
    given: dict[str, Any] = {"closed": rng.random() < 0.4, "open_start": rng.random() < 0.4}
    if which != "right_end":
        given["left_end"] = canonical_name(left.name)
    if which != "left_end":
        given["right_end"] = canonical_name(right.name)
    return given


def _window(rng: random.Random, sides: _Sides) -> tuple[dict[str, Any], str]:
    spec, how = _base(rng, sides, "window"), rng.choice(_HOWS)
    kind = rng.choice(("tumbling", "sliding", "session"))
    spec |= {"how": how, "window": kind}
    unit = _time_unit(sides)
    if kind == "session":
        spec["gap"] = f"{rng.randint(1, 3)} {unit}"
        return spec, how
    size = rng.choice((1, 2, 3, 5, 6))
    spec["size"] = f"{size} {unit}"
    if kind == "sliding":
        spec["slide"] = f"{rng.randint(1, size)} {unit}"
        spec["per_window"] = rng.random() < 0.4
    return spec, how


_SPECS: dict[Flavour, Callable[[random.Random, _Sides], tuple[dict[str, Any], str]]] = {
    "join": _join,
    "asof": _asof,
    "interval": _interval,
    "window": _window,
    "cross": _cross,
}


def _steps(rng: random.Random) -> int:
    return rng.choice((-4, -2, -1, 0, 0, 1, 2, 3, 5))


def _distance(rng: random.Random, sides: _Sides, *, signed: bool) -> Any:
    steps = _steps(rng)
    return _written(steps if signed else abs(steps), sides)


def _written(steps: int, sides: _Sides) -> Any:
    """Return a distance on the order axis as specs write it."""
    assert sides.order is not None
    return f"{steps} {_time_unit(sides)}" if sides.order[0].dtype.is_temporal else steps


def _time_unit(sides: _Sides) -> str:
    assert sides.order is not None
    return "days" if any(str(c.dtype) == "date" for c in sides.order) else "seconds"


def _offset(rng: random.Random, right: RandomColumn) -> Any:
    if not right.dtype.is_temporal:
        return _steps(rng)
    return f"{_steps(rng)} {'days' if str(right.dtype) == 'date' else 'seconds'}"


def _predicate(rng: random.Random, sides: _Sides) -> dict[str, Any]:
    if rng.random() < 0.5:
        return {"type": "expression", "expression": _fragment(rng, sides)}
    a, b = pair = rng.choice([sides.numbers, sides.texts, *([sides.order] if sides.order else []), *sides.keys])
    # A key that is equal and also unequal would leave a pack without a match.
    operators = ("=", "<=", ">=") if pair in sides.keys else _OPERATORS
    predicate = _compared(a, b, "=" if str(a.dtype) in ("boolean", "binary") else rng.choice(operators))
    assert common_type(a.dtype, b.dtype) is not None
    if pair not in sides.keys and (b.dtype.is_numeric or b.dtype.is_temporal) and rng.random() < 0.5:
        same_days = a.dtype == b.dtype or str(b.dtype) != "date"
        predicate["offset"] = _offset(rng, b) if same_days else "1 day"
    return predicate


def _compared(a: RandomColumn, b: RandomColumn, operator: str) -> dict[str, Any]:
    return {"type": "column", **_names(a, b), "operator": operator}


def _fragment(rng: random.Random, sides: _Sides) -> str:
    """Return a fragment over the numbers, texts and flags of both sides."""
    n, m = (f"{side}.{quote(c.name)}" for side, c in zip(("left", "r"), sides.numbers, strict=True))
    s, t = (f"{side}.{quote(c.name)}" for side, c in zip(("l", "right"), sides.texts, strict=True))
    f, g = (f"{side}.{quote(c.name)}" for side, c in zip(("left", "right"), sides.flags, strict=True))
    return rng.choice(
        (
            f"{g}",
            f"NOT {f} OR {g}",
            f"{n} + {m} < 2 OR {t} LIKE 'a%'",
            f"COALESCE({n}, 0) >= {m}",
            f"{m} BETWEEN -1 AND 1",
            f"{s} IN ('a', 'b') OR {t} IS NULL",
            f"LOWER({s}) = LOWER({t})",
            f"{s} || 'x' <> {t}",
            f"CASE WHEN {f} THEN {n} ELSE {m} END > 0",
            f"{n} IS NULL AND {m} IS NOT NULL",
            f"{f} <=> {g}",
            "1 = 1",
        )
    )


def _projection(rng: random.Random, how: str) -> dict[str, Any]:
    project: dict[str, Any] = {"type": "projection", "suffixes": rng.choice(_SUFFIXES)}
    if how not in ("semi", "anti") and rng.random() < 0.2:
        project["indicator"] = "side of row"
    if how not in ("semi", "anti", "cross") and rng.random() < 0.2:
        project["right_keys"] = rng.choice(("keep", "drop"))
    return project
