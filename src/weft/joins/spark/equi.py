"""Joins by equal keys and predicates: Spark's own hash, sort-merge or nested-loop join.

Before::

    left  natural_left  right        keys (k, k), right also has v

After::

    SELECT l0 AS k, l1 AS a, r1 AS v
    FROM (SELECT k AS l0, a AS l1 FROM left) LEFT JOIN (SELECT k AS r0, v AS r1 FROM right) ON l0 = r0

Two projections around the join cost nothing at run time: Catalyst folds them away.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from weft.joins.resolve.resolved import ResolvedJoin
from weft.joins.spark.contracts import checked, needs_markers, prepared
from weft.joins.spark.sides import LEFT_HERE, RIGHT_HERE, Sides

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SPARK_HOW = {
    "inner": "inner",
    "left": "left_outer",
    "right": "right_outer",
    "full": "full_outer",
    "semi": "left_semi",
    "anti": "left_anti",
}


def lower(left: DataFrame, right: DataFrame, join: ResolvedJoin, *, observation: Any = None) -> DataFrame:
    """Return the joined frame; no job runs."""
    sides = begun(left, right, join, observation)
    condition = sides.condition()
    if condition is None:
        joined = sides.left.crossJoin(sides.right)
    else:
        joined = sides.left.join(sides.right, condition, SPARK_HOW[how_that_shows_unmatched(join)])
    return finished(joined, sides, observation)


def begun(left: DataFrame, right: DataFrame, join: ResolvedJoin, observation: Any) -> Sides:
    """Return both sides with the columns that promises and counts need."""
    sides = prepared(Sides.of(left, right, join))
    return _marked(sides) if observation is not None and not needs_markers(sides) else sides


def finished(joined: DataFrame, sides: Sides, observation: Any) -> DataFrame:
    """Return the joined rows with promises checked, rows counted and columns under real names."""
    return shown(checked(joined, sides), sides, observation)


def shown(joined: DataFrame, sides: Sides, observation: Any) -> DataFrame:
    """Return checked rows, counted if that was asked for, with columns under real names."""
    if observation is not None:
        joined = observed(joined, sides, observation)
    return joined.select(*sides.output())


def _marked(sides: Sides) -> Sides:
    return replace(
        sides,
        left=sides.left.withColumn(LEFT_HERE, sides.F.lit(True)),
        right=sides.right.withColumn(RIGHT_HERE, sides.F.lit(True)),
    )


def how_that_shows_unmatched(join: ResolvedJoin) -> str:
    """Return the outer join that keeps the rows an `unmatched` promise is about.

    When the promise holds there are none, so the rows are those of the join asked for.
    """
    keeps_left = join.how in ("left", "full") or (join.how in ("inner", "right") and "left" in join.unmatched)
    keeps_right = join.how in ("right", "full") or (
        join.how in ("inner", "left") and "right" in join.unmatched
    )
    if join.how not in ("inner", "left", "right", "full"):
        return join.how
    return {(False, False): "inner", (True, False): "left", (False, True): "right", (True, True): "full"}[
        keeps_left, keeps_right
    ]


def observed(joined: DataFrame, sides: Sides, observation: Any) -> DataFrame:
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
