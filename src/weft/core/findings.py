"""ErrorCollector and Findings: collect errors and diagnostics, so that a user sees all of them at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from weft.errors import Code, Diagnostic, Severity, SourceLocation, WeftError

MAX_FINDINGS = 100
"""How many errors of one file are shown: a file with more has one common cause, or is not what it claims to be."""


class ErrorCollector:
    """Errors that are collected where they happen and raised together.

    >>> from weft.errors import JoinSpecError
    >>> errors = ErrorCollector()
    >>> for word in ("up", "down"):
    ...     with errors.collect():
    ...         raise JoinSpecError(f"direction {word!r}", help="write 'backward'")
    >>> errors.raise_all()
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
        """Keep an error of the block instead of raising it; `hint` is appended to its help."""
        try:
            yield
        except WeftError as cause:
            self.add(_add_hint(cause, hint) if hint else cause)

    def add(self, error: WeftError) -> None:
        """Add an error that was not raised."""
        self._errors.append(error)

    def extend(self, others: ErrorCollector) -> None:
        """Add every error of another collector."""
        self._errors.extend(others._errors)

    def raise_all(self) -> None:
        """Raise the collected errors as one, of the class of the first; do nothing without errors."""
        if not self._errors:
            return
        first = self._errors[0]
        if len(self._errors) == 1:
            raise first
        # One cause may be reported for several items; a user needs it once.
        diagnostics = dict.fromkeys(d for error in self._errors for d in error.diagnostics)
        # The class of the first, because callers catch by class.
        raise type(first)(diagnostics) from first.__cause__


def _add_hint(error: WeftError, hint: str) -> WeftError:
    diagnostics = (replace(d, help="\n".join(filter(None, (d.help, hint)))) for d in error.diagnostics)
    hinted = type(error)(diagnostics)
    hinted.__cause__ = error.__cause__
    return hinted


@dataclass(slots=True)
class Findings:
    """Diagnostics without duplicates, in the order they were added; warnings too, so nothing is raised here."""

    diagnostics: list[Diagnostic] = field(default_factory=list)

    def add(
        self, code: Code, message: str, at: SourceLocation | None, help: str = "", *, severity: Severity = "error"
    ) -> None:
        """Add a finding."""
        self.extend((Diagnostic(code, message, help=help, severity=severity, at=at),))

    def add_error(self, error: WeftError, at: SourceLocation | None = None) -> None:
        """Add the diagnostics of an error; those without a location get `at`."""
        self.extend(d if d.at is not None else replace(d, at=at) for d in error.diagnostics)

    def extend(self, findings: Iterable[Diagnostic]) -> None:
        """Add findings."""
        self.diagnostics.extend(f for f in findings if f not in self.diagnostics)

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """The findings that prevent a plan."""
        return tuple(d for d in self.diagnostics if d.severity == "error")

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """The findings that a plan can be built with."""
        return tuple(d for d in self.diagnostics if d.severity != "error")
