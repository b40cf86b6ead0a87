"""Mistakes and Findings: errors and diagnostics gathered one after another, so that all are reported at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from weft.errors import Code, Diagnostic, Severity, SourceLocation, WeftError

MAX_FINDINGS = 100
"""How many errors of one file are shown: a file with more has one cause, or is something else."""


class ErrorCollector:
    """Errors that are noted where they happen and raised together.

    >>> from weft.errors import JoinSpecError
    >>> mistakes = ErrorCollector()
    >>> for word in ("up", "down"):
    ...     with mistakes.collect():
    ...         raise JoinSpecError(f"direction {word!r}", help="write 'backward'")
    >>> mistakes.raise_all()
    Traceback (most recent call last):
        ...
    weft.errors.JoinSpecError: error[W0302]: direction 'up'
     = help: write 'backward'
    error[W0302]: direction 'down'
     = help: write 'backward'
    """

    __slots__ = ("_errors",)

    def __init__(self) -> None:
        self._errors: list[WeftError] = []

    def __bool__(self) -> bool:
        return bool(self._errors)

    @contextmanager
    def collect(self, hint: str = "") -> Iterator[None]:
        """Keep an error of the block instead of raising it, `hint` added to its next steps."""
        try:
            yield
        except WeftError as cause:
            self.add(_hinted(cause, hint) if hint else cause)

    def add(self, error: WeftError) -> None:
        """Note an error that was not raised."""
        self._errors.append(error)

    def extend(self, others: ErrorCollector) -> None:
        """Note everything that `others` hold."""
        self._errors.extend(others._errors)

    def raise_all(self) -> None:
        """Raise what was noted, as the class of the first; do nothing when there is nothing."""
        if not self._errors:
            return
        first = self._errors[0]
        if len(self._errors) == 1:
            raise first
        told: list[Diagnostic] = []
        for error in self._errors:
            told.extend(d for d in error.diagnostics if d not in told)
        raise type(first)(told) from first.__cause__


def _hinted(error: WeftError, hint: str) -> WeftError:
    told = (replace(d, help="\n".join(filter(None, (d.help, hint)))) for d in error.diagnostics)
    hinted = type(error)(told)
    hinted.__cause__ = error.__cause__
    return hinted


@dataclass(slots=True)
class Findings:
    """Diagnostics gathered one after another, each once; warnings too, so nothing is raised here."""

    diagnostics: list[Diagnostic] = field(default_factory=list)

    def add(
        self,
        code: Code,
        message: str,
        at: SourceLocation | None,
        help: str = "",
        *,
        severity: Severity = "error",
    ) -> None:
        """Note a finding, once."""
        finding = Diagnostic(code, message, help=help, severity=severity, at=at)
        if finding not in self.diagnostics:
            self.diagnostics.append(finding)

    def add_error(self, error: WeftError, at: SourceLocation | None = None) -> None:
        """Note what an error tells; findings without a place get `at`."""
        self.extend(d if d.at is not None else replace(d, at=at) for d in error.diagnostics)

    def extend(self, findings: Iterable[Diagnostic]) -> None:
        """Note findings that are made already."""
        self.diagnostics.extend(f for f in findings if f not in self.diagnostics)

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """The findings that no plan can be made with."""
        return tuple(d for d in self.diagnostics if d.severity == "error")

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """The findings that a plan can be made with."""
        return tuple(d for d in self.diagnostics if d.severity != "error")
