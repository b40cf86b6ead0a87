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
     +- ExpressionError            (ValueError)  a text that is no expression of ours
     +- EvaluationError            (ValueError)  an expression that fails on a value
     +- DurationError              (ValueError)  a text that is no length of time
     +- PeriodError                (ValueError)  a period or calendar that is not there
     +- CaseFileError              (ValueError)  a table or case file that does not read

    JoinKeyWarning                 (UserWarning) a key that was dropped or is risky
    AsofOrderWarning               (UserWarning) an as-of join without an order marker

Each error is also the built-in it is listed with, so ``except KeyError`` and
``except ValueError`` keep working.  Each code has a section in ``docs/errors.md``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, get_args

Code = Literal[
    "W0101", "W0102", "W0103", "W0104", "W0105", "W0106", "W0107", "W0108", "W0109", "W0110",
    "W0130",
    "W0201", "W0202", "W0203", "W0204", "W0205", "W0206", "W0207", "W0208", "W0209", "W0210",
    "W0211", "W0212", "W0213", "W0214", "W0215", "W0216", "W0217", "W0218",
    "W0301", "W0302", "W0303", "W0304", "W0305", "W0306", "W0307", "W0308", "W0309",
    "W0401", "W0402", "W0403", "W0404",
    "W0501", "W0502",
    "W0901",
]  # fmt: skip
"""The closed set of codes; ``CODES`` gives each its title."""

CODES: Mapping[Code, str] = {
    "W0101": "unknown column",
    "W0102": "ambiguous column",
    "W0103": "column collision",
    "W0104": "no join keys",
    "W0105": "types do not meet",
    "W0106": "columns equal but for case",
    "W0107": "relations of two sessions",
    "W0108": "the right side adds nothing",
    "W0109": "strategy refuses",
    "W0110": "group too large for the kernel",
    "W0130": "as-of joins that cannot share a plan",
    "W0201": "syntax error",
    "W0202": "unclosed text",
    "W0203": "bad number",
    "W0204": "bad date or time literal",
    "W0205": "construct not allowed",
    "W0206": "unknown function",
    "W0207": "unknown column in an expression",
    "W0208": "wrong number of arguments",
    "W0209": "type mismatch in an expression",
    "W0210": "aggregate not allowed here",
    "W0211": "aggregate inside an aggregate",
    "W0212": "unknown selector",
    "W0213": "selectors that contain each other",
    "W0214": "parameters do not fit",
    "W0215": "no date for TODAY()",
    "W0216": "ambiguous column in an expression",
    "W0217": "expression fails on a value",
    "W0218": "column outside an aggregate",
    "W0301": "argument of the wrong type",
    "W0302": "value not allowed",
    "W0303": "not a column name",
    "W0304": "not a duration",
    "W0305": "arguments contradict each other",
    "W0306": "serialised form not understood",
    "W0307": "projection not possible",
    "W0308": "range predicate names a foreign column",
    "W0309": "expression predicate not accepted",
    "W0401": "unknown period",
    "W0402": "calendar not usable",
    "W0403": "unknown calendar level",
    "W0404": "level does not divide",
    "W0501": "relationship broken",
    "W0502": "unmatched rows",
    "W0901": "table or case file does not read",
}

Severity = Literal["error", "warning", "note"]


class Place(Protocol):
    """Where something was written; ``core.source.Source`` is the real one."""

    @property
    def file(self) -> str | None:
        """Path of the file, or None for text that came from no file."""

    @property
    def range(self) -> dict[str, dict[str, int]]:
        """Start and end as 0-based line and character, as editors use them."""

    def render(self) -> str:
        """Return the ``-->`` line, the source line and the caret run."""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding: a cause with its code, place and next step.

    >>> print(Diagnostic("W0101", "the right side has no column 'sym'", help="did you mean 'symbol'?"))
    error[W0101]: the right side has no column 'sym'
     = help: did you mean 'symbol'?
    """

    code: Code
    message: str
    help: str = ""
    severity: Severity = "error"
    at: Place | None = None

    def __str__(self) -> str:
        lines = [f"{self.severity}[{self.code}]: {self.message}"]
        if self.at is not None:
            lines.append(self.at.render())
        if self.help:
            lines.extend(f" = help: {line}" for line in self.help.splitlines())
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the form that ``--json`` prints."""
        return {
            "code": self.code,
            "severity": self.severity,
            "file": self.at.file if self.at else None,
            "range": self.at.range if self.at else None,
            "message": self.message,
            "help": self.help,
        }


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
        at: Place | None = None,
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


class JoinKeyWarning(UserWarning):
    """A key that was dropped (``strict=False``) or that is risky to compare."""


class AsofOrderWarning(UserWarning):
    """An as-of join whose left side carries no order marker."""


assert set(CODES) == set(get_args(Code)), "CODES and Code must list the same codes"  # noqa: S101
