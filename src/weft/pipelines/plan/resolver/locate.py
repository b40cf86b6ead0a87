"""From a dataset in a project to the places that hold its data: choose the resolver, ask it, check the answer."""

from __future__ import annotations

from weft.core.names import listed, near
from weft.core.period import Calendar, Period
from weft.core.source import Source
from weft.errors import ResolutionError
from weft.io.datasource import DataSource
from weft.io.location import PUBLISHED, Location
from weft.pipelines.model.dataset import Dataset, TableDef
from weft.pipelines.model.project import Project
from weft.pipelines.plan.catalog import Catalog
from weft.pipelines.plan.resolver.precedence import Chosen, resolver_for
from weft.pipelines.plan.resolver.published import resolve_published
from weft.pipelines.plan.resolver.resolution import Resolution
from weft.pipelines.plan.resolver.rules import resolve_table


def locate(
    dataset: Dataset,
    table: TableDef,
    project: Project | None,
    catalog: Catalog,
    period: Period,
    calendar: Calendar,
    *,
    chosen: Chosen | None = None,
) -> Resolution:
    """Return where the data of a table lies in a run of `period`.

    Raises `ResolutionError`, also when a datasource that is needed is missing or disabled.
    """
    by = chosen or resolver_for(dataset, project, catalog)
    if by.resolver is None:
        known = resolve_published(dataset, table, period, calendar, catalog, source=by.source)
        for location in known.locations:
            datasource_of(location, catalog)
        return known
    found = resolve_table(by.resolver, dataset, table, period, calendar, source=by.source)
    rule = next(r for r in by.resolver.rules if r.name == found.locations[0].rule_name)
    for location in found.locations:
        if location.datasource_id:
            datasource_of(location, catalog, at=rule.strategy.at.of("datasource_id"))
    return found


def datasource_of(location: Location, catalog: Catalog, *, at: Source | None = None) -> DataSource | None:
    """Return the datasource of a location, None when it needs none; a missing or disabled one raises."""
    said = location.datasource_id
    if said in ("", PUBLISHED):
        return None
    found = catalog.datasource(said)
    if found is None:
        names = [s.id for s in catalog.workspace.datasources]
        close = near(said, names, most=1)
        raise ResolutionError(
            f"rule {location.rule_name!r} of resolver {location.resolver_id!r} reads from {said!r}, which is no datasource",
            code="W1020",
            help=f"did you mean {close[0]!r}?" if close else f"datasources are {listed(names)}",
            at=at,
        )
    if found.status == "disabled":
        raise ResolutionError(
            f"datasource {found.id!r} is disabled, and rule {location.rule_name!r} of resolver "
            f"{location.resolver_id!r} reads from it",
            code="W1315",
            help="set `status: active` in its file, or let the rule read from another datasource",
            at=at,
        )
    return found
