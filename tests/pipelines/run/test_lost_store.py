"""A store that goes away while a run publishes: nothing is half done, and the run is finished when it is back."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine_data import sample_workspace
from postgres import running_server
from staged_runs import TARGETS, TWO_OUTPUTS, contents, staged_run
from weft.errors import StoreError
from weft.pipelines.run.moving import staged_runs as left_behind
from weft.pipelines.run.publish import recover
from weft.pipelines.store.open import open_store, upgrade_store

FIRST, SECOND = TARGETS


def test_a_store_that_is_gone_stops_the_run_and_the_next_start_finishes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = sample_workspace(tmp_path, {"projects/fx_reporting.yml": TWO_OUTPUTS})
    with running_server() as server:
        url = server.create("runs")
        upgrade_store(url, root)
        with open_store(url, root, patience=0.5) as store:
            early = staged_run(root, store, "new", number=1)
            server.stop()
            with pytest.raises(StoreError, match="W1601"):
                early.publish()
            assert contents(root, FIRST) == []
            assert left_behind(root) == (early.run_id,)
            server.start()
            early.publish()
            assert contents(root, FIRST) == ["new 20"]

            late = staged_run(root, store, "newer", number=2)
            complete = store.complete

            def gone(*given: object, **named: object) -> object:
                server.stop()
                return complete(*given, **named)  # type: ignore[arg-type]

            monkeypatch.setattr(store, "complete", gone)
            with pytest.raises(StoreError, match="W1601"):
                late.publish()
            server.start()
        with open_store(url, root, patience=2.0) as again:
            # Another host would wait for the lease to run out; here the process is known to live.
            monkeypatch.setattr("weft.pipelines.store.locks.is_alive", lambda _pid: False)
            monkeypatch.setattr("weft.pipelines.store.locks.stale.__defaults__", (lambda _pid: False,))
            assert [r.outcome for r in recover(again, root)] == ["completed"]
            assert (contents(root, FIRST), contents(root, SECOND)) == (["newer 20"], ["newer 30"])
            assert [d.version for d in again.dataset_versions("gl_usd")] == [1, 2]
            assert again.locks() == ()
