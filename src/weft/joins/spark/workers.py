"""The Python of Spark's workers: the packages it needs and has, how functions are sent to it, what failures mean.

Spark starts the Python that ``PYSPARK_PYTHON`` names when the session starts, and ``python3`` of the PATH
when it names none.  Workers need no Weft: its functions are sent to them by value.
"""

from __future__ import annotations

import itertools
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from pyspark import cloudpickle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


PYTHON = "PYSPARK_PYTHON"
PYTHON_CONF = "spark.pyspark.python"
WORKERS_NEED: Mapping[str, str] = {"numpy": "1.26", "pyarrow": "18"}
"""Packages that kernels import on workers, with their oldest release."""
DRIVER_NEEDS: Mapping[str, str] = {**WORKERS_NEED, "pandas": "2.2"}
"""Packages that the driver needs to send a kernel: PySpark's own check asks for pandas too."""

_NO_MODULE = re.compile(r"(?:ModuleNotFoundError|ImportError): No module named '([^'\n]+)'")
_PACKAGE = re.compile(r"\[(?:PACKAGE_NOT_INSTALLED|UNSUPPORTED_PACKAGE_VERSION)\] ([^\n]+?)\.?(?: SQLSTATE|\n|$)")
_VERSIONS = re.compile(
    r"\[PYTHON_VERSION_MISMATCH\] Python in worker has different version: (\S+) than that in driver: ([^\s,]+)"
)
_NOT_STARTED = re.compile(r'Cannot run program "([^"\n]*)"[^\n]*?: (?:error=\d+, )?([^\n]+)')
_IN_WORKER = ("PYTHON_EXCEPTION", "thrown from the Python worker", "pyspark/worker.py")
_STARTING = "PythonWorkerFactory"


@dataclass(frozen=True, slots=True)
class WorkerProblem:
    """Why workers cannot run a kernel, and what to type; the error has the code W1809."""

    message: str
    help: str


def diagnose_worker(text: str) -> WorkerProblem | None:
    """Return the problem of the workers' Python that a failure reports, None when it is about something else.

    >>> text = "thrown from the Python worker: ModuleNotFoundError: No module named 'pyarrow'"
    >>> diagnose_worker(text).message
    "the Python of Spark's workers has no module 'pyarrow'"
    """
    message = _message(text)
    return None if message is None else WorkerProblem(message, format_worker_help())


def format_worker_help() -> str:
    """Return the setting that lets workers run with the Python of this process."""
    wanted = " and ".join(f"{name}>={oldest}" for name, oldest in WORKERS_NEED.items())
    return (
        f"before Spark starts, type: export {PYTHON}={shlex.quote(sys.executable)} "
        f"(on a cluster: a Python {sys.version_info.major}.{sys.version_info.minor} that every worker has, "
        f"with {wanted}); `weft doctor` checks it"
    )


def parse_release(version: str) -> tuple[int, ...]:
    """Return the leading numbers of a version, which compare as releases do.

    >>> parse_release("2.4.6rc1"), parse_release("18")
    ((2, 4), (18,))
    """
    parts = itertools.takewhile(str.isdigit, version.split("."))
    return tuple(map(int, parts))


def _message(text: str) -> str | None:
    if versions := _VERSIONS.search(text):
        return f"Spark's workers run Python {versions[1]} and the driver runs Python {versions[2]}"
    if (program := _NOT_STARTED.search(text)) and _STARTING in text:
        return f"Spark cannot start {program[1]!r} as the Python of its workers: {program[2].strip()}"
    # A module may be missing on the driver too, which is no problem of the workers.
    if not any(mark in text for mark in _IN_WORKER):
        return None
    if module := _NO_MODULE.search(text):
        return f"the Python of Spark's workers has no module {module[1]!r}"
    if package := _PACKAGE.search(text):
        return f"the Python of Spark's workers cannot run it: {package[1]}"
    return None


_PROGRAM = "import importlib.util as u, sys; print(*[m for m in sys.argv[1:] if u.find_spec(m) is None])"
_TIMEOUT = 20  # seconds; an interpreter on a network drive may start slowly


def missing_modules(session: SparkSession) -> tuple[str, ...]:
    """Return the modules that workers are known not to have; nothing is known about workers on a cluster."""
    # If the driver lacks a module, the workers most likely lack it too.
    ours = tuple(name for name in WORKERS_NEED if find_spec(name) is None)
    other = _local_python(session)
    if other is None or _is_this_python(other):
        return ours
    return ours or _probe(other)


def _local_python(session: SparkSession) -> str | None:
    """Return the program that runs the workers when they run here, None when that is not known.

    PySpark reads PYSPARK_PYTHON when a session starts, and spark-submit sets it from spark.pyspark.python.
    """
    if type(session).__module__.startswith("pyspark.sql.connect."):
        # The server is here only when PySpark started it itself.
        local = "SPARK_LOCAL_REMOTE" in os.environ
    else:
        local = str(session.conf.get("spark.master", "")).startswith("local")
    return os.environ.get(PYTHON, "python3") if local else None


def _is_this_python(program: str) -> bool:
    """Whether a program is the Python that runs this; links are not followed, because a venv is one."""
    there = shutil.which(program)
    return there is not None and os.path.abspath(there) == os.path.abspath(sys.executable)  # noqa: PTH100  # a link stays


@cache
def _probe(program: str) -> tuple[str, ...]:
    """Run a Python and return the modules that it does not have; none when it cannot be run."""
    try:
        probe = subprocess.run(  # noqa: S603  # the program that Spark runs anyway
            [program, "-c", _PROGRAM, *WORKERS_NEED], capture_output=True, text=True, timeout=_TIMEOUT, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ()
    return tuple(probe.stdout.split())


F = TypeVar("F", bound=Callable[..., object])


class _Shipped:
    """A function that is sent to workers; when it is unpickled there, missing modules are reported first."""

    def __init__(self, function: Callable[..., object], needs: tuple[str, ...], advice: str) -> None:
        self.function, self.needs, self.advice = function, needs, advice

    def __call__(self, left: object, right: object) -> object:
        return self.function(left, right)

    def __reduce__(self) -> tuple[Any, ...]:
        # Pickled on its own: a plain pickle would import numpy while it is read, before `unpacked` can check for it.
        shipped = cloudpickle.dumps(self.function)  # type: ignore[no-untyped-call]  # pyspark ships it untyped
        return unpacked, (shipped, self.needs, self.advice)


def unpacked(shipped: bytes, needs: tuple[str, ...], advice: str) -> Any:
    """Return a function that was sent to this worker, or raise with the modules that the worker does not have."""
    missing = [name for name in needs if find_spec(name) is None]
    if missing:
        message = (
            f"[W1809] the Python of Spark's workers, {sys.executable}, has no module {' and no module '.join(missing)}. "
            f"Next: {advice}"  # `weft.joins.spark.failures` reads code, message and help from this form
        )
        raise ModuleNotFoundError(message)
    return cloudpickle.loads(shipped)


def ship_by_value(modules: Sequence[ModuleType], function: F) -> F:
    """Return `function` so that its modules are sent with it, instead of imported by the worker.

    A worker without numpy or pyarrow fails with W1809, before Spark's own code or the function imports them.
    """
    for module in (*modules, sys.modules[__name__]):
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]  # pyspark ships it untyped
    advice = f"{format_worker_help()}; or take a plan that needs no Python: strategy='union'"
    return _Shipped(function, tuple(WORKERS_NEED), advice)  # type: ignore[return-value]  # it is called like the function
