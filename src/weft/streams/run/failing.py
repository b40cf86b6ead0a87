"""Failures of streaming queries: exceptions of Spark and of workers become errors of Weft."""

from __future__ import annotations

import re
from typing import Any, cast, get_args

from weft.errors import Code, ConnectorError, StreamError, WeftError
from weft.io.spark.failures import STORES
from weft.io.spark.session import is_jvm_gone
from weft.joins.spark.failures import FailureRule, find_conditions, find_disk_full_message, strip_sqlstate
from weft.joins.spark.failures import explain_failure as apply_rules
from weft.joins.spark.workers import diagnose_worker
from weft.streams.kernel.spec import KernelProblem
from weft.streams.spark.kafka import KAFKA
from weft.streams.spark.readable import REFUSALS

_PROBLEM = re.compile(r"KernelProblem: (W\d{4}): (.+?) \(help: (.+?)\)\s*(?:\n|$)", re.DOTALL)
_FILE = re.compile(r"Encountered error while reading file (\S+?)\.\s")
_LOST = (
    "Python worker exited unexpectedly",
    "Python worker failed to connect back",
    "ExecutorLostFailure",
    "SparkContext was shut down",
    "Cannot call methods on a stopped SparkContext",
    "OutOfMemoryError",
    "Py4JNetworkError",
    "Answer from Java side is empty",
    "Error while sending or receiving",
    "Connection reset by peer",
    "Connection refused",
)
_RAISED = re.compile(r"^([A-Za-z_][\w.]*(?:Error|Exception): [^\n]+)$", re.MULTILINE)
_IN_WORKER = "PYTHON_EXCEPTION"
# Conditions that only wrap the cause.
_OUTER = ("STREAM_FAILED", "FAILED_READ_FILE", "TASK_WRITE_FAILED")
_AGAIN = "nothing of the batch is committed; correct the cause and start the job again: it continues where it was"


def _name_file(message: str) -> str:
    file = _FILE.search(message)
    return file[1] if file else "a file"


SOURCES = (
    # The check of CSV headers has no condition: it is an exception of Java.
    FailureRule(
        error=ConnectorError,
        code="W2302",
        message="'{2}' has the columns {0}; earlier files have {1}",
        help=f"write the columns of every file in the same order; {_AGAIN}",
        text=re.compile(
            r"CSV header does not conform to the schema\.\s*Header: ([^\n]*)\n\s*Schema: ([^\n]*)\n.*?CSV file: ([^\n]*)",
            re.DOTALL,
        ),
    ),
    FailureRule(
        error=ConnectorError,
        code="W2303",
        message="{message} has a column whose type differs from that of the earlier files",
        help=f"write all files of a stream with the same types; {_AGAIN}",
        conditions=("FAILED_READ_FILE.PARQUET_COLUMN_DATA_TYPE_MISMATCH", "PARQUET_COLUMN_DATA_TYPE_MISMATCH"),
        clean=_name_file,
    ),
    FailureRule(
        error=StreamError,
        code="W2205",
        message="another process has taken over the checkpoint of this statement",
        help="nothing of this batch is committed; the other process continues after the last commit",
        conditions=("CONCURRENT_STREAM_LOG_UPDATE",),
        text=re.compile(r"Multiple streaming (?:queries|jobs) are concurrently using \S+/spark/\w+"),
    ),
    *REFUSALS,
)
"""What failures of queries mean that concern files and their rows."""


def explain_failure(failure: BaseException, statement: str) -> WeftError:
    """Return the error of Weft for an exception in a streaming query."""
    if isinstance(failure, WeftError):
        return failure
    if isinstance(failure, KernelProblem):
        return _kernel_error(failure.code, failure.message, failure.help)
    # An exception of a worker arrives in the driver as text, somewhere in a chain of causes of Python and Java.
    text = collect_messages(failure)
    problem = _PROBLEM.search(text)
    if problem is not None:
        return _kernel_error(problem[1], " ".join(problem[2].split()), " ".join(problem[3].split()))
    # From the most specific to the most general: a text often matches several.
    return (
        apply_rules(failure, (*SOURCES, *STORES), text)
        or _machine_error(failure, text, statement)
        or apply_rules(failure, KAFKA, text)
        or _other_error(failure, text, statement)
    )


def collect_messages(failure: BaseException) -> str:
    """Return the messages of an exception and of all its causes."""
    messages: list[str] = []
    error: Any = failure
    while error is not None and len(messages) < 20:  # longer chains repeat themselves
        messages.append(f"{type(error).__name__}: {error}")
        messages.extend(str(getattr(error, name, "") or "") for name in ("_stackTrace", "_desc"))
        error = getattr(error, "_cause", None) or error.__cause__
    return "\n".join(messages)


def _kernel_error(code: str, message: str, help: str) -> StreamError:
    known = code if code in get_args(Code) else "W2201"  # the kernel does not import the list of codes
    return StreamError(message, code=cast("Code", known), help=help)


def _machine_error(failure: BaseException, text: str, statement: str) -> WeftError | None:
    if full := find_disk_full_message(failure, text):
        return ConnectorError(
            f"a batch of {statement!r} cannot be written: {full}",
            code="W2309",
            help=f"free space on the disks of the sink and of the checkpoint; {_AGAIN}",
        )
    if problem := diagnose_worker(text):
        return StreamError(f"{statement!r} failed: {problem.message}", code="W1809", help=f"{problem.help}; {_AGAIN}")
    lost = next((mark for mark in _LOST if mark in text), "")
    if not lost and is_jvm_gone(failure):
        lost = "Spark's JVM no longer answers"
    if lost:
        return StreamError(
            f"{statement!r} lost a worker: {lost}",
            code="W2214",
            help="start the job again: it continues after its last commit; if memory is short, read less in each batch",
        )
    return None


def _other_error(failure: BaseException, text: str, statement: str) -> StreamError:
    inner = [c for c in find_conditions(failure, text) if not c.name.startswith(_OUTER)]
    raised = [r for r in _RAISED.findall(text) if not r.startswith("pyspark.")]
    if inner and inner[0].name == _IN_WORKER and raised:
        reason = f"{raised[-1]} ({_IN_WORKER})"
    elif inner:
        reason = f"{inner[0].message.strip()} ({inner[0].name})"
    else:
        reason = strip_sqlstate(text.strip().splitlines()[0])
    return StreamError(f"{statement!r} failed: {reason}", code="W2201", help=_AGAIN)
