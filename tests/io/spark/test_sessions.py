"""The sessions that the other tests use."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest
    from pyspark.sql import SparkSession


def test_classic_and_connect_live_in_one_process(spark: SparkSession, connect: SparkSession) -> None:
    import pyspark.sql.connect.functions as connect_functions
    import pyspark.sql.functions as classic_functions

    assert type(spark).__module__ == "pyspark.sql.session"
    assert type(connect).__module__ == "pyspark.sql.connect.session"
    assert type(classic_functions.lit(1)).__module__ == "pyspark.sql.classic.column"
    assert type(connect_functions.lit(1)).__module__ == "pyspark.sql.connect.column"
    classic = spark.range(3).select((classic_functions.col("id") + 1).alias("n"))
    remote: Any = connect.range(3).select((connect_functions.col("id") + 1).alias("n"))
    assert [tuple(r) for r in classic.collect()] == [tuple(r) for r in remote.collect()] == [(1,), (2,), (3,)]


def test_every_session_has_the_settings_that_tests_rely_on(any_spark: SparkSession) -> None:
    assert any_spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert any_spark.conf.get("spark.sql.shuffle.partitions") == "2"
    assert any_spark.conf.get("spark.sql.ansi.enabled") == "true"
    assert any_spark.conf.get("spark.sql.adaptive.enabled") == "true"


def test_a_timestamp_comes_back_as_it_was_sent(any_spark: SparkSession) -> None:
    sent = dt.datetime(2026, 1, 31, 23, 59, 59, 123456)  # noqa: DTZ001  # PySpark gives naive local time
    frame = any_spark.createDataFrame([(sent,)], "ts timestamp")
    assert frame.collect()[0]["ts"] == sent


def test_a_test_is_marked_by_the_session_it_uses(any_spark: SparkSession, request: pytest.FixtureRequest) -> None:
    is_connect = type(any_spark).__module__.startswith("pyspark.sql.connect")
    assert request.node.get_closest_marker("spark") is not None
    assert (request.node.get_closest_marker("connect") is not None) == is_connect


def test_arrow_and_python_workers_work(any_spark: SparkSession) -> None:
    frame = any_spark.createDataFrame([(1, "a"), (2, None)], "n long, s string")
    assert frame.toArrow().to_pydict() == {"n": [1, 2], "s": ["a", None]}
    pandas_frame: Any = frame.toPandas()
    assert list(pandas_frame["n"]) == [1, 2]
    doubled = frame.mapInArrow(lambda batches: batches, frame.schema)
    assert sorted(r["n"] for r in doubled.collect()) == [1, 2]
