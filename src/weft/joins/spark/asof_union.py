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

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql.types import DataType

from weft.core.names import RIGHT, internal_name
from weft.core.types import Field, Struct
from weft.expr.spark.frames import window_of
from weft.expr.spark.types import to_spark
from weft.joins.resolve.resolved import AsOf, ResolvedKey, Side
from weft.joins.spark.chosen import CHOSEN, can_match, finish, pack_left, pack_right
from weft.joins.spark.order import Axis, known_pair, tie_slots
from weft.joins.spark.sides import Sides, balanced_group, count_partitions, rank

_BEFORE, _HERE, _AFTER = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Lane:
    """One right side of the union; lanes share the left side, its keys and its order."""

    sides: Sides
    match: AsOf
    keys: tuple[ResolvedKey, ...]
    suffix: str = ""

    @property
    def row(self) -> str:
        """Name of the column that holds rows of this right side."""
        return f"r{self.suffix}_"

    @property
    def usable(self) -> str:
        """Name of the column that says whether a left row can match here."""
        return f"u{self.suffix}"

    @property
    def chosen(self) -> str:
        """Name of the column that holds the right row of a left one."""
        return f"{CHOSEN}{self.suffix}"


def lower(sides: Sides, match: AsOf) -> DataFrame:
    """Return the joined rows under positional names; no job runs."""
    return finish(choose_rows([Lane(sides, match, sides.join.keys)]), sides, match)


def choose_rows(lanes: Sequence[Lane]) -> DataFrame:
    """Return the left rows under positional names, each with the right row of every lane or NULL."""
    sides, F = lanes[0].sides, lanes[0].sides.F
    every = reduce(lambda a, b: a.unionAll(b), [_left_rows(lanes), *(_right_rows(lane, lanes) for lane in lanes)])
    every = _spread(every, sides)
    columns: dict[str, Column] = {}
    for descending in (False, True):
        # Lanes of one direction share a window, and so a sort.
        going = [lane for lane in lanes if descending in _directions(lane.match)]
        window = _window(every, lanes[0], going, descending=descending)
        for lane in going:
            for name, value in _running(lane).items():
                columns[f"{name}{int(descending)}"] = value.over(window)
    reached = every.withColumns(columns).filter(F.col("side") == _HERE)
    lefts = [F.col("l").getField(name).alias(name) for name in sides.names("left")]
    rows = reached.select(*(lane.usable for lane in lanes), *lefts, *columns)
    return rows.select(*sides.names("left"), *(_chosen_row(lane).alias(lane.chosen) for lane in lanes))


def _directions(match: AsOf) -> tuple[bool, ...]:
    """Return the sort orders that a match needs: ascending (False), descending (True) or both."""
    return (False, True) if match.direction == "nearest" else (match.direction == "forward",)


def _chosen_row(lane: Lane) -> Column:
    """Return the match of a left row from the running values of a lane."""
    F = lane.sides.F
    chosen = _choose_row(lane, lane.row)
    for i in lane.match.skip_nulls:
        value = _choose_row(lane, f"{lane.row}{i}_").getField(internal_name(RIGHT, i))
        chosen = F.when(chosen.isNotNull(), chosen.withField(internal_name(RIGHT, i), value))
    return F.when(F.col(lane.usable), chosen)


def _left_rows(lanes: Sequence[Lane]) -> DataFrame:
    """Return the left rows as rows of the union: keys, salt, time, side, usable, and a struct for each side."""
    sides, F = lanes[0].sides, lanes[0].sides.F
    usable = [can_match(lane.sides, lane.match, "left") for lane in lanes]
    anywhere = reduce(lambda a, b: a | b, usable)
    # Rows that cannot match have mostly NULL keys, which would be one partition: a salt spreads them.
    salt = F.pmod(sides.hash_left_row(), F.lit(1024)).cast("int") + 1
    return sides.left.select(
        *(F.when(anywhere, sides.left_column(k.left, k.dtype)).alias(f"k{i}") for i, k in enumerate(lanes[0].keys)),
        F.when(anywhere, F.lit(0)).otherwise(salt).alias("salt"),
        Axis.of(sides, lanes[0].match).left.alias("t"),
        F.lit(_HERE).alias("side"),
        *(u.alias(lane.usable) for lane, u in zip(lanes, usable, strict=True)),
        pack_left(sides).alias("l"),
        *(_nothing(lane.sides, "right").alias(lane.row) for lane in lanes),
    )


