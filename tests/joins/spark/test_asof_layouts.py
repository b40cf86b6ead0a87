"""The rows of an as-of join do not depend on partitions, files, row order, settings or cores, by any plan."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import asof_layouts
from join_cases import frame_of, rows_of
from weft import AsofOrder, AsofSpec, Relation, asof_strategies, relation
from weft.errors import StrategyRefusedError
from weft.joins.spark import asof_kernel
from weft.testing import assert_rows_equal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

COLUMNS = ("spec", "k", "t", "a", "u", "b", "c")
SIDES = ("left", "right")
WIDTH = 200


@pytest.fixture(scope="module")
def files(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with both sides as one file and as nine, whose rows are in other orders."""
    folder = tmp_path_factory.mktemp("asof")
    for side, table in zip(SIDES, asof_layouts.tables(), strict=True):
        frame = frame_of(spark, table)
        frame.orderBy(frame.columns[1], frame.columns[2]).coalesce(1).write.parquet(f"{folder}/one/{side}")
        frame.orderBy(frame.columns[2]).repartition(9).write.parquet(f"{folder}/nine/{side}")
    return folder


@pytest.fixture
def other_settings(spark: SparkSession) -> Iterator[SparkSession]:
    """Let five tasks share a shuffle that Spark may not replan, and put every file into a partition of its own."""
    settings = {
        "spark.sql.shuffle.partitions": "5",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.files.maxPartitionBytes": "1024",
    }
    before = {name: spark.conf.get(name) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    yield spark
    for name, old in before.items():
        spark.conf.set(name, old or "")


def sides(session: SparkSession, folder: Path) -> tuple[DataFrame, DataFrame]:
    left, right = (session.read.parquet(f"{folder}/{side}") for side in SIDES)
    return left, right


@pytest.mark.parametrize("strategy", asof_strategies())
def test_one_file_in_order_gives_what_the_reference_says(spark: SparkSession, files: Path, strategy: str) -> None:
    rows = rows_of(asof_layouts.joined(*sides(spark, files / "one"), strategy))
    assert_rows_equal(rows, asof_layouts.expected(strategy), COLUMNS)


@pytest.mark.parametrize("strategy", asof_strategies())
def test_nine_files_in_other_partitions_give_the_same(other_settings: SparkSession, files: Path, strategy: str) -> None:
    left, right = sides(other_settings, files / "nine")
    assert min(left.rdd.getNumPartitions(), right.rdd.getNumPartitions()) >= 9
    rows = rows_of(asof_layouts.joined(left, right, strategy))
    assert_rows_equal(rows, asof_layouts.expected(strategy), COLUMNS)


@pytest.mark.slow
def test_one_core_and_four_give_the_same(files: Path) -> None:
    reported = subprocess.run(
        [sys.executable, asof_layouts.__file__, str(files / "nine")],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )
    assert reported.returncode == 0, reported.stderr
    found = json.loads(reported.stdout.splitlines()[-1])
    assert list(found) == ["local[1]", "local[4]"]
    for plans in found.values():
        for strategy in asof_strategies():
            assert_rows_equal([tuple(row) for row in plans[strategy]], asof_layouts.expected(strategy), COLUMNS)


def wide(left: DataFrame, right: DataFrame, strategy: str) -> Relation:
    """Return the join by a plan, or by `asof_join_all` with a second right side that must give the same values."""
    spec = AsofSpec([("k", "k")], order=AsofOrder("t", "u"))
    if strategy != "asof_join_all":
        return relation(left).asof_join(relation(right), spec, strategy=strategy, order_check="ignore")
    other = right.selectExpr("k", "u v", "note other")
    parts: Any = [(relation(right), spec), (relation(other), AsofSpec([("k", "k")], order=AsofOrder("t", "v")))]
    both = relation(left).asof_join_all(parts, order_check="ignore").df
    return relation(both.filter("u <=> v AND note <=> other"))


@pytest.mark.parametrize("strategy", [*asof_strategies(), "asof_join_all"])
def test_wide_right_rows_that_thousands_of_left_rows_share(
    spark: SparkSession, strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asof_kernel, "WHOLE", 1 << 20)
    monkeypatch.setattr(asof_kernel, "PIECE", 1 << 16)
    count, width = 5000, 2000
    left = spark.range(count).selectExpr("if(id < 4900, 'A', 'B') k", "id t", "nullif(id % 7, 3) a")
    right = spark.range(2).selectExpr("'A' k", "id * 2000 u", f"repeat(id, {width}) note", "array(id, null) tags")
    summed = wide(left, right, strategy).df.selectExpr(
        "k", "u", "substr(note, 1, 3) first", "length(note) n", "tags", "t", "a"
    )
    rows = summed.groupBy("k", "u", "first", "n", "tags").agg({"*": "count", "t": "sum", "a": "count"})
    found = {row[0:4]: (row["tags"], row["count(1)"], row["sum(t)"], row["count(a)"]) for row in rows.collect()}

    def reported(low: int, high: int, tags: list[int | None] | None) -> tuple[object, ...]:
        times = range(low, high)
        return tags, len(times), sum(times), sum(t % 7 != 3 for t in times)

    assert found == {
        ("A", 0, "000", width): reported(0, 2000, [0, None]),
        ("A", 2000, "111", width): reported(2000, 4900, [1, None]),
        ("B", None, None, None): reported(4900, count, None),
    }


@pytest.mark.parametrize("strategy", asof_strategies())
def test_two_hundred_columns_on_each_side(spark: SparkSession, strategy: str) -> None:
    ids = spark.range(60)
    left = ids.selectExpr("id % 3 k", "id t", *(f"id + {i} l{i}" for i in range(2, WIDTH)))
    right = ids.selectExpr("id % 3 k", "id + 1 u", *(f"id * 1000 + {i} r{i}" for i in range(2, WIDTH)))
    spec = AsofSpec([("k", "k")], order=AsofOrder("t", "u"))
    if strategy == "broadcast":
        with pytest.raises(StrategyRefusedError, match="refuses 400 columns"):
            relation(left).asof_join(relation(right), spec, strategy=strategy, order_check="ignore")
        return
    result = relation(left).asof_join(relation(right), spec, strategy=strategy, order_check="ignore")
    assert len(result.columns) == 2 * WIDTH - 1
    for row in rows_of(result.df):
        number = row[1]
        found = number - 3  # the row of the same key before it, which begins one later
        wanted = [found + 1, *(found * 1000 + i for i in range(2, WIDTH))] if found >= 0 else [None] * (WIDTH - 1)
        assert list(row) == [number % 3, number, *(number + i for i in range(2, WIDTH)), *wanted]
