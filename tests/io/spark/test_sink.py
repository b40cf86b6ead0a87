"""Staged outputs: what is written, under which names, counted and hashed; merges; tables of the catalog."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import sys
from csv import reader
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from resolvers import catalog, dataset, published, read_of, resolver, rule, source, table
from weft.core.types import Schema
from weft.errors import ResolutionError, RunError
from weft.io.options import CsvOptions, csv_options
from weft.io.spark.catalog_table import publish_table
from weft.io.spark.failures import data_failure
from weft.io.spark.files import stage_files
from weft.io.staged import Staged
from weft.pipelines.model.resolver import TableStrategy
from weft.pipelines.plan.catalog import Catalog, RegisteredVersion
from weft.pipelines.plan.operations.resolved import ResolvedOutput, Target, WorkingSet
from weft.pipelines.spark.read import read_table
from weft.pipelines.spark.stage import stage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RUN = "0199a1c2"
SCHEMA = (
    "id long, amount decimal(18,2), note string, at timestamp, day date, _labels map<string,string>, _period string"
)
MOMENT = dt.datetime(2026, 1, 1, 9, 30, 0, 5, tzinfo=dt.UTC)
ROWS = [
    (1, Decimal("0.10"), 'a "b", c\nd', MOMENT, dt.date(2026, 1, 31), {"k": "v"}, "2026-01"),
    (2, None, None, None, None, {}, "2026-01"),
]


def rows(spark: SparkSession, *made: tuple[Any, ...]) -> DataFrame:
    return spark.createDataFrame(made or ROWS, SCHEMA)


def output(location: str, *, mode: Any = "replace_period", key: tuple[str, ...] = (), **target: Any) -> ResolvedOutput:
    given = {"kind": "files", "format": "parquet", "period": "2026-01", **target}
    working = WorkingSet(table="t", dataset=dataset(), schema=Schema(()))
    return ResolvedOutput(
        seq=20,
        name="Write",
        selector=None,
        lookups=(),
        columns=(),
        include_deleted=False,
        target=Target(location=location, **given),
        mode=mode,
        merge_key=key,
        order_by=(),
        register_as=None,
        before=working,
    )


def staged(df: DataFrame, root: Path, made: ResolvedOutput, known: Catalog | None = None) -> Staged:
    return stage(df, made, root / "stage" / "20", run_id=RUN, catalog=known or catalog(), root=root)


@pytest.mark.parametrize("format", ["parquet", "csv", "json"])
def test_what_is_written_is_read_back_the_same(spark: SparkSession, tmp_path: Path, format: str) -> None:
    found = staged(rows(spark).repartition(2), tmp_path, output("out", format=format))
    assert (found.rows, found.columns) == (2, tuple(rows(spark).columns))
    folder = Path(found.location)
    assert sorted(f.name for f in folder.iterdir()) == sorted(f.path for f in found.files)
    for number, file in enumerate(found.files):
        content = (folder / file.path).read_bytes()
        assert file.path == f"part-{RUN}-{number:05d}.{format}"
        assert (file.bytes, file.sha256) == (len(content), hashlib.sha256(content).hexdigest())
    main = table("t", id="long", amount="decimal(18,2)", note="string", at="timestamp", day="date")
    made = dataset(main, origin="registered", natural_key_columns=("id",))
    at = published("2026-01", path=found.location, format=format)
    known = catalog(registered=(RegisteredVersion(dataset=made, locations=(at,)),))
    back = read_table(spark, read_of(made, known), known, tmp_path, run_at=MOMENT)
    names = ("id", "amount", "note", "at", "day", "_labels", "_period")
    found_rows = sorted(tuple(row[n] for n in names) for row in back.collect())
    expected = [(*r[:3], r[3] and r[3].replace(tzinfo=None), *r[4:]) for r in ROWS]
    assert found_rows == expected


TEXTS = [
    " blanks ",
    "a;b",
    "a|b",
    "it's",
    "'quoted'",
    'say "x"',
    "\u00e9t\u00e9",
    "",
    None,
    "a,b",
    "back\\slash",
    "tab\t",
]


@pytest.mark.parametrize(
    ("format", "options"),
    [
        ("csv", {"delimiter": ";", "quote": "'", "encoding": "ISO-8859-1"}),
        ("csv", {"delimiter": "\t", "encoding": "UTF-16"}),
        ("csv", {"delimiter": "|", "multiline": False}),
        ("json", {"encoding": "ISO-8859-1"}),
    ],
)
def test_files_are_written_and_read_again_as_their_datasource_says(
    spark: SparkSession, tmp_path: Path, format: str, options: dict[str, Any]
) -> None:
    files = source(format, "files", path_prefix="out", **options)
    made = replace(output("out/t", format=format), target=_target(files))
    frame = spark.createDataFrame(list(enumerate(TEXTS)), "id long, note string").coalesce(1)
    found = staged(frame, tmp_path, made, catalog(files))
    text = (Path(found.location) / found.files[0].path).read_text(encoding=options.get("encoding", "utf-8"))
    if format == "csv":
        assert text.splitlines()[0] == options["delimiter"].join(("id", "note"))
    main = table("t", id="long", note="string")
    registered = dataset(main, origin="registered", natural_key_columns=("id",))
    at = replace(published("2026-01", path=found.location, format=format), datasource="files")
    known = catalog(files, registered=(RegisteredVersion(dataset=registered, locations=(at,)),))
    back = read_table(spark, read_of(registered, known), known, tmp_path, run_at=MOMENT)
    expected = [(i, text or None if format == "csv" else text) for i, text in enumerate(TEXTS)]
    assert sorted((r.id, r.note) for r in back.collect()) == expected
    # A merge reads the old rows in the same form.
    Path(found.location).rename(tmp_path / "merged")
    merging = replace(made, mode="merge", merge_key=("id",), target=replace(made.target, location="merged"))
    again = staged(spark.createDataFrame([(0, "new")], "id long, note string"), tmp_path, merging, catalog(files))
    assert again.rows == len(TEXTS)


def _target(files: Any) -> Target:
    return Target(
        kind="files",
        location="out/t",
        format=files.type,
        datasource_id=files.id,
        table="t",
        period="2026-01",
        csv=csv_options(files),
        encoding=str(files.options.get("encoding") or "UTF-8"),
    )


def test_a_text_that_the_files_cannot_hold_fails_the_output(spark: SparkSession, tmp_path: Path) -> None:
    euro = spark.createDataFrame([("10 \u20ac",)], "note string")
    for format in ("csv", "json"):
        files = source(format, "files", path_prefix="out", encoding="ISO-8859-1")
        made = replace(output("out/t", format=format), target=_target(files))
        with pytest.raises(RunError, match=r"W1422.*U\+20AC.*ISO-8859-1"):
            staged(euro, tmp_path, made, catalog(files))
    lines = spark.createDataFrame([("a\nb",)], "note string")
    files = source("csv", "files", path_prefix="out", multiline=False)
    with pytest.raises(Exception, match="line end") as caught:
        staged(lines, tmp_path, replace(output("out/t", format="csv"), target=_target(files)), catalog(files))
    reported = data_failure(caught.value)
    assert reported is not None
    assert reported.code == "W1318"


def test_formulas_are_escaped_in_texts_and_numbers_stay_numbers(spark: SparkSession, tmp_path: Path) -> None:
    texts = [
        "=1+1",
        "+1",
        "-1",
        "@x",
        "\tx",
        "\rx",
        "\uff1d1",
        "\uff0b1",
        "\uff0d1",
        "\uff20x",
        "plain",
        "a=b",
        "'=1",
        "",
        None,
    ]
    frame = spark.createDataFrame([(i, -1.5, t) for i, t in enumerate(texts)], "id int, amount double, note string")
    for escape in (True, False):
        csv = CsvOptions(escape_formulas=escape)
        found = stage_files(frame.coalesce(1), tmp_path / "out", format="csv", run_id=RUN, csv=csv)
        with (tmp_path / "out" / found.files[0].path).open(newline="", encoding="utf-8") as lines:
            cells = list(reader(lines))[1:]
        assert [c[1] for c in cells] == ["-1.5"] * len(texts)
        expected = [f"'{t}" if escape and t and t[0] in "=+-@\t\r\uff1d\uff0b\uff0d\uff20" else t or "" for t in texts]
        assert [c[2] for c in cells] == expected
        assert found.columns == ("id", "amount", "note")


def test_rows_are_counted_on_their_way_where_no_footer_can_be_read(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    found = stage_files(rows(spark), tmp_path / "out", format="parquet", run_id=RUN)
    assert found.rows == 2


def test_no_rows_are_staged_with_their_columns(spark: SparkSession, tmp_path: Path) -> None:
    for format in ("parquet", "csv"):
        found = stage_files(rows(spark).limit(0), tmp_path / format, format=format, run_id=RUN)
        assert found.rows == 0
        assert [f.path for f in found.files] == [f"part-{RUN}-00000.{format}"]
    assert (tmp_path / "csv" / f"part-{RUN}-00000.csv").read_text().startswith("id,amount,note")


def test_a_single_file_has_the_name_of_its_target(spark: SparkSession, tmp_path: Path) -> None:
    made = output("out/gl report.csv", kind="file", format="csv")
    found = staged(rows(spark).repartition(3), tmp_path, made)
    assert [f.path for f in found.files] == ["gl report.csv"]
    text = (Path(found.location) / "gl report.csv").read_text()
    assert text.splitlines()[0] == "id,amount,note,at,day,_labels,_period"
    assert '1,0.10,"a ""b"", c' in text
    assert "2026-01-01T09:30:00.000005Z,2026-01-31" in text
    assert "{}" in text


def test_json_lines_keep_nulls_and_digits(spark: SparkSession, tmp_path: Path) -> None:
    found = staged(rows(spark).coalesce(1), tmp_path, output("out", format="json"))
    lines = (Path(found.location) / found.files[0].path).read_text().splitlines()
    first, second = (json.loads(line, parse_float=Decimal) for line in sorted(lines))
    assert (first["amount"], first["_labels"]) == (Decimal("0.10"), {"k": "v"})
    assert second["amount"] is None
    assert '"amount":0.10' in min(lines)


def test_staging_again_replaces_what_a_dead_run_left(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "stage"
    folder.mkdir()
    (folder / "part-old.parquet").write_bytes(b"half")
    found = stage_files(rows(spark).coalesce(1), folder, format="parquet", run_id=RUN)
    assert [f.name for f in folder.iterdir()] == [f"part-{RUN}-00000.parquet"]
    (file,) = found.files
    assert file.problem(folder) == ""
    with (folder / file.path).open("r+b") as data:
        data.write(b"XXXX")
    assert file.problem(folder) == f"the file {file.path} has changed since it was written"
    (folder / file.path).unlink()
    assert file.problem(folder) == f"the file {file.path} is missing"


@pytest.mark.parametrize("format", ["parquet", "csv"])
def test_a_merge_stages_old_rows_with_other_keys_and_the_new_ones(
    spark: SparkSession, tmp_path: Path, format: str
) -> None:
    made = output("out", mode="merge", key=("id", "note"), format=format)
    target = tmp_path / "out"

    def merge(*new: tuple[int, str | None, str]) -> list[tuple[Any, ...]]:
        frame = spark.createDataFrame(
            [(id, note, Decimal(amount)) for id, note, amount in new],
            "id long, note string, amount decimal(18,2)",
        )
        found = staged(frame, tmp_path, made)
        if target.exists():
            for file in target.iterdir():
                file.unlink()
            target.rmdir()
        Path(found.location).rename(target)
        read = spark.read.parquet(str(target)) if format == "parquet" else spark.read.csv(str(target), header=True)
        return sorted(
            ((int(r.id), r.note, Decimal(r.amount)) for r in read.collect()), key=lambda r: (r[0], r[1] or "")
        )

    assert merge((1, None, "1.00"), (2, "a", "2.00")) == [
        (1, None, Decimal("1.00")),
        (2, "a", Decimal("2.00")),
    ]
    assert merge((1, None, "7.00"), (2, "b", "3.00")) == [
        (1, None, Decimal("7.00")),
        (2, "a", Decimal("2.00")),
        (2, "b", Decimal("3.00")),
    ]


def test_tables_of_the_catalog_replace_append_merge_and_refuse(spark: SparkSession, tmp_path: Path) -> None:
    name = "`default`.`weft_out`"
    spark.sql(f"DROP TABLE IF EXISTS {name}")
    known = catalog(source("table", "lake", schema="default"))
    made = output("weft_out", kind="table", format="table", datasource_id="lake", table="weft_out")

    def write(mode: Any, *new: tuple[int, str]) -> list[tuple[int, str]]:
        frame = spark.createDataFrame(new, "id long, _period string") if new else spark.table(name).limit(0)
        found = staged(frame, tmp_path, replace(made, mode=mode, merge_key=("id",)), known)
        publish_table(spark, Path(found.location), name, mode=mode, periods=("2026-01", "2026-Q1"))
        return sorted((r.id, r._period) for r in spark.table(name).collect())

    try:
        assert write("replace_period", (1, "2026-01"), (2, "2025-12")) == [(1, "2026-01"), (2, "2025-12")]
        assert write("replace_period", (3, "2026-01")) == [(2, "2025-12"), (3, "2026-01")]
        assert write("append", (4, "2026-01")) == [(2, "2025-12"), (3, "2026-01"), (4, "2026-01")]
        assert write("merge", (4, "2026-02")) == [(2, "2025-12"), (3, "2026-01"), (4, "2026-02")]
        with pytest.raises(RunError, match="already has rows") as caught:
            write("fail_if_exists", (9, "2026-01"))
        assert caught.value.code == "W1507"
        assert write("replace_period") == [(2, "2025-12"), (4, "2026-02")]
        wide = spark.sql("SELECT 1L id, 'x' _period, 2 more")
        stage_files(wide, tmp_path / "m", format="parquet", run_id=RUN)
        with pytest.raises(RunError, match="different columns: more"):
            publish_table(spark, tmp_path / "m", name, mode="append")
    finally:
        spark.sql(f"DROP TABLE IF EXISTS {name}")
    spark.sql(f"CREATE TABLE {name} (id BIGINT, _period STRING) USING parquet")
    try:
        with pytest.raises(RunError, match="not partitioned by _period"):
            write("replace_period", (1, "2026-01"))
    finally:
        spark.sql(f"DROP TABLE {name}")


def test_a_table_of_the_catalog_is_read_and_a_missing_one_reported(spark: SparkSession, tmp_path: Path) -> None:

    spark.sql("DROP TABLE IF EXISTS `default`.`weft_in`")
    spark.sql("CREATE TABLE `default`.`weft_in` USING parquet AS SELECT 1L id, 2.50BD amount, '2026-01' _period")
    lake = source("table", "lake", catalog="spark_catalog", schema="default")
    by = rule("t", strategy=TableStrategy(datasource="lake", table="{{table_name}}"))
    known = catalog(resolver(by), lake, default="main")
    try:
        data = dataset(table("weft_in"))
        (row,) = read_table(spark, read_of(data, known), known, tmp_path, run_at=MOMENT).collect()
        assert (row.id, row.amount) == (1, Decimal("2.50"))
        with pytest.raises(ResolutionError) as caught:
            read_table(spark, read_of(dataset(table("none")), known), known, tmp_path, run_at=MOMENT)
        assert caught.value.code == "W1309"
    finally:
        spark.sql("DROP TABLE `default`.`weft_in`")


def test_other_failures_tell_nothing_of_data() -> None:
    assert data_failure(RuntimeError("[DIVIDE_BY_ZERO] Division by zero")) is None
