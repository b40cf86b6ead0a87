from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))

import stream_report
from measure import spark_costs
from report import loaded, losses, summary_table
from stream_data import stream_data
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
    named = {name.replace("_", ":"): reported for name, reported in engines.items()}
    path = tmp_path / "temporal.json"
    path.write_text(json.dumps({"workloads": {workload: {"title": "a title", "engines": named}}}))
    return loaded(path)


def found(reported: dict[str, Any], workload: str, word: str) -> tuple[str, bool | None] | None:
    (target,) = (t for t in TARGETS if t.workload == workload and word in t.aim)
    return target.find(reported)


def test_an_engine_with_another_answer_than_duckdb_is_a_mismatch(tmp_path: Path) -> None:
    reported = results(tmp_path, "W1", weft=record(2.0, matched=8), duckdb=record(1.0), polars=record(1.0))
    engines = reported["workloads"]["W1"]["engines"]
    assert engines["weft"]["status"] == "MISMATCH"
    assert engines["weft"]["reason"] == "matches 8 for 9"
    assert engines["polars"]["status"] == "ok"


def test_a_time_with_a_wrong_answer_neither_meets_an_aim_nor_counts_as_faster(tmp_path: Path) -> None:
    reported = results(tmp_path, "W1", weft=record(1.0), spark_union=record(9.0), tempo_union=record(0.5, matched=1))
    assert found(reported, "W1", "by hand") == ("0.11 x", True)
    assert losses(reported) == ["- nowhere"]
    reported = results(tmp_path, "W1", weft=record(1.0, matched=1), spark_union=record(9.0))
    assert found(reported, "W1", "by hand") is None


def test_an_engine_that_was_stopped_meets_an_aim_by_how_long_it_was_let_run(tmp_path: Path) -> None:
    stopped = record(None, status="did not finish", limit_seconds=100.0, checksum=None)
    reported = results(tmp_path, "W1", weft=record(2.0), spark_native=stopped)
    assert found(reported, "W1", "Spark's own") == ("stopped after 100 s = 50 x", True)
    reported = results(tmp_path, "W1", weft=record(4.0), spark_native=stopped)
    assert found(reported, "W1", "Spark's own") == ("stopped after 100 s = 25 x", False)
    assert "| > 100 |" in summary_table(reported)[-1]


def test_a_faster_engine_is_reported(tmp_path: Path) -> None:
    reported = results(tmp_path, "W2", weft=record(2.0), duckdb=record(0.5), polars=record(4.0))
    assert losses(reported) == ["- W2: duckdb in 0.25 of Weft's 2.00 s"]


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


def stream_record(median: float | None, **more: Any) -> dict[str, Any]:
    return {
        "status": "ok",
        "reason": "",
        "median": median,
        "seconds": [median] if median else [],
        "checksum": {"rows": 1000, "matched": 800, "sum": 5},
        "about": {"pyspark": "4.3.0"},
        "peak_rss_bytes": 2**30,
        "machine": {
            "cpu": "a cpu",
            "cores": 2,
            "memory_gib": 24,
            "python": "3.11",
            "pyspark": "4.3.0",
            "load_before": 0.5,
        },
        "date": "2026-01-15T00:00:00+00:00",
        "code": "abc",
    } | more


def stream_results(tmp_path: Path, **engines: dict[str, Any]) -> dict[str, Any]:
    named = {name.replace("_", ":"): reported for name, reported in engines.items()}
    path = tmp_path / "streams.json"
    path.write_text(json.dumps({"rows": [1000, 800], "engines": named, "paced": {}}), encoding="utf-8")
    return stream_report.loaded(path)


def test_no_stream_engine_with_other_pairs_has_a_time(tmp_path: Path) -> None:
    other = stream_record(0.1, checksum={"rows": 1000, "matched": 799, "sum": 4})
    reported = stream_results(tmp_path, weft_sql=stream_record(1.0), flink_hashmap=other)
    assert reported["engines"]["flink:hashmap"]["status"] == "MISMATCH"
    assert "| flink:hashmap | MISMATCH | | | | | | 799 pairs for 800 |" in stream_report.engine_table(reported)
    assert not any("PyFlink" in line for line in stream_report.aims(reported))


def test_rows_that_stay_in_state_are_shown_beside_the_time(tmp_path: Path) -> None:
    left = stream_record(2.0, checksum={"rows": 990, "matched": 800, "sum": 5})
    reported = stream_results(tmp_path, weft_sql=stream_record(1.0), spark_hand=left)
    lines = stream_report.engine_table(reported)
    assert lines[2].startswith("| **weft:sql** | 1.0 |")
    assert lines[2].endswith("| every order, flushed at the end |")
    assert lines[3].endswith("| 10 unmatched orders stay in state |")


def test_the_aims_of_the_streaming_benchmark(tmp_path: Path) -> None:
    reported = stream_results(
        tmp_path,
        weft_sql=stream_record(2.0),
        weft_relation=stream_record(4.3),
        spark_hand=stream_record(4.0),
        flink_hashmap=stream_record(1.0),
    )
    assert stream_report.aims(reported)[2:] == [
        "| streaming relations at most 1.05 x the join by hand | 1.07 x | **missed** |",
        "| streaming SQL no slower than the join by hand | 0.50 x | met |",
        "| at least the throughput of PyFlink, state in memory | 0.50 x | **missed** |",
    ]


@pytest.mark.parametrize(
    ("both", "given"),
    [(50, "1.20 x the orders of an hour (aim 1.2 x, met)"), (51, "1.22 x"), (51, "**missed**")],
)
def test_rows_that_wait_are_shown_beside_those_of_an_hour(both: int, given: str) -> None:
    reported = {
        "status": "ok",
        "rows": [1000, 800],
        "batches": 9,
        "peak_state_rows": [45, 8],
        "peak_state_of_both": both,
    }
    assert given in stream_report.state_line({"state": reported})
    assert stream_report.state_line({}) == ""


@pytest.mark.parametrize("stretches", [None, 12])
def test_stream_data_is_the_same_rows_cut_in_two_ways(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stretches: int | None
) -> None:
    monkeypatch.setenv("WEFT_BENCH_DATA", str(tmp_path))
    data = stream_data(500, stretches=stretches)
    by_time, by_slot = data.folders(), data.folders(slots=True)
    for side, rows in zip(("orders", "shipments"), data.rows, strict=True):
        files = sorted(Path(by_time[side]).iterdir())
        assert [f.stat().st_mtime for f in files] == sorted({f.stat().st_mtime for f in files})
        whole = [line for f in files for line in f.read_text(encoding="utf-8").splitlines()]
        slots = [f.read_text(encoding="utf-8").splitlines() for f in sorted(Path(by_slot[side]).iterdir())]
        assert len(whole) == rows
        assert len(files) == (stretches or 22)
        assert [whole[i::2] for i in range(2)] == slots
    ordered = {json.loads(line)["order_id"] for line in _lines(by_time["orders"])}
    assert {json.loads(line)["order_id"] for line in _lines(by_time["shipments"])} < ordered


def _lines(folder: str) -> list[str]:
    return [line for file in Path(folder).iterdir() for line in file.read_text(encoding="utf-8").splitlines()]
