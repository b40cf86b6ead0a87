"""Rows as a stage table beside their target in a database; publishing is `weft.io.spark.database`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from weft.pipelines.plan.operations.resolved import Target
from weft.io.spark.read_jdbc import connection_options
from weft.io.spark.database import quoted, stage_name
from weft.io.spark.write_files import as_texts, counting
from weft.io.datasource import DataSource
from weft.pipelines.store.records import Staged

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def stage_jdbc(
    df: DataFrame, target: Target, source: DataSource, root: Path, *, run_id: str, seq: int
) -> Staged:
    """Write the rows into a stage table of the target's schema and return what was written."""
    schema = target.schema or str(source.options.get("schema") or "")
    name = quoted(schema, stage_name(run_id, seq))
    counted, count = counting(as_texts(df))
    said = connection_options(source, root)
    counted.write.format("jdbc").options(**said, dbtable=name).mode("overwrite").save()
    return Staged(location=name, rows=count(), columns=tuple(df.columns), files=())
