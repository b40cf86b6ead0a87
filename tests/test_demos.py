"""The demo runs to its end as `make demo` starts it: in a process of its own, with no Python named for workers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DEMO = Path(__file__).parents[1] / "examples" / "demo.py"


def run_demo(*parts: str) -> subprocess.CompletedProcess[str]:
    bare = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK_")}
    return subprocess.run(
        [sys.executable, DEMO, *parts],
        env=bare | {"PYTHONPATH": str(DEMO.parents[1] / "src")},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.usefixtures("jvm")
def test_the_demo_runs_to_its_end_without_noise() -> None:
    ran = run_demo()
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-2000:]
    for given in ("natural_asof", "completed in", "The same job as a batch gives the same rows", "Try next"):
        assert given in ran.stdout
    assert "weft doctor --fast-start" in ran.stdout.rpartition("Try next")[2]
    # A sentence before each step, and nothing of Spark's log.
    assert ran.stdout.count("\n# ") > 14
    assert not re.search(r"\b(WARN|ERROR) \w+:|log4j", ran.stdout)
    # Progress goes to stderr; warnings of Spark and of Python are noise there.
    assert not re.search(r"WARN|ERROR|Warning|Traceback|Spark|Stage", ran.stderr), ran.stderr


def test_a_part_that_is_not_there_is_refused_with_the_names_of_those_that_are() -> None:
    ran = run_demo("join")
    assert ran.returncode == 1
    assert "no part named join; there are joins, pipeline, streams" in ran.stderr
