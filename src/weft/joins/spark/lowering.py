"""From a choice to a plan: each strategy name and the file that builds it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from pyspark.sql import DataFrame

from weft.joins.choose import Choice, identifies_right
from weft.joins.resolve.predicates import fold_order_conditions
from weft.joins.resolve.resolved import AsOf, ResolvedJoin
from weft.joins.spark import (
    asof_broadcast,
    asof_kernel,
    asof_rank,
    asof_right,
    asof_slices,
    asof_tiny_left,
    asof_union,
    equi,
    interval,
    window_join,
)
from weft.joins.spark.contracts import guard_promises
from weft.joins.spark.sides import RIGHT_HERE, Sides
from weft.joins.spec.values import How

PLANS: Mapping[str, Callable[..., DataFrame]] = {
    "equi": equi.lower,
    "interval": interval.lower,
    "window": window_join.lower,
    "session": window_join.lower,
}
ASOF_PLANS: Mapping[str, Callable[[Sides, AsOf], DataFrame]] = {
    "kernel": asof_kernel.lower,
    "union": asof_union.lower,
    "slices": asof_slices.lower,
    "broadcast": asof_broadcast.lower,
    "tiny_left": asof_tiny_left.lower,
    "rank": asof_rank.lower,
}


_SEARCHED: Mapping[How, How] = {"semi": "inner", "anti": "left"}
"""The join that finds the rows of another one."""


def lower(
    left: DataFrame, right: DataFrame, join: ResolvedJoin, choice: Choice, *, observation: Any = None
) -> DataFrame:
    """Return the joined frame by the chosen strategy; no job runs."""
    if choice.strategy in ASOF_PLANS:
        return _lower_asof(left, right, join, choice, observation)
    return PLANS[choice.strategy](left, right, join, observation=observation)


def _lower_asof(left: DataFrame, right: DataFrame, join: ResolvedJoin, choice: Choice, observation: Any) -> DataFrame:
    """Return the frame of an as-of plan; plans differ in how they search, not in the result."""
    # As in `choose`, which decided for the folded join; `explain` shows the join as it is written.
    simple = fold_order_conditions(join)
    assert isinstance(simple.match, AsOf)  # noqa: S101  # the chooser sends nothing else
    plan = ASOF_PLANS[choice.strategy]
    if choice.strategy == "slices":
        plan = partial(asof_slices.lower, facts=choice.facts, kernel=not choice.no_kernel)
    # A plan finds matches; whether rows with or without one are kept is decided here.
    sides = Sides.of(left, right, replace(simple, how=_SEARCHED.get(simple.how, simple.how)))
    joined = asof_right.lower(sides, simple.match, plan) if identifies_right(simple) else plan(sides, simple.match)
    if simple.how == "anti":
        joined = joined.filter(sides.F.col(RIGHT_HERE).isNull())
    asked = replace(sides, join=simple)
    return equi.project_output(guard_promises(joined, asked), asked, observation)
