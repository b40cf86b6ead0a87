"""Which modules Spark's workers are known not to have, without a job."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

from weft.joins.spark.workers import PYTHON, WORKERS_NEED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
            [program, "-c", _PROGRAM, *WORKERS_NEED],
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return ()
    return tuple(told.stdout.split())
