"""read_parquet, read_csv and read_table: relations of files and tables, without a DataFrame in between."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from weft.errors import ArgumentError, WeftError
from weft.joins.relation import Relation, relation
from weft.joins.spark.failures import FILES, explain_failure
from weft.joins.spec.values import check_bool

Path = str | os.PathLike[str]


def read_parquet(spark: SparkSession, path: Path | Sequence[Path], /) -> Relation:
    """Read Parquet files as a relation.

    Parameters
    ----------
    spark
        The session, classic or Connect.  Required.
    path
        A file or folder, or several: local paths and every address that the session can read.  Required.

    Examples
    --------
    ::

        trades = weft.read_parquet(spark, "data/trades")
        trades.natural_asof(weft.read_parquet(spark, "data/quotes"), order="ts", by="symbol").show()
    """
    paths = _paths(path, "read_parquet")
    return _read(spark, "read_parquet", lambda session: session.read.parquet(*paths))


def read_csv(
    spark: SparkSession,
    path: Path | Sequence[Path],
    /,
    *,
    schema: str | None = None,
    header: bool = True,
    separator: str = ",",
) -> Relation:
    """Read CSV files as a relation; a line that does not fit the columns is an error when it is read.

    Parameters
    ----------
    spark
        The session, classic or Connect.  Required.
    path
        A file or folder, or several: local paths and every address that the session can read.  Required.
    schema
        The columns with their types, for example ``"symbol string, ts timestamp, price decimal(18,6)"``.  None
        (default) reads the files once to find the types; numbers with a point become doubles.
    header
        Whether the first line of each file has the names of the columns.  True by default.
    separator
        The character between two values; a comma by default.

    Examples
    --------
    ::

        rates = weft.read_csv(spark, "rates.csv", schema="currency string, day date, rate decimal(18,6)")
    """
    paths = [os.fspath(p) for p in _paths(path, "read_csv")]
    check_bool(header, "header")
    for name, value in (("schema", schema), ("separator", separator)):
        if not isinstance(value, str) and (name, value) != ("schema", None):
            raise ArgumentError(
                f"{name} must be a string, not {type(value).__name__}",
                help="write schema='symbol string, ts timestamp'" if name == "schema" else "write separator=';'",
            )

    def read(session: SparkSession) -> DataFrame:
        # FAILFAST: the default of Spark makes NULLs of values that it cannot read.
        return session.read.csv(
            paths, schema=schema, header=header, sep=separator, inferSchema=schema is None, mode="FAILFAST"
        )

    return _read(spark, "read_csv", read)


def read_table(spark: SparkSession, name: str, /) -> Relation:
    """Read a table or view of the session's catalog as a relation.

    Parameters
    ----------
    spark
        The session, classic or Connect.  Required.
    name
        The name of the table, ``"table"``, ``"schema.table"`` or ``"catalog.schema.table"``.  Required.

    Examples
    --------
    ::

        trades = weft.read_table(spark, "markets.trades")
    """
    if not isinstance(name, str):
        raise ArgumentError(
            f"read_table takes the name of a table, not {type(name).__name__}", help="write read_table(spark, 'trades')"
        )
    return _read(spark, "read_table", lambda session: session.table(name))


def _read(spark: object, method: str, read: Callable[[SparkSession], DataFrame]) -> Relation:
    if not isinstance(spark, SparkSession) and not type(spark).__module__.startswith("pyspark.sql.connect."):
        raise ArgumentError(
            f"{method} takes the Spark session first, not {type(spark).__name__}",
            help=f"write weft.{method}(spark, ...)",
        )
    session: Any = spark
    with _coded():
        # On Connect the schema is the first thing that asks the server whether the data is there.
        return relation(read(session))


def _paths(path: object, method: str) -> list[str]:
    several = [path] if isinstance(path, str | os.PathLike) else path
    if not isinstance(several, Sequence) or not several or not all(isinstance(p, str | os.PathLike) for p in several):
        raise ArgumentError(
            f"{method} takes a path or a sequence of paths, not {path!r}", help=f"write weft.{method}(spark, 'folder')"
        )
    return [os.fspath(p) for p in several]


@contextmanager
def _coded() -> Iterator[None]:
    """Raise failures to find or read the data as errors of Weft."""
    try:
        yield
    except WeftError:
        raise
    except Exception as failure:
        # Failures of a job that reads the types of files come as exceptions of Java.
        known = explain_failure(failure, FILES)
        if known is None:
            raise
        raise known from None
