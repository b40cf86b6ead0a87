"""Tables of a database through Spark's JDBC source; names are quoted, never pasted.

Outputs go to a stage table beside their target; publishing it is `weft.io.spark.database`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from weft.errors import ResolutionError
from weft.io.datasource import DataSource, credentials_of
from weft.io.location import Location
from weft.io.options import POSTGRES_BYTES, jdbc_url
from weft.io.spark.connector import Part, Scan, Staging
from weft.io.spark.database import quoted, stage_name
from weft.io.spark.files import as_texts, counting
from weft.io.staged import Staged

DRIVERS = {"postgresql": "org.postgresql.Driver"}
"""Drivers by the kind of url; others are named by the option `driver`."""

_FETCH_SIZE = 10_000


def scan(request: Scan) -> list[Part]:
    """Return the rows of the tables that the locations name."""
    source = request.datasource
    options = connection_options(source, request.root)
    reader = request.session.read.format("jdbc").options(**options)
    return [
        Part(
            frame=reader.option("dbtable", quoted_name(location, source)).load(),
            period=location.period,
            label=f"table {location} of {source.id!r}",
        )
        for location in request.locations
    ]


def stage(rows: DataFrame, request: Staging) -> Staged:
    """Write the rows into a stage table of the target's schema, or of that of the datasource."""
    source = request.source
    assert source is not None  # noqa: S101  # a target in a database names its datasource
    schema = request.schema or str(source.options.get("schema") or "")
    name = quoted(schema, stage_name(request.run_id, request.seq))
    counted, count = counting(as_texts(rows))
    options = connection_options(source, request.root)
    # Overwritten, because an attempt that died may have left a part of the rows.
    counted.write.format("jdbc").options(**options, dbtable=name).mode("overwrite").save()
    return Staged(location=name, rows=count(), columns=tuple(rows.columns), files=())


def current(rows: DataFrame, request: Staging) -> list[Part]:  # noqa: ARG001  # the signature of every connector
    """Return nothing: new rows are staged alone, and the database merges them when they are published."""
    return []


def connection_options(source: DataSource, root: Path) -> dict[str, Any]:
    """Return the options of Spark's JDBC source: address, driver, user and password."""
    url = jdbc_url(source)
    kind = url.removeprefix("jdbc:").partition(":")[0]
    driver = str(source.options.get("driver") or DRIVERS.get(kind, ""))
    if not url.startswith("jdbc:") or not driver:
        raise ResolutionError(
            f"datasource {source.id!r} has the url {url!r}, for which no driver is known",
            code="W1318",
            help="write jdbc:postgresql://host:5432/database, or name the `driver` class in the options",
            at=source.at.of("options.url"),
        )
    options: dict[str, Any] = {
        "url": url,
        "driver": driver,
        "fetchsize": int(source.options.get("fetch_size") or _FETCH_SIZE),
        # Spark would read a time without zone in the zone of the JVM.
        "preferTimestampNTZ": True,
    }
    secret = credentials_of(source, root)
    return options | {key: value for key, value in (("user", secret.user), ("password", secret.password)) if value}


def quoted_name(location: Location, source: DataSource) -> str:
    """Return schema and table in quotes; the schema of the datasource is the default."""
    if location.table is None:
        raise ResolutionError(
            f"rule {location.rule_name!r} names a path, but {source.id!r} is a database",
            code="W1318",
            help="give the rule a strategy of `type: table`",
        )
    schema = location.schema or str(source.options.get("schema") or "")
    names = [schema, location.table] if schema else [location.table]
    long = [name for name in names if len(name.encode()) > POSTGRES_BYTES]
    if long and jdbc_url(source).startswith("jdbc:postgresql:"):
        raise ResolutionError(
            f"{long[0]!r} has {len(long[0].encode())} bytes, and PostgreSQL would look for its first {POSTGRES_BYTES}",
            code="W1421",
            help="name the table as the database has it",
        )
    return quoted(*names)
