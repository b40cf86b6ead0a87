"""Conditions of rules: the expression language over a period, a table and a dataset.

::

    when: period.start_date >= DATE '2025-01-01' AND table IN ('orders', 'items')

Identifiers of periods are names.  ``"2024-01" >= "2024-Q1"`` is false although January lies in the quarter, so
an identifier can be equal to another or not, and nothing else.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from weft.core.calendar import Period
from weft.core.names import find_similar, format_list
from weft.core.source import Source
from weft.core.types import BOOLEAN, DATE, LONG, STRING, DType
from weft.errors import Diagnostic, EvaluationError, ExpressionError, ResolutionError, WeftError
from weft.expr import (
    Between,
    Binary,
    Call,
    Column,
    Expr,
    Like,
    Ref,
    Typed,
    check,
    evaluate,
    parse,
    references,
    walk,
)
from weft.pipelines.model.dataset import Dataset, TableDef
from weft.pipelines.model.resolver import Rule

_FIELDS: dict[str, dict[str, DType]] = {
    "period": {"identifier": STRING, "level": STRING, "start_date": DATE, "end_date": DATE},
    "table": {"name": STRING},
    "dataset": {"id": STRING, "name": STRING, "version": LONG},
}
# What a thing means when none of its fields is named.
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
    error[W0207]: a condition knows no 'tabel'
     = help: did you mean 'table'?
    """

    def resolve(self, qualifier: str | None, name: str) -> Column | Diagnostic:
        """Return what a name stands for, or why it stands for nothing."""
        said = name if qualifier is None else f"{qualifier}.{name}"
        if said == _DATA_LEVEL:
            return Column(_DATA_LEVEL, STRING, nullable=False)
        thing, field = (said, _BARE.get(said, "")) if qualifier is None else (qualifier, name)
        dtype = _FIELDS.get(thing, {}).get(field)
        if dtype is not None:
            return Column(f"{thing}.{field}", dtype, nullable=False)
        close = find_similar(said, self.names())
        help = (
            f"did you mean {' or '.join(map(repr, close))}?"
            if close
            else f"there is {format_list(self.names(), most=20)}"
        )
        return Diagnostic("W0207", f"a condition knows no {said!r}", help=help)

    def names(self) -> tuple[str, ...]:
        """Return every name as it can be written."""
        fields = [f"{thing}.{field}" for thing, inner in _FIELDS.items() for field in inner]
        return (*_FIELDS, *fields, _DATA_LEVEL)


def check_condition(rule: Rule) -> Typed | None:
    """Return the condition of a rule with its types, None when it has none; raise `ResolutionError`."""
    if rule.when is None:
        return None
    try:
        expr = parse(rule.when.text, source=rule.when.at)
        typed = check(expr, RuleScope(), expect=BOOLEAN, today=False)
    except ExpressionError as cause:
        raise ResolutionError([_of_rule(rule, found) for found in cause.diagnostics]) from cause
    ordered = [_identifier_ordered(ref) for ref in _ordered_identifiers(expr)]
    if ordered:
        raise ResolutionError(ordered)
    return typed


def _of_rule(rule: Rule, finding: Diagnostic) -> Diagnostic:
    text = "" if rule.when is None else rule.when.text
    return Diagnostic(
        "W1304",
        f"the condition of rule {rule.name!r} fails: {finding.message}: {text}",
        help=finding.help or "correct the condition",
        at=finding.at,
    )


def _ordered_identifiers(expr: Expr) -> Iterator[Ref]:
    """Yield the identifiers of periods that are put in an order or matched with a pattern."""
    for node in walk(expr):
        ordering = (
            (isinstance(node, Binary) and node.op in _ORDERING)
            or isinstance(node, Between | Like)
            or (isinstance(node, Call) and node.name in _ORDERED_CALLS)
        )
        if ordering:
            yield from (ref for ref in references(node) if _is_identifier(ref))


def _is_identifier(ref: Ref) -> bool:
    found = RuleScope().resolve(ref.qualifier, ref.name)
    return isinstance(found, Column) and found.slot == "period.identifier"


def _identifier_ordered(ref: Ref) -> Diagnostic:
    at: Source | None = None if ref.span is None else ref.span.place
    return Diagnostic(
        "W1312",
        "identifiers of periods are names and have no order: '2024-01' is no part of '2024-Q1' as a text",
        help="compare period.start_date, as in period.start_date >= DATE '2024-01-01', or ask for period.level",
        at=at,
    )


def evaluate_condition(
    rule: Rule, typed: Typed, dataset: Dataset, table: TableDef, period: Period
) -> bool | None:
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
        found = evaluate(typed, values.__getitem__)
    except EvaluationError as cause:
        raise ResolutionError([_of_rule(rule, _placed(cause, rule))]) from cause
    return None if found is None else bool(found)


def _placed(cause: WeftError, rule: Rule) -> Diagnostic:
    found = cause.diagnostics[0]
    at = found.at or (None if rule.when is None else rule.when.at)
    return Diagnostic(found.code, found.message, help=found.help or "correct the condition", at=at)
