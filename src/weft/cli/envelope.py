"""Envelope: what every command answers, as one document for programs and as text for people.

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

_IN_THE_WAY: frozenset[Code] = frozenset(
    {
        "W1102",
        "W1103",
        "W1104",
        "W1105",
        "W1501",
        "W1503",
        "W1504",
        "W1505",
        "W1506",
        "W1507",
        "W1510",
        "W1514",
        "W1605",
        "W2203",
        "W2204",
        "W2205",
        "W2215",
        "W2218",
    }
)
_SAID_WRONGLY: frozenset[Code] = frozenset({"W1606", "W1607", "W1608"})
_WHILE_READING: frozenset[Code] = frozenset(
    {"W1309", "W1313", "W1314", "W1316", "W1317", "W1318", "W1319", "W1320", "W1807", "W1808"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """The answer of a command; `text` is what people read on stdout, `data` what programs read."""

    command: str
    data: Mapping[str, Any] = field(default_factory=dict)
    diagnostics: tuple[Diagnostic, ...] = ()
    next: tuple[str, ...] = ()
    text: str = ""
    exit_code: int = OK
    shows_rows: bool = False
    """Whether text and data hold rows of the user, which are shown as they are."""

    def __post_init__(self) -> None:
        # The last place before anything is printed: what a command puts together is masked here too.
        if not self.shows_rows:
            object.__setattr__(self, "text", redact(self.text))
            object.__setattr__(self, "data", _redacted(self.data))
        object.__setattr__(self, "next", tuple(redact(step) for step in self.next))

    @property
    def ok(self) -> bool:
        """Whether the command did what it was asked for; a plan with changes did."""
        return self.exit_code in (OK, CHANGES)

    def document(self) -> dict[str, Any]:
        """Return the document that ``--json`` prints."""
        return {
            "schema": f"weft/{self.command}/1",
            "ok": self.ok,
            "data": dict(self.data),
            "diagnostics": [d.to_dict() for d in in_order(self.diagnostics)],
            "next": list(self.next),
        }

    def to_json(self) -> str:
        """Return the document as text."""
        return json.dumps(self.document(), indent=2, ensure_ascii=False, default=str)


def _redacted(value: Any, name: str = "") -> Any:
    if isinstance(value, str):
        return MASK if is_secret_name(name) and not is_placeholder(value) else redact(value)
    if isinstance(value, Mapping):
        return {key: _redacted(inner, str(key)) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_redacted(inner, name) for inner in value]
    return value


def in_order(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Return findings by file, line, column and code; those without a place first."""

    def place(found: Diagnostic) -> tuple[str, int, int, str]:
        if found.at is None:
            return "", 0, 0, found.code
        start = found.at.range["start"]
        return found.at.file or "", start["line"], start["character"], found.code

    return tuple(sorted(diagnostics, key=place))


def exit_code_of(error: WeftError) -> int:
    """Return the exit code that an error ends a command with.

    >>> exit_code_of(WorkspaceError("there is no workspace", help="`weft init` makes one"))
    2
    """
    codes = {d.code for d in error.diagnostics if d.severity == "error"} or {error.code}
    if codes <= _IN_THE_WAY:
        return LOCKED
    if codes <= _SAID_WRONGLY or (isinstance(error, PeriodError) and "W0402" not in codes):
        return USAGE
    if codes & _WHILE_READING or isinstance(
        error, RunError | StoreError | StreamError | ConnectorError | JoinContractError | EvaluationError
    ):
        return FAILED
    if isinstance(error, WorkspaceError):
        return USAGE
    if isinstance(error, ScenarioError) and codes == {"W1703"}:
        return UNMET
    return INVALID


def refused(command: str, error: WeftError, data: Mapping[str, Any] | None = None) -> Envelope:
    """Return the answer of a command that an error ended."""
    return Envelope(
        command=command, data=data or {}, diagnostics=error.diagnostics, exit_code=exit_code_of(error)
    )
