"""Time bounds in conditions: every algebraic form of ``right.time - left.time OP length`` is one form.

Before::

    s.t BETWEEN o.t AND o.t + INTERVAL '24' HOUR      o.t >= s.t - INTERVAL '24' HOUR AND s.t - o.t >= INTERVAL '0' HOUR

After::

    s.t - o.t in [0s, 1d]

A comparison is brought to ``sum of times + constant OP 0``.  Two times with opposite signs, one of the
joined stream and one of an earlier stream, make a bound; everything else stays a condition.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from weft.core.frozen import FrozenMap
from weft.core.source import Source
from weft.expr import Typed
from weft.joins.resolve.conditions import conjuncts as conjuncts  # noqa: PLC0414  # asked for together with bounds

MICROSECOND = dt.timedelta(microseconds=1)
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


@dataclass(frozen=True, slots=True, kw_only=True)
class Affine:
    """A sum of event times, each with a whole factor, and a length in microseconds."""

    coefficients: FrozenMap[Hashable, int] = field(default_factory=FrozenMap)
    constant_us: int = 0

    def plus(self, other: Affine, sign: int = 1) -> Affine:
        """Return the sum, or the difference with ``sign=-1``."""
        total = dict(self.coefficients)
        for slot, factor in other.coefficients.items():
            total[slot] = total.get(slot, 0) + sign * factor
        return Affine(
            coefficients=FrozenMap({s: f for s, f in total.items() if f}),
            constant_us=self.constant_us + sign * other.constant_us,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """``right time - left time OP length`` of a conjunct."""

    left: int
    op: str
    length: int
    typed: Typed


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundBounds:
    """The bounds that conjuncts say of one pair of times, and the conjuncts that say something else.

    `left` is the earlier source of the pair, None when nothing bounds the join; an end that is None is
    open.  `places` are where the lower and the upper end are written.
    """

    left: int | None = None
    lower: int | None = None
    upper: int | None = None
    places: tuple[Source | None, Source | None] = (None, None)
    used: tuple[Typed, ...] = ()
    residual: tuple[Typed, ...] = ()

    @property
    def is_closed(self) -> bool:
        """Whether both ends are there."""
        return self.lower is not None and self.upper is not None

    @property
    def is_empty(self) -> bool:
        """Whether no time lies between the ends."""
        return self.lower is not None and self.upper is not None and self.lower > self.upper


def time_difference(typed: Typed, times: Mapping[Hashable, int]) -> Affine | None:
    """Return the event times and the length that an expression adds up to, or None for anything else.

    `times` are the slots of event-time columns, each with its source.
    """
    if typed.op == "ref":
        if typed.slot not in times:
            return None
        return Affine(coefficients=FrozenMap({typed.slot: 1}))
    if typed.op == "lit":
        if not isinstance(typed.value, dt.timedelta):
            return None
        return Affine(constant_us=typed.value // MICROSECOND)
    if typed.op == "cast":
        (arg,) = typed.args
        return time_difference(arg, times) if arg.dtype == typed.dtype else None
    sign = _SIGNS.get(typed.op)
    if sign is None:
        return None
    parts = [time_difference(arg, times) for arg in typed.args]
    known = [p for p in parts if p is not None]
    if len(known) < len(parts):
        return None
    if len(known) == 1:
        return Affine().plus(known[0], sign)
    return known[0].plus(known[1], sign)


_SIGNS = {"neg": -1, "time+": 1, "time-": -1, "time_diff": -1, "interval+": 1, "interval-": -1}


def comparison(typed: Typed, times: Mapping[Hashable, int], right: int) -> Comparison | None:
    """Return what a conjunct says of the time of source `right` against one earlier source, or None."""
    op, args = typed.op, typed.args
    if op == "not" and args[0].op in _OPPOSITE:
        op, args = _OPPOSITE[args[0].op], args[0].args
    if op not in _MIRRORED:
        return None
    first, second = (time_difference(arg, times) for arg in args)
    if first is None or second is None:
        return None
    total = first.plus(second, -1)
    by_source: dict[int, int] = {}
    for slot, factor in total.coefficients.items():
        by_source[times[slot]] = by_source.get(times[slot], 0) + factor
    factor = by_source.pop(right, 0)
    others = [(source, f) for source, f in by_source.items() if f]
    if len(others) != 1 or abs(factor) != 1 or others[0][1] != -factor:
        return None
    if factor == 1:
        return Comparison(left=others[0][0], op=op, length=-total.constant_us, typed=typed)
    return Comparison(left=others[0][0], op=_MIRRORED[op], length=total.constant_us, typed=typed)


def bounds_of(
    conjuncts: Iterable[Typed],
    times: Mapping[Hashable, int],
    right: int,
    *,
    order: Sequence[int] | None = None,
    left: int | None = None,
) -> FoundBounds:
    """Return the bounds of a join whose right side is source `right`.

    The pair is the first earlier source, in `order`, that has both ends, else the first that has one;
    `left` asks for a certain one.  What is said of other pairs stays a condition.
    """
    parts = tuple(conjuncts)
    said = [(part, comparison(part, times, right)) for part in parts]
    lefts = [c.left for _, c in said if c is not None]
    candidates = [o for o in (sorted(set(lefts)) if order is None else order) if o in lefts]
    found = [_of_pair(c, said) for c in candidates if left in (None, c)]
    chosen = next((f for f in found if f.is_closed), found[0] if found else None)
    return FoundBounds(residual=parts) if chosen is None else chosen


def _of_pair(left: int, said: Sequence[tuple[Typed, Comparison | None]]) -> FoundBounds:
    lower: int | None = None
    upper: int | None = None
    low_at: Source | None = None
    high_at: Source | None = None
    used, residual = [], []
    for part, told in said:
        if told is None or told.left != left:
            residual.append(part)
            continue
        used.append(part)
        low, high = _ends(told)
        if low is not None and (lower is None or low > lower):
            lower, low_at = low, place_of(part)
        if high is not None and (upper is None or high < upper):
            upper, high_at = high, place_of(part)
    return FoundBounds(
        left=left,
        lower=lower,
        upper=upper,
        places=(low_at, high_at),
        used=tuple(used),
        residual=tuple(residual),
    )


def _ends(told: Comparison) -> tuple[int | None, int | None]:
    """Return the least and the greatest difference that a comparison allows, in whole microseconds."""
    match told.op:
        case ">":
            return told.length + 1, None
        case ">=":
            return told.length, None
        case "<":
            return None, told.length - 1
        case "<=":
            return None, told.length
        case _:
            return told.length, told.length


def place_of(typed: Typed) -> Source | None:
    """Return where an operation is written."""
    return typed.expr.span.place if typed.expr.span else None
