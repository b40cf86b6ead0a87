"""Tables of Spark's own catalog."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import SparkSession

from weft.core.names import quote
from weft.errors import ResolutionError
from weft.io.datasource import DataSource
from weft.io.location import Location
from weft.io.spark.part import Part


def scan(session: SparkSession, source: DataSource | None, locations: Iterable[Location]) -> list[Part]:
    """Return the rows of the tables that the locations name."""
    return [
        Part(
            frame=session.table(table_name(location.table, location.schema, source)),
            period=location.period,
            shown=f"table {location}",
        )
        for location in locations
    ]


def table_name(table: str | None, schema: str | None, source: DataSource | None) -> str:
    """Return catalog, schema and table in backticks; the datasource says what the location leaves out."""
    if table is None:
        raise ResolutionError(
            f"datasource {source and source.id!r} is a catalog of tables, and the rule names a path",
            code="W1318",
            help="give the rule a strategy of `type: table`",
        )
    options = {} if source is None else source.options
    parts = (options.get("catalog"), schema or options.get("schema"), table)
    return ".".join(quote(str(part)) for part in parts if part)
