"""The how-to pages work as they are written: each block runs in order, in an empty folder, and prints what is shown."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cluster import running_cluster
from installs import ROOT, empty_environment
from typed_pages import InProcess, OwnProcesses, follow, steps

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGES = {page.stem: page for page in sorted((ROOT / "docs" / "howto").glob("*.md")) if page.stem != "index"}


APART = ("cluster", "orchestration")
"""Pages whose commands need processes of their own."""

A_RUN = """\
#!{python}
import json, os, sys
with open({log!r}, "a") as log:
    print(*sys.argv[1:], file=log)
output = {{"seq": 20, "location": "out/processed_gl/period=2026-01", "rows": 10, "dataset": "gl_usd"}}
data = {{"run_id": "01a1f4aa-7811-746e-b28f-e185fffa5d31", "status": "completed", "outputs": [output]}}
print(json.dumps({{"schema": "weft/run/1", "ok": True, "data": data, "diagnostics": [], "next": []}}))
"""


@pytest.mark.golden
@pytest.mark.parametrize("name", [name for name in PAGES if name not in APART])
def test_a_page_prints_what_it_shows(
    name: str, spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    follow(PAGES[name], InProcess(tmp_path, spark), rewrite=request.config.getoption("--rewrite-golden"))


@pytest.mark.slow
@pytest.mark.golden
@pytest.mark.usefixtures("jvm")
def test_the_page_about_clusters_holds_on_a_cluster(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    kept = {name: os.environ[name] for name in ("HOME", "JAVA_HOME", "LANG") if name in os.environ}
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    settings = kept | {"PATH": path, "PYTHONPATH": str(ROOT / "src"), "SPARK_LOCAL_IP": "127.0.0.1"}
    (tmp_path / "work").mkdir()
    with running_cluster(tmp_path) as master:
        instead = {"spark://head:7077": master, "/opt/weft/bin/python": sys.executable}
        reader = OwnProcesses(tmp_path / "work", settings, instead)
        follow(PAGES["cluster"], reader, rewrite=request.config.getoption("--rewrite-golden"))


@pytest.mark.slow
@pytest.mark.golden
def test_airflow_and_dagster_start_the_run_of_the_month(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """The schedulers are real; the run that they start is a stand-in, because runs as processes have tests of their own."""
    programs = []
    for program in ("apache-airflow>=3,<4", "dagster>=1.13,<2"):
        made = empty_environment(tmp_path / program.split(">")[0], Path())
        made.add(program)
        programs.append(made.programs)
    log, folder = tmp_path / "log.txt", tmp_path / "work"
    folder.mkdir()
    run = tmp_path / "weft"
    run.write_text(A_RUN.format(python=sys.executable, log=str(log)), encoding="utf-8")
    run.chmod(0o755)
    path = (*programs, Path(sys.executable).parent, os.environ["PATH"])
    settings = {"HOME": str(tmp_path), "PATH": os.pathsep.join(map(str, path)), "WEFT": str(run)}
    follow(PAGES["orchestration"], OwnProcesses(folder, settings), rewrite=request.config.getoption("--rewrite-golden"))
    started = f"-C {folder}/fx run fx_reporting -p 2026-01 --json"
    assert log.read_text(encoding="utf-8").splitlines() == [started, started]


def test_the_figures_of_the_sizing_page_are_those_of_the_benchmarks() -> None:
    rows = re.findall(r"^\| \d+M \| (.+) \| (.+) \|$", PAGES["sizing"].read_text(encoding="utf-8"), re.MULTILINE)
    benchmarks = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    seconds = [re.findall(rf"^\| uniform-{n}M: [^|]*\| ([\d.]+) \|", benchmarks, re.MULTILINE) for n in (1, 10, 50)]
    (memory,) = re.findall(r"peak memory of a task [^|]*\| ([^|]*) \|", benchmarks)
    assert [[row[0]] for row in rows] == seconds
    assert [row[1] for row in rows] == memory.split(", ")


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_an_answer_that_runs_its_traps_and_links(name: str) -> None:
    text = PAGES[name].read_text(encoding="utf-8")
    titles = [line.removeprefix("## ") for line in text.splitlines() if line.startswith("## ")]
    assert steps(text)
    assert text.split("\n", 1)[0].endswith("?")
    assert "Answer" in titles[:1]
    assert titles[-2:] == ["Traps", "See also"]
