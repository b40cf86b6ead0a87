"""A process of a fresh environment with one extra: what the extra is for, and on Spark a join beside it.

Usage: extra_process.py EXTRA FOLDER. For ``connect``, whose session is another one, FOLDER holds the workspace ``fx`` and
the stream ``job.sql``, which run too.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import weft
from weft.cli.main import run_command
from weft.errors import FileStoreError, StoreError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXTRA, FOLDER = sys.argv[1], Path(sys.argv[2])


def rows_of(spark: SparkSession, type: str) -> list[tuple[Any, ...]]:
    """Return the rows of the table in FOLDER/table, which a library of the extra has written."""
    from weft.core.frozen import FrozenMap
    from weft.io.datasource import DataSource
    from weft.io.location import Location
    from weft.io.spark.connector import ByPosition, Scan
    from weft.io.spark.lakehouse import scan

    source = DataSource(id="lake", name="lake", type=type, status="active", options=FrozenMap())
    place = Location(
        datasource_id="lake",
        path=table_of(type),
        period_identifier="2026-01",
        data_level="any",
        resolver_id="r",
        resolver_version=1,
        rule_name="all",
    )
    by_position = ByPosition(table="table", names=(), needed=0)
    asked = Scan(session=spark, kind=type, locations=(place,), root=FOLDER, columns=by_position, source=source)
    (part,) = scan(asked)
    return sorted(tuple(row) for row in part.frame.collect())


def table_of(type: str) -> str:
    """Write two rows with a library of the extra and return the path that names the table."""
    import pyarrow as pa

    rows = pa.table({"id": pa.array([1, 2], pa.int32()), "name": ["a", "b"]})
    if type == "delta":
        import deltalake

        deltalake.write_deltalake(str(FOLDER / "table"), rows)
        return "table"
    from pyiceberg.catalog import load_catalog

    catalog = load_catalog("lake", type="in-memory", warehouse=(FOLDER / "warehouse").as_uri())
    catalog.create_namespace("gl")
    table = catalog.create_table("gl.orders", schema=rows.schema)
    table.append(rows)
    return str(table.metadata_location).removeprefix("file://")


def use_postgres() -> None:
    """Ask a server that is not there: the driver must be, and say so itself."""
    from weft.pipelines.store.open import open_store

    try:
        open_store("postgresql://weft@127.0.0.1:1/weft", FOLDER)
    except StoreError as problem:
        assert "psycopg" not in problem.message, problem
    else:
        raise AssertionError("nobody listens on port 1")


def use_plot() -> None:
    """Write a picture in a format of matplotlib."""
    counts = weft.MatchCounts(
        left_rows=2, right_rows=2, pairs=1, left_matched=1, right_matched=1, most_for_left=1, most_for_right=1
    )
    counts.plot().savefig(FOLDER / "matches.png")
    assert (FOLDER / "matches.png").read_bytes().startswith(b"\x89PNG")


def use_stores() -> None:
    """Read from a server that is not there: the client must be, and say so itself."""
    from weft.io.stores import open_store

    nobody = {"endpoint": "http://127.0.0.1:1", "allow_http": "true", "anonymous": "true", "retries": "0"}
    try:
        open_store("s3://bucket/gl", nobody).read("a.csv")
    except FileStoreError as problem:
        assert "http://127.0.0.1:1" in problem.message, problem
    else:
        raise AssertionError("nobody listens on port 1")


WITHOUT_SPARK = {"plot": use_plot, "postgres": use_postgres, "stores": use_stores}


def session() -> Any:
    """Return a Connect session for the extra that is for it, and a classic one for the others."""
    from pyspark.sql import SparkSession as Classic

    if EXTRA == "connect":
        return Classic.builder.remote("local[2]").getOrCreate()
    return Classic.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()


def main() -> None:
    """Use the extra."""
    if EXTRA in WITHOUT_SPARK:
        WITHOUT_SPARK[EXTRA]()
    else:
        use_spark(session())
    sys.stdout.write("all of it ran\n")


def use_spark(spark: SparkSession) -> None:
    """Use an extra of Spark, then join."""
    if EXTRA == "polars":
        assert weft.relation(spark.range(2)).to_polars().shape == (2, 1)
    elif EXTRA != "connect":
        assert rows_of(spark, EXTRA) == [(1, "a"), (2, "b")]
    left = weft.relation(spark.sql("SELECT * FROM VALUES ('A', 3L), ('A', 6L), ('B', 4L) AS t(symbol, at)"))
    right = weft.relation(spark.sql("SELECT * FROM VALUES ('A', 1L, 9), ('A', 5L, 8) AS q(symbol, seen, price)"))
    joined = left.natural_asof(right, order=weft.AsofOrder(left="at", right="seen"), strategy="kernel")
    found = sorted((row.symbol, row.at, row.price) for row in joined.df.collect())
    assert found == [("A", 3, 9), ("A", 6, 8), ("B", 4, None)], found
    if EXTRA == "connect":
        assert run_command(["-C", str(FOLDER / "fx"), "run", "-p", "2026-01"], spark=spark) == 0
        assert run_command(["-C", str(FOLDER), "stream", "run", "job.sql", "--batch"], spark=spark) == 0
    spark.stop()


if __name__ == "__main__":
    main()
