"""As-of with a small right side that is broadcast: every left row finds its match where it lies.

Before::

    left ASOF right  keys k, order (t, u), backward

After::

    SELECT l.*, rows[count(times <= t) - 1] AS r
    FROM left l LEFT JOIN (
        SELECT k, array(u..) AS times, array(r..) AS rows  -- ascending, one row for each u
        FROM right r GROUP BY k
    ) ON l.k = r.k                                         -- broadcast

The left side is not shuffled, nothing is sorted but the right rows of a key, and no row goes to
Python.  One search serves every direction: the row before the place it finds is the latest, the
row after it the earliest, and nearest compares the two.  Ties are settled when the arrays are
made, so a tie costs nothing later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.core.names import LEFT, RIGHT, internal_name
from weft.expr.spark.types import to_spark
from weft.joins.resolve.predicates import split_conditions
from weft.joins.resolve.resolved import AsOf
from weft.joins.spark.chosen import CHOSEN, finished, packed_right, usable_left, usable_right
from weft.joins.spark.lookup import counted, key_names, looked_up
from weft.joins.spark.order import Axis, tie_slots
from weft.joins.spark.sides import Sides

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_TIME, _USABLE, _FOUND, _ORDER = "__weft_time", "__weft_usable", "__weft_found", "__weft_order"
_TIMES, _ROWS, _COUNT, _PLACE = "__weft_times", "__weft_rows", "__weft_count", "__weft_place"
_BACK, _AHEAD = "__weft_back", "__weft_ahead"


def lower(sides: Sides, match: AsOf) -> DataFrame:
    """Return the joined rows under positional names; no job runs."""
    F = sides.F
    usable = usable_left(sides, match, split_conditions(sides.join))
    left = sides.left.withColumns({_TIME: Axis.of(sides, match).left, _USABLE: usable})
    keys = [sides.left_column(key.left, key.dtype) for key in sides.join.keys]
    met = looked_up(
        F,
        left,
        keys,
        _sorted_rows(sides, match),
        nulls_equal=sides.join.nulls_equal,
        keep=sides.join.how == "left" or bool(sides.join.unmatched),
    )
    # Equal times lie before the place that is looked for, unless the match is at or after it.
    inclusive = match.allow_exact == (match.direction != "forward")
    met = counted(F, met, _COUNT, values=_TIMES, at=_TIME, inclusive=inclusive)
    met = _placed(sides, match, met)
    chosen = F.get(F.col(_ROWS), F.col(_PLACE)).alias(CHOSEN)
    lefts = [F.col(internal_name(LEFT, i)) for i in range(len(sides.join.left))]
    return finished(met.select(*lefts, chosen), sides, match)


def _sorted_rows(sides: Sides, match: AsOf) -> DataFrame:
    """Return of each key the distinct times ascending, and the row that a tie falls to of each."""
    F = sides.F
    names = key_names(len(sides.join.keys))
    keys = [
        sides.right_column(k.right, k.dtype).alias(n) for n, k in zip(names, sides.join.keys, strict=True)
    ]
    row = F.struct(Axis.of(sides, match).right.alias("time"), packed_right(sides).alias("row"))
    rows = sides.right.filter(usable_right(sides, match, split_conditions(sides.join))).select(
        *keys, row.alias(_FOUND)
    )
    found = rows.groupBy(*names).agg(F.collect_list(_FOUND).alias(_FOUND))
    ties = [s.index for s in tie_slots(sides.join, match)]

    def sortable(one: Column, at: Column) -> Column:
        values = [one["row"][internal_name(RIGHT, i)].alias(f"p{n}") for n, i in enumerate(ties)]
        ordered: Column = F.struct(one["time"].alias("time"), *values, at.alias("at"))
        return ordered

    def is_last(one: Column, at: Column) -> Column:
        following = F.get(F.col(_ORDER), at + F.lit(1))["time"]
        last: Column = F.coalesce(following > one["time"], F.lit(True))
        return last

    found = found.withColumn(_ORDER, F.sort_array(F.transform(_FOUND, sortable)))
    found = found.withColumn(_ORDER, F.filter(_ORDER, is_last))
    return found.select(
        *names,
        F.transform(_ORDER, lambda one: one["time"]).alias(_TIMES),
        F.transform(_ORDER, lambda one: _needed(sides, match, F.get(F.col(_FOUND), one["at"])["row"])).alias(
            _ROWS
        ),
    )


def _needed(sides: Sides, match: AsOf, row: Column) -> Column:
    """Return a right row with NULL in the columns that nobody asks for."""
    F = sides.F
    asked = {c.right for c in sides.join.output} | {match.tombstone, match.until}
    kept: Column = F.struct(
        *(
            (row[internal_name(RIGHT, i)] if i in asked else F.lit(None).cast(to_spark(f.dtype))).alias(
                internal_name(RIGHT, i)
            )
            for i, f in enumerate(sides.join.right.fields)
        )
    )
    return kept


def _placed(sides: Sides, match: AsOf, met: DataFrame) -> DataFrame:
    """Return the frame with the index of the chosen row, NULL or past an end when there is none."""
    F = sides.F
    axis = Axis.of(sides, match)
    before, after = F.col(_COUNT) - F.lit(1), F.col(_COUNT)

    def gap(place: Column) -> Column:
        return axis.distance(F.col(_TIME), F.get(F.col(_TIMES), place))

    if match.direction == "nearest":
        if not match.allow_exact:
            exact = F.get(F.col(_TIMES), after) == F.col(_TIME)
            after = after + F.call_function("if", exact, F.lit(1), F.lit(0))
        met = met.withColumns({_BACK: gap(before), _AHEAD: gap(after)})
        back, ahead = F.col(_BACK), F.col(_AHEAD)
        nearer = back <= ahead if match.nearest_tie == "backward" else back < ahead
        place = F.call_function("if", ahead.isNull() | nearer, before, after)
        distance = F.least(back, ahead)
    else:
        place = before if match.direction == "backward" else after
        distance = gap(place) if match.tolerance is not None else None
    good = F.col(_USABLE)
    if match.tolerance is not None and distance is not None:
        good = good & axis.within(distance, match.tolerance)
    return met.withColumn(_PLACE, F.when(good, place))
