"""``weft project``: the life of projects from draft to active and back; nothing is started."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli.call import call_of, project_of, reading, writing
from weft.cli.envelope import Envelope, refused
from weft.cli.terminal import moment, table
from weft.core.names import quote_for_shell
from weft.errors import ActivationError, WorkspaceError

if TYPE_CHECKING:
    from weft.pipelines.model.dataset import DatasetRef
    from weft.pipelines.model.project import Project
    from weft.pipelines.plan.catalog import Catalog
    from weft.pipelines.store.lifecycle import ResolvedStatus

app = typer.Typer(help="List, show, activate and end projects.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(metavar="NAME", help="Name or id.")]


@app.command("ls")
def ls(context: typer.Context) -> Envelope:
    """List the projects and where each stands."""
    from weft.pipelines.store.lifecycle import build_catalog, resolve_status

    workspace = call_of(context).loaded().readable
    with reading(workspace.settings, workspace.root) as reader:
        catalog = build_catalog(workspace, reader)
        found = [(p, resolve_status(p, reader)) for p in workspace.projects]
    rows = [
        (p.name, str(p.version), s.status, _named(p.input, catalog), str(len(p.operations))) for p, s in found
    ]
    head = ("PROJECT", "VERSION", "STATUS", "INPUT", "OPERATIONS")
    return Envelope(
        command="project",
        data={"projects": [_short(p, s) for p, s in found]},
        diagnostics=tuple(w for _, s in found for w in s.warnings),
        text=table(head, rows) if rows else "no projects",
    )


def _named(ref: DatasetRef, catalog: Catalog) -> str:
    """Return a reference by the name of its dataset, whatever it was said by."""
    known = catalog.versions(ref.name)
    name = known[-1].name if known else ref.name
    return name if ref.version is None else f"{name}@{ref.version}"


def _short(project: Project, stands: ResolvedStatus) -> dict[str, Any]:
    return {
        "id": project.id,
        "name": project.name,
        "version": project.version,
        "status": stands.status,
        "conflict": None if stands.conflict is None else stands.conflict.to_dict(),
    }


@app.command("show")
def show(context: typer.Context, name: Name) -> Envelope:
    """Show a project, where it stands, and what is in the way of activating it."""
    from weft.pipelines.plan.project import check_project
    from weft.pipelines.store.lifecycle import build_catalog, resolve_status

    workspace = call_of(context).loaded().readable
    project = project_of(workspace, name)
    with reading(workspace.settings, workspace.root) as reader:
        stands = resolve_status(project, reader)
        catalog = build_catalog(workspace, reader)
        failures = check_project(project, catalog)
    lines = [
        f"{project.name} v{project.version} ({stands.status})  {project.id}",
        f"input {_named(project.input, catalog)}",
    ]
    lines += [f"  {op.seq:>4} {op.name} ({op.type})" for op in project.operations]
    if stands.conflict is not None:
        lines += [
            f"conflict: {change.column} {change.change_type}, operations {list(change.affected_operations)}"
            for change in stands.conflict.breaking_changes
        ]
    lines += [f"{f.rule} {f.type}: {f.detail}" for f in failures]
    return Envelope(
        command="project",
        data=_short(project, stands)
        | {"failures": [f.to_dict() for f in failures], "project": project.to_dict()},
        diagnostics=(*stands.warnings, *(f.diagnostic for f in failures)),
        text="\n".join(lines),
    )


@app.command("activate")
def activate(
    context: typer.Context,
    name: Name,
    *,
    dataset_version: Annotated[
        int | None, typer.Option("--dataset-version", min=1, help="Pin the input to this version.")
    ] = None,
) -> Envelope:
    """Make a draft the next active version; everything that stands against it is told."""
    from weft.pipelines.store.lifecycle import activate as activated

    workspace, project = call_of(context).project(name)
    with writing(workspace.settings, workspace.root) as store:
        try:
            done = activated(workspace, project, store, dataset_version=dataset_version)
        except ActivationError as problem:
            failures = [f.to_dict() for f in problem.failures]
            return refused("project", problem, {"name": project.name, "failures": failures})
    now = done.project
    return Envelope(
        command="project",
        data={
            "name": now.name,
            "version": now.version,
            "status": now.status,
            "input_dataset_version": now.input.version,
            "failures": [],
        },
        text=f"{now.name} is active as v{now.version}, its input is {now.input}",
        next=(f"weft run {quote_for_shell(now.name)} -p PERIOD",),
    )


@app.command("deactivate")
def deactivate(context: typer.Context, name: Name) -> Envelope:
    """Take an active project out of use."""
    from weft.pipelines.store.lifecycle import deactivate as done

    return _moved(context, name, done)


@app.command("reopen")
def reopen(context: typer.Context, name: Name) -> Envelope:
    """Make an inactive project a draft."""
    from weft.pipelines.store.lifecycle import reopen as done

    return _moved(context, name, done)


def _moved(context: typer.Context, name: str, move: Any) -> Envelope:
    workspace, project = call_of(context).project(name)
    with writing(workspace.settings, workspace.root) as store:
        now: Project = move(workspace, project, store)
    return Envelope(
        command="project",
        data={"name": now.name, "version": now.version, "status": now.status},
        text=f"{now.name} is {now.status}",
    )


@app.command("versions")
def versions(context: typer.Context, name: Name) -> Envelope:
    """List the versions of a project that were activated or run."""
    workspace = call_of(context).loaded().readable
    project = project_of(workspace, name)
    with reading(workspace.settings, workspace.root) as reader:
        found = () if reader is None else reader.project_versions(project.id)
    data = [
        {"version": v.version, "status": v.status, "fingerprint": v.fingerprint, "recorded_at": moment(v.recorded_at)}
        for v in found
    ]  # fmt: skip
    rows = [(str(v.version), v.fingerprint[:12], moment(v.recorded_at)) for v in found]
    text = (
        table(("VERSION", "FINGERPRINT", "RECORDED"), rows) if rows else "no version was activated or run yet"
    )
    return Envelope(command="project", data={"name": project.name, "versions": data}, text=text)


@app.command("resolve")
def resolve(
    context: typer.Context,
    name: Name,
    *,
    adapt: Annotated[bool, typer.Option("--adapt", help="Take the new dataset version.")] = False,
    pin: Annotated[bool, typer.Option("--pin", help="Keep the old dataset version.")] = False,
) -> Envelope:
    """End a conflict with a new dataset version; the project is a draft then."""
    from weft.pipelines.store.lifecycle import resolve_conflict

    if adapt == pin:
        raise WorkspaceError("say how the conflict ends", code="W1803", help="--adapt or --pin")
    workspace, project = call_of(context).project(name)
    with writing(workspace.settings, workspace.root) as store:
        done = resolve_conflict(workspace, project, store, "adapted" if adapt else "pinned")
    return Envelope(
        command="project",
        data={
            "name": done.project.name,
            "version": done.project.version,
            "status": done.project.status,
            "conflict": done.report.to_dict(),
        },
        diagnostics=done.notes,
        text=f"{done.project.name} is {done.project.status}",
        next=(f"weft project activate {quote_for_shell(done.project.name)}",),
    )
