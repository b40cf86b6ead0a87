"""Iceberg and Delta tables through their Python libraries: no jar has to fit the version of Spark."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from weft.core.frozen import thaw
from weft.errors import ResolutionError
from weft.io.datasource import DataSource
from weft.io.location import Location, full_path
from weft.io.spark.connector import Part, Scan

_EXTRAS = {"deltalake": "delta", "pyiceberg.catalog": "iceberg", "pyiceberg.table": "iceberg"}


def scan(request: Scan) -> list[Part]:
    """Return the rows of the tables that the locations mean; they pass through this process as Arrow."""
    source = request.datasource
    read = _delta if source.type == "delta" else _iceberg
    return [
        Part(
            frame=request.session.createDataFrame(_read(read, source, location, request.root)),
            period=location.period,
            label=f"{source.type} table {str(location)!r}",
        )
        for location in request.locations
    ]


def library(name: str) -> Any:
    """Return a module of an optional library, or raise W1314 with the line that installs it."""
    try:
        return importlib.import_module(name)
    except ImportError as cause:
        extra = _EXTRAS[name]
        raise ResolutionError(
            f"{extra} tables are read with the library {name.partition('.')[0]!r}, which is not installed",
            code="W1314",
            help=f"pip install 'weft[{extra}]'",
        ) from cause


def _read(read: Any, source: DataSource, location: Location, root: Path) -> Any:
    try:
        return read(source, location, root)
    except ResolutionError:
        raise
    except Exception as cause:  # two libraries, each with errors of its own
        raise ResolutionError(
            f"cannot read {source.type} table {str(location)!r}: {cause}",
            code="W1318",
            help="check the path or name of the table and the options of the datasource",
        ) from cause


def _delta(source: DataSource, location: Location, root: Path) -> Any:
    options = thaw(source.options.get("storage_options") or {})
    module = library("deltalake")
    return module.DeltaTable(full_path(location, source, root), storage_options=options or None).to_pyarrow_table()


def _iceberg(source: DataSource, location: Location, root: Path) -> Any:
    properties = {k: str(v) for k, v in thaw(source.options.get("properties") or {}).items()}
    if location.path is not None:
        path = full_path(location, source, root)
        return library("pyiceberg.table").StaticTable.from_metadata(path, properties).scan().to_arrow()
    catalog = library("pyiceberg.catalog").load_catalog(str(source.options.get("catalog") or "default"), **properties)
    schema = location.schema or str(source.options.get("schema") or "default")
    return catalog.load_table((schema, location.table)).scan().to_arrow()
