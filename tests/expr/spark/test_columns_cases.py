"""The case table on Spark, classic and Connect: the same values, in the checked types."""

from __future__ import annotations

import datetime as dt
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from expression_cases import FAILURES, NOTES, NOTES_ROW, ROW, SCHEMA, SCOPE, TODAY, VALUES
from weft.core.types import TIMESTAMP
from weft.expr import Typed, check, parse

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


def frame(spark: SparkSession) -> DataFrame:
    from pyspark.sql.types import StructField, StructType

    from weft.expr.spark.types import to_spark

    fields = [*SCHEMA.fields, *NOTES.fields]
    schema = StructType([StructField(f"c{i}", to_spark(f.dtype)) for i, f in enumerate(fields)])
    values = [ROW[name] for name in SCHEMA.names] + [NOTES_ROW[name] for name in NOTES.names]
    return spark.createDataFrame([tuple(values)], schema)


def column(functions: Any, slot: Any) -> Column:
    table, index = slot
    found: Column = functions.col(f"c{index if table == 't' else len(SCHEMA) + index}")
    return found


def compiled(typed: Typed, df: DataFrame) -> Column:
    from weft.expr.spark.columns import compile_expr
    from weft.expr.spark.frames import functions_of

    functions = functions_of(df)
    return compile_expr(typed, partial(column, functions), functions, today=TODAY)


def test_every_case_has_its_value_and_type(any_spark: SparkSession) -> None:
    from weft.expr.spark.types import from_spark

    df = frame(any_spark)
    checked = [check(parse(text), SCOPE) for text, *_ in VALUES]
    wrong = []
    for start in range(0, len(VALUES), 100):
        part = range(start, min(start + 100, len(VALUES)))
        selected = df.select(*(compiled(checked[i], df).alias(f"v{i}") for i in part))
        for i, field, found in zip(part, selected.schema.fields, selected.collect()[0], strict=True):
            text, value = VALUES[i][:2]
            if checked[i].dtype == TIMESTAMP and isinstance(found, dt.datetime):
                found = found.replace(tzinfo=dt.UTC)  # noqa: PLW2901  # PySpark leaves the zone out
            if found != value or type(found) is not type(value):
                wrong.append(f"{text}: {found!r} is not {value!r}")
            if from_spark(field.dataType) != checked[i].dtype:
                wrong.append(f"{text}: {field.dataType.simpleString()} is not {checked[i].dtype}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("text", FAILURES)
def test_an_expression_that_fails_in_python_fails_the_query(spark: SparkSession, text: str) -> None:
    from pyspark.errors import PySparkException

    df = frame(spark)
    selected = df.select(compiled(check(parse(text), SCOPE), df))
    with pytest.raises(PySparkException):
        selected.collect()
