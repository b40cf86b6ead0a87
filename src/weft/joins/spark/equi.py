"""Joins by equal keys and predicates: Spark's own hash, sort-merge or nested-loop join.

Before::

    left  natural_left  right        keys (k, k), right also has v

After::

    SELECT l0 AS k, l1 AS a, r1 AS v
    FROM (SELECT k AS l0, a AS l1 FROM left) LEFT JOIN (SELECT k AS r0, v AS r1 FROM right) ON l0 = r0

The two projections around the join cost nothing at run time: Catalyst removes them.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame

from weft.joins.resolve.resolved import ResolvedJoin
from weft.joins.spark.contracts import add_check_columns, add_markers, guard_promises, needs_markers
from weft.joins.spark.sides import LEFT_HERE, RIGHT_HERE, SPARK_HOW, Sides


def lower(left: DataFrame, right: DataFrame, join: ResolvedJoin, *, observation: Any = None) -> DataFrame:
    """Return the joined frame; no job runs."""
    sides = prepare_sides(left, right, join, observation)
    condition = sides.condition()
    if condition is None:
        joined = sides.left.crossJoin(sides.right)
    else:
        joined = sides.left.join(sides.right, condition, SPARK_HOW[widen_how(join)])
    return project_output(guard_promises(joined, sides), sides, observation)


def prepare_sides(left: DataFrame, right: DataFrame, join: ResolvedJoin, observation: Any) -> Sides:
    """Return both sides with the columns that promises and counts read."""
    sides = Sides.of(left, right, join)
    # Markers are extra columns in the shuffle: only promises, indicators and counts read them.
    if needs_markers(sides):
        return add_check_columns(sides)
    return sides if observation is None else add_markers(sides)


def project_output(joined: DataFrame, sides: Sides, observation: Any) -> DataFrame:
    """Return the columns of the result under their real names; rows are counted by an `observation`."""
    if observation is not None:
        joined = _observe_counts(joined, sides, observation)
    return joined.select(*sides.output())


def widen_how(join: ResolvedJoin) -> str:
    """Return the outer join that keeps the rows an `unmatched` promise is about.

    When the promise holds there are none, so the rows are those of the requested join.
    """
    if join.how not in ("inner", "left", "right", "full"):
        return join.how
    keeps_left = join.how in ("left", "full") or "left" in join.unmatched
    keeps_right = join.how in ("right", "full") or "right" in join.unmatched
    if keeps_left:
        return "full" if keeps_right else "left"
    return "right" if keeps_right else "inner"


def _observe_counts(joined: DataFrame, sides: Sides, observation: Any) -> DataFrame:
    """Return the joined rows with their counts observed; needs the two markers."""
    F = sides.F
    rows = F.count(F.lit(1)).alias("rows")
    if sides.join.how in ("semi", "anti"):
        return joined.observe(observation, rows)
    left, right = F.col(LEFT_HERE).isNotNull(), F.col(RIGHT_HERE).isNotNull()
    return joined.observe(
        observation,
        rows,
        F.count_if(left & right).alias("matched"),
        F.count_if(left & ~right).alias("left_only"),
        F.count_if(~left & right).alias("right_only"),
    )
