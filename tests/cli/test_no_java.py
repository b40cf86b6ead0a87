"""A run on a machine without a usable Java: Spark is really started, and says no."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine_data import sample_workspace

SRC = Path(__file__).parents[2] / "src"
TOO_OLD = """\
#!/bin/sh
echo "java.lang.UnsupportedClassVersionError: org/apache/spark/launcher/Main" >&2
exit 1
"""


@pytest.mark.parametrize("java", [None, TOO_OLD], ids=["missing", "too old"])
def test_a_run_without_java_says_so(tmp_path: Path, java: str | None) -> None:
    root, home = sample_workspace(tmp_path), tmp_path / "java"
    (home / "bin").mkdir(parents=True)
    if java is not None:
        (home / "bin" / "java").write_text(java, encoding="utf-8")
        (home / "bin" / "java").chmod(0o755)
    kept = {key: value for key, value in os.environ.items() if key not in ("SPARK_REMOTE", "SPARK_HOME")}
    ran = subprocess.run(
        [sys.executable, "-m", "weft", "-C", str(root), "run", "-p", "2026-01", "--json"],
        capture_output=True,
        text=True,
        check=False,
        env=kept | {"PYTHONPATH": str(SRC), "JAVA_HOME": str(home)},
    )
    document = json.loads(ran.stdout)
    (found,) = document["diagnostics"]
    assert (ran.returncode, found["code"], ran.stderr) == (1, "W1807", "")
    assert found["help"] == "Spark needs Java 17 or newer; `weft doctor` shows the installed version"
    # Nothing exists of the run: it can simply be started again.
    runs = subprocess.run(
        [sys.executable, "-m", "weft", "-C", str(root), "runs", "--json"],
        capture_output=True,
        text=True,
        check=True,
        env=kept | {"PYTHONPATH": str(SRC)},
    )
    assert json.loads(runs.stdout)["data"]["runs"] == []
