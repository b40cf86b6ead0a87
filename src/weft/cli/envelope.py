"""Envelope: the result of a command, as one JSON document for programs and as text for people.

::

    {"schema": "weft/validate/1", "ok": false, "data": {...}, "diagnostics": [...], "next": [...]}
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from weft.errors import (
    Code,
    ConnectorError,
    Diagnostic,
    EvaluationError,
    JoinContractError,
    PeriodError,
    RunError,
    ScenarioError,
    StoreError,
    StreamError,
    WeftError,
    WorkspaceError,
)
from weft.redaction import MASK, is_placeholder, is_secret_name, redact

OK, FAILED, USAGE, INVALID, CHANGES, UNMET, LOCKED, INTERRUPTED = 0, 1, 2, 3, 4, 5, 8, 130
"""The exit codes of commands: see docs/cli.md."""

# Errors of these codes go away once another run, job or version is out of the way.
_PIPELINE_CONFLICTS: frozenset[Code] = frozenset({"W1102", "W1103", "W1104", "W1105", "W1605"})
_RUN_CONFLICTS: frozenset[Code] = frozenset({"W1501", "W1503", "W1504", "W1505", "W1506", "W1507", "W1510", "W1514"})
_STREAM_CONFLICTS: frozenset[Code] = frozenset({"W2203", "W2204", "W2205", "W2215", "W2218"})
_CONFLICTS = _PIPELINE_CONFLICTS | _RUN_CONFLICTS | _STREAM_CONFLICTS
# These depend on what the user typed, or appear only while data is read, whatever class they have.
_USAGE_CODES: frozenset[Code] = frozenset({"W1606", "W1607", "W1608"})
_READ_CODES: frozenset[Code] = frozenset(
    {"W1309", "W1313", "W1314", "W1316", "W1317", "W1318", "W1319", "W1320", "W1807", "W1808"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """The result of a command; `text` is printed for people, `data` for programs."""

    command: str
    data: Mapping[str, Any] = field(default_factory=dict)
    diagnostics: tuple[Diagnostic, ...] = ()
    next: tuple[str, ...] = ()
    text: str = ""
    exit_code: int = OK
    shows_rows: bool = False
    """Whether text and data hold rows of the user, which are not masked."""

    def __post_init__(self) -> None:
        # The last step before printing: secrets that a command did not mask itself are masked here.
        if not self.shows_rows:
            object.__setattr__(self, "text", redact(self.text))
            object.__setattr__(self, "data", _redact_values(self.data))
        object.__setattr__(self, "next", tuple(redact(step) for step in self.next))

    @classmethod
    def from_error(cls, command: str, error: WeftError, data: Mapping[str, Any] | None = None) -> Envelope:
        """Return the result of a command that an error stopped."""
        return cls(command=command, data=data or {}, diagnostics=error.diagnostics, exit_code=exit_code_for(error))

    @property
    def ok(self) -> bool:
        """Whether the command succeeded; a plan with changes did."""
        return self.exit_code in (OK, CHANGES)

    def document(self) -> dict[str, Any]:
        """Return the document that ``--json`` prints."""
        return {
            "schema": f"weft/{self.command}/1",
            "ok": self.ok,
            "data": dict(self.data),
            "diagnostics": [d.to_dict() for d in sort_findings(self.diagnostics)],
            "next": list(self.next),
        }

    def to_json(self) -> str:
        """Return the document as JSON."""
        # `default=str`: data may contain paths, dates and decimals of reports that are not Documents.
        return json.dumps(self.document(), indent=2, ensure_ascii=False, default=str)


def _redact_values(value: Any, name: str = "") -> Any:
    if isinstance(value, str):
        return MASK if is_secret_name(name) and not is_placeholder(value) else redact(value)
    if isinstance(value, Mapping):
        return {key: _redact_values(inner, str(key)) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_redact_values(inner, name) for inner in value]
    return value


def sort_findings(findings: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Return findings by file, line, column and code; those without a location first."""

    def sort_key(finding: Diagnostic) -> tuple[str, int, int, str]:
        if finding.at is None:
            return "", 0, 0, finding.code
        start = finding.at.range["start"]
        return finding.at.file or "", start["line"], start["character"], finding.code

    return tuple(sorted(findings, key=sort_key))


def exit_code_for(error: WeftError) -> int:
    """Return the exit code of a command that an error stopped.

    >>> exit_code_for(WorkspaceError("not a workspace", help="run `weft init`"))
    2
    """
    codes = {d.code for d in error.diagnostics if d.severity == "error"} or {error.code}
    # A conflict only if nothing else is wrong: waiting would not help then.
    if codes <= _CONFLICTS:
        return LOCKED
    if codes <= _USAGE_CODES or (isinstance(error, PeriodError) and "W0402" not in codes):
        return USAGE
    if codes & _READ_CODES or isinstance(
        error, RunError | StoreError | StreamError | ConnectorError | JoinContractError | EvaluationError
    ):
        return FAILED
    if isinstance(error, WorkspaceError):
        return USAGE
    if isinstance(error, ScenarioError) and codes == {"W1703"}:
        return UNMET
    return INVALID
