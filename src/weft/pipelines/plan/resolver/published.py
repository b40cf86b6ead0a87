"""The built-in resolver of registered datasets: it returns what runs have published.

::

    publications 2026-01 v1, 2026-02 v2, 2026-02 v3;   dataset version 2, run 2026-Q1   ->  2026-01 v1, 2026-02 v2
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.core.calendar import Calendar, Period
from weft.core.frozen import FrozenMap
from weft.core.names import format_list
from weft.errors import ResolutionError
from weft.io.location import ANY_LEVEL, PUBLISHED, Location
from weft.pipelines.model.dataset import Dataset, TableDef
from weft.pipelines.model.values import ResolverSource
from weft.pipelines.plan.catalog import Catalog, PublishedLocation
from weft.pipelines.plan.reads import list_period_identifiers
from weft.pipelines.plan.resolver.rules import Resolution, ResolverDiagnostic, RuleTrace

RULE = "published"
"""Name of the only rule of the built-in resolver."""


def resolve_published(
    dataset: Dataset, table: TableDef, period: Period, calendar: Calendar, catalog: Catalog, *, source: ResolverSource
) -> Resolution:
    """Return the publications that a run of `period` reads.

    For a period table, these are the publications of the period and of the periods inside it, else that of an enclosing
    period; for any other table, that of the period, else the last one before it.
    """
    known = catalog.published(dataset)
    publications = _inside(known, period, calendar) if table.temporal_mode == "period" else ()
    own = tuple(p for p in known if p.period == period.identifier)
    publications = publications or own or _other(known, table, period, calendar)
    trace = RuleTrace(rule_name=RULE, matched=bool(publications), reason="publications of earlier runs")
    diagnostic = ResolverDiagnostic(
        resolver_id=PUBLISHED,
        resolver_source=source,
        evaluated_rules=(trace,),
        outcome="success" if publications else "no_matching_rule",
        expanded_periods=tuple(p.period for p in publications),
    )
    if not publications:
        periods = format_list(p.period for p in known)
        error = ResolutionError(
            f"no run has published {dataset} for {period}; published periods: {periods}",
            code="W1309",
            help=f"run the project that writes {dataset.name!r} for {period} first",
        )
        error.resolution = diagnostic
        raise error
    # A table with several published periods is one location and is read once.
    places = {(p.datasource, p.schema, p.table or p.path): _location(p) for p in publications}
    return Resolution(locations=tuple(places.values()), diagnostic=diagnostic)


def _inside(known: Sequence[PublishedLocation], period: Period, calendar: Calendar) -> tuple[PublishedLocation, ...]:
    identifiers = set(list_period_identifiers(period, calendar))
    return tuple(p for p in known if p.period in identifiers)


def _other(
    known: Sequence[PublishedLocation], table: TableDef, period: Period, calendar: Calendar
) -> tuple[PublishedLocation, ...]:
    """Return the publication of the smallest enclosing period, or of the last period that starts before."""
    placed = [(at, p) for p in known if (at := calendar.find(p.period)) is not None]
    # Rows of another period would not pass the filter of a period table, so only an enclosing period can have them.
    if table.temporal_mode == "period":
        around = [(at.days, p) for at, p in placed if at.covers(period)]
        return (min(around, key=lambda item: item[0])[1],) if around else ()
    before = [(at.start, at.end, p) for at, p in placed if at.start <= period.start]
    return (max(before, key=lambda item: item[:2])[2],) if before else ()


def _location(publication: PublishedLocation) -> Location:
    """Return the location; a table has a period column, files belong to the period they were published for."""
    is_table = publication.table is not None
    files = {"format": publication.format}
    if publication.datasource is not None:
        files["datasource"] = publication.datasource  # has the options of the format
    return Location(
        datasource_id=str(publication.datasource) if is_table else PUBLISHED,
        path=None if is_table else publication.path,
        table=publication.table,
        schema=publication.schema,
        catalog=None if is_table else FrozenMap(files),
        period_identifier=publication.period,
        data_level=ANY_LEVEL if is_table else RULE,
        resolver_id=PUBLISHED,
        resolver_version=1,
        rule_name=RULE,
    )
