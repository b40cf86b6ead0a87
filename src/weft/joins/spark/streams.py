"""Streaming frames: what Spark cannot keep is refused here, and two streams are joined by Spark itself.

Joins of two streams that stay lazy frames: Spark's own symmetric hash join, with guards around it.

Before::

    l FULL JOIN r ON l.k = r.k AND r.t BETWEEN l.t AND l.t + 1h          l and r are streams

After::

    l FULL JOIN r ON l.k = r.k AND r.t >= l.t AND r.t <= l.t + 1h
                 AND l.k IS NOT NULL AND r.k IS NOT NULL

Spark's full join alone would match NULL keys.  A condition about one side is asked before a row is
stored: a row that fails it is padded at once on an outer side and gone on the other.  Rows with a NULL
time would stay in its state for ever: on an outer side they fail the query or are left out before the
join, on the other a condition keeps them out.

Spark adds days by the calendar of the session's zone, where a day may have 23 or 25 hours.  There a bound
of a day or more is asked of the microseconds, beside a wider one that Spark can read.  Each side may carry one column with a watermark, so the watermark of all
others is taken off before the join.
"""

from __future__ import annotations

import datetime as dt
import operator
import re
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any, Literal

from weft.core.duration import Duration
from weft.core.findings import ErrorCollector
from weft.core.names import LEFT, RIGHT, internal_name, quote
from weft.core.types import TIMESTAMP
from weft.errors import ArgumentError, StreamPlanError
from weft.joins.choose import Choice
from weft.joins.resolve.axis import DAY, Axis
from weft.joins.resolve.resolved import AsOf, Exact, Overlap, ResolvedJoin, SameWindow, Side, Within
from weft.joins.spark.axis import Places
from weft.joins.spark.contracts import PREFIX, SINGLE, checked, key_text
from weft.joins.spark.equi import SPARK_HOW, begun, how_that_shows_unmatched, shown
from weft.joins.spark.sides import RIGHT_HERE, Sides
from weft.joins.spark.window_join import per_window_rows, shared_window

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


NullTime = Literal["error", "drop"]
WATERMARK = "spark.watermarkDelayMs"
"""The metadata of a column that `withWatermark` has named."""

_WINDOW = {"left": "__weft_left_window", "right": "__weft_right_window"}
_NAMES = {"left": LEFT, "right": RIGHT}
_EVEN = re.compile(r"(?i)Z|(?:Etc/)?(?:UTC|UCT|GMT|UT|Zulu|Universal|Greenwich)?(?:[+-][0-9:]+)?")
_UNEVEN = 25 * 3_600_000_000
"""More than a day of a calendar can differ from 24 hours."""
_OUTER = {"left": ("left", "full", "anti"), "right": ("right", "full")}
_SIDES: tuple[Side, ...] = ("left", "right")


def lower(
    left: DataFrame, right: DataFrame, join: ResolvedJoin, *, on_null_time: NullTime = "error"
) -> DataFrame:
    """Return the joined stream; nothing runs.  `stream_choice` has checked that Spark can do it."""
    match = join.match
    assert isinstance(match, Within | SameWindow)  # noqa: S101  # others are refused
    how = how_that_shows_unmatched(join)
    sides = begun(left, right, join, None)
    for side in _SIDES:
        sides = _one_watermark(sides, side, _order(match, side))
        if how in _OUTER[side]:
            sides = _timed(sides, side, _order(match, side), on_null_time)
    if isinstance(match, SameWindow) and match.kind == "tumbling":
        sides, meets = _windowed(sides, match)
    else:
        meets = _meets(sides, match)
    joined = _joined(sides, how, meets, match)
    joined = checked(joined, sides)
    if isinstance(match, SameWindow) and _copies(match) and how not in ("semi", "anti"):
        joined = per_window_rows(joined, Places(sides, Axis(TIMESTAMP)), match)
    return shown(joined, sides, None)


def _copies(match: SameWindow) -> bool:
    return match.kind == "sliding" and match.per_window


def _order(match: Within | SameWindow, side: Side) -> int:
    return match.left if side == "left" else match.right


