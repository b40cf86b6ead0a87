from __future__ import annotations

import datetime as dt
import threading
import time

import pytest

from store_values import lock, new_run
from weft.errors import RunError, StoreError
from weft.pipelines.store.locks import Heartbeat
from weft.pipelines.store.writer import Store

SOON = 0.01
LOCK = "run/pr-fx_reporting/2026-01"


class Beats:
    """Counts beats; from `fails_at` on each raises."""

    def __init__(self, fails_at: int = 10**9) -> None:
        self.count = 0
        self.fails_at = fails_at
        self.enough = threading.Event()

    def __call__(self) -> None:
        self.count += 1
        if self.count >= 3:
            self.enough.set()
        if self.count >= self.fails_at:
            self.enough.set()
            raise StoreError("the store is gone", help="wait")


def test_it_beats_until_its_context_ends() -> None:
    beats = Beats()
    with Heartbeat(beats, SOON) as heartbeat:
        assert beats.enough.wait(10)
        heartbeat.check()
    seen = beats.count
    assert not heartbeat.is_lost
    assert seen >= 3
    assert threading.active_count() == len([t for t in threading.enumerate() if t.name != "weft heartbeat"])
    assert beats.count == seen


def test_the_first_failure_is_kept_and_reported() -> None:
    beats = Beats(fails_at=2)
    with Heartbeat(beats, SOON) as heartbeat:
        assert beats.enough.wait(10)
        heartbeat._thread.join(10)
        assert heartbeat.is_lost
        with pytest.raises(StoreError, match="the store is gone"):
            heartbeat.check()
    assert beats.count == 2


def heard(store: Store) -> dt.datetime:
    lease = lock(store, LOCK)
    assert lease is not None
    return lease.heartbeat_at


def test_a_beat_moves_the_lease_on(store: Store) -> None:
    run = store.create_run(new_run())
    before = heard(store)
    with store.heartbeat(run.id, SOON) as heartbeat:
        moved = any(heard(store) > before for _ in range(1000))
        heartbeat.check()
    assert moved


def test_a_run_that_somebody_cancels_learns_it_from_its_heartbeat(store: Store) -> None:
    run = store.create_run(new_run())
    store.set_running(run.id)
    with store.heartbeat(run.id, SOON) as heartbeat:
        store.cancel(run.id)
        heartbeat._thread.join(10)
        with pytest.raises(RunError, match="was cancelled: its jobs are stopped and nothing is published") as lost:
            heartbeat.check()
    assert lost.value.code == "W1502"


def test_a_cancelled_run_learns_it_long_before_its_next_beat(store: Store) -> None:
    run = store.create_run(new_run())
    store.set_running(run.id)
    with store.heartbeat(run.id, 3600) as heartbeat:
        store.cancel(run.id)
        heartbeat._thread.join(60)
        assert heartbeat.is_lost


def test_a_look_that_the_store_does_not_answer_is_not_the_end() -> None:
    looks: list[int] = []

    def look() -> None:
        looks.append(1)
        raise StoreError("the store does not answer", help="try again")

    with Heartbeat(lambda: None, 3600, look, SOON) as heartbeat:
        while len(looks) < 3:
            time.sleep(SOON)
            heartbeat.check()
