from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

from measure import spark_costs
from report import loaded, losses, summary_table
from targets import TARGETS
from workloads import WORKLOADS


def record(median: float | None, matched: int = 9, **more: Any) -> dict[str, Any]:
    return {
        "status": "ok",
        "reason": "",
        "median": median,
        "checksum": {"rows": 10, "matched": matched, "sum": 5},
        "spark": [],
    } | more


def results(tmp_path: Path, workload: str, **engines: dict[str, Any]) -> dict[str, Any]:
    named = {name.replace("_", ":"): told for name, told in engines.items()}
    path = tmp_path / "temporal.json"
    path.write_text(json.dumps({"workloads": {workload: {"title": "a title", "engines": named}}}))
    return loaded(path)


def found(told: dict[str, Any], workload: str, word: str) -> tuple[str, bool | None] | None:
    (target,) = (t for t in TARGETS if t.workload == workload and word in t.aim)
    return target.find(told)


def test_an_engine_with_another_answer_than_duckdb_is_a_mismatch(tmp_path: Path) -> None:
    told = results(tmp_path, "W1", weft=record(2.0, matched=8), duckdb=record(1.0), polars=record(1.0))
    engines = told["workloads"]["W1"]["engines"]
    assert engines["weft"]["status"] == "MISMATCH"
    assert engines["weft"]["reason"] == "matches 8 for 9"
    assert engines["polars"]["status"] == "ok"


def test_a_time_with_a_wrong_answer_neither_meets_an_aim_nor_counts_as_faster(tmp_path: Path) -> None:
    told = results(
        tmp_path, "W1", weft=record(1.0), spark_union=record(9.0), tempo_union=record(0.5, matched=1)
    )
    assert found(told, "W1", "by hand") == ("0.11 x", True)
    assert losses(told) == ["- nowhere"]
    told = results(tmp_path, "W1", weft=record(1.0, matched=1), spark_union=record(9.0))
    assert found(told, "W1", "by hand") is None


def test_an_engine_that_was_stopped_meets_an_aim_by_how_long_it_was_let_run(tmp_path: Path) -> None:
    stopped = record(None, status="did not finish", limit_seconds=100.0, checksum=None)
    told = results(tmp_path, "W1", weft=record(2.0), spark_native=stopped)
    assert found(told, "W1", "Spark's own") == ("stopped after 100 s = 50 x", True)
    told = results(tmp_path, "W1", weft=record(4.0), spark_native=stopped)
    assert found(told, "W1", "Spark's own") == ("stopped after 100 s = 25 x", False)
    assert "| > 100 |" in summary_table(told)[-1]


def test_a_faster_engine_is_told(tmp_path: Path) -> None:
    told = results(tmp_path, "W2", weft=record(2.0), duckdb=record(0.5), polars=record(4.0))
    assert losses(told) == ["- W2: duckdb in 0.25 of Weft's 2.00 s"]


def test_every_aim_is_about_a_workload_that_exists() -> None:
    assert {t.workload for t in TARGETS} <= set(WORKLOADS)


def test_costs_of_tasks_are_added_up_for_the_run_that_started_their_job(tmp_path: Path) -> None:
    def task(stage: int, written: int, peak: int) -> dict[str, Any]:
        moved = {"Shuffle Bytes Written": written, "Shuffle Records Written": 2}
        read = {"Remote Bytes Read": 1, "Local Bytes Read": 2}
        metrics = {
            "Shuffle Read Metrics": read,
            "Shuffle Write Metrics": moved,
            "Peak Execution Memory": peak,
        }
        spilled = {"Disk Bytes Spilled": 4, "Memory Bytes Spilled": 5}
        return {"Event": "SparkListenerTaskEnd", "Stage ID": stage, "Task Metrics": metrics | spilled}

    def job(run: str, stages: list[int]) -> dict[str, Any]:
        named = {"spark.jobGroup.id": run}
        return {"Event": "SparkListenerJobStart", "Properties": named, "Stage IDs": stages}

    events = [job("timed-0", [0, 1]), task(0, 10, 7), job("warm-up", [2]), task(1, 20, 3), task(2, 50, 99)]
    (tmp_path / "app").write_text("".join(json.dumps(e) + "\n" for e in events))
    costs = spark_costs(tmp_path)
    assert costs["timed-0"] == {
        "jobs": 1,
        "tasks": 2,
        "shuffle_read_bytes": 6,
        "shuffle_write_bytes": 30,
        "shuffle_write_records": 4,
        "spill_disk_bytes": 8,
        "spill_memory_bytes": 10,
        "peak_task_bytes": 7,
    }
    assert costs["warm-up"]["peak_task_bytes"] == 99
