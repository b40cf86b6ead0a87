"""Heartbeat: a thread that tells the store that the process of a run is alive."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Self

from weft.errors import WeftError


class Heartbeat:
    """Beats until its context ends; `check` raises once the run is lost or the store is gone."""

    def __init__(self, beat: Callable[[], None], every: float) -> None:
        self._beat = beat
        self._every = every
        self._over = threading.Event()
        self._failure: WeftError | None = None
        self._thread = threading.Thread(target=self._run, name="weft heartbeat", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End the thread; a beat that is under way is waited for."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()

    @property
    def is_lost(self) -> bool:
        """Whether a beat has failed: the run belongs to somebody else, or the store is gone."""
        return self._failure is not None

    def check(self) -> None:
        """Raise what a beat met, when it met something."""
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        while not self._over.wait(self._every):
            try:
                self._beat()
            except WeftError as failure:
                self._failure = failure
                return
