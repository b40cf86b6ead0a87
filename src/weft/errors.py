"""Every error that Weft raises, as one tree, and the closed set of codes.

Each error derives from `WeftError` and from the built-in error that fits, so ``except KeyError`` and
``except ValueError`` work.  Each code has a section in ``docs/errors``.
"""

from __future__ import annotations

import itertools
import linecache
import os
import re
import sys
import traceback
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Protocol, TypedDict

from weft.codes import CODES as CODES  # noqa: PLC0414  # errors and their codes are imported together
from weft.codes import Code as Code  # noqa: PLC0414
from weft.redaction import redact

_PACKAGE = os.path.dirname(__file__) + os.sep  # noqa: PTH120  # the prefix of file names in tracebacks
Severity = Literal["error", "warning", "note"]

_MAX_WORD = 1_000  # characters; a pasted value or a query plan would hide the rest of a message


class Position(TypedDict):
    """A position in a text, 0-based, as in the Language Server Protocol."""

    line: int
    character: int


class Range(TypedDict):
    """A range of a text; the end is exclusive."""

    start: Position
    end: Position


class SourceLocation(Protocol):
    """The location of a finding; ``core.source.Source`` implements it."""

    @property
    def file(self) -> str | None:
        """Path of the file, None for text that is not from a file."""

    @property
    def range(self) -> Range:
        """Start and end as 0-based line and character."""

    def render(self) -> str:
        """Return the ``-->`` line, the source line and the carets under it."""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding: a message with its code, location and help; secrets in it are masked.

    >>> print(Diagnostic("W0101", "the right side has no column 'sym'", help="did you mean 'symbol'?"))
    error[W0101]: the right side has no column 'sym'
     = help: did you mean 'symbol'?
    """

    DOCUMENT: ClassVar = ("code", "severity", "file", "range", "message", "help")

    code: Annotated[Code, {"type": "string", "pattern": "^W[0-9]{4}$"}]
    message: str
    help: str = ""
    severity: Severity = "error"
    at: SourceLocation | None = None

    def __post_init__(self) -> None:
        # A message may quote an address or an option of the user: secrets are masked before anyone sees it.
        object.__setattr__(self, "message", _shorten_words(redact(self.message)))
        object.__setattr__(self, "help", _shorten_words(redact(self.help)))

    def __str__(self) -> str:
        lines = [f"{self.severity}[{self.code}]: {self.message}"]
        if self.at is not None:
            lines.append(self.at.render())
        if self.help:
            lines.extend(f" = help: {line}" for line in self.help.splitlines())
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields that ``--json`` prints."""
        return {key: getattr(self, key) for key in self.DOCUMENT}

    @property
    def file(self) -> str | None:
        """The file of the finding, or None."""
        return self.at.file if self.at else None

    @property
    def range(self) -> Range | None:
        """The range of the finding in its file, or None."""
        return self.at.range if self.at else None


def _shorten_words(text: str) -> str:
    """Return a text with very long words shortened."""
    if len(text) <= _MAX_WORD:
        return text
    return re.sub(rf"\S{{{_MAX_WORD},}}", lambda word: f"{word[0][:500]}...{word[0][-100:]}", text)


def _find_calling_line() -> str:
    """Return the file, number and text of the line that called Weft; empty if no file has it."""
    frame, caller = sys._getframe(1), None  # noqa: SLF001  # finds the frame of the caller
    while frame is not None:
        if frame.f_code.co_filename.startswith(_PACKAGE):
            caller = frame.f_back
        frame = frame.f_back  # type: ignore[assignment]  # None ends the loop
    while caller is not None:
        file, number = caller.f_code.co_filename, caller.f_lineno
        if file.startswith("<doctest "):  # an example shows its line itself
            return ""
        if text := linecache.getline(file, number).strip():
            return f"  at {file}:{number}: {redact(text)}"
        caller = caller.f_back  # code without a file, such as the __init__ of a dataclass
    return ""


class WeftError(Exception):
    """Base class of every error: one or more diagnostics, printed in full.

    Parameters
    ----------
    what
        The message, or the diagnostics when there are several.
    code, help, at
        Of a single message; see `Diagnostic`.
    """

    default_code: Code = "W0302"

    def __init__(
        self,
        what: str | Iterable[Diagnostic],
        *,
        code: Code | None = None,
        help: str = "",
        at: SourceLocation | None = None,
    ) -> None:
        if isinstance(what, str):
            what = (Diagnostic(code or self.default_code, what, help=help, at=at),)
        self.diagnostics: tuple[Diagnostic, ...] = tuple(what)
        # The only argument, so that errors can be copied and pickled: workers send theirs to the driver.
        super().__init__(self.diagnostics)
        if line := _find_calling_line():
            # A note: the traceback of a script ends with it, and `str` is the diagnostics alone.
            self.add_note(line)

    @property
    def code(self) -> Code:
        """Code of the first diagnostic."""
        return self.diagnostics[0].code

    @property
    def message(self) -> str:
        """Message of the first diagnostic."""
        return self.diagnostics[0].message

    @property
    def help(self) -> str:
        """Next step of the first diagnostic."""
        return self.diagnostics[0].help

    def __str__(self) -> str:
        # Defined here because that of KeyError, which comes later in the MRO, would show a quoted tuple.
        return "\n".join(str(d) for d in self.diagnostics)

    def _render_traceback_(self) -> list[str]:
        """Return the text for notebooks: the line that failed and the diagnostics, without frames of Weft."""
        # The caller of Weft: what Weft calls, such as contextlib or pyspark, is not the line of the user either.
        user_frames = itertools.takewhile(
            lambda f: not f.filename.startswith(_PACKAGE), traceback.extract_tb(self.__traceback__)
        )
        at = [f"line {f.lineno}: {f.line}" for f in user_frames if f.line][-1:]
        return [*at, str(self)]


