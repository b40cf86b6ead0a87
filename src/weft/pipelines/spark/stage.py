"""stage: what an output writes goes beside its target first; a run publishes all its outputs together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from weft.errors import RunError
from weft.io.datasource import DataSource
from weft.io.spark.part import Part
from weft.io.spark.read_catalog_table import table_name
from weft.io.spark.write_files import stage_files
from weft.io.spark.write_jdbc import stage_jdbc
from weft.io.staged import Staged
from weft.pipelines.plan.catalog import Catalog
from weft.pipelines.plan.operations.resolved import ResolvedOutput, Target
from weft.pipelines.spark.merge import fitted, merged, merged_with_files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def stage(
    df: DataFrame,
    output: ResolvedOutput,
    folder: Path,
    *,
    run_id: str,
    catalog: Catalog,
    root: Path,
    rows_of: str | None = None,
) -> Staged:
    """Write the rows of an output into `folder`, or into a stage table of its database, and say what is there.

    A merge of files or of a table of Spark's catalog stages the whole result; one of a database stages the
    new rows, and the database merges them.  Names of files carry `rows_of`, the run that a rerun repeats.
    """
    target = output.target
    if target.kind == "jdbc":
        return stage_jdbc(
            df, _source(target, catalog), root, schema=target.schema, run_id=run_id, seq=output.seq
        )
    rows = _with_current(df, output, catalog, root) if output.mode == "merge" else df
    name = Path(target.location).name if target.kind == "file" else None
    format = "parquet" if target.kind == "table" else target.format
    return stage_files(
        rows,
        folder,
        format=format,
        run_id=rows_of or run_id,
        file_name=name,
        csv=target.csv,
        encoding=target.encoding,
    )


def _source(target: Target, catalog: Catalog) -> DataSource:
    found = None if target.datasource_id is None else catalog.datasource(target.datasource_id)
    if found is None:
        raise RunError(
            f"the output goes to the datasource {target.datasource_id!r}, which is not there",
            code="W1509",
            help="name a datasource of the workspace in the destination",
        )
    return found


def _with_current(df: DataFrame, output: ResolvedOutput, catalog: Catalog, root: Path) -> DataFrame:
    target = output.target
    if target.kind != "table":
        source = None if target.datasource_id is None else _source(target, catalog)
        return merged_with_files(df, root / target.location, target.format, output.merge_key, source)
    session = df.sparkSession
    name = table_name(target.table, target.schema, _source(target, catalog))
    if not session.catalog.tableExists(name):
        return df
    current = Part(frame=session.table(name), period=None, shown=f"table {name}")
    return merged(df, fitted(current, df), output.merge_key)
