"""Findings are collected once each, in the order they came."""

from __future__ import annotations

from weft.core.findings import Findings


def test_a_finding_that_comes_again_is_not_repeated() -> None:
    findings = Findings()
    findings.add("W0201", "one", None)
    findings.add("W0202", "two", None, severity="warning")
    findings.add("W0201", "one", None)
    findings.extend(findings.diagnostics + findings.diagnostics)
    assert [d.message for d in findings.diagnostics] == ["one", "two"]
    assert ([d.message for d in findings.errors], [d.message for d in findings.warnings]) == (
        ["one"],
        ["two"],
    )
