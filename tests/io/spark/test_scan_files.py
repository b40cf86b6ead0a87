"""CSV, JSON and Parquet files as the rows of a dataset: by name, exactly typed, or with an error."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from resolvers import catalog, dataset, published, read_of, resolver, source, table
from weft.core.types import STRING, parse_type
from weft.errors import Diagnostic, ResolutionError
from weft.io.spark.failures import data_failure
from weft.io.spark.strict import exact
from weft.pipelines.model.dataset import Dataset
from weft.pipelines.model.resolver import PathStrategy, Rule
from weft.pipelines.plan.catalog import Catalog, RegisteredVersion
from weft.pipelines.plan.reads import Read
from weft.pipelines.spark.read import read_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RUN_AT = dt.datetime(2026, 2, 3, 4, 5, 6, 789, tzinfo=dt.UTC)
TYPED = table(
    "typed",
    "snapshot",
    id="long",
    amount="decimal(18,2)",
    rate="double",
    day="date",
    seen="timestamp",
    ok="boolean",
    note="string",
)


def read(
    spark: SparkSession,
    root: Path,
    data: Dataset,
    path: str,
    period: str = "2026-01",
    *,
    type: Any = "csv",
    notices: list[Diagnostic] | None = None,
    level: str = "any",
    missing: Any = "fail",
    **options: Any,
) -> DataFrame:
    by = Rule(name="all", strategy=PathStrategy(datasource="files", path=path), data_level=level, missing=missing)
    known = catalog(resolver(by), source(type, **options), root=root, default="main")
    notice = None if notices is None else notices.append
    return read_table(spark, read_of(data, known, period), known, root, run_at=RUN_AT, notice=notice)


def business(frame: DataFrame) -> list[tuple[Any, ...]]:
    names = [n for n in frame.columns if not n.startswith("_")]
    return sorted((tuple(row) for row in frame.select(*names).collect()), key=lambda r: str(r[0]))


def failure(frame: DataFrame) -> ResolutionError:
    with pytest.raises(Exception, match="WEFT_DATA") as caught:
        frame.collect()
    reported = data_failure(caught.value)
    assert reported is not None
    return reported


def utc(hour: int, micros: int = 0) -> dt.datetime:
    """Return a time of the first of January as PySpark gives it: without a zone, in that of the process."""
    return dt.datetime(2026, 1, 1, hour, microsecond=micros)  # noqa: DTZ001


ROWS = [
    (1, Decimal("12.30"), 1.5, dt.date(2026, 1, 31), utc(9, 5), True, 'a "b" \\ c'),
    (2, None, None, None, None, None, None),
    (3, Decimal("-7.00"), 1e-7, dt.date(2020, 2, 29), utc(8), False, "é, x"),
]
CSV = (
    "note,_extra,id,seen,day,rate,amount,ok\n"
    '"a ""b"" \\ c",x, 1 ,2026-01-01T09:00:00.000005Z,2026-01-31,1.5,12.30,true\n'
    ",,2,,,,,\n"
    '"é, x",,3,2026-01-01T09:00:00+01:00,2020-02-29,1e-7,-7.000,FALSE\n'
)
JSON = (
    '{"id": 1, "amount": 12.30, "rate": 1.5, "day": "2026-01-31", "seen": "2026-01-01T09:00:00.000005Z", '
    '"ok": true, "note": "a \\"b\\" \\\\ c"}\n'
    '{"id": "2", "amount": null}\n'
    '{"note": "é, x", "id": 3, "amount": "-7", "rate": 1e-7, "day": "2020-02-29", "seen": "2026-01-01 08:00", '
    '"ok": "false"}\n'
)


@pytest.mark.parametrize(("name", "text", "type"), [("t.csv", CSV, "csv"), ("t.json", JSON, "json")])
def test_text_becomes_exactly_the_declared_values(
    any_spark: SparkSession, tmp_path: Path, name: str, text: str, type: str
) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    notices: list[Diagnostic] = []
    frame = read(any_spark, tmp_path, dataset(TYPED), name, type=type, notices=notices)
    assert business(frame) == ROWS
    assert [f.dataType.simpleString() for f in frame.schema.fields[:7]] == [
        "bigint",
        "decimal(18,2)",
        "double",
        "date",
        "timestamp",
        "boolean",
        "string",
    ]
    assert ["'_extra'" in n.message for n in notices] == ([True] if type == "csv" else [])


def test_parquet_is_widened_and_never_rounded(spark: SparkSession, tmp_path: Path) -> None:
    made = spark.sql(
        "SELECT CAST(1 AS INT) id, CAST(12.3 AS DECIMAL(10,1)) amount, CAST(1.5 AS FLOAT) rate, "
        "TIMESTAMP '2026-01-31 00:00:00Z' day, TIMESTAMP_NTZ '2026-01-01 09:00:00' seen, true ok, 42 note"
    )
    made.write.parquet(str(tmp_path / "good"))
    assert business(read(spark, tmp_path, dataset(TYPED), "good", type="parquet")) == [
        (1, Decimal("12.30"), 1.5, dt.date(2026, 1, 31), utc(9), True, "42")
    ]
    exact = table("t", "snapshot", a="decimal(18,2)", b="decimal(5,2)")
    spark.sql("SELECT CAST(12.30 AS DOUBLE) a, CAST(123.45 AS DECIMAL(38,18)) b").write.parquet(
        str(tmp_path / "double")
    )
    assert business(read(spark, tmp_path, dataset(exact), "double", type="parquet")) == [
        (Decimal("12.30"), Decimal("123.45"))
    ]
    spark.sql("SELECT CAST(12.30 AS DOUBLE) a, CAST(123.456 AS DECIMAL(38,18)) b").write.parquet(str(tmp_path / "long"))
    reported = failure(read(spark, tmp_path, dataset(exact), "long", type="parquet"))
    assert reported.code == "W1317"
    assert "column 'b' holds '123.456" in reported.message
    with pytest.raises(ResolutionError) as caught:
        read(spark, tmp_path, dataset(table("t", "snapshot", seen="string")), "good", type="parquet")
    assert caught.value.code == "W1317"
    assert "timestamp_ntz in the data and string in the dataset" in caught.value.message


GOOD = [
    ("decimal(18,2)", ["12.3", "12.30", "12.3000", "-.5", "1.2345e2", "+7", " 8 "]),
    ("decimal(38,10)", ["0.0000000001", "9999999999999999999999999999.9999999999"]),
    ("long", ["9223372036854775807", "-1", "007"]),
    ("date", ["2026-01-31", "0001-01-01"]),
    (
        "timestamp",
        ["2026-01-31", "2026-01-31 10:00", "2026-01-31T10:00:00.123456Z", "2026-01-31T10:00:00-08:00"],
    ),
    ("boolean", ["true", "FALSE"]),
    ("double", ["1", "1.5e3", "NaN", "-Infinity"]),
]
BAD = [
    ("decimal(18,2)", ["12.345", "12,3", "99999999999999999", "1.23456e2", "1e17", "", "x", "0x1"]),
    ("decimal(38,10)", ["0.00000000001", "99999999999999999999999999999"]),
    ("long", ["1.0", "9223372036854775808", "1e3", "\u0661"]),
    ("date", ["2026-02-30", "31.01.2026", "2026-1-1", "2026-01-31T00:00:00Z"]),
    ("timestamp", ["yesterday", "2026-01-31T25:00:00Z", "10:00"]),
    ("boolean", ["yes", "1", "t"]),
    ("double", ["1,5", "1d", "inf"]),
]


def test_texts_are_read_exactly_or_not_at_all(spark: SparkSession) -> None:
    from pyspark.sql import functions as F

    for cases, expected in ((GOOD, True), (BAD, False)):
        columns = [
            exact(F, F.lit(text), STRING, parse_type(dtype))[1].alias(f"{dtype} {text}")  # type: ignore[index]
            for dtype, texts in cases
            for text in texts
        ]
        (row,) = spark.range(1).select(*columns).collect()
        assert {name: bool(fits) for name, fits in row.asDict().items() if bool(fits) is not expected} == {}


def test_a_value_that_cannot_be_read_is_named_with_its_file(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "t x.csv").write_text("amount\n1.00\n12.345\n")
    frame = read(spark, tmp_path, dataset(table("t", "snapshot", amount="decimal(18,2)")), "t x.csv")
    reported = failure(frame)
    assert reported.code == "W1317"
    assert "column 'amount' holds '12.345', which is not exactly a decimal(18,2)" in reported.message
    assert reported.message.endswith(f"{tmp_path}/t x.csv")


def test_each_csv_file_is_read_by_its_own_header(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "in [1] {a}"
    folder.mkdir()
    (folder / "a.csv").write_text("id,amount\n1,1.00\n")
    (folder / "b.csv").write_text("\ufeffamount,id\n2.00,2\n", encoding="utf-8")
    (folder / "_hidden.csv").write_text("broken\n")
    main = table("t", "snapshot", id="long", amount="decimal(18,2)")
    assert business(read(spark, tmp_path, dataset(main), "in [[]1] {a}/*.csv")) == [
        (1, Decimal("1.00")),
        (2, Decimal("2.00")),
    ]
    (folder / "c.csv").write_text("id,amuont\n3,3.00\n")
    with pytest.raises(ResolutionError) as caught:
        read(spark, tmp_path, dataset(main), "in [[]1] {a}/?.csv")
    assert caught.value.code == "W1316"
    assert "c.csv' has no column 'amount'" in caught.value.message
    assert "'amount' could be 'amuont'" in caught.value.help


def test_options_say_how_a_csv_file_is_written(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes("1;'a;é\nb';2026-01\n2;;2026-02\n".encode("latin-1"))
    main = table("t", id="long", note="string")
    options: dict[str, Any] = {
        "delimiter": ";",
        "quote": "'",
        "has_header": False,
        "encoding": "ISO-8859-1",
        "multiline": True,
    }
    assert business(read(spark, tmp_path, dataset(main), "t.csv", **options)) == [(1, "a;é\nb")]
    with pytest.raises(ResolutionError) as caught:
        read(spark, tmp_path, dataset(TYPED), "t.csv", **options)
    assert caught.value.code == "W1316"
    assert "3 columns and no header" in caught.value.message


@pytest.mark.parametrize("line", ["3", "4,2.00,2026-01,more"])
def test_a_line_that_is_not_a_row_fails_whatever_is_read_from_it(
    spark: SparkSession, tmp_path: Path, line: str
) -> None:
    (tmp_path / "t.csv").write_text(f"id,amount,_period\n1,1.00,2026-01\n{line}\n")
    frame = read(spark, tmp_path, dataset(table("t", id="long", amount="decimal(18,2)")), "t.csv")
    reported = failure(frame.select("id"))
    assert reported.code == "W1318"
    assert f"invalid line: {line} in" in reported.message
    assert "multiline" in reported.help


def test_a_line_that_is_not_json_fails(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text('{"id": 1}\n{"id": 2\n')
    reported = failure(read(spark, tmp_path, dataset(table("t", "snapshot", id="long")), "t.json", type="json"))
    assert reported.code == "W1318"
    assert '{"id": 2' in reported.message


def test_all_missing_places_are_reported_and_some_may_be_missing(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "2026-02.csv").write_text("id,amount\n1,1.00\n")
    (tmp_path / "2026-03.csv").mkdir()
    sales = dataset(table())
    with pytest.raises(ResolutionError) as caught:
        read(spark, tmp_path, sales, "{{period}}.csv", "2026-Q1", level="month")
    assert caught.value.code == "W1309"
    assert "'2026-01', '2026-03'" in caught.value.message
    assert str(tmp_path / "2026-01.csv") in caught.value.help
    frame = read(spark, tmp_path, sales, "{{period}}.csv", "2026-Q1", level="month", missing="skip")
    assert [(r.id, r._period) for r in frame.collect()] == [(1, "2026-02")]
    none = read(spark, tmp_path, sales, "{{period}}.csv", "2025-01", level="month", missing="skip")
    assert none.count() == 0
    assert none.schema.simpleString() == frame.schema.simpleString()


@pytest.mark.parametrize(
    ("name", "content", "part"),
    [
        ("a.parquet", b"PAR1" + b"0" * 60, "cannot read"),
        ("b.csv", b"", "is empty"),
        ("c.csv", b"id,id,amount\n1,2,3\n", "two columns 'id'"),
        ("d.csv", b"id,\xff\xfe\n", "cannot read"),
    ],
)
def test_a_damaged_file_is_reported(spark: SparkSession, tmp_path: Path, name: str, content: bytes, part: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ResolutionError) as caught:
        read(spark, tmp_path, dataset(), name, type=name.partition(".")[2])
    assert caught.value.code == "W1318"
    assert part in caught.value.message
    assert name in caught.value.message


def test_published_files_are_read_in_the_format_they_were_written_in(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "part-0.csv").write_text("id,amount,_row_id\n1,1.00,abc\n")
    made = dataset(table(), origin="registered", natural_key_columns=("id",))
    known: Catalog = catalog(
        registered=(RegisteredVersion(dataset=made, locations=(published("2026-01", path="out", format="csv"),)),)
    )
    opened: Read = read_of(made, known)
    (row,) = read_table(spark, opened, known, tmp_path, run_at=RUN_AT).collect()
    assert (row.id, row._period, row._row_id) == (1, "2026-01", "abc")
