"""Several as-of joins by one union, one shuffle and at most two sorts.

Before::

    left ASOF quotes ASOF rates   both by keys k and left order t

After::

    SELECT l.*, last(r1, ignore nulls) OVER w AS r1, last(r2, ignore nulls) OVER w AS r2
    FROM (SELECT k, t, 1 AS side, struct(left) AS l, NULL AS r1, NULL AS r2 FROM left
          UNION ALL
          SELECT k, u, 0 AS side, NULL AS l, struct(quotes) AS r1, NULL AS r2 FROM quotes
          UNION ALL
          SELECT k, v, 0 AS side, NULL AS l, NULL AS r1, struct(rates) AS r2 FROM rates)
    WHERE side = 1
    WINDOW w AS (PARTITION BY k ORDER BY t, side, ties of r1.., ties of r2.. ROWS UP TO HERE)

The rows of one right side are sorted by their own ties, because the tie columns of the other sides are
NULL for all of them.  After the choice the parts are finished one after another, as in a chain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

from weft.core.names import LEFT, RIGHT, internal_name
from weft.expr.spark.frames import window_of
from weft.joins.resolve.resolved import AsOf, ResolvedKey
from weft.joins.several import Part
from weft.joins.spark.asof_union import (
    HERE,
    chosen_row,
    directions,
    pack_type,
    right_time,
    running,
    salt,
    ties,
    unpack_left,
)
from weft.joins.spark.chosen import CHOSEN, can_match, finish, pack_left, pack_right
from weft.joins.spark.contracts import guard_promises
from weft.joins.spark.order import Axis
from weft.joins.spark.sides import Sides

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


@dataclass(frozen=True, slots=True)
class _Lane:
    """A part with the frames it joins."""

    part: Part
    sides: Sides

    @property
    def match(self) -> AsOf:
        return self.part.match

    @property
    def row(self) -> str:
        """Name of the column that holds rows of this right side."""
        return f"r{self.part.number}_"

    @property
    def usable(self) -> str:
        """Name of the column that says whether a left row can match here."""
        return f"u{self.part.number}"

    @property
    def chosen(self) -> str:
        """Name of the column that holds the right row of a left one."""
        return f"__weft_chosen{self.part.number}"

    @property
    def keys(self) -> list[ResolvedKey]:
        """The keys in an order that is the same for all parts."""
        return sorted(self.sides.join.keys, key=lambda k: (k.left, str(k.dtype), k.right))


def lower_several(left: DataFrame, rights: Sequence[DataFrame], parts: Sequence[Part]) -> DataFrame:
    """Return the rows of all joins under their real names; no job runs."""
    lanes = [_Lane(p, Sides.of(left, right, p.direct)) for p, right in zip(parts, rights, strict=True)]
    sides, F = lanes[0].sides, lanes[0].sides.F
    every = reduce(lambda a, b: a.unionAll(b), [_left_rows(lanes), *(_right_rows(lane, lanes) for lane in lanes)])
    columns: dict[str, Column] = {}
    for descending in (False, True):
        going = [lane for lane in lanes if descending in directions(lane.match)]
        window = _window(every, lanes, going, descending=descending)
        for lane in going:
            for name, value in running(lane.sides, lane.match, lane.row).items():
                columns[f"{name}{int(descending)}"] = value.over(window)
    reached = every.withColumns(columns).filter(F.col("side") == HERE)
    rows = reached.select(*(lane.usable for lane in lanes), *unpack_left(sides), *columns)
    return _finish(
        rows.select(
            *(internal_name(LEFT, i) for i in range(len(sides.join.left))),
            *(chosen_row(lane.sides, lane.match, lane.row, F.col(lane.usable)).alias(lane.chosen) for lane in lanes),
        ),
        lanes,
    )


def _left_rows(lanes: Sequence[_Lane]) -> DataFrame:
    """Return the left rows as rows of the union."""
    sides, F = lanes[0].sides, lanes[0].sides.F
    usable = [can_match(lane.sides, lane.match, "left") for lane in lanes]
    anywhere = reduce(lambda a, b: a | b, usable)
    return sides.left.select(
        *(F.when(anywhere, sides.left_column(k.left, k.dtype)).alias(f"k{i}") for i, k in enumerate(lanes[0].keys)),
        salt(sides, anywhere).alias("salt"),
        Axis.of(sides, lanes[0].match).left.alias("t"),
        F.lit(HERE).alias("side"),
        *(u.alias(lane.usable) for lane, u in zip(lanes, usable, strict=True)),
        pack_left(sides).alias("l"),
        *(_nothing(lane) for lane in lanes),
    )


def _right_rows(lane: _Lane, lanes: Sequence[_Lane]) -> DataFrame:
    """Return the rows of a right side as rows of the union."""
    sides, F = lane.sides, lane.sides.F
    when, side = right_time(sides, lane.match)
    none = F.lit(None).cast(pack_type(sides.join.left, LEFT))
    return sides.right.filter(can_match(sides, lane.match, "right")).select(
        *(sides.right_column(k.right, k.dtype).alias(f"k{i}") for i, k in enumerate(lane.keys)),
        F.lit(0).alias("salt"),
        when.alias("t"),
        side.alias("side"),
        *(F.lit(True).alias(other.usable) for other in lanes),
        none.alias("l"),
        *(pack_right(sides).alias(o.row) if o is lane else _nothing(o) for o in lanes),
    )


def _nothing(lane: _Lane) -> Column:
    return lane.sides.F.lit(None).cast(pack_type(lane.sides.join.right, RIGHT)).alias(lane.row)


def _window(every: DataFrame, lanes: Sequence[_Lane], going: Sequence[_Lane], *, descending: bool) -> Any:
    F = lanes[0].sides.F
    keys = [F.col(f"k{i}") for i in range(len(lanes[0].keys))]
    time = F.col("t").desc() if descending else F.col("t").asc()
    settled = [column for lane in going for column in ties(lane.sides, lane.match, lane.row)]
    window = window_of(every)
    return (
        window.partitionBy(*keys, F.col("salt"))
        .orderBy(time, F.col("side").asc(), *settled)
        .rowsBetween(window.unboundedPreceding, window.currentRow)
    )


def _finish(frame: DataFrame, lanes: Sequence[_Lane]) -> DataFrame:
    """Return the rows after every part: ended states cancelled, promises checked, columns named."""
    names: list[str] = []
    for done, lane in enumerate(lanes, start=1):
        rest = [later.chosen for later in lanes[done:]]
        join = lane.part.chained
        sides = Sides(join, frame, lane.sides.right, lane.sides.F)
        assert isinstance(join.match, AsOf)  # noqa: S101  # a part is an as-of join
        joined = finish(frame.withColumnRenamed(lane.chosen, CHOSEN), sides, join.match, besides=rest)
        result = guard_promises(joined, sides).select(*sides.output(), *rest)
        names = [c.name for c in join.output]
        frame = result.toDF(*(internal_name(LEFT, i) for i in range(len(names))), *rest)
    return frame.toDF(*names)
