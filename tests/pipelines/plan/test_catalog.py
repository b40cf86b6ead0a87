"""The catalog: which dataset version a reference means, and what runs have published."""

from __future__ import annotations

from pathlib import Path

import pytest

from refusals import refused
from weft.core import types
from weft.core.calendar import GREGORIAN
from weft.core.listed_calendar import calendar_from_dict
from weft.errors import PeriodError
from weft.io.datasource import DataSource
from weft.pipelines.model.dataset import ColumnDef, Dataset, DatasetRef, TableDef
from weft.pipelines.model.project import Project
from weft.pipelines.model.resolver import Resolver
from weft.pipelines.model.workspace import CalendarFile, Settings, Workspace
from weft.pipelines.plan.catalog import (
    Catalog,
    MissingDataset,
    PublishedLocation,
    RegisteredVersion,
    ResolvedDataset,
)

TABLE = TableDef(name="t", columns=(ColumnDef("a", types.STRING),))


def dataset(version: int, status: str = "active", id: str = "ds-fx", name: str = "fx", origin: str = "file") -> Dataset:
    return Dataset(id=id, name=name, version=version, status=status, main_table=TABLE, origin=origin)  # type: ignore[arg-type]


def catalog(*datasets: Dataset, registered: tuple[RegisteredVersion, ...] = (), **parts: object) -> Catalog:
    return Catalog.of(Workspace(root=Path(), datasets=datasets, **parts), registered)  # type: ignore[arg-type]


THREE = catalog(dataset(3, "disabled"), dataset(1), dataset(2))


def test_without_a_version_the_greatest_active_one_is_meant() -> None:
    found = THREE.dataset(DatasetRef("ds-fx"))
    assert isinstance(found, ResolvedDataset)
    assert (found.dataset.version, found.pinned) == (2, False)


@pytest.mark.parametrize("name", ["ds-fx", "fx"])
def test_a_pinned_version_is_meant_by_id_or_name(name: str) -> None:
    found = THREE.dataset(DatasetRef(name, 1))
    assert isinstance(found, ResolvedDataset)
    assert (found.dataset.version, found.pinned) == (1, True)


@pytest.mark.parametrize(
    ("ref", "missing"),
    [
        (DatasetRef("fx", 3), MissingDataset(kind="disabled", name="fx", version=3)),
        (DatasetRef("fx", 9), MissingDataset(kind="version", name="fx", version=9, near=("1", "2", "3"))),
        (DatasetRef("fxx"), MissingDataset(kind="dataset", name="fxx", near=("fx",))),
        (DatasetRef("FX"), MissingDataset(kind="dataset", name="FX", near=("fx",))),
        (DatasetRef("zzz", 2), MissingDataset(kind="dataset", name="zzz", version=2)),
    ],
)
def test_a_reference_to_nothing_says_why(ref: DatasetRef, missing: MissingDataset) -> None:
    assert THREE.dataset(ref) == missing


def test_a_dataset_without_an_active_version_is_disabled() -> None:
    assert catalog(dataset(1, "disabled")).dataset(DatasetRef("fx")) == MissingDataset(kind="disabled", name="fx")


def test_an_id_wins_over_the_name_of_another() -> None:
    found = catalog(dataset(1), dataset(1, id="x", name="ds-fx")).dataset(DatasetRef("ds-fx"))
    assert isinstance(found, ResolvedDataset)
    assert found.dataset.id == "ds-fx"


def test_versions_are_listed_oldest_first_by_id_or_name() -> None:
    assert [d.version for d in THREE.versions("fx")] == [d.version for d in THREE.versions("ds-fx")] == [1, 2, 3]
    assert THREE.versions("nothing") == ()


def published(version: int, **periods: int) -> RegisteredVersion:
    return RegisteredVersion(
        dataset=dataset(version, id="ds-out", name="out", origin="registered"),
        locations=tuple(
            PublishedLocation(period=p, path=f"out/{p}/{v}", format="parquet", run_id=f"r{v}", version=v)
            for p, v in periods.items()
        ),
    )


