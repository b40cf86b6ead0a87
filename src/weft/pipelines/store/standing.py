"""Where a project stands: what its file says, corrected by what the store remembers.

::

    file       store                                        stands as
    any        an open conflict                             conflict
    active     the same version with another behaviour      draft     (W1103)
    active     never met                                    active, once every check of activation holds
    other      -                                            what the file says
"""

from __future__ import annotations

from dataclasses import dataclass

from weft.core.names import quote_for_shell
from weft.core.source import Source
from weft.errors import ActivationError, Diagnostic
from weft.pipelines.model.project import Project
from weft.pipelines.model.values import ProjectStatus
from weft.pipelines.model.workspace import Workspace
from weft.pipelines.plan.catalog import Catalog, RegisteredVersion
from weft.pipelines.plan.failures import Failure
from weft.pipelines.plan.impact import ConflictReport
from weft.pipelines.plan.project import check_project
from weft.pipelines.store.reader import StoreReader
from weft.pipelines.store.writer import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedStatus:
    """The status that counts, why it is not the one of the file, and whether the store knows the version."""

    status: ProjectStatus
    recorded: bool
    conflict: ConflictReport | None = None
    warnings: tuple[Diagnostic, ...] = ()


def build_catalog(workspace: Workspace, reader: StoreReader | None) -> Catalog:
    """Return what names mean in a workspace: its files, what runs registered, older versions the store kept.

    A dataset file that moves on to version 2 leaves version 1 to the store; projects that are pinned to
    it go on.
    """
    if reader is None:
        return Catalog.of(workspace)
    newest: dict[str, int] = {}
    for dataset in workspace.datasets:
        newest[dataset.id] = max(dataset.version, newest.get(dataset.id, 0))
    kept = (d for d in reader.file_datasets() if d.version < newest.get(d.id, 0))
    return Catalog.of(workspace, (*reader.registered(), *(RegisteredVersion(dataset=d) for d in kept)))


def resolve_status(project: Project, reader: StoreReader | None) -> ResolvedStatus:
    """Return where a project stands."""
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


def effective_status(project: Project, reader: StoreReader | None) -> ProjectStatus:
    """Return the status that counts."""
    return resolve_status(project, reader).status


def admit(project: Project, catalog: Catalog, store: Store, *, sandbox: bool = False) -> ResolvedStatus:
    """Return where a project stands that is about to run; raise `ActivationError` when it may not.

    An active project that the store meets for the first time is checked as for activation and recorded.
    One that was edited only runs where it was asked to run into the `sandbox`: a scheduler that expects new
    data at the targets must not take such a run for a success.
    """
    found = resolve_status(project, store)
    if found.warnings and not sandbox:
        edited = found.warnings[0]
        raise ActivationError(
            f"project {project.name!r} has changed since it was activated as version {project.version}: "
            "nothing was run",
            code="W1103",
            help=f"{edited.help}; `weft run --sandbox` tries it without publishing",
            at=edited.at if isinstance(edited.at, Source) else None,
        )
    if found.status == "inactive":
        raise ActivationError(
            f"project {project.name!r} is inactive and does not run",
            code="W1104",
            help=f"`weft project reopen {quote_for_shell(project.name)}` makes it a draft, which runs into the sandbox",
            at=project.at.of("status"),
        )
    if found.status == "conflict":
        raise in_conflict(project, found.conflict)
    if found.status == "active" and not found.recorded and not sandbox:
        failures = check_project(project, catalog)
        if failures:
            raise not_activated(project, failures)
        store.record(project)
        store.set_state(project.id, "active", active_version=project.version, pinned=project.input.version)
    return found


def in_conflict(project: Project, report: ConflictReport | None) -> ActivationError:
    """Return the error for a project that a new dataset version breaks."""
    if report is None:
        why = "its file says so"
    else:
        columns = ", ".join(f"{c.column} {c.change_type}" for c in report.breaking_changes)
        why = f"version {report.dataset_version_to} of dataset {report.dataset_id!r} breaks it: {columns}"
    return ActivationError(
        f"project {project.name!r} is in conflict and does not run: {why}",
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
        help="mend what follows; nothing was changed",
        at=project.at.of("status"),
    )
    error = ActivationError((first, *(failure.diagnostic for failure in failures)))
    error.failures = failures
    return error
