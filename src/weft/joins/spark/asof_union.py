"""As-of by one union, one shuffle, one sort and one running value: exact for any key sizes.

Before::

    left ASOF right  keys k, order (t, u), backward

After::

    SELECT l.*, last(r, ignore nulls) OVER (PARTITION BY k ORDER BY t, side, ties.. ROWS UP TO HERE) AS r
    FROM (SELECT k, t, 1 AS side, struct(left) AS l, NULL AS r FROM left
          UNION ALL
          SELECT k, u, 0 AS side, NULL AS l, struct(right) AS r FROM right)
    WHERE side = 1

The right row is one struct, so a NULL in a column is not mistaken for "no row" and one buffer
serves all columns.  ``side`` sorts right rows with an equal time before the left row, or after it
if exact matches are excluded.  Forward sorts descending; nearest does both and takes the nearer row.
The tolerance is tested after the choice: if the nearest row is too far away, so are all others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft.core.names import LEFT, RIGHT, internal_name
from weft.core.types import Field, Schema, Struct
from weft.expr.spark.frames import window_of
from weft.expr.spark.types import to_spark
from weft.joins.resolve.resolved import AsOf
from weft.joins.spark.chosen import CHOSEN, can_match, finish, pack_left, pack_right
from weft.joins.spark.order import Axis, known_pair, tie_slots
from weft.joins.spark.sides import Sides, balanced_group

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

_BEFORE, HERE, _AFTER = 0, 1, 2


def lower(sides: Sides, match: AsOf) -> DataFrame:
    """Return the joined rows under positional names; no job runs."""
    F = sides.F
    both = _spread(_union(sides, match), sides)
    columns: dict[str, Column] = {}
    for descending in directions(match):
        window = _window(both, sides, match, descending=descending)
        for name, value in running(sides, match, "r").items():
            columns[f"{name}{int(descending)}"] = value.over(window)
    reached = both.withColumns(columns).filter(F.col("side") == HERE)
    rows = reached.select("usable", *unpack_left(sides), *columns)
    chosen = chosen_row(sides, match, "r", F.col("usable"))
    kept = [F.col(internal_name(LEFT, i)) for i in range(len(sides.join.left))]
    return finish(rows.select(*kept, chosen.alias(CHOSEN)), sides, match)


def directions(match: AsOf) -> tuple[bool, ...]:
    """Return the sort orders that a match needs: ascending (False), descending (True) or both."""
    return (False, True) if match.direction == "nearest" else (match.direction == "forward",)


def unpack_left(sides: Sides) -> list[Column]:
    """Return the left columns out of their struct ``l``."""
    F = sides.F
    return [
        F.col("l").getField(internal_name(LEFT, i)).alias(internal_name(LEFT, i)) for i in range(len(sides.join.left))
    ]


def chosen_row(sides: Sides, match: AsOf, row: str, usable: Column) -> Column:
    """Return the match of a left row from the running values that are named after `row`."""
    F = sides.F
    chosen = _choose_row(sides, match, row)
    for i in match.skip_nulls:
        value = _choose_row(sides, match, f"{row}_{i}_").getField(internal_name(RIGHT, i))
        chosen = F.when(chosen.isNotNull(), chosen.withField(internal_name(RIGHT, i), value))
    return F.when(usable, chosen)


def _union(sides: Sides, match: AsOf) -> DataFrame:
    """Return both sides as one table: keys, salt, time, side, usable, and a struct each."""
    F = sides.F
    axis = Axis.of(sides, match)
    usable = can_match(sides, match, "left")
    l_type, r_type = pack_type(sides.join.left, LEFT), pack_type(sides.join.right, RIGHT)
    keys = list(enumerate(sides.join.keys))
    ours = sides.left.select(
        *(F.when(usable, sides.left_column(k.left, k.dtype)).alias(f"k{i}") for i, k in keys),
        salt(sides, usable).alias("salt"),
        axis.left.alias("t"),
        F.lit(HERE).alias("side"),
        usable.alias("usable"),
        pack_left(sides).alias("l"),
        F.lit(None).cast(r_type).alias("r"),
    )
    when, side = right_time(sides, match)
    theirs = sides.right.filter(can_match(sides, match, "right")).select(
        *(sides.right_column(k.right, k.dtype).alias(f"k{i}") for i, k in keys),
        F.lit(0).alias("salt"),
        when.alias("t"),
        side.alias("side"),
        F.lit(True).alias("usable"),
        F.lit(None).cast(l_type).alias("l"),
        pack_right(sides).alias("r"),
    )
    return ours.unionAll(theirs)


def _spread(both: DataFrame, sides: Sides) -> DataFrame:
    """Spread slices evenly over partitions: a few of them, hashed, would leave partitions empty."""
    F = sides.F
    if not sides.sliced:
        return both
    partitions = int(both.sparkSession.conf.get("spark.sql.shuffle.partitions", "200") or 200)
    keys = [F.col(f"k{i}") for i in range(len(sides.join.keys))]
    number = sides.spread([*keys[:-1], F.coalesce(keys[-1], F.lit(0))]) + F.col("salt")
    return both.withColumn("group", balanced_group(F, number, partitions)).repartition("group")


def pack_type(schema: Schema, prefix: str) -> DataType:
    """Return the type of all columns of a side as one struct."""
    return to_spark(Struct(tuple(Field(internal_name(prefix, i), f.dtype) for i, f in enumerate(schema.fields))))


def salt(sides: Sides, usable: Column) -> Column:
    """Return 0, or a number that spreads the left rows that cannot match.

    Their keys are mostly NULL, which would be one partition.  Maps and variants have no hash.
    """
    F = sides.F
    hashable = [i for i, f in enumerate(sides.join.left.fields) if f.dtype.is_orderable] or [0]
    number = F.pmod(F.xxhash64(*(sides.left_column(i) for i in hashable)), F.lit(1024)).cast("int") + 1
    return F.when(usable, F.lit(0)).otherwise(number)


def right_time(sides: Sides, match: AsOf) -> tuple[Column, Column]:
    """Return the time from which a right row is visible, and whether it sorts before or after an equal left time."""
    F = sides.F
    axis = Axis.of(sides, match)
    early, late = F.lit(_BEFORE), F.lit(_AFTER)
    inclusive = early if match.allow_exact else late
    if match.known is None:
        return axis.right, inclusive
    _, known = known_pair(sides, match)
    known = known.cast(to_spark(axis.dtype))
    later = known > axis.right
    return F.when(later, known).otherwise(axis.right), F.when(later, early).otherwise(inclusive)


def _window(both: DataFrame, sides: Sides, match: AsOf, *, descending: bool) -> Any:
    F = sides.F
    keys = [F.col(f"k{i}") for i in range(len(sides.join.keys))]
    groups = [F.col("group")] if sides.sliced else []
    time = F.col("t").desc() if descending else F.col("t").asc()
    window = window_of(both)
    return (
        window.partitionBy(*groups, *keys, F.col("salt"))
        .orderBy(time, F.col("side").asc(), *ties(sides, match, "r"))
        .rowsBetween(window.unboundedPreceding, window.currentRow)
    )


def ties(sides: Sides, match: AsOf, row: str) -> list[Column]:
    """Return what resolves ties: ascending in both directions, because the last row is the greatest.

    It is one value.  Spark would push several down to the projection that packs the row, and track twice
    as many equivalent expressions of the packed row for each of them.
    """
    F, packed = sides.F, sides.F.col(row)
    fields = [packed.getField(internal_name(RIGHT, s.index)) for s in tie_slots(sides.join, match)]
    if not fields:
        return []
    rank = F.struct(*(field.alias(f"p{n}") for n, field in enumerate(fields)))
    return [F.when(packed.isNotNull(), rank).asc()]


def running(sides: Sides, match: AsOf, row_name: str) -> dict[str, Column]:
    """Return the running values by name: the last right row, and one for each column of `skip_nulls`."""
    F = sides.F
    row = F.col(row_name)
    running = {row_name: row}
    for i in match.skip_nulls:
        running[f"{row_name}_{i}_"] = F.when(row.getField(internal_name(RIGHT, i)).isNotNull(), row)
    if match.known is None:
        return {name: F.last(value, ignorenulls=True) for name, value in running.items()}
    # A row that becomes known later may have an earlier event time: the greatest event time wins, not the last row.
    fields = [match.right, *(s.index for s in tie_slots(sides.join, match))]
    rank = F.struct(*(row.getField(internal_name(RIGHT, i)).alias(f"p{n}") for n, i in enumerate(fields)))
    return {name: F.max_by(value, F.when(value.isNotNull(), rank)) for name, value in running.items()}


def _choose_row(sides: Sides, match: AsOf, name: str) -> Column:
    """Return the chosen right row: within the tolerance, and the nearer of two directions."""
    F = sides.F
    axis = Axis.of(sides, match)
    choices: list[tuple[Column, Column]] = []
    for descending in directions(match):
        row = F.col(f"{name}{int(descending)}")
        if match.tolerance is None and match.direction != "nearest":  # some types have no distance
            return row
        time = row.getField(internal_name(RIGHT, match.right)).cast(to_spark(axis.dtype))
        gap = axis.distance(axis.left, time)
        if match.tolerance is not None:
            row = F.when(axis.within(gap, match.tolerance), row)
        choices.append((row, gap))
    if len(choices) == 1:
        return choices[0][0]
    (back, back_gap), (ahead, ahead_gap) = choices
    nearer = back_gap <= ahead_gap if match.nearest_tie == "backward" else back_gap < ahead_gap
    return F.when(back.isNull(), ahead).when(ahead.isNull(), back).when(nearer, back).otherwise(ahead)
