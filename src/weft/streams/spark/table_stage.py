"""Tables of a job: read, checked, copied into the checkpoint, and joined by each batch.

Before::

    frame LEFT JOIN products p ON i0_2 = p.product_id AND i0_3 < p.most

After: the table is grouped by key, so that each row of the frame matches one row, and matches are counted
while the batch runs::

    SELECT *, explode_outer(filter(rows, p -> i0_3 < p.c4)) AS p
    FROM frame LEFT JOIN (SELECT product_id, collect_list(struct(..)) AS rows FROM products GROUP BY 1)
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable, Hashable
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession

from weft.core.types import DType
from weft.errors import ConnectorError, StreamError
from weft.expr.spark.columns import compile_expr
from weft.expr.spark.frames import functions_of, observation_of
from weft.expr.spark.types import to_spark
from weft.io.spark.files import escaped
from weft.io.staged import file_hash
from weft.io.stores.store_path import Place, StorePath, spark_path
from weft.streams.checkpoint.folder import damaged_file, read_document, sync_path, write_document
from weft.streams.plan.resolved import StatementPlan, TableInput, TableStep
from weft.streams.spark.files import declared_values, existing_paths, plan_reading
from weft.streams.spark.memory import Memory, find_rows, write_memory
from weft.streams.spark.paths import check_exists, resolve_path
from weft.streams.spark.readable import RAW, TABLE_MARK, build_columns, column_name, find_refused_row, raise_where
from weft.streams.spark.select_stage import slot_name, slot_resolver
from weft.streams.sql.spec import StreamSpec, TableSpec

_LISTING, _COPIED = "_files.json", ".parquet"  # Spark reads no file whose name starts with an underscore
_ROWS, _ROW = "__weft_rows", "__weft_row"


def read_table(spark: SparkSession, table: TableSpec, root: Path) -> DataFrame:
    """Read the current rows of a table: its declared columns as `c0` .. in their types.

    A malformed row stops the job: a table has no rejects, and a missing row would go unnoticed.
    """
    rows = _read_files(spark, table, root)
    F: Any = functions_of(rows)
    problem = f"{TABLE_MARK} W2303 a row of table {table.name!r} cannot be parsed as declared"
    kept: DataFrame = raise_where(F, rows, F.col(RAW).isNotNull(), F.col(RAW), problem)
    return kept.select(*(column_name(i) for i in range(len(table.columns))))


def _read_files(spark: SparkSession, table: TableSpec, root: Path) -> DataFrame:
    path = resolve_path(str(table.connector["path"]), root)
    check_exists(path, f"table {table.name!r}", table.at)
    reading = plan_reading(spark, table, path)
    paths = existing_paths(path)
    if not paths:
        raise ConnectorError(
            f"table {table.name!r} reads {path!r}, which has no files",
            code="W2301",
            help="a table needs at least one file, which may be empty",
            at=table.at,
        )
    frame = spark.read.format(reading.format).options(**reading.options).schema(reading.schema).load(paths)
    F: Any = functions_of(frame)
    corrupt = F.col(reading.schema.fields[-1].name) if reading.has_corrupt else None
    return frame.select(*build_columns(F, _as_stream(table), declared_values(frame, reading), corrupt=corrupt))


def _as_stream(table: TableSpec) -> StreamSpec:
    """Return the table as a stream without times: rows of both are read in one way."""
    return StreamSpec(name=table.name, columns=table.columns, connector=table.connector, at=table.at)


def write_memory_table(table: TableSpec, memory: Memory, folder: Path) -> TableSpec:
    """Write the rows that a program passes for a table as a file and return the table as one of files."""
    written = write_memory(_as_stream(table), [find_rows(table, memory)], folder)
    return replace(table, connector=written.connector)


def pin_table(
    spark: SparkSession, table: TableSpec, folder: Place, read: Callable[[], DataFrame], *, is_used: bool = False
) -> DataFrame:
    """Return a table as of the first start of a checkpoint, or its current rows with ``reload=batch``.

    The copy in `folder` is written to a temporary folder and renamed, so that it is always complete.  Raises
    `StreamError` W2202 if it was changed, or if it is missing and `is_used`: then batches were joined with it.
    """
    if table.reload == "batch":
        return read()
    if isinstance(folder, StorePath):
        return _pin_in_store(spark, table, folder, read, is_used=is_used)
    if folder.exists():
        _check_copy(folder)
    elif is_used:
        raise _missing_copy_error(folder, table)
    else:
        folder.parent.mkdir(parents=True, exist_ok=True)
        unfinished = folder.parent / f".tmp-{folder.name}-{uuid.uuid4().hex[:8]}"
        try:
            read().write.parquet(str(unfinished))
        except PySparkException as cause:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise find_refused_row(cause) or cause from cause
        files = sorted(path for path in unfinished.iterdir() if path.suffix == _COPIED)
        write_document(unfinished / _LISTING, {"files": {path.name: file_hash(path) for path in files}})
        # Once the folder has its final name it is never written again, so it must survive a power cut complete.
        for file in unfinished.iterdir():
            sync_path(file)
        sync_path(unfinished)
        try:
            unfinished.rename(folder)
            sync_path(folder.parent)
        except OSError:
            # Another process was first; its copy is equally valid.
            shutil.rmtree(unfinished, ignore_errors=True)
            if not folder.exists():
                raise
    return spark.read.schema(_schema(table)).parquet(escaped(str(folder)))


def _pin_in_store(
    spark: SparkSession, table: TableSpec, folder: StorePath, read: Callable[[], DataFrame], *, is_used: bool
) -> DataFrame:
    """Return the copy of a table in a store, where a folder has no rename: the list of its files completes it."""
    if not (folder / _LISTING).is_file():
        if is_used:
            raise _missing_copy_error(folder, table)
        try:
            read().write.mode("overwrite").parquet(spark_path(folder))
        except PySparkException as cause:
            raise find_refused_row(cause) or cause from cause
        files = sorted(path for path in folder.iterdir() if path.suffix == _COPIED)
        write_document(folder / _LISTING, {"files": {path.name: file_hash(path) for path in files}})
    _check_copy(folder)
    return spark.read.schema(_schema(table)).parquet(spark_path(folder))


def _missing_copy_error(folder: Place, table: TableSpec) -> StreamError:
    return damaged_file(folder, f"it is missing, and earlier batches were joined with this copy of {table.name!r}")


def _check_copy(folder: Place) -> None:
    """Raise `StreamError` W2202 if a file of a copied table is missing or changed; copies of earlier versions pass."""
    if not (folder / _LISTING).exists():
        return
    for name, expected in read_document(folder / _LISTING)["files"].items():
        path = folder / name
        if not path.is_file():
            raise damaged_file(path, "this part of the copied table is missing")
        if file_hash(path) != expected:
            raise damaged_file(path, "its content does not match its checksum")


def _schema(table: TableSpec) -> str:
    return ", ".join(f"{column_name(i)} {to_spark(f.dtype).simpleString()}" for i, f in enumerate(table.columns.fields))


def table_slots(source: TableInput, table: DataFrame) -> DataFrame:
    """Return the needed columns of a table under the names of their slots, as stages read them."""
    F: Any = functions_of(table)
    return table.select(
        *(F.col(column_name(i)).alias(slot_name(("i", source.number, i))) for i in _needed_columns(source))
    )


def _needed_columns(source: TableInput) -> tuple[int, ...]:
    # A struct needs a field; if only the keys of a table are used, keep its first column.
    return source.columns or (0,)


def join_table(frame: DataFrame, plan: StatementPlan, step: TableStep, table: DataFrame) -> tuple[DataFrame, Any]:
    """Return the rows of a batch with the table's columns, and an observation of ``in`` and ``matched``.

    `frame` has a flat column for each slot; `table` is the result of `read_table` or `pin_table`.  The
    job that runs the batch fills the observation.
    """
    F: Any = functions_of(frame)
    source = plan.source(step.right)
    assert isinstance(source, TableInput)  # noqa: S101  # the planner's own step
    numbered = [f"__weft_key{i}" for i in range(len(step.keys))]
    grouped = _group_by_key(F, source, step, table, numbered)
    met = [
        _cast_column(F, slot_name(key.left), key.dtype) == F.col(name)
        for key, name in zip(step.keys, numbered, strict=True)
    ]
    looked = frame.join(grouped, met, "left_outer")
    rows = F.col(_ROWS)
    if (residual := step.residual) is not None:
        rows = F.filter(rows, lambda row: compile_expr(residual, _row_resolver(F, row, step.right), F))
    looked = looked.withColumn(_ROWS, rows).drop(*numbered)
    has_match = F.coalesce(F.size(F.col(_ROWS)) > 0, F.lit(False))
    # Counted after the residual and before rows multiply; an observation's name must be unique in the session.
    counts = observation_of(frame, f"weft_table_{uuid.uuid4().hex}")
    looked = looked.observe(
        counts, F.count(F.lit(1)).alias("in"), F.coalesce(F.count_if(has_match), F.lit(0)).alias("matched")
    )
    opened = F.explode if step.how == "inner" else F.explode_outer
    joined = looked.withColumn(_ROW, opened(F.col(_ROWS)))
    columns = [
        F.col(_ROW)[slot_name(("i", source.number, i))].alias(slot_name(("i", source.number, i)))
        for i in _needed_columns(source)
    ]
    return joined.select(*frame.columns, *columns), counts


def _group_by_key(F: Any, source: TableInput, step: TableStep, table: DataFrame, names: list[str]) -> DataFrame:
    """Return the table with one row for each key; rows with a NULL key match nothing and are left out."""
    keys = [
        _cast_column(F, column_name(key.right[2]), key.dtype).alias(name)
        for key, name in zip(step.keys, names, strict=True)
    ]
    held = F.struct(
        *(F.col(column_name(i)).alias(slot_name(("i", source.number, i))) for i in _needed_columns(source))
    ).alias(_ROW)
    rows = table.select(*keys, held)
    for name in names:
        rows = rows.filter(F.col(name).isNotNull())
    return rows.groupBy(*names).agg(F.collect_list(_ROW).alias(_ROWS))


def _cast_column(F: Any, name: str, dtype: DType) -> Column:
    column: Column = F.col(name).cast(to_spark(dtype))
    return column


def _row_resolver(F: Any, row: Any, number: int) -> Callable[[Hashable], Column]:
    """Return a function from slots to columns, where the table's columns are fields of `row`."""
    flat = slot_resolver(F)

    def column(slot: Any) -> Column:
        if slot[0] == "i" and slot[1] == number:
            value: Column = row[slot_name(slot)]
            return value
        return flat(slot)

    return column
