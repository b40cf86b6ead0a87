"""What a resolver answers: the locations of a table, and how the rules led to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from weft.core.documents import WORD, Document
from weft.errors import Diagnostic
from weft.io.location import Location
from weft.pipelines.model.words import ResolverSource

Outcome = Literal["success", "no_matching_rule", "period_expansion_failure", "template_render_error"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleTrace(Document):
    """What became of one rule; `matched` is None when it was not evaluated."""

    UNLISTED: ClassVar = ("evaluated_expression",)

    rule_name: str
    matched: bool | None
    reason: str
    evaluated_expression: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolverDiagnostic(Document):
    """How a resolver came to its answer: every rule, and the periods that were read for."""

    resolver_id: str
    resolver_source: Annotated[ResolverSource, WORD]
    evaluated_rules: tuple[RuleTrace, ...] = ()
    outcome: Outcome
    expanded_periods: tuple[str, ...] = ()
    missing_periods: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """Where the data of a table lies for one period, and what is worth a warning."""

    locations: tuple[Location, ...]
    diagnostic: ResolverDiagnostic
    warnings: tuple[Diagnostic, ...] = ()
