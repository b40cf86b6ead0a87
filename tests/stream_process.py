"""Runs a stream job on Spark as a process of its own, so that a test may kill it."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

_INTERVAL = "spark.sql.streaming.fileSource.log.compactInterval"


def main(root: Path) -> None:
    """Run the job of the folder to its end."""
    os.environ["TZ"] = "UTC"
    time.tzset()
    from stream_spark import job_of
    from weft.core.frozen import FrozenMap
    from weft.io.options import SparkSettings
    from weft.io.spark.session import session_for
    from weft.streams.run.job import run_job

    # Every second entry of a file source gathers those before it, which is otherwise every tenth.
    settings = SparkSettings(master="local[2]", conf=FrozenMap({_INTERVAL: "2"}))
    with session_for(settings, root) as session:
        run_job(session.spark, job_of((root / "job.sql").read_text(), root), mode="final")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
