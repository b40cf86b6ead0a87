"""The stream job of the acceptance samples, unchanged, through the command line."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from command_line import weft

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SAMPLE = Path(__file__).parent / "data" / "streams" / "orders_shipments"
JOB = "orders_shipments.sql"
UNSHIPPED = {"ORD-009", "ORD-010"}
LEDGER = {
    "left": {"in": 10, "matched": 8, "waiting": 0, "unmatched": 2, "late": 0, "rejected": 0, "evicted": 0},
    "right": {"in": 8, "matched": 8, "waiting": 0, "unmatched": 0, "late": 0, "rejected": 0, "evicted": 0},
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    shutil.copytree(SAMPLE, tmp_path / "streams")
    return tmp_path / "streams"


def status_of(spark: SparkSession, folder: Path) -> dict[str, str]:
    rows: list[Any] = spark.read.parquet(str(folder)).collect()
    assert len({row.order_id for row in rows}) == len(rows)
    return {row.order_id: row.status for row in rows}


def test_the_sample_gives_eight_shipped_and_two_unshipped_orders(spark: SparkSession, root: Path) -> None:
    ran = weft("stream", "run", JOB, "--final", "--json", root=root, spark=spark)
    assert ran.code == 0, ran.out
    (query,) = ran.data["queries"]
    assert ran.data["sealed"] is True
    assert (query["sink"], query["location"], query["rows"]) == ("order_status", "out/order_status", 10)
    assert query["ledger"] == LEDGER
    assert query["sides"] == {"left": "orders", "right": "shipments"}
    found = status_of(spark, root / "out" / "order_status")
    assert {name for name, given in found.items() if given == "UNSHIPPED_ORDER"} == UNSHIPPED
    assert list(found.values()).count("MATCHED") == 8
    again = weft("stream", "run", JOB, "--final", "--json", root=root, spark=spark)
    assert (again.code, again.codes) == (8, ["W2204"])
    reported = weft("stream", "status", JOB, "--json", root=root).data
    assert (reported["state"], reported["statements"][0]["rows"]) == ("sealed", 10)
    assert reported["statements"][0]["ledger"] == LEDGER
    anew = weft("stream", "run", JOB, "--final", "--fresh", root=root, spark=spark)
    assert anew.code == 0
    assert "order_status  10 rows in out/order_status (parquet), sealed" in anew.out
    assert "  orders     10        8        0          2     0         0        0" in anew.out
    assert "  ORD-009   75.00         NULL         NULL                 UNSHIPPED_ORDER" in anew.out
    assert "order_status  flush" in anew.err
    assert status_of(spark, root / "out" / "order_status") == found


def test_what_is_there_is_read_and_later_rows_are_joined_with_it(spark: SparkSession, root: Path) -> None:
    shipments = root / "data" / "shipments.csv"
    head, *lines = shipments.read_text().splitlines()
    shipments.unlink()
    (root / "data" / "shipped").mkdir()
    (root / "data" / "shipped" / "1.csv").write_text("\n".join([head, *lines[:5]]))
    job = root / JOB
    job.write_text(job.read_text().replace("data/shipments.csv", "data/shipped"))
    first = weft("stream", "run", JOB, "--json", root=root, spark=spark).data
    assert (first["sealed"], first["queries"][0]["rows"]) == (False, 5)
    waiting = weft("stream", "status", JOB, "--json", root=root).data["statements"][0]
    assert waiting["ledger"]["left"]["waiting"] == 5
    assert waiting["held_back_by"] == "shipments"
    (root / "data" / "shipped" / "2.csv").write_text("\n".join([head, *lines[5:]]))
    last = weft("stream", "run", JOB, "--final", "--json", root=root, spark=spark).data
    assert last["queries"][0]["ledger"] == LEDGER
    assert set(status_of(spark, root / "out" / "order_status").values()) == {"MATCHED", "UNSHIPPED_ORDER"}


def test_the_same_job_as_a_batch_gives_the_same_rows(spark: SparkSession, root: Path) -> None:
    batch = weft("stream", "run", JOB, "--batch", "--to", "batch", "--json", root=root, spark=spark).data
    assert (batch["queries"][0]["ledger"], batch["sealed"], batch["checkpoint"]) == (None, False, None)
    weft("stream", "run", JOB, "--final", root=root, spark=spark)
    rows = {
        folder: sorted(str(tuple(row)) for row in spark.read.parquet(str(root / folder)).collect())
        for folder in ("batch", "out/order_status")
    }
    assert rows["batch"] == rows["out/order_status"]
    assert len(rows["batch"]) == 10
    over = weft("stream", "run", JOB, "--batch", "--json", root=root, spark=spark)
    assert (over.code, over.codes) == (8, ["W2215"])
