"""Tables of PostgreSQL: read by Spark, staged beside their target, published in one transaction."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from needed import stop_without
from postgres import Server, running_server
from resolvers import catalog, dataset, read_of, resolver, rule, source, table
from weft.errors import ResolutionError, RunError
from weft.io.spark import jdbc
from weft.io.spark.connector import Staging
from weft.io.spark.database import TableSwap, connect, drop_stage, has_rows, publish
from weft.io.spark.failures import data_failure
from weft.io.spark.session import installed_jars
from weft.pipelines.model.dataset import Dataset
from weft.pipelines.model.resolver import PathStrategy, TableStrategy
from weft.pipelines.plan.catalog import Catalog
from weft.pipelines.spark.read import read_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RUN_AT = dt.datetime(2026, 2, 3, tzinfo=dt.UTC)
RUN = "0199a1c2-0000-7000-8000-000000000001"
ORDERS = dataset(
    table("Order lines", id="long", amount="decimal(18,2)", price="decimal(38,10)", seen="timestamp", day="date"),
    natural_key_columns=("id",),
)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    if not installed_jars():
        stop_without("these tests need the JDBC driver of PostgreSQL: `scripts/jars` fetches it")
    with running_server() as found:
        yield found


@pytest.fixture
def database(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[psycopg.Connection[Any]]:
    monkeypatch.setenv("GL_DB", "weft:ignored")
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS gl CASCADE")
        connection.execute("CREATE SCHEMA gl")
        connection.execute(
            'CREATE TABLE gl."Order lines" (id integer, amount numeric(18,2), price numeric, seen timestamptz, '
            "day timestamp, _period text, _deleted boolean, extra jsonb)"
        )
        connection.execute(
            """INSERT INTO gl."Order lines" VALUES
            (1, 12.30, 0.0000000001, '2026-01-01T10:00+01:00', '2026-01-31', '2026-01', NULL, '{}'),
            (2, 99.99, 1, NULL, NULL, '2026-02', false, NULL), (3, 1, 1, NULL, NULL, '2026-01', true, NULL)"""
        )
        yield connection


def opened(server: Server, **options: Any) -> Catalog:
    url = "jdbc:" + server.url().replace("weft@", "")
    pg = source("jdbc", "pg", url=url, schema="gl", credential_ref="env:GL_DB", **options)
    strategy = TableStrategy(datasource="pg", table="{{table_name}}")
    return catalog(resolver(rule("db", strategy=strategy)), pg, default="main")


def read(spark: SparkSession, known: Catalog, data: Dataset = ORDERS) -> DataFrame:
    return read_table(spark, read_of(data, known), known, Path(), run_at=RUN_AT)


def test_a_table_is_read_typed_and_filtered(
    spark: SparkSession, server: Server, database: psycopg.Connection[Any]
) -> None:
    assert not database.closed
    frame = read(spark, opened(server))
    plan = frame._jdf.queryExecution().toString()
    assert "PushedFilters: [*In(_period, [2026-01])" in plan or "EqualTo(_period,2026-01)" in plan
    (row,) = frame.collect()
    assert (row.id, row.amount, row.price) == (1, Decimal("12.30"), Decimal("0.0000000001"))
    assert (row.seen, row.day) == (dt.datetime(2026, 1, 1, 9), dt.date(2026, 1, 31))  # noqa: DTZ001
    assert (row._deleted, row._source_table) == (False, "Order lines")


def test_a_refusal_of_the_database_is_reported(
    spark: SparkSession, server: Server, database: psycopg.Connection[Any]
) -> None:
    with pytest.raises(ResolutionError) as caught:
        read(spark, opened(server), dataset(table('or"ders')))
    assert caught.value.code == "W1311"
    with pytest.raises(ResolutionError) as caught:
        read(spark, opened(server), dataset(table("nowhere")))
    assert caught.value.code == "W1318"
    assert "nowhere" in caught.value.message
    with pytest.raises(ResolutionError) as caught:
        read(spark, opened(server, driver="org.example.Driver"))
    assert caught.value.code == "W1314"
    assert "org.example.Driver" in caught.value.message
    database.execute('UPDATE gl."Order lines" SET price = 0.00000000001')
    with pytest.raises(Exception, match="WEFT_DATA") as failed:
        read(spark, opened(server)).collect()
    reported = data_failure(failed.value)
    assert reported is not None
    assert (reported.code, "table Order lines of 'pg'" in reported.message) == ("W1317", True)


def test_a_path_is_not_a_table(spark: SparkSession, server: Server) -> None:
    strategy = PathStrategy(datasource="pg", path="x")
    known = catalog(
        resolver(rule("db", strategy=strategy)),
        source("jdbc", "pg", url="jdbc:postgresql://h/d"),
        default="main",
    )
    with pytest.raises(ResolutionError, match="is a database"):
        read(spark, known)
    assert server.port


class Destination:
    """A target in schema gl and the rows staged for it."""

    def __init__(self, spark: SparkSession, server: Server) -> None:
        self.spark = spark
        found = opened(server).datasource("pg")
        assert found is not None
        self.source = found

    def staged(self, seq: int, *rows: tuple[Any, ...], mode: Any = "replace_period", **keys: Any) -> TableSwap:
        frame = self.spark.createDataFrame(
            rows, "id long, amount decimal(18,2), at timestamp, _labels map<string,string>, _period string"
        )
        asked = Staging(
            kind="jdbc",
            folder=Path(),
            target=Path("gl.out"),
            run_id=RUN,
            rows_of=RUN,
            seq=seq,
            root=Path(),
            source=self.source,
            table="out",
        )
        found = jdbc.stage(frame, asked)
        assert (found.rows, found.files) == (len(rows), ())
        return TableSwap(
            stage=found.location,
            schema="gl",
            table="out",
            columns=found.columns,
            mode=mode,
            periods=("2026-Q1", "2026-01"),
            **keys,
        )

    def publish(self, *swaps: TableSwap) -> list[bool]:
        with connect(self.source, Path()) as connection:
            return [publish(connection, swap) for swap in swaps]


def test_outputs_are_published_together_and_once(
    spark: SparkSession, server: Server, database: psycopg.Connection[Any]
) -> None:
    at = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    out = Destination(spark, server)

    def there() -> list[tuple[Any, ...]]:
        return database.execute("SELECT id, amount, _period FROM gl.out ORDER BY id, _period").fetchall()

    one, old = Decimal("1.00"), Decimal("5.00")
    first = out.staged(10, (1, one, at, {"a": "b"}, "2026-01"), (2, one, at, {}, "2025-12"))
    assert out.publish(first) == [True]
    assert out.publish(first) == [False]
    kept = database.execute("SELECT at, _labels FROM gl.out WHERE id = 1").fetchone()
    assert kept is not None
    assert kept[0].replace(tzinfo=dt.UTC) == at or kept[0] == at
    assert kept[1] == '{"a":"b"}'
    second = out.staged(10, (3, old, at, {}, "2026-01"))
    assert out.publish(second) == [True]
    assert there() == [(2, one, "2025-12"), (3, old, "2026-01")]
    merge = out.staged(20, (3, one, at, {}, "2026-01"), (4, one, at, {}, "2026-01"), mode="merge", key=("id",))
    append = out.staged(30, (5, one, at, {}, "2026-01"), mode="append")
    assert out.publish(merge, append) == [True, True]
    assert [row[0] for row in there()] == [2, 3, 4, 5]
    blocked = out.staged(40, (6, one, at, {}, "2026-01"), mode="fail_if_exists")
    with connect(out.source, Path()) as connection:
        assert has_rows(connection, blocked)
    with pytest.raises(RunError) as caught:
        out.publish(out.staged(50, (7, one, at, {}, "2026-02"), mode="append"), blocked)
    assert caught.value.code == "W1507"
    assert [row[0] for row in there()] == [2, 3, 4, 5]
    with connect(out.source, Path()) as connection:
        drop_stage(connection, blocked.stage)
    assert out.publish(blocked) == [False]


def test_a_target_that_does_not_fit_and_a_server_that_is_gone_are_reported(
    spark: SparkSession, server: Server, database: psycopg.Connection[Any]
) -> None:
    database.execute("CREATE TABLE gl.out (id text)")
    out = Destination(spark, server)
    swap = out.staged(10, (1, Decimal("1.00"), None, {}, "2026-01"), mode="append")
    with pytest.raises(RunError) as caught:
        out.publish(swap)
    assert caught.value.code == "W1509"
    assert 'column "amount"' in caught.value.message
    nowhere = source("jdbc", "pg", url="jdbc:postgresql://127.0.0.1:9/x")
    with pytest.raises(RunError) as caught:
        connect(nowhere, Path())
    assert caught.value.code == "W1509"
    with pytest.raises(ResolutionError, match="databases of PostgreSQL"):
        connect(source("jdbc", "my", url="jdbc:mysql://h/d"), Path())
