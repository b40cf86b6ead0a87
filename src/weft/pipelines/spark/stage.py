"""stage: the rows of an output are written beside its target first; a run publishes all its outputs together.

A merge keeps the rows of the target whose key the new rows do not have, and adds the new rows::

    target   k1 old, k2 old        new   k2 new, k3 new        merged   k1 old, k2 new, k3 new
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.core.names import quote
from weft.errors import RunError
from weft.expr.spark.frames import functions_of
from weft.expr.spark.types import from_spark, to_spark
from weft.io.datasource import DataSource
from weft.io.spark.connector import Part, Staging, spark_connector
from weft.io.spark.strict import strict
from weft.io.staged import Staged
from weft.pipelines.plan.catalog import Catalog
from weft.pipelines.plan.operations.resolved import ResolvedOutput, Target

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
    """Write the rows of an output into `folder`, or into a stage table of its database, and return what was written.

    A merge of files or of a table of Spark's catalog stages the whole result; one of a database stages the
    new rows, and the database merges them.  Names of files carry `rows_of`, the run that a rerun repeats.
    """
    target = output.target
    connector = spark_connector(target.format)
    request = Staging(
        kind=target.format,
        folder=folder,
        target=root / target.location,
        run_id=run_id,
        rows_of=rows_of or run_id,
        seq=output.seq,
        root=root,
        source=_source(target, catalog),
        table=target.table,
        schema=target.schema,
        file_name=Path(target.location).name if target.kind == "file" else None,
        csv=target.csv,
        encoding=target.encoding,
    )
    if output.mode == "merge":
        current = [fitted(part, df) for part in connector.current(df, request)]
        if current:
            df = merged(df, reduce(lambda a, b: a.unionByName(b), current), output.merge_key)
    return connector.stage(df, request)


def _source(target: Target, catalog: Catalog) -> DataSource | None:
    """Return the datasource of a target, None for one that is a path."""
    if target.datasource_id is None:
        return None
    source = catalog.datasource(target.datasource_id)
    if source is None:
        raise RunError(
            f"unknown datasource {target.datasource_id!r} of the output",
            code="W1509",
            help="name a datasource of the workspace in the destination",
        )
    return source


def merged(new: DataFrame, current: DataFrame, key: Sequence[str]) -> DataFrame:
    """Return the new rows and those of `current` with other keys; NULL is a key like any other."""
    F: Any = functions_of(new)
    keys = new.select(*(F.col(quote(k)).alias(f"__weft_k{i}") for i, k in enumerate(key))).distinct()
    same = reduce(lambda a, b: a & b, (F.col(quote(k)).eqNullSafe(F.col(f"__weft_k{i}")) for i, k in enumerate(key)))
    return new.unionByName(current.join(keys, same, "left_anti").select(*map(quote, new.columns)))


def fitted(part: Part, like: DataFrame) -> DataFrame:
    """Return the rows of a part in the columns and types of another frame; a missing column is NULL."""
    F: Any = functions_of(part.frame)
    types = part.types
    columns = []
    for field in like.schema.fields:
        dtype, source = from_spark(field.dataType), types.get(field.name)
        column = (
            F.lit(None).cast(to_spark(dtype))
            if source is None
            else strict(F, F.col(quote(field.name)), source, dtype, name=field.name, place=part.place())
        )
        columns.append(column.alias(field.name))
    return part.frame.select(*columns)
