"""Joins of streaming DataFrames: checks of what Spark supports, and stream-stream joins by Spark itself.

Two streams are joined by Spark's own symmetric hash join, with guards around it.

Before::

    l FULL JOIN r ON l.k = r.k AND r.t BETWEEN l.t AND l.t + 1h          l and r are streams

After::

    l FULL JOIN r ON l.k = r.k AND r.t >= l.t AND r.t <= l.t + 1h
                 AND l.k IS NOT NULL AND r.k IS NOT NULL

Without the guards, Spark's full join would match NULL keys.  Spark tests a condition on one side before it
stores a row: on an outer side, a row that fails it is emitted with NULLs at once; on the other, it is dropped.
A row with a NULL time would stay in the state forever: on an outer side it fails the query or is dropped before
the join, on the other side a condition drops it.

Spark adds days by the calendar of the session time zone, where a day may have 23 or 25 hours.  In such a zone a
bound of a day or more is tested in microseconds, beside a wider bound that Spark uses to evict rows.  Spark
allows one watermark column per side, so the watermarks of all other columns are removed before the join.
"""

from __future__ import annotations

import datetime as dt
import operator
import re
from collections.abc import Iterator
from functools import reduce
from typing import Any, Literal

from pyspark.sql import Column, DataFrame

from weft.core.duration import Duration
from weft.core.findings import ErrorCollector
from weft.core.names import LEFT, RIGHT, internal_name, quote
from weft.core.types import TIMESTAMP
from weft.errors import ArgumentError, Code, StreamPlanError
from weft.joins.choose import Choice
from weft.joins.resolve.axis import DAY, Axis
from weft.joins.resolve.resolved import AsOf, Exact, Overlap, ResolvedJoin, SameWindow, Side, Within, order_index
from weft.joins.spark.axis import Places
from weft.joins.spark.contracts import SINGLE, guard_promises, passes_unless
from weft.joins.spark.equi import prepare_sides, project_output, widen_how
from weft.joins.spark.sides import RIGHT_HERE, SIDES, Sides
from weft.joins.spark.window_join import repeat_per_window, share_window

NullTime = Literal["error", "drop"]
WATERMARK = "spark.watermarkDelayMs"
"""Metadata key of a column with a watermark."""

_WINDOW = {"left": "__weft_left_window", "right": "__weft_right_window"}
_NAMES = {"left": LEFT, "right": RIGHT}
_EVEN = re.compile(r"(?i)Z|(?:Etc/)?(?:UTC|UCT|GMT|UT|Zulu|Universal|Greenwich)?(?:[+-][0-9:]+)?")
_UNEVEN = 25 * 3_600_000_000
"""Microseconds: more than a sum of calendar days can differ from the same number of 24 hours."""
_OUTER = {"left": ("left", "full", "anti"), "right": ("right", "full")}


def lower(left: DataFrame, right: DataFrame, join: ResolvedJoin, *, on_null_time: NullTime = "error") -> DataFrame:
    """Return the joined stream; nothing runs.  `stream_choice` has checked that Spark can do it."""
    match = join.match
    assert isinstance(match, Within | SameWindow)  # noqa: S101  # others are refused
    how = widen_how(join)
    sides = prepare_sides(left, right, join, None)
    for side in SIDES:
        sides = _one_watermark(sides, side, order_index(match, side))
        if how in _OUTER[side]:
            sides = _require_times(sides, side, order_index(match, side), on_null_time)
    if isinstance(match, SameWindow) and match.kind == "tumbling":
        sides, meets = _windowed(sides, match)
    else:
        meets = _meets(sides, match)
    joined = guard_promises(_join(sides, how, meets, match), sides)
    if isinstance(match, SameWindow) and _copies(match) and how not in ("semi", "anti"):
        joined = repeat_per_window(joined, Places(sides, Axis(TIMESTAMP)), match)
    return project_output(joined, sides, None)


def _copies(match: SameWindow) -> bool:
    return match.kind == "sliding" and match.per_window


def _join(sides: Sides, how: str, meets: Column, match: Within | SameWindow) -> DataFrame:
    """Join the streams; an anti join is the unmatched rows of a left join, which Spark supports."""
    met = meets & _guards(sides, how, match)
    if how != "anti":
        return sides.join_frames(met, how)
    # A marker, because every column of a right row may be NULL.
    marked = sides.with_frame("right", sides.right.withColumn(RIGHT_HERE, sides.F.lit(True)))
    both = marked.join_frames(met, "left")
    return both.filter(sides.F.col(RIGHT_HERE).isNull()).select(*sides.left.columns)


def _guards(sides: Sides, how: str, match: Within | SameWindow) -> Column:
    """Return the condition that times and keys are not NULL; with ``nulls_equal`` keys may be.

    The times of an outer side are not NULL already, because of `_require_times`.
    """
    needed = [sides.column_of(s, order_index(match, s)) for s in SIDES if how not in _OUTER[s]]
    if not sides.join.nulls_equal:
        needed += [sides.column_of(s, key.index(s)) for key in sides.join.keys for s in SIDES]
    return reduce(operator.and_, (c.isNotNull() for c in needed), sides.F.lit(True))


