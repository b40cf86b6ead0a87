"""The rule of a join as a picture: a few example rows, matched as the spec says."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from weft.errors import ArgumentError
from weft.joins.picture import Picture
from weft.joins.spec.asof import UNBOUNDED, AsofSpec
from weft.joins.spec.join import JoinSpec
from weft.joins.spec.temporal import IntervalSpec, WindowSpec
from weft.joins.spec.values import Distance, parse_distance
from weft.joins.timeline import Lane, Mark, Scale, Span, Timeline, draw_timeline

# Positions have no unit; a tolerance, the longest bound and a window have the length that makes the picture clear.
_TOLERANCE, _REACH, _SIZE = 2.5, 4.0, 5.0
_END = 16.0
_ASOF_LEFT, _ASOF_RIGHT = (0.5, 3.25, 7.0, 9.2, 15.0), (1.5, 5.0, 7.0, 10.5)
_NEAR_LEFT, _NEAR_RIGHT = (3.0, 9.0, 14.0), (0.5, 2.0, 3.8, 5.4, 7.0, 8.3, 9.0, 11.2, 13.0, 15.5)
_POINTS = (1.5, 5.0, 8.0, 13.5)
_RANGES: tuple[Span, ...] = ((0.0, 4.0), (5.0, 8.0), (9.0, 11.0), (12.0, math.inf))
_LEFT_RANGES: tuple[Span, ...] = ((1.0, 3.0), (3.5, 6.0), (8.0, 8.6), (10.0, 13.0))
_WINDOW_LEFT, _WINDOW_RIGHT = (1.0, 3.5, 6.0, 14.0), (2.5, 4.6, 8.0, 10.5)
_GAP = 1.75


def sketch_rule(spec: JoinSpec, title: str = "") -> Picture:
    """Return a picture of what a spec matches, with example rows of one key."""
    title = title or str(spec)
    if isinstance(spec, AsofSpec):
        return _draw(spec, title, *_asof(spec))
    if isinstance(spec, IntervalSpec):
        return _draw(spec, title, *(_ranges(spec) if spec.has_ranges else _bounds(spec)))
    if isinstance(spec, WindowSpec):
        return _draw(spec, title, *_windows(spec))
    raise refuse_picture("plot")


def refuse_picture(method: str) -> ArgumentError:
    """Return the error for a join that has no time axis."""
    return ArgumentError(
        f"{method}: this join compares keys only, so there is no timeline to draw",
        code="W0305",
        help="draw an as-of, interval or window join; inspect_matches(left, right, spec).plot() shows the match rate of "
        "any join",
    )


def _draw(spec: AsofSpec | IntervalSpec | WindowSpec, title: str, lane: Lane, reach_name: str) -> Picture:
    left, right = (f"{side}.{name}" for side, name in (("left", spec.order.left), ("right", spec.order.right)))
    notes = tuple(_describe_rest(spec))
    timeline = Timeline(
        title=title,
        left_name=left,
        right_name=right,
        scale=Scale("none"),
        lanes=(lane,),
        reach_name=reach_name,
        notes=("Example rows of one key; distances are not to scale.", *notes),
    )
    return draw_timeline(timeline)


def _describe_rest(spec: AsofSpec | IntervalSpec | WindowSpec) -> Iterable[str]:
    """Yield what also decides but is not drawn."""
    if spec.predicates:
        yield f"A pair must also satisfy: {' AND '.join(map(str, spec.predicates))}"
    if isinstance(spec, IntervalSpec) and spec.open_start:
        yield "A range whose start is NULL has no start: it contains all times before its end."
    if isinstance(spec, AsofSpec):
        if spec.range_predicates:
            yield f"A pair must also satisfy: {' AND '.join(map(str, spec.range_predicates))}"
        if spec.known is not None:
            yield f"Only right rows with {spec.known.right} at or before left.{spec.known.left} are candidates."
        if spec.until is not None:
            yield f"A match ends at right.{spec.until}; after it the left row has none."
        if spec.tombstone is not None:
            yield f"If right.{spec.tombstone} is true in the nearest row, the left row has no match."
        if spec.skip_nulls:
            yield "Some columns take the nearest value that is not NULL, from an earlier or later row."


def match_marks(
    left: Sequence[Mark], right: Sequence[Mark], pairs: Iterable[tuple[int, int]]
) -> tuple[tuple[Mark, ...], tuple[Mark, ...], tuple[tuple[int, int], ...]]:
    """Return both sides with the rows of the pairs marked as matched, and the pairs."""
    kept = tuple(dict.fromkeys(pairs))
    ours, theirs = {i for i, _ in kept}, {j for _, j in kept}

    def marked(marks: Sequence[Mark], which: set[int]) -> tuple[Mark, ...]:
        return tuple(Mark(m.start, m.end, n in which) for n, m in enumerate(marks))

    return marked(left, ours), marked(right, theirs), kept


def _lane(
    left: Sequence[Mark],
    right: Sequence[Mark],
    matches: Callable[[int, int], bool],
    *,
    reach: tuple[Span, ...] = (),
    windows: tuple[Span, ...] = (),
) -> Lane:
    pairs = [(i, j) for i in range(len(left)) for j in range(len(right)) if matches(i, j)]
    ours, theirs, kept = match_marks(left, right, pairs)
    return Lane(left=ours, right=theirs, pairs=kept, reach=reach, windows=windows)


def _asof(spec: AsofSpec) -> tuple[Lane, str]:
    limit, name = math.inf, ""
    if spec.tolerance is not None and spec.tolerance != UNBOUNDED:
        limit = _TOLERANCE if parse_distance(spec.tolerance, "tolerance") else 0.0
        name = f"within {spec.tolerance} of a left row"
    back = limit if spec.direction in ("backward", "nearest") else 0.0
    ahead = limit if spec.direction in ("forward", "nearest") else 0.0

    def find(time: float) -> int | None:
        candidates = [
            (abs(other - time), (other > time) != (spec.nearest_tie == "forward"), j)
            for j, other in enumerate(_ASOF_RIGHT)
            if time - back <= other <= time + ahead and (spec.allow_exact_matches or other != time)
        ]
        return min(candidates)[2] if candidates else None

    chosen = [find(time) for time in _ASOF_LEFT]
    reach = tuple((time - back, time + ahead) for time in _ASOF_LEFT) if name else ()
    lane = _lane(_points(_ASOF_LEFT), _points(_ASOF_RIGHT), lambda i, j: chosen[i] == j, reach=reach)
    return lane, name


def _points(times: Iterable[float]) -> tuple[Mark, ...]:
    return tuple(map(Mark, times))


def _spans(spans: Iterable[Span]) -> tuple[Mark, ...]:
    return tuple(Mark(*span) for span in spans)


def _bounds(spec: IntervalSpec) -> tuple[Lane, str]:
    def size(distance: Distance | None, what: str) -> float | None:
        return None if distance is None else float(parse_distance(distance, what, signed=True))

    lower, upper = size(spec.lower, "lower"), size(spec.upper, "upper")
    # The bounds keep their signs and their ratio.
    known = [abs(d) for d in (lower, upper) if d is not None]
    most = max((*known, (upper - lower) if lower is not None and upper is not None else 0.0))
    unit = _REACH / most if most else 1.0
    low = -math.inf if lower is None else lower * unit
    high = math.inf if upper is None else upper * unit
    reach = tuple((time + low, time + high) for time in _NEAR_LEFT)
    lane = _lane(
        _points(_NEAR_LEFT),
        _points(_NEAR_RIGHT),
        lambda i, j: reach[i][0] <= _NEAR_RIGHT[j] <= reach[i][1],
        reach=reach,
    )
    first = "any time before" if spec.lower is None else f"from {spec.lower}"
    last = "to any time after" if spec.upper is None else f"to {spec.upper}"
    return lane, f"{first} {last} of a left row"


def _ranges(spec: IntervalSpec) -> tuple[Lane, str]:
    if spec.left_end is None:
        left, right = _points(_POINTS), _spans(_RANGES)
    elif spec.right_end is None:
        left, right = _spans(_RANGES), _points(_POINTS)
    else:
        left, right = _spans(_LEFT_RANGES), _spans(_RANGES)

    def begins_before(start: float, other: Mark) -> bool:
        end = other.start if other.end is None else other.end
        # The end of a range belongs to it if the spec says so; a time always belongs to itself.
        return start <= end if spec.closed or other.end is None else start < end

    def matches(i: int, j: int) -> bool:
        return begins_before(left[i].start, right[j]) and begins_before(right[j].start, left[i])

    return _lane(left, right, matches), ""


def _windows(spec: WindowSpec) -> tuple[Lane, str]:
    if spec.window == "session":
        windows = find_sessions((*_WINDOW_LEFT, *_WINDOW_RIGHT), _GAP)
    elif spec.slide is None or spec.size is None:
        windows = _every(_SIZE, _SIZE)
    else:
        share = float(parse_distance(spec.slide, "slide") / parse_distance(spec.size, "size"))
        # Many narrow slides would be a grey surface.
        windows = _every(_SIZE, _SIZE * max(share, 0.2))

    def matches(i: int, j: int) -> bool:
        return any(a <= _WINDOW_LEFT[i] < b and a <= _WINDOW_RIGHT[j] < b for a, b in windows)

    return _lane(_points(_WINDOW_LEFT), _points(_WINDOW_RIGHT), matches, windows=windows), ""


def _every(size: float, slide: float) -> tuple[Span, ...]:
    count = math.ceil(_END / slide)
    first = 1 - math.ceil(size / slide)
    return tuple((n * slide, n * slide + size) for n in range(first, count))


def find_sessions(times: Iterable[float], gap: float) -> tuple[Span, ...]:
    """Return the sessions of the times of both sides: each ends `gap` after its last row.

    >>> find_sessions((1.0, 2.0, 9.0), 2.0)
    ((1.0, 4.0), (9.0, 11.0))
    """
    ordered = sorted(times)
    if not ordered:
        return ()
    starts = [ordered[0], *(b for a, b in pairwise(ordered) if b - a > gap)]
    lasts = [*(a for a, b in pairwise(ordered) if b - a > gap), ordered[-1]]
    return tuple((start, last + gap) for start, last in zip(starts, lasts, strict=True))
