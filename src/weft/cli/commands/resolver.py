"""``weft resolver``: which rule locates the data of a period, and whether the data exists; starts no JVM."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Context, Option, Typer

from weft.cli.call import PeriodOption, find_project, get_call, read_store, unknown_name
from weft.cli.commands.dataset import find_dataset
from weft.cli.envelope import FAILED, INVALID, OK, Envelope
from weft.core.calendar import GREGORIAN
from weft.core.names import format_list, format_table
from weft.errors import ResolutionError, WorkspaceError

if TYPE_CHECKING:
    from weft.io.location import Location
    from weft.pipelines.model.resolver import Resolver, Strategy
    from weft.pipelines.plan.catalog import Catalog
    from weft.pipelines.plan.resolver.rules import ResolverDiagnostic

app = Typer(help="List, show and test resolvers.", no_args_is_help=True)


@app.command("ls")
def ls(context: Context) -> Envelope:
    """List all resolvers."""
    workspace = get_call(context).load().readable
    default = workspace.settings.default_resolver

    def is_default(resolver: Resolver) -> bool:
        return default in (resolver.id, resolver.name) if default else resolver.is_default

    data = [
        {
            "id": r.id,
            "name": r.name,
            "version": r.version,
            "status": r.status,
            "default": is_default(r),
            "rules": [rule.name for rule in r.rules],
        }
        for r in workspace.resolvers
    ]
    rows = [
        (r.name, str(r.version), r.status, "yes" if is_default(r) else "", str(len(r.rules)))
        for r in workspace.resolvers
    ]
    head = ("RESOLVER", "VERSION", "STATUS", "DEFAULT", "RULES")
    text = format_table(head, rows) if rows else "no resolvers"
    return Envelope(command="resolver", data={"resolvers": data}, text=text)


@app.command("show")
def show(context: Context, name: Annotated[str, Argument(metavar="RESOLVER", help="Resolver name or id.")]) -> Envelope:
    """Show the rules of a resolver in order."""
    from weft.pipelines.plan.catalog import Catalog

    workspace = get_call(context).load().readable
    resolver = Catalog.of(workspace).resolver(name)
    if resolver is None:
        names = [r.name for r in workspace.resolvers]
        raise unknown_name("resolver", name, names, empty="add a file to resolvers/")
    lines = [f"{resolver.name} v{resolver.version} ({resolver.status})  {resolver.id}"]
    for i, rule in enumerate(resolver.rules, 1):
        when = "always" if rule.when is None else f"when {rule.when.text}"
        target = _describe_strategy(rule.strategy)
        lines.append(f"  {i} {rule.name}: {when}, data level {rule.data_level}, {target}")
    return Envelope(command="resolver", data=resolver.to_dict(), text="\n".join(lines))


def _describe_strategy(strategy: Strategy) -> str:
    spec = strategy.to_dict()
    if spec["type"] == "catalog":
        return f"asks {spec['endpoint']}"
    name = spec.get("path") or ".".join(filter(None, (spec.get("schema"), spec["table"])))
    return f"{spec['type']} {name} of {spec['datasource_id']}"


@app.command("test")
def try_resolver(
    context: Context,
    dataset: Annotated[str, Argument(metavar="DATASET[@VERSION]", help="Dataset name or id.")],
    *,
    period: PeriodOption = None,
    table: Annotated[
        str | None, Option("--table", metavar="NAME", help="Lookup table; the main table by default.")
    ] = None,
    project: Annotated[
        str | None, Option("--project", metavar="NAME", help="Apply the resolver overrides of this project.")
    ] = None,
    call: Annotated[bool, Option("--call", help="Call the catalog service that knows the location.")] = False,
) -> Envelope:
    """Show where the data of a period is. Lists the rules, the locations, and whether data is missing."""
    from weft.pipelines.plan.resolver.locate import locate
    from weft.pipelines.store.lifecycle import build_catalog

    if period is None:
        raise WorkspaceError("a period is missing", code="W1803", help="add one, for example -p 2026-01")
    workspace = get_call(context).workspace()
    with read_store(workspace) as reader:
        catalog = build_catalog(workspace, reader)
    version = find_dataset(dataset, catalog)
    chosen = None if project is None else find_project(workspace, project)
    calendar = catalog.calendar(GREGORIAN.name if chosen is None else chosen.calendar)
    target = version.main_table if table is None else _find_table(table, version)
    try:
        result = locate(version, target, chosen, catalog, calendar.parse(period), calendar)
    except ResolutionError as error:
        trace = error.resolution
        return Envelope(
            command="resolver",
            data={"diagnostic": None if trace is None else trace.to_dict(), "locations": []},
            diagnostics=error.diagnostics,
            text="" if trace is None else "\n".join(_describe_rules(trace)),
            exit_code=INVALID,
        )
    locations = [_check_location(location, catalog, workspace.root, ask=call) for location in result.locations]
    return Envelope(
        command="resolver",
        data={"diagnostic": result.diagnostic.to_dict(), "locations": locations},
        diagnostics=result.warnings,
        text="\n".join([*_describe_rules(result.diagnostic), *map(_describe_location, locations)]),
        exit_code=OK if all(location["exists"] is not False for location in locations) else FAILED,
    )


def _find_table(name: str, dataset: Any) -> Any:
    tables = {t.name: t for t in dataset.tables} | {
        lookup.alias: lookup.target for lookup in dataset.lookups if hasattr(lookup.target, "columns")
    }
    if name not in tables:
        raise WorkspaceError(
            f"dataset {dataset.name!r} has no table {name!r}", code="W1802", help=f"it has {format_list(tables)}"
        )
    return tables[name]


def _check_location(location: Location, catalog: Catalog, root: Path, *, ask: bool) -> dict[str, Any]:
    """Return a location and whether it exists: None if only a remote system knows."""
    from weft.io.location import full_path, is_local, list_data_files
    from weft.pipelines.plan.resolver.locate import find_datasource
    from weft.pipelines.plan.resolver.service import needs_service, request_location

    # Only on request: a catalog service is remote, and a test of rules should not depend on it.
    if ask and needs_service(location):
        location = request_location(location, root)
    data = location.to_dict() | {"exists": None, "full_path": None, "files": None}
    if location.path is not None:
        path = full_path(location, find_datasource(location, catalog), root)
        data["full_path"] = path
        if is_local(path):
            files = list_data_files(path)
            data |= {"exists": bool(files), "files": len(files)}
    return data


def _describe_rules(trace: ResolverDiagnostic) -> list[str]:
    lines = [f"resolver {trace.resolver_id} ({trace.resolver_source}): {trace.outcome}"]
    marks = {True: "yes", False: "no", None: "-"}
    for rule in trace.evaluated_rules:
        condition = f"  {rule.evaluated_expression}" if rule.evaluated_expression else ""
        lines.append(f"  {marks[rule.matched]:<3} {rule.rule_name}{condition}  ({rule.reason})")
    if trace.expanded_periods:
        lines.append(f"periods {', '.join(trace.expanded_periods)}")
    if trace.missing_periods:
        lines.append(f"missing {', '.join(trace.missing_periods)}")
    return lines


def _describe_location(location: dict[str, Any]) -> str:
    marks = {True: "exists", False: "MISSING", None: "not checked"}
    target = location["full_path"] or location["table"] or (location["catalog"] or {}).get("endpoint", "")
    return f"{location['period_identifier']}  {target}  {marks[location['exists']]}"