def _meets(sides: Sides, match: Within | SameWindow) -> Column:
    """Return the condition on the times of a pair."""
    if isinstance(match, Within):
        assert isinstance(match.lower, int)  # noqa: S101  # both ends of a bound in time are there
        assert isinstance(match.upper, int)  # noqa: S101
        return _between(sides, match, match.lower, match.upper)
    assert match.size is not None  # noqa: S101  # tumbling and sliding windows have one
    near = _between(sides, match, 1 - match.size, match.size - 1)
    return near & share_window(Places(sides, Axis(TIMESTAMP)), match)


def _between(sides: Sides, match: Within | SameWindow, lower: int, upper: int) -> Column:
    """Return the bounds in the form from which Spark derives when it may evict a row."""
    F = sides.F
    left, right = sides.left_column(match.left), sides.right_column(match.right)
    zone = str(sides.left.sparkSession.conf.get("spark.sql.session.timeZone"))
    if max(abs(lower), abs(upper)) < DAY or has_even_days(zone):
        return (right >= _moved(F, left, lower)) & (right <= _moved(F, left, upper))
    apart = F.unix_micros(right) - F.unix_micros(left)
    loose = (right >= _moved(F, left, lower - _UNEVEN)) & (right <= _moved(F, left, upper + _UNEVEN))
    exact: Column = (apart >= F.lit(lower).cast("long")) & (apart <= F.lit(upper).cast("long"))
    return loose & exact


def _moved(F: Any, time: Column, microseconds: int) -> Column:
    # Spark's sum of a time and an interval is expensive, even if the interval is zero.
    return time + F.lit(dt.timedelta(microseconds=microseconds)) if microseconds else time


def has_even_days(zone: str) -> bool:
    """Whether all days of a session's zone have 24 hours.

    >>> has_even_days("UTC"), has_even_days("+05:30"), has_even_days("Europe/Berlin")
    (True, True, False)
    """
    return bool(_EVEN.fullmatch(zone.strip()))


def _windowed(sides: Sides, match: SameWindow) -> tuple[Sides, Column]:
    """Add the window of each row, which keeps the watermark, and return the condition that windows are equal."""
    F = sides.F
    for side in SIDES:
        name = internal_name(_NAMES[side], order_index(match, side))
        # The window comes first: it must be computed from the column that has the watermark.
        window = F.window(F.col(name), f"{match.size} microseconds")
        frame = sides.frame(side).withColumn(_WINDOW[side], window)
        sides = sides.with_frame(side, _without_watermark(F, frame, name))
    return sides, F.col(_WINDOW["left"]) == F.col(_WINDOW["right"])


def _one_watermark(sides: Sides, side: Side, order: int) -> Sides:
    """Keep only the watermark of the order column; Spark fails at the first batch with two."""
    frame = sides.frame(side)
    kept = internal_name(_NAMES[side], order)
    for field in frame.schema.fields:
        if WATERMARK in (field.metadata or {}) and field.name != kept:
            frame = _without_watermark(sides.F, frame, field.name)
    return sides.with_frame(side, frame)


def _without_watermark(F: Any, frame: DataFrame, name: str) -> DataFrame:
    field = frame.schema[name]
    plain = {key: value for key, value in (field.metadata or {}).items() if key != WATERMARK}
    columns = [F.col(n).alias(n, metadata=plain) if n == name else F.col(n) for n in frame.columns]
    return frame.select(*columns)


def _require_times(sides: Sides, side: Side, order: int, on_null_time: NullTime) -> Sides:
    """Drop the rows of an outer side that have no time, or fail at the first one."""
    time = sides.column_of(side, order)
    if on_null_time == "drop":
        return sides.with_frame(side, sides.frame(side).filter(time.isNotNull()))
    # Non-deterministic like every check of a promise: Spark would infer that the time is not NULL and drop it.
    check = passes_unless(time.isNull(), sides, f"W2207 a {side} row has no event time: ", side)
    return sides.with_frame(side, sides.frame(side).filter(check))


def check_not_streaming(df: DataFrame, what: str) -> None:
    """Raise if the frame is a stream; `what` is the operation that needs all rows."""
    if df.isStreaming:
        raise ArgumentError(
            f"{what} needs all rows, and a stream has no end", help="do it batch by batch, inside foreachBatch"
        )


