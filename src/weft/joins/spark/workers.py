"""The Python of Spark's workers: what it needs, what is known of it, how functions get there, what failures mean.

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
    """Why workers cannot run a kernel, and what to type; errors carry it as W1809."""

    message: str
    help: str


def diagnose_worker(text: str) -> WorkerProblem | None:
    """Return what a failure says about the Python of the workers, None when it is about something else.

    >>> said = "thrown from the Python worker: ModuleNotFoundError: No module named 'pyarrow'"
    >>> diagnose_worker(said).message
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


_PROGRAM = "import importlib.util as u, sys; print(*[m for m in sys.argv[1:] if u.find_spec(m) is None])"
_PATIENCE = 20


def missing_modules(session: SparkSession) -> tuple[str, ...]:
    """Return the modules that workers are known not to have; those of a cluster are not known.

    A driver without them is taken as a sign that workers have none either.  Workers of a local session run on
    this machine: when theirs is another Python, it is asked, once in the life of this process.
    """
    ours = tuple(name for name in WORKERS_NEED if find_spec(name) is None)
    other = _local_python(session)
    if other is None or _is_this_python(other):
        return ours
    return ours or _asked(other)


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
def _asked(program: str) -> tuple[str, ...]:
    """Return the modules that a Python does not have; none when it cannot be asked."""
    try:
        told = subprocess.run(  # noqa: S603  # the program that Spark runs anyway
            [program, "-c", _PROGRAM, *WORKERS_NEED], capture_output=True, text=True, timeout=_PATIENCE, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ()
    return tuple(told.stdout.split())


F = TypeVar("F", bound=Callable[..., object])


class _Shipped:
    """A function on its way: unpacking it looks for the modules it needs before they are imported."""

    def __init__(self, function: Callable[..., object], needs: tuple[str, ...], advice: str) -> None:
        self.function, self.needs, self.advice = function, needs, advice

    def __call__(self, left: object, right: object) -> object:
        return self.function(left, right)

    def __reduce__(self) -> tuple[Any, ...]:
        shipped = cloudpickle.dumps(self.function)  # type: ignore[no-untyped-call]  # pyspark ships it untyped
        return unpacked, (shipped, self.needs, self.advice)


def unpacked(shipped: bytes, needs: tuple[str, ...], advice: str) -> Any:
    """Return a function that was sent, on the worker; a module that it needs and that is not there is named."""
    missing = [name for name in needs if find_spec(name) is None]
    if missing:
        message = (
            f"[W1809] the Python of Spark's workers, {sys.executable}, has no module {' and no module '.join(missing)}. "
            f"Next: {advice}"
        )
        raise ModuleNotFoundError(message)
    return cloudpickle.loads(shipped)


def ship_by_value(modules: Sequence[ModuleType], function: F) -> F:
    """Return `function` so that it travels with its modules instead of by their names.

    A worker without numpy or pyarrow fails with W1809, before Spark's own code or the function imports them.
    """
    for module in (*modules, sys.modules[__name__]):
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]  # pyspark ships it untyped
    advice = f"{format_worker_help()}; or take a plan that needs no Python: strategy='union'"
    return _Shipped(function, tuple(WORKERS_NEED), advice)  # type: ignore[return-value]  # it is called like the function
