"""What a read keeps: periods, ranges, knowledge, rows that are not deleted; and the columns it adds."""

from __future__ import annotations

import datetime as dt
import hashlib
import uuid
from collections.abc import Callable
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from resolvers import catalog, dataset, read_of, resolver, rule, source, table
from visible_rows import is_visible
from weft.core.types import DATE, STRING, TIMESTAMP, DType, parse_type
from weft.errors import Diagnostic, ResolutionError
from weft.pipelines.model.dataset import Dataset, LookupDef
from weft.pipelines.model.resolver import PathStrategy
from weft.pipelines.model.values import PERIOD_END, SYSTEM_COLUMNS, AsOfDay, TemporalMode
from weft.pipelines.plan.reads import TemporalFilter
from weft.pipelines.spark.read import as_condition, read_table
from weft.pipelines.spark.system_columns import identity, named

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RUN_AT = dt.datetime(2026, 2, 3, 4, 5, 6, 789, tzinfo=dt.UTC)
RATES = table("rates", "bitemporal", cur="string", rate="decimal(18,6)")
RATES_CSV = (Path(__file__).parents[2] / "data" / "fx" / "data" / "exchange_rates.csv").read_text()


def read(
    spark: SparkSession,
    root: Path,
    data: Dataset,
    text: str | None = None,
    period: str = "2026-01",
    **keys: Any,
) -> DataFrame:
    """Read ``t.csv``, or, without a text, the existing file."""
    if text is not None:
        (root / "t.csv").write_text(text)
    level = keys.pop("level", "any")
    path = keys.pop("path", "t.csv")
    type = keys.pop("type", "csv")
    notice: Callable[[Diagnostic], None] | None = keys.pop("notice", None)
    by = rule("all", strategy=PathStrategy(datasource="files", path=path), data_level=level)
    known = catalog(resolver(by), source(type), root=root, default="main")
    return read_table(spark, read_of(data, known, period, **keys), known, root, run_at=RUN_AT, notice=notice)


def test_of_nine_rates_five_are_valid_at_the_start_of_january(spark: SparkSession, tmp_path: Path) -> None:
    rates = dataset(
        table(
            "exchange_rates",
            "bitemporal",
            from_currency="string",
            to_currency="string",
            rate="decimal(18,6)",
            rate_type="string",
        ),
        natural_key_columns=("from_currency", "to_currency", "rate_type"),
    )
    frame = read(spark, tmp_path, rates, RATES_CSV)
    assert sorted(f"{r.from_currency} {r.rate_type} {r.rate}" for r in frame.collect()) == [
        "EUR average 1.090000",
        "EUR closing 1.092000",
        "GBP closing 1.271000",
        "JPY closing 0.006720",
        "USD closing 1.000000",
    ]
    before = read(spark, tmp_path, rates, period="2025-12", as_of=PERIOD_END)
    assert sorted(r.rate for r in before.filter("from_currency = 'EUR'").collect()) == [
        Decimal("1.0800"),
        Decimal("1.0850"),
    ]


def test_a_period_reads_its_own_rows_and_a_quarter_those_of_its_months(spark: SparkSession, tmp_path: Path) -> None:
    text = "id,amount,_period,_deleted\n1,1,2026-01,\n2,2,2026-02,false\n3,3,2026-Q1,\n4,4,2026-01,true\n5,5,,\n6,6,2026-04,\n"
    assert [r.id for r in read(spark, tmp_path, dataset(), text).collect()] == [1]
    quarter = read(spark, tmp_path, dataset(), period="2026-Q1").collect()
    assert sorted(r.id for r in quarter) == [1, 2, 3]
    assert {r._deleted for r in quarter} == {False}
    none = read(spark, tmp_path, dataset(), period="2027-01")
    assert (none.count(), none.columns[:2]) == (0, ["id", "amount"])


def test_places_of_one_period_each_give_their_period_to_the_rows(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "2026-01.csv").write_text("id,amount\n1,1\n")
    (tmp_path / "2026-02.csv").write_text("id,amount,_period\n2,2,2026-02\n3,3,2026-01\n")
    (tmp_path / "2026-03.csv").write_text("id,amount\n4,4\n")
    rows = read(spark, tmp_path, dataset(), period="2026-Q1", path="{{period}}.csv", level="month").collect()
    assert sorted((r.id, r._period) for r in rows) == [
        (1, "2026-01"),
        (2, "2026-02"),
        (3, "2026-01"),
        (4, "2026-03"),
    ]
    (tmp_path / "2026.csv").write_text("id,amount,_period\n7,7,2026-01\n8,8,2026-02\n")
    month = read(spark, tmp_path, dataset(), period="2026-02", path="{{YYYY}}.csv", level="year").collect()
    assert [(r.id, r._period) for r in month] == [(8, "2026-02")]


