"""The time condition of a join: bounds in ON and WHERE, combined with WITHIN, WINDOW, options and defaults.

Every algebraic form of ``right.time - left.time OP length`` is reduced to one.

Before::

    s.t BETWEEN o.t AND o.t + INTERVAL '24' HOUR      o.t >= s.t - INTERVAL '24' HOUR AND s.t - o.t >= INTERVAL '0' HOUR

After::

    s.t - o.t in [0s, 1d]

A comparison is rewritten as ``sum of times + constant OP 0``.  Two times with opposite signs, one of the
joined stream and one of an earlier stream, are a bound; everything else remains a condition.

In a condition that compares event times, an event-time column is a time, whatever its declared type.  Before::

    s.b BETWEEN o.b AND o.b + 3600000                 both BIGINT, epoch_millis

After::

    time of s BETWEEN time of o AND time of o + INTERVAL '1h'

Everywhere else the column keeps its declared type.  After planning, such a condition uses the event times in
microseconds that every row carries.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from weft.core.duration import Duration
from weft.core.findings import Findings
from weft.core.frozen import FrozenMap
from weft.core.names import fold, format_name
from weft.core.source import Source
from weft.core.types import BOOLEAN, INTERVAL, LONG, TIMESTAMP
from weft.errors import Diagnostic, ExpressionError
from weft.expr import Between, Binary, Column, Expr, Lit, Negate, Typed, check
from weft.expr.ast import Logic, Not, references
from weft.joins.spec.temporal import IntervalSpec, WindowSpec
from weft.joins.spec.values import parse_distance
from weft.streams.plan.resolved import column_slot, time_slot
from weft.streams.plan.scope import FromSource, StatementScope
from weft.streams.sql.spec import MESSAGE_TIME, Bounds, JoinStepSpec

MICROSECOND = dt.timedelta(microseconds=1)
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


@dataclass(frozen=True, slots=True, kw_only=True)
class Affine:
    """A sum of event times with integer coefficients, plus a constant in microseconds."""

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
class TimeBounds:
    """The bounds of one pair of times, the conjuncts that they come from (`used`), and the other conjuncts.

    `left` is the earlier source of the pair, or None without a bound; an end that is None is open.
    `locations` are those of the lower and the upper end.
    """

    left: int | None = None
    lower: int | None = None
    upper: int | None = None
    locations: tuple[Source | None, Source | None] = (None, None)
    used: tuple[Typed, ...] = ()
    residual: tuple[Typed, ...] = ()

    @property
    def is_closed(self) -> bool:
        """Whether both ends are bounded."""
        return self.lower is not None and self.upper is not None

    @property
    def is_empty(self) -> bool:
        """Whether the lower end is above the upper end."""
        return self.lower is not None and self.upper is not None and self.lower > self.upper


def parse_affine(typed: Typed, times: Mapping[Hashable, int]) -> Affine | None:
    """Return an expression as a sum of event times and a constant, or None if it is not one.

    `times` maps the slots of event-time columns to their sources.
    """
    if typed.op == "ref":
        if typed.slot not in times:
            return None
        return Affine(coefficients=FrozenMap({typed.slot: 1}))
    if typed.op == "lit":
        if not isinstance(typed.value, dt.timedelta):
            return None
        return Affine(constant_us=typed.value // MICROSECOND)
    if typed.op == "cast":  # only one that does not change the type: others may round
        (arg,) = typed.args
        return parse_affine(arg, times) if arg.dtype == typed.dtype else None
    sign = _SIGNS.get(typed.op)
    if sign is None:
        return None
    parts = [parse_affine(arg, times) for arg in typed.args]
    known = [p for p in parts if p is not None]
    if len(known) < len(parts):
        return None
    if len(known) == 1:
        return Affine().plus(known[0], sign)
    return known[0].plus(known[1], sign)


_SIGNS = {"neg": -1, "time+": 1, "time-": -1, "time_diff": -1, "interval+": 1, "interval-": -1}


def parse_comparison(typed: Typed, times: Mapping[Hashable, int], right: int) -> Comparison | None:
    """Return a conjunct as a comparison of the time of source `right` with one earlier source, or None."""
    op, args = typed.op, typed.args
    if op == "not" and args[0].op in _OPPOSITE:
        op, args = _OPPOSITE[args[0].op], args[0].args
    if op not in _MIRRORED:
        return None
    first, second = (parse_affine(arg, times) for arg in args)
    if first is None or second is None:
        return None
    total = first.plus(second, -1)
    # By source, because a column and the event time that it holds are two slots of the same time.
    by_source: dict[int, int] = {}
    for slot, factor in total.coefficients.items():
        by_source[times[slot]] = by_source.get(times[slot], 0) + factor
    factor = by_source.pop(right, 0)
    others = [(source, f) for source, f in by_source.items() if f]
    # Only a difference of two times moves with neither of them; `2 * a.t < b.t` bounds nothing.
    if len(others) != 1 or abs(factor) != 1 or others[0][1] != -factor:
        return None
    if factor == 1:
        return Comparison(left=others[0][0], op=op, length=-total.constant_us, typed=typed)
    return Comparison(left=others[0][0], op=_MIRRORED[op], length=total.constant_us, typed=typed)


def find_bounds(
    conjuncts: Iterable[Typed],
    times: Mapping[Hashable, int],
    right: int,
    *,
    order: Sequence[int] | None = None,
    left: int | None = None,
) -> TimeBounds:
    """Return the bounds of a join whose right side is source `right`.

    The left side is the first earlier source, in `order`, with both ends bounded, else the first with one;
    `left` selects one.  Comparisons with other sources remain conditions.
    """
    # Bounded on both ends beats first: an open bound with one source may come with a closed one with another.
    parts = tuple(conjuncts)
    comparisons = [(part, parse_comparison(part, times, right)) for part in parts]
    lefts = [c.left for _, c in comparisons if c is not None]
    candidates = [o for o in (sorted(set(lefts)) if order is None else order) if o in lefts]
    bounds = [_intersect(c, comparisons) for c in candidates if left in (None, c)]
    chosen = next((b for b in bounds if b.is_closed), bounds[0] if bounds else None)
    return TimeBounds(residual=parts) if chosen is None else chosen


def _intersect(left: int, comparisons: Sequence[tuple[Typed, Comparison | None]]) -> TimeBounds:
    """Return the intersection of all comparisons with source `left`."""
    lower: int | None = None
    upper: int | None = None
    low_at: Source | None = None
    high_at: Source | None = None
    used, residual = [], []
    for part, comparison in comparisons:
        if comparison is None or comparison.left != left:
            residual.append(part)
            continue
        used.append(part)
        low, high = _to_range(comparison)
        # The location of the tightest condition, which is the one that an error about the bound must point at.
        if low is not None and (lower is None or low > lower):
            lower, low_at = low, locate(part)
        if high is not None and (upper is None or high < upper):
            upper, high_at = high, locate(part)
    return TimeBounds(
        left=left, lower=lower, upper=upper, locations=(low_at, high_at), used=tuple(used), residual=tuple(residual)
    )


def _to_range(comparison: Comparison) -> tuple[int | None, int | None]:
    """Return the least and the greatest difference that a comparison allows, in whole microseconds."""
    n = comparison.length
    ranges = {">": (n + 1, None), ">=": (n, None), "<": (None, n - 1), "<=": (None, n), "=": (n, n)}
    return ranges[comparison.op]


def locate(typed: Typed) -> Source | None:
    """Return the location of an expression."""
    return typed.expr.span.place if typed.expr.span else None


_COMPARES = frozenset({"=", "<>", "<", "<=", ">", ">="})
_LONGEST = 2**63 - 1
_INTEGER_OPS = {"time+": "+", "time-": "-", "time_diff": "-", "interval+": "+", "interval-": "-"}


@dataclass(frozen=True, slots=True)
class _Times:
    """A scope in which event-time columns are the event times themselves."""

    base: StatementScope

    def resolve(self, qualifier: str | None, name: str) -> Column | Diagnostic:
        """Return the column or event time of a reference."""
        column = self.base.resolve(qualifier, name)
        source = self.find_timed(qualifier, name)
        if source is None:
            return column
        nullable = column.nullable if isinstance(column, Column) else source.padded
        return Column(time_slot(source.number), TIMESTAMP, nullable)

    def names(self) -> tuple[str, ...]:
        """Return all names of the scope."""
        return self.base.names()

    def find_timed(self, qualifier: str | None, name: str) -> FromSource | None:
        """Return the source whose event time a reference is, if it is one."""
        column = self.base.resolve(qualifier, name)
        if isinstance(column, Column):
            slots: dict[Hashable, FromSource] = {
                column_slot(s.number, s.time): s for s in self.base.sources if s.time is not None
            }
            return slots.get(column.slot)
        source = None if qualifier is None else self.base.find(qualifier)
        is_message_time = source is not None and source.has_message_time and fold(name) == fold(MESSAGE_TIME)
        return source if is_message_time else None


def check_time_condition(part: Expr, scope: StatementScope) -> Typed | None:
    """Return a condition between the event times of two sources, or None for anything else.

    A condition whose event times are all declared as TIMESTAMP needs no rewrite and is not one of these.
    """
    times = _Times(scope)
    sources = [source for r in references(part) if (source := times.find_timed(r.qualifier, r.name)) is not None]
    # One source alone cannot bound a join, and TIMESTAMP columns are compared as they are.
    if len({s.number for s in sources}) < 2 or all(s.time_type == TIMESTAMP for s in sources):
        return None
    try:
        typed = check(_convert_numbers(part, times), times, expect=BOOLEAN)
    except ExpressionError:
        return None  # checked again with the declared types, which gives a better message
    slots: dict[Hashable, int] = {time_slot(s.number): s.number for s in sources}
    return typed if _compares_times(typed, slots) else None


def _compares_times(typed: Typed, slots: Mapping[Hashable, int]) -> bool:
    if typed.op in ("and", "or", "not"):
        return all(_compares_times(arg, slots) for arg in typed.args)
    if typed.op not in _COMPARES:
        return False
    return all(parse_affine(arg, slots) is not None for arg in typed.args)


def _convert_numbers(part: Expr, times: _Times) -> Expr:
    """Return a condition with its integers as intervals, in the unit of the times next to them."""
    match part:
        case Logic():
            return replace(part, args=tuple(_convert_numbers(a, times) for a in part.args))
        case Not():
            return replace(part, arg=_convert_numbers(part.arg, times))
        case Binary() if part.op in _COMPARES:
            unit = _unit(part, times)
            return replace(
                part, left=_convert_length(part.left, unit, times), right=_convert_length(part.right, unit, times)
            )
        case Between():
            unit = _unit(part, times)
            arg, low, high = (_convert_length(e, unit, times) for e in (part.arg, part.low, part.high))
            return replace(part, arg=arg, low=low, high=high)
    return part


def _convert_length(expr: Expr, unit: int | None, times: _Times) -> Expr:
    whole = _whole(expr)
    if whole is not None:
        fits = unit is not None and abs(whole * unit) <= _LONGEST  # else the declared types give a better message
        return Lit(whole * (unit or 0) * MICROSECOND, INTERVAL, span=expr.span) if fits else expr
    match expr:
        case Negate():
            return replace(expr, arg=_convert_length(expr.arg, unit, times))
        case Binary() if expr.op in ("+", "-"):
            # In `a.ms + 1000 < b.s + 1`, each number has the unit of the time that it is added to.
            own = _unit(expr, times) if references(expr) else unit
            return replace(
                expr, left=_convert_length(expr.left, own, times), right=_convert_length(expr.right, own, times)
            )
    return expr


def _unit(expr: Expr, times: _Times) -> int | None:
    """Return the unit in microseconds of numbers next to the times of an expression, if it is unique."""
    sources = [times.find_timed(r.qualifier, r.name) for r in references(expr)]
    units = {None if s is None else s.time_unit for s in sources}
    return units.pop() if len(units) == 1 else None


def _whole(expr: Expr) -> int | None:
    """Return the value of an integer constant."""
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


def convert_times(typed: Typed | None) -> Typed | None:
    """Return a condition with its event times as integers in microseconds, as rows carry them."""
    return None if typed is None else _convert_conjuncts(typed)


def _convert_conjuncts(typed: Typed) -> Typed:
    if not any(_is_time(n) for n in typed.walk()):
        return typed
    if typed.op == "and":
        # Each conjunct by itself: the numbers of one without event times are not lengths of time.
        return replace(typed, args=tuple(_convert_conjuncts(a) for a in typed.args))
    return _to_integers(typed)


def _to_integers(typed: Typed) -> Typed:
    if typed.op == "ref":
        return replace(typed, dtype=LONG)
    if isinstance(typed.value, dt.timedelta):
        return replace(typed, dtype=LONG, value=typed.value // MICROSECOND)
    args = tuple(_to_integers(arg) for arg in typed.args)
    if typed.op == "cast":
        return args[0]
    dtype = typed.dtype if typed.dtype == BOOLEAN else LONG
    return replace(typed, op=_INTEGER_OPS.get(typed.op, typed.op), dtype=dtype, args=args)


def _is_time(typed: Typed) -> bool:
    return typed.op == "ref" and isinstance(typed.slot, tuple) and typed.slot[0] == "t"


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """The bounds of ``right time - left time`` in microseconds, and the clauses that declare them."""

    left: int
    lower: int
    upper: int
    declared_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Windowed:
    """A window join: the spec of its window, and the earlier source whose time is assigned to windows."""

    left: int
    window: WindowSpec
    declared_by: str


Form = Interval | Windowed


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeConditions:
    """Everything that constrains the times of one join.

    `is_misplaced` is true if WHERE has a bound that cannot become a part of the join, which is reported elsewhere.
    """

    join: JoinStepSpec
    bounds: TimeBounds
    default: Bounds | None
    lefts: tuple[FromSource, ...]
    right: FromSource
    is_misplaced: bool = False

    @property
    def left(self) -> int:
        """The earlier stream whose time is compared: the one in the condition, else the first."""
        if self.bounds.left is not None:
            return self.bounds.left
        return next(s.number for s in self.lefts if s.is_stream)

    @property
    def location(self) -> Source | None:
        """The location of WITHIN, WINDOW or the options, else of the joined source."""
        return self.join.form_at or self.join.at


def resolve_form(times: TimeConditions, findings: Findings) -> Form | None:
    """Return the time condition of a stream-stream join, or None after adding findings.

    Before::

        ON ... AND s.t >= o.t WITHIN '1h'

    After::

        s.t - o.t in [0s, 1h]   (ON and WITHIN)
    """
    if times.bounds.is_empty:
        _add_empty(times, findings)
        return None
    form = times.join.form
    if isinstance(form, WindowSpec):
        return _resolve_window(times, form, findings)
    if form is not None:
        return _resolve_interval(times, form, findings)
    bounds = times.bounds
    if bounds.left is not None and bounds.lower is not None and bounds.upper is not None:
        return Interval(left=bounds.left, lower=bounds.lower, upper=bounds.upper, declared_by="ON")
    if times.default is not None:
        return _resolve_default(times, times.default, findings)
    _add_unbounded(times, findings)
    return None


def _resolve_window(times: TimeConditions, form: WindowSpec, findings: Findings) -> Windowed | None:
    if times.bounds.is_closed:
        findings.add(
            "W2106",
            f"the join has both a {form.window} window and the bound {_format_bounds(times.bounds)} in its condition",
            times.location,
            "remove one of them: a window join compares windows, an interval join compares times",
        )
        return None
    return Windowed(left=times.left, window=form, declared_by="WINDOW")


def _resolve_interval(times: TimeConditions, form: IntervalSpec, findings: Findings) -> Interval | None:
    lower = None if form.lower is None else int(parse_distance(form.lower, "lower", signed=True))
    upper = None if form.upper is None else int(parse_distance(form.upper, "upper", signed=True))
    bounds, left = times.bounds, times.left
    if bounds.lower is not None and bounds.upper is not None:
        # Repeating the same bound is harmless; two different ones are more likely a mistake than an intersection.
        if (lower, upper) in ((bounds.lower, bounds.upper), (None, bounds.upper), (bounds.lower, None)):
            return Interval(left=left, lower=bounds.lower, upper=bounds.upper, declared_by="ON")
        findings.add(
            "W2106",
            f"the bound is {_format_bounds(bounds)} in the condition"
            f" but {_format_range(lower, upper)} in WITHIN or the options",
            times.location,
            _add_line("remove one of them", bounds),
        )
        return None
    by = "WITHIN"
    if bounds.lower is not None or bounds.upper is not None:
        by = "ON and WITHIN"
        lows = [b for b in (lower, bounds.lower) if b is not None]
        highs = [b for b in (upper, bounds.upper) if b is not None]
        lower, upper = max(lows, default=None), min(highs, default=None)
    if lower is None or upper is None:
        _add_unbounded(times, findings, lower=lower, upper=upper)
        return None
    if lower > upper:
        message = f"empty bound {_format_range(lower, upper)} of the condition and WITHIN or the options"
        findings.add("W2105", message, times.location, _add_line("swap the two ends or widen one of them", bounds))
        return None
    return Interval(left=left, lower=lower, upper=upper, declared_by=by)


def _resolve_default(times: TimeConditions, default: Bounds, findings: Findings) -> Interval | None:
    low, high = (end.microseconds for end in default)
    bounds = times.bounds
    lower = low if bounds.lower is None else max(low, bounds.lower)
    upper = high if bounds.upper is None else min(high, bounds.upper)
    if lower > upper:
        findings.add(
            "W2105",
            f"empty bound: join.default_bound {_format_range(low, high)} and the condition {_format_bounds(bounds)}"
            " do not overlap",
            times.join.at,
            _add_line("write both ends in ON", bounds),
        )
        return None
    by = "join.default_bound" if bounds.left is None else "ON and join.default_bound"
    return Interval(left=times.left, lower=lower, upper=upper, declared_by=by)


def _add_empty(times: TimeConditions, findings: Findings) -> None:
    low, high = times.bounds.locations
    at = high or low or times.join.at
    other = low if at is high else None
    findings.add(
        "W2105",
        f"empty bound {_format_bounds(times.bounds)}: the lower end is above the upper end",
        at,
        "swap the two ends or widen one of them"
        + (f"; the lower end is in line {other.line}, column {other.column}" if other else ""),
    )


def _add_unbounded(
    times: TimeConditions, findings: Findings, *, lower: int | None = None, upper: int | None = None
) -> None:
    if times.is_misplaced:  # the message about WHERE is the one that helps
        return
    lower = times.bounds.lower if lower is None else lower
    upper = times.bounds.upper if upper is None else upper
    left = next(s for s in times.lefts if s.number == times.left)
    one, other = left.format_time(), times.right.format_time()
    if lower is None and upper is None:
        missing = f"the time between {one} and {other} has no bound"
        clause = f"AND {other} BETWEEN {one} AND {one} + INTERVAL '1' HOUR"
    elif lower is None:
        missing = f"without a lower bound {other} may be any time before {one}"
        clause = f"AND {other} >= {one}"
    else:
        missing = f"without an upper bound {other} may be any time after {one}"
        clause = f"AND {other} <= {one} + INTERVAL '1' HOUR"
    message = f"the join of {format_name(times.right.alias)} would keep its rows forever: {missing}"
    findings.add("W2104", message, times.join.at, f"add to ON, with the length that your data needs:\n{clause}")


def _add_line(help: str, bounds: TimeBounds) -> str:
    at = next((at for at in bounds.locations if at is not None), None)
    return help if at is None else f"{help}; the condition is in line {at.line}"


def _format_bounds(bounds: TimeBounds) -> str:
    return _format_range(bounds.lower, bounds.upper)


def _format_range(lower: int | None, upper: int | None) -> str:
    """Return a range of time for messages.

    >>> _format_range(0, 86_400_000_000), _format_range(None, 1_000_000)
    ('[0s, 1d]', '[.., 1s]')
    """
    low, high = (".." if end is None else str(Duration(end)) for end in (lower, upper))
    return f"[{low}, {high}]"
