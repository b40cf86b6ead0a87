"""Every error Weft raises, as one tree, and the closed set of codes.

::

    WeftError                      what every error of Weft is; carries Diagnostics
     +- UnknownColumnError         (KeyError)    a name that no side has
     +- AmbiguousColumnError       (ValueError)  a name that could mean two columns
     +- ColumnCollisionError       (ValueError)  two output columns with one name
     +- NoJoinKeysError            (ValueError)  nothing to join on
     +- JoinSpecError              (ValueError)  a specification that means nothing
     +- JoinTypeError              (TypeError)   columns whose types cannot meet
     +- ArgumentError              (TypeError)   a Python argument of the wrong kind
     +- SessionMismatchError       (ValueError)  two relations of two Spark sessions
     +- StrategyRefusedError       (ValueError)  a forced strategy refuses the join
     +- JoinContractError          (ValueError)  data that breaks a promise of the join
     +- WorkerError                (RuntimeError) a Spark worker that cannot do its share of a join
     +- ExpressionError            (ValueError)  a text that is no expression of ours
     +- EvaluationError            (ValueError)  an expression that fails on a value
     +- DurationError              (ValueError)  a text that is no length of time
     +- PeriodError                (ValueError)  a period or calendar that is not there
     +- CaseFileError              (ValueError)  a table or case file that does not read
     +- WorkspaceError             (ValueError)  a workspace or argument of a command that is not there
     +- EntityError                (ValueError)  a file of the workspace that does not read
     +- ActivationError            (ValueError)  a project that cannot be activated or run
     +- RuntimeJoinError           (ValueError)  a join of an operation that cannot be made
     +- ResolutionError            (ValueError)  data that a resolver cannot find or read
     +- OperationError             (ValueError)  an operation that means nothing
     +- ScenarioError              (ValueError)  a scenario that does not read or does not hold
     +- RunError                   (RuntimeError) a run that failed, was refused or cannot go on
     +- StoreError                 (RuntimeError) a metadata store that cannot be used
     +- StreamSqlError             (ValueError)  a streaming SQL job that does not read
     +- StreamPlanError            (ValueError)  a streaming statement that cannot be planned
     +- StreamError                (RuntimeError) a streaming query that failed, was refused or cannot go on
     +- ConnectorError             (RuntimeError) a source or sink that is not there or does not fit

    JoinKeyWarning                 (UserWarning) a key that was dropped or is risky
    AsofOrderWarning               (UserWarning) an as-of join without an order marker

Each error is also the built-in it is listed with, so ``except KeyError`` and
``except ValueError`` keep working.  Each code has a section in ``docs/errors``.
"""

from __future__ import annotations

import os
import re
import traceback
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Protocol, TypedDict

from weft.codes import CODES as CODES  # noqa: PLC0414  # errors and their codes are asked for together
from weft.codes import Code as Code  # noqa: PLC0414
from weft.redaction import redact

_PACKAGE = os.path.dirname(__file__) + os.sep  # noqa: PTH120  # as frames name it
Severity = Literal["error", "warning", "note"]

_LONGEST_WORD = 1_000


class Position(TypedDict):
    """A place in a text, 0-based, as editors count."""

    line: int
    character: int


class Range(TypedDict):
    """A part of a text; the end is behind its last character."""

    start: Position
    end: Position


class SourceLocation(Protocol):
    """Where something was written; ``core.source.Source`` is the real one."""

    @property
    def file(self) -> str | None:
        """Path of the file, or None for text that came from no file."""

    @property
    def range(self) -> Range:
        """Start and end as 0-based line and character, as editors use them."""

    def render(self) -> str:
        """Return the ``-->`` line, the source line and the caret run."""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding: a cause with its code, place and next step; secrets in its texts are masked.

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
        # A message may repeat an address or an option of the user: no secret gets further than here.
        object.__setattr__(self, "message", _shortened(redact(self.message)))
        object.__setattr__(self, "help", _shortened(redact(self.help)))

    def __str__(self) -> str:
        lines = [f"{self.severity}[{self.code}]: {self.message}"]
        if self.at is not None:
            lines.append(self.at.render())
        if self.help:
            lines.extend(f" = help: {line}" for line in self.help.splitlines())
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the form that ``--json`` prints."""
        return {key: getattr(self, key) for key in self.DOCUMENT}

    @property
    def file(self) -> str | None:
        """The file that the finding is about, None when it is about no file."""
        return self.at.file if self.at else None

    @property
    def range(self) -> Range | None:
        """The part of the file that the finding is about."""
        return self.at.range if self.at else None


def _shortened(text: str) -> str:
    """Return a text in which a word that nobody can read to its end is cut."""
    if len(text) <= _LONGEST_WORD:
        return text
    return re.sub(rf"\S{{{_LONGEST_WORD},}}", lambda found: f"{found[0][:500]}...{found[0][-100:]}", text)


class WeftError(Exception):
    """What every error of Weft is: one or more diagnostics, printed in full.

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
        super().__init__(self.diagnostics)

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
        return "\n".join(str(d) for d in self.diagnostics)

    def _render_traceback_(self) -> list[str]:
        """Return what a notebook shows: the line that was run, and the diagnostics, without our own frames."""
        frames = traceback.extract_tb(self.__traceback__)
        theirs = [f for f in frames if not f.filename.startswith(_PACKAGE)]
        at = [f"line {f.lineno}: {f.line}" for f in theirs[-1:] if f.line]
        return [*at, str(self)]


