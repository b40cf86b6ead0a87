"""What `weft plan` says of an edited project and of data that is missing; nothing is started."""

from __future__ import annotations

from pathlib import Path

from command_line import weft
from engine_data import CONVERT, WRITE, project_text, sample_workspace
from store_values import new_run, registration
from weft.pipelines.model.read_workspace import load_workspace
from weft.pipelines.plan.project import resolve_project
from weft.pipelines.store.lifecycle import build_catalog
from weft.pipelines.store.open import open_store
from weft.pipelines.store.records import Registration
from weft.pipelines.store.snapshot import build_snapshot

DOUBLED = CONVERT.replace("* fx.rate", "* fx.rate * 2")
FILE = Path("projects", "fx_reporting.yml")


def completed(root: Path, period: str = "2026-01", *results: Registration, sandbox: bool = False) -> str:
    """Record a completed run of the project as its file says it, and return the plan in its snapshot."""
    loaded = load_workspace(root).workspace
    (project,) = loaded.projects
    with open_store(loaded.settings.store, root) as store:
        catalog = build_catalog(loaded, store)
        calendar = catalog.calendar(project.calendar)
        plan = resolve_project(project, catalog, period=calendar.parse(period), calendar=calendar, draft=sandbox)
        new = new_run(project, period, sandbox=sandbox)
        snapshot = build_snapshot(
            plan,
            catalog,
            engine_version="",
            session={},
            inputs={},
            today=new.run_at.date(),
            known_at=new.known_at,
            run_at=new.run_at,
        )
        if not sandbox:
            store.record(project)
        run = store.create_run(new_run(project, period, sandbox=sandbox, snapshot=snapshot))
        store.set_running(run.id)
        store.complete(run.id, results)
    return str(snapshot["plan"])


def test_the_fingerprint_that_is_printed_is_the_one_that_runs_record(tmp_path: Path) -> None:
    root = sample_workspace(tmp_path)
    printed = weft("plan", "-p", "2026-01", "--json", root=root).data["fingerprint"]
    assert printed == completed(root)


def test_an_edited_active_project_shows_what_was_changed(tmp_path: Path) -> None:
    root = sample_workspace(tmp_path, {str(FILE): project_text()})
    completed(root)
    (root / FILE).write_text(project_text([DOUBLED, WRITE]))
    ran = weft("plan", "-p", "2026-01", "--json", "--detailed-exitcode", root=root)
    assert (ran.code, ran.codes, ran.data["sandbox"]) == (4, ["W1103"], True)
    (change,) = ran.data["changes"]
    assert (change["part"], change["seq"]) == ("operations", 10)
    assert change["after"].endswith("fx.rate * 2")
    # What was published counts, also after the change was tried in the sandbox.
    completed(root, sandbox=True)
    assert weft("plan", "-p", "2026-01", "--json", root=root).data["changes"] == [change]


def test_a_project_that_was_activated_and_never_ran_shows_its_changes(tmp_path: Path) -> None:
    root = sample_workspace(tmp_path)
    loaded = load_workspace(root).workspace
    with open_store(loaded.settings.store, root) as store:
        store.record(loaded.projects[0])
    (root / FILE).write_text(project_text([DOUBLED, WRITE]))
    ran = weft("plan", "-p", "2026-01", root=root)
    assert "fx.rate * 2" in ran.out
    assert "new project" not in ran.out


def test_a_draft_is_compared_with_the_sandbox_and_else_with_what_was_published(tmp_path: Path) -> None:
    root = sample_workspace(tmp_path)
    completed(root)
    (root / FILE).write_text(project_text([DOUBLED, WRITE], status="draft", version=2))
    changed = weft("plan", "-p", "2026-01", "--json", root=root).data["changes"]
    assert {c["what"] for c in changed} >= {"version", "10 arguments.assignments.0.expression"}
    completed(root, sandbox=True)
    assert weft("plan", "-p", "2026-01", "--json", root=root).data["changes"] == []


def test_what_a_run_registered_is_no_change_of_what_it_reads(tmp_path: Path) -> None:
    root = sample_workspace(tmp_path, {str(FILE): project_text()})
    completed(root, "2026-01", registration("gl_usd", origin="registered"))
    assert "gl_usd" in weft("dataset", "ls", root=root).out
    ran = weft("plan", "-p", "2026-01", "--json", "--detailed-exitcode", root=root)
    assert (ran.code, ran.data["changes"]) == (0, [])


def test_a_project_that_never_ran_is_new(tmp_path: Path) -> None:
    assert "new project: 2 operations, 1 output" in weft("plan", root=sample_workspace(tmp_path)).out


def test_missing_inputs_are_reported(tmp_path: Path) -> None:
    root = sample_workspace(tmp_path, data__exchange_rates_csv=None)
    ran = weft("plan", "-p", "2026-01", "--json", root=root)
    assert (ran.code, ran.codes) == (0, ["W1309"])
    (found,) = ran.document["diagnostics"]
    assert found["severity"] == "warning"
    assert found["message"].startswith("10.fx: no data for '2026-01': ")
    assert "exchange_rates.csv" in found["message"]
    # Without a period nobody knows where the data is.
    assert weft("plan", "--json", root=root).codes == []
