"""Results of the streaming benchmark as Markdown: a table of engines, the aims, and the latency of a paced run.

``python bench/stream_report.py`` rewrites ``bench/results/streams.md`` and the figures in docs/streams.md.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from report import BEGIN, END, write_figures

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "streams.json"
DOCUMENT = HERE.parent / "docs" / "streams.md"
MOST_RATIO = 1.05
MOST_STATE = 1.2
CORES = 2
Results = dict[str, Any]


def loaded(path: Path = RESULTS) -> Results:
    """Return results with each engine's pairs compared: other pairs have the status ``MISMATCH``."""
    results: Results = json.loads(path.read_text(encoding="utf-8"))
    engines = results["engines"]
    sums = {name: e["checksum"] for name, e in engines.items() if e["checksum"]}
    measure: dict[str, int] = next(iter(sums.values()), {})
    for name, reported in sums.items():
        if any(reported[k] != measure[k] for k in ("matched", "sum")):
            reason = f"{reported['matched']:,} pairs for {measure['matched']:,}"
            engines[name] |= {"status": "MISMATCH", "reason": reason}
    return results


def _speed(results: Results, record: dict[str, Any]) -> float:
    return float(sum(results["rows"])) / float(record["median"])


def engine_table(results: Results) -> list[str]:
    """Return a line for each engine, fastest first, those without a time last."""
    lines = [
        "| engine | seconds | fastest - slowest | thousand events/s | per core | rows out | peak of all MB | |",
        "|---|--:|--:|--:|--:|--:|--:|---|",
    ]
    for name, record in sorted(results["engines"].items(), key=lambda item: item[1]["median"] or 1e9):
        bold = "**" if name.startswith("weft") else ""
        if record["median"] is None or record["status"] != "ok":
            lines.append(f"| {bold}{name}{bold} | {record['status']} | | | | | | {record['reason']} |")
            continue
        speed, times = _speed(results, record) / 1000, record["seconds"]
        lines.append(
            f"| {bold}{name}{bold} | {record['median']:.1f} | {min(times):.1f} - {max(times):.1f} | {speed:.0f} | "
            f"{speed / CORES:.0f} | {record['checksum']['rows']:,} | {record['peak_rss_bytes'] / 2**20:,.0f} | "
            f"{_note(results, record)} |"
        )
    return lines


def _note(results: Results, record: dict[str, Any]) -> str:
    missing = results["rows"][0] - record["checksum"]["rows"]
    return f"{missing:,} unmatched orders stay in state" if missing else "every order, flushed at the end"


def aims(results: Results) -> list[str]:
    """Return the aims with what was found."""
    engines = {n: e for n, e in results["engines"].items() if e["status"] == "ok" and e["median"]}
    lines = ["| aim | found | |", "|---|---|---|"]

    def line(aim: str, found: str, *, met: bool) -> None:
        lines.append(f"| {aim} | {found} | {'met' if met else '**missed**'} |")

    if {"weft:relation", "spark:hand"} <= set(engines):
        ratio = engines["weft:relation"]["median"] / engines["spark:hand"]["median"]
        line(
            f"streaming relations at most {MOST_RATIO} x the join by hand",
            f"{ratio:.2f} x",
            met=ratio <= MOST_RATIO,
        )
    if {"weft:sql", "spark:hand"} <= set(engines):
        ratio = engines["weft:sql"]["median"] / engines["spark:hand"]["median"]
        line("streaming SQL no slower than the join by hand", f"{ratio:.2f} x", met=ratio <= 1)
    for peer, state in (("flink:hashmap", "state in memory"), ("flink:rocksdb", "state on disk")):
        if {"weft:sql", peer} <= set(engines):
            ratio = _speed(results, engines["weft:sql"]) / _speed(results, engines[peer])
            line(f"at least the throughput of PyFlink, {state}", f"{ratio:.2f} x", met=ratio >= 1)
    return lines


def paced_table(results: Results) -> list[str]:
    """Return how long pairs took from their file to the output."""
    lines = ["| engine | events/s | pairs | p50 seconds | p99 seconds |", "|---|--:|--:|--:|--:|"]
    for name, reported in results["paced"].items():
        if reported["status"] != "ok" or reported.get("p50_seconds") is None:
            lines.append(f"| {name} | {reported['status']} {reported['reason']} | | | |")
            continue
        lines.append(
            f"| {name} | {reported['events_a_second']:,} | {reported['pairs']:,} of {reported['wanted']:,} | "
            f"{reported['p50_seconds']:.2f} | {reported['p99_seconds']:.2f} |"
        )
    return lines


def state_line(results: Results) -> str:
    """Return how many rows waited at most, beside the rows of the join's span."""
    reported = results.get("state", {})
    if reported.get("status") != "ok":
        return ""
    orders, shipments = reported["rows"]
    left, right = reported["peak_state_rows"]
    ratio = 24 * reported["peak_state_of_both"] / orders
    return (
        f"State of `weft:sql`, {orders:,} orders and {shipments:,} shipments of a day in {reported['batches']:,} batches, "
        f"as the batches report it: at most {left:,} orders and {right:,} shipments wait, both together "
        f"{reported['peak_state_of_both']:,}, which is {ratio:.2f} x the orders of an hour (aim {MOST_STATE} x, "
        f"{'met' if ratio <= MOST_STATE else '**missed**'})."
    )


def machines(results: Results) -> str:
    """Return the machine and the dates of the figures."""
    records = list(results["engines"].values())
    m = records[0]["machine"]
    loads = [r["machine"]["load_before"] for r in records]
    days = sorted({r["date"][:10] for r in records})
    timed = sorted({len(r["seconds"]) for r in records if r["seconds"]})
    versions = {k: v for r in records for k, v in r["about"].items() if k in ("pyspark", "apache-flink")}
    return (
        f"{m['cpu']}, {m['cores']} cores, {m['memory_gib']} GiB, Python {m['python']}, "
        f"{', '.join(f'{k} {v}' for k, v in sorted(versions.items()))}; {' to '.join(days)}; load before a process "
        f"{min(loads):.1f} to {max(loads):.1f}; timed runs {' to '.join(map(str, timed))}; "
        f"{results['rows'][0]:,} orders x {results['rows'][1]:,} shipments."
    )


def figures(results: Results) -> str:
    """Return the text between the marks in docs/streams.md."""
    parts = [[BEGIN], [machines(results)], engine_table(results), aims(results), [state_line(results)]]
    if results["paced"]:
        parts.append(paced_table(results))
    return "\n\n".join("\n".join(part) for part in (*parts, [END]) if part != [""])


def markdown(results: Results) -> str:
    """Return the whole report."""
    body = figures(results).removeprefix(BEGIN).removesuffix(END).strip()
    return f"# Stream joins, measured\n\n{body}\n"


def write_report(path: Path) -> str:
    """Write the report beside the results, and the document if they are the kept ones; return the report."""
    results = loaded(path)
    text = markdown(results)
    path.with_suffix(".md").write_text(text, encoding="utf-8")
    if path.resolve() == RESULTS.resolve():
        write_figures(DOCUMENT, figures(results))
    return text


if __name__ == "__main__":
    print(write_report(Path(sys.argv[1]) if len(sys.argv) > 1 else RESULTS))
