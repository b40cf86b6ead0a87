from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import text as sql

from engine_data import CONVERT, FX, GL_ID, RATES_ID, WRITE, project_text, sample_workspace
from store_values import kept, new_run, registration
from weft.errors import ActivationError, StoreError
from weft.pipelines.model.dataset import Dataset
from weft.pipelines.model.project import Project
from weft.pipelines.model.read_workspace import load_workspace
from weft.pipelines.model.values import DatasetRef
from weft.pipelines.model.workspace import Workspace
from weft.pipelines.plan.catalog import MissingDataset, ResolvedDataset
from weft.pipelines.store.lifecycle import (
    activate,
    admit,
    build_catalog,
    deactivate,
    reopen,
    resolve_conflict,
    resolve_status,
)
from weft.pipelines.store.open import open_store
from weft.pipelines.store.publishing import assess_impact, disable_dataset, enable_dataset, publish_dataset
from weft.pipelines.store.records import Registration
from weft.pipelines.store.writer import Store

PROJECT = "projects/fx_reporting.yml"
GL = "datasets/gl.v1.yml"
DRAFT = project_text(status="draft") + "    # the end\n"
BROKEN = project_text(
    [CONVERT.replace("* fx.rate", "* fx.rat"), WRITE.replace("line_number,", "line_nmber,")], status="draft"
)


class Place:
    """A workspace on disk and its store; what is asked for is read anew."""

    def __init__(self, root: Path, store: Store) -> None:
        self.root, self.store = root, store

    @property
    def workspace(self) -> Workspace:
        loaded = load_workspace(self.root)
        assert loaded.errors == (), "\n".join(map(str, loaded.errors))
        return loaded.workspace

    @property
    def project(self) -> Project:
        return self.workspace.projects[0]

    def text(self, file: str = PROJECT) -> str:
        return (self.root / file).read_text(encoding="utf-8")

    def write(self, file: str, text: str) -> None:
        (self.root / file).write_text(text, encoding="utf-8")

    def admitted(self, *, sandbox: bool = False) -> str:
        catalog = build_catalog(self.workspace, self.store)
        return admit(self.project, catalog, self.store, sandbox=sandbox).status

    def activated(self) -> None:
        activate(self.workspace, self.project, self.store)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    root = sample_workspace(tmp_path, {PROJECT: DRAFT})
    with open_store("sqlite:///.weft/weft.db", root) as store:
        yield Place(root, store)


def without_column(text: str, name: str) -> str:
    return "".join(line for line in text.splitlines(keepends=True) if f"name: {name}," not in line)


def registered(store: Store, new: Registration) -> None:
    run = store.create_run(new_run(period=new.location.period))
    store.set_running(run.id)
    store.complete(run.id, [new])


def test_activation_pins_the_input_raises_the_version_and_keeps_the_comments(place: Place) -> None:
    done = activate(place.workspace, place.project, place.store)
    assert (done.project.version, done.previous_version, done.project.status) == (2, 1, "active")
    assert done.project.input == DatasetRef(GL_ID, 1)
    assert done.file == place.root / PROJECT
    text = place.text()
    assert "status: active" in text
    assert "version: 2" in text
    assert "input_dataset_version: 1" in text
    assert "# the end" in text
    assert place.project == done.project
    assert kept(place.store, Project, done.project.id, 2) == done.project
    state = place.store.state(done.project.id)
    assert state is not None
    assert (state.status, state.active_version, state.pinned_dataset_version) == ("active", 2, 1)
    assert resolve_status(place.project, place.store).status == "active"


def test_a_chosen_dataset_version_is_pinned(place: Place) -> None:
    second = (FX / GL).read_text(encoding="utf-8").replace("version: 1", "version: 2")
    place.write("datasets/gl.v2.yml", second)
    done = activate(place.workspace, place.project, place.store, dataset_version=1)
    assert done.project.input.version == 1
    place.write(PROJECT, DRAFT)
    assert activate(place.workspace, place.project, place.store).project.input.version == 2


def test_the_short_form_of_the_input_is_pinned_too(place: Place) -> None:
    short = DRAFT.replace(f"input_dataset_id: {GL_ID}", "input: gl@1")
    place.write(PROJECT, short)
    place.write("datasets/gl.v2.yml", (FX / GL).read_text(encoding="utf-8").replace("version: 1", "version: 2"))
    activate(place.workspace, place.project, place.store, dataset_version=2)
    assert place.project.input == DatasetRef("gl", 2)
    assert "input: gl\n" in place.text()


