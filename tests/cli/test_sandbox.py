"""An active project that was edited does not run unseen into the sandbox; nothing is started here."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import weft
from engine_data import CONVERT, WRITE, project_text, sample_workspace
from weft.errors import ActivationError
from weft.pipelines.model.read_workspace import load_workspace
from weft.pipelines.run.prepare import Prepared, RunOptions, prepare
from weft.pipelines.store.open import open_store

FILE = Path("projects", "fx_reporting.yml")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace whose project was activated and edited since."""
    found = sample_workspace(tmp_path, {str(FILE): project_text()})
    prepared(found)
    (found / FILE).write_text(project_text([CONVERT.replace("* fx.rate", "* fx.rate * 2"), WRITE]))
    return found


def prepared(root: Path, *, sandbox: bool = False) -> Prepared:
    workspace = load_workspace(root).workspace
    with open_store(workspace.settings.store, root) as store:
        options = RunOptions(sandbox=sandbox)
        return prepare(workspace, workspace.projects[0], "2026-01", store=store, options=options)


def test_a_scheduler_sees_that_nothing_was_run(root: Path) -> None:
    ran = weft("run", "-p", "2026-01", "--json", root=root)
    assert (ran.code, ran.codes, ran.document["ok"]) == (8, ["W1103"], False)
    assert ran.document["diagnostics"][0]["severity"] == "error"
    assert weft("runs", "--json", root=root).data["runs"] == []


def test_the_plan_says_how_to_try_it(root: Path) -> None:
    ran = weft("plan", "-p", "2026-01", "--json", root=root)
    assert (ran.code, ran.codes, ran.data["sandbox"]) == (0, ["W1103"], True)
    assert ran.document["next"] == ["weft run fx_reporting -p 2026-01 --sandbox"]


def test_a_run_into_the_sandbox_is_asked_for(root: Path) -> None:
    with pytest.raises(ActivationError):
        prepared(root)
    found = prepared(root, sandbox=True)
    assert (found.plan.draft, [w.code for w in found.warnings]) == (True, ["W1103"])


def test_an_active_project_can_be_tried_without_becoming_known(tmp_path: Path) -> None:
    root = sample_workspace(tmp_path)
    assert prepared(root, sandbox=True).plan.draft
    workspace = load_workspace(root).workspace
    with open_store(workspace.settings.store, root) as store:
        assert store.project_versions(workspace.projects[0].id) == ()
    assert not prepared(root).plan.draft


def test_a_draft_needs_no_flag(tmp_path: Path) -> None:
    root = sample_workspace(tmp_path, {str(FILE): project_text(status="draft")})
    assert prepared(root).plan.draft
