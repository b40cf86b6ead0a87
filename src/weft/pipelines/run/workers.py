"""Workers: whether their Python can run the functions of a run; used by `weft doctor`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from threading import Timer
from typing import Any

from weft.errors import WeftError
from weft.io.spark.session import Session
from weft.joins.spark.workers import WORKERS_NEED, diagnose_worker, format_worker_help, parse_release

_SECONDS = 60.0
_TAG = "weft-doctor"
"""The tag of the task, by which it is stopped when no worker takes it in time."""
# Runs in Pythons that may have nothing installed: the standard library alone.
_SCRIPT = """
import importlib, json, platform, sys
packages = {}
for name in sys.argv[1:]:
    try:
        packages[name] = str(importlib.import_module(name).__version__)
    except Exception:
        packages[name] = None
print(json.dumps({"python": platform.python_version(), "packages": packages}))
"""


@dataclass(frozen=True, slots=True)
class WorkerPython:
    """The Python of the workers; `problem` says why it cannot run a kernel, `help` what to type."""

    python: str
    packages: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""
    help: str = ""

    def __str__(self) -> str:
        has = ", ".join(f"{name} {version}" for name, version in self.packages.items())
        return " ".join(filter(None, (self.python, f"with {has}" if has else "")))


def local_workers(python: str) -> WorkerPython:
    """Return what the program that starts workers on this machine has, without a Spark session."""
    try:
        # The program that Spark itself would start.
        ran = subprocess.run(  # noqa: S603
            [python, "-c", _SCRIPT, *WORKERS_NEED], capture_output=True, text=True, check=False, timeout=_SECONDS
        )
    except OSError as cause:
        return _unable(python, f"{python} does not start: {cause.strerror}")
    except subprocess.TimeoutExpired:
        return _unable(python, f"{python} did not answer within {_SECONDS:.0f} seconds")
    try:
        answer = json.loads(ran.stdout)
    except ValueError:
        # The last line of a traceback is the error.
        reason = next(reversed(ran.stderr.strip().splitlines()), "it printed nothing")
        return _unable(python, f"{python} is not a working Python: {reason}")
    return check_python(f"Python {answer['python']} at {python}", answer["python"], answer["packages"])


def session_workers(session: Session) -> WorkerPython:
    """Return what a worker of a session has, which runs one task for it."""

    def ask(batches: Iterator[Any]) -> Iterator[Any]:
        import platform  # noqa: PLC0415  # this runs on the worker

        import numpy  # noqa: ICN001, PLC0415
        import pyarrow  # noqa: ICN001, PLC0415

        for _ in batches:
            versions = [platform.python_version(), numpy.__version__, pyarrow.__version__]
            yield pyarrow.RecordBatch.from_arrays([pyarrow.array([text]) for text in versions], ["p", "n", "a"])

    limit = Timer(_SECONDS, session.interrupt, [_TAG])
    limit.start()
    try:
        with session.tagged(_TAG):
            row = session.spark.range(1).mapInArrow(ask, "p string, n string, a string").collect()[0]
    except Exception as failure:  # noqa: BLE001  # any failure is the result of the check
        return explain_worker_failure(failure)
    finally:
        limit.cancel()
    return check_python(f"Python {row['p']}", row["p"], {"numpy": row["n"], "pyarrow": row["a"]})


def explain_worker_failure(failure: Exception, seconds: float = _SECONDS) -> WorkerPython:
    """Return why no worker answered a question, and what to type."""
    if isinstance(failure, WeftError):
        return WorkerPython("", problem=failure.message, help=failure.help)
    known = diagnose_worker(str(failure))
    if known is not None:
        return WorkerPython("", problem=known.message, help=known.help)
    reason = str(failure).strip().splitlines()[0] if str(failure).strip() else type(failure).__name__
    return WorkerPython(
        "",
        problem=f"no worker ran a task within {seconds:.0f} seconds: {reason}",
        help="check that the cluster has a free core and memory for an executor",
    )


def check_python(name: str, version: str, packages: Mapping[str, str | None]) -> WorkerPython:
    """Return what a Python has, with the problem that keeps it from running kernels."""
    has = {package: release for package, release in packages.items() if release is not None}
    missing = [package for package in WORKERS_NEED if package not in has]
    old = [p for p, oldest in WORKERS_NEED.items() if p in has and parse_release(has[p]) < parse_release(oldest)]
    if parse_release(version)[:2] != sys.version_info[:2]:
        ours = f"{sys.version_info.major}.{sys.version_info.minor}"
        return _unable(name, f"the workers run {name} and the driver runs Python {ours}", has)
    if missing:
        return _unable(name, f"{name} has no {' and no '.join(missing)}", has)
    if old:
        versions = " and ".join(f"{p} {has[p]}, older than {WORKERS_NEED[p]}" for p in old)
        return _unable(name, f"{name} has {versions}", has)
    return WorkerPython(name, has)


def _unable(python: str, problem: str, packages: Mapping[str, str] | None = None) -> WorkerPython:
    return WorkerPython(python, packages or {}, problem, format_worker_help())
