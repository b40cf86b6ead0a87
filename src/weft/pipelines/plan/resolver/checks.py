"""What can be said about a resolver before anybody asks it: conditions, templates, rules nobody reaches."""

from __future__ import annotations

from collections.abc import Iterator

from weft.core.source import Source
from weft.errors import Diagnostic, ResolutionError
from weft.pipelines.model.resolver import PathStrategy, Resolver, Rule, TableStrategy
from weft.pipelines.plan.resolver.conditions import checked_condition
from weft.pipelines.plan.resolver.templates import template_problems


def check_resolver(resolver: Resolver) -> tuple[Diagnostic, ...]:
    """Return every finding about the rules of a resolver, errors and warnings.

    >>> from weft.pipelines.model.reference import Said
    >>> path = PathStrategy(datasource="files", path="{{YYY}}.csv")
    >>> rules = (
    ...     Rule(name="all", strategy=path),
    ...     Rule(name="old", strategy=path, when=Said("period < '2025'")),
    ... )
    >>> for found in check_resolver(Resolver(id="r", name="r", version=1, status="active", rules=rules)):
    ...     print(found.severity, found.code, found.message)
    error W1310 there is no token 'YYY'
    warning W1306 rule 'old' is never reached: rule 'all' before it has no condition
    error W1312 identifiers of periods are names and have no order: '2024-01' is no part of '2024-Q1' as a text
    error W1310 there is no token 'YYY'
    """
    found: list[Diagnostic] = []
    open_rule: Rule | None = None
    for rule in resolver.rules:
        if open_rule is not None:
            found.append(_never_reached(rule, open_rule))
        elif rule.when is None:
            open_rule = rule
        try:
            checked_condition(rule)
        except ResolutionError as failure:
            found.extend(failure.diagnostics)
        for template, at in _templates(rule):
            found.extend(template_problems(template, at))
    return tuple(found)


def _never_reached(rule: Rule, before: Rule) -> Diagnostic:
    return Diagnostic(
        "W1306",
        f"rule {rule.name!r} is never reached: rule {before.name!r} before it has no condition",
        help=f"move {before.name!r} to the end, or give it a `when`",
        severity="warning",
        at=rule.at.of("name"),
    )


def _templates(rule: Rule) -> Iterator[tuple[str, Source | None]]:
    strategy = rule.strategy
    if isinstance(strategy, PathStrategy):
        yield strategy.path, strategy.at.of("path")
    elif isinstance(strategy, TableStrategy):
        yield strategy.table, strategy.at.of("table")
        yield strategy.schema, strategy.at.of("schema")
    else:
        yield strategy.endpoint, strategy.at.of("endpoint")
        for key in ("params", "headers"):
            for name, text in getattr(strategy, key).items():
                yield str(text), strategy.at.of(f"{key}.{name}")
