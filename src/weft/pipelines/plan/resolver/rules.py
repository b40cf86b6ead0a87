"""Rules in order: the first that matches locates the data of a table and a period.

::

    resolver, table orders, period 2026-Q1
      legacy    period.start_date < DATE '2025-01-01'     false
      current   period.start_date >= DATE '2025-01-01'    true -> by month -> 3 locations
      fallback                                            not evaluated: an earlier rule matched

The period of a run is expanded to the periods of the data.

::

    run 2026-Q1, data_level: month     ->  2026-01, 2026-02, 2026-03
    run 2026-Q1, data_level: any       ->  2026-Q1
    run 2026-01, data_level: year      ->  2026                       the enclosing period
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

from weft.core.calendar import Calendar, Period
from weft.core.documents import OPEN_WORD, Document
from weft.core.frozen import FrozenMap
from weft.core.names import find_similar, format_list
from weft.core.source import Source, SourceMap
from weft.errors import Diagnostic, ResolutionError
from weft.io.location import ANY_LEVEL, Location
from weft.pipelines.model.dataset import Dataset, TableDef
from weft.pipelines.model.resolver import CatalogStrategy, PathStrategy, Resolver, Rule
from weft.pipelines.model.values import ResolverSource
from weft.pipelines.plan.resolver.conditions import check_condition, evaluate_condition
from weft.pipelines.plan.resolver.templates import Kind, render, tokens_for

Outcome = Literal["success", "no_matching_rule", "period_expansion_failure", "template_render_error"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleTrace(Document):
    """The result of one rule; `matched` is None when it was not evaluated."""

    UNLISTED: ClassVar = ("evaluated_expression",)

    rule_name: str
    matched: bool | None
    reason: str
    evaluated_expression: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolverDiagnostic(Document):
    """How a resolver located the data: the result of every rule, and the expanded periods."""

    resolver_id: str
    resolver_source: Annotated[ResolverSource, OPEN_WORD]
    evaluated_rules: tuple[RuleTrace, ...] = ()
    outcome: Outcome
    expanded_periods: tuple[str, ...] = ()
    missing_periods: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """The locations of the data of a table for one period, and warnings."""

    locations: tuple[Location, ...]
    diagnostic: ResolverDiagnostic
    warnings: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Expansion:
    """The periods whose data is read, and the date ranges that no period of the level covers."""

    periods: tuple[Period, ...]
    gaps: tuple[str, ...] = ()
    warning: Diagnostic | None = None


def expand(rule: Rule, period: Period, calendar: Calendar) -> Expansion:
    """Return the periods of the rule's level that the run reads; raise `ResolutionError` when there are none."""
    level = rule.data_level
    at = rule.at.of("data_level")
    if level in (ANY_LEVEL, period.level):
        return Expansion(periods=(period,))
    names = [known.name for known in calendar.levels]
    if level not in names:
        close = find_similar(level, names, most=1)
        raise _no_expansion(
            f"rule {rule.name!r} reads data by {level!r}, which is not a level of the calendar {calendar.name!r}",
            f"did you mean {close[0]!r}?" if close else f"levels are {format_list(names)}, or 'any'",
            at,
        )
    if level in calendar.below(period.level):
        return _finer(rule, period, calendar, at)
    if period.level in calendar.below(level):
        around = calendar.parent(period, level)
        if around is None:
            raise _no_expansion(
                f"the calendar {calendar.name!r} has no {level} around {period.identifier!r}",
                f"add the {level} to the calendar, with a start_date and an end_date",
                at,
            )
        return Expansion(periods=(around,))
    raise _no_expansion(
        f"rule {rule.name!r} reads data by {level}, but a {period.level} neither contains a {level} nor is part of one",
        f"levels below {period.level!r}: {format_list(calendar.below(period.level))}",
        at,
    )


def _finer(rule: Rule, period: Period, calendar: Calendar, at: Source | None) -> Expansion:
    level = rule.data_level
    inside = calendar.within(period.start, period.end, level)
    if not inside:
        raise _no_expansion(
            f"the calendar {calendar.name!r} has no {level} inside {period.identifier!r}",
            f"add its periods of level {level!r}, each with a start_date and an end_date",
            at,
        )
    gaps = tuple(f"{first}..{last}" for first, last in calendar.gaps(level, period))
    if not gaps:
        return Expansion(periods=inside)
    return Expansion(
        periods=inside,
        gaps=gaps,
        warning=Diagnostic(
            "W1308",
            f"{period.identifier} is read by {level}, and the calendar {calendar.name!r} has no {level} "
            f"for {format_list(gaps)}",
            help="add the missing periods to the calendar, or the rows of those days are not read",
            severity="warning",
            at=at,
        ),
    )


def _no_expansion(message: str, help: str, at: Source | None) -> ResolutionError:
    return ResolutionError(message, code="W1307", help=help, at=at)


_NOT_EVALUATED = "not evaluated: an earlier rule matched"


