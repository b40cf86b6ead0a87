"""Tables of Spark's own catalog; outputs are staged as Parquet files, then inserted, a period at a time.

A table that Weft makes is partitioned by ``_period``, so that a period is replaced without touching another.
Spark's own tables have no transactions: each period is replaced as a whole or not at all, but several periods or
outputs are not replaced together.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.core.names import quote
from weft.errors import ResolutionError, RunError
from weft.expr.spark.frames import functions_of
from weft.io.datasource import PERIOD, DataSource, WriteMode
from weft.io.spark.connector import Part, Scan, Staging
from weft.io.spark.files import escaped, stage_files
from weft.io.staged import Staged

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def scan(request: Scan) -> list[Part]:
    """Return the rows of the tables that the locations name."""
    return [
        Part(
            frame=request.session.table(table_name(location.table, location.schema, request.source)),
            period=location.period,
            label=f"table {location}",
        )
        for location in request.locations
    ]


def stage(rows: DataFrame, request: Staging) -> Staged:
    """Write the rows into Parquet files."""
    return stage_files(rows, request.folder, format="parquet", run_id=request.rows_of)


def current(rows: DataFrame, request: Staging) -> list[Part]:
    """Return the rows of the table, which a merge replaces as a whole."""
    session = rows.sparkSession
    name = table_name(request.table, request.schema, request.source)
    there = session.catalog.tableExists(name)
    return [Part(frame=session.table(name), period=None, label=f"table {name}")] if there else []


def table_name(table: str | None, schema: str | None, source: DataSource | None) -> str:
    """Return catalog, schema and table in backticks; the datasource supplies what the location leaves out."""
    if table is None:
        raise ResolutionError(
            f"datasource {source and source.id!r} is a catalog of tables, but the rule names a path",
            code="W1318",
            help="give the rule a strategy of `type: table`",
        )
    options = {} if source is None else source.options
    parts = (options.get("catalog"), schema or options.get("schema"), table)
    return ".".join(quote(str(part)) for part in parts if part)


def publish_table(
    session: SparkSession, stage: Path, name: str, *, mode: WriteMode, periods: Sequence[str] = (), again: bool = False
) -> None:
    """Move staged rows into the table of that quoted name; the table is created if it does not exist.

    A merge has staged the whole table, so it replaces all of it.  Rows that are appended `again` are added only as
    far as the table does not have them.
    """
    # A merge is staged as files first, because Spark cannot read and overwrite a table in one query.
    rows = session.read.parquet(str(stage))
    if not session.catalog.tableExists(name):
        _created(rows, name)
        return
    if mode == "fail_if_exists" and _has_rows(session, name, periods):
        raise RunError(
            f"table {name} already has rows of {', '.join(periods)}",
            code="W1507",
            help="delete them, or write with `mode: replace_period`",
        )
    columns = session.table(name).columns
    missing = [c for c in columns if c not in rows.columns] + [c for c in rows.columns if c not in columns]
    if missing:
        raise RunError(
            f"table {name} and the rows for it have different columns: {', '.join(missing)}",
            code="W1509",
            help="name the columns of the table in `columns` of the output, or write to another table",
        )
    # `insertInto` assigns columns by position, not by name.
    ordered = rows.select(*map(quote, columns))
    if mode == "replace_period":
        _replace_periods(session, stage, ordered, name, periods)
    else:
        added = _missing(ordered, session.table(name)) if again and mode == "append" else ordered
        added.write.insertInto(name, overwrite=mode == "merge")


def _missing(rows: DataFrame, table: DataFrame) -> DataFrame:
    """Return the rows that a table does not have, each as often as it is missing there."""
    F: Any = functions_of(rows)
    maps = {f.name for f in rows.schema.fields if f.dataType.typeName() == "map"}

    def comparable(frame: DataFrame) -> DataFrame:
        # Spark cannot compare maps, so sorted lists of their entries are compared.
        columns = (F.col(quote(n)) for n in rows.columns)
        return frame.select(
            *(
                F.array_sort(F.map_entries(c)).alias(n) if n in maps else c
                for n, c in zip(rows.columns, columns, strict=True)
            )
        )

    missing = comparable(rows).exceptAll(comparable(table))
    return missing.select(
        *(F.map_from_entries(F.col(quote(n))).alias(n) if n in maps else F.col(quote(n)) for n in rows.columns)
    )


def _created(rows: DataFrame, name: str) -> None:
    writer = rows.write.format("parquet")
    if PERIOD.name in rows.columns and len(rows.columns) > 1:
        writer = writer.partitionBy(PERIOD.name)
    writer.saveAsTable(name)


def _has_rows(session: SparkSession, name: str, periods: Sequence[str]) -> bool:
    table = session.table(name)
    F: Any = functions_of(table)
    if PERIOD.name in table.columns:
        table = table.filter(F.col(PERIOD.name).isin(*periods))
    return not table.isEmpty()


def _replace_periods(session: SparkSession, stage: Path, rows: DataFrame, name: str, periods: Sequence[str]) -> None:
    parts = [c.name for c in session.catalog.listColumns(name) if c.isPartition]
    if parts != [PERIOD.name]:
        raise RunError(
            f"table {name} is not partitioned by _period, so a period of it cannot be replaced",
            code="W1509",
            help="partition the table by _period, or write with `mode: append` or `mode: merge`",
        )
    F: Any = functions_of(rows)
    kept = sorted(row[0] for row in rows.select(F.col(PERIOD.name)).distinct().collect())
    columns = ", ".join(quote(c) for c in rows.columns if c != PERIOD.name)
    files = f"parquet.{quote(escaped(str(stage)))}"
    # One statement for each period: with several partitions in one, Spark replaces those it finds in the rows only if
    # the session has `partitionOverwriteMode` dynamic, and the settings of the session are the user's.
    for period in kept:
        session.sql(
            f"INSERT OVERWRITE TABLE {name} PARTITION ({PERIOD.name} = {_text(period)}) "  # noqa: S608
            f"SELECT {columns} FROM {files} WHERE {PERIOD.name} = {_text(period)}"
        )
    # A period without rows has no partition that could replace the old one.
    for period in (p for p in periods if p not in kept):
        session.sql(f"ALTER TABLE {name} DROP IF EXISTS PARTITION ({PERIOD.name} = {_text(period)})")


def _text(value: str) -> str:
    """Return a string as a literal of Spark SQL."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
