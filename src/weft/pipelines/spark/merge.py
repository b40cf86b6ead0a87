"""Merge: the rows of a target whose key the new rows do not have, and the new rows.

::

    target   k1 old, k2 old        new   k2 new, k3 new        merged   k1 old, k2 new, k3 new
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.core.names import quote
from weft.expr.spark.frames import functions_of
from weft.expr.spark.types import from_spark, to_spark
from weft.io.datasource import PERIOD, DataSource
from weft.io.location import PUBLISHED, Location
from weft.io.paths import data_files
from weft.io.spark.part import Part
from weft.io.spark.read_files import ByPosition, scan
from weft.io.spark.strict import strict

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def merged(new: DataFrame, current: DataFrame, key: Sequence[str]) -> DataFrame:
    """Return the new rows and those of `current` with other keys; NULL is a key like any other."""
    F: Any = functions_of(new)
    wanted = new.select(*(F.col(quote(k)).alias(f"__weft_k{i}") for i, k in enumerate(key))).distinct()
    same = reduce(
        lambda a, b: a & b,
        (F.col(quote(k)).eqNullSafe(F.col(f"__weft_k{i}")) for i, k in enumerate(key)),
    )
    return new.unionByName(current.join(wanted, same, "left_anti").select(*map(quote, new.columns)))


def merged_with_files(
    new: DataFrame, target: Path, format: str, key: Sequence[str], source: DataSource | None = None
) -> DataFrame:
    """Return the new rows merged with what is at `target`, files as `source` says; with nothing there, the new rows."""
    if not data_files(str(target)):
        return new
    columns = ByPosition(table=target.name, names=(*new.columns, PERIOD.name), needed=len(new.columns))
    at = Location(
        datasource_id=PUBLISHED,
        path=str(target),
        period_identifier="",
        data_level=PUBLISHED,
        resolver_id=PUBLISHED,
        resolver_version=1,
        rule_name=PUBLISHED,
    )
    parts = scan(new.sparkSession, format, None, [at], columns, target.parent, written_as=source)
    rows = [fitted(part, new) for part in parts]
    return merged(new, reduce(lambda a, b: a.unionByName(b), rows), key)


def fitted(part: Part, like: DataFrame) -> DataFrame:
    """Return the rows of a part in the columns and types of another frame; a column that is not there is NULL."""
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