def _joined(sides: Sides, how: str, meets: Column, match: Within | SameWindow) -> DataFrame:
    """Return the joined rows; an anti join is the padded rows of a left one, which Spark can do."""
    said = sides.condition()
    assert said is not None  # noqa: S101  # a stream join has a key
    condition = said & meets & _guards(sides, how, match)
    if how != "anti":
        return sides.left.join(sides.right, condition, SPARK_HOW[how])
    marked = sides.right.withColumn(RIGHT_HERE, sides.F.lit(True))
    both = sides.left.join(marked, condition, SPARK_HOW["left"])
    return both.filter(sides.F.col(RIGHT_HERE).isNull()).select(*sides.left.columns)


def _guards(sides: Sides, how: str, match: Within | SameWindow) -> Column:
    """Return that keys and times are there; NULL keys may meet when the join says so.

    The times of an outer side are there already: `_timed` has seen to it.
    """
    there = []
    if how not in _OUTER["left"]:
        there.append(sides.left_column(match.left))
    if how not in _OUTER["right"]:
        there.append(sides.right_column(match.right))
    if not sides.join.nulls_equal:
        for key in sides.join.keys:
            there += [sides.left_column(key.left), sides.right_column(key.right)]
    condition: Column = reduce(operator.and_, (c.isNotNull() for c in there), sides.F.lit(True))
    return condition


def _meets(sides: Sides, match: Within | SameWindow) -> Column:
    """Return the condition on the times of a pair."""
    if isinstance(match, Within):
        assert isinstance(match.lower, int)  # noqa: S101  # both ends of a bound in time are there
        assert isinstance(match.upper, int)  # noqa: S101
        return _between(sides, match, match.lower, match.upper)
    assert match.size is not None  # noqa: S101  # tumbling and sliding windows have one
    near = _between(sides, match, 1 - match.size, match.size - 1)
    return near & shared_window(Places(sides, Axis(TIMESTAMP)), match)


def _between(sides: Sides, match: Within | SameWindow, lower: int, upper: int) -> Column:
    """Return the bounds in the one form that Spark reads them from, to know when a row is over."""
    F = sides.F
    left, right = sides.left_column(match.left), sides.right_column(match.right)
    if max(abs(lower), abs(upper)) < DAY or has_even_days(_zone(sides)):
        return (right >= _moved(F, left, lower)) & (right <= _moved(F, left, upper))
    apart = F.unix_micros(right) - F.unix_micros(left)
    loose = (right >= _moved(F, left, lower - _UNEVEN)) & (right <= _moved(F, left, upper + _UNEVEN))
    exact: Column = (apart >= F.lit(lower).cast("long")) & (apart <= F.lit(upper).cast("long"))
    return loose & exact


def _moved(F: Any, time: Column, microseconds: int) -> Column:
    # Spark's sum of a time and an interval is dear, even where the interval is nothing.
    return time + F.lit(dt.timedelta(microseconds=microseconds)) if microseconds else time


def _zone(sides: Sides) -> str:
    return str(sides.left.sparkSession.conf.get("spark.sql.session.timeZone"))


def has_even_days(zone: str) -> bool:
    """Whether all days of a session's zone have 24 hours.

    >>> has_even_days("UTC"), has_even_days("+05:30"), has_even_days("Europe/Berlin")
    (True, True, False)
    """
    return bool(_EVEN.fullmatch(zone.strip()))


def _windowed(sides: Sides, match: SameWindow) -> tuple[Sides, Column]:
    """Return the sides with the window of each row, which carries the watermark on, and that they are equal."""
    F = sides.F
    for side in _SIDES:
        name = internal_name(_NAMES[side], _order(match, side))
        frame = sides.left if side == "left" else sides.right
        # The window comes first: it must be cut from the column that has the watermark.
        frame = frame.withColumn(_WINDOW[side], F.window(F.col(name), f"{match.size} microseconds"))
        sides = _with(sides, side, _without_watermark(F, frame, name))
    return sides, F.col(_WINDOW["left"]) == F.col(_WINDOW["right"])


def _one_watermark(sides: Sides, side: Side, order: int) -> Sides:
    """Return the sides with the watermark of the order column alone; Spark refuses two at the first batch."""
    frame = sides.left if side == "left" else sides.right
    kept = internal_name(_NAMES[side], order)
    for field in frame.schema.fields:
        if WATERMARK in (field.metadata or {}) and field.name != kept:
            frame = _without_watermark(sides.F, frame, field.name)
    return _with(sides, side, frame)


