"""Findings of a plan: everything that is wrong or worth knowing, in one list."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from weft.errors import Code, Diagnostic, Place, Severity, WeftError


@dataclass(slots=True)
class Found:
    """What planning has found so far; errors are raised together at the end."""

    said: list[Diagnostic] = field(default_factory=list)

    def add(
        self,
        code: Code,
        message: str,
        at: Place | None,
        help: str = "",
        *,
        severity: Severity = "error",
    ) -> None:
        """Note a finding, once."""
        finding = Diagnostic(code, message, help=help, severity=severity, at=at)
        if finding not in self.said:
            self.said.append(finding)

    def take(self, error: WeftError, at: Place | None = None) -> None:
        """Note what an error tells; findings without a place get `at`."""
        self.extend(d if d.at is not None else replace(d, at=at) for d in error.diagnostics)

    def extend(self, findings: Iterable[Diagnostic]) -> None:
        """Note findings that are made already."""
        self.said.extend(f for f in findings if f not in self.said)

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """The findings that no plan can be made with."""
        return tuple(d for d in self.said if d.severity == "error")

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """The findings that a plan can be made with."""
        return tuple(d for d in self.said if d.severity != "error")
