"""Workers that cannot run the kernel: plans that need no Python are chosen, and what is missing is named."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import bare_workers


def test_workers_without_numpy_join_small_frames_and_name_what_is_missing(tmp_path: Path) -> None:
    bare = tmp_path / "bare" / "python"
    bare.parent.mkdir()
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    bare.chmod(0o755)
    done = subprocess.run(
        [sys.executable, bare_workers.__file__, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": str(Path(bare_workers.__file__).parent), "PYSPARK_PYTHON": str(bare)},
    )
    assert done.returncode == 0, done.stderr
    reported = json.loads(done.stdout.splitlines()[-1])
    assert 0 < reported["bytes"] < 100_000
    assert reported["keyed"] == ["union", [[1, None], [3, None], [5, 7]]]
    assert reported["keyless"] == ["union", [[1, 7], [3, 7], [5, 8]]]
    assert reported["slices"] == ["slices", reported["keyed"][1]]
    for code, message, help_ in (reported["refused"], reported["failed"]):
        assert code == "W1809"
        assert "numpy" in message
        assert f"PYSPARK_PYTHON={sys.executable}" in help_
