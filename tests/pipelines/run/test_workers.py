"""The Python of the workers: which one a session gets, what it must have, and what its failures mean."""

from __future__ import annotations

import os
import shlex
import sys
import venv
from pathlib import Path

import pytest

from command_line import weft
from weft.core.frozen import FrozenMap
from weft.io.options import SparkSettings
from weft.io.spark.session import worker_python
from weft.joins.spark.workers import WORKERS_NEED, diagnose_worker
from weft.pipelines.run.failing import explain_failure
from weft.pipelines.run.workers import local_workers

# What Spark 4.3 says, shortened where "..." is.
RAISED = 'An exception was thrown from the Python worker:\nTraceback ...\n  File ".../pyspark/worker.py", line 2643, in read_udfs\n    import pyarrow as pa\n%s'
NO_MODULE = RAISED % "ModuleNotFoundError: No module named 'pyarrow'"
VERSIONS = RAISED % (
    "pyspark.errors.exceptions.base.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker has "
    "different version: 3.12 than that in driver: 3.11, PySpark cannot run with different minor versions.\n"
)
NOT_THERE = """An error occurred while calling o61.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure: ... java.io.IOException: Cannot run program "/nope/python": error=2, No such file or directory
	at java.base/java.lang.ProcessBuilder.start(ProcessBuilder.java:1143)
	at org.apache.spark.api.python.PythonWorkerFactory.startDaemon(PythonWorkerFactory.scala:371)
"""
OLD = (
    RAISED
    % "PySparkImportError: [UNSUPPORTED_PACKAGE_VERSION] PyArrow >= 18.0.0 must be installed; however, your version is 15.0.2."
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (NO_MODULE, "the Python of Spark's workers has no module 'pyarrow'"),
        (VERSIONS, "Spark's workers run Python 3.12 and the driver runs Python 3.11"),
        (NOT_THERE, "Spark cannot start '/nope/python' as the Python of its workers: No such file or directory"),
        (OLD, "the Python of Spark's workers cannot run it: PyArrow >= 18.0.0 must be installed; however, your version is 15.0.2"),
    ],
    ids=["module", "version", "program", "old"],
)  # fmt: skip
def test_a_worker_that_cannot_run_a_job_is_an_error_with_the_setting_to_paste(text: str, message: str) -> None:
    error = explain_failure(RuntimeError(text), "operation 10 'prices'")
    assert (error.code, error.message) == ("W1809", f"operation 10 'prices' failed: {message}")
    assert f"export PYSPARK_PYTHON={shlex.quote(sys.executable)} " in error.help


@pytest.mark.parametrize(
    "text",
    [
        "ModuleNotFoundError: No module named 'pyarrow'",  # of the driver
        'java.io.IOException: Cannot run program "hadoop": error=2, No such file or directory',
        RAISED % "ValueError: no such row",
        "[DIVIDE_BY_ZERO] Division by zero.",
    ],
)
def test_other_failures_do_not_blame_the_workers(text: str) -> None:
    assert diagnose_worker(text) is None


def test_a_session_of_ours_takes_the_python_that_runs_it_unless_one_is_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    conf = SparkSettings(conf=FrozenMap({"spark.pyspark.python": "/conf/python"}))
    monkeypatch.setenv("PYSPARK_PYTHON", "/env/python")
    assert worker_python(conf) == worker_python(SparkSettings()) == "/env/python"
    for unset in ("", None):  # an empty name would make Spark start a program without one
        monkeypatch.setenv("PYSPARK_PYTHON", unset) if unset is not None else monkeypatch.delenv("PYSPARK_PYTHON")
        assert worker_python(conf) == "/conf/python"
        assert worker_python(SparkSettings()) == sys.executable


def test_the_python_of_workers_is_asked_for_what_kernels_import() -> None:
    here = local_workers(sys.executable)
    assert (here.problem, here.help) == ("", "")
    assert list(here.packages) == list(WORKERS_NEED)
    assert sys.executable in str(here)


def fake_python(folder: Path, answer: str) -> str:
    file = folder / "python"
    file.write_text(f"#!/bin/sh\necho '{answer}'\n")
    file.chmod(0o755)
    return str(file)


NOW = f"{sys.version_info.major}.{sys.version_info.minor}"


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (f'{{"python": "{NOW}.1", "packages": {{"numpy": null, "pyarrow": "26.0.1"}}}}', "has no numpy"),
        (f'{{"python": "{NOW}.1", "packages": {{"numpy": "1.25.9", "pyarrow": "17.0"}}}}', "numpy 1.25.9, older than 1.26 and pyarrow 17.0, older than 18"),
        ('{"python": "3.2.1", "packages": {"numpy": "2.0", "pyarrow": "26.0"}}', f"the workers run Python 3.2.1 at {{}} and the driver runs Python {NOW}"),
        ("hello", "is not a working Python: it printed nothing"),
    ],
    ids=["missing", "old", "version", "other"],
)  # fmt: skip
def test_a_python_that_cannot_run_kernels_is_reported(answer: str, problem: str, tmp_path: Path) -> None:
    python = fake_python(tmp_path, answer)
    asked = local_workers(python)
    assert problem.format(python) in asked.problem
    assert "PYSPARK_PYTHON" in asked.help


def test_the_doctor_looks_at_the_python_of_the_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    venv.create(tmp_path / "bare", symlinks=True)
    for python, problem in (
        (tmp_path / "bare" / "bin" / "python", "has no numpy and no pyarrow"),
        (tmp_path / "nowhere", "does not start: No such file or directory"),
    ):
        monkeypatch.setenv("PYSPARK_PYTHON", str(python))
        ran = weft("doctor", "--json", root=tmp_path)
        assert ran.code == 1
        checks = {check["name"]: check for check in ran.data["checks"]}
        assert problem in checks["workers"]["found"]
        assert checks["workers"]["found"].startswith("W1809: ")
        assert f"export PYSPARK_PYTHON={shlex.quote(sys.executable)} " in checks["workers"]["help"]
    monkeypatch.delenv("PYSPARK_PYTHON")
    assert "ok  workers" in weft("doctor", root=tmp_path).out


def test_the_doctor_says_no_where_a_package_of_every_run_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)  # as where it is not installed
    ran = weft("doctor", root=tmp_path)
    assert ran.code == 1
    assert f"{shlex.quote(sys.executable)} -m pip install 'pyarrow>=18'" in ran.out


def test_the_doctor_asks_for_the_extras_of_the_workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.cli.commands.doctor._EXTRAS", {"connect": "weft-nowhere"})
    (tmp_path / "weft.yml").write_text("spark: {remote: 'sc://127.0.0.1:1'}\n")
    ran = weft("doctor", root=tmp_path)
    assert ran.code == 1
    assert "NO  weft-nowhere  not installed, but the workspace needs it" in ran.out
    assert "pip install 'weft[connect]'" in ran.out
    assert os.environ.get("SPARK_REMOTE") is None
