"""Rows as a stage table beside their target in a database; publishing is `weft.spark.sink.database`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from weft.plan.operations.resolved import Target
from weft.spark.scan.jdbc import connection_options
from weft.spark.sink.database import quoted, stage_name
from weft.spark.sink.files import as_texts, counting
from weft.spec.pipeline.datasource import DataSource
from weft.store.records import Staged

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
