"""Session joins: both times fall into one burst of events of a key.

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

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from weft.expr.spark.frames import window_of
from weft.joins.resolve.resolved import SameWindow, Side
from weft.joins.spark.equi import SPARK_HOW
from weft.joins.spark.places import Places

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SESSION = {"left": "__weft_left_session", "right": "__weft_right_session"}
_TIME = {"left": "__weft_left_time", "right": "__weft_right_time"}
_BEGINS = "__weft_begins"
_OURS = "__weft_ours"
_SIDES: tuple[Side, ...] = ("left", "right")


def join_by_session(places: Places, how: str, match: SameWindow) -> DataFrame:
    """Join rows of one key whose times are in one session."""
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
