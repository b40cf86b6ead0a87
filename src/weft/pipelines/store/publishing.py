"""New versions of datasets, their impact on the projects that read them, and disabling versions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from sqlalchemy import Connection

from weft.core.names import quote_for_shell, suggest
from weft.errors import Diagnostic, StoreError, WeftError
from weft.io.datasource import EntityStatus
from weft.pipelines.model.dataset import Dataset
from weft.pipelines.model.project import Project
from weft.pipelines.model.values import PINNED
from weft.pipelines.model.workspace import Workspace
from weft.pipelines.plan.catalog import Catalog
from weft.pipelines.plan.check import list_dataset_references
from weft.pipelines.plan.impact import ConflictReport, describe_conflict, find_breaking_changes
from weft.pipelines.store.lifecycle import build_catalog, change_both, file_of, resolve_status
from weft.pipelines.store.snapshot import collect_requirements
from weft.pipelines.store.version_rows import put_version, set_dataset_status
from weft.pipelines.store.writer import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Impact:
    """The impact of a new dataset version: projects in conflict, and notes about the others."""

    conflicts: tuple[tuple[Project, ConflictReport], ...] = ()
    notes: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A published dataset version; `is_new` is False when the store had it already."""

    dataset: Dataset
    is_new: bool
    raised: bool
    impact: Impact = Impact()


def publish_dataset(workspace: Workspace, source: str | Path, store: Store) -> Published:
    """Publish a dataset file as a version of the store, and find the projects that it breaks.

    A changed file whose version is already in the store gets the next version.
    """
    dataset = _find_dataset(workspace, source, store)
    kept = {d.version: d for d in store.dataset_versions(dataset.id)}
    known = kept.get(dataset.version)
    raised = known is not None and known.fingerprint() != dataset.fingerprint()
    if raised:
        last = max([*kept, *(d.version for d in workspace.datasets if d.id == dataset.id)])
        dataset = replace(dataset, version=last + 1)
    _keep(workspace, dataset, store, raised=raised)
    if known is not None and not raised:
        return Published(dataset=dataset, is_new=False, raised=False)
    files = (*(d for d in workspace.datasets if (d.id, d.version) != (dataset.id, dataset.version)), dataset)
    catalog = build_catalog(replace(workspace, datasets=_without_old_text(files, dataset, kept)), store)
    return Published(dataset=dataset, is_new=True, raised=raised, impact=assess_impact(dataset, catalog, store))


def _keep(workspace: Workspace, dataset: Dataset, store: Store, *, raised: bool) -> None:
    if raised:
        # The number goes into the file in the same transaction: otherwise each publication would raise it again.
        file = file_of(workspace, dataset.at, f"dataset {dataset.name!r}")
        keys = {"version": dataset.version}
        change_both(store.database, file, keys, lambda c: put_version(c, dataset, store.now(c)))
    else:
        store.record(dataset)


def _without_old_text(files: tuple[Dataset, ...], new: Dataset, kept: dict[int, Dataset]) -> tuple[Dataset, ...]:
    """Return the datasets of the files without the one whose file has the new version now."""
    return tuple(
        d
        for d in files
        if d is new or d.id != new.id or d.version not in kept or d.fingerprint() == kept[d.version].fingerprint()
    )


def assess_impact(new: Dataset, catalog: Catalog, store: Store) -> Impact:
    """Find what a new dataset version breaks; active projects that it breaks are set to conflict."""
    conflicts: list[tuple[Project, ConflictReport]] = []
    notes: list[Diagnostic] = []
    for project in catalog.workspace.projects:
        # Only active projects get into conflict; the others are checked when they are activated.
        for old in _read_before(project, new, catalog):
            try:
                report = find_breaking_changes(old, new, project, catalog)
            except WeftError as problem:
                notes.append(_not_checked(project, new, problem))
                continue
            if report is None:
                notes += _upgrade(project, old, new)
            elif resolve_status(project, store).status == "active":
                store.set_conflict(project.id, report)
                conflicts.append((project, report))
                notes += describe_conflict(report, new, project)
            else:
                notes += describe_conflict(report, new, project)
    return Impact(conflicts=tuple(conflicts), notes=tuple(notes))


