"""Heartbeat: a thread that tells the store that the process of a run is alive, and hears when it is not wanted."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Self

from weft.errors import StoreError, WeftError

LOOK_SECONDS = 1.0
"""How often a process looks whether its run was cancelled; a look only reads."""


class Heartbeat:
    """Beats until its context ends; `check` raises once the run is lost or the store is gone.

    `look` is called more often than `beat`: it raises when the run is lost, so that a run that is cancelled
    from elsewhere stops within seconds.
    """

    def __init__(
        self,
        beat: Callable[[], None],
        every: float,
        look: Callable[[], None] | None = None,
        look_every: float = LOOK_SECONDS,
    ) -> None:
        self._beat = beat
        self._every = every
        self._look = look
        self._pause = every if look is None else min(every, look_every)
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
        waited = 0.0
        while not self._over.wait(self._pause):
            waited += self._pause
            try:
                if waited >= self._every:
                    waited = 0.0
                    self._beat()
                elif self._look is not None:
                    self._look()
            except StoreError as failure:
                # A store that does not answer a look may answer the next beat.
                if waited == 0.0:
                    self._failure = failure
                    return
            except WeftError as failure:
                self._failure = failure
                return
