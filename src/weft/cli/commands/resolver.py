"""``weft resolver``: which rule finds the data of a period, and whether it is there; nothing is started."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli.call import call_of, project_of, reading
from weft.cli.commands.dataset import one
from weft.cli.envelope import FAILED, INVALID, OK, Envelope
from weft.cli.said import Period
from weft.cli.terminal import table
from weft.core.calendar import GREGORIAN
from weft.core.names import find_similar, format_list
from weft.errors import ResolutionError, WorkspaceError

if TYPE_CHECKING:
    from weft.io.location import Location
    from weft.pipelines.model.resolver import Resolver, Strategy
    from weft.pipelines.plan.catalog import Catalog
    from weft.pipelines.plan.resolver.rules import ResolverDiagnostic

app = typer.Typer(help="List, show and try resolvers.", no_args_is_help=True)


@app.command("ls")
def ls(context: typer.Context) -> Envelope:
    """List the resolvers."""
    workspace = call_of(context).loaded().readable
    default = workspace.settings.default_resolver

    def is_default(resolver: Resolver) -> bool:
        return default in (resolver.id, resolver.name) if default else resolver.is_default

    data = [
        {"id": r.id, "name": r.name, "version": r.version, "status": r.status, "default": is_default(r), "rules": [rule.name for rule in r.rules]}
        for r in workspace.resolvers
    ]  # fmt: skip
    rows = [
        (r.name, str(r.version), r.status, "yes" if is_default(r) else "", str(len(r.rules)))
        for r in workspace.resolvers
    ]
    text = table(("RESOLVER", "VERSION", "STATUS", "DEFAULT", "RULES"), rows) if rows else "no resolvers"
    return Envelope(command="resolver", data={"resolvers": data}, text=text)


@app.command("show")
def show(context: typer.Context, name: Annotated[str, typer.Argument(help="Name or id.")]) -> Envelope:
    """Show the rules of a resolver in their order."""
    from weft.pipelines.plan.catalog import Catalog

    workspace = call_of(context).loaded().readable
    found = Catalog.of(workspace).resolver(name)
    if found is None:
        names = [r.name for r in workspace.resolvers]
        close = find_similar(name, names, most=1)
        raise WorkspaceError(
            f"there is no resolver {name!r}",
            code="W1802",
            help=f"did you mean {close[0]!r}?" if close else f"resolvers are {format_list(names) or 'none'}",
        )
    lines = [f"{found.name} v{found.version} ({found.status})  {found.id}"]
    for i, rule in enumerate(found.rules, 1):
        when = "always" if rule.when is None else f"when {rule.when.text}"
        lines.append(f"  {i} {rule.name}: {when}, data level {rule.data_level}, {_leads_to(rule.strategy)}")
    return Envelope(command="resolver", data=found.to_dict(), text="\n".join(lines))


def _leads_to(strategy: Strategy) -> str:
    said = strategy.to_dict()
    if said["type"] == "catalog":
        return f"asks {said['endpoint']}"
    name = said.get("path") or ".".join(filter(None, (said.get("schema"), said["table"])))
    return f"{said['type']} {name} of {said['datasource_id']}"


@app.command("test")
def tried(
    context: typer.Context,
    dataset: Annotated[str, typer.Argument(metavar="DATASET[@VERSION]", help="Name or id.")],
    *,
    period: Period = None,
    name: Annotated[str | None, typer.Option("--table", help="A lookup table; default the main one.")] = None,
    project: Annotated[
        str | None, typer.Option("--project", help="As a run of this project sees it.")
    ] = None,
    call: Annotated[bool, typer.Option("--call", help="Ask services that know the place.")] = False,
) -> Envelope:
    """Show how the data of a dataset is found for a period: rules, places, what is missing."""
    from weft.pipelines.plan.resolver.locate import locate
    from weft.pipelines.store.lifecycle import build_catalog

    if period is None:
        raise WorkspaceError("say for which period", code="W1803", help="as in -p 2026-01")
    workspace = call_of(context).workspace()
    with reading(workspace.settings, workspace.root) as reader:
        catalog = build_catalog(workspace, reader)
    found = one(dataset, catalog)
    seen = None if project is None else project_of(workspace, project)
    calendar = catalog.calendar(GREGORIAN.name if seen is None else seen.calendar)
    wanted = found.main_table if name is None else _table(name, found)
    try:
        answer = locate(found, wanted, seen, catalog, calendar.parse(period), calendar)
    except ResolutionError as problem:
        how = problem.resolution
        return Envelope(
            command="resolver",
            data={"diagnostic": None if how is None else how.to_dict(), "locations": []},
            diagnostics=problem.diagnostics,
            text="" if how is None else "\n".join(_traced(how)),
            exit_code=INVALID,
        )
    places = [_place(location, catalog, workspace.root, ask=call) for location in answer.locations]
    there = all(place["exists"] is not False for place in places)
    return Envelope(
        command="resolver",
        data={"diagnostic": answer.diagnostic.to_dict(), "locations": places},
        diagnostics=answer.warnings,
        text="\n".join([*_traced(answer.diagnostic), *map(_shown, places)]),
        exit_code=OK if there else FAILED,
    )


def _table(name: str, dataset: Any) -> Any:
    known = {t.name: t for t in dataset.tables} | {
        lookup.alias: lookup.target for lookup in dataset.lookups if hasattr(lookup.target, "columns")
    }
    if name not in known:
        raise WorkspaceError(
            f"dataset {dataset.name!r} has no table {name!r}",
            code="W1802",
            help=f"it has {format_list(known)}",
        )
    return known[name]


def _place(location: Location, catalog: Catalog, root: Path, *, ask: bool) -> dict[str, Any]:
    """Return a location with whether it is there; None when that is not known without asking somebody."""
    from weft.io.paths import full_path, is_local, list_data_files
    from weft.pipelines.plan.resolver.locate import find_datasource
    from weft.pipelines.plan.resolver.service import needs_service, request_location

    if ask and needs_service(location):
        location = request_location(location, root)
    told = location.to_dict() | {"exists": None, "full_path": None, "files": None}
    if location.path is not None:
        whole = full_path(location, find_datasource(location, catalog), root)
        told["full_path"] = whole
        if is_local(whole):
            files = list_data_files(whole)
            told |= {"exists": bool(files), "files": len(files)}
    return told


def _traced(how: ResolverDiagnostic) -> list[str]:
    lines = [f"resolver {how.resolver_id} ({how.resolver_source}): {how.outcome}"]
    marks = {True: "yes", False: "no", None: "-"}
    for rule in how.evaluated_rules:
        said = f"  {rule.evaluated_expression}" if rule.evaluated_expression else ""
        lines.append(f"  {marks[rule.matched]:<3} {rule.rule_name}{said}  ({rule.reason})")
    if how.expanded_periods:
        lines.append(f"periods {', '.join(how.expanded_periods)}")
    if how.missing_periods:
        lines.append(f"missing {', '.join(how.missing_periods)}")
    return lines


def _shown(place: dict[str, Any]) -> str:
    marks = {True: "there", False: "NOT THERE", None: "not looked at"}
    where = place["full_path"] or place["table"] or (place["catalog"] or {}).get("endpoint", "")
    return f"{place['period_identifier']}  {where}  {marks[place['exists']]}"
