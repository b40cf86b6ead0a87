"""The FX reporting pipeline from the command line: make a workspace, check it, run it, look at its rows."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from weft.cli.main import run_command

FOLDER = Path(__file__).parents[1] / "build" / "demo" / "fx"
PERIOD = "2026-01"


def weft(*words: str) -> None:
    """Run a command as it would be typed; end when it fails."""
    sys.stdout.write(f"\n$ weft {' '.join(words)}\n")
    sys.stdout.flush()
    code = run_command(["-C", str(FOLDER), *words])
    if code:
        sys.exit(code)


def main() -> None:
    """Run the demo; its files stay below ``build/demo``."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    # Workers must be of the Python that runs this, wherever `python3` leads to.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = (
        SparkSession.builder.master("local[2]")
        .appName("weft demo")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.warehouse.dir", str(FOLDER / ".weft" / "warehouse"))
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    weft("init", "--template", "fx", "--quiet")
    weft("validate")
    weft("plan", "fx_reporting", "-p", PERIOD)
    weft("run", "fx_reporting", "-p", PERIOD)
    output = FOLDER / "out" / "processed_gl" / f"period={PERIOD}"
    sys.stdout.write(f"\nthe rows in {output}\n")
    spark.read.parquet(str(output)).orderBy("journal_id", "line_number").show()
    weft("test")
    weft("runs")
    spark.stop()


if __name__ == "__main__":
    main()
