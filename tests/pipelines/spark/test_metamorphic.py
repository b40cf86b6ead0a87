"""How data is cut and what joins it never change a row or an id."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines import WRITE_ALL, join, run, sample, site, update

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pipelines import Site

OPERATIONS = [
    update(
        10,
        joins=join("fx", "exchange_rates", "currency = fx.from_currency AND fx.rate_type = 'closing'"),
        amount_reporting="amount_local * fx.rate",
        kind="accounts.type",
    ),
    update(
        20,
        joins=join("every", "exchange_rates", "currency = every.from_currency", on_multiple="all"),
        r="every.rate",
    ),
    (
        "- {seq: 30, name: T, type: aggregate, arguments: {group_by: [kind, currency], aggregations: "
        "[{column: total, expression: SUM(amount_reporting)}, {column: n, expression: COUNT(*)}]}}"
    ),
    "- {seq: 40, name: A, type: append, arguments: {source: {dataset_id: budgets}, columns: {amount_local: amount, currency: currency}}}",
    "- {seq: 50, name: D, type: delete, selector: 'amount_local < 0'}",
    WRITE_ALL,
]


def made(folder: Path, key: str = "natural_key_columns: [journal_id, line_number]") -> Site:
    gl = (Path(__file__).parents[2] / "data" / "fx" / "datasets" / "gl.v1.yml").read_text(encoding="utf-8")
    changed = gl.replace("natural_key_columns: [journal_id, line_number]", key)
    return site(folder, OPERATIONS, {"datasets/gl.v1.yml": changed})


def rows_of(spark: SparkSession, found: Site, **options: Any) -> list[str]:
    data = sample()
    seed = options.pop("seed", None)
    data["transactions"] = [*data["transactions"], data["transactions"][2]]  # one row is there twice
    if seed is not None:
        for rows in data.values():
            random.Random(seed).shuffle(rows)
    return sorted(
        json.dumps(row, default=str, sort_keys=True) for row in run(spark, found.plan(), data, **options).last
    )


def test_rows_and_ids_depend_on_the_data_alone(spark: SparkSession, tmp_path: Path) -> None:
    found = made(tmp_path)
    wanted = rows_of(spark, found, partitions=1)
    for options in (
        {"partitions": 2, "seed": 1},
        {"partitions": 7, "seed": 2},
        {"partitions": 3, "seed": 3, "size_of": lambda _: 1},
        {"partitions": 3, "seed": 4, "size_of": lambda _: 1 << 40},
        {"counted": False},
    ):
        assert rows_of(spark, found, **options) == wanted


def test_rows_without_a_key_are_distinguished_by_their_columns(spark: SparkSession, tmp_path: Path) -> None:
    found = made(tmp_path, "natural_key_columns: []")
    wanted = rows_of(spark, found, partitions=1)
    ids = [json.loads(row)["_row_id"] for row in wanted]
    assert len(set(ids)) == len(ids)
    assert rows_of(spark, found, partitions=5, seed=9) == wanted


SCRIPT = """
import sys
from pathlib import Path
from pyspark.sql import SparkSession
sys.path.insert(0, {tests!r})
sys.path.insert(0, {here!r})
from test_metamorphic import made, rows_of
session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
session = session.config("spark.sql.shuffle.partitions", "3").config("spark.sql.session.timeZone", "UTC").getOrCreate()
Path({out!r}).write_text("\\n".join(rows_of(session, made(Path({folder!r})), partitions=3, seed=5)), encoding="utf-8")
session.stop()
"""


def test_one_core_gives_what_two_give(spark: SparkSession, tmp_path: Path) -> None:
    out = tmp_path / "rows.txt"
    here = Path(__file__).parent
    text = SCRIPT.format(tests=str(here.parents[1]), here=str(here), out=str(out), folder=str(tmp_path / "one"))
    (tmp_path / "one").mkdir()
    subprocess.run(
        [sys.executable, "-c", text],
        check=True,
        env=os.environ | {"TZ": "UTC", "PYTHONPATH": os.pathsep.join(sys.path)},
        timeout=600,
    )
    assert out.read_text(encoding="utf-8").split("\n") == rows_of(spark, made(tmp_path / "two"))