def check_promises(left: DataFrame, right: DataFrame, join: ResolvedJoin) -> None:
    """Raise if a relationship would have to be counted on a stream.

    Without predicates only the rows of the single side are counted, so a static side can be checked
    beside a stream; with predicates the joined rows are counted.
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


_SQL = "use weft.streams.run(spark, sql), whose engine keeps its own state"
_FOREVER = "the rows of a side would have to be kept forever"
_LONGEST = 100_000_000 * DAY  # a longer interval does not fit Spark's type


def is_stream_join(left: DataFrame, right: DataFrame, join: ResolvedJoin) -> bool:
    """Whether two streams are joined by time, which needs state."""
    return left.isStreaming and right.isStreaming and isinstance(join.match, Within | Overlap | SameWindow)


def check_static_side(left: DataFrame, right: DataFrame, join: ResolvedJoin) -> None:
    """Raise if a stream and a static frame are joined by time in a way that Spark does not support."""
    if isinstance(join.match, AsOf):
        _refuse_asof(left, right)
    if left.isStreaming == right.isStreaming or isinstance(join.match, Exact | AsOf):
        return
    stream = "left" if left.isStreaming else "right"
    kept = {"left": ("inner", "left", "semi", "anti"), "right": ("inner", "right")}[stream]
    if isinstance(join.match, SameWindow) and join.match.kind == "session":
        raise StreamPlanError(
            f"a session join needs all rows of a key, and the {stream} side is a stream", code="W2118", help=_SQL
        )
    if join.how not in kept:
        raise StreamPlanError(
            f"a {join.how} join of a stream and a static frame: which rows of the frame are unmatched "
            "is only known when the stream ends",
            code="W2118",
            help=f"join inside foreachBatch, or with a CREATE TABLE: {_SQL}",
        )


def _refuse_asof(left: DataFrame, right: DataFrame) -> None:
    streams = [side for side, df in (("left", left), ("right", right)) if df.isStreaming]
    if streams:
        which = "both sides are streams" if len(streams) > 1 else f"the {streams[0]} side is a stream"
        raise StreamPlanError(
            f"an as-of join needs all rows of a key in order, and {which}",
            code="W2118",
            help="join batch by batch: left.df.writeStream.foreachBatch(lambda batch, _: "
            "save(weft.relation(batch).asof_join(right, spec).df))"
            if streams == ["left"]
            else "join all rows within bounds instead: interval_join(right, IntervalSpec(..., lower='-1h', upper='0s'))",
        )


def stream_choice(left: DataFrame, right: DataFrame, join: ResolvedJoin) -> Choice:
    """Return how two streams are joined by time, and why; raises for everything that Spark does not support."""
    mistakes = ErrorCollector()
    for code, message, help in _refusals(join):
        mistakes.add(StreamPlanError(message, code=code, help=help))
    for side, frame in zip(SIDES, (left, right), strict=True):
        if problem := _watermark_problem(frame, side, join):
            mistakes.add(StreamPlanError(problem[0], code="W2117", help=problem[1]))
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


def _refusals(join: ResolvedJoin) -> Iterator[tuple[Code, str, str]]:
    """Yield code, message and help of everything that Spark does not support, or accepts and then cannot run."""
    match = join.match
    if not join.keys:
        message = "two streams are joined without an equal key: Spark would fail at the first batch"
        yield "W2101", message, "give equal_keys=[('left_column', 'right_column')]"
    if isinstance(match, SameWindow) and match.kind == "session":
        yield "W2118", "Spark cannot join two streams by sessions: it would compare windows that never merge", _SQL
    if isinstance(match, Overlap):
        message = f"ranges of two streams cannot be joined: {_FOREVER}, because no bound limits the length of a range"
        yield "W2118", message, "join by times: IntervalSpec(..., lower='0s', upper='24h')"
    if isinstance(match, Within):
        ends = (("lower", match.lower), ("upper", match.upper))
        missing = [name for name, end in ends if end is None or not -_LONGEST < end < _LONGEST]
        if missing:
            message = f"two streams are joined without {' and '.join(missing)} bound: {_FOREVER}"
            yield "W2104", message, "give both ends: lower='0s', upper='24h'"


def _watermark_problem(frame: DataFrame, side: Side, join: ResolvedJoin) -> tuple[str, str] | None:
    """Return message and help if the order column of a side has no watermark, None if it has one."""
    match = join.match
    assert isinstance(match, Within | Overlap | SameWindow)  # noqa: S101  # the caller's branch
    index = order_index(match, side)
    if index not in join.own_columns(side):
        return (
            f"the {side} order is an expression, and only a column has a watermark: {_FOREVER}",
            "add it as a column before the watermark: df.withColumn('at', ...).withWatermark('at', '30 seconds')",
        )
    field = join.schema_of(side).fields[index]
    name, column = field.name, f"the {side} order column {quote(field.name)}"
    if field.dtype != TIMESTAMP:
        cast = f"df.withColumn({name!r}, df[{name!r}].cast('timestamp')).withWatermark({name!r}, '30 seconds')"
        return f"{column} is {field.dtype}: a watermark needs a timestamp", f"cast it before the watermark: {cast}"
    if WATERMARK not in (frame.schema.fields[index].metadata or {}):
        late = "30 seconds is how late a row may come; the time column of a tumbling join has no watermark"
        help = f"weft.relation({side}.df.withWatermark({name!r}, '30 seconds')): {late}"
        return f"{column} has no watermark: {_FOREVER}", help
    return None
