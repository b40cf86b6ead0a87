"""The lives of projects and datasets: what moves them from one state to another.

::

    draft -> active        activate: every check holds, the input is pinned, the version goes up
    active -> draft        a change of behaviour, seen by `effective_status`
    active -> inactive     deactivate
    inactive -> draft      reopen
    active -> conflict     a dataset is published that breaks it
    conflict -> draft      resolve_conflict
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from sqlalchemy import Connection

from weft.core.names import quote_for_shell
from weft.errors import ActivationError, Diagnostic
from weft.pipelines.model.project import Project
from weft.pipelines.model.values import ProjectStatus
from weft.pipelines.model.workspace import Workspace
from weft.pipelines.plan.catalog import Catalog, ResolvedDataset
from weft.pipelines.plan.check import list_dataset_references
from weft.pipelines.plan.impact import ConflictReport, Resolution
from weft.pipelines.plan.project import check_project
from weft.pipelines.store.publishing import (
    Impact,
    Published,
    assess_impact,
    change_both,
    disable_dataset,
    enable_dataset,
    file_of,
    pinned_keys,
    publish_dataset,
)
from weft.pipelines.store.standing import (
    ResolvedStatus,
    admit,
    build_catalog,
    effective_status,
    in_conflict,
    not_activated,
    resolve_status,
)
from weft.pipelines.store.version_rows import put_state, put_version
from weft.pipelines.store.writer import Store

__all__ = [
    "Activated",
    "Impact",
    "Published",
    "Resolved",
    "ResolvedStatus",
    "activate",
    "admit",
    "assess_impact",
    "build_catalog",
    "deactivate",
    "disable_dataset",
    "effective_status",
    "enable_dataset",
    "publish_dataset",
    "reopen",
    "resolve_conflict",
    "resolve_status",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Activated:
    """A project as it is active now, and the file that says so."""

    project: Project
    file: Path
    previous_version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """A conflict that is over: the project is a draft again; `notes` say what is left to do by hand."""

    project: Project
    report: ConflictReport
    notes: tuple[Diagnostic, ...] = ()


def activate(
    workspace: Workspace, project: Project, store: Store, *, dataset_version: int | None = None
) -> Activated:
    """Make a draft the next active version, its input pinned to a version of its dataset.

    Raises `ActivationError` with every failure, and changes nothing then.
    """
    _expect(project, store, "draft", "activated")
    catalog = build_catalog(workspace, store)
    chosen = replace(project, input_dataset_version=dataset_version or project.input_dataset_version)
    failures = check_project(chosen, catalog)
    if failures:
        raise not_activated(project, failures)
    version = 1 + max([project.version, *(v.version for v in store.project_versions(project.id))])
    active = replace(_pinned(chosen, catalog), status="active", version=version)
    pin = active.input.version
    file = file_of(workspace, project.at, f"project {project.name!r}")

    def work(connection: Connection) -> None:
        now = store.now(connection)
        put_version(connection, active, now)
        put_state(connection, active.id, "active", now, active_version=version, pinned=pin)

    keys = {"status": "active", "version": version}
    pins = {} if pin is None else pinned_keys(file, active, pin)
    change_both(store.database, file, keys | pins, work)
    return Activated(project=active, file=file, previous_version=project.version)


def _pinned(project: Project, catalog: Catalog) -> Project:
    found = catalog.dataset(project.input)
    if not isinstance(found, ResolvedDataset):
        return project
    return replace(project, input_dataset_version=found.dataset.version)


def deactivate(workspace: Workspace, project: Project, store: Store) -> Project:
    """Take an active project out of use; nothing runs it until it is opened again."""
    _expect(project, store, "active", "deactivated")
    return _moved(workspace, project, store, "inactive")


def reopen(workspace: Workspace, project: Project, store: Store) -> Project:
    """Make an inactive project a draft."""
    _expect(project, store, "inactive", "opened again")
    return _moved(workspace, project, store, "draft")


def resolve_conflict(workspace: Workspace, project: Project, store: Store, how: Resolution) -> Resolved:
    """End a conflict: take the new dataset version (``adapted``) or keep the old one (``pinned``).

    The project is a draft then: it has to be activated again.
    """
    report = store.conflict(project.id)
    if report is None:
        raise ActivationError(
            f"project {project.name!r} is {effective_status(project, store)}, there is no conflict to resolve",
            code="W1102",
            help=f"`weft project show {quote_for_shell(project.name)}` says where it stands",
            at=project.at.of("status"),
        )
    wanted = report.dataset_version_to if how == "adapted" else report.dataset_version_from
    catalog = build_catalog(workspace, store)
    named = {d.name for d in catalog.versions(report.dataset_id)} | {report.dataset_id}
    file = file_of(workspace, project.at, f"project {project.name!r}")
    keys: dict[str, object] = {"status": "draft"}
    after = replace(project, status="draft")
    if project.input.name in named:
        keys |= pinned_keys(file, project, wanted)
        after = replace(after, input_dataset_version=wanted)

    def work(connection: Connection) -> None:
        put_state(connection, project.id, "draft", store.now(connection))

    change_both(store.database, file, keys, work)
    changes = tuple(replace(change, resolution=how) for change in report.breaking_changes)
    done = replace(report, breaking_changes=changes)
    return Resolved(project=after, report=done, notes=tuple(_by_hand(after, named, wanted, how)))


def _by_hand(project: Project, named: set[str], wanted: int, how: Resolution) -> list[Diagnostic]:
    """Return what a resolution cannot write itself: pins inside operations."""
    found = []
    for seq, ref in list_dataset_references(project):
        pinned = how == "adapted" and ref.version is None  # the newest is taken anyway
        if seq is None or ref.name not in named or ref.version == wanted or pinned:
            continue
        found.append(
            Diagnostic(
                "W1105",
                f"operation {seq} reads {str(ref)!r}",
                help=f"write `dataset_version: {wanted}` there",
                severity="note",
                at=ref.at,
            )
        )
    return found


def _moved(workspace: Workspace, project: Project, store: Store, status: ProjectStatus) -> Project:
    file = file_of(workspace, project.at, f"project {project.name!r}")

    def work(connection: Connection) -> None:
        put_state(connection, project.id, status, store.now(connection))

    change_both(store.database, file, {"status": status}, work)
    return replace(project, status=status)


_NEXT = {
    "draft": "`weft project activate {name}` makes it active",
    "active": "`weft project deactivate {name}` takes it out of use; a changed file makes it a draft",
    "inactive": "`weft project reopen {name}` makes it a draft",
}


def _expect(project: Project, store: Store, wanted: ProjectStatus, done: str) -> None:
    found = resolve_status(project, store)
    if found.status == wanted:
        return
    if found.status == "conflict":
        raise in_conflict(project, found.conflict)
    raise ActivationError(
        f"project {project.name!r} is {found.status} and cannot be {done}: that needs a project that is {wanted}",
        code="W1102",
        help=_NEXT[found.status].format(name=quote_for_shell(project.name)),
        at=project.at.of("status"),
    )
