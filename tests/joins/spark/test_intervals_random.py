"""Random interval joins against the reference engine: bounds, times in ranges, ranges that overlap.

A pack holds many data sets and is one Spark job; ``WEFT_EXAMPLES=100`` runs as many packs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from near_joins import check, packs, shuffled
from weft.joins.resolve.resolved import Overlap, ResolvedJoin, Within

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def is_near(join: ResolvedJoin) -> bool:
    return isinstance(join.match, Within)


def is_in_range(join: ResolvedJoin) -> bool:
    match = join.match
    return isinstance(match, Overlap) and (match.left_end is None or match.right_end is None)


def overlaps(join: ResolvedJoin) -> bool:
    return isinstance(join.match, Overlap) and not is_in_range(join)


KINDS: dict[str, Callable[[ResolvedJoin], bool]] = {
    "near": is_near,
    "in range": is_in_range,
    "overlapping": overlaps,
}


@pytest.mark.parametrize("kind", KINDS)
def test_random_joins_give_the_rows_of_the_reference(spark: SparkSession, kind: str) -> None:
    hows = set()
    for pack, join in packs("interval", 14, 0, KINDS[kind]):
        check(spark, pack, join)
        hows.add(join.how)
    assert len(hows) > 3, "the packs must be of many kinds to tell anything"


@pytest.mark.parametrize("kind", KINDS)
def test_random_joins_over_connect_give_the_rows_of_the_reference(connect: SparkSession, kind: str) -> None:
    for pack, join in packs("interval", 3, 500, KINDS[kind]):
        check(connect, pack, join)


@pytest.mark.parametrize("partitions", [1, 7])
def test_partitions_and_row_order_decide_nothing(spark: SparkSession, partitions: int) -> None:
    for kind in KINDS.values():
        for pack, join in packs("interval", 2, 700, kind):
            turned = {side: lambda df: df.repartition(partitions) for side in ("left", "right")}
            check(spark, shuffled(pack), join, **turned)


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_broadcast_hint_decides_nothing(spark: SparkSession, side: str) -> None:
    from pyspark.sql import functions as F

    for kind in KINDS.values():
        for pack, join in packs("interval", 2, 900, kind):
            check(spark, pack, join, **{side: F.broadcast})


@pytest.mark.parametrize("how", ["inner", "left", "right", "full", "semi", "anti"])
def test_every_how_of_every_kind(spark: SparkSession, how: str) -> None:
    for kind in KINDS.values():
        for pack, join in packs("interval", 1, 2000, lambda j, kind=kind: kind(j) and j.how == how):  # type: ignore[misc]
            check(spark, pack, join)
