"""output before any data is read: columns, destinations, modes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipelines import Site, site, update
from weft.core.source import Source
from weft.errors import ActivationError
from weft.io.options import CsvOptions
from weft.pipelines.model.operation import Destination, Output
from weft.pipelines.plan.operations.resolved import ResolvedOutput

WAREHOUSE = "{datasource_id: warehouse, table: gl}"
MORE_SOURCES: dict[str, str | None] = {
    "datasources/db.yml": "datasource: {id: db, name: db, type: jdbc, options: {url: 'jdbc:postgresql://h/d', schema: fin}}\n",
    "datasources/lake.yml": "datasource: {id: lake, name: lake, type: table, options: {}}\n",
    "datasources/off.yml": "datasource: {id: 'off', name: switched, type: csv, status: disabled, options: {path_prefix: x}}\n",
    "datasources/ice.yml": "datasource: {id: ice, name: ice, type: iceberg, options: {}}\n",
    "datasources/ora.yml": "datasource: {id: ora, name: ora, type: jdbc, options: {url: 'jdbc:oracle:thin:@h', driver: x.Y}}\n",
    "datasources/docs.yml": "datasource: {id: docs, name: docs, type: json, options: {path_prefix: d, multiline: true}}\n",
    "datasources/excel.yml": "datasource: {id: excel, name: excel, type: csv, options: {path_prefix: x, delimiter: ';', has_header: false, encoding: latin-1, escape_formulas: true}}\n",
    "datasources/s3.yml": "datasource: {id: s3, name: s3, type: parquet, options: {path_prefix: 's3a://bucket/x'}}\n",
}


def made(
    tmp_path: Path,
    destination: str = WAREHOUSE,
    more: str = "",
    *before: str,
    selector: str = "",
    **options: Any,
) -> Site:
    chosen = f"selector: {selector}, " if selector else ""
    out = f"- {{seq: 20, name: Write, type: output, {chosen}arguments: {{destination: {destination}{more}}}}}"
    return site(tmp_path, [*before, out], MORE_SOURCES, **options)


def output(found: Site, **options: Any) -> ResolvedOutput:
    op = found.plan(**options).operations[-1]
    assert isinstance(op, ResolvedOutput)
    return op


@pytest.mark.parametrize("scheme", ["file://", "file:"])
def test_a_file_url_is_the_path_that_it_names(tmp_path: Path, scheme: str) -> None:
    folder = f"{tmp_path}/a b"
    url = scheme + folder.replace(" ", "%20")
    assert output(made(tmp_path / "w", f"{{path: '{url}/gl'}}")).target.location == f"{folder}/gl/period=2026-01"
    there = f"datasource: {{id: there, name: there, type: parquet, options: {{path_prefix: '{url}'}}}}\n"
    write = "- {seq: 20, name: Write, type: output, arguments: {destination: {datasource_id: there, table: gl}}}"
    found = site(tmp_path / "w", [write], {"datasources/there.yml": there})
    assert output(found).target.location == f"{folder}/gl/period=2026-01"


# Columns.


def test_all_columns_are_written_business_columns_first(tmp_path: Path) -> None:
    op = output(made(tmp_path, WAREHOUSE, "", update(x="1")))
    assert op.columns[9:12] == ("source_system", "x", "_row_id")
    assert op.columns[-1] == "_period"


def test_named_columns_are_written_in_their_order(tmp_path: Path) -> None:
    op = output(made(tmp_path, WAREHOUSE, ", columns: [amount_local, transactions.journal_id, _period]"))
    assert op.columns == ("amount_local", "journal_id", "_period")


@pytest.mark.parametrize(
    ("columns", "code", "message", "place"),
    [
        ("[]", "W1411", "the output has no columns", None),
        (
            "[journal_id, amount]",
            "W1412",
            "unknown output column 'amount'",
            "amount",
        ),
        (
            "[journal_id, accounts.type]",
            "W1412",
            "unknown output column 'accounts.type'",
            "accounts.type",
        ),
        (
            "[journal_id, transactions.journal_id]",
            "W1413",
            "column 'journal_id' is written twice",
            "transactions.journal_id",
        ),
    ],
)
def test_columns_that_cannot_be_written_are_reported(
    tmp_path: Path, columns: str, code: str, message: str, place: str | None
) -> None:
    (failure,) = made(tmp_path, WAREHOUSE, f", columns: {columns}").failures()
    assert (failure.diagnostic.code, failure.detail) == (code, message)
    at = failure.diagnostic.at
    assert isinstance(at, Source)
    assert place in (None, at.text[at.start : at.end])


def test_an_unknown_column_lists_what_is_there(tmp_path: Path) -> None:
    (failure,) = made(tmp_path, WAREHOUSE, ", columns: [amount_lokal]").failures()
    assert failure.diagnostic.help.startswith("did you mean 'amount_local'? available columns are 'journal_id', ")


def test_an_output_can_be_ordered(tmp_path: Path) -> None:
    op = output(made(tmp_path, WAREHOUSE, ", order_by: [currency, -amount_local]"))
    assert op.order_by == (("currency", True), ("amount_local", False))
    assert [c for c, _ in made(tmp_path, WAREHOUSE, ", order_by: [nothing]").messages()] == ["W1412"]


@pytest.mark.parametrize(("selector", "code"), [("currency", "W1406"), ("''", "W1403"), ("x = 1", "W0207")])
def test_a_selector_of_an_output_is_a_condition(tmp_path: Path, selector: str, code: str) -> None:
    assert [c for c, _ in made(tmp_path, selector=selector).messages()] == [code]


# Destinations.


@pytest.mark.parametrize(
    ("destination", "kind", "location", "format", "period"),
    [
        (WAREHOUSE, "files", "out/gl/period=2026-01", "parquet", "2026-01"),
        ("{path: exports/gl}", "files", "exports/gl/period=2026-01", "parquet", "2026-01"),
        ("{path: exports/gl/, format: csv}", "files", "exports/gl/period=2026-01", "csv", "2026-01"),
        ("{path: '/abs/{{YYYY}}/{{ MM }}', format: json}", "files", "/abs/2026/01", "json", "2026-01"),
        ("{path: 'exports/gl_{{period}}.csv'}", "file", "exports/gl_2026-01.csv", "csv", "2026-01"),
        ("{path: exports/gl.parquet}", "file", "exports/gl.parquet", "parquet", None),
        ("{datasource_id: db, table: gl}", "jdbc", "db:fin.gl", "jdbc", "2026-01"),
        ("{datasource_id: db, table: gl, schema: other}", "jdbc", "db:other.gl", "jdbc", "2026-01"),
        ("{datasource_id: lake, table: gl}", "table", "gl", "table", "2026-01"),
    ],
)
def test_a_destination_is_a_folder_a_file_or_a_table(
    tmp_path: Path, destination: str, kind: str, location: str, format: str, period: str | None
) -> None:
    target = output(made(tmp_path, destination)).target
    assert (target.kind, target.location, target.format, target.period) == (kind, location, format, period)


@pytest.mark.parametrize(
    ("destination", "code"),
    [
        ("{datasource_id: 'off', table: gl}", "W1315"),
        ("{datasource_id: warehouse, table: '../gl'}", "W1311"),
        ("{datasource_id: warehouse, table: 'a/b'}", "W1311"),
        ("{datasource_id: db, table: 'a\"b'}", "W1311"),
        ("{path: exports/../../etc}", "W1311"),
        ("{path: 'x/{{NOTHING}}'}", "W1310"),
        ("{path: 's3a://bucket/x'}", "W1509"),
        ("{datasource_id: s3, table: gl}", "W1509"),
        ("{datasource_id: ice, table: gl}", "W1509"),
        ("{datasource_id: ora, table: gl}", "W1509"),
        ("{datasource_id: docs, table: gl}", "W1422"),
        ("{path: x.csv, format: json}", "W1417"),
        ("{datasource_id: warehouse, table: gl, format: csv}", "W1417"),
    ],
)
def test_a_destination_that_cannot_be_is_refused(tmp_path: Path, destination: str, code: str) -> None:
    found = made(tmp_path, destination)
    assert [d.code for d in found.refused().diagnostics] == [code]


@pytest.mark.parametrize(
    ("destination", "code"),
    [
        (Destination(), "W1417"),
        (Destination(datasource=" ", table="gl"), "W1417"),
        (Destination(datasource="warehouse", table=" "), "W1417"),
        (Destination(datasource="warehouse", table="gl", path="x"), "W1417"),
        (Destination(path=" "), "W1417"),
        (Destination(datasource="warehose", table="gl"), "W1020"),
    ],
)
def test_a_destination_that_no_file_can_say_is_refused_too(tmp_path: Path, destination: Destination, code: str) -> None:
    found = made(tmp_path)
    (op,) = found.project.operations
    other = replace(op, arguments=Output(destination=destination))
    assert [c for c, _ in replace(found, project=replace(found.project, operations=(other,))).messages()] == [code]


def test_a_quarter_has_no_month_in_its_path(tmp_path: Path) -> None:
    found = made(tmp_path, "{path: 'x/{{MM}}'}")
    assert found.failures() == ()
    with pytest.raises(ActivationError, match="a quarter has no MM"):
        found.plan("2026-Q1")


def test_one_file_for_every_period_is_a_warning(tmp_path: Path) -> None:
    assert [w.code for w in made(tmp_path, "{path: gl.csv}").plan().warnings] == ["W1511"]
    assert made(tmp_path, "{path: 'gl_{{period}}.csv'}").plan().warnings == ()


@pytest.mark.parametrize(
    ("destination", "location", "format"),
    [
        (WAREHOUSE, ".weft/sandbox/fx_reporting/gl/period=2026-01", "parquet"),
        ("{datasource_id: db, table: gl}", ".weft/sandbox/fx_reporting/gl/period=2026-01", "parquet"),
        ("{path: /abs/gl, format: csv}", ".weft/sandbox/fx_reporting/abs/gl/period=2026-01", "csv"),
        ("{path: gl.csv}", ".weft/sandbox/fx_reporting/gl.csv", "csv"),
    ],
)
def test_a_draft_writes_into_the_sandbox_and_registers_nothing(
    tmp_path: Path, destination: str, location: str, format: str
) -> None:
    columns = ", columns: [journal_id, _period], register_as_dataset: gl_usd"
    op = output(made(tmp_path, destination, columns), draft=True)
    assert (op.target.location, op.target.format, op.register_as) == (location, format, None)


# Modes.


def test_rows_are_merged_by_the_key_of_the_input(tmp_path: Path) -> None:
    op = output(made(tmp_path, WAREHOUSE, ", mode: merge"))
    assert op.merge_key == ("journal_id", "line_number")


def test_rows_are_merged_by_the_key_of_the_registered_dataset(tmp_path: Path) -> None:
    more = ", mode: merge, register_as_dataset: exchange_rates, columns: [journal_id, line_number]"
    assert output(made(tmp_path, WAREHOUSE, more)).merge_key == ("journal_id", "line_number")


def test_the_key_of_the_registered_dataset_comes_before_that_of_the_input(tmp_path: Path) -> None:
    journals = (
        "dataset: {id: journals, name: journals, version: 1, status: active, natural_key_columns: [journal_id],\n"
        "  main_table: {name: journals, temporal_mode: period,"
        " columns: [{name: journal_id, type: string, nullable: false}]}}\n"
    )
    more = "mode: merge, register_as_dataset: journals"
    write = f"- {{seq: 20, name: Write, type: output, arguments: {{destination: {WAREHOUSE}, {more}}}}}"
    found = site(tmp_path, [write], {"datasets/journals.v1.yml": journals})
    assert output(found).merge_key == ("journal_id",)


def test_rows_cannot_be_merged_without_their_key(tmp_path: Path) -> None:
    assert [c for c, _ in made(tmp_path, WAREHOUSE, ", mode: merge, columns: [journal_id]").messages()] == ["W1414"]


@pytest.mark.parametrize("source", ["db", "lake"])
def test_a_table_needs_the_period_to_replace_it(tmp_path: Path, source: str) -> None:
    destination = f"{{datasource_id: {source}, table: gl}}"
    assert [c for c, _ in made(tmp_path, destination, ", columns: [journal_id]").messages()] == ["W1415"]
    assert made(tmp_path, destination, ", columns: [journal_id], mode: append").failures() == ()
    assert made(tmp_path, destination, ", columns: [journal_id, _period]").failures() == ()


def test_a_blank_dataset_name_is_refused(tmp_path: Path) -> None:
    assert [c for c, _ in made(tmp_path, WAREHOUSE, ", register_as_dataset: ' '").messages()] == ["W1416"]
    assert output(made(tmp_path, WAREHOUSE, ", register_as_dataset: gl_usd")).register_as == "gl_usd"


# Files as their datasource describes them, and what they cannot hold.


def test_the_options_of_a_datasource_reach_its_files_also_in_a_draft(tmp_path: Path) -> None:
    found = made(tmp_path, "{datasource_id: excel, table: gl}")
    wanted = CsvOptions(delimiter=";", has_header=False, encoding="latin-1", escape_formulas=True)
    for draft in (False, True):
        target = output(found, draft=draft).target
        assert (target.csv, target.encoding) == (wanted, "latin-1")


@pytest.mark.parametrize(
    ("destination", "more", "refused"),
    [
        ("{path: x.csv}", ", mode: append", True),
        ("{path: 'x/{{period}}.csv'}", ", mode: append", True),
        ("{path: x, format: csv}", ", mode: append", False),
        ("{path: x, format: csv}", ", escape_formulas: true", False),
        ("{path: x, format: csv}", ", escape_formulas: true, register_as_dataset: d", True),
        ("{path: x, format: csv}", ", escape_formulas: true, mode: merge", True),
        ("{path: x, format: json}", ", escape_formulas: true", True),
        ("{datasource_id: db, table: gl}", ", escape_formulas: true", True),
        ("{datasource_id: excel, table: gl}", "", False),
        ("{datasource_id: excel, table: gl}", ", mode: merge", True),
        ("{datasource_id: excel, table: gl}", ", register_as_dataset: d", True),
    ],
)
def test_what_files_cannot_hold_is_refused(tmp_path: Path, destination: str, more: str, *, refused: bool) -> None:
    assert {code for code, _ in made(tmp_path, destination, more).messages()} == ({"W1422"} if refused else set())


@pytest.mark.parametrize(
    ("table", "schema", "column", "refused"),
    [
        ("t" * 63, "s" * 63, "c" * 63, []),
        ("t" * 64, "s", "c", ["W1421"]),
        ("t", "s" * 64, "c", ["W1421"]),
        ("t", "s", "c" * 64, ["W1421"]),
        ("\u00e4" * 32, "s", "c", ["W1421"]),  # 32 letters, 64 bytes
        ("\u00e4" * 31, "s", "c", []),
    ],
)
def test_names_that_postgresql_would_cut_off_are_refused(
    tmp_path: Path, table: str, schema: str, column: str, refused: list[str]
) -> None:
    destination = f"{{datasource_id: db, table: {table}, schema: {schema}}}"
    found = made(tmp_path, destination, "", update(**{column: "1"}))
    assert [code for code, _ in found.messages()] == refused
    if refused:
        with pytest.raises(ActivationError, match="W1421"):
            found.plan(draft=True)


def test_a_long_name_is_fine_where_nobody_cuts_it_off(tmp_path: Path) -> None:
    assert made(tmp_path, WAREHOUSE, "", update(**{"c" * 64: "1"})).messages() == []
