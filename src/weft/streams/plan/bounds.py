"""Time bounds in conditions: every algebraic form of ``right.time - left.time OP length`` is one form.

Before::

    s.t BETWEEN o.t AND o.t + INTERVAL '24' HOUR      o.t >= s.t - INTERVAL '24' HOUR AND s.t - o.t >= INTERVAL '0' HOUR

After::

    s.t - o.t in [0s, 1d]

A comparison is brought to ``sum of times + constant OP 0``.  Two times with opposite signs, one of the
joined stream and one of an earlier stream, make a bound; everything else stays a condition.

In a condition that compares event times an event-time column is a time, whatever type it is declared in.  Before::

    s.b BETWEEN o.b AND o.b + 3600000                 both BIGINT, epoch_millis

After::

    time of s BETWEEN time of o AND time of o + INTERVAL '1h'

Everywhere else the column keeps its declared type.  Behind the planner such a condition computes with
the event times in microseconds that every row carries.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from weft.core.frozen import FrozenMap
from weft.core.names import fold
from weft.core.source import Source
from weft.core.types import BOOLEAN, INTERVAL, LONG, TIMESTAMP
from weft.errors import Diagnostic, ExpressionError
from weft.expr import Between, Binary, Column, Expr, Lit, Negate, Typed, check
from weft.expr.ast import Logic, Not, references
from weft.joins.resolve.predicates import conjuncts as conjuncts  # noqa: PLC0414  # asked for together with bounds
from weft.streams.plan.resolved import column_slot, time_slot
from weft.streams.plan.scope import Named, StatementScope
from weft.streams.sql.spec import MESSAGE_TIME

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


_COMPARES = frozenset({"=", "<>", "<", "<=", ">", ">="})
_LONGEST = 2**63 - 1
_NUMBERS = {"time+": "+", "time-": "-", "time_diff": "-", "interval+": "+", "interval-": "-"}


@dataclass(frozen=True, slots=True)
class _Times:
    """The scope in which event-time columns are the event times themselves."""

    base: StatementScope

    def resolve(self, qualifier: str | None, name: str) -> Column | Diagnostic:
        """Return the column or the time that a reference means."""
        found = self.base.resolve(qualifier, name)
        source = self.timed(qualifier, name)
        if source is None:
            return found
        nullable = found.nullable if isinstance(found, Column) else source.padded
        return Column(time_slot(source.number), TIMESTAMP, nullable)

    def names(self) -> tuple[str, ...]:
        """Return every name as it can be written."""
        return self.base.names()

    def timed(self, qualifier: str | None, name: str) -> Named | None:
        """Return the source whose event time a reference means."""
        found = self.base.resolve(qualifier, name)
        if isinstance(found, Column):
            slots: dict[Hashable, Named] = {
                column_slot(s.number, s.time): s for s in self.base.sources if s.time is not None
            }
            return slots.get(found.slot)
        source = None if qualifier is None else self.base.find(qualifier)
        is_message_time = source is not None and source.has_message_time and fold(name) == fold(MESSAGE_TIME)
        return source if is_message_time else None


def time_condition(part: Expr, scope: StatementScope) -> Typed | None:
    """Return a condition between the event times of two sources, or None for anything else.

    A condition whose event times are all declared as TIMESTAMP reads as it stands and is none of these.
    """
    times = _Times(scope)
    said = [source for r in references(part) if (source := times.timed(r.qualifier, r.name)) is not None]
    if len({s.number for s in said}) < 2 or all(s.time_type == TIMESTAMP for s in said):
        return None
    try:
        typed = check(_measured(part, times), times, expect=BOOLEAN)
    except ExpressionError:
        return None  # the condition is read with the declared types, and that tells what is wrong
    slots: dict[Hashable, int] = {time_slot(s.number): s.number for s in said}
    return typed if _compares_times(typed, slots) else None


def _compares_times(typed: Typed, slots: Mapping[Hashable, int]) -> bool:
    if typed.op in ("and", "or", "not"):
        return all(_compares_times(arg, slots) for arg in typed.args)
    if typed.op not in _COMPARES:
        return False
    return all(time_difference(arg, slots) is not None for arg in typed.args)


def _measured(part: Expr, times: _Times) -> Expr:
    """Return a condition with its whole numbers as lengths, in the unit of the times they stand with."""
    match part:
        case Logic():
            return replace(part, args=tuple(_measured(a, times) for a in part.args))
        case Not():
            return replace(part, arg=_measured(part.arg, times))
        case Binary() if part.op in _COMPARES:
            unit = _unit(part, times)
            return replace(part, left=_length(part.left, unit, times), right=_length(part.right, unit, times))
        case Between():
            unit = _unit(part, times)
            arg, low, high = (_length(e, unit, times) for e in (part.arg, part.low, part.high))
            return replace(part, arg=arg, low=low, high=high)
    return part


def _length(expr: Expr, unit: int | None, times: _Times) -> Expr:
    whole = _whole(expr)
    if whole is not None:
        fits = unit is not None and abs(whole * unit) <= _LONGEST
        return Lit(whole * (unit or 0) * MICROSECOND, INTERVAL, span=expr.span) if fits else expr
    match expr:
        case Negate():
            return replace(expr, arg=_length(expr.arg, unit, times))
        case Binary() if expr.op in ("+", "-"):
            own = _unit(expr, times) if references(expr) else unit
            return replace(expr, left=_length(expr.left, own, times), right=_length(expr.right, own, times))
    return expr


def _unit(expr: Expr, times: _Times) -> int | None:
    """Return how many microseconds the number one is beside the times of an expression, if they agree."""
    said = [times.timed(r.qualifier, r.name) for r in references(expr)]
    units = {None if s is None else s.time_unit for s in said}
    return units.pop() if len(units) == 1 else None


def _whole(expr: Expr) -> int | None:
    """Return the whole number that a constant is."""
    match expr:
        case Lit(value=int() as value) if not isinstance(value, bool):
            return value
        case Negate():
            inner = _whole(expr.arg)
            return None if inner is None else -inner
        case Binary() if expr.op in ("+", "-", "*"):
            one, other = _whole(expr.left), _whole(expr.right)
            if one is None or other is None:
                return None
            return {"+": one + other, "-": one - other, "*": one * other}[expr.op]
    return None


def in_microseconds(typed: Typed | None) -> Typed | None:
    """Return a condition whose event times are whole numbers, as rows carry them."""
    if typed is None or not any(_is_time(n) for n in typed.walk()):
        return typed
    if typed.op == "and":
        return replace(typed, args=tuple(_numbered_part(a) for a in typed.args))
    return _numbered_part(typed)


def _numbered_part(typed: Typed) -> Typed:
    """Return a conjunct with numbers for times; one that compares no event times stays as it is."""
    return _numbers(typed) if any(_is_time(n) for n in typed.walk()) else typed


def _numbers(typed: Typed) -> Typed:
    if typed.op == "ref":
        return replace(typed, dtype=LONG)
    if isinstance(typed.value, dt.timedelta):
        return replace(typed, dtype=LONG, value=typed.value // MICROSECOND)
    args = tuple(_numbers(arg) for arg in typed.args)
    if typed.op == "cast":
        return args[0]
    dtype = typed.dtype if typed.dtype == BOOLEAN else LONG
    return replace(typed, op=_NUMBERS.get(typed.op, typed.op), dtype=dtype, args=args)


def _is_time(typed: Typed) -> bool:
    return typed.op == "ref" and isinstance(typed.slot, tuple) and typed.slot[0] == "t"
