"""The acceptance catalogue: every scenario of ``tests/data/scenarios`` holds on the sample workspace."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from engine_data import DATA, FX
from weft.io.spark.session import Session
from weft.pipelines.model.read_workspace import load_workspace
from weft.pipelines.model.workspace import Workspace
from weft.pipelines.scenarios.execute import run_scenario
from weft.pipelines.scenarios.reports import format_results

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCENARIOS = DATA / "scenarios"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    root = tmp_path_factory.mktemp("catalogue") / "fx"
    shutil.copytree(FX, root)
    for file in SCENARIOS.glob("*.yml"):
        shutil.copy(file, root / "scenarios" / file.name)
    for file in (SCENARIOS / "datasets").glob("*.yml"):
        shutil.copy(file, root / "datasets" / file.name)
    loaded = load_workspace(root)
    assert loaded.errors == ()
    return loaded.workspace


@pytest.mark.parametrize("file", [*sorted(p.name for p in SCENARIOS.glob("*.yml")), "ts03_fx.yml"])
def test_the_scenario_holds(file: str, workspace: Workspace, spark: SparkSession) -> None:
    (scenario,) = (s for s in workspace.scenarios if s.file == Path("scenarios") / file)
    result = run_scenario(scenario, workspace, reader=None, session=Session(spark))
    assert result.status == "pass", format_results([result], verbose=True)
