"""The demos run to their end as `make demo` starts them: in a process of their own, with no Python named for workers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.mark.usefixtures("jvm")
@pytest.mark.parametrize(
    ("demo", "said"),
    [
        ("pipeline_demo", "completed in"),
        ("join_demo", "natural_asof"),
        ("stream_demo", "the same job as a batch gives the same rows"),
    ],
)
def test_a_demo_runs_to_its_end(demo: str, said: str) -> None:
    bare = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK_")}
    ran = subprocess.run(
        [sys.executable, EXAMPLES / f"{demo}.py"],
        env=bare | {"PYTHONPATH": str(EXAMPLES.parent / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-2000:]
    assert said in ran.stdout
