from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from command_line import weft
from engine_data import CONVERT, WRITE, project_text, sample_workspace
from two_hundred import PLANTED, project

SRC = Path(__file__).parents[2] / "src"
WRONG = CONVERT.replace("fx.from_currency", "fx.from_currncy").replace("amount_local * fx", "amont_local * fx")


def wrong_workspace(folder: Path) -> Path:
    return sample_workspace(folder, projects__fx_reporting=project_text(WRONG + WRITE))


def test_a_sound_workspace_ends_with_0(tmp_path: Path) -> None:
    ran = weft("validate", root=sample_workspace(tmp_path))
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("no errors in 9 files")


def test_every_mistake_is_reported_with_its_location(tmp_path: Path) -> None:
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
    assert line[first["range"]["start"]["character"] : first["range"]["end"]["character"]] == "fx.from_currncy"


def test_people_see_carets_and_a_sum(tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    ran = weft("validate", root=wrong_workspace(tmp_path))
    assert ran.code == 3
    head, _, seconds = ran.out.rpartition(" (")
    assert seconds.endswith(" s)\n")
    golden("cli/validate.txt", f"{ran.err}{head}")


def test_a_path_chooses_what_is_reported(tmp_path: Path) -> None:
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


def test_a_dataset_that_only_the_store_may_know_is_not_called_missing(tmp_path: Path) -> None:
    reader = """\
project:
  name: reader
  input: gl_chf
  operations:
    - {seq: 10, name: Write, type: output, arguments: {destination: {path: out/x}}}
"""
    root = sample_workspace(tmp_path, projects__reader=reader)
    ran = weft("validate", "--json", root=root)
    assert (ran.code, ran.codes) == (3, ["W1213"])
    (root / "weft.yml").write_text("weft: 1\nstore: sqlite:///data\ndefault_resolver: files\n")
    ran = weft("validate", "--json", root=root)
    assert (ran.code, sorted(ran.codes), ran.data["warnings"]) == (0, ["W1213", "W1601"], 2)
    # A run needs the store, and says that it is the store that fails.
    ran = weft("plan", "reader", "-p", "2026-01", "--json", root=root)
    assert (ran.code, ran.codes) == (1, ["W1601"])


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


def validated(root: Path, *words: str) -> tuple[int, str, float]:
    """Validate in a process of its own that finds no Java; return exit code, output and seconds of work."""
    before = os.times()
    ran = subprocess.run(
        [sys.executable, "-m", "weft", "-C", str(root), "validate", *words],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(SRC), "PATH": str(root)},
    )
    after = os.times()
    worked = after.children_user + after.children_system - before.children_user - before.children_system
    return ran.returncode, ran.stdout + ran.stderr, worked


def test_two_hundred_operations_take_less_than_two_seconds(tmp_path: Path) -> None:
    root = sample_workspace(tmp_path, projects__fx_reporting=project(planted=False), scenarios__ts03_fx=None)
    code, out, worked = validated(root)
    assert code == 0, out
    # Seconds of the processor: what else the machine does in the meantime is not ours.
    assert worked < 2


def test_every_mistake_among_two_hundred_operations_is_reported_at_its_location(
    tmp_path: Path, golden: Callable[[str, str], None]
) -> None:
    root = sample_workspace(tmp_path, projects__fx_reporting=project(planted=True))
    code, out, _ = validated(root, "--json")
    lines = (root / "projects" / "fx_reporting.yml").read_text().split("\n")

    def marked(found: Any) -> tuple[str, str, str]:
        start, end = found["range"]["start"], found["range"]["end"]
        assert start["line"] == end["line"]
        line = lines[start["line"]]
        seq = line.partition("seq: ")[2].partition(",")[0]
        return seq, found["code"], line[start["character"] : end["character"]]

    marks = [marked(found) for found in json.loads(out)["diagnostics"]]
    assert marks == [(str(seq), wanted, text) for seq, (_, wanted, text) in PLANTED.items()]
    assert code == 3
    golden("cli/two_hundred.txt", re.sub(r" \(\d+\.\d s\)", "", validated(root)[1]))


def test_a_folder_is_reported_with_all_errors_in_its_files(tmp_path: Path) -> None:
    root = wrong_workspace(tmp_path)
    ran = weft("validate", root / "projects", "--json", root=root)
    assert (ran.code, ran.codes, ran.data["files"]) == (3, ["W1207", "W0207"], 1)


def test_the_document_has_its_findings_whatever_format_people_asked_for(tmp_path: Path) -> None:
    ran = weft("validate", "--format", "github", "--json", root=wrong_workspace(tmp_path))
    assert (ran.code, ran.codes) == (3, ["W1207", "W0207"])


def test_a_disabled_dataset_is_an_error_also_when_the_store_does_not_answer(tmp_path: Path) -> None:
    root = sample_workspace(tmp_path, weft="weft: 1\nstore: sqlite:///data\ndefault_resolver: files\n")
    file = root / "datasets" / "gl.v1.yml"
    file.write_text(file.read_text().replace("status: active", "status: disabled"))
    ran = weft("validate", "--json", root=root)
    reported = [d for d in ran.document["diagnostics"] if "is disabled" in d["message"]]
    assert ran.code == 3
    assert reported
    assert {d["severity"] for d in reported} == {"error"}
