"""Random expressions over awkward values: Spark and plain Python agree on every row and type."""

from __future__ import annotations

import datetime as dt
import math
import re
from functools import partial
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest

from made_expressions import SCHEMA, SCOPE, TODAY, Maker, rows
from weft.core.types import TIMESTAMP
from weft.errors import EvaluationError, ExpressionError
from weft.expr import FUNCTIONS, Typed, check, evaluate, parse

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

ROWS = rows()


def frame(spark: SparkSession) -> DataFrame:
    """Return the rows with their number, in more than one partition and not folded at planning."""
    from pyspark.sql.types import IntegerType, StructField, StructType

    from weft.expr.spark.types import to_spark

    fields = [StructField("row", IntegerType())] + [StructField(f.name, to_spark(f.dtype)) for f in SCHEMA]
    numbered = [(i, *(row[name] for name in SCHEMA.names)) for i, row in enumerate(ROWS)]
    return spark.createDataFrame(numbered, StructType(fields)).repartition(2)


def column(functions: Any, slot: Any) -> Column:
    found: Column = functions.col(SCHEMA.names[slot[1]])
    return found


def compiled(typed: Typed, df: DataFrame) -> Column:
    from weft.expr.spark.columns import compile_expr
    from weft.expr.spark.frames import functions_of

    functions = functions_of(df)
    return compile_expr(typed, partial(column, functions), functions, today=TODAY)


def computed(typed: Typed, zone: ZoneInfo) -> list[Any] | None:
    """Return the value of every row, or None when one of them fails."""
    try:
        return [
            evaluate(typed, lambda slot, row=row: row[SCHEMA.names[slot[1]]], today=TODAY, zone=zone)  # type: ignore[misc]
            for row in ROWS
        ]
    except EvaluationError:
        return None


def made(seed: int, count: int, zone: ZoneInfo) -> list[tuple[str, Typed, list[Any]]]:
    """Return expressions that check and whose value exists on every row."""
    maker = Maker(seed)
    found: list[tuple[str, Typed, list[Any]]] = []
    while len(found) < count:
        text = maker.any(3)
        try:
            typed = check(parse(text), SCOPE)
        except ExpressionError:
            continue  # a type that two random parts do not share
        values = computed(typed, zone)
        if values is not None:
            found.append((text, typed, values))
    return found


def same(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, float) and math.isnan(wanted):
        return isinstance(found, float) and math.isnan(found)
    return type(found) is type(wanted) and bool(found == wanted)


def differences(df: DataFrame, made_here: list[tuple[str, Typed, list[Any]]]) -> list[str]:
    """Return a sentence for each expression whose type or value on some row differs."""
    from weft.expr.spark.types import from_spark

    selected = df.select("row", *(compiled(typed, df).alias(f"v{i}") for i, (_, typed, _) in enumerate(made_here)))
    collected = sorted(selected.collect(), key=lambda row: row[0])
    wrong = []
    for i, (text, typed, values) in enumerate(made_here, start=1):
        dtype = from_spark(selected.schema.fields[i].dataType)
        if dtype != typed.dtype:
            wrong.append(f"{text}: type {dtype}, checked {typed.dtype}")
        for row, wanted in zip(collected, values, strict=True):
            found = row[i].replace(tzinfo=dt.UTC) if typed.dtype == TIMESTAMP and row[i] is not None else row[i]
            if not same(found, wanted):
                wrong.append(f"{text}: Spark {found!r}, Python {wanted!r} on {ROWS[row[0]]}")
                break
    return wrong


@pytest.mark.parametrize("seed", range(4))
def test_random_expressions_agree(spark: SparkSession, seed: int) -> None:
    zone = ZoneInfo("UTC")
    assert differences(frame(spark), made(seed, 80, zone)) == []


def test_random_expressions_agree_where_clocks_change(spark: SparkSession) -> None:
    zone = "America/New_York"
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        df = frame(spark)
        assert differences(df, made(99, 80, ZoneInfo(zone))) == []
    finally:
        spark.conf.set("spark.sql.session.timeZone", before or "UTC")


def test_random_expressions_agree_on_connect(connect: SparkSession) -> None:
    assert differences(frame(connect), made(7, 60, ZoneInfo("UTC"))) == []


def test_every_function_is_among_the_random_ones() -> None:
    texts = " ".join(Maker(seed).any(4) for seed in range(3000)).upper()
    spelt = {f.name: (f.name, *f.aliases) for f in FUNCTIONS.values() if not f.aggregate}
    missing = [n for n, names in spelt.items() if not any(re.search(rf"\b{s}\(", texts) for s in names)]
    assert missing == []