def _without_watermark(F: Any, frame: DataFrame, name: str) -> DataFrame:
    field = frame.schema[name]
    plain = {key: value for key, value in (field.metadata or {}).items() if key != WATERMARK}
    columns = [F.col(n).alias(n, metadata=plain) if n == name else F.col(n) for n in frame.columns]
    return frame.select(*columns)


def _timed(sides: Sides, side: Side, order: int, on_null_time: NullTime) -> Sides:
    """Return the sides without rows of an outer side that have no time, or failing at the first."""
    F = sides.F
    column = sides.left_column(order) if side == "left" else sides.right_column(order)
    frame = sides.left if side == "left" else sides.right
    if on_null_time == "drop":
        return _with(sides, side, frame.filter(column.isNotNull()))
    join = sides.join
    start = F.lit(f"{PREFIX} W2207 a {side} row has no event time: ")
    end = F.lit(f" (spec {join.spec_fingerprint[:12]}, join {join.fingerprint[:12]})")
    message = F.concat(start, key_text(sides, side), end)
    # Not deterministic, as in `weft.joins.spark.contracts`: Spark would look for NULLs first and find none to tell of.
    told = F.when(column.isNull(), F.raise_error(message).cast("boolean"))
    return _with(sides, side, frame.filter(told.otherwise(F.spark_partition_id() >= 0)))


def _with(sides: Sides, side: Side, frame: DataFrame) -> Sides:
    return replace(sides, left=frame) if side == "left" else replace(sides, right=frame)


def check_not_streaming(df: DataFrame, what: str) -> None:
    """Raise when the frame is a stream; `what` says what needs all rows."""
    if df.isStreaming:
        raise ArgumentError(
            f"{what} needs all rows, and a stream has no end",
            help="do it batch by batch, inside foreachBatch",
        )


def check_promises(left: DataFrame, right: DataFrame, join: ResolvedJoin) -> None:
    """Raise when a relationship would have to be counted on a stream.

    Keys alone are counted on the side that must be single, so a promise about a static side
    holds beside a stream; with predicates the joined rows are counted.
    """
    by_key = bool(join.keys) and not join.conditions and isinstance(join.match, Exact)
    for side in SINGLE[join.relationship or "m:m"]:
        counted = (left if side == "left" else right,) if by_key else (left, right)
        if any(df.isStreaming for df in counted):
            raise ArgumentError(
                f"relationship {join.relationship!r} cannot be checked on a stream: "
                f"a row may match a {side} row of a later batch",
                code="W0305",
                help="leave out relationship=, or join inside foreachBatch",
            )


_SQL = "weft.streams.run(spark, sql) does it: its engine keeps state of its own"
_FOR_EVER = "the rows of a side would have to be kept for ever"
_LONGEST = 100_000_000 * 86_400_000_000


def is_stream_join(left: DataFrame, right: DataFrame, join: ResolvedJoin) -> bool:
    """Whether two streams are joined in time, which takes state."""
    return left.isStreaming and right.isStreaming and isinstance(join.match, Within | Overlap | SameWindow)


def check_static_side(left: DataFrame, right: DataFrame, join: ResolvedJoin) -> None:
    """Raise when a stream is joined in time with a frame in a way that Spark cannot: it keeps no rows of it."""
    if isinstance(join.match, AsOf):
        _refuse_asof(left, right)
    if left.isStreaming == right.isStreaming or isinstance(join.match, Exact | AsOf):
        return
    stream = "left" if left.isStreaming else "right"
    kept = {"left": ("inner", "left", "semi", "anti"), "right": ("inner", "right")}[stream]
    if isinstance(join.match, SameWindow) and join.match.kind == "session":
        raise StreamPlanError(
            f"a session join needs all rows of a key, and the {stream} side is a stream",
            code="W2118",
            help=_SQL,
        )
    if join.how not in kept:
        raise StreamPlanError(
            f"a {join.how} join of a stream and a frame that is none: which of the frame's rows match nothing "
            "is known when the stream ends",
            code="W2118",
            help=f"join inside foreachBatch, or with a CREATE TABLE: {_SQL}",
        )