@pytest.mark.parametrize(
    ("data", "text", "missing", "help"),
    [
        (dataset(table()), "id,amount\n1,1\n", "'_period'", "data_level"),
        (dataset(table()), "id,amount,period\n1,1,2026-01\n", "'_period'", "'_period' could be 'period'"),
        (dataset(RATES), "cur,rate,_period\nEUR,1,2026-01\n", "'_period_from', '_period_to'", "NULL"),
        (
            dataset(RATES),
            "cur,rate,_valid_from,_period_to\nEUR,1,2026-01-01,\n",
            "'_period_from'",
            "the first day",
        ),
    ],
)
def test_a_table_without_its_temporal_columns_is_refused(
    spark: SparkSession, tmp_path: Path, data: Dataset, text: str, missing: str, help: str
) -> None:
    with pytest.raises(ResolutionError) as caught:
        read(spark, tmp_path, data, text)
    assert caught.value.code == "W1319"
    assert missing in caught.value.message
    assert help in caught.value.help


DAYS = (None, dt.date(2026, 1, 1), dt.date(2026, 1, 2), dt.date(2026, 1, 3))
MOMENTS = (None, *(dt.datetime(2026, 1, 1, hour, tzinfo=dt.UTC) for hour in (0, 1, 2)))
ROWS = [
    {"_period": p, "_period_from": f, "_period_to": t, "_known_from": kf, "_known_to": kt}
    for p, f, t, kf, kt in product((None, "2026-01", "2026-02"), DAYS, DAYS, MOMENTS, MOMENTS)
]
MODES: tuple[TemporalMode, ...] = ("period", "bitemporal", "snapshot")
FILTERS = [
    TemporalFilter(mode=mode, identifiers=("2026-01", "2026-Q1"), instant=instant, known_at=known)
    for mode, instant, known in product(MODES, DAYS, MOMENTS)
]


@pytest.mark.parametrize("range_type", [DATE, TIMESTAMP], ids=str)
def test_spark_keeps_the_rows_that_the_written_out_filter_keeps(spark: SparkSession, range_type: DType) -> None:
    from pyspark.sql import functions as F

    types = {"_period": STRING, "_period_from": range_type, "_period_to": range_type}
    types |= {"_known_from": TIMESTAMP, "_known_to": TIMESTAMP}
    frame = spark.createDataFrame(
        [tuple(row.values()) for row in ROWS],
        "_period string, _period_from date, _period_to date, _known_from timestamp, _known_to timestamp",
    ).coalesce(1)
    typed = frame.select(*(F.col(name).cast(str(dtype)).alias(name) for name, dtype in types.items()))
    kept = typed.select(
        *(F.coalesce(as_condition(f, F, types), F.lit(False)).alias(f"c{i}") for i, f in enumerate(FILTERS))
    ).collect()
    assert [tuple(r) for r in kept] == [tuple(is_visible(f, row) for f in FILTERS) for row in ROWS]
    assert 0 < sum(map(sum, kept)) < len(ROWS) * len(FILTERS)


def test_ranges_of_moments_and_knowledge_decide_what_is_read(spark: SparkSession, tmp_path: Path) -> None:
    spark.sql(
        "SELECT * FROM VALUES "
        "('old', 1.0, TIMESTAMP '2025-06-01 00:00:00Z', TIMESTAMP '2026-01-01 00:00:00Z', TIMESTAMP '2025-01-01 00:00:00Z', NULL), "
        "('first', 2.0, TIMESTAMP '2026-01-01 00:00:00Z', NULL, TIMESTAMP '2026-01-01 00:00:00Z', TIMESTAMP '2026-01-20 12:00:00Z'), "
        "('corrected', 3.0, TIMESTAMP '2026-01-01 00:00:00Z', NULL, TIMESTAMP '2026-01-20 12:00:00Z', NULL) "
        "AS t(cur, rate, _period_from, _period_to, _known_from, _known_to)"
    ).coalesce(1).write.parquet(str(tmp_path / "rates"))
    data = dataset(RATES, natural_key_columns=("cur",))

    def seen(known_at: dt.datetime | None, **keys: Any) -> list[tuple[Any, ...]]:
        frame = read(spark, tmp_path, data, path="rates", type="parquet", known_at=known_at, **keys)
        return sorted((r.cur, r._period_from) for r in frame.collect())

    first = dt.date(2026, 1, 1)
    before, at = dt.datetime(2026, 1, 20, 11, tzinfo=dt.UTC), dt.datetime(2026, 1, 20, 12, tzinfo=dt.UTC)
    assert seen(before) == [("first", first)]
    assert seen(at) == [("corrected", first)]
    assert seen(None) == [("corrected", first), ("first", first)]
    by_row = AsOfDay("column", column="day")
    assert len(seen(None, as_of=by_row)) == 3
    asked = read(spark, tmp_path, data, path="rates", type="parquet", known_at=at, columns=("cur", "_known_from"))
    assert asked.columns[:2] == ["cur", "_known_from"]


