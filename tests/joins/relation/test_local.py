"""Tables of pandas, Polars and Arrow as relations, and relations as tables of these libraries."""

from __future__ import annotations

import datetime as dt
import sys
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import weft
from join_cases import rows_of
from weft import ArgumentError, ColumnCollisionError
from weft.core.types import Schema
from weft.joins.relation import Relation
from weft.testing import assert_rows_equal

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

AT = dt.datetime.fromisoformat("2026-01-15T10:00:01.000250")
FIRST = dt.datetime.fromisoformat("1970-01-01T00:00:01")
ZONED = AT.replace(tzinfo=dt.UTC)
VALUES: dict[str, list[Any]] = {
    "name": ["a", None, "c"],
    "n": [1, 2, None],
    "price": [1.5, None, 2.5],
    "at": [AT, None, AT],
    "instant": [ZONED, None, ZONED],
    "day": [dt.date(2026, 1, 15), None, dt.date(1969, 12, 31)],
    "money": [Decimal("1.10"), None, Decimal("-3.00")],
}
TYPES = {
    "name": pa.string(), "n": pa.int64(), "price": pa.float64(), "at": pa.timestamp("us"),
    "instant": pa.timestamp("us", "Europe/Berlin"), "day": pa.date32(), "money": pa.decimal128(10, 2),
}  # fmt: skip
ARROW = pa.table(VALUES, schema=pa.schema(list(TYPES.items())))
SCHEMA = "name: string, n: long, price: double, at: timestamp_ntz, instant: timestamp, day: date, money: decimal(10,2)"
MAKERS: dict[str, Callable[[], Any]] = {
    "arrow": lambda: ARROW,
    "batch": lambda: ARROW.to_batches()[0],
    "polars": lambda: pl.from_arrow(ARROW),
    "pandas": lambda: ARROW.to_pandas(types_mapper=pd.ArrowDtype),
}


@pytest.mark.parametrize("library", MAKERS)
def test_a_local_table_keeps_its_types_and_values(any_spark: SparkSession, library: str) -> None:
    relation = weft.relation(MAKERS[library](), session=any_spark)
    assert ", ".join(map(str, relation.schema)) == SCHEMA
    assert_rows_equal(rows_of(relation.df), list(zip(*VALUES.values(), strict=True)), relation.columns)
    assert relation.session is any_spark


def test_a_local_table_joins_with_a_frame_of_the_session(any_spark: SparkSession) -> None:
    trades = weft.relation(any_spark.sql("SELECT 'a' AS name, TIMESTAMP_NTZ'2026-01-15 11:00:00' AS at, 7 AS quantity"))
    quotes = weft.relation(pl.DataFrame({"name": ["a"], "at": [AT], "bid": [9.5]}), session=any_spark)
    joined = trades.natural_asof(quotes, order="at", by="name")
    assert [row["bid"] for row in joined.collect()] == [9.5]


TURNED = {
    "uint8": (pa.array([255], pa.uint8()), "short", 255),
    "uint32": (pa.array([2**32 - 1], pa.uint32()), "long", 2**32 - 1),
    "uint64": (pa.array([2**64 - 1], pa.uint64()), "decimal(20,0)", Decimal(2**64 - 1)),
    "categories": (pa.array(["x"]).dictionary_encode(), "string", "x"),
    "large strings": (pa.array(["x"], pa.large_string()), "string", "x"),
    "string views": (pa.array(["x"], pa.string_view()), "string", "x"),
    "nanoseconds": (pa.array([10**9], pa.timestamp("ns")), "timestamp_ntz", FIRST),
    "seconds": (pa.array([1], pa.timestamp("s")), "timestamp_ntz", FIRST),
    "lists": (pa.array([["x", None]], pa.large_list(pa.large_string())), "array<string>", ["x", None]),
    "wide decimals": (pa.array([Decimal("1.5")], pa.decimal256(30, 1)), "decimal(30,1)", Decimal("1.5")),
}


@pytest.mark.parametrize(("column", "dtype", "value"), TURNED.values(), ids=TURNED)
def test_a_type_that_spark_has_not_becomes_the_next_larger_one(
    spark: SparkSession, column: Any, dtype: str, value: Any
) -> None:
    relation = weft.relation(pa.table({"v": column}))
    assert str(relation.schema.fields[0].dtype).startswith(dtype)
    assert [row["v"] for row in relation.collect()] == [value]
    assert relation.session.version == spark.version  # the active session


