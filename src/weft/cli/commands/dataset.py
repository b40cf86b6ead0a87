"""``weft dataset``: the versions of datasets, of files and of runs; nothing is started."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli.call import call_of, reading, writing
from weft.cli.envelope import Envelope
from weft.cli.terminal import many, table
from weft.core.names import find_similar, format_list, quote_for_shell
from weft.errors import WorkspaceError

if TYPE_CHECKING:
    from weft.pipelines.model.dataset import Dataset, LookupDef
    from weft.pipelines.plan.catalog import Catalog

app = typer.Typer(help="List, show, publish, disable and enable datasets.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(metavar="NAME[@VERSION]", help="Name or id.")]


@app.command("ls")
def ls(
    context: typer.Context,
    *,
    ids: Annotated[bool, typer.Option("--ids", help="With their ids.")] = False,
) -> Envelope:
    """List every version of every dataset."""
    catalog = _catalog(context)
    found = _all(catalog)
    head = ("DATASET", "VERSION", "STATUS", "FROM", "COLUMNS", *(("ID",) if ids else ()))
    rows = [
        (
            d.name,
            str(d.version),
            d.status,
            d.origin,
            str(len(d.main_table.columns)),
            *((d.id,) if ids else ()),
        )
        for d in found
    ]
    data = [
        {"id": d.id, "name": d.name, "version": d.version, "status": d.status, "origin": d.origin}
        for d in found
    ]
    return Envelope(
        command="dataset", data={"datasets": data}, text=table(head, rows) if rows else "no datasets"
    )


def _catalog(context: typer.Context) -> Catalog:
    from weft.pipelines.store.lifecycle import build_catalog

    workspace = call_of(context).workspace()
    with reading(workspace.settings, workspace.root) as reader:
        return build_catalog(workspace, reader)


def _all(catalog: Catalog) -> list[Dataset]:
    known = {(d.id, d.version): d for d in (r.dataset for r in catalog.registered)}
    known |= {(d.id, d.version): d for d in catalog.workspace.datasets}
    return sorted(known.values(), key=lambda d: (d.name, d.version))


@app.command("show")
def show(context: typer.Context, name: Name) -> Envelope:
    """Show a version of a dataset: its columns, keys, lookups and where runs published it."""
    catalog = _catalog(context)
    found = one(name, catalog)
    places = [
        {"period": p.period, "path": p.path, "format": p.format, "run_id": p.run_id, "version": p.version}
        for p in catalog.published(found)
    ]
    data: dict[str, Any] = found.to_dict() | {"origin": found.origin, "published": places}
    return Envelope(command="dataset", data=data, text=_described(found, places))


def one(said: str, catalog: Catalog) -> Dataset:
    """Return the dataset version that a user names, disabled or not; the newest without a version."""
    name, at, number = said.rpartition("@") if "@" in said else (said, "", "")
    if at and not number.isdigit():
        raise WorkspaceError(f"{said!r} names no version", code="W1803", help="as in gl@3")
    versions = catalog.versions(name)
    found = [d for d in versions if not number or d.version == int(number)]
    if found:
        return found[-1]
    if versions:
        help = f"its versions are {format_list(str(d.version) for d in versions)}"
    else:
        names = list(dict.fromkeys(d.name for d in _all(catalog)))
        close = find_similar(name, names, most=1)
        help = f"did you mean {close[0]!r}?" if close else f"datasets are {format_list(names)}"
    raise WorkspaceError(f"there is no dataset {said!r}", code="W1802", help=help)


def _described(dataset: Dataset, places: list[dict[str, Any]]) -> str:
    from weft.pipelines.model.dataset import format_type

    lines = [
        f"{dataset.name} v{dataset.version} ({dataset.status}, from {dataset.origin})  {dataset.id}",
        f"resolver {dataset.resolver_id or 'by default'}, key {', '.join(dataset.natural_key_columns) or 'none'}",
    ]
    for given in dataset.tables:
        lines.append(f"{given.name} ({given.temporal_mode})")
        wide = max(len(c.name) for c in given.columns)
        lines += [f"  {c.name:<{wide}}  {format_type(c.dtype)}" for c in given.columns]
    for lookup in dataset.lookups:
        on = " AND ".join(f"{here} = {lookup.alias}.{there}" for here, there in lookup.join_conditions)
        lines.append(f"lookup {lookup.alias} on {on}" + _elsewhere(lookup))
    lines += [f"published {p['period']}: {p['path']} (v{p['version']})" for p in places]
    return "\n".join(lines)


def _elsewhere(lookup: LookupDef) -> str:
    """Return which dataset a lookup leads to, when it is not a table of its own."""
    target = lookup.target
    return "" if hasattr(target, "columns") else f", dataset {target}"


@app.command("publish")
def publish(
    context: typer.Context, name: Annotated[str, typer.Argument(metavar="FILE|NAME", help="What to publish.")]
) -> Envelope:
    """Keep what a dataset file says as a version, and find out which projects that breaks."""
    from weft.pipelines.store.lifecycle import publish_dataset

    workspace = call_of(context).workspace()
    is_file = name.endswith((".yml", ".yaml"))
    said: str | Path = name
    if is_file:
        said = next((p.resolve() for p in (Path(name), workspace.root / name) if p.exists()), Path(name))
    with writing(workspace.settings, workspace.root) as store:
        done = publish_dataset(workspace, said, store)
    dataset, impact = done.dataset, done.impact
    conflicts = [
        {"project": str(name), "conflict": report.to_dict()}
        for name, report in dict(impact.conflicts).items()
    ]
    how = "published" if done.is_new else "was published before"
    text = f"{dataset.name} v{dataset.version} {how}"
    if conflicts:
        text += "\n" + "\n".join(f"{c['project']} is in conflict now" for c in conflicts)
    return Envelope(
        command="dataset",
        data={
            "id": dataset.id,
            "name": dataset.name,
            "version": dataset.version,
            "is_new": done.is_new,
            "raised": done.raised,
            "conflicts": conflicts,
        },
        diagnostics=impact.notes,
        text=text,
        next=tuple(f"weft project show {quote_for_shell(c['project'])}" for c in conflicts),
    )


@app.command("disable")
def disable(context: typer.Context, name: Name) -> Envelope:
    """Let nobody use a dataset, or one version of it, any more."""
    return _set(context, name, "disabled")


@app.command("enable")
def enable(context: typer.Context, name: Name) -> Envelope:
    """Let a dataset, or one version of it, be used again."""
    return _set(context, name, "active")


def _set(context: typer.Context, name: str, status: str) -> Envelope:
    from weft.pipelines.store.lifecycle import disable_dataset, enable_dataset

    workspace = call_of(context).workspace()
    with writing(workspace.settings, workspace.root) as store:
        changed = (disable_dataset if status == "disabled" else enable_dataset)(workspace, name, store)
    data = [{"id": d.id, "name": d.name, "version": d.version, "status": d.status} for d in changed]
    text = "\n".join(f"{d.name} v{d.version} is {d.status}" for d in changed)
    return Envelope(
        command="dataset",
        data={"datasets": data},
        text=text or f"nothing to do: {many(0, 'version')} changed",
    )