def test_loaded_rows_carry_the_system_columns(any_spark: SparkSession, tmp_path: Path) -> None:
    text = (
        "id,amount,_period,_row_kind,_labels,_created_at,_operation_seq\n"
        '1,1,2026-01,,,,\n2,2,2026-01,summary,"{""a"": ""b""}",2020-01-01T00:00:00Z,30\n'
    )
    frame = read(any_spark, tmp_path, dataset(natural_key_columns=("id",)), text, columns=("amount",))
    assert frame.columns == ["amount", *(f.name for f in SYSTEM_COLUMNS), "_period"]
    types = {f.name: f.dataType.simpleString() for f in frame.schema.fields}
    assert (types["_labels"], types["_operation_seq"], types["_created_at"]) == (
        "map<string,string>",
        "bigint",
        "timestamp",
    )
    plain, kept = sorted(frame.collect(), key=lambda r: r.amount)
    moment = RUN_AT.replace(tzinfo=None)
    assert plain.asDict() == {
        "amount": 1,
        "_row_id": plain._row_id,
        "_row_kind": "detail",
        "_source_dataset_id": "ds-sales",
        "_source_table": "orders",
        "_created_by_project_id": None,
        "_created_by_run_id": None,
        "_created_at": moment,
        "_updated_at": moment,
        "_operation_seq": None,
        "_deleted": False,
        "_labels": {},
        "_period": "2026-01",
    }
    assert (kept._row_kind, kept._labels, kept._operation_seq) == ("summary", {"a": "b"}, 30)
    assert kept._created_at == dt.datetime(2020, 1, 1)  # noqa: DTZ001
    assert kept._row_id != plain._row_id


def test_row_ids_do_not_depend_on_how_the_data_is_cut(spark: SparkSession, tmp_path: Path) -> None:
    lines = [f"{i // 2},{i // 2}.00,2026-01" for i in range(20)]
    ids: dict[str, list[str]] = {}
    for name, cut in (("one", [lines]), ("three", [lines[:3][::-1], lines[3:9], lines[9:][::-1]])):
        (tmp_path / name).mkdir()
        for number, part in enumerate(cut):
            text = "\n".join(["id,amount,_period", *part])
            (tmp_path / name / f"{number}.csv").write_text(text + "\n")
        frame = read(spark, tmp_path, dataset(), path=name).repartition(3 if name == "one" else 1)
        ids[name] = sorted(r._row_id for r in frame.collect())
    assert ids["one"] == ids["three"]
    assert len(set(ids["one"])) == 20


def test_an_id_is_a_hash_of_its_typed_parts(spark: SparkSession) -> None:
    from pyspark.sql import functions as F

    parts: dict[str, list[tuple[Any, DType]]] = {
        "a": [*named(F, "ab", "c")],
        "b": [*named(F, "a", "bc")],
        "null": [(F.lit(None).cast("string"), STRING), *named(F, "")],
        "empty": [*named(F, "", "")],
        "n": [*named(F, "n", "")],
        "decimal": [(F.lit("1.5").cast("decimal(18,2)"), parse_type("decimal(18,2)"))],
        "moment": [(F.lit("2026-01-01T00:00:00Z").cast("timestamp"), TIMESTAMP)],
    }
    (row,) = spark.range(1).select(*(identity(F, p).alias(n) for n, p in parts.items())).collect()
    assert len(set(row)) == len(parts)
    for name, text in (("a", "v2:ab\x1fv1:c"), ("null", "n\x1fv0:"), ("decimal", "v4:1.50")):
        digits = hashlib.sha256(text.encode()).hexdigest()
        assert row[name] == str(uuid.UUID(digits[:32]))
    digits = hashlib.sha256(b"v16:1767225600000000").hexdigest()
    assert row["moment"].replace("-", "") == digits[:32]


def test_a_lookup_table_has_ids_without_the_key_of_the_main_table(spark: SparkSession, tmp_path: Path) -> None:
    accounts = table("accounts", code="string")
    data = dataset(
        natural_key_columns=("id",),
        lookups=(LookupDef(alias="accounts", target=accounts, join_conditions=(("id", "code"),)),),
    )
    frame = read(spark, tmp_path, data, "code,_period\n1200,2026-01\n1200,2026-01\n", main=accounts)
    rows = frame.collect()
    assert [r._source_table for r in rows] == ["accounts"] * 2
    assert len({r._row_id for r in rows}) == 2


def test_repeated_keys_are_reported_when_the_dataset_checks_them(spark: SparkSession, tmp_path: Path) -> None:
    text = "id,amount,_period\n1,1,2026-01\n1,2,2026-01\n1,3,2026-02\n2,4,2026-01\n"
    reported: list[Diagnostic] = []
    data = dataset(natural_key_columns=("id",), check_keys="warn")
    assert read(spark, tmp_path, data, text, notice=reported.append).count() == 3
    assert [(d.code, d.severity) for d in reported] == [("W1320", "warning")]
    assert "id = 1, _period = 2026-01 (2 rows)" in reported[0].message
    with pytest.raises(ResolutionError) as caught:
        read(spark, tmp_path, dataset(natural_key_columns=("id",), check_keys="fail"))
    assert caught.value.code == "W1320"
