"""``weft project``: the status of projects, from draft to active and back; starts no JVM."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Context, Option, Typer

from weft.cli.call import find_project, get_call, read_store, write_store
from weft.cli.envelope import Envelope
from weft.cli.terminal import format_time
from weft.core.names import format_table, quote_for_shell
from weft.errors import ActivationError, WorkspaceError

if TYPE_CHECKING:
    from weft.pipelines.model.dataset import DatasetRef
    from weft.pipelines.model.project import Project
    from weft.pipelines.plan.catalog import Catalog
    from weft.pipelines.store.lifecycle import ResolvedStatus

app = Typer(help="List, show, activate and deactivate projects.", no_args_is_help=True)
Name = Annotated[str, Argument(metavar="PROJECT", help="Project name or id.")]


@app.command("ls")
def ls(context: Context) -> Envelope:
    """List all projects and their status."""
    from weft.pipelines.store.lifecycle import build_catalog, resolve_status

    workspace = get_call(context).load().readable
    with read_store(workspace) as reader:
        catalog = build_catalog(workspace, reader)
        projects = [(p, resolve_status(p, reader)) for p in workspace.projects]
    rows = [
        (p.name, str(p.version), s.status, _format_ref(p.input, catalog), str(len(p.operations))) for p, s in projects
    ]
    head = ("PROJECT", "VERSION", "STATUS", "INPUT", "OPERATIONS")
    return Envelope(
        command="project",
        data={"projects": [_to_dict(p, s) for p, s in projects]},
        diagnostics=tuple(w for _, s in projects for w in s.warnings),
        text=format_table(head, rows) if rows else "no projects",
    )


def _format_ref(ref: DatasetRef, catalog: Catalog) -> str:
    """Return a reference with the name of its dataset, also if it was written with its id."""
    versions = catalog.versions(ref.name)
    name = versions[-1].name if versions else ref.name
    return name if ref.version is None else f"{name}@{ref.version}"


def _to_dict(project: Project, state: ResolvedStatus) -> dict[str, Any]:
    return {
        "id": project.id,
        "name": project.name,
        "version": project.version,
        "status": state.status,
        "conflict": None if state.conflict is None else state.conflict.to_dict(),
    }


@app.command("show")
def show(context: Context, name: Name) -> Envelope:
    """Show a project, its status, and what prevents its activation."""
    from weft.pipelines.plan.project import check_project
    from weft.pipelines.store.lifecycle import build_catalog, resolve_status

    # `readable`: a project with errors is shown too, with what prevents its activation.
    workspace = get_call(context).load().readable
    project = find_project(workspace, name)
    with read_store(workspace) as reader:
        state = resolve_status(project, reader)
        catalog = build_catalog(workspace, reader)
        failures = check_project(project, catalog)
    lines = [
        f"{project.name} v{project.version} ({state.status})  {project.id}",
        f"input {_format_ref(project.input, catalog)}",
    ]
    lines += [f"  {op.seq:>4} {op.name} ({op.type})" for op in project.operations]
    if state.conflict is not None:
        lines += [
            f"conflict: {change.column} {change.change_type}, operations {list(change.affected_operations)}"
            for change in state.conflict.breaking_changes
        ]
    lines += [f"{f.rule} {f.type}: {f.detail}" for f in failures]
    return Envelope(
        command="project",
        data=_to_dict(project, state) | {"failures": [f.to_dict() for f in failures], "project": project.to_dict()},
        diagnostics=(*state.warnings, *(f.diagnostic for f in failures)),
        text="\n".join(lines),
    )


@app.command("activate")
def activate(
    context: Context,
    name: Name,
    *,
    dataset_version: Annotated[
        int | None, Option("--dataset-version", metavar="N", min=1, help="Pin the input to this version.")
    ] = None,
) -> Envelope:
    """Activate a draft as the next version. Reports everything that prevents it."""
    from weft.pipelines.store.lifecycle import activate as activate_project

    workspace, project = get_call(context).project(name)
    with write_store(workspace) as store:
        try:
            active = activate_project(workspace, project, store, dataset_version=dataset_version).project
        except ActivationError as error:
            failures = [f.to_dict() for f in error.failures]
            return Envelope.from_error("project", error, {"name": project.name, "failures": failures})
    return Envelope(
        command="project",
        data={
            "name": active.name,
            "version": active.version,
            "status": active.status,
            "input_dataset_version": active.input.version,
            "failures": [],
        },
        text=f"{active.name} is active as v{active.version} with input {active.input}",
        next=(f"weft run {quote_for_shell(active.name)} -p PERIOD",),
    )


@app.command("deactivate")
def deactivate(context: Context, name: Name) -> Envelope:
    """Deactivate an active project. It can no longer run."""
    from weft.pipelines.store.lifecycle import deactivate as deactivate_project

    return _change_status(context, name, deactivate_project)


@app.command("reopen")
def reopen(context: Context, name: Name) -> Envelope:
    """Turn an inactive project into a draft."""
    from weft.pipelines.store.lifecycle import reopen as reopen_project

    return _change_status(context, name, reopen_project)


def _change_status(context: Context, name: str, change: Any) -> Envelope:
    workspace, project = get_call(context).project(name)
    with write_store(workspace) as store:
        changed: Project = change(workspace, project, store)
    return Envelope(
        command="project",
        data={"name": changed.name, "version": changed.version, "status": changed.status},
        text=f"{changed.name} is {changed.status}",
    )


@app.command("versions")
def versions(context: Context, name: Name) -> Envelope:
    """List the versions of a project that were activated or run."""
    workspace = get_call(context).load().readable
    project = find_project(workspace, name)
    with read_store(workspace) as reader:
        recorded = () if reader is None else reader.project_versions(project.id)
    data = [
        {
            "version": v.version,
            "status": v.status,
            "fingerprint": v.fingerprint,
            "recorded_at": format_time(v.recorded_at),
        }
        for v in recorded
    ]
    rows = [(str(v.version), v.fingerprint[:12], format_time(v.recorded_at)) for v in recorded]
    text = format_table(("VERSION", "FINGERPRINT", "RECORDED"), rows) if rows else "no versions yet"
    return Envelope(command="project", data={"name": project.name, "versions": data}, text=text)


@app.command("resolve")
def resolve(
    context: Context,
    name: Name,
    *,
    adapt: Annotated[bool, Option("--adapt", help="Use the new dataset version.")] = False,
    pin: Annotated[bool, Option("--pin", help="Keep the old dataset version.")] = False,
) -> Envelope:
    """Resolve a conflict with a new dataset version. The project becomes a draft."""
    from weft.pipelines.store.lifecycle import resolve_conflict

    if adapt == pin:
        raise WorkspaceError(
            "a conflict is resolved with --adapt or with --pin", code="W1803", help="add one of the two"
        )
    workspace, project = get_call(context).project(name)
    with write_store(workspace) as store:
        result = resolve_conflict(workspace, project, store, "adapted" if adapt else "pinned")
    draft = result.project
    return Envelope(
        command="project",
        data={
            "name": draft.name,
            "version": draft.version,
            "status": draft.status,
            "conflict": result.report.to_dict(),
        },
        diagnostics=result.notes,
        text=f"{draft.name} is {draft.status}",
        next=(f"weft project activate {quote_for_shell(draft.name)}",),
    )
