"""Progress of a run: its observers, the thread that polls Spark, and Ctrl-C.

The first Ctrl-C stops the jobs of the run and cancels it, the second ends the process at once.  While outputs are moved
to their targets, the first is held back until they are committed.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, Protocol

from weft.io.spark.session import JVM_GONE, Session
from weft.pipelines.plan.project import ProjectPlan
from weft.pipelines.plan.stages import Stage
from weft.pipelines.spark.counts import OperationCounts
from weft.pipelines.store.records import RunRecord

EVERY = 0.4
"""Seconds between two polls of Spark."""

PATIENCE = 8
"""How often the jobs of a lost run are interrupted before the query is abandoned."""


class Progress(Protocol):
    """Observer of the progress of a run."""

    def opened(self, run: RunRecord, plan: ProjectPlan) -> None:
        """Receive a run that has started, with its plan."""

    def started(self, stages: tuple[Stage, ...]) -> None:
        """Receive the stages of the run."""

    def operation(self, seq: int, fraction: float, counts: OperationCounts | None) -> None:
        """Receive the completed fraction of an operation, from 0 to 1; its counts come with 1."""

    def finished(self) -> None:
        """Receive the end of the run."""


class Silent:
    """Ignores all progress."""

    def opened(self, run: RunRecord, plan: ProjectPlan) -> None:
        """Do nothing."""

    def started(self, stages: tuple[Stage, ...]) -> None:
        """Do nothing."""

    def operation(self, seq: int, fraction: float, counts: OperationCounts | None) -> None:
        """Do nothing."""

    def finished(self) -> None:
        """Do nothing."""


class Meter:
    """The fraction of the tasks of an action that are done; it never decreases.

    >>> meter = Meter()
    >>> meter.seen(1, 4), meter.seen(2, 16), meter.seen(16, 16)
    (0.25, 0.25, 0.99)
    """

    def __init__(self) -> None:
        self.fraction = 0.0

    def seen(self, done: int, total: int) -> float:
        """Return the fraction after a poll; 1 is reserved for the end, because more stages may follow."""
        if total > 0:
            self.fraction = max(self.fraction, min(done / total, 0.99))
        return self.fraction


@contextmanager
def watched(
    session: Session, tag: str, seqs: Sequence[int], progress: Progress, lost: Callable[[], bool], every: float = EVERY
) -> Iterator[None]:
    """Report the progress of the operations of one action; interrupt it when the run is `lost`.

    A query whose jobs were stopped at a bad moment may wait for them forever inside Spark's adaptive
    planning.  Then the thread that waits for Spark is interrupted as by Ctrl-C, and the query is abandoned.
    """
    waiting = threading.current_thread()

    def give_up() -> None:
        # A signal is handled by the main thread, so only a run in that thread can be interrupted this way.
        if waiting is threading.main_thread() and waiting.ident is not None:
            signal.pthread_kill(waiting.ident, signal.SIGINT)

    over, meter = threading.Event(), Meter()

    def report(done: int, total: int) -> None:
        before = meter.fraction
        if meter.seen(done, total) != before:
            for seq in seqs:
                progress.operation(seq, meter.fraction, None)

    # A Connect server pushes its progress; a classic session is polled, from the jobs of this action on.
    def on_progress(stages: Any, **_: Any) -> None:
        known = list(stages or ())
        report(sum(s.num_completed_tasks for s in known), sum(s.num_tasks for s in known))

    def poll() -> None:
        since, rounds = -1 if session.is_connect else first, 0
        # When the JVM is killed, the thread that waits for the action reports it; this one just ends.
        with suppress(*JVM_GONE):
            while not over.wait(every):
                if lost():
                    # Repeatedly: a query that is between two of its jobs would continue with the next one.
                    session.interrupt(tag)
                    rounds += 1
                    if rounds == PATIENCE:
                        give_up()
                elif not session.is_connect:
                    report(*session.done_tasks(tag, since))

    handler: Any = on_progress
    first = -1 if session.is_connect else session.last_job(tag)
    for seq in seqs:
        progress.operation(seq, 0.0, None)
    thread = threading.Thread(target=poll, name="weft progress", daemon=True)
    if session.is_connect:
        session.spark.registerProgressHandler(handler)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        if session.is_connect:
            session.spark.removeProgressHandler(handler)


INTERRUPTED = 130
"""Exit code of a process that was interrupted."""
_PY4J_LOGGERS = (None, "py4j.clientserver", "py4j.java_gateway")
"""The loggers that py4j writes to; None is the root logger."""


class Interrupts:
    """The effect of Ctrl-C on a run."""

    def __init__(self, session: Session | None, tag: str) -> None:
        self.session = session
        self.tag = tag
        self.count = 0
        self._held = False

    def __call__(self, _number: int = signal.SIGINT, _frame: FrameType | None = None) -> None:
        """Handle a Ctrl-C."""
        self.count += 1
        if self.count > 1:
            # A regular exit would wait for the threads and for the JVM, which may be what does not answer.
            os._exit(INTERRUPTED)
        if self._held:
            return
        if self.session is not None:
            # Another thread stops the jobs: this one may be in the middle of a call to Spark.
            threading.Thread(target=self._interrupt, args=(self.session,), daemon=True).start()
        raise KeyboardInterrupt

    def _interrupt(self, session: Session) -> None:
        # Ctrl-C in a terminal also ends the JVM: then no job is left to stop.
        with suppress(Exception):
            session.interrupt(self.tag)

    def is_news(self, record: logging.LogRecord) -> bool:
        """Whether a log record is worth showing: py4j logs every call that Ctrl-C ends."""
        return not (self.count or str(record.msg).startswith("KeyboardInterrupt while sending command"))

    @contextmanager
    def held(self) -> Iterator[None]:
        """Ignore a first Ctrl-C until the end of the block: the run completes."""
        self._held = True
        try:
            yield
        finally:
            self._held = False


@contextmanager
def cancellable(session: Session | None, run_id: str) -> Iterator[Interrupts]:
    """Let Ctrl-C cancel a run; outside the main thread there are no signals and nothing changes."""
    interrupts = Interrupts(session, run_id)
    if threading.current_thread() is not threading.main_thread():
        yield interrupts
        return
    before = signal.signal(signal.SIGINT, interrupts)
    loggers = [logging.getLogger(name) for name in _PY4J_LOGGERS]
    for logger in loggers:
        logger.addFilter(interrupts.is_news)
    try:
        yield interrupts
    finally:
        for logger in loggers:
            logger.removeFilter(interrupts.is_news)
        signal.signal(signal.SIGINT, before)
