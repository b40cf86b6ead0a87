"""As-of joins of a local session whose workers run a Python without numpy and pyarrow; prints what happens as JSON.

``bare_workers.py FOLDER``; PYSPARK_PYTHON names that Python.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from weft import AsofOrder, AsofSpec, WeftError, relation
from weft.joins.spark import workers
from weft.joins.spark.facts import estimate_bytes


def main(folder: Path) -> None:
    """Print plans, rows and errors."""
    bare = os.environ["PYSPARK_PYTHON"]
    from pyspark.sql import SparkSession

    from conftest import settings

    os.environ["PYSPARK_PYTHON"] = bare  # which conftest has changed

    builder = SparkSession.builder.master("local[1]")
    for key, value in settings(folder).items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    reported: dict[str, Any] = {}
    try:
        left = relation(session.createDataFrame([("A", 1), ("A", 5), ("B", 3)], "k string, t long"))
        right = relation(session.createDataFrame([("A", 4, 7), ("B", 9, 8)], "k string, u long, v long"))
        reported["bytes"] = estimate_bytes(left.filter("t > 0").df)
        keyed = AsofSpec([("k", "k")], order=AsofOrder("t", "u"))
        keyless = AsofSpec((), order=AsofOrder("t", "u"), direction="forward")
        for name, spec, how in (
            ("keyed", keyed, {}),
            ("keyless", keyless, {"suffixes": ("", "_right")}),
            ("slices", keyed, {"strategy": "slices"}),
        ):
            joined = left.asof_join(right, spec, **how)
            assert joined.lineage is not None
            reported[name] = [
                joined.lineage.choice.strategy,
                sorted(map(list, joined.select("t", "v").collect())),
            ]
        reported["refused"] = _error(lambda: left.asof_join(right, keyed, strategy="kernel"))
        workers._probe = lambda _: ()  # type: ignore[assignment]  # as on a cluster: not known
        reported["failed"] = _error(lambda: left.asof_join(right, keyed, strategy="kernel").collect())
    finally:
        session.stop()
    sys.stdout.write(json.dumps(reported))


def _error(action: Any) -> list[str]:
    try:
        action()
    except WeftError as error:
        return [error.code, error.message, error.help]
    return []


if __name__ == "__main__":
    main(Path(sys.argv[1]))
