"""Failures of activation: findings by the rule of the specification that they violate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from weft.core.documents import Document
from weft.errors import Code, Diagnostic

_RULES: tuple[tuple[str, str, tuple[Code, ...]], ...] = (
    (
        "VAL-001",
        "ExpressionSyntaxError",
        ("W0201", "W0202", "W0203", "W0204", "W0205", "W0206", "W0208", "W0210", "W0211", "W0213", "W0214", "W0218", "W1206"),
    ),
    ("VAL-002", "UnresolvedColumnRef", ("W0207", "W0216", "W1207", "W1208")),
    ("VAL-003", "TypeMismatch", ("W0209", "W1404", "W1406", "W1407")),
    ("VAL-004", "UnresolvedSelectorRef", ("W0212",)),
    ("VAL-006", "ResolverNotFound", ("W1301", "W1303")),
    ("VAL-007", "ResolverDisabled", ("W1302",)),
    ("VAL-008", "UnresolvedJoinSource", ("W1201", "W1202", "W1203", "W1213")),
    ("VAL-009", "DuplicateOperationOrder", ("W1009",)),
)  # fmt: skip
_BY_CODE: Mapping[Code, tuple[str, str]] = {code: (rule, type) for rule, type, codes in _RULES for code in codes}
# Its codes are those of any expression, so the rule depends on where the finding is and not on its code.
NAMED_SELECTOR = ("VAL-005", "ExpressionSyntaxError")
"""Rule and type of a named selector that is invalid or not a condition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure(Document):
    """One reason why a project cannot be activated; `operation_order` is the seq, None for the project itself.

    >>> failure = Failure.of(Diagnostic("W0207", "unknown column 'amont'"), 10)
    >>> failure.rule, failure.type, failure.operation_order
    ('VAL-002', 'UnresolvedColumnRef', 10)
    """

    DOCUMENT: ClassVar = ("rule", "type", "operation_order", "detail")

    rule: str
    type: str
    operation_order: int | None
    detail: str
    diagnostic: Diagnostic

    @classmethod
    def of(cls, finding: Diagnostic, seq: int | None, *, named_selector: bool = False) -> Failure:
        """Return a finding with its rule; findings without a rule get VAL-000."""
        rule, type = _BY_CODE.get(finding.code, ("VAL-000", "OperationError"))
        if named_selector:
            rule, type = NAMED_SELECTOR
        return cls(rule=rule, type=type, operation_order=seq, detail=finding.message, diagnostic=finding)
