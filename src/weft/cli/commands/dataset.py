"""``weft dataset``: the versions of datasets, from files and from runs; starts no JVM."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Context, Option, Typer

from weft.cli.call import get_call, read_store, unknown_name, write_store
from weft.cli.envelope import Envelope
from weft.core.names import format_list, format_table, quote_for_shell
from weft.errors import WorkspaceError

if TYPE_CHECKING:
    from weft.pipelines.model.dataset import Dataset, LookupDef
    from weft.pipelines.plan.catalog import Catalog

app = Typer(help="List, show, publish, disable and enable datasets.", no_args_is_help=True)
Name = Annotated[str, Argument(metavar="NAME[@VERSION]", help="Dataset name or id.")]


@app.command("ls")
def ls(context: Context, *, ids: Annotated[bool, Option("--ids", help="Show the ids too.")] = False) -> Envelope:
    """List all datasets and their versions."""
    datasets = _all_versions(_read_catalog(context))
    head = ("DATASET", "VERSION", "STATUS", "FROM", "COLUMNS", *(("ID",) if ids else ()))
    rows = [
        (d.name, str(d.version), d.status, d.origin, str(len(d.main_table.columns)), *((d.id,) if ids else ()))
        for d in datasets
    ]
    data = [
        {"id": d.id, "name": d.name, "version": d.version, "status": d.status, "origin": d.origin} for d in datasets
    ]
    text = format_table(head, rows) if rows else "no datasets"
    return Envelope(command="dataset", data={"datasets": data}, text=text)


def _read_catalog(context: Context) -> Catalog:
    from weft.pipelines.store.lifecycle import build_catalog

    workspace = get_call(context).workspace()
    with read_store(workspace) as reader:
        return build_catalog(workspace, reader)


def _all_versions(catalog: Catalog) -> list[Dataset]:
    # A file takes precedence over the registered version: it may have been edited since.
    datasets = {(d.id, d.version): d for d in (r.dataset for r in catalog.registered)}
    datasets |= {(d.id, d.version): d for d in catalog.workspace.datasets}
    return sorted(datasets.values(), key=lambda d: (d.name, d.version))


@app.command("show")
def show(context: Context, name: Name) -> Envelope:
    """Show a dataset: columns, keys, lookups and published data."""
    catalog = _read_catalog(context)
    dataset = find_dataset(name, catalog)
    published = [
        {"period": p.period, "path": p.path, "format": p.format, "run_id": p.run_id, "version": p.version}
        for p in catalog.published(dataset)
    ]
    data: dict[str, Any] = dataset.to_dict() | {"origin": dataset.origin, "published": published}
    return Envelope(command="dataset", data=data, text=_describe(dataset, published))


def find_dataset(spec: str, catalog: Catalog) -> Dataset:
    """Return the dataset of NAME or NAME@VERSION, disabled or not; the newest version by default."""
    name, at, number = spec.rpartition("@") if "@" in spec else (spec, "", "")
    if at and not number.isdigit():
        raise WorkspaceError(f"invalid version in {spec!r}", code="W1803", help="write it as gl@3")
    versions = catalog.versions(name)
    if not versions:
        names = dict.fromkeys(d.name for d in _all_versions(catalog))
        raise unknown_name("dataset", spec, names, empty="add a file to datasets/")
    matches = [d for d in versions if not number or d.version == int(number)]
    if not matches:
        numbers = format_list(str(d.version) for d in versions)
        raise WorkspaceError(f"unknown dataset version {spec!r}", code="W1802", help=f"its versions are {numbers}")
    return matches[-1]


def _describe(dataset: Dataset, published: list[dict[str, Any]]) -> str:
    from weft.pipelines.model.dataset import format_type

    lines = [
        f"{dataset.name} v{dataset.version} ({dataset.status}, from {dataset.origin})  {dataset.id}",
        f"resolver {dataset.resolver_id or 'default'}, key {', '.join(dataset.natural_key_columns) or 'none'}",
    ]
    for table in dataset.tables:
        lines.append(f"{table.name} ({table.temporal_mode})")
        width = max(len(c.name) for c in table.columns)
        lines += [f"  {c.name:<{width}}  {format_type(c.dtype)}" for c in table.columns]
    for lookup in dataset.lookups:
        on = " AND ".join(f"{here} = {lookup.alias}.{there}" for here, there in lookup.join_conditions)
        lines.append(f"lookup {lookup.alias} on {on}" + _describe_target(lookup))
    lines += [f"published {p['period']}: {p['path']} (v{p['version']})" for p in published]
    return "\n".join(lines)


def _describe_target(lookup: LookupDef) -> str:
    """Return the dataset of a lookup; nothing for a lookup in a table of its own dataset."""
    target = lookup.target
    return "" if hasattr(target, "columns") else f", dataset {target}"


@app.command("publish")
def publish(
    context: Context, name: Annotated[str, Argument(metavar="FILE|NAME", help="Dataset file, name or id.")]
) -> Envelope:
    """Publish a dataset file as a version. Reports the projects that the version breaks."""
    from weft.pipelines.store.publishing import publish_dataset

    workspace = get_call(context).workspace()
    source: str | Path = name
    if name.endswith((".yml", ".yaml")):
        source = next((p.resolve() for p in (Path(name), workspace.root / name) if p.exists()), Path(name))
    with write_store(workspace) as store:
        done = publish_dataset(workspace, source, store)
    dataset, impact = done.dataset, done.impact
    conflicts = [
        {"project": str(project), "conflict": report.to_dict()} for project, report in dict(impact.conflicts).items()
    ]
    result = "published" if done.is_new else "was published before"
    lines = [f"{dataset.name} v{dataset.version} {result}"]
    lines += [f"{c['project']} is in conflict with it" for c in conflicts]
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
        text="\n".join(lines),
        next=tuple(f"weft project show {quote_for_shell(c['project'])}" for c in conflicts),
    )


@app.command("disable")
def disable(context: Context, name: Name) -> Envelope:
    """Disable a dataset or one version of it. Projects cannot use it until it is enabled."""
    from weft.pipelines.store.publishing import disable_dataset

    return _change_status(context, name, disable_dataset)


@app.command("enable")
def enable(context: Context, name: Name) -> Envelope:
    """Enable a disabled dataset or one version of it."""
    from weft.pipelines.store.publishing import enable_dataset

    return _change_status(context, name, enable_dataset)


def _change_status(context: Context, name: str, change: Any) -> Envelope:
    workspace = get_call(context).workspace()
    with write_store(workspace) as store:
        datasets: tuple[Dataset, ...] = change(workspace, name, store)
    data = [{"id": d.id, "name": d.name, "version": d.version, "status": d.status} for d in datasets]
    text = "\n".join(f"{d.name} v{d.version} is {d.status}" for d in datasets)
    return Envelope(command="dataset", data={"datasets": data}, text=text or "no version changed")
