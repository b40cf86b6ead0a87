"""As-of with a small right side that is broadcast: each left row finds its match in its own partition.

Before::

    left ASOF right  keys k, order (t, u), backward

After::

    SELECT l.*, rows[count(times <= t) - 1] AS r
    FROM left l LEFT JOIN (
        SELECT k, array(u..) AS times, array(r..) AS rows  -- ascending, one row for each u
        FROM right r GROUP BY k
    ) ON l.k = r.k                                         -- broadcast

The left side is not shuffled, only the right rows of a key are sorted, and no row goes to Python.
One search serves every direction: it returns a position; the row before it is the latest, the row
after it the earliest, and nearest compares the two.  Ties are resolved when the arrays are built.

The search is a sequence of projections::

    before   count(values <= at)

    after    c25 = if(values[2^25 - 1] <= at, 2^25, 0)
             c24 = if(values[c25 | 2^24 - 1] <= at, c25 | 2^24, c25)
             ...
             c0  = if(values[c1] <= at, c1 | 1, c1)

Each step is a projection because it reads the previous one twice.  Spark does not collapse them, and
compiles all of them into the loop of the join, so that the array is read in place and not copied.
Past the end of the array ``get`` is NULL, so arrays of all sizes take the same steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame

from weft.core.names import RIGHT, internal_name
from weft.expr.spark.types import to_spark
from weft.joins.resolve.resolved import AsOf
from weft.joins.spark.chosen import CHOSEN, can_match, finish, pack_right
from weft.joins.spark.order import Axis, tie_slots
from weft.joins.spark.sides import Functions, Sides

_TIME, _USABLE, _PACKED, _ORDER = "__weft_time", "__weft_usable", "__weft_packed", "__weft_order"
_TIMES, _ROWS, _COUNT, _PLACE = "__weft_times", "__weft_rows", "__weft_count", "__weft_place"
_BACK, _AHEAD = "__weft_back", "__weft_ahead"
_HALVINGS = 26  # 2^26 values, each with a row of its own, are more than a row of Spark holds


def lower(sides: Sides, match: AsOf) -> DataFrame:
    """Return the joined rows under positional names; no job runs."""
    F = sides.F
    usable = can_match(sides, match, "left")
    left = sides.left.withColumns({_TIME: Axis.of(sides, match).left, _USABLE: usable})
    keys = [sides.left_column(key.left, key.dtype) for key in sides.join.keys]
    met = look_up(
        F,
        left,
        keys,
        _sorted_rows(sides, match),
        nulls_equal=sides.join.nulls_equal,
        keep=sides.join.how == "left" or bool(sides.join.unmatched),
    )
    # The position is after equal times, unless the match must be at or after the left time.
    inclusive = match.allow_exact == (match.direction != "forward")
    met = count_before(F, met, _COUNT, values=_TIMES, at=_TIME, inclusive=inclusive)
    met = _placed(sides, match, met)
    chosen = F.get(F.col(_ROWS), F.col(_PLACE)).alias(CHOSEN)
    return finish(met.select(*sides.names("left"), chosen), sides, match)


def _sorted_rows(sides: Sides, match: AsOf) -> DataFrame:
    """Return for each key the distinct times, ascending, and for each time the row that wins its tie."""
    F = sides.F
    names = key_names(len(sides.join.keys))
    keys = [sides.right_column(k.right, k.dtype).alias(n) for n, k in zip(names, sides.join.keys, strict=True)]
    row = F.struct(Axis.of(sides, match).right.alias("time"), pack_right(sides).alias("row"))
    rows = sides.right.filter(can_match(sides, match, "right")).select(*keys, row.alias(_PACKED))
    grouped = rows.groupBy(*names).agg(F.collect_list(_PACKED).alias(_PACKED))
    ties = [s.index for s in tie_slots(sides.join, match)]

    def sortable(one: Column, at: Column) -> Column:
        values = [one["row"][internal_name(RIGHT, i)].alias(f"p{n}") for n, i in enumerate(ties)]
        return F.struct(one["time"].alias("time"), *values, at.alias("at"))

    def is_last(one: Column, at: Column) -> Column:
        following = F.get(F.col(_ORDER), at + F.lit(1))["time"]
        return F.coalesce(following > one["time"], F.lit(True))

    # Only times, ties and the place of a row are sorted: a row may have columns without an order.
    grouped = grouped.withColumn(_ORDER, F.sort_array(F.transform(_PACKED, sortable)))
    grouped = grouped.withColumn(_ORDER, F.filter(_ORDER, is_last))
    return grouped.select(
        *names,
        F.transform(_ORDER, lambda one: one["time"]).alias(_TIMES),
        F.transform(_ORDER, lambda one: _needed(sides, match, F.get(F.col(_PACKED), one["at"])["row"])).alias(_ROWS),
    )


def _needed(sides: Sides, match: AsOf, row: Column) -> Column:
    """Return a right row with NULL in the columns that the result does not use."""
    F = sides.F
    used = {c.right for c in sides.join.output} | {match.tombstone, match.until}
    columns = zip(sides.names("right"), sides.join.right.fields, strict=True)
    return F.struct(
        *(
            (row[name] if i in used else F.lit(None).cast(to_spark(field.dtype))).alias(name)
            for i, (name, field) in enumerate(columns)
        )
    )


def _placed(sides: Sides, match: AsOf, met: DataFrame) -> DataFrame:
    """Return the frame with the index of the chosen row, NULL or out of range if there is none."""
    F = sides.F
    axis = Axis.of(sides, match)
    before, after = F.col(_COUNT) - F.lit(1), F.col(_COUNT)

    def gap(place: Column) -> Column:
        return axis.distance(F.col(_TIME), F.get(F.col(_TIMES), place))

    distance: Column | None = None
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


def key_names(count: int) -> list[str]:
    """Return the names of the key columns of a lookup table."""
    return [f"__weft_key{n}" for n in range(count)]


def look_up(
    F: Functions, frame: DataFrame, keys: Sequence[Column], table: DataFrame, *, nulls_equal: bool, keep: bool = False
) -> DataFrame:
    """Return the rows of a frame with the row of the table for their keys; the table is broadcast.

    Rows whose keys are not in the table are dropped unless `keep` is true.  Without keys the table
    has one row.
    """
    if not keys:
        return frame.crossJoin(F.broadcast(table))
    names = key_names(len(keys))
    equal = [
        key.eqNullSafe(F.col(name)) if nulls_equal else key == F.col(name)
        for key, name in zip(keys, names, strict=True)
    ]
    met = reduce(lambda a, b: a & b, equal)
    return frame.join(F.broadcast(table), met, "left_outer" if keep else "inner").drop(*names)


def count_before(F: Functions, frame: DataFrame, name: str, *, values: str, at: str, inclusive: bool) -> DataFrame:
    """Return the frame with the number of `values` before `at`, or at or before it if `inclusive`.

    `values` names a column of ascending arrays without NULLs.  The number is 0 if one of the two is NULL.
    """
    count = F.lit(0)
    for bit in reversed(range(_HALVINGS)):
        probed = F.get(F.col(values), count.bitwiseOR(F.lit((1 << bit) - 1)))
        before = probed <= F.col(at) if inclusive else probed < F.col(at)
        # The function `if` generates shorter code than CASE, and the JVM does not compile long methods.
        further = F.call_function("if", before, count.bitwiseOR(F.lit(1 << bit)), count)
        frame = frame.withColumn(name, further)
        count = F.col(name)
    # Spark moves a filter on the result below projections, and follows the key of a later join down through them.  Both
    # expand the columns that they read: 2^26 copies of the first step.  Neither looks below a generator, and one number
    # in an array costs less than a non-deterministic step.
    return frame.withColumn(name, F.explode(F.array(name)))
