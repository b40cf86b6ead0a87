"""All streams of a statement as one frame, so that one query reads them all.

::

    __weft_input  t  raw  i0             i1
    0             1  NULL {c0, c2}       NULL
    1             2  NULL NULL           {c1}
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from weft.expr.spark.frames import functions_of
from weft.expr.spark.types import to_spark
from weft.streams.plan.resolved import Input, StatementPlan
from weft.streams.spark.readable import RAW, TIME, column_name

INPUT = "__weft_input"
TICK = -1
"""Number of rows that only let a batch happen."""


def packed(plan: StatementPlan, sources: Mapping[int, DataFrame]) -> DataFrame:
    """Return the rows of all inputs with the number of their source; `sources` are frames of t, raw, c0 .."""
    parts = [_part(plan, source, sources[source.number]) for source in plan.inputs]
    return reduce(DataFrame.unionByName, parts)


def ticks(plan: StatementPlan, frame: DataFrame) -> DataFrame:
    """Return a frame of any rows in the form of `packed`, as rows of no input."""
    F: Any = functions_of(frame)
    empty = [F.lit(None).cast(struct_type(i)).alias(struct_name(i.number)) for i in plan.inputs]
    return frame.select(
        F.lit(TICK).alias(INPUT),
        F.lit(None).cast("bigint").alias(TIME),
        F.lit(None).cast("string").alias(RAW),
        *empty,
    )


def struct_name(number: int) -> str:
    """Return the column that holds the columns of a source."""
    return f"i{number}"


def struct_type(source: Input) -> str:
    """Return the type of the struct of a source as Spark writes it."""
    fields = source.stream.columns.fields
    inner = ", ".join(f"{column_name(i)}: {to_spark(fields[i].dtype).simpleString()}" for i in _kept(source))
    return f"struct<{inner}>"


def _kept(source: Input) -> tuple[int, ...]:
    # A struct needs a child; a stream of which only the time is read keeps its first column.
    return source.columns or (0,)


def _part(plan: StatementPlan, source: Input, frame: DataFrame) -> DataFrame:
    F: Any = functions_of(frame)
    columns = []
    for other in plan.inputs:
        if other is source:
            held = F.struct(*(F.col(column_name(i)) for i in _kept(source)))
        else:
            held = F.lit(None).cast(struct_type(other))
        columns.append(held.alias(struct_name(other.number)))
    return frame.select(F.lit(source.number).alias(INPUT), F.col(TIME), F.col(RAW), *columns)


def empty_batch(spark: SparkSession, plan: StatementPlan) -> DataFrame:
    """Return a batch without rows."""
    structs = ", ".join(f"{struct_name(i.number)} {struct_type(i)}" for i in plan.inputs)
    return spark.createDataFrame([], f"{INPUT} int, {TIME} bigint, {RAW} string, {structs}")