def _read_before(project: Project, new: Dataset, catalog: Catalog) -> Iterator[Dataset]:
    """Yield the version of a dataset that a project has read so far; the oldest of several."""
    older = [d for d in catalog.versions(new.id) if d.version < new.version]
    if not older or all(d.id != new.id for d in collect_requirements(project, catalog).datasets):
        return
    named = {new.id, *(d.name for d in (*older, new))}
    pins = {ref.version for _, ref in list_dataset_references(project) if ref.name in named and ref.version is not None}
    pinned = [d for d in older if d.version in pins]
    yield pinned[0] if pinned else older[-1]


def _upgrade(project: Project, old: Dataset, new: Dataset) -> tuple[Diagnostic, ...]:
    named = (new.id, new.name)
    if project.input.name not in named or project.input.version != old.version:
        return ()
    note = Diagnostic(
        "W1105",
        f"project {project.name!r} reads version {old.version} of {new.name!r}, and version {new.version} fits it",
        help=f"`weft project activate {quote_for_shell(project.name)} --dataset-version {new.version}` takes it, in a draft",
        severity="note",
        at=project.at.of("input_dataset_version"),
    )
    return (note,)


def _not_checked(project: Project, new: Dataset, problem: WeftError) -> Diagnostic:
    return Diagnostic(
        "W1105",
        f"cannot check whether version {new.version} of {new.name!r} breaks project {project.name!r}: "
        f"the project has errors of its own ({problem.code}: {problem.message})",
        help="`weft validate` lists them",
        severity="note",
        at=project.at.whole,
    )


def disable_dataset(workspace: Workspace, reference: str, store: Store) -> tuple[Dataset, ...]:
    """Disable a version (``gl@2``) or every version (``gl``) of a dataset; return them."""
    return _set_status(workspace, reference, store, "disabled")


def enable_dataset(workspace: Workspace, reference: str, store: Store) -> tuple[Dataset, ...]:
    """Enable a version (``gl@2``) or every version (``gl``) of a dataset; return them."""
    return _set_status(workspace, reference, store, "active")


def _set_status(workspace: Workspace, reference: str, store: Store, status: EntityStatus) -> tuple[Dataset, ...]:
    catalog = build_catalog(workspace, store)
    pinned = PINNED.fullmatch(reference)
    name, version = (pinned[1], int(pinned[2])) if pinned else (reference, None)
    versions = catalog.versions(name)
    selected = [d for d in versions if version in (None, d.version)]
    if not selected:
        raise _unknown(catalog, name, version)
    changed = []
    for dataset in selected:
        if dataset.status != status:
            _change_status(workspace, replace(dataset, status=status), store)
            changed.append(replace(dataset, status=status))
    return tuple(changed)


def _change_status(workspace: Workspace, dataset: Dataset, store: Store) -> None:
    def work(connection: Connection) -> None:
        set_dataset_status(connection, dataset.id, dataset.version, dataset.status)

    # A version is in a file, in the store, or in both.
    if dataset in (replace(d, status=dataset.status) for d in workspace.datasets):
        file = file_of(workspace, dataset.at, f"dataset {dataset.name!r}")
        change_both(store.database, file, {"status": dataset.status}, work)
    else:
        store.database.write(work)


def _find_dataset(workspace: Workspace, source: str | Path, store: Store) -> Dataset:
    """Return the dataset of a file, or the newest version of a name."""
    path = Path(source)
    for dataset in workspace.datasets:
        place = dataset.at.whole
        if place is not None and place.file is not None and (workspace.root / path).resolve() == (
            workspace.root / place.file
        ).resolve():  # fmt: skip
            return dataset
    catalog = Catalog.of(workspace)
    versions = catalog.versions(str(source))
    if not versions:
        raise _unknown(build_catalog(workspace, store), str(source), None)
    return versions[-1]


def _unknown(catalog: Catalog, name: str, version: int | None) -> StoreError:
    known = catalog.versions(name)
    if known and version is not None:
        versions = ", ".join(str(d.version) for d in known)
        return StoreError(f"dataset {name!r} has no version {version}", code="W1608", help=f"versions are {versions}")
    datasets = (*catalog.workspace.datasets, *(v.dataset for v in catalog.registered))
    names = dict.fromkeys(d.name for d in datasets)
    return StoreError(f"unknown dataset {name!r}", code="W1608", help=suggest(name, names, "datasets are", most=1))
