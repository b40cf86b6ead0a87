"""Results as Markdown: the aims, a table for each workload, and the summary that docs/benchmarks.md shows.

``python bench/report.py`` rewrites ``bench/results/temporal.md`` and the figures in the document.
"""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from targets import TARGETS, Results, median

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "temporal.json"
DOCUMENT = HERE.parent / "docs" / "benchmarks.md"
BEGIN, END = "<!-- figures -->", "<!-- end of figures -->"
TRUSTED = ("duckdb", "polars", "pandas", "spark:union", "spark:join", "weft")
"""Whose checksum is the measure, the first that finished."""
SUMMARY = ("weft", "spark:union", "spark:native", "tempo:union", "duckdb", "polars", "pandas")
MB = 2**20


def loaded(path: Path = RESULTS) -> Results:
    """Return results with each engine's answer compared: a different one has the status ``MISMATCH``."""
    results: Results = json.loads(path.read_text(encoding="utf-8"))
    for entry in results["workloads"].values():
        engines = entry["engines"]
        sums = {name: e["checksum"] for name, e in engines.items() if e["checksum"] is not None}
        measure = next((sums[name] for name in TRUSTED if name in sums), None)
        for name, reported in sums.items():
            if reported != measure and engines[name]["status"] == "ok":
                engines[name]["status"] = "MISMATCH"
                engines[name]["reason"] = _difference(reported, measure or {})
    return results


def _difference(reported: dict[str, int], measure: dict[str, int]) -> str:
    names = {"rows": "rows", "matched": "matches", "sum": "the sum of matched times"}
    parts = [f"{names[k]} {reported[k]:,} for {measure[k]:,}" for k in ("rows", "matched") if reported[k] != measure[k]]
    return ", ".join(parts) or "other rows are matched"


def _cell(record: dict[str, Any] | None) -> str:
    """Return a time, or why there is none."""
    if record is None:
        return ""
    if record["status"] == "did not finish":
        return f"> {record['limit_seconds']:.0f}"
    if record["status"] == "refused":
        return "-"
    if record["median"] is None:
        return str(record["status"])
    return f"{record['median']:.2f}" + (" (wrong)" if record["status"] == "MISMATCH" else "")


def _note(record: dict[str, Any]) -> str:
    if record["status"] == "ok":
        plan = f"plan `{record['about']['strategy']}`" if "strategy" in record["about"] else ""
        return "; ".join(filter(None, (plan, record["reason"])))
    if record["status"] == "did not finish":
        return f"did not finish in {record['limit_seconds']:.0f} s"
    return f"{record['status']}: {record['reason']}"


def _costs(record: dict[str, Any]) -> tuple[str, str, str]:
    """Return shuffled and spilled megabytes and the peak of a task, medians of the timed runs."""
    runs = record["spark"]
    if not runs:
        return "", "", ""
    shuffled, spilled = (
        statistics.median(run[name] for run in runs) / MB for name in ("shuffle_write_bytes", "spill_disk_bytes")
    )
    task = max(run["peak_task_bytes"] for run in runs) / MB
    python = record["peak_python_worker_bytes"] / MB
    return f"{shuffled:,.0f}", f"{spilled:,.0f}", f"{task:,.0f}" + (f" + {python:,.0f}" if python else "")


def workload_table(entry: dict[str, Any], ours: float | None) -> list[str]:
    """Return the table of a workload, fastest first, those without a time last."""
    lines = [
        "| engine | seconds | x Weft | fastest - slowest | shuffle MB | spill MB | peak of a task MB | peak of all MB | |",
        "|---|--:|--:|--:|--:|--:|--:|--:|---|",
    ]

    def place(item: tuple[str, dict[str, Any]]) -> tuple[bool, float]:
        return item[1]["median"] is None, item[1]["median"] or 0.0

    served = {n: r for n, r in entry["engines"].items() if r["status"] != "refused"}
    for name, record in sorted(served.items(), key=place):
        times = record["seconds"]
        spread = f"{min(times):.2f} - {max(times):.2f}" if times else ""
        ratio = f"{record['median'] / ours:.2f}" if ours and record["median"] else ""
        shuffled, spilled, task = _costs(record)
        held = f"{record['peak_rss_bytes'] / MB:,.0f}" if record["peak_rss_bytes"] else ""
        bold = "**" if name == "weft" else ""
        lines.append(
            f"| {bold}{name}{bold} | {_cell(record)} | {ratio} | {spread} | {shuffled} | {spilled} | {task} | {held} | {_note(record)} |"
        )
    refused = [f"{n} ({r['reason']})" for n, r in entry["engines"].items() if r["status"] == "refused"]
    return [*lines, "", f"Not served: {'; '.join(refused)}."] if refused else lines


