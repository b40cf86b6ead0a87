"""Kill -9 between any two steps of a batch, then restart: as if nothing had happened.

The engine without a JVM has the same state files, commits and recovery as the one on Spark; that one is
killed in tests/streams/run/test_kill.py.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stream_checkpoints import BATCHES, as_set, run
from weft.core.crash import STREAM_POINTS, VARIABLE

TESTS = Path(__file__).parents[2]
ONCE = {"stream_flush", "stream_sealed"}
POINTS = 30


MEMORY = Path("/dev/shm")  # noqa: S108  # a killed process loses nothing that it wrote, on any disk


def points() -> list[str]:
    """Return thirty points: each of them in the first batch, then others by chance, the flush included."""
    chosen = random.Random(30)  # the same points in every run
    first = [f"{p}:1" for p in STREAM_POINTS]
    others = [f"{p}:{n}" for p in STREAM_POINTS if p not in ONCE for n in range(2, len(BATCHES) + 2)]
    return [*first, *chosen.sample(others, POINTS - len(first))]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a folder in memory where there is one: thousands of small files are synced."""
    made = Path(tempfile.mkdtemp(dir=MEMORY if MEMORY.is_dir() else tmp_path_factory.mktemp("kills")))
    yield made
    shutil.rmtree(made)


@pytest.fixture(scope="module")
def runs(folder: Path) -> dict[str, dict[str, Any]]:
    """Return what was left after each kill and restart."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(TESTS), str(TESTS.parent / "src")))}
    environment.pop(VARIABLE, None)
    done = subprocess.run(
        [sys.executable, str(TESTS / "stream_kills.py"), str(folder), *points()],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return {one["point"]: one for one in found}


@pytest.fixture(scope="module")
def whole(folder: Path) -> Any:
    return run(folder / "whole")


@pytest.mark.parametrize("point", points())
def test_a_killed_run_goes_on_as_if_nothing_had_happened(
    point: str, runs: dict[str, dict[str, Any]], whole: Any
) -> None:
    found = runs[point]
    assert found["first"] == -signal.SIGKILL
    assert found["second"] == 0
    assert found["rows"] == [[str(v) for v in row] for row in as_set(whole.rows)]
    assert found["ledger"] == {side: dict(counts) for side, counts in whole.ledger.items()}
    assert found["stray"] == []
    assert found["sealed"] == point.startswith("stream_sealed")
