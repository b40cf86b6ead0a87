"""Ctrl-C: the first stops the jobs of the run and cancels it, the second ends the process at once.

While outputs are moved to their targets the first is held back until they are committed.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from weft.io.spark.session import Session

INTERRUPTED = 130
"""Exit code of a process that was interrupted."""
_TALKERS = (None, "py4j.clientserver", "py4j.java_gateway")
"""The loggers that py4j writes to."""


class Interrupts:
    """What Ctrl-C does to a run."""

    def __init__(self, session: Session | None, tag: str) -> None:
        self.session = session
        self.tag = tag
        self.count = 0
        self._held = False

    def __call__(self, _number: int = signal.SIGINT, _frame: FrameType | None = None) -> None:
        """Take a Ctrl-C."""
        self.count += 1
        if self.count > 1:
            os._exit(INTERRUPTED)
        if self._held:
            return
        if self.session is not None:
            # The jobs are told by another thread: this one may be in the middle of a call to Spark.
            threading.Thread(target=self._tell, args=(self.session,), daemon=True).start()
        raise KeyboardInterrupt

    def _tell(self, session: Session) -> None:
        # Ctrl-C of a terminal goes to the JVM too: when it has ended, no job is left to stop.
        with suppress(Exception):
            session.interrupt(self.tag)

    def is_news(self, record: logging.LogRecord) -> bool:
        """Whether a record is worth showing: py4j tells of every call that Ctrl-C ends."""
        return not (self.count or str(record.msg).startswith("KeyboardInterrupt while sending command"))

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold a Ctrl-C back until the end of the block; then it is as if it had come too late."""
        self._held = True
        try:
            yield
        finally:
            self._held = False


@contextmanager
def cancellable(session: Session | None, run_id: str) -> Iterator[Interrupts]:
    """Let Ctrl-C cancel a run; outside of the main thread signals do not come and nothing changes."""
    interrupts = Interrupts(session, run_id)
    if threading.current_thread() is not threading.main_thread():
        yield interrupts
        return
    before = signal.signal(signal.SIGINT, interrupts)
    loggers = [logging.getLogger(name) for name in _TALKERS]
    for logger in loggers:
        logger.addFilter(interrupts.is_news)
    try:
        yield interrupts
    finally:
        for logger in loggers:
            logger.removeFilter(interrupts.is_news)
        signal.signal(signal.SIGINT, before)
