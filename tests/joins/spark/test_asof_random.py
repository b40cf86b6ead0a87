"""Random as-of joins by every plan against the reference engine; packs of data sets in one job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from join_cases import assert_schema_is_true, frame_of, rows_of
from near_joins import packs as seeded_packs
from strategies import RandomJoin, expected
from weft import JoinProjection, asof_strategies, relation
from weft.joins.choose import ASOF
from weft.joins.resolve.predicates import fold_order_conditions
from weft.joins.resolve.resolved import ResolvedJoin
from weft.joins.spark import asof_kernel
from weft.joins.spec import from_dict
from weft.testing import assert_rows_equal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DATASETS = 25


def packs(strategy: str, count: int) -> list[tuple[RandomJoin, ResolvedJoin]]:
    """Return packs that resolve and that the plan serves."""
    return seeded_packs("asof", count, 0, lambda join: ASOF[strategy](fold_order_conditions(join)) is None, DATASETS)


@pytest.mark.parametrize("strategy", asof_strategies())
def test_a_plan_agrees_with_the_reference(spark: SparkSession, strategy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for turn, (pack, join) in enumerate(packs(strategy, 12)):
        if turn == 6:  # from here on the search returns folded rows, a few at a time
            monkeypatch.setattr(asof_kernel, "WHOLE", 300)
            monkeypatch.setattr(asof_kernel, "PIECE", 300)
        check(pack, join, spark, strategy, partitions=None)


@pytest.mark.parametrize("partitions", [1, 7])
def test_partitions_and_row_order_decide_nothing(spark: SparkSession, partitions: int) -> None:
    for strategy in asof_strategies():
        for pack, join in packs(strategy, 3):
            check(pack, join, spark, strategy, partitions)


@pytest.mark.parametrize("strategy", asof_strategies())
def test_a_plan_agrees_over_connect(connect: SparkSession, strategy: str) -> None:
    for pack, join in packs(strategy, 4):
        check(pack, join, connect, strategy, partitions=None)


def check(pack: RandomJoin, join: ResolvedJoin, session: SparkSession, strategy: str, partitions: int | None) -> None:
    frames = [frame_of(session, table) for table in (pack.left, pack.right)]
    if partitions is not None:
        frames = [f.repartition(partitions) for f in frames]
    left, right = map(relation, frames)
    spec: Any = from_dict(pack.spec)
    project = JoinProjection.from_dict(pack.project)
    result = left.asof_join(right, spec, project=project, strategy=strategy, order_check="ignore")
    rows = rows_of(result.df)
    try:
        assert_schema_is_true(result, rows)
        assert_rows_equal(rows, expected(join, pack), result.columns)
    except AssertionError as difference:
        raise AssertionError(f"{pack} by {strategy}: {spec}\n{difference}") from difference
