"""Several supervisors that start one job at the same moment: one runs it, the others are refused and write nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import supervisor_races
from weft.streams.checkpoint.lease import lock_statement

TESTS = Path(supervisor_races.__file__).parent
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join((str(TESTS), str(TESTS.parent / "src")))}
TRIES = 25
LOOKS = 400


@pytest.fixture(scope="module")
def tries(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Return what each try gave."""
    done = subprocess.run(
        [sys.executable, supervisor_races.__file__, str(tmp_path_factory.mktemp("races")), str(TRIES)],
        capture_output=True,
        text=True,
        check=False,
        env=ENVIRONMENT,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_one_of_several_supervisors_runs_the_job_and_the_others_are_refused(
    tries: list[dict[str, Any]],
) -> None:
    assert len(tries) == TRIES
    others = supervisor_races.CONTENDERS - 1
    for one in tries:
        assert len(one["winners"]) == 1
        assert one["lives"] == one["winners"]
        assert one["codes"] == ["W2215"] * others


def test_record_status_and_stop_are_those_of_the_one_that_runs(tries: list[dict[str, Any]]) -> None:
    for one in tries:
        (winner,) = one["winners"]
        assert one["recorded"] == [f"job-{winner}", winner]
        assert one["status"] == ["running", winner]
        assert one["after"] == "stopped"


def test_looking_for_the_holder_of_a_lock_keeps_nobody_from_taking_it(tmp_path: Path) -> None:
    """`weft stream status` in a loop must not make a start fail."""
    lock = tmp_path / "lock"
    code = "import sys; from pathlib import Path; from weft.streams.checkpoint.lock import find_holder\n"
    code += "lock = Path(sys.argv[1]); print(flush=True)\nwhile True: find_holder(lock)"
    looking = subprocess.Popen([sys.executable, "-c", code, str(lock)], stdout=subprocess.PIPE, env=ENVIRONMENT)
    try:
        assert looking.stdout is not None
        looking.stdout.readline()
        for _ in range(LOOKS):
            with lock_statement(lock, "statement"):
                pass
    finally:
        looking.kill()
        looking.communicate()
