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

from pyspark.sql import DataFrame

from weft.core.names import LEFT, internal_name
from weft.joins.resolve.resolved import AsOf
from weft.joins.several import Part
from weft.joins.spark.asof_union import Lane, choose_rows
from weft.joins.spark.chosen import CHOSEN, finish
from weft.joins.spark.contracts import guard_promises
from weft.joins.spark.sides import Sides


def lower_several(left: DataFrame, rights: Sequence[DataFrame], parts: Sequence[Part]) -> DataFrame:
    """Return the rows of all joins under their real names; no job runs."""
    lanes = [_lane(Sides.of(left, right, part.direct), part) for part, right in zip(parts, rights, strict=True)]
    frame = choose_rows(lanes)
    names: list[str] = []
    for done, (part, lane) in enumerate(zip(parts, lanes, strict=True), start=1):
        # The result of each part is the left side of the next one, as in a chain: names and positions follow.
        rest = [later.chosen for later in lanes[done:]]
        join = part.chained
        sides = Sides(join, frame, lane.sides.right, lane.sides.F)
        assert isinstance(join.match, AsOf)  # noqa: S101  # a part is an as-of join
        joined = finish(frame.withColumnRenamed(lane.chosen, CHOSEN), sides, join.match, besides=rest)
        result = guard_promises(joined, sides).select(*sides.output(), *rest)
        names = [c.name for c in join.output]
        frame = result.toDF(*(internal_name(LEFT, i) for i in range(len(names))), *rest)
    return frame.toDF(*names)


def _lane(sides: Sides, part: Part) -> Lane:
    # Specs may list the same keys in different orders; in the union they are columns by position.
    keys = sorted(sides.join.keys, key=lambda k: (k.left, str(k.dtype), k.right))
    return Lane(sides, part.match, tuple(keys), str(part.number))
