"""The Python of Spark's workers: what it needs for Weft's kernels, and what its failures mean.

Spark starts the Python that ``PYSPARK_PYTHON`` names when the session starts, and ``python3`` of the PATH
when it names none.  Workers need no Weft: its functions are sent to them by value.
"""

from __future__ import annotations

import itertools
import re
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass

PYTHON = "PYSPARK_PYTHON"
PYTHON_CONF = "spark.pyspark.python"
WORKERS_NEED: Mapping[str, str] = {"numpy": "1.26", "pyarrow": "18"}
"""Packages that kernels import on workers, with their oldest release."""
DRIVER_NEEDS: Mapping[str, str] = {**WORKERS_NEED, "pandas": "2.2"}
"""Packages that the driver needs to send a kernel: PySpark's own check asks for pandas too."""

_NO_MODULE = re.compile(r"(?:ModuleNotFoundError|ImportError): No module named '([^'\n]+)'")
_PACKAGE = re.compile(
    r"\[(?:PACKAGE_NOT_INSTALLED|UNSUPPORTED_PACKAGE_VERSION)\] ([^\n]+?)\.?(?: SQLSTATE|\n|$)"
)
_VERSIONS = re.compile(
    r"\[PYTHON_VERSION_MISMATCH\] Python in worker has different version: (\S+) than that in driver: ([^\s,]+)"
)
_NOT_STARTED = re.compile(r'Cannot run program "([^"\n]*)"[^\n]*?: (?:error=\d+, )?([^\n]+)')
_IN_WORKER = ("PYTHON_EXCEPTION", "thrown from the Python worker", "pyspark/worker.py")
_STARTING = "PythonWorkerFactory"


@dataclass(frozen=True, slots=True)
class WorkerProblem:
    """Why workers cannot run a kernel, and what to type; errors carry it as W1809."""

    message: str
    help: str


def worker_problem(text: str) -> WorkerProblem | None:
    """Return what a failure says about the Python of the workers, None when it is about something else.

    >>> said = "thrown from the Python worker: ModuleNotFoundError: No module named 'pyarrow'"
    >>> worker_problem(said).message
    "the Python of Spark's workers has no module 'pyarrow'"
    """
    message = _message(text)
    return None if message is None else WorkerProblem(message, help_for_workers())


def help_for_workers() -> str:
    """Return the setting that lets workers run with the Python of this process."""
    wanted = " and ".join(f"{name}>={oldest}" for name, oldest in WORKERS_NEED.items())
    return (
        f"before Spark starts, type: export {PYTHON}={shlex.quote(sys.executable)} "
        f"(on a cluster: a Python {sys.version_info.major}.{sys.version_info.minor} that every worker has, "
        f"with {wanted}); `weft doctor` checks it"
    )


def release(version: str) -> tuple[int, ...]:
    """Return the leading numbers of a version, which compare as releases do.

    >>> release("2.4.6rc1"), release("18")
    ((2, 4), (18,))
    """
    parts = itertools.takewhile(str.isdigit, version.split("."))
    return tuple(map(int, parts))


def _message(text: str) -> str | None:
    if found := _VERSIONS.search(text):
        return f"Spark's workers run Python {found[1]} and the driver runs Python {found[2]}"
    if (found := _NOT_STARTED.search(text)) and _STARTING in text:
        return f"Spark cannot start {found[1]!r} as the Python of its workers: {found[2].strip()}"
    if not any(mark in text for mark in _IN_WORKER):
        return None
    if found := _NO_MODULE.search(text):
        return f"the Python of Spark's workers has no module {found[1]!r}"
    if found := _PACKAGE.search(text):
        return f"the Python of Spark's workers cannot run it: {found[1]}"
    return None
