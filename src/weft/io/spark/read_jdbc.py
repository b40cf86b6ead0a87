"""Tables of a database through Spark's JDBC reader; names are quoted, never pasted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from weft.errors import ResolutionError
from weft.io.credentials import credentials_of
from weft.io.datasource import DataSource
from weft.io.location import Location
from weft.io.options import POSTGRES_BYTES, jdbc_url
from weft.io.spark.part import Part

DRIVERS = {"postgresql": "org.postgresql.Driver"}
"""Drivers that a url stands for; others are named by the option `driver`."""

_FETCH_SIZE = 10_000


def scan(
    session: SparkSession, source: DataSource, locations: tuple[Location, ...], root: Path
) -> list[Part]:
    """Return the rows of the tables that the locations name."""
    said = connection_options(source, root)
    return [
        Part(
            frame=session.read.format("jdbc").options(**said, dbtable=quoted_name(location, source)).load(),
            period=location.period,
            shown=f"table {location} of {source.id!r}",
        )
        for location in locations
    ]


def connection_options(source: DataSource, root: Path) -> dict[str, Any]:
    """Return what Spark's JDBC source is told: address, driver, user and password."""
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
    said: dict[str, Any] = {
        "url": url,
        "driver": driver,
        "fetchsize": int(source.options.get("fetch_size") or _FETCH_SIZE),
        "preferTimestampNTZ": True,
    }
    secret = credentials_of(source, root)
    return said | {
        key: value for key, value in (("user", secret.user), ("password", secret.password)) if value
    }


def quoted_name(location: Location, source: DataSource) -> str:
    """Return schema and table in quotes; the schema of the datasource stands in for one that is not said."""
    if location.table is None:
        raise ResolutionError(
            f"rule {location.rule_name!r} names a path, and {source.id!r} is a database",
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
    return ".".join('"' + name.replace('"', '""') + '"' for name in names)
