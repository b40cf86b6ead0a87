"""Catalog: what the names and ids in projects mean, from the files of a workspace and the datasets runs registered.

::

    input_dataset_id: gl           id exactly, else name exactly; the greatest active version
    dataset_id: gl@3               that version, when it is there and active
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol, TypeVar

from weft.core.calendar import GREGORIAN, Calendar
from weft.core.documents import Document
from weft.core.names import find_similar, format_list, quote_for_shell
from weft.errors import PeriodError
from weft.io.datasource import DataSource
from weft.pipelines.model.dataset import Dataset, DatasetRef
from weft.pipelines.model.project import Project
from weft.pipelines.model.resolver import Resolver
from weft.pipelines.model.workspace import Settings, Workspace


class _Named(Protocol):
    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str: ...


E = TypeVar("E", bound=_Named)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedLocation(Document):
    """Where a run published one period of a registered dataset, and the version it made.

    Of files `path` is where they are, and `datasource` says how they are written.  A table is named by its datasource, its name and its schema, and `path` is
    how users see it; it holds all periods that were published there.
    """

    period: str
    path: str
    format: str
    run_id: str
    version: int
    datasource: str | None = None
    table: str | None = None
    schema: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredVersion:
    """A dataset version that a run registered, with what it published."""

    dataset: Dataset
    locations: tuple[PublishedLocation, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedDataset:
    """The version that a reference means, and whether the reference pinned it."""

    dataset: Dataset
    pinned: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingDataset:
    """Why a reference means nothing: no such dataset, no such version, or it is disabled.

    An ``unread`` one may be in a file with errors, or come from a project with errors: those are reported.
    """

    kind: Literal["dataset", "version", "disabled", "unread"]
    name: str
    version: int | None = None
    near: tuple[str, ...] = ()
    registered_by: str | None = None
    """The project that registers it when it runs."""

    @property
    def next_step(self) -> str | None:
        """What to type so that the dataset comes into being; None when no project makes it."""
        return (
            None
            if self.registered_by is None
            else f"project {self.registered_by!r} registers it: `weft run {quote_for_shell(self.registered_by)} -p PERIOD` first"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """Every entity that a project can name.

    A check of files, not a run, also knows what is still to come: `promised` are datasets that a project
    registers when it runs for the first time, `unread` the texts of files that may hold a dataset and do
    not read.

    >>> from pathlib import Path
    >>> catalog = Catalog.of(Workspace(root=Path()))
    >>> catalog.dataset(DatasetRef("gl", 3))
    MissingDataset(kind='dataset', name='gl', version=3, near=(), registered_by=None)
    """

    workspace: Workspace
    registered: tuple[RegisteredVersion, ...] = ()
    promised: tuple[Dataset, ...] = ()
    unread: tuple[str, ...] = ()
    _versions: Mapping[str, tuple[Dataset, ...]] = field(init=False, repr=False, compare=False)
    _ids: Mapping[str, str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        known: dict[str, dict[int, Dataset]] = {}
        # A file says what a version is; the store only adds the versions that have no file.
        for dataset in (*(r.dataset for r in self.registered), *self.workspace.datasets):
            known.setdefault(dataset.id, {})[dataset.version] = dataset
        versions = {id: tuple(by[v] for v in sorted(by)) for id, by in known.items()}
        ids = {dataset.name: id for id, found in versions.items() for dataset in found}
        object.__setattr__(self, "_versions", versions)
        object.__setattr__(self, "_ids", ids | {id: id for id in versions})

    @classmethod
    def of(cls, workspace: Workspace, registered: Iterable[RegisteredVersion] = ()) -> Catalog:
        """Return the catalog of a workspace and the dataset versions that its store holds."""
        return cls(workspace=workspace, registered=tuple(registered))

    @property
    def settings(self) -> Settings:
        """What ``weft.yml`` says."""
        return self.workspace.settings

    def versions(self, id: str) -> tuple[Dataset, ...]:
        """Return every version of the dataset of that id or name, oldest first."""
        return self._versions.get(self._ids.get(id, ""), ())

    def dataset(self, ref: DatasetRef) -> ResolvedDataset | MissingDataset:
        """Return the version that a reference means: the pinned one, else the greatest that is active."""
        found = self.versions(ref.name)
        wanted = [d for d in found if ref.version in (None, d.version)]
        if not wanted and any(ref.name in text for text in self.unread):
            return MissingDataset(kind="unread", name=ref.name, version=ref.version)
        if not found:
            return self._still_to_come(ref)
        if not wanted:
            known = tuple(str(d.version) for d in found)
            return MissingDataset(kind="version", name=ref.name, version=ref.version, near=known)
        active = [d for d in wanted if d.status == "active"]
        if not active:
            return MissingDataset(kind="disabled", name=ref.name, version=ref.version)
        return ResolvedDataset(dataset=active[-1], pinned=ref.version is not None)

    def _still_to_come(self, ref: DatasetRef) -> ResolvedDataset | MissingDataset:
        for dataset in self.promised:
            if ref.name in (dataset.name, dataset.id):
                coming = replace(dataset, version=ref.version or dataset.version)
                return ResolvedDataset(dataset=coming, pinned=ref.version is not None)
        return MissingDataset(
            kind="dataset",
            name=ref.name,
            version=ref.version,
            near=find_similar(ref.name, self._ids),
            registered_by=next((p.name for p in self.workspace.projects if ref.name in p.registers), None),
        )

    def published(self, dataset: Dataset) -> tuple[PublishedLocation, ...]:
        """Return what a registered version sees: of each period the newest publication up to it."""
        newest: dict[str, PublishedLocation] = {}
        for version in self.registered:
            if version.dataset.id != dataset.id:
                continue
            for location in version.locations:
                before = newest.get(location.period)
                if location.version <= dataset.version and (
                    before is None or before.version <= location.version
                ):
                    newest[location.period] = location
        return tuple(newest[period] for period in sorted(newest))

    def project(self, said: str) -> Project | None:
        """Return the newest version of the project of that id or name, or None."""
        return _newest(self.workspace.projects, said)

    def resolver(self, said: str) -> Resolver | None:
        """Return the newest version of the resolver of that id or name, or None."""
        return _newest(self.workspace.resolvers, said)

    def datasource(self, said: str) -> DataSource | None:
        """Return the datasource of that id or name, or None."""
        return _found(self.workspace.datasources, said)

    def default_resolver(self) -> Resolver | None:
        """Return the resolver that ``weft.yml`` names, else the one that says it is the default."""
        if self.settings.default_resolver is not None:
            return self.resolver(self.settings.default_resolver)
        said = next((r for r in self.workspace.resolvers if r.is_default), None)
        return None if said is None else self.resolver(said.id)

    def calendar(self, name: str) -> Calendar:
        """Return the calendar of that name; raise `PeriodError` when it is not there or a draft."""
        for file in self.workspace.calendars:
            if file.name == name and file.status == "draft":
                raise PeriodError(
                    f"calendar {name!r} is a draft", code="W0402", help="set `status: active` in its file"
                )
            if file.name == name:
                return file.calendar
        if name == GREGORIAN.name:
            return GREGORIAN
        names = (*(file.name for file in self.workspace.calendars), GREGORIAN.name)
        close = find_similar(name, names, most=1)
        raise PeriodError(
            f"there is no calendar {name!r}",
            code="W0402",
            help=f"did you mean {close[0]!r}?" if close else f"calendars are {format_list(names)}",
        )


def _found(entities: Sequence[E], said: str) -> E | None:
    """Return the entity of that id, else the one of that name; of several the last."""
    by_id = [e for e in entities if e.id == said]
    named = by_id or [e for e in entities if e.name == said]
    return named[-1] if named else None


class _Versioned(_Named, Protocol):
    @property
    def version(self) -> int: ...


V = TypeVar("V", bound=_Versioned)


def _newest(entities: Iterable[V], said: str) -> V | None:
    return _found(sorted(entities, key=lambda e: e.version), said)
