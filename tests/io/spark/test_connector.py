"""A connector is one file and one registration: the example of CONTRIBUTING reads real rows."""

from __future__ import annotations

import datetime as dt
import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from resolvers import catalog, dataset, read_of, resolver, source, table
from weft.errors import ResolutionError
from weft.io import connectors as registry
from weft.io.connectors import check_datasource, find_connector
from weft.pipelines.model.read_workspace import load_workspace
from weft.pipelines.model.resolver import PathStrategy, Rule
from weft.pipelines.model.schemas import json_schema
from weft.pipelines.spark.read import read_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = Path(__file__).parents[3] / "CONTRIBUTING.md"
MODULE = "example_orc"


@pytest.fixture
def orc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Import the file that CONTRIBUTING shows; afterwards its type is not registered any more."""
    (block,) = re.findall(r"```py\n(\"\"\"ORC.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / f"{MODULE}.py").write_text(block, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path / "modules"))
    monkeypatch.setattr(registry, "_REGISTERED", dict(registry._REGISTERED))
    importlib.import_module(MODULE)
    yield
    del sys.modules[MODULE]


def types_of_schema() -> list[str]:
    entity = json_schema("datasource")["$defs"]["Entity"]
    found: list[str] = entity["properties"]["type"]["enum"]
    return found


@pytest.mark.usefixtures("orc")
def test_the_example_of_the_page_reads_rows(spark: SparkSession, tmp_path: Path) -> None:
    spark.sql("SELECT 1L id, CAST(12.3 AS DECIMAL(10,1)) amount, '2026-01' _period").write.orc(
        str(tmp_path / "data" / "orders")
    )
    rule = Rule(name="all", strategy=PathStrategy(datasource="files", path="orders"))
    known = catalog(resolver(rule), source("orc", path_prefix="data"), root=tmp_path, default="main")
    read = read_of(dataset(table("orders", id="long", amount="decimal(18,2)")), known, "2026-01")
    frame = read_table(spark, read, known, tmp_path, run_at=dt.datetime.now(dt.UTC))
    assert [tuple(map(str, row)) for row in frame.select("id", "amount", "_period").collect()] == [
        ("1", "12.30", "2026-01")
    ]


@pytest.mark.usefixtures("orc")
def test_its_options_are_checked_like_those_of_any_other() -> None:
    (finding,) = check_datasource(source("orc", path_prefx="data"))
    assert (finding.code, finding.help) == ("W1002", "did you mean 'path_prefix'?")
    assert find_connector("orc").sink is None


def test_a_type_is_valid_only_when_it_is_registered(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    file = tmp_path / "ws" / "datasources" / "lake.yml"
    file.parent.mkdir(parents=True)
    file.write_text("id: lake\nname: lake\ntype: orc\n", encoding="utf-8")

    def problems() -> list[Any]:
        return [f.code for f in load_workspace(file.parents[1]).findings]

    built_in = ["csv", "parquet", "json", "jdbc", "table", "iceberg", "delta", "database"]
    assert types_of_schema() == built_in
    assert problems() == ["W1004"]
    with pytest.raises(ResolutionError, match="no connector for datasources of type 'orc'"):
        find_connector("orc")
    request.getfixturevalue("orc")
    assert types_of_schema() == [*built_in[:-1], "orc", "database"]
    assert problems() == []
