"""What a resolver answers: the locations of a table, and how the rules led to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from weft.errors import Diagnostic
from weft.io.location import Location
from weft.pipelines.model.words import ResolverSource

Outcome = Literal["success", "no_matching_rule", "period_expansion_failure", "template_render_error"]


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
