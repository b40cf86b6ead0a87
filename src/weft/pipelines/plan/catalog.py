"""Catalog: resolves the names and ids in projects to files of a workspace and datasets registered by runs.

::

    input_dataset_id: gl           exact id, else exact name; the latest active version
    dataset_id: gl@3               that version, if it exists and is active
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeVar

from weft.core.calendar import GREGORIAN, Calendar
from weft.core.documents import Document
from weft.core.names import find_similar, quote_for_shell, suggest
from weft.errors import PeriodError
from weft.io.datasource import DataSource
from weft.pipelines.model.dataset import Dataset, DatasetRef
from weft.pipelines.model.project import Project
from weft.pipelines.model.resolver import Resolver
from weft.pipelines.model.workspace import Settings, Workspace

E = TypeVar("E", Project, Resolver, DataSource)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedLocation(Document):
    """Where a run published one period of a registered dataset, and the version it registered.

    For files, `path` is their location and `datasource` has the format options.  A table is identified by its datasource, name and
    schema; its `path` is for display, and it contains all periods that were published to it.
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
    """A dataset version that a run registered, with the locations it published."""

    dataset: Dataset
    locations: tuple[PublishedLocation, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedDataset:
    """The version that a reference resolves to, and whether the reference pinned it."""

    dataset: Dataset
    pinned: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingDataset:
    """Why a reference cannot be resolved: unknown dataset, unknown version, or disabled.

    An ``unread`` dataset may be in a file with errors, or be registered by a project with errors, which are reported themselves.
    """

    kind: Literal["dataset", "version", "disabled", "unread"]
    name: str
    version: int | None = None
    near: tuple[str, ...] = ()
    registered_by: str | None = None
    """The project that registers it when it runs."""

    def next_step(self, otherwise: str = "`weft dataset ls` lists the datasets") -> str:
        """Return what to do about it; `otherwise` is for a name that no dataset has and that is similar to none."""
        if self.kind == "disabled":
            return f"enable it with `weft dataset enable {quote_for_shell(self.name)}`, or name another"
        if self.kind == "version":
            return f"versions are {', '.join(self.near)}"
        if self.registered_by is not None:
            run = f"`weft run {quote_for_shell(self.registered_by)} -p PERIOD`"
            return f"project {self.registered_by!r} registers it: {run} first"
        # `near` has names and ids, so the others are often the same dataset.
        return f"did you mean {self.near[0]!r}?" if self.near else otherwise


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """Every entity that a project can refer to.

    A check of files, unlike a run, also includes `promised` datasets, which a project registers when it first runs, and
    `unread`: the contents of invalid files that may define a dataset.

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
        # Files take precedence; the store only adds the versions that have no file.
        for dataset in (*(r.dataset for r in self.registered), *self.workspace.datasets):
            known.setdefault(dataset.id, {})[dataset.version] = dataset
        versions = {id: tuple(by[v] for v in sorted(by)) for id, by in known.items()}
        # A dataset can be renamed between versions: each of its names leads to all of them.
        ids = {dataset.name: id for id, group in versions.items() for dataset in group}
        object.__setattr__(self, "_versions", versions)
        # An id wins over an equal name.
        object.__setattr__(self, "_ids", ids | {id: id for id in versions})

    @classmethod
    def of(cls, workspace: Workspace, registered: Iterable[RegisteredVersion] = ()) -> Catalog:
        """Return the catalog of a workspace and the dataset versions that its store holds."""
        return cls(workspace=workspace, registered=tuple(registered))

    @property
    def settings(self) -> Settings:
        """The settings in ``weft.yml``."""
        return self.workspace.settings

    def next_version(self, id: str) -> int:
        """Return the number of the next version of the dataset with that id or name."""
        known = self.versions(id)
        return known[-1].version + 1 if known else 1

    def versions(self, id: str) -> tuple[Dataset, ...]:
        """Return every version of the dataset with that id or name, oldest first."""
        return self._versions.get(self._ids.get(id, ""), ())

    def dataset(self, ref: DatasetRef) -> ResolvedDataset | MissingDataset:
        """Return the version that a reference resolves to: the pinned one, else the latest active one."""
        known = self.versions(ref.name)
        requested = [d for d in known if ref.version in (None, d.version)]
        # First, because an invalid file may define the version, or a newer one than those that are known.
        if not requested and any(ref.name in text for text in self.unread):
            return MissingDataset(kind="unread", name=ref.name, version=ref.version)
        if not known:
            return self._find_promised(ref)
        if not requested:
            numbers = tuple(str(d.version) for d in known)
            return MissingDataset(kind="version", name=ref.name, version=ref.version, near=numbers)
        active = [d for d in requested if d.status == "active"]
        if not active:
            return MissingDataset(kind="disabled", name=ref.name, version=ref.version)
        return ResolvedDataset(dataset=active[-1], pinned=ref.version is not None)

    def _find_promised(self, ref: DatasetRef) -> ResolvedDataset | MissingDataset:
        for dataset in self.promised:
            if ref.name in (dataset.name, dataset.id):
                # No run has registered any version yet, so a pinned one cannot be checked.
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
        """Return the newest publication of each period up to the given version."""
        newest: dict[str, PublishedLocation] = {}
        for version in self.registered:
            if version.dataset.id != dataset.id:
                continue
            for location in version.locations:
                before = newest.get(location.period)
                if location.version <= dataset.version and (before is None or before.version <= location.version):
                    newest[location.period] = location
        return tuple(newest[period] for period in sorted(newest))

    def project(self, name: str) -> Project | None:
        """Return the newest version of the project with that id or name, or None."""
        return _find_entity(self.workspace.projects, name)

    def resolver(self, name: str) -> Resolver | None:
        """Return the newest version of the resolver with that id or name, or None."""
        return _find_entity(self.workspace.resolvers, name)

    def datasource(self, name: str) -> DataSource | None:
        """Return the datasource with that id or name, or None."""
        return _find_entity(self.workspace.datasources, name)

    def default_resolver(self) -> Resolver | None:
        """Return the default resolver in ``weft.yml``, else the one marked as default in its file."""
        if self.settings.default_resolver is not None:
            return self.resolver(self.settings.default_resolver)
        default = next((r for r in self.workspace.resolvers if r.is_default), None)
        return None if default is None else self.resolver(default.id)

    def calendar(self, name: str) -> Calendar:
        """Return the calendar with that name; raise `PeriodError` when it is unknown or a draft."""
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
        help = suggest(name, names, "calendars are", most=1)
        raise PeriodError(f"unknown calendar {name!r}", code="W0402", help=help)


def _find_entity(entities: Sequence[E], name: str) -> E | None:
    """Return the newest entity with that id, else the newest with that name."""
    by_id = [e for e in entities if e.id == name]
    named = by_id or [e for e in entities if e.name == name]
    # Of equal versions the last one; datasources have no versions.
    return max(reversed(named), key=lambda e: getattr(e, "version", 1), default=None)
