"""Ctrl-C, crash points, progress: what a run does between its steps."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from engine_data import sample_workspace
from weft.core import crash
from weft.core.calendar import GREGORIAN
from weft.errors import ResolutionError, RunError, RuntimeJoinError
from weft.pipelines.model.read_workspace import load_workspace
from weft.pipelines.plan.catalog import Catalog
from weft.pipelines.plan.project import resolve_project
from weft.pipelines.run.failing import OperationFailedError, explain_failure, operation_of
from weft.pipelines.run.progress import Meter, cancellable


class Interrupted:
    """A session that remembers what was interrupted."""

    def __init__(self) -> None:
        self.tags: list[str] = []
        self.seen = threading.Event()

    def interrupt(self, tag: str) -> None:
        self.tags.append(tag)
        self.seen.set()


def test_the_first_interrupt_stops_the_jobs_and_the_run() -> None:
    session: Any = Interrupted()
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), cancellable(session, "run-1"):
        signal.raise_signal(signal.SIGINT)
    assert session.seen.wait(5)
    assert session.tags == ["run-1"]
    assert signal.getsignal(signal.SIGINT) is before


def test_an_interrupt_is_held_back_while_outputs_move(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[int] = []
    monkeypatch.setattr("weft.pipelines.run.progress.os._exit", ended.append)
    with cancellable(None, "run-1") as interrupts:
        with interrupts.held():
            os.kill(os.getpid(), signal.SIGINT)
            assert (interrupts.count, ended) == (1, [])
            os.kill(os.getpid(), signal.SIGINT)
        assert ended == [130]


def test_outside_of_the_main_thread_nothing_changes() -> None:
    before = signal.getsignal(signal.SIGINT)
    seen: list[Any] = []

    def work() -> None:
        with cancellable(None, "run-1"):
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before]


def test_a_crash_point_ends_the_process_at_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    killed: list[tuple[int, int]] = []
    monkeypatch.setattr("weft.core.crash.os.kill", lambda pid, number: killed.append((pid, number)))
    monkeypatch.setattr(crash, "_passed", type(crash._passed)())
    monkeypatch.setenv(crash.VARIABLE, "staged:2")
    crash.crash_point("operation")
    crash.crash_point("staged")
    assert killed == []
    crash.crash_point("staged")
    assert killed == [(os.getpid(), signal.SIGKILL)]


def test_progress_never_goes_back_and_ends_last() -> None:
    meter = Meter()
    assert [meter.seen(*n) for n in [(0, 0), (1, 2), (2, 8), (8, 8)]] == [0.0, 0.5, 0.5, 0.99]


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        (
            "[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012\nat x",
            "W1513",
            "Division by zero. (DIVIDE_BY_ZERO)",
        ),
        ("java.io.IOException: No space left on device", "W1508", "no space"),
        ("[PATH_NOT_FOUND] Path does not exist: file:/x. SQLSTATE: 42K03", "W1309", "Path does not exist"),
        ("", "W1513", "operation 10 failed: Exception"),
    ],
)
def test_failures_of_spark_become_messages_of_weft(text: str, code: str, message: str) -> None:
    error = explain_failure(Exception(text), "operation 10")
    assert error.code == code
    assert message in error.message


def test_our_own_errors_stay_as_they_are() -> None:
    error = ResolutionError("no", code="W1309")
    assert explain_failure(error, "operation 10") is error
    failure = OperationFailedError(20, RunError("it broke", code="W1513"), [10, 20]).failure()
    assert (failure.operation_order, failure.code, failure.message) == (20, "W1513", "it broke")
    assert failure.detail.startswith("operations 10, 20 ran as one step")


def test_a_failed_step_of_several_operations_belongs_to_the_one_with_the_join_or_to_the_last(tmp_path: Path) -> None:
    workspace = load_workspace(sample_workspace(tmp_path)).workspace
    period = GREGORIAN.parse("2026-01")
    plan = resolve_project(workspace.projects[0], Catalog.of(workspace), period=period, calendar=GREGORIAN)
    joined = RuntimeJoinError("several rows match", code="W1209")
    joined.alias = "fx"
    assert [op.seq for op in plan.operations] == [10, 20]
    assert operation_of(joined, plan.operations) == 10
    assert operation_of(RunError("it broke", code="W1513"), plan.operations) == 20
    assert operation_of(joined, ()) is None