def target_table(results: Results) -> list[str]:
    """Return the aims with what was found."""
    lines = ["| workload | aim | found | |", "|---|---|---|---|"]
    for target in TARGETS:
        found = target.find(results)
        reported, enough = ("not measured", None) if found is None else found
        met = {True: "met", False: "**missed**", None: ""}[enough]
        lines.append(f"| {target.workload} | {target.aim} | {reported} | {met} |")
    return lines


def summary_table(results: Results) -> list[str]:
    """Return one line for each workload with the engines that a reader asks for first, in seconds."""
    shown = (*SUMMARY, "spark:join")
    lines = ["| workload | " + " | ".join(shown) + " |", "|---|" + "--:|" * len(shown)]
    for name, entry in results["workloads"].items():
        cells = (_cell(entry["engines"].get(engine)) for engine in shown)
        lines.append(f"| {name}: {entry['title'].removeprefix(name + ': ')} | " + " | ".join(cells) + " |")
    return lines


def losses(results: Results) -> list[str]:
    """Return a line for each workload on which another engine gave the same answer sooner."""
    lines = []
    for name, entry in results["workloads"].items():
        ours = median(results, name)
        times = {e: median(results, name, e) for e in entry["engines"]}
        sooner = sorted((t, e) for e, t in times.items() if ours and t is not None and t < ours)
        if ours and sooner:
            reported = ", ".join(f"{e} in {t / ours:.2f}" for t, e in sooner)
            lines.append(f"- {name}: {reported} of Weft's {ours:.2f} s")
    return lines or ["- nowhere"]


def machines(results: Results) -> list[str]:
    """Return a sentence for each machine, one on how often was timed, and one on which state of Weft."""
    records = [record for entry in results["workloads"].values() for record in entry["engines"].values()]
    reported: dict[str, list[dict[str, Any]]] = {}
    for record in records:
        m = record["machine"]
        about = f"{m['cpu']}, {m['cores']} cores, {m['memory_gib']} GiB, PySpark {m['pyspark']}, Python {m['python']}"
        reported.setdefault(about, []).append(record)
    lines = []
    for about, those in reported.items():
        loads = [record["machine"]["load_before"] for record in those]
        days = sorted(record["date"][:10] for record in those)
        lines.append(
            f"{about}; {' to '.join(dict.fromkeys((days[0], days[-1])))}; load before a process "
            f"{min(loads):.1f} to {max(loads):.1f}, median {statistics.median(loads):.1f}."
        )
    timed = sorted(len(record["seconds"]) for record in records if record["seconds"])
    codes = sorted({record.get("code", "unknown") for record in _ours(results)})
    if timed:
        lines.append(f"Timed runs of a figure: {' to '.join(dict.fromkeys(map(str, (timed[0], timed[-1]))))}.")
    return [*lines, f"State of Weft: {', '.join(codes)}."]


def _ours(results: Results) -> list[dict[str, Any]]:
    engines = [item for entry in results["workloads"].values() for item in entry["engines"].items()]
    return [record for name, record in engines if name.startswith("weft")]


def versions(results: Results) -> str:
    """Return the versions of the peers as one line."""
    found: dict[str, str] = {}
    for entry in results["workloads"].values():
        for record in entry["engines"].values():
            found |= {k: v for k, v in record["about"].items() if k not in {"strategy", "reason", "out", "weft"}}
    return ", ".join(f"{k} {v}" for k, v in sorted(found.items()))


def markdown(results: Results) -> str:
    """Return the whole report."""
    lines = ["# Temporal joins, measured", "", *machines(results), "", f"Versions: {versions(results)}.", ""]
    lines += ["![Times of other engines as multiples of Weft's](temporal.svg)", ""]
    lines += ["## Aims", "", *target_table(results), ""]
    for name, entry in results["workloads"].items():
        lines += [
            f"## {name}",
            "",
            f"{entry['title']}: {entry['left_rows']:,} x {entry['right_rows']:,} rows.",
            "",
        ]
        lines += [*workload_table(entry, median(results, name)), ""]
    return "\n".join(lines)


def figures(results: Results) -> str:
    """Return the text between the marks in docs/benchmarks.md."""
    parts = (
        machines(results),
        summary_table(results),
        target_table(results),
        ["Faster than Weft:"],
        losses(results),
    )
    return "\n\n".join([BEGIN, *("\n".join(part) for part in parts), END])


def write_report(path: Path) -> str:
    """Write the report beside the results, and the document if they are the kept ones; return the report."""
    results = loaded(path)
    text = markdown(results)
    path.with_suffix(".md").write_text(text, encoding="utf-8")
    if path.resolve() == RESULTS.resolve():
        write_figures(DOCUMENT, figures(results))
    return text


def write_figures(document: Path, text: str) -> None:
    """Replace the part of a document that shows figures."""
    if document.exists():
        page = document.read_text(encoding="utf-8")
        document.write_text(page.partition(BEGIN)[0] + text + page.partition(END)[2], encoding="utf-8")


if __name__ == "__main__":
    print(write_report(Path(sys.argv[1]) if len(sys.argv) > 1 else RESULTS))
