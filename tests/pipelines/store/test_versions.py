from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from store_values import NOW, dataset, kept, new_run, output, project, registration, resolver
from weft.errors import StoreError
from weft.pipelines.model.dataset import Dataset
from weft.pipelines.model.project import Project
from weft.pipelines.model.resolver import Resolver
from weft.pipelines.model.values import DatasetRef, LocatedText
from weft.pipelines.plan.catalog import PublishedLocation
from weft.pipelines.plan.impact import BreakingChange, ConflictReport
from weft.pipelines.store.records import ProjectState, Registration
from weft.pipelines.store.version_rows import Entity, add_registered, set_dataset_status
from weft.pipelines.store.writer import Store


def test_every_version_is_kept_and_fetched_by_its_number(store: Store) -> None:
    old, new = dataset("gl", 1, "a"), dataset("gl", 2, "a", "b")
    for version in (old, new, project(), project(version=2, input_dataset_version=2)):
        store.record(version)
    store.record(resolver(version=3))
    assert kept(store, Dataset, "ds-gl", 1) == old
    assert kept(store, Dataset, "ds-gl", 2) == new
    assert store.dataset_versions("gl") == store.dataset_versions("ds-gl") == (old, new)
    assert kept(store, Project, "pr-fx_reporting", 2).input == DatasetRef("gl", 2)
    assert kept(store, Project, "pr-fx_reporting", 1) == project()
    assert kept(store, Resolver, "files", 3) == resolver(version=3)
    assert [v.version for v in store.project_versions("fx_reporting")] == [1, 2]


def test_selectors_and_overrides_are_kept_with_a_version(store: Store) -> None:
    version = project(selectors={"EUR": LocatedText("currency = 'EUR'")}, resolver_overrides={"gl": "files"})
    store.record(version)
    assert kept(store, Project, version.id, 1).behaviour() == version.behaviour()


CHANGED: tuple[tuple[Entity, Entity], ...] = (
    (dataset("gl", 1, "a"), dataset("gl", 1, "b")),
    (project(), project(input_dataset_version=7)),
    (project(), project(selectors={"S": LocatedText("TRUE")})),
    (project(), project(resolver_overrides={"gl": "files"})),
    (resolver(), resolver(path="elsewhere.csv")),
    (dataset("gl", 1), dataset("gl", 1, id="another")),
)


@pytest.mark.parametrize(("first", "second"), CHANGED)
def test_a_version_never_changes(store: Store, first: Entity, second: Entity) -> None:
    store.record(first)
    store.record(first)
    with pytest.raises(StoreError) as refused:
        store.record(second)
    assert refused.value.code == "W1605"
    assert "`version`" in refused.value.help


def test_the_status_and_the_prose_of_a_version_may_change(store: Store) -> None:
    store.record(dataset())
    reported = dataset(status="disabled", description="ends in 2027")
    store.record(reported)
    assert kept(store, Dataset, "ds-gl", 1) == reported
    for version in (1, 9):
        store.database.write(partial(set_dataset_status, id="ds-gl", version=version, status="active"))
    assert kept(store, Dataset, "ds-gl", 1).status == "active"
    assert [d.version for d in store.dataset_versions("gl")] == [1]


def test_registered_datasets_get_the_next_version_of_their_id(store: Store) -> None:
    runs = []
    for period in ("2026-01", "2026-02", "2026-01"):
        run = store.create_run(new_run(period=period))
        store.set_running(run.id)
        store.begin_publish(run.id, [output(run.id)])
        store.complete(run.id, [registration(period=period)])
        runs.append(run.id)
    found = store.registered()
    assert [(v.dataset.version, v.dataset.id, v.dataset.origin) for v in found] == [
        (n, "ds-gl_usd", "registered") for n in (1, 2, 3)
    ]
    assert {v.dataset.resolver_id for v in found} == {"weft:published"}
    assert found[1].locations == (
        PublishedLocation(period="2026-02", path="out/period=2026-02", format="parquet", run_id=runs[1], version=2),
    )
    (written,) = store.outputs(runs[2])
    assert (written.state, written.register_as, written.dataset_id, written.dataset_version) == (
        "published", "gl_usd", "ds-gl_usd", 3,
    )  # fmt: skip


def register(store: Store, new: Registration, run_id: str) -> int:
    return store.database.write(lambda c: add_registered(c, new, run_id, NOW))


def test_a_registered_version_follows_those_that_files_declare(store: Store) -> None:
    run = store.create_run(new_run())
    place = registration().location
    store.record(dataset("gl_usd", 2))
    assert register(store, Registration(dataset=dataset("gl_usd", 1), location=place, seq=20), run.id) == 3
    assert register(store, Registration(dataset=dataset("gl_usd", 1), location=place, seq=20), run.id) == 3  # once
    later = replace(place, period="2026-02")
    assert register(store, Registration(dataset=dataset("gl_usd", 7), location=later, seq=30), run.id) == 7
    assert [v.dataset.version for v in store.registered()] == [3, 7]


def test_a_registered_version_follows_those_of_another_dataset_with_its_name(store: Store) -> None:
    run = store.create_run(new_run())
    store.record(replace(dataset("gl_usd", 4), id="ds-older"))
    new = Registration(dataset=dataset("gl_usd", 1), location=registration().location, seq=20)
    assert register(store, new, run.id) == 5


def test_a_conflict_is_remembered_until_it_is_cleared(store: Store) -> None:
    report = ConflictReport(
        dataset_id="ds-gl",
        dataset_version_from=1,
        dataset_version_to=2,
        breaking_changes=(BreakingChange(column="rate", change_type="removed", affected_operations=(10, 30)),),
    )
    assert store.state("pr") is None
    assert store.conflict("pr") is None
    store.set_state("pr", "active", active_version=3, pinned=1)
    store.set_conflict("pr", report)
    state = store.state("pr")
    assert store.conflict("pr") == report
    assert state is not None
    assert (state.status, state.active_version, state.pinned_dataset_version) == ("conflict", 3, 1)
    store.set_state("pr", "draft")
    after = store.state("pr")
    assert isinstance(after, ProjectState)
    assert (after.status, after.conflict, after.active_version) == ("draft", None, 3)


def test_a_version_says_when_it_was_recorded(store: Store) -> None:
    store.record(project(), NOW)
    (version,) = store.project_versions("fx_reporting")
    assert (version.recorded_at, version.fingerprint) == (NOW, project().fingerprint())