def test_what_runs_registered_is_found_beside_the_files() -> None:
    found = catalog(dataset(1), registered=(published(1, jan=1), published(2, jan=2))).dataset(DatasetRef("out"))
    assert isinstance(found, ResolvedDataset)
    assert (found.dataset.version, found.dataset.origin) == (2, "registered")


def test_a_file_says_what_a_version_is() -> None:
    mine = dataset(1, id="ds-out", name="out")
    found = catalog(mine, registered=(published(1),)).dataset(DatasetRef("out", 1))
    assert isinstance(found, ResolvedDataset)
    assert found.dataset.origin == "file"


def test_a_version_sees_of_each_period_the_newest_publication_up_to_it() -> None:
    held = catalog(registered=(published(1, jan=1), published(2, feb=2), published(3, jan=3)))
    at = {version: held.published(dataset(version, id="ds-out")) for version in (1, 2, 3)}
    assert [(p.period, p.version) for p in at[1]] == [("jan", 1)]
    assert [(p.period, p.version) for p in at[2]] == [("feb", 2), ("jan", 1)]
    assert [(p.period, p.version) for p in at[3]] == [("feb", 2), ("jan", 3)]
    assert held.published(dataset(3)) == ()


def resolver(id: str, version: int = 1, *, default: bool = False) -> Resolver:
    return Resolver(id=id, name=f"{id} name", version=version, status="active", rules=(), is_default=default)


def test_entities_are_found_by_id_or_name_in_their_newest_version() -> None:
    source = DataSource(id="s", name="Files", type="csv")
    project = Project(id="p", name="P", version=1, status="draft", input_dataset_id="fx", operations=())
    held = catalog(resolvers=(resolver("r", 2), resolver("r", 1)), datasources=(source,), projects=(project,))
    assert held.resolver("r name") == held.resolver("r") == resolver("r", 2)
    assert held.datasource("Files") is held.datasource("s") is source
    assert held.project("P") is held.project("p") is project
    assert [held.project("q"), held.resolver("q"), held.datasource("q")] == [None, None, None]


def test_the_default_resolver_is_the_one_of_the_settings_else_the_one_that_says_so() -> None:
    both = (resolver("a", default=True), resolver("b"))
    assert catalog(resolvers=both).default_resolver() == both[0]
    assert catalog(resolvers=both, settings=Settings(default_resolver="b")).default_resolver() == both[1]
    assert catalog(resolvers=both, settings=Settings(default_resolver="c")).default_resolver() is None
    assert catalog(resolvers=both[1:]).default_resolver() is None


def test_calendars_are_found_and_drafts_are_refused() -> None:
    listed = calendar_from_dict(
        {
            "name": "fiscal",
            "levels": [{"name": "year"}],
            "periods": [{"identifier": "FY26", "level": "year", "start_date": "2025-07-01", "end_date": "2026-06-30"}],
        }
    )
    held = catalog(
        calendars=(
            CalendarFile(name="fiscal", calendar=listed),
            CalendarFile(name="next", calendar=listed, status="draft"),
        )
    )
    assert held.calendar("fiscal") is listed
    assert held.calendar("gregorian") is GREGORIAN
    with refused(PeriodError, "W0402", "calendar 'next' is a draft"):
        held.calendar("next")
    with refused(PeriodError, "W0402", "unknown calendar 'fiscl'", "did you mean 'fiscal'?"):
        held.calendar("fiscl")


def test_of_two_entities_with_one_version_the_last_one_counts() -> None:
    first, last = (DataSource(id="s", name="Files", type=kind) for kind in ("csv", "parquet"))
    again = resolver("r", default=True)
    held = catalog(datasources=(first, last), resolvers=(resolver("r"), again, resolver("r", 0)))
    assert held.datasource("s") is held.datasource("Files") is last
    assert held.resolver("r") is again
