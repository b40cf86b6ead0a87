"""What a stream cannot keep, refused where it is asked for and not when the query starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.core.duration import Duration
from weft.core.mistakes import Mistakes
from weft.core.names import quote
from weft.core.types import TIMESTAMP
from weft.errors import ArgumentError, StreamPlanError
from weft.joins.choose import Choice
from weft.joins.resolve.resolved import AsOf, Exact, Overlap, ResolvedJoin, SameWindow, Side, Within
from weft.joins.spark.contracts import SINGLE
from weft.joins.spark.native_stream import WATERMARK

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


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
    mistakes = Mistakes()
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


def _refuse(join: ResolvedJoin, mistakes: Mistakes) -> None:
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


def _check_watermark(frame: DataFrame, side: Side, join: ResolvedJoin, mistakes: Mistakes) -> None:
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