def test_a_failed_activation_tells_every_failure_and_changes_nothing(place: Place) -> None:
    place.write(PROJECT, BROKEN)
    with pytest.raises(ActivationError) as refused:
        place.activated()
    error = refused.value
    assert error.code == "W1101"
    assert error.message == "project 'fx_reporting' cannot be activated: 2 failures"
    assert [(f.rule, f.operation_order) for f in error.failures] == [("VAL-002", 10), ("VAL-000", 20)]
    assert [d.code for d in error.diagnostics] == ["W1101", "W1208", "W1412"]
    assert place.text() == BROKEN
    assert place.store.project_versions(place.project.id) == ()
    assert place.store.state(place.project.id) is None


def test_a_version_that_is_not_there_fails_the_activation(place: Place) -> None:
    with pytest.raises(ActivationError) as refused:
        activate(place.workspace, place.project, place.store, dataset_version=9)
    assert [f.rule for f in refused.value.failures] == ["VAL-008"]
    assert place.text() == DRAFT


def test_a_store_that_refuses_leaves_the_file_as_it_was(place: Place) -> None:
    workspace, project = place.workspace, place.project
    place.store.database.write(lambda c: c.execute(sql("DROP TABLE project_state")))
    with pytest.raises(StoreError):
        activate(workspace, project, place.store)
    assert place.text() == DRAFT
    assert place.store.project_versions(project.id) == ()


