"""Limits on the rows of a side hold over all tasks: the same rows are evicted, whatever the number of tasks."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from stream_checkpoints import SQL, as_set, order, shipment
from weft.errors import StreamError
from weft.streams.checkpoint.rejects import list_reject_files
from weft.streams.plan.resolve import plan_job
from weft.streams.plan.resolved import StatementPlan
from weft.streams.sql.lower import read_spec
from weft.testing.stream_engine import StreamResult, run_statement


def limited(options: str) -> StatementPlan:
    sql = SQL.replace("'10' SECOND", "'60' SECOND").rstrip() + f" WITH ({options})"
    return plan_job(read_spec(sql, file="small.sql"), Path("/nowhere")).statements[0]


def random_batches(seed: int) -> list[dict[str, list[Any]]]:
    """Return batches in which rows have equal times and equal content."""
    rng = random.Random(seed)
    batches: list[dict[str, list[Any]]] = []
    for batch in range(6):
        seconds = [10 * batch + rng.randint(0, 12) for _ in range(rng.randint(3, 12))]
        orders = [order(f"k{rng.randint(0, 9)}", second, rng.randint(0, 2)) for second in seconds]
        shipments = [shipment(f"k{rng.randint(0, 9)}", second + rng.randint(0, 3)) for second in seconds[::2]]
        batches.append({"orders": orders, "shipments": shipments})
    return batches


def evicted(found: StreamResult) -> list[Any]:
    tables = [pq.read_table(file.path).to_pylist() for file in list_reject_files(found.checkpoint)]
    names = ("side", "reason", "event_time", "watermark", "batch", "matched", "row")
    return sorted(([row[name] for name in names] for table in tables for row in table), key=repr)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize(
    "options", ["'join.max_state_rows' = '5'", "'join.s.max_state_rows' = '3', 'join.max_rows_per_key' = '2'"]
)
def test_the_number_of_tasks_changes_nothing(tmp_path: Path, seed: int, options: str) -> None:
    plan, batches = limited(options), random_batches(seed)
    alone = run_statement(plan, batches, root=tmp_path / "1", groups=1)
    for groups in (2, 3, 8):
        found = run_statement(plan, batches, root=tmp_path / str(groups), groups=groups)
        assert as_set(found.rows) == as_set(alone.rows)
        assert found.ledger == alone.ledger
        assert evicted(found) == evicted(alone) != []
        for side in ("left", "right"):
            # Each task counts the hits of its own keys.
            of_all = ("limit_hits",) if "per_key" not in options else ()
            stats = {
                name: found.stats[side][name] for name in ("records_evicted", "peak_size", "current_keys", *of_all)
            }
            assert stats == {name: alone.stats[side][name] for name in stats}


def test_a_side_never_has_more_rows_than_its_limit_after_a_batch(tmp_path: Path) -> None:
    found = run_statement(
        limited("'join.max_state_rows' = '4'"), random_batches(1), root=tmp_path, groups=3, final=False
    )
    assert found.stats["left"]["current_size"] == found.stats["left"]["peak_size"] == 4


def test_a_limit_that_must_hold_stops_the_batch_before_its_commit(tmp_path: Path) -> None:
    plan = limited("'join.max_state_rows' = '4', 'join.eviction' = 'fail'")
    with pytest.raises(StreamError, match=r"more than 'join.max_state_rows' = '4' allows") as caught:
        run_statement(plan, random_batches(1), root=tmp_path, groups=3)
    assert caught.value.code == "W2209"
    assert list(tmp_path.rglob("commits/*.json")) == []
