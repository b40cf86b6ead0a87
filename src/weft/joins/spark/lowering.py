"""From a choice to a plan: each strategy name and the file that builds it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from weft.joins.choose import Choice
from weft.joins.resolve.resolved import ResolvedJoin
from weft.joins.spark import asof, equi, interval, window_join

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PLANS: Mapping[str, Callable[..., DataFrame]] = {
    "equi": equi.lower,
    "interval": interval.lower,
    "window": window_join.lower,
    "session": window_join.lower,
}


def lower(
    left: DataFrame, right: DataFrame, join: ResolvedJoin, choice: Choice, *, observation: Any = None
) -> DataFrame:
    """Return the joined frame by the chosen strategy; no job runs."""
    if choice.strategy in asof.PLANS:
        return asof.lower(left, right, join, choice, observation=observation)
    return PLANS[choice.strategy](left, right, join, observation=observation)
