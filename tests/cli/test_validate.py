from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from command_line import weft
from engine_data import CONVERT, WRITE, project_text, sample_workspace

SRC = Path(__file__).parents[2] / "src"
WRONG = CONVERT.replace("fx.from_currency", "fx.from_currncy").replace(
    "amount_local * fx", "amont_local * fx"
)


def wrong_workspace(folder: Path) -> Path:
    return sample_workspace(folder, projects__fx_reporting=project_text(WRONG + WRITE))


def test_a_sound_workspace_ends_with_0(tmp_path: Path) -> None:
    ran = weft("validate", root=sample_workspace(tmp_path))
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("no mistakes in 9 files")


def test_every_mistake_is_told_with_its_place(tmp_path: Path) -> None:
    ran = weft("validate", "--json", root=wrong_workspace(tmp_path))
    assert ran.code == 3
    assert ran.document["schema"] == "weft/validate/1"
    assert ran.document["ok"] is False
    assert ran.codes == ["W1207", "W0207"]
    assert ran.data["errors"] == 2
    first = ran.document["diagnostics"][0]
    assert set(first) == {"code", "severity", "file", "range", "message", "help"}
    assert first["file"] == "projects/fx_reporting.yml"
    line = (tmp_path / "fx" / first["file"]).read_text().split("\n")[first["range"]["start"]["line"]]
    assert (
        line[first["range"]["start"]["character"] : first["range"]["end"]["character"]] == "fx.from_currncy"
    )


def test_people_see_carets_and_a_sum(tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    ran = weft("validate", root=wrong_workspace(tmp_path))
    assert ran.code == 3
    head, _, seconds = ran.out.rpartition(" (")
    assert seconds.endswith(" s)\n")
    golden("cli/validate.txt", f"{ran.err}{head}")


def test_a_path_chooses_what_is_told(tmp_path: Path) -> None:
    root = wrong_workspace(tmp_path)
    assert weft("validate", root / "datasets", root=root).code == 0
    assert weft("validate", "projects/fx_reporting.yml", root=root).code == 3
    assert weft("validate", "nowhere.yml", root=root).code == 2


def test_github_reads_annotations(tmp_path: Path) -> None:
    ran = weft("validate", "--format", "github", root=wrong_workspace(tmp_path))
    first = ran.out.splitlines()[0]
    assert first.startswith("::error file=projects/fx_reporting.yml,line=")
    assert "title=W1207::Unknown column 'fx.from_currncy' in join condition" in first


def test_a_store_that_does_not_answer_is_a_warning(tmp_path: Path) -> None:
    root = sample_workspace(tmp_path, weft="weft: 1\nstore: sqlite:///data\ndefault_resolver: files\n")
    ran = weft("validate", "--json", root=root)
    assert (ran.code, ran.data["warnings"]) == (0, 1)


@pytest.mark.parametrize("words", [("validate",), ("plan", "-p", "2026-01"), ("runs",), ("schema", "export")])
def test_no_jvm_and_no_pyspark_is_needed(tmp_path: Path, words: tuple[str, ...]) -> None:
    root = sample_workspace(tmp_path)
    code = (
        "import sys\nfrom weft.cli.main import run_command\n"
        f"code = run_command(['-C', {str(root)!r}, *{list(words)!r}, '--json'])\n"
        "print([n for n in ('pyspark', 'py4j') if n in sys.modules], code, file=sys.stderr)"
    )
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(SRC), "PATH": str(tmp_path)},
    )
    assert ran.stderr.strip() == "[] 0"
    assert json.loads(ran.stdout)["ok"] is True


def test_two_hundred_operations_are_validated(tmp_path: Path) -> None:
    steps = "".join(
        f"- seq: {i}\n  name: Step {i}\n  type: update\n  arguments:\n"
        f'    assignments: [{{column: c{i}, expression: "amount_local * {i} + {i}"}}]\n'
        for i in range(30, 230)
    )
    root = sample_workspace(tmp_path, projects__fx_reporting=project_text(CONVERT + steps))
    ran = subprocess.run(
        [sys.executable, "-m", "weft", "-C", str(root), "validate"],
        capture_output=True,
        check=False,
        env=os.environ | {"PYTHONPATH": str(SRC)},
    )
    assert ran.returncode == 0, ran.stderr