class UnknownColumnError(WeftError, KeyError):
    """An unknown column, alias or order name."""

    default_code = "W0101"


class AmbiguousColumnError(WeftError, ValueError):
    """A name that matches more than one column."""

    default_code = "W0102"


class ColumnCollisionError(WeftError, ValueError):
    """Two output columns with the same name."""

    default_code = "W0103"


class NoJoinKeysError(WeftError, ValueError):
    """A join without a key or predicate: an accidental Cartesian product."""

    default_code = "W0104"


class JoinSpecError(WeftError, ValueError):
    """An invalid operator, direction, tolerance, fragment or option."""

    default_code = "W0302"


class JoinTypeError(WeftError, TypeError):
    """Two columns that are compared but have no common type."""

    default_code = "W0105"


class ArgumentError(WeftError, TypeError):
    """A Python argument of the wrong type, or two that contradict each other."""

    default_code = "W0301"


class SessionMismatchError(WeftError, ValueError):
    """Two relations of different Spark sessions."""

    default_code = "W0107"


class StrategyRefusedError(WeftError, ValueError):
    """A strategy that was requested by name and cannot run the join."""

    default_code = "W0109"


class JoinContractError(WeftError, ValueError):
    """Data that violates a contract of the join: a relationship, or a match for every row."""

    default_code = "W0501"


class WorkerError(WeftError, RuntimeError):
    """A Spark worker that cannot run its part of a join: a missing module, a group too large."""

    default_code = "W1809"


class ExpressionError(WeftError, ValueError):
    """An invalid expression; has every finding."""

    default_code = "W0201"


class EvaluationError(WeftError, ValueError):
    """An expression that fails for a value: overflow, an invalid cast."""

    default_code = "W0217"


class DurationError(WeftError, ValueError):
    """An invalid duration."""

    default_code = "W0304"


class PeriodError(WeftError, ValueError):
    """An unknown period, or an invalid calendar.

    `about` has for each finding about a calendar the level or period that is invalid, or an empty string.
    """

    default_code = "W0401"
    about: tuple[str, ...] = ()


class CaseFileError(WeftError, ValueError):
    """An invalid table of a test, or an invalid case file."""

    default_code = "W0901"


class WorkspaceError(WeftError, ValueError):
    """A missing workspace, project or argument of a command."""

    default_code = "W1801"


class EntityError(WeftError, ValueError):
    """An invalid file of the workspace; has every finding."""

    default_code = "W1001"


class ActivationError(WeftError, ValueError):
    """A project that cannot be activated or run; has every failure.

    `failures` are the failures of the activation, each a ``plan.project.Failure``.
    """

    default_code = "W1101"
    failures: tuple[Any, ...] = ()


class RuntimeJoinError(WeftError, ValueError):
    """An invalid join of an operation.

    `alias` is that of the join when the data of a run made it fail.
    """

    default_code = "W1206"
    alias: str = ""


class ResolutionError(WeftError, ValueError):
    """Data that a resolver cannot find or read.

    `resolution` is the trace of the resolver, a ``plan.resolver.location.ResolverDiagnostic``, or None.
    """

    default_code = "W1305"
    resolution: Any = None


class OperationError(WeftError, ValueError):
    """An operation that is invalid for its input columns."""

    default_code = "W1401"


class ScenarioError(WeftError, ValueError):
    """An invalid scenario, or one whose expectation failed."""

    default_code = "W1701"


class RunError(WeftError, RuntimeError):
    """A run that failed, was refused or cannot continue."""

    default_code = "W1513"


class StoreError(WeftError, RuntimeError):
    """A metadata store that cannot be reached or has another schema version."""

    default_code = "W1601"


class FileStoreError(WeftError, RuntimeError):
    """A file store that cannot be reached, denies access or refuses a request; or its invalid address or setting."""

    default_code = "W1905"


class StreamSqlError(WeftError, ValueError):
    """An invalid streaming SQL job; has every finding."""

    default_code = "W2001"


class StreamPlanError(WeftError, ValueError):
    """Statements of a streaming SQL job that cannot be planned; has every finding."""

    default_code = "W2104"


class StreamError(WeftError, RuntimeError):
    """A streaming query that failed, was refused or cannot continue."""

    default_code = "W2201"


class ConnectorError(WeftError, RuntimeError):
    """A missing or unusable source, sink or connector of a stream."""

    default_code = "W2301"


class JoinKeyWarning(UserWarning):
    """A key that was dropped (``strict=False``) or that is risky to compare."""


class AsofOrderWarning(UserWarning):
    """An as-of join whose left side has no order marker."""
