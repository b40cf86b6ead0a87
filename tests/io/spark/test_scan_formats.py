"""Delta and Iceberg tables, read through their Python libraries; the libraries themselves are replaced."""

from __future__ import annotations

import sys
from decimal import Decimal
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from resolvers import catalog, dataset, read_of, resolver, rule, source, table
from weft.core.frozen import FrozenMap
from weft.errors import ResolutionError
from weft.pipelines.model.resolver import PathStrategy, TableStrategy
from weft.pipelines.spark.read import read_table

if TYPE_CHECKING:
    import datetime as dt

    from pyspark.sql import SparkSession

ROWS = pa.table(
    {
        "id": pa.array([1, 2], pa.int32()),
        "amount": pa.array([Decimal("1.50"), None], pa.decimal128(10, 2)),
        "_period": ["2026-01", "2026-02"],
    }
)


class Opened:
    """The calls of the libraries, and the table that they return."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def __call__(self, *given: Any, **options: Any) -> Opened:
        self.asked.append((*given, options))
        if given and "broken" in str(given[0]):
            raise OSError("no log of commits")
        return self

    from_metadata = load_table = scan = __call__

    def to_arrow(self) -> pa.Table:
        return ROWS

    to_pyarrow_table = to_arrow


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Opened:
    found = Opened()
    for name, attribute in (
        ("deltalake", "DeltaTable"),
        ("pyiceberg", ""),
        ("pyiceberg.table", "StaticTable"),
        ("pyiceberg.catalog", "load_catalog"),
    ):
        module = ModuleType(name)
        if attribute:
            setattr(module, attribute, found)
        monkeypatch.setitem(sys.modules, name, module)
    return found


def read(spark: SparkSession, root: Path, run_at: dt.datetime, type: str, strategy: Any, **options: Any) -> list[Any]:
    known = catalog(
        resolver(rule("all", strategy=strategy)), source(type, "lake", **options), root=root, default="main"
    )
    return read_table(spark, read_of(dataset(table()), known), known, root, run_at=run_at).collect()


@pytest.fixture
def run_at() -> dt.datetime:
    from datetime import UTC, datetime

    return datetime(2026, 2, 1, tzinfo=UTC)


def test_tables_of_both_formats_are_read_typed_and_filtered(
    spark: SparkSession, tmp_path: Path, opened: Opened, run_at: dt.datetime
) -> None:
    at = PathStrategy(datasource="lake", path="{{table_name}}")
    named = TableStrategy(datasource="lake", table="{{table_name}}")
    found = [
        *read(spark, tmp_path, run_at, "delta", at, path_prefix="d", storage_options=FrozenMap(a="b")),
        *read(spark, tmp_path, run_at, "iceberg", at),
        *read(
            spark,
            tmp_path,
            run_at,
            "iceberg",
            named,
            catalog="prod",
            schema="gl",
            properties=FrozenMap(uri="u"),
        ),
    ]
    assert [(row.id, row.amount, row._period) for row in found] == [(1, Decimal("1.50"), "2026-01")] * 3
    assert opened.asked == [
        (str(tmp_path / "d" / "orders"), {"storage_options": {"a": "b"}}),
        (str(tmp_path / "orders"), {}, {}),
        ({},),
        ("prod", {"uri": "u"}),
        (("gl", "orders"), {}),
        ({},),
    ]


def test_the_message_of_a_library_is_part_of_the_error(
    spark: SparkSession, tmp_path: Path, opened: Opened, run_at: dt.datetime
) -> None:
    assert opened.asked == []
    with pytest.raises(ResolutionError) as caught:
        read(spark, tmp_path, run_at, "delta", PathStrategy(datasource="lake", path="broken"))
    assert caught.value.code == "W1318"
    assert "no log of commits" in caught.value.message


@pytest.mark.parametrize(("type", "module"), [("delta", "deltalake"), ("iceberg", "pyiceberg.table")])
def test_a_library_that_is_not_installed_is_named_with_the_line_that_installs_it(
    spark: SparkSession,
    tmp_path: Path,
    run_at: dt.datetime,
    monkeypatch: pytest.MonkeyPatch,
    type: str,
    module: str,
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ResolutionError) as caught:
        read(spark, tmp_path, run_at, type, PathStrategy(datasource="lake", path="t"))
    assert caught.value.code == "W1314"
    assert caught.value.help == f"pip install 'weft[{type}]'"
