"""Files and tables as relations: what is read, and the error for what is not there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import weft
from weft import WeftError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

CSV = "symbol,at,price\nA,2026-01-15 10:00:01,9.5\nB,2026-01-15 10:00:02,\n"
COLUMNS = "symbol string, at timestamp, price decimal(10,2)"


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    file = tmp_path / "quotes.csv"
    file.write_text(CSV)
    return file


def test_csv_is_read_with_a_schema_or_with_types_that_are_inferred(any_spark: SparkSession, csv: Path) -> None:
    declared = weft.read_csv(any_spark, csv, schema=COLUMNS)
    assert str(declared) == "Relation(symbol: string, at: timestamp, price: decimal(10,2))"
    assert [str(row["price"]) for row in declared.order_by("symbol").collect()] == ["9.50", "None"]
    inferred = weft.read_csv(any_spark, str(csv))
    assert str(inferred) == "Relation(symbol: string, at: timestamp, price: double)"
    assert inferred.count() == 2


def test_csv_may_have_no_header_and_another_separator(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("A;1\n")
    (tmp_path / "b.csv").write_text("B;2\n")
    paths: list[str | Path] = [tmp_path / "a.csv", str(tmp_path / "b.csv")]
    read = weft.read_csv(spark, paths, schema="k string, n int", header=False, separator=";")
    assert [tuple(row) for row in read.order_by("k").collect()] == [("A", 1), ("B", 2)]


def test_parquet_and_tables_are_read(any_spark: SparkSession, tmp_path: Path) -> None:
    any_spark.range(3).write.parquet(str(tmp_path / "numbers"))
    assert weft.read_parquet(any_spark, tmp_path / "numbers").count() == 3
    any_spark.sql("CREATE OR REPLACE TEMP VIEW weft_numbers AS SELECT 1 AS one")
    assert weft.read_table(any_spark, "weft_numbers").columns == ("one",)
    any_spark.catalog.dropTempView("weft_numbers")


def test_a_value_that_does_not_fit_the_schema_is_an_error_not_a_null(any_spark: SparkSession, csv: Path) -> None:
    csv.write_text(CSV + "C,yesterday,1.0\n")
    with pytest.raises(WeftError) as caught:
        weft.read_csv(any_spark, csv, schema=COLUMNS).collect()
    assert caught.value.code == "W1318"
    assert len(str(caught.value).splitlines()) == 2


NUMBER: Any = 5
WRONG: dict[str, tuple[Callable[[Any, Any], Any], str, str]] = {
    "no folder": (lambda spark, tmp: weft.read_parquet(spark, tmp / "nothing"), "W1309", "nothing"),
    "no file": (lambda spark, tmp: weft.read_csv(spark, tmp / "nothing.csv"), "W1309", "nothing.csv"),
    "no table": (lambda spark, _: weft.read_table(spark, "nothing"), "W1309", "nothing"),
    "not Parquet": (lambda spark, tmp: weft.read_parquet(spark, tmp / "quotes.csv"), "W1318", "cannot read the data"),
    "not a schema": (lambda spark, tmp: weft.read_csv(spark, tmp / "quotes.csv", schema="a b c d"), "W0302", "schema"),
    "a schema as a number": (lambda spark, tmp: weft.read_csv(spark, tmp / "quotes.csv", schema=NUMBER), "W0301", "schema"),
    "a header that is a text": (lambda spark, tmp: weft.read_csv(spark, tmp, header=NUMBER), "W0301", "header"),
    "no session": (lambda _, tmp: weft.read_csv(tmp, "a.csv"), "W0301", "takes the Spark session first"),
    "no path": (lambda spark, _: weft.read_parquet(spark, []), "W0301", "takes a path"),
    "a path that is a number": (lambda spark, _: weft.read_parquet(spark, NUMBER), "W0301", "takes a path"),
    "a table that is a path": (weft.read_table, "W0301", "takes the name of a table"),
}  # fmt: skip


@pytest.mark.parametrize(("read", "code", "message"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_read_is_an_error_with_a_code(
    any_spark: SparkSession, csv: Path, read: Callable[[Any, Any], Any], code: str, message: str
) -> None:
    with pytest.raises(WeftError) as caught:
        read(any_spark, csv.parent)
    assert caught.value.code == code
    assert message in caught.value.message
    assert caught.value.help