def _refuse_asof(left: DataFrame, right: DataFrame) -> None:
    streams = [side for side, df in (("left", left), ("right", right)) if df.isStreaming]
    if streams:
        told = "both sides are streams" if len(streams) > 1 else f"the {streams[0]} side is a stream"
        raise StreamPlanError(
            f"an as-of join needs all rows of a key in order, and {told}",
            code="W2118",
            help="join batch by batch: left.df.writeStream.foreachBatch(lambda batch, _: "
            "save(weft.relation(batch).asof_join(right, spec).df))"
            if streams == ["left"]
            else "join all rows within bounds instead: interval_join(right, IntervalSpec(..., lower='-1h', upper='0s'))",
        )


def stream_choice(left: DataFrame, right: DataFrame, join: ResolvedJoin) -> Choice:
    """Return how two streams are joined in time and why; everything that Spark cannot do raises, all at once."""
    mistakes = ErrorCollector()
    _refuse(join, mistakes)
    for side, frame in (("left", left), ("right", right)):
        _check_watermark(frame, side, join, mistakes)  # type: ignore[arg-type]  # left or right
    mistakes.raise_all()
    upper, lower = _reach(join.match)
    return Choice(
        "native",
        "both sides are streams: Spark's symmetric hash join keeps rows of both sides until their time is over; "
        "NULL keys and times never enter it, and a row whose time equals the watermark is late",
        f"state: a left row is kept until the watermark passes its time by {Duration(max(upper, 0))}, a right row "
        f"by {Duration(max(-lower, 0))}; both sides are shuffled by key",
    )


def _reach(match: object) -> tuple[int, int]:
    """Return the greatest and the least difference of a right time and a left one."""
    if isinstance(match, Within):
        return int(match.upper or 0), int(match.lower or 0)
    assert isinstance(match, SameWindow)  # noqa: S101  # the others are refused
    return match.size or 0, -(match.size or 0)


def _refuse(join: ResolvedJoin, mistakes: ErrorCollector) -> None:
    match = join.match
    if not join.keys:
        mistakes.add(
            StreamPlanError(
                "two streams are joined without an equal key: Spark would fail at the first batch",
                code="W2101",
                help="give equal_keys=[('left_column', 'right_column')]",
            )
        )
    if isinstance(match, SameWindow) and match.kind == "session":
        mistakes.add(
            StreamPlanError(
                "Spark cannot join two streams by sessions: it would compare windows that never merge",
                code="W2118",
                help=_SQL,
            )
        )
    if isinstance(match, Overlap):
        mistakes.add(
            StreamPlanError(
                f"ranges of two streams cannot be joined: {_FOR_EVER}, for no bound says how long a range is",
                code="W2118",
                help="join by times: IntervalSpec(..., lower='0s', upper='24h')",
            )
        )
    if isinstance(match, Within):
        ends = (("lower", match.lower), ("upper", match.upper))
        missing = [name for name, end in ends if end is None or not -_LONGEST < end < _LONGEST]
        if missing:
            mistakes.add(
                StreamPlanError(
                    f"two streams are joined without {' and '.join(missing)} bound: {_FOR_EVER}",
                    code="W2104",
                    help="give both ends: lower='0s', upper='24h'",
                )
            )


def _check_watermark(frame: DataFrame, side: Side, join: ResolvedJoin, mistakes: ErrorCollector) -> None:
    match = join.match
    assert isinstance(match, Within | Overlap | SameWindow)  # noqa: S101  # the caller's branch
    index = match.left if side == "left" else match.right
    field = (join.left if side == "left" else join.right).fields[index]
    if field.dtype != TIMESTAMP:
        mistakes.add(
            StreamPlanError(
                f"the {side} order column {quote(field.name)} is {field.dtype}: a watermark needs a timestamp",
                code="W2117",
                help=f"cast it before the watermark: df.withColumn({field.name!r}, "
                f"df[{field.name!r}].cast('timestamp')).withWatermark({field.name!r}, '30 seconds')",
            )
        )
    elif WATERMARK not in (frame.schema.fields[index].metadata or {}):
        mistakes.add(
            StreamPlanError(
                f"the {side} order column {quote(field.name)} has no watermark: {_FOR_EVER}",
                code="W2117",
                help=f"weft.relation({side}.df.withWatermark({field.name!r}, '30 seconds')): 30 seconds is how "
                "late a row may come; the time that a tumbling join gives back carries none",
            )
        )
