"""The project that a command takes, and the errors that stop it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from command_line import weft
from engine_data import CONVERT, WRITE, project_text, sample_workspace
from weft.cli.call import find_project
from weft.errors import WorkspaceError


def workspace_of(*projects: tuple[str, str, int]) -> Any:
    """Return a workspace with projects, each an id, a name and a version."""
    made = [SimpleNamespace(id=id_, name=name, version=version) for id_, name, version in projects]
    return cast("Any", SimpleNamespace(projects=tuple(made)))


VERSIONS = [("a", "gl", 1), ("a", "gl", 3), ("a", "gl", 2)]


@pytest.mark.parametrize("name", [None, "gl", "a"])
def test_the_newest_version_of_a_project_is_taken(name: str | None) -> None:
    assert find_project(workspace_of(*VERSIONS), name).version == 3


def test_an_id_comes_before_a_name() -> None:
    assert find_project(workspace_of(("a", "gl", 1), ("gl", "other", 7)), "gl").name == "other"


@pytest.mark.parametrize(("projects", "name"), [((), None), (((*VERSIONS, ("b", "fx", 1))), None), (VERSIONS, "lg")])
def test_a_project_that_is_not_clear_is_refused(projects: Any, name: str | None) -> None:
    with pytest.raises(WorkspaceError) as caught:
        find_project(workspace_of(*projects), name)
    assert caught.value.code == "W1802"


def test_a_command_lists_all_errors_of_its_project_and_none_of_another(tmp_path: Path) -> None:
    mistakes = project_text([CONVERT.replace('fx.rate"', 'fx.rat"'), WRITE.replace("currency,", "curency,")])
    other = mistakes.replace("fx_reporting", "other").replace("00000000f1", "00000000f2")
    root = sample_workspace(tmp_path, {"projects/fx_reporting.yml": mistakes, "projects/other.yml": other})
    ran = weft("plan", "fx_reporting", "-p", "2026-01", "--json", root=root)
    errors = [d for d in ran.document["diagnostics"] if d["severity"] == "error"]
    assert ran.code == 3
    assert {d["file"] for d in errors} == {"projects/fx_reporting.yml"}
    assert {word for d in errors for word in ("'rat'", "'curency'", "fx.rat") if word in d["message"]}
    assert len(errors) >= 2
