"""The built-in resolver of datasets that runs registered: it answers with what was published.

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
"""Name of the one rule that the built-in resolver has."""


def resolve_published(
    dataset: Dataset,
    table: TableDef,
    period: Period,
    calendar: Calendar,
    catalog: Catalog,
    *,
    source: ResolverSource,
) -> Resolution:
    """Return the publications that a run of `period` reads.

    Of a period table those of the period and of the periods inside it, else the one of a period around it;
    of any other table the one of the period, else the last one before it.
    """
    known = catalog.published(dataset)
    found = _inside(known, period, calendar) if table.temporal_mode == "period" else ()
    found = found or _own(known, period) or _other(known, table, period, calendar)
    trace = RuleTrace(rule_name=RULE, matched=bool(found), reason="publications of earlier runs")
    told = ResolverDiagnostic(
        resolver_id=PUBLISHED,
        resolver_source=source,
        evaluated_rules=(trace,),
        outcome="success" if found else "no_matching_rule",
        expanded_periods=tuple(p.period for p in found),
    )
    if not found:
        periods = format_list(p.period for p in known)
        error = ResolutionError(
            f"no run has published {dataset} for {period}: there is {periods}",
            code="W1309",
            help=f"run the project that writes {dataset.name!r} for {period} first",
        )
        error.resolution = told
        raise error
    # A table that several periods were published to is one place, and is read once.
    places = {(p.datasource, p.schema, p.table or p.path): _location(p) for p in found}
    return Resolution(locations=tuple(places.values()), diagnostic=told)


def _inside(
    known: Sequence[PublishedLocation], period: Period, calendar: Calendar
) -> tuple[PublishedLocation, ...]:
    wanted = set(list_period_identifiers(period, calendar))
    return tuple(p for p in known if p.period in wanted)


def _own(known: Sequence[PublishedLocation], period: Period) -> tuple[PublishedLocation, ...]:
    return tuple(p for p in known if p.period == period.identifier)


def _other(
    known: Sequence[PublishedLocation], table: TableDef, period: Period, calendar: Calendar
) -> tuple[PublishedLocation, ...]:
    """Return the publication of the smallest period around, or of the last one that began before."""
    placed = [(at, p) for p in known if (at := calendar.find(p.period)) is not None]
    if table.temporal_mode == "period":
        around = [(at.days, p) for at, p in placed if at.covers(period)]
        return (min(around, key=lambda found: found[0])[1],) if around else ()
    before = [(at.start, at.end, p) for at, p in placed if at.start <= period.start]
    return (max(before, key=lambda found: found[:2])[2],) if before else ()


def _form(found: PublishedLocation) -> FrozenMap[str, str]:
    """Return how files are written: their format, and the datasource that has its details."""
    said = {"format": found.format}
    return FrozenMap(said if found.datasource is None else {**said, "datasource": found.datasource})


def _location(found: PublishedLocation) -> Location:
    """Return the place; rows of a table say their period, files are of the period they were published for."""
    is_table = found.table is not None
    return Location(
        datasource_id=str(found.datasource) if is_table else PUBLISHED,
        path=None if is_table else found.path,
        table=found.table,
        schema=found.schema,
        catalog=None if is_table else _form(found),
        period_identifier=found.period,
        data_level=ANY_LEVEL if is_table else RULE,
        resolver_id=PUBLISHED,
        resolver_version=1,
        rule_name=RULE,
    )
