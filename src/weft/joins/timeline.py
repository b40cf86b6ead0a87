"""Two timelines with their matches: rows of the left side above, rows of the right side below."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal
from zoneinfo import ZoneInfo

from weft.joins.picture import (
    FAINT,
    INK,
    LEFT,
    QUIET,
    RIGHT,
    Box,
    Dot,
    Label,
    Line,
    Picture,
    Shape,
    measure_text,
    shorten_text,
)

Span = tuple[float, float]
Across = Callable[[float], float]
"""From a position on the axis to pixels."""
_WIDTH, _MARGIN, _GUTTER = 760.0, 16.0, 122.0
_LANES_APART, _ROOM, _TRACK = 64.0, 26.0, 9.0
_RADIUS = 5.0
_MOST_TICKS = 7
_SECOND = 1_000_000
_MINUTE, _HOUR, _DAY = 60 * _SECOND, 3600 * _SECOND, 86_400 * _SECOND
_TIME_STEPS = (
    *(m * 10**e for e in range(6) for m in (1, 2, 5)),
    *(s * _SECOND for s in (1, 2, 5, 10, 15, 30)),
    *(m * _MINUTE for m in (1, 2, 5, 10, 15, 30)),
    *(h * _HOUR for h in (1, 2, 3, 6, 12)),
    *(d * _DAY for d in (1, 2, 5, 10, 30, 90, 180, 365, 730, 1825, 3650, 7300, 18250, 36500, 182500, 365000)),
)
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


@dataclass(frozen=True, slots=True)
class Mark:
    """A row of one side: a time, or a range from `start` to `end`; infinite ends are open."""

    start: float
    end: float | None = None
    matched: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """The rows of one key on both sides, and which of them match.

    `pairs` are indexes into `left` and `right`, `reach` has the part of the right timeline that each left row may
    match, and `windows` are drawn behind both sides.
    """

    name: str = ""
    left: tuple[Mark, ...]
    right: tuple[Mark, ...]
    pairs: tuple[tuple[int, int], ...]
    reach: tuple[Span, ...] = ()
    windows: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class Scale:
    """How positions are labelled: microseconds since 1970 as times of a zone, numbers, or not at all."""

    kind: Literal["time", "number", "none"]
    zone: str = "UTC"
    least_step: float = 0

    def choose_ticks(self, low: float, high: float) -> tuple[tuple[float, str], ...]:
        """Return the positions between two others that get a label, and the labels.

        >>> Scale("number").choose_ticks(0, 10)
        ((0.0, '0'), (2.0, '2'), (4.0, '4'), (6.0, '6'), (8.0, '8'), (10.0, '10'))
        """
        if self.kind == "none":
            return ()
        step = self._choose_step(high - low)
        # Ticks are at full hours and days of the zone, not of UTC.
        shift = self._offset(low) if self.kind == "time" else 0.0
        first, last = math.ceil((low + shift) / step), math.floor((high + shift) / step)
        places = [n * step - shift for n in range(first, last + 1)]
        return tuple((place, self._format(place, step, high - low)) for place in places)

    def _choose_step(self, length: float) -> float:
        least = max(length / _MOST_TICKS, self.least_step)
        if self.kind == "time":
            for step in map(float, _TIME_STEPS):
                if step >= least:
                    return step
        power = math.pow(10, math.floor(math.log10(least)))
        return next((m * power for m in (1.0, 2.0, 5.0) if m * power >= least), 10 * power)

    def _moment(self, place: float) -> dt.datetime:
        return (_EPOCH + dt.timedelta(microseconds=round(place))).astimezone(ZoneInfo(self.zone))

    def _offset(self, place: float) -> float:
        try:
            offset = self._moment(place).utcoffset()
        except OverflowError:
            return 0.0
        return offset.total_seconds() * _SECOND if offset else 0.0

    def _format(self, place: float, step: float, length: float) -> str:
        if self.kind == "number":
            digits = max(0, -math.floor(math.log10(step)))
            return f"{place:,.{digits}f}" if digits < 12 and abs(place) < 1e15 else f"{place:g}"
        try:
            moment = self._moment(place)
        except OverflowError:
            return f"{place:g}"
        if step >= _DAY:
            return f"{moment:%Y-%m-%d}"
        clock = f"{moment:%H:%M}" if step >= _MINUTE else f"{moment:%H:%M:%S}"
        if step < _SECOND:
            clock += f".{moment.microsecond:06}".rstrip("0").rstrip(".")
        return f"{moment:%m-%d} {clock}" if length >= _DAY else clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """All that a picture of matches shows; positions are numbers on one axis."""

    title: str
    left_name: str
    right_name: str
    scale: Scale
    lanes: tuple[Lane, ...]
    reach_name: str = ""
    notes: tuple[str, ...] = ()


def is_zone(name: str) -> bool:
    """Whether Python knows a time zone by this name."""
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return False
    return True


def draw_timeline(timeline: Timeline) -> Picture:
    """Return the picture: for each key the left rows, below them the right rows, and a line for each pair."""
    low, high = _extent(timeline.lanes)

    def across(place: float) -> float:
        inner = _WIDTH - _GUTTER - 2 * _MARGIN
        clipped = min(max(place, low), high)
        return _GUTTER + _MARGIN + inner * (clipped - low) / (high - low)

    shapes: list[Shape] = [
        Label(_MARGIN, 26, shorten_text(timeline.title, _WIDTH - 2 * _MARGIN, 13), bold=True, size=13)
    ]
    y = 46.0
    for lane in timeline.lanes:
        drawn, y = _draw_lane(timeline, lane, y, across)
        shapes += drawn
    shapes += _draw_axis(timeline.scale, low, high, y, across)
    y += 26 if timeline.scale.kind != "none" else 4
    shapes += _draw_legend(timeline, y)
    y += 22
    for note in timeline.notes:
        shapes.append(Label(_MARGIN, y + 10, shorten_text(note, _WIDTH - 2 * _MARGIN, 11), color=QUIET, size=11))
        y += 17
    return Picture(title=_describe(timeline), width=_WIDTH, height=y + 8, shapes=tuple(shapes))


def _extent(lanes: Sequence[Lane]) -> Span:
    """Return the first and last position to draw, with a margin."""
    # Reach and windows are clipped, so that an unlimited or very long one does not press the rows together.
    places = [p for lane in lanes for m in (*lane.left, *lane.right) for p in (m.start, m.end) if p is not None]
    finite = [p for p in places if math.isfinite(p)]
    low, high = (min(finite), max(finite)) if finite else (0.0, 1.0)
    margin = (high - low) * 0.04 or max(abs(low) * 1e-9, 1.0)
    return low - margin, high + margin


def _draw_lane(timeline: Timeline, lane: Lane, top: float, across: Across) -> tuple[list[Shape], float]:
    shapes: list[Shape] = []
    if lane.name:
        shapes.append(Label(_MARGIN, top + 10, shorten_text(lane.name, _WIDTH - 2 * _MARGIN, 12), color=INK, bold=True))
        top += 16
    tracks = _stack(lane.windows)
    overlapping = max(tracks, default=0) > 0
    upper = top + _ROOM + (_TRACK * (1 + max(tracks)) if overlapping else 0)
    lower = upper + _LANES_APART
    for place, ((start, end), track) in enumerate(zip(lane.windows, tracks, strict=True)):
        x1, x2 = across(start), across(end)
        if x2 - x1 < 2:
            continue
        if overlapping:
            shapes.append(Box(x1 + 1, top + 8 + _TRACK * track, x2 - x1 - 2, _TRACK - 4, QUIET, opacity=0.45))
        else:
            shapes.append(Box(x1, top + 4, x2 - x1, lower + 14 - top, QUIET, opacity=0.2 if place % 2 else 0.1))
    ends = across(-math.inf), across(math.inf)
    for start, end in lane.reach:
        x1, x2 = across(start), across(end)
        shapes.append(Box(x1, lower - 11, max(x2 - x1, 1.5), 22, LEFT, opacity=0.16))
    for y, name, color in ((upper, timeline.left_name, LEFT), (lower, timeline.right_name, RIGHT)):
        shapes.append(Line(ends[0], y, ends[1], y, color=FAINT, width=2))
        shapes.append(Label(_GUTTER, y + 4, shorten_text(name, _GUTTER - _MARGIN, 12), color=color, anchor="end"))
    for i, j in lane.pairs:
        shapes.append(Line(_middle(lane.left[i], across), upper, _middle(lane.right[j], across), lower, color=QUIET))
    shapes += (shape for mark in lane.left for shape in _draw_mark(mark, upper, LEFT, across))
    shapes += (shape for mark in lane.right for shape in _draw_mark(mark, lower, RIGHT, across))
    return shapes, lower + _ROOM


def _middle(mark: Mark, across: Across) -> float:
    end = mark.start if mark.end is None else mark.end
    return float(across(mark.start) + across(end)) / 2


def _draw_mark(mark: Mark, y: float, color: str, across: Across) -> Iterator[Shape]:
    x = across(mark.start)
    if mark.end is None:
        yield Dot(x, y, _RADIUS, color, filled=mark.matched)
    else:
        yield Box(x, y - 5, max(across(mark.end) - x, 2), 10, color, filled=mark.matched)


def _stack(windows: Sequence[Span]) -> list[int]:
    """Return for each window the first track in which it overlaps no other one."""
    ends: list[float] = []
    tracks = []
    for start, end in windows:
        # Ends and starts of neighbours may differ by a rounding error.
        track = next((t for t, busy in enumerate(ends) if busy <= start + (end - start) * 1e-9), len(ends))
        ends[track : track + 1] = [end]
        tracks.append(track)
    return tracks


def _draw_axis(scale: Scale, low: float, high: float, y: float, across: Across) -> Iterator[Shape]:
    if scale.kind == "none":
        return
    yield Line(across(low), y, across(high), y, color=QUIET, width=1)
    for place, label in scale.choose_ticks(low, high):
        yield Line(across(place), y, across(place), y + 4, color=QUIET, width=1)
        yield Label(across(place), y + 17, label, color=QUIET, size=11, anchor="middle")


def _draw_legend(timeline: Timeline, y: float) -> Iterator[Shape]:
    """Yield what filled and empty marks, and shaded parts, mean."""
    x = _GUTTER + _MARGIN
    middle = y + 6

    def text(at: float, what: str) -> Label:
        return Label(at, middle + 4, what, color=QUIET, size=11)

    yield Dot(x + 4, middle, 4, LEFT)
    yield Dot(x + 15, middle, 4, RIGHT)
    yield text(x + 25, "has a match")
    x += 106
    yield Dot(x + 4, middle, 4, LEFT, filled=False)
    yield Dot(x + 15, middle, 4, RIGHT, filled=False)
    yield text(x + 25, "has none")
    x += 92
    if timeline.reach_name:
        yield Box(x, middle - 6, 18, 12, LEFT, opacity=0.16)
        yield text(x + 24, timeline.reach_name)
        x += 40 + measure_text(timeline.reach_name, 11)
    if any(lane.windows for lane in timeline.lanes):
        yield Box(x, middle - 6, 18, 12, QUIET, opacity=0.2)
        yield text(x + 24, "a window")


def _describe(timeline: Timeline) -> str:
    """Return the picture in words, for readers who do not see it."""
    pairs = sum(len(lane.pairs) for lane in timeline.lanes)
    left = [m for lane in timeline.lanes for m in lane.left]
    alone = sum(not m.matched for m in left)
    return (
        f"{timeline.title}: {len(left)} {timeline.left_name} rows, "
        f"{sum(len(lane.right) for lane in timeline.lanes)} {timeline.right_name} rows, "
        f"{pairs} matches, {alone} {timeline.left_name} rows without a match"
    )
