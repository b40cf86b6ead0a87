"""From a choice to a plan: each strategy name and the file that builds it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft.plan.choose import Choice
from weft.plan.resolved import ResolvedJoin
from weft.spark import asof, equi

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def lower(
    left: DataFrame, right: DataFrame, join: ResolvedJoin, choice: Choice, *, observation: Any = None
) -> DataFrame:
    """Return the joined frame by the chosen strategy; no job runs."""
    if choice.strategy in asof.PLANS:
        return asof.lower(left, right, join, strategy=choice.strategy, observation=observation)
    return equi.lower(left, right, join, observation=observation)
