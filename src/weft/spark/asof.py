"""As-of joins: the chosen plan runs, promises are checked, names come back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from weft.plan.conditions import folded
from weft.plan.resolved import AsOf, ResolvedJoin
from weft.spark import asof_kernel, asof_rank, asof_union
from weft.spark.contracts import checked
from weft.spark.equi import observed
from weft.spark.sides import Sides

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PLANS: Mapping[str, Callable[[Sides, AsOf], DataFrame]] = {
    "kernel": asof_kernel.lower,
    "union": asof_union.lower,
    "rank": asof_rank.lower,
}


def lower(
    left: DataFrame, right: DataFrame, join: ResolvedJoin, *, strategy: str, observation: Any = None
) -> DataFrame:
    """Return the joined frame by the named plan; no job runs."""
    simple = folded(join)
    assert isinstance(simple.match, AsOf)  # noqa: S101  # the chooser sends nothing else
    sides = Sides.of(left, right, simple)
    joined = checked(PLANS[strategy](sides, simple.match), sides)
    if observation is not None:
        joined = observed(joined, sides, observation)
    return joined.select(*sides.output())
