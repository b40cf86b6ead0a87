"""Rows as a stage table beside their target in a database; publishing is `weft.io.spark.database`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from weft.io.datasource import DataSource
from weft.io.spark.database import quoted, stage_name
from weft.io.spark.read_jdbc import connection_options
from weft.io.spark.write_files import as_texts, counting
from weft.io.staged import Staged

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def stage_jdbc(
    df: DataFrame, source: DataSource, root: Path, *, schema: str | None, run_id: str, seq: int
) -> Staged:
    """Write the rows into a stage table of a schema, or of that of the datasource, and return what was written."""
    name = quoted(schema or str(source.options.get("schema") or ""), stage_name(run_id, seq))
    counted, count = counting(as_texts(df))
    said = connection_options(source, root)
    counted.write.format("jdbc").options(**said, dbtable=name).mode("overwrite").save()
    return Staged(location=name, rows=count(), columns=tuple(df.columns), files=())
