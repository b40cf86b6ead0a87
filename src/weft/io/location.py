"""What a resolver answers: places where data lies, and how it came to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from weft.core.frozen import EMPTY, FrozenMap, thawed
from weft.errors import Diagnostic
from weft.pipelines.model.words import ResolverSource

Outcome = Literal["success", "no_matching_rule", "period_expansion_failure", "template_render_error"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """One place that holds data of one period.

    `path` is as the rule renders it, below the prefix of the datasource.  `catalog` is the request to a
    service that knows the place; of something a run published it holds the format.  Where `data_level`
    is not ``any``, all rows are of `period_identifier`.
    """

    datasource_id: str
    path: str | None = None
    table: str | None = None
    schema: str | None = None
    catalog: FrozenMap[str, Any] | None = None
    period_identifier: str
    data_level: str
    resolver_id: str
    resolver_version: int
    rule_name: str
    missing: Literal["fail", "skip"] = "fail"

    def __str__(self) -> str:
        if self.path is not None:
            return self.path
        if self.table is not None:
            return f"{self.schema}.{self.table}" if self.schema else self.table
        return str((self.catalog or EMPTY).get("endpoint", ""))

    def to_dict(self) -> dict[str, Any]:
        """Return the form that documents and snapshots have."""
        return {
            "datasource_id": self.datasource_id,
            "path": self.path,
            "table": self.table,
            "schema": self.schema,
            "catalog": None if self.catalog is None else thawed(self.catalog),
            "period_identifier": self.period_identifier,
            "data_level": self.data_level,
            "resolver_id": self.resolver_id,
            "resolver_version": self.resolver_version,
            "rule_name": self.rule_name,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleTrace:
    """What became of one rule; `matched` is None when it was not evaluated."""

    rule_name: str
    matched: bool | None
    reason: str
    evaluated_expression: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the form that documents have."""
        return {
            "rule_name": self.rule_name,
            "matched": self.matched,
            "reason": self.reason,
            "evaluated_expression": self.evaluated_expression,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolverDiagnostic:
    """How a resolver came to its answer: every rule, and the periods that were read for."""

    resolver_id: str
    resolver_source: ResolverSource
    evaluated_rules: tuple[RuleTrace, ...] = ()
    outcome: Outcome
    expanded_periods: tuple[str, ...] = ()
    missing_periods: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the form that documents have."""
        return {
            "resolver_id": self.resolver_id,
            "resolver_source": self.resolver_source,
            "evaluated_rules": [rule.to_dict() for rule in self.evaluated_rules],
            "outcome": self.outcome,
            "expanded_periods": list(self.expanded_periods),
            "missing_periods": list(self.missing_periods),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """Where the data of a table lies for one period, and what is worth a warning."""

    locations: tuple[Location, ...]
    diagnostic: ResolverDiagnostic
    warnings: tuple[Diagnostic, ...] = ()
