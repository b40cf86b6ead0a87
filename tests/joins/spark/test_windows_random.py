"""Random window joins against the reference engine: tumbling, sliding, session."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from near_joins import check, packs, shuffled
from weft.joins.resolve.resolved import ResolvedJoin, SameWindow

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

KINDS = ("tumbling", "sliding", "session")


def of(kind: str, how: str | None = None) -> Callable[[ResolvedJoin], bool]:
    def wanted(join: ResolvedJoin) -> bool:
        return isinstance(join.match, SameWindow) and join.match.kind == kind and how in (None, join.how)

    return wanted


@pytest.mark.parametrize("kind", KINDS)
def test_random_joins_give_the_rows_of_the_reference(spark: SparkSession, kind: str) -> None:
    hows = set()
    for pack, join in packs("window", 12, 0, of(kind)):
        check(spark, pack, join)
        hows.add(join.how)
    assert len(hows) > 3, "the packs must be of many kinds to tell anything"


@pytest.mark.parametrize("kind", KINDS)
def test_random_joins_over_connect_give_the_rows_of_the_reference(connect: SparkSession, kind: str) -> None:
    for pack, join in packs("window", 3, 500, of(kind)):
        check(connect, pack, join)


@pytest.mark.parametrize("partitions", [1, 7])
def test_partitions_and_row_order_decide_nothing(spark: SparkSession, partitions: int) -> None:
    for kind in KINDS:
        for pack, join in packs("window", 2, 700, of(kind)):
            turned = {side: lambda df: df.repartition(partitions) for side in ("left", "right")}
            check(spark, shuffled(pack), join, **turned)


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_broadcast_hint_decides_nothing(spark: SparkSession, side: str) -> None:
    from pyspark.sql import functions as F

    for kind in KINDS:
        for pack, join in packs("window", 2, 900, of(kind)):
            check(spark, pack, join, **{side: F.broadcast})


@pytest.mark.parametrize("how", ["inner", "left", "right", "full", "semi", "anti"])
def test_every_how_of_every_kind(spark: SparkSession, how: str) -> None:
    for kind in KINDS:
        for pack, join in packs("window", 1, 2000, of(kind, how)):
            check(spark, pack, join)
