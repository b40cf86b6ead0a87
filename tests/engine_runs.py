"""Runs of the sample workspace with a session at hand."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.io.spark.session import Session
from weft.pipelines.model.read_workspace import load_workspace
from weft.pipelines.model.workspace import Workspace
from weft.pipelines.run.execute import RunOptions, run_project
from weft.pipelines.run.report import RunReport
from weft.pipelines.store.open import open_store
from weft.pipelines.store.writer import Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def loaded(root: Path) -> Workspace:
    """Return a workspace without errors."""
    found = load_workspace(root)
    assert found.errors == ()
    return found.workspace


def opened(root: Path) -> Store:
    """Return the store of a workspace."""
    return open_store(loaded(root).settings.store, root, patience=1.0)


def ran(
    root: Path,
    store: Store,
    spark: SparkSession,
    period: str = "2026-01",
    project: str = "fx_reporting",
    progress: Any = None,
    **options: Any,
) -> RunReport:
    """Run a project."""
    workspace = loaded(root)
    (found,) = (p for p in workspace.projects if p.name == project)
    return run_project(
        workspace,
        found,
        period,
        store=store,
        session=Session(spark),
        options=RunOptions(**options),
        progress=progress,
    )


def rows(spark: SparkSession, folder: Path, *columns: str) -> list[tuple[Any, ...]]:
    """Return the rows that files hold, in order."""
    frame = spark.read.parquet(str(folder))
    return sorted((tuple(row) for row in frame.select(*(columns or frame.columns)).collect()), key=repr)
