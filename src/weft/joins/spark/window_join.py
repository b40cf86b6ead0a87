"""Window joins: both times fall into one tumbling, sliding or session window.

Tumbling, before and after::

    l JOIN r ON l.k = r.k, tumbling windows of 1 h
    l JOIN r ON l.k = r.k AND l.t - pmod(l.t, 1h) = r.t - pmod(r.t, 1h)

Sliding windows ``[n * slide, n * slide + size)``: the last window that has begun at the earlier of
two times holds the later one too, or no window holds both.  So rows are joined as by an interval
of `size` to either side, with that as condition, and not copied into each of their windows::

    later - earlier + pmod(earlier, slide) < size

One row for each shared window is a matter of copying the joined row as often.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from weft.expr.spark.frames import window_of
from weft.joins.resolve.axis import Axis, Reach, axis_of
from weft.joins.resolve.resolved import ResolvedJoin, SameWindow, Side
from weft.joins.spark.axis import Places
from weft.joins.spark.bins import join_by_keys
from weft.joins.spark.contracts import checked
from weft.joins.spark.equi import SPARK_HOW, begun, how_that_shows_unmatched, shown
from weft.joins.spark.interval import Bounds, join_near

if TYPE_CHECKING:
    from types import ModuleType

    from pyspark.sql import Column, DataFrame


_SESSION = {"left": "__weft_left_session", "right": "__weft_right_session"}
_TIME = {"left": "__weft_left_time", "right": "__weft_right_time"}
_BEGINS = "__weft_begins"
_OURS = "__weft_ours"
_SIDES: tuple[Side, ...] = ("left", "right")


def join_by_session(places: Places, how: str, match: SameWindow) -> DataFrame:
    """Join rows of one key whose times are in one session.

    Times of a key, of both sides, are sorted; a time more than `gap` after the one before begins a
    session.  A session is known by its first time, one more equal key::

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

    Predicates decide which pairs come out, not where sessions end.
    """
    F, sides = places.sides.F, places.sides
    timed = {side: _timed(places, side, match) for side in _SIDES}
    left = _with_session(places, timed, "left", match)
    right = _with_session(places, timed, "right", match)
    # The keys by which sessions were made: Spark knows that rows are shuffled by them already.
    keys = zip(_keys(places, "left"), _keys(places, "right"), strict=True)
    met = F.col(_SESSION["left"]) == F.col(_SESSION["right"])
    said = sides.condition_on((F.col(a), F.col(b)) for a, b in keys)
    return left.join(right, met if said is None else said & met, SPARK_HOW[how])


def _keys(places: Places, side: Side) -> list[str]:
    return [f"__weft_{side}_key{i}" for i in range(len(places.sides.join.keys))]


def _timed(places: Places, side: Side, match: SameWindow) -> DataFrame:
    """Return a side with its keys as they are compared, and its time, NULL for rows in no session."""
    F, sides = places.sides.F, places.sides
    column = sides.left_column if side == "left" else sides.right_column
    keys = [column(k.left if side == "left" else k.right, k.dtype) for k in sides.join.keys]
    time = places.value(side, match.left if side == "left" else match.right)
    if not sides.join.nulls_equal:
        for key in keys:
            time = F.when(key.isNotNull(), time)
    frame = places.sides.left if side == "left" else places.sides.right
    return frame.withColumns(dict(zip(_keys(places, side), keys, strict=True)) | {_TIME[side]: time})


def _with_session(
    places: Places, timed: Mapping[Side, DataFrame], side: Side, match: SameWindow
) -> DataFrame:
    """Return a side with the session of each row, NULL for rows that are in none."""
    F, names = places.sides.F, _keys(places, side)
    other: Side = "right" if side == "left" else "left"
    foreign = timed[other].filter(F.col(_TIME[other]).isNotNull())
    foreign = foreign.select(
        *(
            F.col(a).alias(b)
            for a, b in zip((*_keys(places, other), _TIME[other]), (*names, _TIME[side]), strict=True)
        )
    )
    both = timed[side].withColumn(_OURS, F.lit(True)).unionByName(foreign, allowMissingColumns=True)
    windows = window_of(both)
    # Without a key all rows are one group, said so that Spark does not warn of it.
    by_time = windows.partitionBy(*(names or [F.lit(0)])).orderBy(_TIME[side])
    so_far = by_time.rowsBetween(windows.unboundedPreceding, windows.currentRow)
    time, gap = F.col(_TIME[side]), F.lit(places.axis.steps(match.gap or 0, up=False)).cast("long")
    # NULL for the first of a key, and for times further apart than a long can tell.
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
    sides = begun(left, right, join, observation)
    how = how_that_shows_unmatched(join)
    places = Places(sides, axis_of(join))
    join_by = {"tumbling": _tumbling, "sliding": _sliding, "session": join_by_session}[match.kind]
    # Promises are about pairs, so they are checked before a pair is copied.
    joined = checked(join_by(places, how, match), sides)
    if match.kind == "sliding" and match.per_window and how not in ("semi", "anti"):
        joined = per_window_rows(joined, places, match)
    return shown(joined, sides, observation)


def _tumbling(places: Places, how: str, match: SameWindow) -> DataFrame:
    F, size = places.sides.F, _steps(match.size, places.axis)
    left = _window_start(F, places.value("left", match.left), size)
    right = _window_start(F, places.value("right", match.right), size)
    return join_by_keys(places.sides, how, left == right)


def _window_start(F: ModuleType, time: Column, size: int) -> Column:
    """Return the start of the window that holds a time.

    Only one window begins before the first long; its rows get that long, which starts no other.
    """
    start = F.try_subtract(time, F.pmod(time, F.lit(size).cast("long")))
    found: Column = F.coalesce(start, F.when(time.isNotNull(), F.lit(_LONG_START).cast("long")))
    return found


def _sliding(places: Places, how: str, match: SameWindow) -> DataFrame:
    size = _steps(match.size, places.axis)
    meets = shared_window(places, match)
    reach = Reach(1 - size, size - 1)
    if reach.way == "equal":
        earlier, later = _in_order(places, match)
        return join_by_keys(places.sides, how, earlier == later)
    return join_near(places, Bounds.of(places, match, reach), how, meets, reach)


def shared_window(places: Places, match: SameWindow) -> Column:
    """Return the condition that a sliding window holds both times of a pair."""
    F, size = places.sides.F, _steps(match.size, places.axis)
    earlier, later = _in_order(places, match)
    into_window = F.pmod(earlier, F.lit(_steps(match.slide, places.axis)).cast("long"))
    # NULL past the end of longs: times that far apart share nothing.
    last = F.try_add(F.try_subtract(later, earlier), into_window)
    found: Column = last < F.lit(size).cast("long")
    return found


def _in_order(places: Places, match: SameWindow) -> tuple[Column, Column]:
    """Return the earlier and the later of two times; NULL when one is, which `least` would pass over."""
    F = places.sides.F
    left, right = places.value("left", match.left), places.value("right", match.right)
    return F.when(left <= right, left).otherwise(right), F.when(left <= right, right).otherwise(left)


def per_window_rows(joined: DataFrame, places: Places, match: SameWindow) -> DataFrame:
    """Return each pair once for every window it shares, rows without a partner once.

    Shared windows start after ``later - size`` and not after `earlier`.
    """
    F, axis = places.sides.F, places.axis
    size, slide = _steps(match.size, axis), _steps(match.slide, axis)
    step = F.lit(slide).cast("long")
    earlier, later = _in_order(places, match)
    # From the window of `earlier` back to the first that still reaches `later`.
    back = F.lit(size - 1).cast("long") - (later - earlier) - F.pmod(earlier, step)
    # A double of an exact multiple, so rounding gives the whole number it stands for.
    count = F.round((back - F.pmod(back, step)) / step).cast("long") + F.lit(1)
    copies = F.coalesce(F.sequence(F.lit(1).cast("long"), count), F.array(F.lit(1).cast("long")))
    return joined.withColumn(_SHARED, F.explode(copies))


def _steps(distance: int | None, axis: Axis) -> int:
    assert distance is not None  # noqa: S101  # the kind of window has it
    return int(axis.steps(distance, up=True))
