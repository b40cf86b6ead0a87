"""The time part of a join: what ON, WHERE, WITHIN, WINDOW, options and defaults say, made one.

Before::

    ON ... AND s.t >= o.t WITHIN '1h'

After::

    s.t - o.t in [0s, 1h]   (ON and WITHIN)
"""

from __future__ import annotations

from dataclasses import dataclass

from weft.core.duration import Duration
from weft.core.findings import Findings
from weft.core.names import format_name
from weft.core.source import Source
from weft.errors import SourceLocation
from weft.joins.spec.temporal import IntervalSpec, WindowSpec
from weft.joins.spec.values import parse_distance
from weft.streams.plan.bounds import FoundBounds
from weft.streams.plan.scope import FromSource
from weft.streams.sql.spec import Bounds, JoinStepSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Both ends of ``right time - left time`` in microseconds, and who said them."""

    left: int
    lower: int
    upper: int
    said_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Windowed:
    """A window join: the spec of its window, and the earlier source whose time is cut."""

    left: int
    window: WindowSpec
    said_by: str


Form = Interval | Windowed


@dataclass(frozen=True, slots=True, kw_only=True)
class Saying:
    """Everything that says something of the times of one join."""

    join: JoinStepSpec
    bounds: FoundBounds
    default: Bounds | None
    lefts: tuple[FromSource, ...]
    right: FromSource
    is_misplaced: bool = False
    """Whether WHERE says a bound that cannot hold for the join; that is told elsewhere."""

    def source(self, number: int) -> FromSource:
        """Return the earlier source with this number."""
        return next(s for s in self.lefts if s.number == number)


def settled_form(said: Saying, findings: Findings) -> Form | None:
    """Return the time part of a stream-stream join, or None after noting what is wrong with it."""
    if said.bounds.is_empty:
        _nothing_left(said, findings)
        return None
    form = said.join.form
    if isinstance(form, WindowSpec):
        return _windowed(said, form, findings)
    if form is not None:
        return _interval(said, form, findings)
    bounds = said.bounds
    if bounds.left is not None and bounds.is_closed:
        return _made(bounds.left, bounds.lower, bounds.upper, "ON")
    if said.default is not None:
        return _default(said, said.default, findings)
    _unbounded(said, findings)
    return None


def first_stream(said: Saying) -> int:
    """Return the earlier stream whose time counts when no condition names one."""
    if said.bounds.left is not None:
        return said.bounds.left
    return next(s.number for s in said.lefts if s.is_stream)


def _made(left: int, lower: int | None, upper: int | None, said_by: str) -> Interval:
    assert lower is not None and upper is not None  # noqa: S101, PT018  # the callers asked for both
    return Interval(left=left, lower=lower, upper=upper, said_by=said_by)


def _windowed(said: Saying, form: WindowSpec, findings: Findings) -> Windowed | None:
    if said.bounds.is_closed:
        findings.add(
            "W2106",
            f"the join has a {form.window} window and the bound {_range(said.bounds)} in its condition",
            said.join.form_at or said.join.at,
            "leave out one of them: a window join compares windows, an interval join distances",
        )
        return None
    return Windowed(left=first_stream(said), window=form, said_by="WINDOW")


def _interval(said: Saying, form: IntervalSpec, findings: Findings) -> Interval | None:
    lower = None if form.lower is None else int(parse_distance(form.lower, "lower", signed=True))
    upper = None if form.upper is None else int(parse_distance(form.upper, "upper", signed=True))
    bounds, left = said.bounds, first_stream(said)
    if bounds.is_closed:
        if (lower, upper) in ((bounds.lower, bounds.upper), (None, bounds.upper), (bounds.lower, None)):
            return _made(left, bounds.lower, bounds.upper, "ON")
        findings.add(
            "W2106",
            f"the condition says {_range(bounds)}, WITHIN or the options say {_ends(lower, upper)}",
            said.join.form_at or said.join.at,
            _also("leave out one of them", bounds),
        )
        return None
    by = "WITHIN"
    if bounds.lower is not None or bounds.upper is not None:
        by = "ON and WITHIN"
        lows = [b for b in (lower, bounds.lower) if b is not None]
        highs = [b for b in (upper, bounds.upper) if b is not None]
        lower, upper = max(lows, default=None), min(highs, default=None)
    if lower is None or upper is None:
        _unbounded(said, findings, lower=lower, upper=upper)
        return None
    if lower > upper:
        findings.add(
            "W2105",
            f"no time lies in {_ends(lower, upper)}: the condition and WITHIN or the options leave nothing",
            said.join.form_at or said.join.at,
            _also("exchange the two ends or widen one of them", bounds),
        )
        return None
    return _made(left, lower, upper, by)


def _default(said: Saying, default: Bounds, findings: Findings) -> Interval | None:
    low, high = (end.microseconds for end in default)
    bounds = said.bounds
    lower = low if bounds.lower is None else max(low, bounds.lower)
    upper = high if bounds.upper is None else min(high, bounds.upper)
    if lower > upper:
        findings.add(
            "W2105",
            f"join.default_bound {_ends(low, high)} and the condition {_range(bounds)} leave nothing",
            said.join.at,
            _also("write both ends in ON", bounds),
        )
        return None
    by = "join.default_bound" if bounds.left is None else "ON and join.default_bound"
    return _made(first_stream(said), lower, upper, by)


def _nothing_left(said: Saying, findings: Findings) -> None:
    low, high = said.bounds.places
    at = high or low or said.join.at
    other = low if at is high else None
    findings.add(
        "W2105",
        f"no time lies in {_range(said.bounds)}: the lower end is above the upper one",
        at,
        "exchange the two ends or widen one of them"
        + (f"; the lower end is in line {other.line}, column {other.column}" if other else ""),
    )


def _unbounded(
    said: Saying, findings: Findings, *, lower: int | None = None, upper: int | None = None
) -> None:
    if said.is_misplaced:
        return
    lower = said.bounds.lower if lower is None else lower
    upper = said.bounds.upper if upper is None else upper
    left = said.source(first_stream(said))
    one, other = left.said_time, said.right.said_time
    if lower is None and upper is None:
        missing = f"nothing bounds the time between {one} and {other}"
        clause = f"AND {other} BETWEEN {one} AND {one} + INTERVAL '1' HOUR"
    elif lower is None:
        missing = f"{other} may lie any time before {one}: there is no lower end"
        clause = f"AND {other} >= {one}"
    else:
        missing = f"{other} may lie any time after {one}: there is no upper end"
        clause = f"AND {other} <= {one} + INTERVAL '1' HOUR"
    findings.add(
        "W2104",
        f"the join of {format_name(said.right.alias)} would keep its rows for ever: {missing}",
        said.join.at,
        f"add to ON, with the length that is right for your data:\n{clause}",
    )


def _also(help: str, bounds: FoundBounds) -> str:
    place: SourceLocation | None = next((p for p in bounds.places if p is not None), None)
    return f"{help}; the condition is in line {place.line}" if isinstance(place, Source) else help


def _range(bounds: FoundBounds) -> str:
    return _ends(bounds.lower, bounds.upper)


def _ends(lower: int | None, upper: int | None) -> str:
    """Return a range of time for messages.

    >>> _ends(0, 86_400_000_000), _ends(None, 1_000_000)
    ('[0s, 1d]', '[.., 1s]')
    """
    low, high = (".." if end is None else str(Duration(end)) for end in (lower, upper))
    return f"[{low}, {high}]"
