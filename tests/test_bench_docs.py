from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))

import breakdown
import stream_report
from report import BEGIN, DOCUMENT, END, RESULTS, figures, loaded, markdown
from workloads import WORKLOADS


def test_the_document_shows_the_figures_of_the_results_file() -> None:
    page = DOCUMENT.read_text(encoding="utf-8")
    shown = BEGIN + page.partition(BEGIN)[2].partition(END)[0] + END
    assert shown == figures(loaded()), "run python bench/report.py"


def test_the_report_shows_the_figures_of_the_results_file() -> None:
    assert RESULTS.with_suffix(".md").read_text(encoding="utf-8") == markdown(loaded())


def test_every_result_is_of_a_workload_that_can_be_run_again() -> None:
    for name, entry in loaded()["workloads"].items():
        work = WORKLOADS[name]
        assert (entry["left_rows"], entry["right_rows"]) == (work.left_rows, work.right_rows)


def test_the_streaming_document_shows_the_figures_of_its_results_file() -> None:
    page = stream_report.DOCUMENT.read_text(encoding="utf-8")
    shown = page.partition(BEGIN)[2].partition(END)[0]
    wanted = stream_report.figures(stream_report.loaded())
    assert BEGIN + shown + END == wanted, "run python bench/stream_report.py"
    reported = stream_report.RESULTS.with_suffix(".md").read_text(encoding="utf-8")
    assert reported == stream_report.markdown(stream_report.loaded())


def test_the_document_shows_the_steps_of_the_breakdown() -> None:
    page = DOCUMENT.read_text(encoding="utf-8")
    shown = page.partition(breakdown.BEGIN)[2].partition(breakdown.END)[0]
    results = json.loads(breakdown.RESULTS.read_text(encoding="utf-8"))
    assert breakdown.BEGIN + shown + breakdown.END == breakdown.table(results), "run python bench/breakdown.py"
