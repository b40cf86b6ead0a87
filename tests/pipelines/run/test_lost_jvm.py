"""A run whose JVM is killed ends as failed, with a code and without a traceback, whatever call notices it."""

from __future__ import annotations

import json
import time
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError

import jvm_kill_process
from engine_data import sample_workspace
from engine_runs import opened
from kills import running
from weft.io.spark.session import Session, is_jvm_gone
from weft.pipelines.run.failing import explain_errors, explain_failure
from weft.pipelines.run.progress import Silent, watched
from weft.pipelines.run.resume import resume
from weft.pipelines.spark.counts import Counts, Tally

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS = """\
weft: 1
default_resolver: files
spark: {master: "local[1]", conf: {spark.driver.memory: 512m, spark.sql.shuffle.partitions: "1"}}
"""
GONE = [
    ConnectionRefusedError(111, "Connection refused"),
    Py4JNetworkError("Answer from Java side is empty"),
    Py4JError("An error occurred while calling o243.select"),
    Py4JError("PythonUtils does not exist in the JVM"),
]


@pytest.mark.parametrize("failure", GONE, ids=str)
def test_whatever_call_fails_the_message_names_the_jvm(failure: Exception) -> None:
    error = explain_failure(failure, "operation 10 'Convert'")
    assert (error.code, error.message) == ("W1513", "operation 10 'Convert' failed: Spark's JVM has ended")
    assert "--resume" in error.help
    with (
        pytest.raises(type(error), match="starting the run failed: Spark's JVM has ended"),
        explain_errors("starting the run"),
    ):
        raise failure


def test_a_jvm_that_answers_is_not_gone() -> None:
    assert not is_jvm_gone(Py4JError("An error occurred while calling o1.x. Trace:\npy4j.Py4JException: no x"))
    assert not is_jvm_gone(RuntimeError("Connection refused"))
    wrapped = RuntimeError("an action failed")
    wrapped.__cause__ = Py4JNetworkError("Answer from Java side is empty")
    assert is_jvm_gone(wrapped)


class GoneSession(Session):
    """A classic session whose JVM was killed after the action began."""

    def last_job(self, tag: str) -> int:  # noqa: ARG002
        return -1

    def done_tasks(self, tag: str, since: int = -1) -> tuple[int, int]:  # noqa: ARG002
        raise ConnectionRefusedError(111, "Connection refused")


def test_the_thread_that_watches_ends_quietly(capfd: pytest.CaptureFixture[str]) -> None:
    session = GoneSession(cast("Any", SimpleNamespace()))
    with watched(session, "run", [10], Silent(), lambda: False, every=0.01):
        time.sleep(0.1)
    assert capfd.readouterr().err == ""


def test_tags_that_cannot_be_removed_leave_the_failure_as_it_is() -> None:
    def fail(*_: object) -> None:
        raise ConnectionRefusedError(111, "Connection refused")

    context = SimpleNamespace(setJobGroup=lambda *_: None, setLocalProperty=fail)
    spark = SimpleNamespace(addTag=lambda _: None, removeTag=fail, sparkContext=context)
    with pytest.raises(RuntimeError, match="of the operation"), Session(cast("Any", spark)).tagged("run"):
        raise RuntimeError("of the operation")


def test_counts_of_a_jvm_that_has_ended_fail_instead_of_being_zero() -> None:
    class Observation:
        @property
        def get(self) -> dict[str, int]:
            raise ConnectionRefusedError(111, "Connection refused")

    counts = Counts()
    counts._waiting.append((Observation(), Tally().written(10), {}))
    with pytest.raises(ConnectionRefusedError):
        counts.result()


@pytest.mark.parametrize(("point", "seconds"), [("operation", 0.3), ("staged", 0.0)])
def test_a_run_whose_jvm_is_killed_fails_and_can_be_resumed(
    tmp_path: Path, spark: SparkSession, point: str, seconds: float
) -> None:
    root = sample_workspace(tmp_path, {"weft.yml": SETTINGS})
    log = tmp_path / "log"
    script = str(Path(jvm_kill_process.__file__))
    words = ["-C", str(root), "run", "fx_reporting", "-p", "2026-01", "--json"]
    with running([script, point, str(seconds), *words], log=log) as process:
        code = process.wait(300)
    printed = log.read_text()
    assert "Traceback" not in printed
    document = json.loads(printed[printed.index("{") :])
    with opened(root) as store:
        run = store.run("LAST")
        assert (code, run.status) == (1, "failed")
        (finding,) = [d for d in document["diagnostics"] if d["severity"] == "error"]
        assert finding["code"] == "W1513"
        assert finding["message"].endswith("failed: Spark's JVM has ended")
        assert resume(run.id, root=root, store=store, session=Session(spark)).ok
