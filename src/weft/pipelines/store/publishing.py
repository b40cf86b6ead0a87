"""New versions of datasets, what they do to the projects that read them, and taking versions out of use.

A file of the workspace and the store change together, or not at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from sqlalchemy import Connection

from weft.core.names import find_similar, format_list, quote_for_shell
from weft.errors import Diagnostic, StoreError, WeftError
from weft.io.datasource import EntityStatus
from weft.pipelines.model.dataset import Dataset
from weft.pipelines.model.project import Project
from weft.pipelines.model.workspace import Workspace
from weft.pipelines.plan.catalog import Catalog
from weft.pipelines.plan.check import list_dataset_references
from weft.pipelines.plan.impact import ConflictReport, describe_conflict, find_breaking_changes
from weft.pipelines.store.lifecycle import build_catalog, change_both, file_of, resolve_status
from weft.pipelines.store.snapshot import reached
from weft.pipelines.store.version_rows import put_version, set_dataset_status
from weft.pipelines.store.writer import Store

_PINNED = re.compile(r"(.*\S)@([1-9][0-9]{0,8})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Impact:
    """What a new dataset version does: projects that are in conflict now, and notes about the others."""

    conflicts: tuple[tuple[Project, ConflictReport], ...] = ()
    notes: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A dataset version that the store keeps now; `is_new` is False when it kept it already."""

    dataset: Dataset
    is_new: bool
    raised: bool
    impact: Impact = Impact()


def publish_dataset(workspace: Workspace, said: str | Path, store: Store) -> Published:
    """Make what a dataset file says a version that the store keeps, and find out what that breaks.

    A file that was changed but still says a version which the store knows gets the next one.
    """
    found = _found(workspace, said, store)
    kept = {d.version: d for d in store.dataset_versions(found.id)}
    known = kept.get(found.version)
    raised = known is not None and known.fingerprint() != found.fingerprint()
    if raised:
        last = max([*kept, *(d.version for d in workspace.datasets if d.id == found.id)])
        found = replace(found, version=last + 1)
    _keep(workspace, found, store, raised=raised)
    if known is not None and not raised:
        return Published(dataset=found, is_new=False, raised=False)
    files = (*(d for d in workspace.datasets if (d.id, d.version) != (found.id, found.version)), found)
    catalog = build_catalog(replace(workspace, datasets=_without_old_text(files, found, kept)), store)
    return Published(dataset=found, is_new=True, raised=raised, impact=assess_impact(found, catalog, store))


def _keep(workspace: Workspace, dataset: Dataset, store: Store, *, raised: bool) -> None:
    def work(connection: Connection) -> None:
        put_version(connection, dataset, store.now(connection))

    if raised:
        file = file_of(workspace, dataset.at, f"dataset {dataset.name!r}")
        change_both(store.database, file, {"version": dataset.version}, work)
    else:
        store.database.write(work)


def _without_old_text(
    files: tuple[Dataset, ...], new: Dataset, kept: dict[int, Dataset]
) -> tuple[Dataset, ...]:
    """Return the datasets of the files without the one whose file now says the new version."""
    return tuple(
        d
        for d in files
        if d is new
        or d.id != new.id
        or d.version not in kept
        or d.fingerprint() == kept[d.version].fingerprint()
    )


def assess_impact(new: Dataset, catalog: Catalog, store: Store) -> Impact:
    """Find what a new dataset version breaks; active projects that it breaks are in conflict from now on."""
    conflicts: list[tuple[Project, ConflictReport]] = []
    notes: list[Diagnostic] = []
    for project in catalog.workspace.projects:
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
    """Yield the version of a dataset that a project read until now: the oldest, of several."""
    older = [d for d in catalog.versions(new.id) if d.version < new.version]
    if not older or all(d.id != new.id for d in reached(project, catalog).datasets):
        return
    named = {new.id, *(d.name for d in (*older, new))}
    pins = {
        ref.version
        for _, ref in list_dataset_references(project)
        if ref.name in named and ref.version is not None
    }
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
        f"whether version {new.version} of {new.name!r} breaks project {project.name!r} cannot be said: "
        f"the project has errors of its own ({problem.code}: {problem.message})",
        help="`weft validate` lists them",
        severity="note",
        at=project.at.whole,
    )


def disable_dataset(workspace: Workspace, said: str, store: Store) -> tuple[Dataset, ...]:
    """Take a version (``gl@2``) or every version (``gl``) of a dataset out of use; return them."""
    return _set_status(workspace, said, store, "disabled")


def enable_dataset(workspace: Workspace, said: str, store: Store) -> tuple[Dataset, ...]:
    """Take a version (``gl@2``) or every version (``gl``) of a dataset back into use; return them."""
    return _set_status(workspace, said, store, "active")


def _set_status(workspace: Workspace, said: str, store: Store, status: EntityStatus) -> tuple[Dataset, ...]:
    catalog = build_catalog(workspace, store)
    pinned = _PINNED.fullmatch(said)
    name, version = (pinned[1], int(pinned[2])) if pinned else (said, None)
    versions = catalog.versions(name)
    wanted = [d for d in versions if version in (None, d.version)]
    if not wanted:
        raise _unknown(catalog, name, version)
    changed = []
    for dataset in wanted:
        if dataset.status != status:
            _change_status(workspace, replace(dataset, status=status), store)
            changed.append(replace(dataset, status=status))
    return tuple(changed)


def _change_status(workspace: Workspace, dataset: Dataset, store: Store) -> None:
    def work(connection: Connection) -> None:
        set_dataset_status(connection, dataset.id, dataset.version, dataset.status)

    if dataset in (replace(d, status=dataset.status) for d in workspace.datasets):
        file = file_of(workspace, dataset.at, f"dataset {dataset.name!r}")
        change_both(store.database, file, {"status": dataset.status}, work)
    else:
        store.database.write(work)


def _found(workspace: Workspace, said: str | Path, store: Store) -> Dataset:
    """Return the dataset of a file, or the newest version of a name."""
    path = Path(said)
    for dataset in workspace.datasets:
        place = dataset.at.whole
        if place is not None and place.file is not None and (workspace.root / path).resolve() == (
            workspace.root / place.file
        ).resolve():  # fmt: skip
            return dataset
    catalog = Catalog.of(workspace)
    versions = catalog.versions(str(said))
    if not versions:
        raise _unknown(build_catalog(workspace, store), str(said), None)
    return versions[-1]


def _unknown(catalog: Catalog, name: str, version: int | None) -> StoreError:
    known = catalog.versions(name)
    if known and version is not None:
        versions = ", ".join(str(d.version) for d in known)
        return StoreError(
            f"there is no version {version} of {name!r}", code="W1608", help=f"there is {versions}"
        )
    datasets = (*catalog.workspace.datasets, *(v.dataset for v in catalog.registered))
    names = list(dict.fromkeys(d.name for d in datasets))
    close = find_similar(name, names, most=1)
    return StoreError(
        f"there is no dataset {name!r}",
        code="W1608",
        help=f"did you mean {close[0]!r}?" if close else f"datasets are {format_list(names)}",
    )
