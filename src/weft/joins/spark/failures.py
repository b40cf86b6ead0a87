"""Failures of Spark as errors of Weft: one form of rule, which every product extends with rules of its own.

::

    weft.joins.spark.failures       broken contracts, groups too large for a kernel, workers without its packages
    weft.io.spark.failures          data that is missing, unreadable or not of its type; databases
    weft.streams.spark.readable     rows that a policy of a stream refuses
    weft.streams.spark.kafka        topics and brokers
    weft.pipelines.run.failing      what is left, as a failed operation of a run
    weft.streams.run.failing        what is left, as a failed batch of a stream

A rule names error conditions of Spark.  It has a pattern of text instead where there is no condition: for messages that
Weft itself raises inside of a query, which are all USER_RAISED_EXCEPTION or PYTHON_EXCEPTION, and for exceptions of
Java, JDBC drivers and the operating system, which have none.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import NamedTuple

from pyspark.errors import PySparkException

from weft.errors import ArgumentError, Code, JoinContractError, ResolutionError, WeftError, WorkerError
from weft.joins.spark.contracts import PREFIX
from weft.joins.spark.workers import diagnose_worker

_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_.]+)\]\s*([^\n]*?)(?=\s*\[[A-Z][A-Z0-9_.]+\]|\s*SQLSTATE|\n|\Z)")
_FULL = ("No space left on device", "Disk quota exceeded", "DISK_FULL")


class Condition(NamedTuple):
    """An error condition of Spark, such as DIVIDE_BY_ZERO, with its message in one line."""

    name: str
    message: str


def find_conditions(failure: BaseException, text: str | None = None) -> tuple[Condition, ...]:
    """Return the error conditions of a failure: its own, then those that its text, or `text`, names.

    Spark reports a failed task or streaming query as an exception without a condition, or with a general one; the
    cause is then part of the text, in the form of every message of Spark.

    >>> find_conditions(RuntimeError("Job aborted: [DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012"))
    (Condition(name='DIVIDE_BY_ZERO', message='Division by zero.'),)
    """
    named = [Condition(name, message) for name, message in _CONDITION.findall(str(failure) if text is None else text)]
    own = None
    if isinstance(failure, PySparkException):
        with suppress(Exception):  # a JVM that has gone cannot be asked
            own = failure.getCondition()
    return tuple(sorted(named, key=lambda condition: condition.name != own))


def strip_sqlstate(message: str) -> str:
    """Return a message of Spark without the SQLSTATE at its end.

    >>> strip_sqlstate("Division by zero. SQLSTATE: 22012")
    'Division by zero.'
    """
    return message.partition("SQLSTATE:")[0].strip()


def find_disk_full_message(failure: BaseException, text: str) -> str:
    """Return the message of a failure about a full disk, an empty string when it is about something else."""
    # Spark has no condition for it: the message is that of the operating system, Java or the database.
    if isinstance(failure, OSError) and failure.errno in (errno.ENOSPC, errno.EDQUOT):
        return failure.strerror or text
    return next((mark for mark in _FULL if mark in text), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureRule:
    """The error for failures with certain conditions, or with a certain text.

    `conditions` are the beginnings of their names.  `message` and `help` are templates: ``{condition}`` and ``{message}``
    of the condition, ``{0}``, ``{1}`` the groups of `text`.
    """

    error: type[WeftError]
    code: Code
    message: str
    help: str
    conditions: tuple[str, ...] = ()
    text: re.Pattern[str] | None = None
    clean: Callable[[str], str] = str.strip

    def apply(self, known: Iterable[Condition], text: str) -> WeftError | None:
        """Return the error for a failure with these conditions and this text, None when the rule is about another."""
        for condition in known if self.conditions else ():
            if condition.name.startswith(self.conditions):
                return self._made(condition=condition.name, message=self.clean(condition.message))
        match = None if self.text is None else self.text.search(text)
        return None if match is None else self._made(*(self.clean(group or "") for group in match.groups()))

    def _made(self, *groups: str, **parts: str) -> WeftError:
        message = self.message.format(*groups, **parts).rstrip()
        return self.error(message, code=self.code, help=self.help.format(*groups, **parts))


def explain_failure(failure: BaseException, rules: Iterable[FailureRule], text: str | None = None) -> WeftError | None:
    """Return the error of the first rule that applies to a failure, None when no rule does.

    `text` is searched instead of the message of the failure, for example with the messages of its causes.
    """
    text = str(failure) if text is None else text
    known = find_conditions(failure, text)
    return next((error for rule in rules if (error := rule.apply(known, text)) is not None), None)


def _contract(code: Code, help: str) -> FailureRule:
    text = rf"{re.escape(PREFIX)} {code} (.*?\(spec [0-9a-f]{{12}}, join [0-9a-f]{{12}}\))"
    return FailureRule(
        error=JoinContractError, code=code, message="{0}", help=help, text=re.compile(text, re.DOTALL), clean=str
    )


def _in_worker(code: Code) -> FailureRule:
    text = re.compile(rf"\[{code}\] (.*?)\. Next: ([^\n]*)", re.DOTALL)
    return FailureRule(error=WorkerError, code=code, message="{0}", help="{1}", text=text, clean=_one_line)


def _one_line(text: str) -> str:
    return " ".join(text.split())


_RELAX = "correct the data, or relax relationship= or unmatched="
CONTRACTS = (
    _contract("W0501", _RELAX),
    _contract("W0502", _RELAX),
    _contract("W2207", "correct the data, or leave such rows out: on_null_time='drop'"),
)
WORKERS = (_in_worker("W0110"), _in_worker("W1809"))


def explain_job_failure(failure: BaseException) -> WeftError | None:
    """Return the error that a failed Spark job means, or None when Weft does not know the failure.

    A broken promise of a join (W0501, W0502), a group too large for the kernel (W0110), workers whose Python
    cannot run it (W1809).
    """
    known = contract_failure(failure) or explain_failure(failure, WORKERS)
    if known is not None:
        return known
    problem = diagnose_worker(str(failure))
    return None if problem is None else WorkerError(problem.message, help=problem.help)


FILES = (
    FailureRule(
        error=ResolutionError,
        code="W1309",
        message="{message}",
        help="check the path or the name of the table",
        conditions=("PATH_NOT_FOUND", "FAILED_READ_FILE.FILE_NOT_EXIST", "TABLE_OR_VIEW_NOT_FOUND"),
    ),
    FailureRule(
        error=ResolutionError,
        code="W1318",
        message="cannot read the data: {message} ({condition})",
        help="check that the file is complete and has this format, and that its values have the types of the schema",
        conditions=(
            "MALFORMED_RECORD",
            "FAILED_READ_FILE",
            "CANNOT_READ_FILE",
            "UNABLE_TO_INFER_SCHEMA",
            "PARQUET_",
            "FAILED_PARSE",
        ),
    ),
    FailureRule(
        error=ArgumentError,
        code="W0302",
        message="invalid schema: {message}",
        help="write the columns as in CREATE TABLE: schema='symbol string, ts timestamp, price decimal(18,6)'",
        conditions=("PARSE_SYNTAX_ERROR", "UNSUPPORTED_DATATYPE"),
    ),
)
"""Data that `weft.read_parquet`, `weft.read_csv` and `weft.read_table` cannot find or read."""


@contextmanager
def coded_errors() -> Iterator[None]:
    """Raise failures of Spark jobs as errors of Weft, where Weft knows what they mean.

    Spark's exception of a broken promise has a Java stack trace; the error of Weft has two lines::

        with weft.coded_errors():
            joined.df.write.parquet(path)
    """
    try:
        yield
    except WeftError:
        raise
    except Exception as failure:
        known = explain_job_failure(failure) or explain_failure(failure, FILES[:2])
        if known is None:
            raise
        # Without the cause: its Java stack trace would hide the two lines that matter.
        raise known from None


def contract_failure(failure: BaseException) -> JoinContractError | None:
    """Return the error for a broken promise that failed a Spark job, or None.

    Parameters
    ----------
    failure
        The exception that a Spark action raised.  Required.

    Examples
    --------
    ::

        try:
            relation.df.collect()
        except Exception as failure:
            broken = weft.contract_failure(failure)
    """
    text = str(failure)
    marks = {rule: mark for rule in CONTRACTS if rule.text is not None and (mark := rule.text.search(text))}
    if not marks:
        return None
    # The message quotes a key, and a key may look like a message: the first mark is that of the message itself.
    known = min(marks, key=lambda rule: marks[rule].start()).apply((), text)
    return known if isinstance(known, JoinContractError) else None
