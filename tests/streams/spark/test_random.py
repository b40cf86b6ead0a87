"""Random streams through real streaming queries: equal to the reference row for row and batch for batch.

Two hundred of them run without a JVM in tests/streams; what Spark adds is shuffling, packing, types,
sources and restarts, so a few short ones are enough here.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from random_streams import Run, as_set, random_run
from stream_spark import job_of, run_memory
from weft.testing.stream_reference import run_reference

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RUNS = 20
MOST = 4


def short_runs() -> list[Run]:
    """Return runs of few batches whose times do not depend on the clock on the wall."""
    found: list[Run] = []
    seed = 0
    while len(found) < RUNS:
        run = random_run(seed)
        seed += 1
        timeless = not run.idle and not any("wall_clock" in option for option in run.options)
        if timeless and 1 < len(run.fed) <= MOST:
            found.append(run)
    return found


@pytest.mark.parametrize("run", short_runs(), ids=lambda run: f"seed-{run.seed}")
def test_a_random_run_equals_the_reference(run: Run, spark: SparkSession, tmp_path: Path) -> None:
    plan = job_of(run.sql, tmp_path, groups=min(run.groups, 2))
    wanted = run_reference(plan.statements[0], run.fed, final=run.final)
    found = run_memory(spark, plan, run.batches, final=run.final)
    assert as_set(found.rows) == as_set(wanted.rows), str(run)
    assert found.ledger == {side: dict(counts) for side, counts in wanted.ledger.items()}, str(run)