def test_a_commit_that_fails_takes_the_file_back(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    from weft.pipelines.store.connections import Database

    def fails(self: Database, work: object) -> None:
        with self.engine.connect() as connection:
            work(connection)  # type: ignore[operator]
            connection.rollback()
        raise StoreError("the disk is full", help="make room")

    workspace, project = place.workspace, place.project
    (place.root / PROJECT).chmod(0o640)
    with monkeypatch.context() as patched:
        patched.setattr(Database, "write", fails)
        with pytest.raises(StoreError, match="the disk is full"):
            activate(workspace, project, place.store)
    assert place.text() == DRAFT
    assert (place.root / PROJECT).stat().st_mode & 0o777 == 0o640
    assert sorted(p.name for p in (place.root / "projects").iterdir()) == ["fx_reporting.yml"]


@pytest.mark.parametrize(
    "change",
    [
        ("seq: 20", "seq: 30"),
        ("amount_local * fx.rate", "amount_local * fx.rate * 2"),
        ("status: active\n", "status: active\n  selectors: {S: 'TRUE'}\n"),
        ("status: active\n", f"status: active\n  resolver_overrides: {{{RATES_ID}: files}}\n"),
        ("status: active\n", "status: active\n  materialization: runtime\n"),
    ],
)
def test_a_change_of_behaviour_makes_an_active_project_a_draft(place: Place, change: tuple[str, str]) -> None:
    place.activated()
    assert place.admitted() == "active"
    place.write(PROJECT, place.text().replace(*change))
    found = resolve_status(place.project, place.store)
    assert found.status == "draft"
    (warning,) = found.warnings
    assert (warning.code, warning.severity) == ("W1103", "warning")
    assert "`weft project activate fx_reporting`" in warning.help
    assert warning.at is not None
    with pytest.raises(ActivationError, match="nothing was run") as refused:
        place.admitted()
    assert (refused.value.code, "`weft run --sandbox`" in refused.value.help) == ("W1103", True)
    assert place.admitted(sandbox=True) == "draft"
    place.activated()  # reordered or changed, it becomes the next version
    assert place.project.version == 3
    assert resolve_status(place.project, place.store).status == "active"
    assert kept(place.store, Project, place.project.id, 2).behaviour() != place.project.behaviour()


def test_a_change_of_prose_changes_nothing(place: Place) -> None:
    place.activated()
    place.write(PROJECT, place.text().replace("status: active", "status: active\n  description: monthly"))
    assert resolve_status(place.project, place.store).warnings == ()
    assert resolve_status(place.project, place.store).status == "active"


def test_a_new_version_in_the_file_is_met_for_the_first_time(place: Place) -> None:
    place.activated()
    place.write(PROJECT, place.text().replace("version: 2", "version: 3", 1).replace("seq: 20", "seq: 30"))
    assert place.admitted() == "active"
    assert [v.version for v in place.store.project_versions(place.project.id)] == [2, 3]


def test_an_active_project_is_recorded_when_the_store_meets_it(place: Place) -> None:
    place.write(PROJECT, project_text())
    assert resolve_status(place.project, place.store).status == "active"
    assert not resolve_status(place.project, place.store).recorded
    assert place.admitted() == "active"
    assert resolve_status(place.project, place.store).recorded
    assert kept(place.store, Project, place.project.id, 1) == place.project


def test_an_active_project_with_mistakes_is_not_recorded(place: Place) -> None:
    place.write(PROJECT, BROKEN.replace("draft", "active"))
    with pytest.raises(ActivationError) as refused:
        place.admitted()
    assert refused.value.code == "W1101"
    assert len(refused.value.failures) == 2
    assert place.store.project_versions(place.project.id) == ()


def test_a_draft_runs_without_being_recorded(place: Place) -> None:
    assert place.admitted() == "draft"
    assert place.store.project_versions(place.project.id) == ()


def test_without_a_store_the_file_says_it_all(place: Place) -> None:
    assert resolve_status(place.project, None).status == "draft"
    assert build_catalog(place.workspace, None).registered == ()


def test_an_inactive_project_does_not_run_until_it_is_opened_again(place: Place) -> None:
    place.activated()
    assert deactivate(place.workspace, place.project, place.store).status == "inactive"
    assert "status: inactive" in place.text()
    with pytest.raises(ActivationError) as refused:
        place.admitted()
    assert refused.value.code == "W1104"
    assert "weft project reopen fx_reporting" in refused.value.help
    assert reopen(place.workspace, place.project, place.store).status == "draft"
    assert place.admitted() == "draft"
    place.activated()
    assert place.project.version == 3


def test_transitions_that_are_not_there_are_refused(place: Place) -> None:
    moves = {"activate": activate, "deactivate": deactivate, "reopen": reopen}
    allowed = {"draft": "activate", "active": "deactivate", "inactive": "reopen"}
    for status, good in allowed.items():
        place.write(PROJECT, project_text(status=status))
        before = place.text()
        for name, move in moves.items():
            if name == good:
                continue
            with pytest.raises(ActivationError, match=f"is {status} and cannot be") as refused:
                move(place.workspace, place.project, place.store)  # type: ignore[operator]
            assert refused.value.code == "W1102"
            assert f"weft project {good} fx_reporting" in refused.value.help
        with pytest.raises(ActivationError, match="has no conflict to resolve"):
            resolve_conflict(place.workspace, place.project, place.store, "pinned")
        assert place.text() == before


def test_a_published_version_that_breaks_an_active_project_brings_it_into_conflict(place: Place) -> None:
    publish_dataset(place.workspace, "gl", place.store)
    place.activated()
    changed = without_column((FX / GL).read_text(encoding="utf-8"), "currency").replace("version: 1", "version: 2")
    place.write("datasets/gl.v2.yml", changed)
    done = publish_dataset(place.workspace, Path("datasets/gl.v2.yml"), place.store)
    assert (done.is_new, done.raised, done.dataset.version) == (True, False, 2)
    ((project, report),) = done.impact.conflicts
    assert project.name == "fx_reporting"
    assert [(c.column, c.affected_operations) for c in report.breaking_changes] == [("currency", (10, 20))]
    assert [n.code for n in done.impact.notes] == ["W1105"]
    assert resolve_status(place.project, place.store).status == "conflict"
    with pytest.raises(ActivationError) as refused:
        place.admitted()
    assert refused.value.code == "W1105"
    assert "currency removed" in refused.value.message
    with pytest.raises(ActivationError) as stuck:
        place.activated()
    assert stuck.value.code == "W1105"
    assert "status: active" in place.text()  # the file says what its owner wrote


@pytest.mark.parametrize(("how", "pin"), [("adapted", 2), ("pinned", 1)])
def test_a_resolved_conflict_leaves_a_draft_with_the_chosen_pin(place: Place, how: str, pin: int) -> None:
    test_a_published_version_that_breaks_an_active_project_brings_it_into_conflict(place)
    done = resolve_conflict(place.workspace, place.project, place.store, how)  # type: ignore[arg-type]
    assert {c.resolution for c in done.report.breaking_changes} == {how}
    assert done.notes == ()
    assert (place.project.status, place.project.input.version) == ("draft", pin)
    assert place.store.conflict(place.project.id) is None
    assert resolve_status(place.project, place.store).status == "draft"
    if how == "pinned":
        place.activated()
        assert place.admitted() == "active"
    else:
        with pytest.raises(ActivationError) as refused:  # it still reads the column that is gone
            place.activated()
        assert refused.value.code == "W1101"


def test_a_conflict_is_with_the_version_that_the_project_reads(place: Place) -> None:
    publish_dataset(place.workspace, "gl", place.store)
    place.activated()
    text = (FX / GL).read_text(encoding="utf-8")
    place.write("datasets/gl.v2.yml", without_column(text, "posting_date").replace("version: 1", "version: 2"))
    assert publish_dataset(place.workspace, Path("datasets/gl.v2.yml"), place.store).impact.conflicts == ()
    place.write("datasets/gl.v3.yml", without_column(text, "currency").replace("version: 1", "version: 3"))
    done = publish_dataset(place.workspace, Path("datasets/gl.v3.yml"), place.store)
    ((_, report),) = done.impact.conflicts
    assert (report.dataset_version_from, report.dataset_version_to) == (1, 3)


def test_pins_inside_operations_are_left_to_the_user(place: Place) -> None:
    place.write(PROJECT, project_text([CONVERT.replace(RATES_ID, "exchange_rates"), WRITE], status="draft"))
    publish_dataset(place.workspace, "exchange_rates", place.store)
    place.activated()
    old = (FX / "datasets/exchange_rates.v1.yml").read_text(encoding="utf-8")
    gone = without_column(old, "rate").replace("version: 1", "version: 2")
    place.write("datasets/exchange_rates.v2.yml", gone)
    done = publish_dataset(place.workspace, "exchange_rates", place.store)
    assert len(done.impact.conflicts) == 1
    resolved = resolve_conflict(place.workspace, place.project, place.store, "pinned")
    (note,) = resolved.notes
    assert (note.severity, note.help) == ("note", "write `dataset_version: 1` there")
    assert note.message == "operation 10 reads 'exchange_rates'"
    assert note.at is not None
    assert place.project.input.version == 1


def test_a_draft_is_reported_but_not_in_conflict(place: Place) -> None:
    publish_dataset(place.workspace, "gl", place.store)
    place.write(GL, without_column(place.text(GL), "currency"))
    done = publish_dataset(place.workspace, "gl", place.store)
    assert done.impact.conflicts == ()
    assert [n.code for n in done.impact.notes] == ["W1105"]
    assert resolve_status(place.project, place.store).status == "draft"


def test_a_version_that_fits_is_offered(place: Place) -> None:
    publish_dataset(place.workspace, "gl", place.store)
    place.activated()
    more = (FX / GL).read_text(encoding="utf-8").replace("version: 1", "version: 2")
    place.write("datasets/gl.v2.yml", without_column(more, "description"))
    done = publish_dataset(place.workspace, "gl", place.store)
    assert done.impact.conflicts == ()
    (note,) = done.impact.notes
    assert (note.severity, note.code) == ("note", "W1105")
    assert "version 2 fits it" in note.message
    assert resolve_status(place.project, place.store).status == "active"


def test_a_changed_file_becomes_the_next_version_and_the_old_one_stays(place: Place) -> None:
    assert publish_dataset(place.workspace, "gl", place.store).is_new
    assert not publish_dataset(place.workspace, "gl", place.store).is_new
    place.activated()
    place.write(GL, without_column(place.text(GL), "posting_date"))
    done = publish_dataset(place.workspace, GL, place.store)
    assert (done.is_new, done.raised, done.dataset.version) == (True, True, 2)
    assert "version: 2" in place.text(GL)
    assert [d.version for d in place.store.dataset_versions("gl")] == [1, 2]
    catalog = build_catalog(place.workspace, place.store)
    first = catalog.dataset(DatasetRef("gl", 1))
    newest = catalog.dataset(DatasetRef("gl"))
    assert isinstance(first, ResolvedDataset)
    assert isinstance(newest, ResolvedDataset)
    assert "posting_date" in first.dataset.main_table.schema.names
    assert newest.dataset.version == 2
    assert place.admitted() == "active"  # pinned to version 1, which only the store has


@pytest.mark.parametrize("kept_by", ["store", "file"])
def test_a_changed_file_never_gets_a_version_that_is_taken(place: Place, kept_by: str) -> None:
    publish_dataset(place.workspace, GL, place.store)
    second = "datasets/gl.v2.yml"
    place.write(second, place.text(GL).replace("version: 1", "version: 2"))
    if kept_by == "store":
        publish_dataset(place.workspace, Path(second), place.store)
        (place.root / second).unlink()
    place.write(GL, without_column(place.text(GL), "posting_date"))
    done = publish_dataset(place.workspace, Path(GL), place.store)
    assert (done.is_new, done.raised, done.dataset.version) == (True, True, 3)
    assert "version: 3" in place.text(GL)


def test_a_version_whose_file_was_taken_away_is_not_the_newest(place: Place) -> None:
    place.write("datasets/gl.v2.yml", place.text(GL).replace("version: 1", "version: 2"))
    publish_dataset(place.workspace, "gl", place.store)
    (place.root / "datasets/gl.v2.yml").unlink()
    found = build_catalog(place.workspace, place.store).dataset(DatasetRef("gl"))
    assert isinstance(found, ResolvedDataset)
    assert found.dataset.version == 1


def test_a_dataset_that_is_not_there_is_reported(place: Place) -> None:
    for given in ("gll", "datasets/gl.v7.yml"):
        with pytest.raises(StoreError) as refused:
            publish_dataset(place.workspace, given, place.store)
        assert refused.value.code == "W1608"
    with pytest.raises(StoreError) as version:
        disable_dataset(place.workspace, "gl@7", place.store)
    assert (version.value.code, version.value.help) == ("W1608", "versions are 1")


def test_a_disabled_version_is_passed_over(place: Place) -> None:
    place.write("datasets/gl.v2.yml", place.text(GL).replace("version: 1", "version: 2"))
    publish_dataset(place.workspace, "gl", place.store)
    (changed,) = disable_dataset(place.workspace, "gl@2", place.store)
    assert (changed.version, changed.status) == (2, "disabled")
    assert "status: disabled" in place.text("datasets/gl.v2.yml")
    assert kept(place.store, Dataset, GL_ID, 2).status == "disabled"
    assert disable_dataset(place.workspace, "gl@2", place.store) == ()
    catalog = build_catalog(place.workspace, place.store)
    found = catalog.dataset(DatasetRef("gl"))
    assert isinstance(found, ResolvedDataset)
    assert found.dataset.version == 1
    pinned = catalog.dataset(DatasetRef("gl", 2))
    assert isinstance(pinned, MissingDataset)
    assert pinned.kind == "disabled"
    assert [d.version for d in enable_dataset(place.workspace, "gl", place.store)] == [2]
    assert "status: active" in place.text("datasets/gl.v2.yml")


def test_a_registered_version_is_disabled_in_the_store(place: Place) -> None:
    registered(place.store, registration("gl_usd"))
    (changed,) = disable_dataset(place.workspace, "gl_usd", place.store)
    assert (changed.origin, changed.status) == ("registered", "disabled")
    assert place.store.registered()[0].dataset.status == "disabled"


def test_a_registered_version_may_break_a_project(place: Place) -> None:
    """A run that registers a dataset under a name with another structure breaks who reads it."""
    store = place.store
    registered(store, registration("rates_us", "2026-01"))
    join = CONVERT.replace(RATES_ID, "rates_us")
    join = join.replace(
        join[join.index("on: ") : join.index("    assignments")],
        'on: "transactions.currency = fx.currency"\n',
    )
    text = project_text([join.replace("* fx.rate", "* 1"), WRITE], status="draft")
    place.write(PROJECT, text)
    place.activated()
    shrunk = registration("rates_us", "2026-02")
    table = replace(shrunk.dataset.main_table, columns=shrunk.dataset.main_table.columns[:1])
    registered(store, replace(shrunk, dataset=replace(shrunk.dataset, main_table=table)))
    newest = store.registered()[-1].dataset
    impact = assess_impact(newest, build_catalog(place.workspace, store), store)
    ((_, report),) = impact.conflicts
    assert [(c.column, c.change_type) for c in report.breaking_changes] == [("currency", "removed")]
    assert resolve_status(place.project, store).status == "conflict"


def test_a_version_that_is_in_a_file_is_read_from_there_whatever_the_store_keeps(place: Place) -> None:
    publish_dataset(place.workspace, "gl", place.store)
    place.write(GL, without_column(place.text(GL), "posting_date"))
    (found,) = build_catalog(place.workspace, place.store).versions("gl")
    assert "posting_date" not in found.main_table.schema.names
