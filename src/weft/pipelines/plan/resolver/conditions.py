"""Conditions of rules: expressions over a period, a table and a dataset.

::

    when: period.start_date >= DATE '2025-01-01' AND table IN ('orders', 'items')

Period identifiers have no order: ``"2024-01" >= "2024-Q1"`` is false although January is in the quarter.  They can only be
compared for equality.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from weft.core.calendar import Period
from weft.core.names import suggest
from weft.core.source import Source
from weft.core.types import BOOLEAN, DATE, LONG, STRING, DType
from weft.errors import Diagnostic, EvaluationError, ExpressionError, ResolutionError
from weft.expr import Between, Binary, Call, Column, Expr, Like, Ref, Typed, check, evaluate, parse, references, walk
from weft.pipelines.model.dataset import Dataset, TableDef
from weft.pipelines.model.resolver import Rule

_FIELDS: dict[str, dict[str, DType]] = {
    "period": {"identifier": STRING, "level": STRING, "start_date": DATE, "end_date": DATE},
    "table": {"name": STRING},
    "dataset": {"id": STRING, "name": STRING, "version": LONG},
}
# The field that a name without a field refers to.
_BARE = {"period": "identifier", "table": "name", "dataset": "name"}
_DATA_LEVEL = "data_level"
_ORDERING = frozenset({"<", "<=", ">", ">="})
_ORDERED_CALLS = frozenset({"MIN", "MAX"})


@dataclass(frozen=True, slots=True)
class RuleScope:
    """The names that a condition can use.

    >>> RuleScope().resolve("period", "start_date").slot
    'period.start_date'
    >>> print(RuleScope().resolve(None, "tabel"))
    error[W0207]: unknown name 'tabel'
     = help: did you mean 'table'?
    """

    def resolve(self, qualifier: str | None, name: str) -> Column | Diagnostic:
        """Return the column of a name, or a finding when it is unknown."""
        text = name if qualifier is None else f"{qualifier}.{name}"
        if text == _DATA_LEVEL:
            return Column(_DATA_LEVEL, STRING, nullable=False)
        thing, field = (text, _BARE.get(text, "")) if qualifier is None else (qualifier, name)
        dtype = _FIELDS.get(thing, {}).get(field)
        if dtype is not None:
            return Column(f"{thing}.{field}", dtype, nullable=False)
        return Diagnostic("W0207", f"unknown name {text!r}", help=suggest(text, self.names(), "names are"))

    def names(self) -> tuple[str, ...]:
        """Return all names that can be used."""
        fields = [f"{thing}.{field}" for thing, inner in _FIELDS.items() for field in inner]
        return (*_FIELDS, *fields, _DATA_LEVEL)


def check_condition(rule: Rule) -> Typed | None:
    """Return the checked condition of a rule, None when it has none; raise `ResolutionError` when it is invalid."""
    if rule.when is None:
        return None
    try:
        expr = parse(rule.when.text, source=rule.when.at)
        # TODAY would locate other data for the same period on another day.
        typed = check(expr, RuleScope(), expect=BOOLEAN, today=False)
    except ExpressionError as cause:
        raise ResolutionError([_rule_finding(rule, finding) for finding in cause.diagnostics]) from cause
    # A comparison by order is valid for strings, but gives a wrong result without any error.
    ordered = [_identifier_ordered(ref) for ref in _ordered_identifiers(expr)]
    if ordered:
        raise ResolutionError(ordered)
    return typed


def _rule_finding(rule: Rule, finding: Diagnostic) -> Diagnostic:
    text = "" if rule.when is None else rule.when.text
    return Diagnostic(
        "W1304",
        f"the condition of rule {rule.name!r} fails: {finding.message}: {text}",
        help=finding.help or "correct the condition",
        at=finding.at or (None if rule.when is None else rule.when.at),
    )


def _ordered_identifiers(expr: Expr) -> Iterator[Ref]:
    """Yield the period identifiers that are compared by order or matched with a pattern."""
    for node in walk(expr):
        ordering = (
            (isinstance(node, Binary) and node.op in _ORDERING)
            or isinstance(node, Between | Like)
            or (isinstance(node, Call) and node.name in _ORDERED_CALLS)
        )
        if ordering:
            yield from (ref for ref in references(node) if _is_identifier(ref))


def _is_identifier(ref: Ref) -> bool:
    column = RuleScope().resolve(ref.qualifier, ref.name)
    return isinstance(column, Column) and column.slot == "period.identifier"


def _identifier_ordered(ref: Ref) -> Diagnostic:
    at: Source | None = None if ref.span is None else ref.span.place
    return Diagnostic(
        "W1312",
        "period identifiers have no order: as a string, '2024-01' is not part of '2024-Q1'",
        help="compare period.start_date, as in period.start_date >= DATE '2024-01-01', or use period.level",
        at=at,
    )


def evaluate_condition(rule: Rule, typed: Typed, dataset: Dataset, table: TableDef, period: Period) -> bool | None:
    """Return whether the condition holds; None when it is NULL."""
    values: dict[Hashable, object] = {
        "period.identifier": period.identifier,
        "period.level": period.level,
        "period.start_date": period.start_date,
        "period.end_date": period.end_date,
        "table.name": table.name,
        "dataset.id": dataset.id,
        "dataset.name": dataset.name,
        "dataset.version": dataset.version,
        _DATA_LEVEL: rule.data_level,
    }
    try:
        value = evaluate(typed, values.__getitem__)
    except EvaluationError as cause:
        raise ResolutionError([_rule_finding(rule, cause.diagnostics[0])]) from cause
    return None if value is None else bool(value)
