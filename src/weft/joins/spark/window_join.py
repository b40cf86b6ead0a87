"""Window joins: both times fall into one tumbling, sliding or session window.

Tumbling, before and after::

    l JOIN r ON l.k = r.k, tumbling windows of 1 h
    l JOIN r ON l.k = r.k AND l.t - pmod(l.t, 1h) = r.t - pmod(r.t, 1h)

Sliding windows ``[n * slide, n * slide + size)``: if any window holds both times of a pair, the last
window that starts at or before the earlier time does.  So rows are joined as in an interval join of
`size` to either side, with that condition, and are not copied into each of their windows::

    later - earlier + pmod(earlier, slide) < size

``per_window=True`` then repeats each joined row once for each window that the pair shares.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column, DataFrame

from weft.expr.spark.frames import window_of
from weft.joins.resolve.axis import Axis, Reach, find_axis
from weft.joins.resolve.resolved import ResolvedJoin, SameWindow, Side, order_index
from weft.joins.spark.axis import Places
from weft.joins.spark.contracts import guard_promises
from weft.joins.spark.equi import prepare_sides, project_output, widen_how
from weft.joins.spark.interval import Bounds, join_near
from weft.joins.spark.sides import OTHER, SIDES, SPARK_HOW, Functions

_SESSION = {"left": "__weft_left_session", "right": "__weft_right_session"}
_TIME = {"left": "__weft_left_time", "right": "__weft_right_time"}
_BEGINS = "__weft_begins"
_OURS = "__weft_ours"


def join_by_session(places: Places, how: str, match: SameWindow) -> DataFrame:
    """Join rows of one key whose times are in one session.

    The times of a key, of both sides together, are sorted; a time more than `gap` after the previous
    one starts a session.  The first time of its session is one more equal key::

        before   l JOIN r ON l.k = r.k, in one session

        after    (SELECT * FROM sessions(l, times of r) WHERE ours) l
                 JOIN
                 (SELECT * FROM sessions(r, times of l) WHERE ours) r
                 ON l.k = r.k AND l.session = r.session

        sessions(a, b):
                 SELECT *, max(begins) OVER w AS session
                 FROM (SELECT *, CASE WHEN t - lag(t) OVER w > gap THEN t END AS begins
                       FROM a UNION ALL b)
                 WINDOW w AS (PARTITION BY k ORDER BY t)

    Predicates filter pairs; they do not change where sessions end.
    """
    F, sides = places.sides.F, places.sides
    timed = {side: _timed(places, side, match) for side in SIDES}
    left = _with_session(places, timed, "left", match)
    right = _with_session(places, timed, "right", match)
    # Joined by the columns that sessions are partitioned by: Spark knows that rows are shuffled by them already.
    keys = zip(_keys(places, "left"), _keys(places, "right"), strict=True)
    met = F.col(_SESSION["left"]) == F.col(_SESSION["right"])
    condition = sides.condition_on((F.col(a), F.col(b)) for a, b in keys)
    return left.join(right, met if condition is None else condition & met, SPARK_HOW[how])


def _keys(places: Places, side: Side) -> list[str]:
    return [f"__weft_{side}_key{i}" for i in range(len(places.sides.join.keys))]


def _timed(places: Places, side: Side, match: SameWindow) -> DataFrame:
    """Return a side with its keys as they are compared, and its time, NULL for rows in no session."""
    F, sides = places.sides.F, places.sides
    keys, time = sides.keys(side), places.value(side, order_index(match, side))
    if not sides.join.nulls_equal:
        for key in keys:
            time = F.when(key.isNotNull(), time)
    # `places.sides`, because `places.value` may have added a column to the frame.
    return places.sides.frame(side).withColumns(dict(zip(_keys(places, side), keys, strict=True)) | {_TIME[side]: time})


def _with_session(places: Places, timed: Mapping[Side, DataFrame], side: Side, match: SameWindow) -> DataFrame:
    """Return a side with the session of each row, NULL for rows that are in none."""
    F, names = places.sides.F, _keys(places, side)
    other = OTHER[side]
    foreign = timed[other].filter(F.col(_TIME[other]).isNotNull())
    foreign = foreign.select(
        *(F.col(a).alias(b) for a, b in zip((*_keys(places, other), _TIME[other]), (*names, _TIME[side]), strict=True))
    )
    both = timed[side].withColumn(_OURS, F.lit(True)).unionByName(foreign, allowMissingColumns=True)
    windows = window_of(both)
    # Without a key all rows are one group; partitioning by a constant keeps Spark from warning about it.
    by_time = windows.partitionBy(*(names or (F.lit(0),))).orderBy(_TIME[side])
    so_far = by_time.rowsBetween(windows.unboundedPreceding, windows.currentRow)
    time, gap = F.col(_TIME[side]), F.lit(places.axis.steps(match.gap or 0, up=False)).cast("long")
    # NULL for the first time of a key, and for times whose difference does not fit a long.
    near = F.coalesce(F.try_subtract(time, F.lag(time).over(by_time)) <= gap, F.lit(False))
    both = both.withColumn(_BEGINS, F.when(~near, time))
    session = F.when(time.isNotNull(), F.max(_BEGINS).over(so_far))
    both = both.withColumn(_SESSION[side], session)
    return both.filter(F.col(_OURS)).drop(_OURS, _BEGINS, _TIME[side])


_LONG_START = -(1 << 63)
_SHARED = "__weft_shared_windows"


def lower(left: DataFrame, right: DataFrame, join: ResolvedJoin, *, observation: Any = None) -> DataFrame:
    """Return the joined frame; no job runs."""
    match = join.match
    assert isinstance(match, SameWindow)  # noqa: S101  # the chooser's branch
    sides = prepare_sides(left, right, join, observation)
    how = widen_how(join)
    places = Places(sides, find_axis(join))
    join_by = {"tumbling": _tumbling, "sliding": _sliding, "session": join_by_session}[match.kind]
    # Promises are about pairs, so they are checked before a pair is repeated.
    joined = guard_promises(join_by(places, how, match), sides)
    if match.kind == "sliding" and match.per_window and how not in ("semi", "anti"):
        joined = repeat_per_window(joined, places, match)
    return project_output(joined, sides, observation)


def _tumbling(places: Places, how: str, match: SameWindow) -> DataFrame:
    F, size = places.sides.F, _steps(match.size, places.axis)
    left = _window_start(F, places.value("left", match.left), size)
    right = _window_start(F, places.value("right", match.right), size)
    return places.sides.join_frames(left == right, how)


def _window_start(F: Functions, time: Column, size: int) -> Column:
    """Return the start of the window that holds a time."""
    # Only one window starts before the smallest long; its rows get that long, at which no window starts.
    start = F.try_subtract(time, F.pmod(time, F.lit(size).cast("long")))
    return F.coalesce(start, F.when(time.isNotNull(), F.lit(_LONG_START).cast("long")))


def _sliding(places: Places, how: str, match: SameWindow) -> DataFrame:
    size = _steps(match.size, places.axis)
    meets = share_window(places, match)
    reach = Reach(1 - size, size - 1)
    if reach.way == "equal":
        earlier, later = _in_order(places, match)
        return places.sides.join_frames(earlier == later, how)
    return join_near(places, Bounds.of(places, match, reach), how, meets, reach)


def share_window(places: Places, match: SameWindow) -> Column:
    """Return the condition that a sliding window holds both times of a pair."""
    F, size = places.sides.F, _steps(match.size, places.axis)
    earlier, later = _in_order(places, match)
    into_window = F.pmod(earlier, F.lit(_steps(match.slide, places.axis)).cast("long"))
    # NULL past the end of longs: times that far apart share nothing.
    last = F.try_add(F.try_subtract(later, earlier), into_window)
    return last < F.lit(size).cast("long")


def _in_order(places: Places, match: SameWindow) -> tuple[Column, Column]:
    """Return the earlier and the later of two times; NULL when one of them is NULL."""
    # Not `least` and `greatest`, which ignore NULL.
    F = places.sides.F
    left, right = places.value("left", match.left), places.value("right", match.right)
    return F.when(left <= right, left).otherwise(right), F.when(left <= right, right).otherwise(left)


def repeat_per_window(joined: DataFrame, places: Places, match: SameWindow) -> DataFrame:
    """Return each pair once for every window it shares, unmatched rows once.

    Shared windows start after ``later - size`` and not after `earlier`.
    """
    F, axis = places.sides.F, places.axis
    size, slide = _steps(match.size, axis), _steps(match.slide, axis)
    step = F.lit(slide).cast("long")
    earlier, later = _in_order(places, match)
    # From the window of `earlier` back to the first that still reaches `later`.
    back = F.lit(size - 1).cast("long") - (later - earlier) - F.pmod(earlier, step)
    # The quotient is exact, so rounding the double gives the integer.
    count = F.round((back - F.pmod(back, step)) / step).cast("long") + F.lit(1)
    copies = F.coalesce(F.sequence(F.lit(1).cast("long"), count), F.array(F.lit(1).cast("long")))
    return joined.withColumn(_SHARED, F.explode(copies))


def _steps(distance: int | None, axis: Axis) -> int:
    assert distance is not None  # noqa: S101  # the kind of window has it
    return int(axis.steps(distance, up=True))