class UnknownColumnError(WeftError, KeyError):
    """A column, alias or order name that the named side does not have."""

    default_code = "W0101"


class AmbiguousColumnError(WeftError, ValueError):
    """A name that could mean more than one column."""

    default_code = "W0102"


class ColumnCollisionError(WeftError, ValueError):
    """Two output columns would carry one name."""

    default_code = "W0103"


class NoJoinKeysError(WeftError, ValueError):
    """A join without a key or predicate; an accidental Cartesian product."""

    default_code = "W0104"


class JoinSpecError(WeftError, ValueError):
    """An operator, direction, tolerance, fragment or option that means nothing."""

    default_code = "W0302"


class JoinTypeError(WeftError, TypeError):
    """Two columns that are compared but whose types cannot meet."""

    default_code = "W0105"


class ArgumentError(WeftError, TypeError):
    """A Python argument of the wrong kind, or two that contradict each other."""

    default_code = "W0301"


class SessionMismatchError(WeftError, ValueError):
    """Two relations that live in two Spark sessions."""

    default_code = "W0107"


class StrategyRefusedError(WeftError, ValueError):
    """A strategy that was asked for by name and cannot serve the join."""

    default_code = "W0109"


class JoinContractError(WeftError, ValueError):
    """Data that breaks what the join promised: a relationship, or a match for every row."""

    default_code = "W0501"


class WorkerError(WeftError, RuntimeError):
    """A Spark worker that cannot do its share: a module it does not have, a group it cannot hold."""

    default_code = "W1809"


class ExpressionError(WeftError, ValueError):
    """A text that is no expression of the language; holds every finding."""

    default_code = "W0201"


class EvaluationError(WeftError, ValueError):
    """An expression that cannot be computed for a value: overflow, a bad cast."""

    default_code = "W0217"


class DurationError(WeftError, ValueError):
    """A text that is no length of time."""

    default_code = "W0304"


class PeriodError(WeftError, ValueError):
    """A period that no calendar has, or a calendar that cannot be used."""

    default_code = "W0401"


class CaseFileError(WeftError, ValueError):
    """A table in a test, or a case file, that does not read."""

    default_code = "W0901"


class WorkspaceError(WeftError, ValueError):
    """A workspace, project or argument of a command that is not there."""

    default_code = "W1801"


class EntityError(WeftError, ValueError):
    """A file of the workspace that does not read; holds every finding."""

    default_code = "W1001"


class ActivationError(WeftError, ValueError):
    """A project that cannot be activated or run; holds every failure.

    `failures` are what activation found, each a ``plan.project.Failure``.
    """

    default_code = "W1101"
    failures: tuple[Any, ...] = ()


class RuntimeJoinError(WeftError, ValueError):
    """A join of an operation that cannot be made."""

    default_code = "W1206"


class ResolutionError(WeftError, ValueError):
    """Data that a resolver cannot find or read.

    `resolution` is how the resolver came to it, a ``plan.resolver.location.ResolverDiagnostic``, or None.
    """

    default_code = "W1305"
    resolution: Any = None


class OperationError(WeftError, ValueError):
    """An operation that means nothing on the columns it gets."""

    default_code = "W1401"


class ScenarioError(WeftError, ValueError):
    """A scenario that does not read, or whose expectation does not hold."""

    default_code = "W1701"


class RunError(WeftError, RuntimeError):
    """A run that failed, was refused or cannot go on."""

    default_code = "W1513"


class StoreError(WeftError, RuntimeError):
    """A metadata store that cannot be reached or does not fit."""

    default_code = "W1601"


class StreamSqlError(WeftError, ValueError):
    """A streaming SQL job that does not read; holds every finding."""

    default_code = "W2001"


class StreamPlanError(WeftError, ValueError):
    """Statements of a streaming SQL job that cannot be planned; holds every finding."""

    default_code = "W2104"


class StreamError(WeftError, RuntimeError):
    """A streaming query that failed, was refused or cannot go on."""

    default_code = "W2201"


class ConnectorError(WeftError, RuntimeError):
    """A source, sink or connector of a stream that is not there or does not fit."""

    default_code = "W2301"


class JoinKeyWarning(UserWarning):
    """A key that was dropped (``strict=False``) or that is risky to compare."""


class AsofOrderWarning(UserWarning):
    """An as-of join whose left side carries no order marker."""
