"""The life cycle of projects: their effective status, and the transitions between states.

::

    draft -> active        activate: every check holds, the input is pinned, the version goes up
    active -> draft        a change of behaviour, detected by `resolve_status`
    active -> inactive     deactivate
    inactive -> draft      reopen
    active -> conflict     a dataset is published that breaks it
    conflict -> draft      resolve_conflict

The effective status is the one of the file, corrected by the records of the store::

    file       store                                        effective status
    any        an open conflict                             conflict
    active     the same version with another behaviour      draft     (W1103)
    active     unknown                                      active, once every check of activation passes
    other      -                                            the status of the file
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from weft.core.frozen import EMPTY
from weft.core.names import quote_for_shell
from weft.core.source import Source, SourceMap
from weft.errors import ActivationError, Diagnostic, EntityError
from weft.pipelines.model.compose import compose
from weft.pipelines.model.normalize import unwrap_root
from weft.pipelines.model.project import Project
from weft.pipelines.model.rewrite import set_keys
from weft.pipelines.model.values import ProjectStatus
from weft.pipelines.model.workspace import Workspace
from weft.pipelines.model.yaml_nodes import to_python
from weft.pipelines.plan.catalog import Catalog, RegisteredVersion, ResolvedDataset
from weft.pipelines.plan.check import list_dataset_references
from weft.pipelines.plan.failures import Failure
from weft.pipelines.plan.impact import ConflictReport, Resolution
from weft.pipelines.plan.project import check_project
from weft.pipelines.store.connections import Database
from weft.pipelines.store.reader import StoreReader
from weft.pipelines.store.version_rows import put_state, put_version
from weft.pipelines.store.writer import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedStatus:
    """The effective status of a project, why it differs from the file, and whether the store has the version."""

    status: ProjectStatus
    recorded: bool
    conflict: ConflictReport | None = None
    warnings: tuple[Diagnostic, ...] = ()


def build_catalog(workspace: Workspace, reader: StoreReader | None) -> Catalog:
    """Return the catalog of a workspace: its files, registered datasets, and older versions in the store.

    When a dataset file moves on to version 2, the store keeps version 1 for the projects that are pinned to it.
    """
    if reader is None:
        return Catalog.of(workspace)
    newest: dict[str, int] = {}
    for dataset in workspace.datasets:
        newest[dataset.id] = max(dataset.version, newest.get(dataset.id, 0))
    kept = (d for d in reader.file_datasets() if d.version < newest.get(d.id, 0))
    return Catalog.of(workspace, (*reader.registered(), *(RegisteredVersion(dataset=d) for d in kept)))


def resolve_status(project: Project, reader: StoreReader | None) -> ResolvedStatus:
    """Return the effective status of a project."""
    if reader is None:
        return ResolvedStatus(status=project.status, recorded=False)
    known = {v.version: v for v in reader.project_versions(project.id)}.get(project.version)
    conflict = reader.conflict(project.id)
    if conflict is not None:
        return ResolvedStatus(status="conflict", recorded=known is not None, conflict=conflict)
    changed = known is not None and known.fingerprint != project.fingerprint()
    if project.status == "active" and changed:
        warning = Diagnostic(
            "W1103",
            f"project {project.name!r} has changed since it was activated as version {project.version}: "
            "it is a draft now",
            help=f"`weft project activate {quote_for_shell(project.name)}` makes the change the next version",
            severity="warning",
            at=project.at.of("version"),
        )
        return ResolvedStatus(status="draft", recorded=True, warnings=(warning,))
    return ResolvedStatus(status=project.status, recorded=known is not None)


def admit(project: Project, catalog: Catalog, store: Store, *, sandbox: bool = False) -> ResolvedStatus:
    """Return the status of a project that is about to run; raise `ActivationError` when it may not.

    An active project that is new to the store is checked as for activation and recorded.
    One that was edited runs only into the `sandbox`: a scheduler that expects new
    data at the targets must not take such a run for a success.
    """
    resolved = resolve_status(project, store)
    if resolved.warnings and not sandbox:
        edited = resolved.warnings[0]
        raise ActivationError(
            f"project {project.name!r} has changed since it was activated as version {project.version}: "
            "nothing was run",
            code="W1103",
            help=f"{edited.help}; `weft run --sandbox` tries it without publishing",
            at=edited.at if isinstance(edited.at, Source) else None,
        )
    if resolved.status == "inactive":
        raise ActivationError(
            f"project {project.name!r} is inactive and cannot run",
            code="W1104",
            help=f"`weft project reopen {quote_for_shell(project.name)}` makes it a draft, which runs into the sandbox",
            at=project.at.of("status"),
        )
    if resolved.status == "conflict":
        raise in_conflict(project, resolved.conflict)
    if resolved.status == "active" and not resolved.recorded and not sandbox:
        failures = check_project(project, catalog)
        if failures:
            raise not_activated(project, failures)
        store.record(project)
        store.set_state(project.id, "active", active_version=project.version, pinned=project.input.version)
    return resolved


def in_conflict(project: Project, report: ConflictReport | None) -> ActivationError:
    """Return the error for a project that a new dataset version breaks."""
    if report is None:
        why = "its file has this status"
    else:
        columns = ", ".join(f"{c.column} {c.change_type}" for c in report.breaking_changes)
        why = f"version {report.dataset_version_to} of dataset {report.dataset_id!r} breaks it: {columns}"
    return ActivationError(
        f"project {project.name!r} is in conflict and cannot run: {why}",
        code="W1105",
        help=f"`weft project resolve {quote_for_shell(project.name)} --adapt` takes the new version, `--pin` keeps the old one",
        at=project.at.of("status"),
    )


def not_activated(project: Project, failures: tuple[Failure, ...]) -> ActivationError:
    """Return the error for a project that fails the checks of activation, with every failure."""
    count = f"{len(failures)} failures" if len(failures) > 1 else "1 failure"
    first = Diagnostic(
        "W1101",
        f"project {project.name!r} cannot be activated: {count}",
        help="correct the errors below; nothing was changed",
        at=project.at.of("status"),
    )
    error = ActivationError((first, *(failure.diagnostic for failure in failures)))
    error.failures = failures
    return error


@dataclass(frozen=True, slots=True, kw_only=True)
class Activated:
    """An activated project and its file."""

    project: Project
    file: Path
    previous_version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """A resolved conflict: the project is a draft again; `notes` list what is left to do by hand."""

    project: Project
    report: ConflictReport
    notes: tuple[Diagnostic, ...] = ()


def activate(workspace: Workspace, project: Project, store: Store, *, dataset_version: int | None = None) -> Activated:
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
    active = replace(chosen, status="active", version=version)
    if isinstance(resolved := catalog.dataset(chosen.input), ResolvedDataset):
        # Pinned to the version that was checked: a later one is checked for its impact when it is published.
        active = replace(active, input_dataset_version=resolved.dataset.version)
    pin = active.input.version
    file = _file_of(workspace, project)

    def work(connection: Connection) -> None:
        now = store.now(connection)
        put_version(connection, active, now)
        put_state(connection, active.id, "active", now, active_version=version, pinned=pin)

    keys = {"status": "active", "version": version}
    pins = {} if pin is None else pinned_keys(file, active, pin)
    change_both(store.database, file, keys | pins, work)
    return Activated(project=active, file=file, previous_version=project.version)


def deactivate(workspace: Workspace, project: Project, store: Store) -> Project:
    """Deactivate a project; it cannot run until it is reopened."""
    _expect(project, store, "active", "deactivated")
    return _set_status(workspace, project, store, "inactive")


def reopen(workspace: Workspace, project: Project, store: Store) -> Project:
    """Make an inactive project a draft."""
    _expect(project, store, "inactive", "reopened")
    return _set_status(workspace, project, store, "draft")


def resolve_conflict(workspace: Workspace, project: Project, store: Store, how: Resolution) -> Resolved:
    """End a conflict: take the new dataset version (``adapted``) or keep the old one (``pinned``).

    The project is a draft then: it has to be activated again.
    """
    report = store.conflict(project.id)
    if report is None:
        raise ActivationError(
            f"project {project.name!r} is {resolve_status(project, store).status} and has no conflict to resolve",
            code="W1102",
            help=f"`weft project show {quote_for_shell(project.name)}` shows its status",
            at=project.at.of("status"),
        )
    version = report.dataset_version_to if how == "adapted" else report.dataset_version_from
    catalog = build_catalog(workspace, store)
    named = {d.name for d in catalog.versions(report.dataset_id)} | {report.dataset_id}
    keys: dict[str, Any] = {}
    if project.input.name in named:
        keys = pinned_keys(_file_of(workspace, project), project, version)
        project = replace(project, input_dataset_version=version)
    after = _set_status(workspace, project, store, "draft", keys)
    changes = tuple(replace(change, resolution=how) for change in report.breaking_changes)
    done = replace(report, breaking_changes=changes)
    return Resolved(project=after, report=done, notes=tuple(_by_hand(after, named, version, how)))


def _by_hand(project: Project, named: set[str], version: int, how: Resolution) -> list[Diagnostic]:
    """Return what a resolution cannot write itself: pins inside operations."""
    notes = []
    for seq, ref in list_dataset_references(project):
        pinned = how == "adapted" and ref.version is None  # the newest is taken anyway
        if seq is None or ref.name not in named or ref.version == version or pinned:
            continue
        notes.append(
            Diagnostic(
                "W1105",
                f"operation {seq} reads {str(ref)!r}",
                help=f"write `dataset_version: {version}` there",
                severity="note",
                at=ref.at,
            )
        )
    return notes


def _set_status(
    workspace: Workspace, project: Project, store: Store, status: ProjectStatus, keys: Mapping[str, Any] = EMPTY
) -> Project:
    """Set the status, and other keys, in the file of a project, and its state in the store."""
    file = _file_of(workspace, project)
    change_both(
        store.database,
        file,
        {"status": status, **keys},
        lambda connection: put_state(connection, project.id, status, store.now(connection)),
    )
    return replace(project, status=status)


def _file_of(workspace: Workspace, project: Project) -> Path:
    return file_of(workspace, project.at, f"project {project.name!r}")


_NEXT = {
    "draft": "`weft project activate {name}` makes it active",
    "active": "`weft project deactivate {name}` deactivates it; a changed file makes it a draft",
    "inactive": "`weft project reopen {name}` makes it a draft",
}


def _expect(project: Project, store: Store, required: ProjectStatus, done: str) -> None:
    current = resolve_status(project, store)
    if current.status == required:
        return
    if current.status == "conflict":
        raise in_conflict(project, current.conflict)
    raise ActivationError(
        f"project {project.name!r} is {current.status} and cannot be {done}: only a project that is {required} can be",
        code="W1102",
        help=_NEXT[current.status].format(name=quote_for_shell(project.name)),
        at=project.at.of("status"),
    )


def file_of(workspace: Workspace, at: SourceMap, what: str) -> Path:
    """Return the file that an entity was read from."""
    if at.whole is None or at.whole.file is None:
        raise EntityError(
            f"{what} is not in a file of the workspace",
            code="W1020",
            help="write it into a file; `weft init` shows the folders",
        )
    return workspace.root / at.whole.file


def pinned_keys(file: Path, project: Project, version: int) -> dict[str, Any]:
    """Return the keys that pin the input of a project; ``input: gl@3`` loses its version."""
    # Only keys that the file has are changed, so the file is read again as nodes of YAML.
    root = unwrap_root(compose(file.read_bytes().decode("utf-8-sig"), str(file)), "project", [])
    changes: dict[str, Any] = {"input_dataset_version": version}
    for key in ("input", "input_dataset_id"):
        node = root.get(key)
        if node is not None and to_python(node) != project.input.name:
            changes[key] = project.input.name
    return changes


def change_both(database: Database, file: Path, keys: Mapping[str, Any], work: Callable[[Connection], None]) -> None:
    """Write to the store and set keys of a file; when either fails, neither changes."""
    before = file.read_bytes()

    # The file changes before the transaction commits: a file can be written back, a commit cannot be undone.
    def together(connection: Connection) -> None:
        work(connection)
        set_keys(file, keys)

    try:
        database.write(together)
    except BaseException:  # also Ctrl-C
        if file.read_bytes() != before:
            _restore(file, before)
        raise


def _restore(file: Path, text: bytes) -> None:
    # Through a second file, so that a crash leaves the old content or the new one, never half of it.
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    with os.fdopen(handle, "wb") as out:
        out.write(text)
    Path(name).chmod(file.stat().st_mode & 0o777)
    Path(name).replace(file)