def _right_rows(lane: Lane, lanes: Sequence[Lane]) -> DataFrame:
    """Return the rows of a right side as rows of the union; `unionAll` goes by position, so the columns are the same."""
    sides, F = lane.sides, lane.sides.F
    time, side = _right_time(sides, lane.match)
    return sides.right.filter(can_match(sides, lane.match, "right")).select(
        *(sides.right_column(k.right, k.dtype).alias(f"k{i}") for i, k in enumerate(lane.keys)),
        F.lit(0).alias("salt"),
        time.alias("t"),
        side.alias("side"),
        *(F.lit(True).alias(other.usable) for other in lanes),
        _nothing(sides, "left").alias("l"),
        *((pack_right(sides) if o is lane else _nothing(o.sides, "right")).alias(o.row) for o in lanes),
    )


def _nothing(sides: Sides, side: Side) -> Column:
    """Return NULL in the type of the struct of a side."""
    fields = zip(sides.names(side), sides.join.schema_of(side).fields, strict=True)
    dtype: DataType = to_spark(Struct(tuple(Field(name, f.dtype) for name, f in fields)))
    return sides.F.lit(None).cast(dtype)


def _spread(every: DataFrame, sides: Sides) -> DataFrame:
    """Spread slices evenly over partitions: a few of them, hashed, would leave partitions empty."""
    F = sides.F
    if not sides.sliced:
        return every
    keys = [F.col(f"k{i}") for i in range(len(sides.join.keys))]
    number = sides.spread([*keys[:-1], F.coalesce(keys[-1], F.lit(0))]) + F.col("salt")
    return every.withColumn("group", balanced_group(F, number, count_partitions(every))).repartition("group")


def _right_time(sides: Sides, match: AsOf) -> tuple[Column, Column]:
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


def _window(every: DataFrame, first: Lane, going: Sequence[Lane], *, descending: bool) -> Any:
    F = first.sides.F
    keys = [F.col(f"k{i}") for i in range(len(first.keys))]
    # Rows are partitioned by the group already; as it is one of the keys, Spark does not shuffle them again.
    groups = [F.col("group")] if first.sides.sliced else []
    time = F.col("t").desc() if descending else F.col("t").asc()
    ties = [column for lane in going for column in _ties(lane)]
    window = window_of(every)
    return (
        window.partitionBy(*groups, *keys, F.col("salt"))
        .orderBy(time, F.col("side").asc(), *ties)
        .rowsBetween(window.unboundedPreceding, window.currentRow)
    )


def _ties(lane: Lane) -> list[Column]:
    """Return what resolves ties: ascending in both directions, because the last row is the greatest."""
    F, packed = lane.sides.F, lane.sides.F.col(lane.row)
    fields = [packed.getField(internal_name(RIGHT, s.index)) for s in tie_slots(lane.sides.join, lane.match)]
    # One value: Spark would push several down to the projection that packs the row, and track twice as many
    # equivalent expressions of the packed row for each of them.
    return [F.when(packed.isNotNull(), rank(F, fields)).asc()] if fields else []


def _running(lane: Lane) -> dict[str, Column]:
    """Return the running values by name: the last right row, and one for each column of `skip_nulls`."""
    F, match = lane.sides.F, lane.match
    row = F.col(lane.row)
    rows = {lane.row: row}
    for i in match.skip_nulls:
        rows[f"{lane.row}{i}_"] = F.when(row.getField(internal_name(RIGHT, i)).isNotNull(), row)
    if match.known is None:
        return {name: F.last(value, ignorenulls=True) for name, value in rows.items()}
    # A row that becomes known later may have an earlier event time: the greatest event time wins, not the last row.
    fields = [match.right, *(s.index for s in tie_slots(lane.sides.join, match))]
    best = rank(F, (row.getField(internal_name(RIGHT, i)) for i in fields))
    return {name: F.max_by(value, F.when(value.isNotNull(), best)) for name, value in rows.items()}


def _choose_row(lane: Lane, name: str) -> Column:
    """Return the chosen right row: within the tolerance, and the nearer of two directions."""
    F, match = lane.sides.F, lane.match
    axis = Axis.of(lane.sides, match)
    choices: list[tuple[Column, Column]] = []
    for descending in _directions(match):
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
