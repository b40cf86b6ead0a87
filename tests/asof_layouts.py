"""One data set for as-of joins that is laid out in many ways, and what every layout must give.

As a program, ``asof_layouts.py FOLDER``, it joins the files below FOLDER on one core and on four, and
prints the rows of each plan as JSON.
"""

from __future__ import annotations

import json
import random
import sys
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from join_cases import rows_of
from weft import AsofOrder, AsofSpec, asof_strategies, relation
from weft.core.types import LONG, STRING, Field, Schema
from weft.joins.choose import ASOF
from weft.joins.resolve.join import resolve_join
from weft.testing import Table, reference_join

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

    from weft.joins.resolve.resolved import ResolvedJoin

_SAID: dict[str, dict[str, Any]] = {
    "backward": {"tolerance": 6},
    "forward": {"direction": "forward", "allow_exact_matches": False, "how": "inner"},
    "nearest": {"direction": "nearest", "tolerance": "unbounded"},
    "skipping": {"skip_nulls": ("c",)},
    "full": {"direction": "nearest", "tolerance": 3, "how": "full"},
}
_SPECS = {name: AsofSpec([("k", "k")], order=AsofOrder("t", "u"), **given) for name, given in _SAID.items()}
_MASTERS = ("local[1]", "local[4]")


def tables() -> tuple[Table, Table]:
    """Return both sides: one heavy key, ties, equal rows, NULL keys and NULL times."""
    rng = random.Random(11)

    def rows(count: int) -> list[tuple[Any, ...]]:
        made = [
            (rng.choice(("A", "A", "A", "A", "B", "C", None)), rng.choice((None, *range(60))), i // 2)
            for i in range(count)
        ]
        return made + made[:10]

    left = Schema((Field("k", STRING), Field("t", LONG), Field("a", LONG)))
    right = Schema((Field("k", STRING), Field("u", LONG), Field("b", LONG), Field("c", STRING)))
    noted = ((*row, rng.choice((None, "x", "y"))) for row in rows(120))
    return Table(left, tuple(rows(150))), Table(right, tuple(noted))


def _served(strategy: str) -> Iterator[tuple[str, AsofSpec, ResolvedJoin]]:
    left, right = tables()
    for name, spec in _SPECS.items():
        join = resolve_join(spec, left.schema, right.schema)
        if ASOF[strategy](join) is None:
            yield name, spec, join


def expected(strategy: str) -> list[tuple[Any, ...]]:
    """Return the rows of all specs that a plan serves, by the reference engine."""
    left, right = tables()
    return [(name, *row) for name, _, join in _served(strategy) for row in reference_join(join, left.rows, right.rows)]


def joined(left: DataFrame, right: DataFrame, strategy: str) -> DataFrame:
    """Return the rows of all specs that a plan serves, as one frame."""
    results = [
        relation(left)
        .asof_join(relation(right), spec, strategy=strategy, order_check="ignore")
        .df.selectExpr(f"'{name}' AS spec", "*")
        for name, spec, _ in _served(strategy)
    ]
    return reduce(lambda one, other: one.unionAll(other), results)


def main(folder: Path) -> None:
    """Print what each plan gives with few and with many cores."""
    from pyspark.sql import SparkSession

    from conftest import settings

    found: dict[str, dict[str, Any]] = {}
    for master in _MASTERS:
        builder = SparkSession.builder.master(master)
        for key, value in settings(folder).items():
            builder = builder.config(key, value)
        session = builder.getOrCreate()
        try:
            left, right = (session.read.parquet(str(folder / side)) for side in ("left", "right"))
            found[master] = {name: rows_of(joined(left, right, name)) for name in asof_strategies()}
        finally:
            session.stop()
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
