"""What each option of a datasource does to an output, from the plan to the bytes: used, or refused with a code."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pipelines import Site, site
from resolvers import source
from weft.errors import WeftError
from weft.io.connectors import connectors
from weft.io.spark.catalog_table import table_name
from weft.io.spark.failures import data_failure
from weft.io.spark.jdbc import connection_options
from weft.pipelines.plan.operations.places import written
from weft.pipelines.plan.operations.resolved import ResolvedOutput
from weft.pipelines.spark.stage import stage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POSTGRES = "jdbc:postgresql://h/d"
FILES = {"csv": "\u00e9;x,y\n'a',\"=1\n2\"\n", "json": '{"\u00e9;x":"\'a\'","y":"=1\\n2"}\n'}
"""The files that hold one row, without any option."""

BYTES: dict[tuple[str, str], tuple[Any, bytes | str]] = {
    ("csv", "delimiter"): (";", '"\u00e9;x";y\n\'a\';"=1\n2"\n'.encode()),
    ("csv", "quote"): ("'", "\u00e9;x,y\n'''a''','=1\n2'\n".encode()),
    ("csv", "has_header"): (False, b"'a',\"=1\n2\"\n"),
    ("csv", "encoding"): ("ISO-8859-1", FILES["csv"].encode("latin-1")),
    ("csv", "escape_formulas"): (True, "\u00e9;x,y\n'a',\"'=1\n2\"\n".encode()),
    ("csv", "multiline"): (False, "W1318"),
    ("json", "encoding"): ("ISO-8859-1", FILES["json"].encode("latin-1")),
    ("json", "multiline"): (True, "W1422"),
}
"""For an option of files its value, and the bytes of the row with it, or the code that refuses the row."""

PLACES: dict[tuple[str, str], tuple[dict[str, Any], str]] = {
    ("csv", "path_prefix"): ({"path_prefix": "elsewhere"}, "elsewhere/t/period=2026-01"),
    ("parquet", "path_prefix"): ({"path_prefix": "elsewhere"}, "elsewhere/t/period=2026-01"),
    ("json", "path_prefix"): ({"path_prefix": "elsewhere"}, "elsewhere/t/period=2026-01"),
    ("jdbc", "url"): ({"url": "jdbc:postgresql://other:6/e"}, "jdbc other 6 e public t"),
    ("jdbc", "connection_string"): ({"connection_string": "jdbc:postgresql://other:6/e"}, "jdbc other 6 e public t"),
    ("jdbc", "schema"): ({"url": POSTGRES, "schema": "fin"}, "jdbc h 5432 d fin t"),
    ("table", "catalog"): ({"catalog": "lake"}, "`lake`.`t`"),
    ("table", "schema"): ({"schema": "fin"}, "`fin`.`t`"),
}
"""For an option that names a place, the options of a datasource, and where its outputs go."""

CONNECTING: dict[tuple[str, str], tuple[Any, str]] = {
    ("jdbc", "driver"): ("org.example.Driver", "driver"),
    ("jdbc", "fetch_size"): (7, "fetchsize"),
}
"""For an option of the connection its value, and the option of Spark that passes it on."""

ONLY_READ = {
    (connector.kind, option): "W1509"
    for connector in connectors()
    if connector.kind in ("delta", "iceberg")
    for option in connector.options
}
VALUES: dict[str, Any] = {"properties": {"a": "b"}, "storage_options": {"a": "b"}}


def writing(root: Path, kind: str, options: dict[str, Any]) -> Site:
    """Return a project with one output to a datasource of that kind and options."""
    text = f"datasource: {{id: there, name: there, type: {kind}, options: {options!r}}}\n".replace("True", "true")
    text = text.replace("False", "false")
    out = "- {seq: 20, name: Write, type: output, arguments: {destination: {datasource_id: there, table: t}}}"
    return site(root, [out], {"datasources/there.yml": text})


def output(found: Site) -> ResolvedOutput:
    (op,) = found.plan().operations
    assert isinstance(op, ResolvedOutput)
    return op


def files(spark: SparkSession, tmp_path: Path, kind: str, options: dict[str, Any]) -> bytes:
    """Return the bytes of an output of one row, planned and staged as a run does."""
    found = writing(tmp_path, kind, {"path_prefix": "out", **options})
    rows = spark.createDataFrame([("'a'", "=1\n2")], ["\u00e9;x", "y"]).coalesce(1)
    staged = stage(rows, output(found), tmp_path / "stage", run_id="r", catalog=found.catalog, root=found.root)
    (file,) = staged.files
    return (tmp_path / "stage" / file.path).read_bytes()


def test_every_option_of_every_datasource_has_its_behaviour_here() -> None:
    known = {(connector.kind, option) for connector in connectors() for option in connector.options}
    assert {*BYTES, *PLACES, *CONNECTING, *ONLY_READ} == known


@pytest.mark.parametrize("kind", list(FILES))
def test_a_file_without_options(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    assert files(spark, tmp_path, kind, {}).decode() == FILES[kind]


@pytest.mark.parametrize(("kind", "option"), list(BYTES))
def test_an_option_of_files_changes_the_bytes_or_is_refused(
    spark: SparkSession, tmp_path: Path, kind: str, option: str
) -> None:
    value, expected = BYTES[kind, option]
    if isinstance(expected, bytes):
        assert files(spark, tmp_path, kind, {option: value}) == expected
        return
    with pytest.raises(Exception, match=expected) as caught:
        files(spark, tmp_path, kind, {option: value})
    error = caught.value if isinstance(caught.value, WeftError) else data_failure(caught.value)
    assert error is not None
    assert error.code == expected


@pytest.mark.parametrize(("kind", "option"), list(PLACES))
def test_an_option_of_a_place_says_where_outputs_go(tmp_path: Path, kind: str, option: str) -> None:
    options, expected = PLACES[kind, option]
    assert option in options
    found = writing(tmp_path, kind, options)
    target = output(found).target
    if kind == "jdbc":
        assert " ".join(written(target, found.catalog).parts) == expected
    elif kind == "table":
        assert table_name(target.table, target.schema, found.catalog.datasource("there")) == expected
    else:
        assert target.location == expected


@pytest.mark.parametrize(("kind", "option"), list(CONNECTING))
def test_an_option_of_a_connection_is_passed_on(tmp_path: Path, kind: str, option: str) -> None:
    value, name = CONNECTING[kind, option]
    assert connection_options(source(kind, "there", url=POSTGRES, **{option: value}), tmp_path)[name] == value


@pytest.mark.parametrize(("kind", "option"), list(ONLY_READ))
def test_what_can_only_be_read_is_refused_with_each_of_its_options(tmp_path: Path, kind: str, option: str) -> None:
    found = writing(tmp_path, kind, {option: VALUES.get(option, "x")})
    assert [code for code, _ in found.messages()] == [ONLY_READ[kind, option]]