def resolve_table(
    resolver: Resolver, dataset: Dataset, table: TableDef, period: Period, calendar: Calendar, *, source: ResolverSource
) -> Resolution:
    """Return the locations of the data of a table for a period, with the result of each rule.

    A `ResolutionError` has the same diagnostic in `resolution`.
    """
    diagnostic = ResolverDiagnostic(resolver_id=resolver.id, resolver_source=source, outcome="no_matching_rule")
    traces: list[RuleTrace] = []
    matched: Rule | None = None
    for rule in resolver.rules:
        # Rules after the match are listed too: the trace answers why a rule was not used.
        if matched is not None:
            traces.append(RuleTrace(rule_name=rule.name, matched=None, reason=_NOT_EVALUATED))
            continue
        try:
            trace = _trace_rule(rule, dataset, table, period)
        except ResolutionError as failure:
            # A rule that fails ends the search: a later rule would read data that the user did not choose.
            reason = f"fails: {failure.message}"
            traces.append(RuleTrace(rule_name=rule.name, matched=None, reason=reason, evaluated_expression=_text(rule)))
            raise _attach_diagnostic(failure, replace(diagnostic, evaluated_rules=tuple(traces))) from failure.__cause__
        traces.append(trace)
        matched = rule if trace.matched else None
    diagnostic = replace(diagnostic, evaluated_rules=tuple(traces))
    if matched is None:
        raise _attach_diagnostic(_no_match(resolver, dataset, table, period, diagnostic), diagnostic)
    return _locate(resolver, matched, dataset, table, period, calendar, diagnostic)


def _text(rule: Rule) -> str:
    return "" if rule.when is None else rule.when.text


def _trace_rule(rule: Rule, dataset: Dataset, table: TableDef, period: Period) -> RuleTrace:
    typed = check_condition(rule)
    if typed is None:
        return RuleTrace(rule_name=rule.name, matched=True, reason="has no condition and always matches")
    value = evaluate_condition(rule, typed, dataset, table, period)
    word = {True: "true", False: "false", None: "NULL"}[value]
    return RuleTrace(
        rule_name=rule.name, matched=value is True, reason=f"its condition is {word}", evaluated_expression=_text(rule)
    )


def _attach_diagnostic(error: ResolutionError, diagnostic: ResolverDiagnostic) -> ResolutionError:
    error.resolution = diagnostic
    return error


def _no_match(
    resolver: Resolver, dataset: Dataset, table: TableDef, period: Period, diagnostic: ResolverDiagnostic
) -> ResolutionError:
    rules = "\n".join(f"{r.rule_name}: {r.reason}: {r.evaluated_expression}" for r in diagnostic.evaluated_rules)
    return ResolutionError(
        f"no rule of resolver {resolver.id!r} matches table {table.name!r} of {dataset} in {period}",
        code="W1305",
        help=f"{rules}\nadd a rule for it, or a last rule without `when`",
        at=resolver.at.of("rules"),
    )


def _locate(
    resolver: Resolver,
    rule: Rule,
    dataset: Dataset,
    table: TableDef,
    period: Period,
    calendar: Calendar,
    diagnostic: ResolverDiagnostic,
) -> Resolution:
    outcome: Outcome = "period_expansion_failure"  # until the periods are known
    try:
        expansion = expand(rule, period, calendar)
        diagnostic = replace(
            diagnostic, expanded_periods=tuple(p.identifier for p in expansion.periods), missing_periods=expansion.gaps
        )
        outcome = "template_render_error"
        locations = tuple(_location(resolver, rule, dataset, table, p) for p in expansion.periods)
    except ResolutionError as failure:
        raise _attach_diagnostic(failure, replace(diagnostic, outcome=outcome)) from failure.__cause__
    warnings = () if expansion.warning is None else (expansion.warning,)
    return Resolution(locations=locations, diagnostic=replace(diagnostic, outcome="success"), warnings=warnings)


def _location(resolver: Resolver, rule: Rule, dataset: Dataset, table: TableDef, period: Period) -> Location:
    strategy = rule.strategy
    writer = _Writer(dataset, table, period, strategy.datasource or "", strategy.at)
    at = Location(
        datasource_id=strategy.datasource or "",
        period_identifier=period.identifier,
        data_level=rule.data_level,
        resolver_id=resolver.id,
        resolver_version=resolver.version,
        rule_name=rule.name,
        missing=rule.missing,
    )
    if isinstance(strategy, PathStrategy):
        at = replace(at, path=writer.text(strategy.path, "path", "path"))
    elif isinstance(strategy, CatalogStrategy):
        at = replace(at, catalog=writer.request(strategy))
    else:
        at = replace(
            at,
            table=writer.text(strategy.table, "table", "table"),
            schema=writer.text(strategy.schema, "table", "schema") if strategy.schema else None,
        )
    # After all templates, so that the error has every finding of the strategy.
    if writer.problems:
        raise ResolutionError(writer.problems)
    return at


class _Writer:
    """Renders the templates of a strategy and collects the findings."""

    def __init__(self, dataset: Dataset, table: TableDef, period: Period, datasource_id: str, sites: SourceMap) -> None:
        self.tokens = tokens_for(dataset, table, period, datasource_id=datasource_id)
        self.level = period.level
        self.sites = sites
        self.problems: list[Diagnostic] = []

    def text(self, template: str, kind: Kind, key: str) -> str:
        try:
            return render(template, self.tokens, kind=kind, at=self.sites.of(key), level=self.level)
        except ResolutionError as failure:
            self.problems += failure.diagnostics
            return ""

    def request(self, strategy: CatalogStrategy) -> FrozenMap[str, object]:
        """Return the request for the location; only the endpoint is URL-encoded here."""
        return FrozenMap(
            endpoint=self.text(strategy.endpoint, "url", "endpoint"),
            method=strategy.method,
            auth=strategy.auth,
            params=self.texts(strategy.params, "params"),
            headers=self.texts(strategy.headers, "headers"),
        )

    def texts(self, templates: FrozenMap[str, str], key: str) -> FrozenMap[str, str]:
        return FrozenMap({n: self.text(str(t), "text", f"{key}.{n}") for n, t in templates.items()})
