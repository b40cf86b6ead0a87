"""Commands that need a session: templates that run, plans that hold, runs that are recorded, ended and forgotten."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from command_line import weft
from engine_data import sample_workspace
from weft.cli.commands.init import list_templates

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


JAVA_SAYS = "WARNING: Using incubator modules: jdk.incubator.vector"
"""The line of Java at the start of Spark that no setting ends."""


def test_the_orders_template_runs_and_its_scenario_holds(tmp_path: Path, spark: SparkSession) -> None:
    root = tmp_path / "orders"
    assert weft("init", root, "--template", "orders").code == 0
    assert weft("test", "--json", root=root, spark=spark).data["passed"] == 1
    ran = weft("run", "-p", "2026-02", "--json", root=root, spark=spark)
    assert ran.code == 0, ran.out
    assert [op["rows_changed"] for op in ran.data["operations"] if op["type"] == "output"] == [2, 1]
    shown = weft("runs", "show", "LAST", "--json", root=root).data
    assert [o["rows"] for o in shown["outputs"]] == [2, 1]
    assert [(o["seq"], o["rows"]) for o in ran.data["outputs"]] == [(30, 2), (50, 1)]
    file = root / "out" / "segments" / "2026-02.csv"
    assert file.read_text().splitlines() == ["segment,orders,net", "business,2,160.00"]
    # The last output writes 2 summary rows of a working set of 5: the count is that of its file.
    progress = weft("run", "-p", "2026-01", root=root, spark=spark).err
    counts = [line.split()[-2] for line in progress.splitlines() if line.endswith(" written")]
    assert counts == ["3", "3"]
    assert len((root / "out" / "segments" / "2026-01.csv").read_text().splitlines()) == 1 + int(counts[1])


def typed_lines(readme: str) -> list[str]:
    """Return the commands of a README, without the remarks behind them."""
    blocks = readme.split("```sh\n")[1:]
    return [line.partition("  #")[0].strip() for block in blocks for line in block.partition("```")[0].splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize("template", list_templates())
def test_every_command_in_the_readme_of_a_template_works(template: str, tmp_path: Path, spark: SparkSession) -> None:
    root = tmp_path / template
    assert weft("init", root, "--template", template).code == 0
    readme = (root / "README.md").read_text(encoding="utf-8")
    assert readme.startswith("# ")
    lines = typed_lines(readme)
    assert len(lines) > 1
    bare = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK_", "PYTEST_"))}
    settings = bare | {
        "PYTHONPATH": str(Path(__file__).parents[2] / "src"),
        "PYTEST_ADDOPTS": "-p no:cacheprovider -c /dev/null --rootdir .",
    }
    for line in lines:
        program, *words = shlex.split(line)
        if program == "weft":
            ran = weft(*words, root=root, spark=spark)
            assert ran.code == 0, f"{line}\n{ran.out}\n{ran.err}"
            assert ran.out, line
            continue
        command = shlex.quote(sys.executable) if program == "python" else program
        shown = subprocess.run(
            ["bash", "-c", f"{command} {line.partition(' ')[2]}"],
            cwd=root,
            env=settings,
            capture_output=True,
            text=True,
            check=False,
        )
        assert shown.returncode == 0, f"{line}\n{shown.stdout[-2000:]}\n{shown.stderr[-2000:]}"
        assert shown.stdout, line
        assert shown.stderr.splitlines() in ([], [JAVA_SAYS]), line
        assert "pytest" not in line or "1 passed" in shown.stdout


@pytest.mark.parametrize("template", list_templates())
def test_a_template_has_data_a_test_and_schemas_that_git_keeps(template: str, tmp_path: Path) -> None:
    root = tmp_path / template
    files = weft("init", root, "--template", template, "--json").data["files"]
    assert [file for file in files if file.startswith("data/")]
    assert [file for file in files if file.startswith(("scenarios/", "tests/"))]
    subprocess.run(["git", "init", "-q", root], check=True)
    listed = subprocess.run(
        ["git", "-C", root, "ls-files", "--others", "--exclude-standard"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert {*files, "README.md", ".gitignore"} <= {*listed}
    # Each file of YAML names its schema, and the schema is there.
    for file in (root / name for name in files if name.endswith(".yml")):
        first = file.read_text(encoding="utf-8").splitlines()[0]
        schema = (file.parent / first.partition("$schema=")[2]).resolve()
        assert schema.relative_to(root).as_posix() in listed, file


def test_a_saved_plan_must_still_hold(tmp_path: Path, spark: SparkSession) -> None:
    root, saved = sample_workspace(tmp_path), tmp_path / "plan.json"
    assert weft("plan", "-p", "2026-01", "--out", saved, root=root).code == 0
    assert weft("run", "-p", "2026-01", "--plan", saved, root=root, spark=spark).code == 0
    project = root / "projects" / "fx_reporting.yml"
    project.write_text(project.read_text().replace("* fx.rate", "* fx.rate * 1"))
    words = ("run", "-p", "2026-01", "--plan", saved, "--json")
    assert weft(*words, root=root, spark=spark).codes == ["W1103"]  # an edited project says where it may write
    ran = weft(*words, "--sandbox", root=root, spark=spark)
    assert (ran.code, ran.codes[-1]) == (8, "W1514")
    changes = weft("plan", "-p", "2026-01", root=root)
    assert "error" not in changes.err


def test_a_run_becomes_a_scenario_and_is_forgotten(tmp_path: Path, spark: SparkSession) -> None:
    root = sample_workspace(tmp_path)
    run_id = weft("run", "-p", "2026-01", "--json", root=root, spark=spark).data["run_id"]
    words = ("test", "record", "LAST", "--keys", "journal_id=JE-002", "--name", "EUR only", "--json")
    made = weft(*words, root=root, spark=spark)
    assert made.code == 0, made.out
    assert made.document["schema"] == "weft/test/1"
    assert (root / made.data["file"]).is_file()
    assert weft("test", "EUR only", root=root, spark=spark).code == 0
    junit = tmp_path / "report.xml"
    assert weft("test", "--format", "junit", "--out", junit, root=root, spark=spark).code == 0
    assert '<testsuite name="weft" tests="2"' in junit.read_text()
    assert weft("runs", "rm", run_id, root=root).code == 0
    assert weft("runs", "--json", root=root).data == {"runs": []}
    assert (root / "out" / "processed_gl" / "period=2026-01").is_dir()