def test_a_named_index_of_pandas_becomes_columns_and_another_one_is_left_out(spark: SparkSession) -> None:
    frame = pd.DataFrame({"symbol": ["A", "B"], 5: [1.5, float("nan")]})
    plain = weft.relation(frame[frame["symbol"] == "B"], session=spark)
    assert plain.columns == ("symbol", "5")
    assert [tuple(row) for row in plain.collect()] == [("B", None)]
    assert weft.relation(frame.set_index("symbol"), session=spark).columns == ("symbol", "5")


def test_an_empty_table_keeps_its_columns(spark: SparkSession) -> None:
    relation = weft.relation(ARROW.slice(0, 0), session=spark)
    assert ", ".join(map(str, relation.schema)) == SCHEMA
    assert relation.count() == 0


WRONG: dict[str, tuple[Callable[[], Any], type[Exception], str, str]] = {
    "names that repeat": (
        lambda: pa.table([pa.array([1]), pa.array([2])], names=["a", "a"]), ColumnCollisionError, "W0103", "'a'"
    ),
    "names that repeat in pandas": (
        lambda: pd.DataFrame([[1, 2]], columns=["a", "a"]), ColumnCollisionError, "W0103", "'a'"
    ),
    "names equal but for case": (lambda: pa.table({"a": [1], "A": [2]}), weft.WeftError, "W0106", "'A'"),
    "values of two types": (lambda: pd.DataFrame({"a": [1, "x"]}), ArgumentError, "W0301", "converted to Arrow"),
    "a nanosecond": (
        lambda: pa.table({"at": pa.array([1], pa.timestamp("ns"))}), ArgumentError, "W0302", "column 'at'"
    ),
    "decimals of 50 digits": (
        lambda: pa.table({"d": pa.array([1], pa.decimal256(50, 0))}), ArgumentError, "W0301", "at most 38 digits"
    ),
    "a type that Spark has not": (
        lambda: pa.table({"u": pa.array([None], pa.month_day_nano_interval())}), ArgumentError, "W0301", "Spark cannot"
    ),
    "a lazy frame": (lambda: pl.LazyFrame({"a": [1]}), ArgumentError, "W0301", "LazyFrame"),
    "a list": (lambda: [1], ArgumentError, "W0301", "not list"),
}  # fmt: skip


@pytest.mark.parametrize(("make", "kind", "code", "message"), WRONG.values(), ids=WRONG)
def test_a_table_that_spark_cannot_take_is_refused(
    spark: SparkSession, make: Callable[[], Any], kind: type[weft.WeftError], code: str, message: str
) -> None:
    with pytest.raises(kind) as caught:
        weft.relation(make(), session=spark)
    assert caught.value.code == code
    assert message in caught.value.message
    assert caught.value.help


def test_a_local_table_needs_a_session(monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark.sql import SparkSession

    monkeypatch.setattr(SparkSession, "getActiveSession", staticmethod(lambda: None))
    with pytest.raises(ArgumentError, match="needs a Spark session") as caught:
        weft.relation(pd.DataFrame({"a": [1]}))
    assert caught.value.help == "pass one: weft.relation(table, session=spark)"


def test_a_relation_becomes_a_polars_frame(any_spark: SparkSession) -> None:
    frame = weft.relation(ARROW, session=any_spark).to_polars()
    assert isinstance(frame, pl.DataFrame)
    assert frame.columns == list(VALUES)
    assert frame["money"].to_list() == VALUES["money"]
    assert frame["at"].to_list() == VALUES["at"]
    assert frame["instant"].dtype == pl.Datetime("us", "UTC")


def test_without_polars_the_error_has_the_command_and_no_job_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    class Untouched:
        isStreaming = False  # noqa: N815  # as Spark calls it

        def toArrow(self) -> None:  # noqa: N802
            pytest.fail("a job has run")

    monkeypatch.setitem(sys.modules, "polars", None)
    relation: Any = Relation(Untouched(), Schema.of(a="long"), None)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError) as caught:
        relation.to_polars()
    assert caught.value.code == "W0311"
    assert caught.value.help == "pip install 'weft[polars]'"


def test_a_notebook_shows_rows_of_a_local_table_until_it_is_changed(spark: SparkSession) -> None:
    relation = weft.relation(pl.DataFrame({"<i>": [f"<b>{n}</b>" for n in range(12)], "n": [None] * 12}), session=spark)
    page = relation._repr_html_()
    assert page.count("<tr>") == 11
    assert "<td>&lt;b&gt;9&lt;/b&gt;</td><td><i>NULL</i></td>" in page
    assert "10 of 12 rows; 2 columns" in page
    for changed in (
        relation.limit(3),
        relation.select("n"),
        relation.natural_inner(relation, exclude_shared="n", suffixes=("", "_r")),
    ):
        assert "<td>" not in changed._repr_html_()
        assert "no job has run" in changed._repr_html_()
