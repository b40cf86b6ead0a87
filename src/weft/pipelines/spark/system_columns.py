"""The columns that every row carries behind its own, and ids that never depend on how data is cut.

Before::

    journal_id, amount

After::

    journal_id, amount, _row_id, _row_kind, ..., _deleted, _labels, _period

``_row_id`` is a hash of what makes a row this row: dataset, table, natural key and period.  Without a natural
key it is a hash of all its columns and the number of the row among those equal to it; equal rows can change
places, so files, partitions and order never change an id.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

from pyspark.sql import Column, DataFrame

from weft.core.names import quote
from weft.core.types import STRING, TIMESTAMP, DType, Scalar
from weft.expr.spark.frames import functions_of, window_of
from weft.expr.spark.types import literal, to_spark
from weft.io.datasource import PERIOD
from weft.pipelines.model.dataset import Dataset, TableDef
from weft.pipelines.model.values import KNOWN_FROM, PERIOD_FROM, SYSTEM_COLUMNS, temporal_columns

_SEPARATOR = "\x1f"
_HASH = "__weft_hash"
_ROW_ID = "_row_id"


def identity(F: ModuleType, parts: Sequence[tuple[Column, DType]]) -> Column:
    """Return an id in the form of a UUID: a hash of the values, in this order, each with its length."""
    hashed = F.sha2(F.concat_ws(_SEPARATOR, *(_part(F, *part) for part in parts)).cast("binary"), 256)
    pieces = (F.substring(hashed, start, size) for start, size in ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12)))
    uuid: Column = F.concat_ws("-", *pieces)
    return uuid


def named(F: ModuleType, *texts: str) -> list[tuple[Column, DType]]:
    """Return constant texts as parts of an id."""
    return [(F.lit(text), STRING) for text in texts]


def _part(F: ModuleType, column: Column, dtype: DType) -> Column:
    """Return a value as a text that no other value has: its length says where it ends."""
    text = canonical_text(F, column, dtype)
    part: Column = F.when(column.isNull(), F.lit("n")).otherwise(
        F.concat(F.lit("v"), F.length(text).cast("string"), F.lit(":"), text)
    )
    return part


def canonical_text(F: ModuleType, column: Column, dtype: DType) -> Column:
    """Return a value as a text that depends on no setting of the session."""
    text: Any = column
    if dtype.is_nested:
        text = F.to_json(column)
    elif dtype == TIMESTAMP:
        text = F.unix_micros(column).cast("string")
    elif isinstance(dtype, Scalar) and dtype.name == "binary":
        text = F.hex(column)
    elif dtype != STRING:
        text = column.cast("string")
    return text  # type: ignore[no-any-return]  # functions is whichever module fits the frame


def with_system_columns(
    df: DataFrame,
    dataset: Dataset,
    table: TableDef,
    *,
    run_at: dt.datetime,
    business: Sequence[str],
    present: Mapping[str, DType],
) -> DataFrame:
    """Return the rows with their system columns, business columns first, then those, then the temporal ones.

    `df` is typed and has the temporal columns; `present` are the system columns that the data brought.
    """
    F = functions_of(df)
    df = _with_row_id(df, dataset, table, present)
    made = _defaults(F, dataset, table, run_at)
    columns = [F.col(quote(name)) for name in business]
    for field in SYSTEM_COLUMNS:
        given = field.name == _ROW_ID or field.name in present
        own = F.col(quote(field.name)) if given else made[field.name]
        if given and field.name in _FILLED:
            own = F.coalesce(own, made[field.name])
        columns.append(own.cast(to_spark(field.dtype)).alias(field.name))
    columns += [F.col(field.name) for field in temporal_columns(table.temporal_mode)]
    return df.select(*columns)


# NULL has no meaning in these, so it is read as the default.
_FILLED = frozenset(
    {"_row_kind", "_source_dataset_id", "_source_table", "_created_at", "_updated_at", "_deleted", "_labels"}
)


def _defaults(F: ModuleType, dataset: Dataset, table: TableDef, run_at: dt.datetime) -> dict[str, Any]:
    moment = literal(F, run_at, TIMESTAMP)
    nothing = F.lit(None)
    return {
        "_row_kind": F.lit("detail"),
        "_source_dataset_id": F.lit(dataset.id),
        "_source_table": F.lit(table.name),
        "_created_by_project_id": nothing,
        "_created_by_run_id": nothing,
        "_created_at": moment,
        "_updated_at": moment,
        "_operation_seq": nothing,
        "_deleted": F.lit(False),
        "_labels": F.create_map().cast("map<string,string>"),
    }


def _with_row_id(df: DataFrame, dataset: Dataset, table: TableDef, present: Mapping[str, DType]) -> DataFrame:
    F = functions_of(df)
    given = F.col(_ROW_ID) if _ROW_ID in present else None
    types = {column.name: column.dtype for column in table.columns}
    placed = [(F.col(f.name), f.dtype) for f in _placing(table, present)]
    head = named(F, dataset.id, table.name)
    keys = dataset.natural_key_columns if table == dataset.main_table else ()
    if keys:
        key = identity(F, [*head, *((F.col(quote(k)), types[k]) for k in keys), *placed])
        return df.withColumn(_ROW_ID, key if given is None else F.coalesce(given, key))
    if given is not None:
        missing = F.raise_error(F.lit(_NO_ROW_ID.format(table=table.name)))
        return df.withColumn(_ROW_ID, F.when(given.isNotNull(), given).otherwise(missing))
    content = [(F.col(quote(name)), dtype) for name, dtype in types.items()]
    hashed = df.withColumn(_HASH, identity(F, [*head, *placed, *content]))
    numbered = F.row_number().over(window_of(df).partitionBy(_HASH).orderBy(_HASH))
    counted = identity(F, [(F.col(_HASH), STRING), (numbered, Scalar("integer"))])
    return hashed.withColumn(_ROW_ID, counted).drop(_HASH)


_NO_ROW_ID = "[WEFT_DATA] W1317 table '{table}' has a _row_id that is NULL, and no natural key to make one from"


def _placing(table: TableDef, present: Mapping[str, DType]) -> list[Any]:
    placed = [PERIOD_FROM if table.temporal_mode == "bitemporal" else PERIOD]
    return [*placed, KNOWN_FROM] if KNOWN_FROM.name in present else placed
