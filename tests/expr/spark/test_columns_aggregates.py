"""Aggregates on Spark are those of plain Python, group by group, and over no rows."""

from __future__ import annotations

from decimal import Decimal as Number
from functools import partial
from typing import TYPE_CHECKING, Any

from made_expressions import SCHEMA, SCOPE, TODAY, rows
from weft.expr import Typed, check, evaluate_aggregate, parse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEXTS = (
    "SUM(n)", "SUM(a)", "SUM(p)", "AVG(n)", "AVG(i)", "AVG(a)", "AVG(p)", "COUNT(s)", "COUNT(m)", "COUNT(*)", "COUNT_ALL()",
    "MIN_AGG(s)", "MAX_AGG(s)", "MIN_AGG(d)", "MAX_AGG(iv)", "MIN_AGG(f)", "MAX_AGG(f)", "MAX_AGG(b)", "MIN_AGG(w)", "MAX_AGG(nt)",
    "SUM(IF(b, a, 0))", "SUM(a) / COUNT(a)", "ROUND(AVG(a), 2)", "COALESCE(SUM(a), 0) + COUNT(*)", "SUM(a * p) / NULLIF(SUM(p), 0)",
    "MAX_AGG(DATEDIFF(TODAY(), d)) - MIN_AGG(LEN(s))", "IF(COUNT(*) > 3, MIN_AGG(u), 'few')",
)  # fmt: skip
ROWS = rows(60, seed=3)


def wanted(typed: Typed, group: list[dict[str, Any]]) -> object:
    lookups = [lambda slot, row=row: row[SCHEMA.names[slot[1]]] for row in group]
    return evaluate_aggregate(typed, lookups, today=TODAY)


def test_aggregates_agree_in_every_group_and_over_no_rows(any_spark: SparkSession) -> None:
    from pyspark.sql.types import IntegerType, StructField, StructType

    from weft.expr.spark.columns import compile_expr
    from weft.expr.spark.frames import functions_of
    from weft.expr.spark.types import from_spark, to_spark

    fields = [StructField("key", IntegerType())] + [StructField(f.name, to_spark(f.dtype)) for f in SCHEMA]
    keyed = [(i % 7, *(row[name] for name in SCHEMA.names)) for i, row in enumerate(ROWS)]
    df = any_spark.createDataFrame(keyed, StructType(fields))
    functions: Any = functions_of(df)
    checked = [check(parse(text), SCOPE, aggregates=True) for text in TEXTS]
    lookup = partial(lambda fn, slot: fn.col(SCHEMA.names[slot[1]]), functions)
    columns = [compile_expr(t, lookup, functions, today=TODAY).alias(f"v{i}") for i, t in enumerate(checked)]
    grouped = df.groupBy("key").agg(*columns)
    assert [from_spark(f.dataType) for f in grouped.schema.fields[1:]] == [t.dtype for t in checked]
    found = {row[0]: list(row[1:]) for row in grouped.collect()}
    for key in range(7):
        group = [row for i, row in enumerate(ROWS) if i % 7 == key]
        assert list(map(repr, found[key])) == [repr(wanted(t, group)) for t in checked]
    (empty,) = df.where("key < 0").agg(*columns).collect()
    assert list(empty) == [wanted(t, []) for t in checked]
    assert Number("0.00") in [v for v in empty if isinstance(v, Number)]
