"""Local tables as relations: pandas, Polars and Arrow tables are sent to Spark with their exact types."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from weft.core.names import format_list
from weft.errors import ArgumentError, ColumnCollisionError
from weft.joins.relation.display import SHOWN, Preview

_WIDENED = {
    "uint8": pa.int16(),
    "uint16": pa.int32(),
    "uint32": pa.int64(),
    "uint64": pa.decimal128(20, 0),
    "halffloat": pa.float32(),
}
_DIGITS = 38


def library_of(table: object) -> str:
    """Return the package of a table's class, such as ``"pandas"``."""
    return type(table).__module__.partition(".")[0]


def is_local(table: object) -> bool:
    """Whether an object is a table in memory: of pandas, or of a library that exports to Arrow."""
    # A DataFrame of Spark exports to Arrow too, by running its job.
    return library_of(table) != "pyspark" and _exports(table)


def _exports(table: object) -> bool:
    return _is_pandas(table) or hasattr(table, "__arrow_c_stream__") or isinstance(table, pa.Table | pa.RecordBatch)


def _is_pandas(table: object) -> bool:
    return library_of(table) == "pandas" and hasattr(table, "columns")


def send_table(table: Any, session: SparkSession | None) -> tuple[DataFrame, Preview]:
    """Return a local table as a DataFrame, and its first rows."""
    session = session or SparkSession.getActiveSession()
    if session is None:
        raise ArgumentError(
            f"a {library_of(table)} table needs a Spark session, and none is active",
            help="pass one: weft.relation(table, session=spark)",
        )
    arrow = _fit_types(_read_table(table))
    try:
        schema = from_arrow_schema(arrow.schema, prefer_timestamp_ntz=True)
        frame: DataFrame = session.createDataFrame(arrow, schema)
    except (PySparkException, pa.ArrowException) as cause:
        raise ArgumentError(
            f"Spark cannot take the {library_of(table)} table: {str(cause).splitlines()[0]}",
            help="convert the column first, or create the DataFrame yourself: spark.createDataFrame(...)",
        ) from cause
    return frame, Preview(tuple(tuple(row.values()) for row in arrow.slice(0, SHOWN).to_pylist()), arrow.num_rows)


def _read_table(table: Any) -> pa.Table:
    """Return the table as an Arrow table; a named index of pandas becomes columns."""
    if _is_pandas(table):
        if any(name is not None for name in table.index.names):
            table = table.reset_index()
        names = [str(name) for name in table.columns]
        _check_names(names)
        table = table.set_axis(names, axis=1)
    try:
        if _is_pandas(table):
            return pa.Table.from_pandas(table, preserve_index=False).replace_schema_metadata()
        # Polars: its own conversion, because the stream has string views, which older releases of pyarrow cannot cast.
        arrow = table.to_arrow() if library_of(table) == "polars" else pa.table(table)
    except (pa.ArrowException, TypeError, ValueError) as cause:
        raise ArgumentError(
            f"the {library_of(table)} table cannot be converted to Arrow: {str(cause).splitlines()[0]}",
            help="give each column values of one type",
        ) from cause
    _check_names(arrow.column_names)
    return arrow


def _check_names(names: list[str]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ColumnCollisionError(f"the table has two columns named {format_list(twice)}", help="rename one of them")


def _fit_types(table: pa.Table) -> pa.Table:
    """Return the table in types that Spark has; a value that such a type cannot hold is an error."""
    columns, fields = [], []
    for field, column in zip(table.schema, table.columns, strict=True):
        wanted = _fit_type(field.type, field.name)
        try:
            columns.append(column if wanted == field.type else column.cast(wanted))
        except pa.ArrowException as cause:
            raise ArgumentError(
                f"column {field.name!r} of type {field.type} cannot be converted to {wanted}: {str(cause).splitlines()[0]}",
                code="W0302",
                help="round or convert the column first; Spark has times of microseconds",
            ) from cause
        fields.append(pa.field(field.name, wanted, field.nullable))
    return pa.table(columns, schema=pa.schema(fields))


def _fit_type(kind: Any, name: str) -> Any:
    """Return the Arrow type that Spark has for the values of a type."""
    types = pa.types
    if types.is_dictionary(kind):
        return _fit_type(kind.value_type, name)
    if str(kind) in _WIDENED:
        return _WIDENED[str(kind)]
    if types.is_large_string(kind) or types.is_string_view(kind):
        return pa.string()
    if types.is_large_binary(kind) or types.is_binary_view(kind) or types.is_fixed_size_binary(kind):
        return pa.binary()
    if types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    if types.is_duration(kind):
        return pa.duration("us")
    if types.is_date64(kind):
        return pa.date32()
    if types.is_decimal(kind):
        return _fit_decimal(kind, name)
    if types.is_large_list(kind) or types.is_list(kind) or types.is_fixed_size_list(kind):
        return pa.list_(kind.value_field.with_type(_fit_type(kind.value_type, name)))
    if types.is_struct(kind):
        return pa.struct([field.with_type(_fit_type(field.type, name)) for field in kind])
    if types.is_map(kind):
        return pa.map_(_fit_type(kind.key_type, name), _fit_type(kind.item_type, name))
    return kind


def _fit_decimal(kind: Any, name: str) -> Any:
    if kind.precision > _DIGITS:
        raise ArgumentError(
            f"column {name!r} is {kind}: decimals of Spark have at most {_DIGITS} digits",
            help="round the column to fewer digits first",
        )
    return pa.decimal128(kind.precision, kind.scale)
