"""A fresh clone: projects that read what other projects register are checked against what those will write."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from command_line import weft
from engine_data import sample_workspace
from weft.errors import Diagnostic
from weft.pipelines.model.read_workspace import load_workspace
from weft.pipelines.plan.catalog import Catalog
from weft.pipelines.plan.check import check_workspace


def project(name: str, input: str, column: str, registers: str = "") -> str:
    more = f", register_as_dataset: {registers}" if registers else ""
    return f"""\
project: {name}
input: {input}
status: active
operations:
  - {{seq: 10, name: a, type: update, arguments: {{assignments: [{{column: x_{name}, expression: {column} * 2}}]}}}}
  - {{seq: 20, name: Write, type: output, arguments: {{destination: {{path: out/{name}}}{more}}}}}
"""


def check(folder: Path, **projects: str) -> list[Diagnostic]:
    changes = {f"projects/{name}.yml": text for name, text in projects.items()}
    loaded = load_workspace(sample_workspace(folder, changes))
    return list(loaded.merge_findings(check_workspace(replace(Catalog.of(loaded.readable), unread=loaded.unread))))


def test_a_chain_of_projects_is_checked_before_any_has_run(tmp_path: Path) -> None:
    found = check(
        tmp_path,
        # By name the reader comes first, so that the order of the files is not what makes it work.
        a_last=project("a_last", "middle@3", "x_m"),
        m=project("m", "gl_usd", "amount_reporting", "middle"),
    )
    assert [(d.code, d.severity) for d in found] == [("W1214", "note"), ("W1214", "note")]
    assert "project 'm' registers it when it runs" in found[0].message
    assert "`weft run fx_reporting -p PERIOD`" in found[1].help


def test_columns_are_those_that_the_other_project_writes(tmp_path: Path) -> None:
    found = check(tmp_path, b=project("b", "gl_usd", "amount_reportin"))
    (error,) = (d for d in found if d.severity == "error")
    assert (error.code, error.message) == ("W0207", "unknown column 'amount_reportin'")


def test_the_errors_of_one_project_are_not_those_of_its_readers(tmp_path: Path) -> None:
    found = check(
        tmp_path,
        a=project("a", "gl", "amount_loca", "from_a"),
        b=project("b", "from_a", "x_a", "from_b"),
        c=project("c", "from_b", "x_b"),
        # The output itself cannot be resolved: nobody knows its columns.
        d=project("d", "gl", "amount_local", "from_d").replace("path: out/d", "datasource: nosuch, table: d"),
        e=project("e", "from_d", "anything", "from_e"),
        f=project("f", "from_e", "anything"),
    )
    errors = [(d.at.file, d.code) for d in found if d.severity == "error" and d.at is not None]
    assert errors == [("projects/a.yml", "W0207"), ("projects/d.yml", "W1020")]


def test_projects_that_wait_for_each_other_can_never_start(tmp_path: Path) -> None:
    found = check(tmp_path, a=project("a", "from_b", "x", "from_a"), b=project("b", "from_a", "x", "from_b"))
    assert [d.code for d in found] == ["W1213", "W1213"]
    assert "project 'b' registers it" in found[0].help


def test_a_fresh_clone_validates_and_says_what_to_run_first(tmp_path: Path) -> None:
    changes: dict[str, str | None] = {"projects/b.yml": project("b", "gl_usd", "amount_reporting")}
    root = sample_workspace(tmp_path, changes)
    ran = weft("validate", "--json", root=root)
    assert (ran.code, ran.codes, ran.data["errors"]) == (0, ["W1214"], 0)
    ran = weft("plan", "b", "-p", "2026-01", "--json", root=root)
    assert (ran.code, ran.codes) == (3, ["W1213"])
    assert "`weft run fx_reporting -p PERIOD` first" in ran.document["diagnostics"][0]["help"]


def test_a_draft_is_activated_before_it_registers(tmp_path: Path) -> None:
    a = project("a", "gl", "amount_local", "from_a").replace("active", "draft")
    (note,) = check(tmp_path, a=a, b=project("b", "from_a", "x_a"))
    assert note.help == "`weft project activate a`, then `weft run a -p PERIOD` before 'b' runs"
