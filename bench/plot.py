"""Draws bench/results/temporal.svg: every engine's time as a multiple of Weft's, and growth with rows.

Runs in the peers' environment, which has matplotlib: ``bench/.venv-peers/bin/python bench/plot.py``.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import matplotlib as mpl

mpl.use("svg")

from matplotlib import pyplot as plt
from matplotlib.lines import Line2D
from report import RESULTS, loaded
from targets import Results, median

# Fast engines in memory are cool colours, other ways on Spark are warm; Weft is the line at 1.
STYLES = {
    "duckdb": ("DuckDB", "#1b7f8c", "o"),
    "polars": ("Polars", "#3f51b5", "s"),
    "pandas": ("pandas", "#7e8bd9", "D"),
    "spark:union": ("Spark, union + window by hand", "#e07b00", "^"),
    "spark:join": ("Spark, join on the condition", "#b8860b", "v"),
    "tempo:union": ("Tempo, union", "#b0413e", "P"),
    "tempo:broadcast": ("Tempo, broadcast", "#d98880", "X"),
    "spark:native": ("Spark's own as-of join", "#555555", "h"),
}
GROWTH = {1: "uniform-1M", 10: "uniform-10M", 50: "uniform-50M"}
INK = "#222222"


def ratios(axes: Any, results: Results) -> None:
    """Draw a row for each workload and a mark for each engine; an arrow for one that was stopped."""
    names = [n for n in results["workloads"] if median(results, n) is not None and not n.endswith("1core")]
    for row, name in enumerate(names):
        ours = median(results, name)
        assert ours is not None  # noqa: S101  # names holds those with a time
        axes.axhline(row, color="#eeeeee", lw=6, zorder=0)
        for engine, (_, color, mark) in STYLES.items():
            record = results["workloads"][name]["engines"].get(engine)
            if record is None:
                continue
            if record["status"] == "ok":
                axes.plot(record["median"] / ours, row, mark, color=color, ms=8, mec="white", mew=0.7)
            elif record["status"] == "did not finish":
                at = record["limit_seconds"] / ours
                axes.plot(at, row, ">", color=color, ms=9, mfc="white", mew=1.6)
    axes.axvline(1, color="#2e7d32", lw=2, zorder=1)
    axes.text(1, -0.9, "Weft", color="#2e7d32", ha="center", va="bottom", weight="bold")
    axes.set_xscale("log")
    axes.set_ylim(len(names) - 0.4, -1.0)
    axes.set_yticks(range(len(names)), [f"{n}  ({median(results, n):.1f} s)" for n in names])
    axes.set_xlabel("time as a multiple of Weft's (log): left of the line is faster than Weft")
    low, high = axes.get_xlim()
    ticks = [t for t in (0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100) if low <= t <= high]
    axes.set_xticks(ticks, [f"{t:g}x" for t in ticks])
    axes.minorticks_off()
    marks = [
        Line2D([], [], color=color, marker=mark, ls="", ms=8, mec="white", label=label)
        for label, color, mark in STYLES.values()
    ]
    marks.append(Line2D([], [], color=INK, marker=">", ls="", ms=9, mfc="white", mew=1.6, label="was stopped there"))
    axes.legend(handles=marks, loc="upper center", bbox_to_anchor=(0.42, -0.09), ncol=3, frameon=False, fontsize=9)


def growth(axes: Any, results: Results) -> None:
    """Draw seconds over rows for the uniform workload."""
    styles = {"weft": ("Weft", "#2e7d32", "o"), **STYLES}
    for engine, (label, color, mark) in styles.items():
        points = [(m, s) for m, name in GROWTH.items() if (s := median(results, name, engine)) is not None]
        if len(points) < 2:
            continue
        width = 2.6 if engine == "weft" else 1.4
        axes.plot(*zip(*points, strict=True), color=color, marker=mark, lw=width, ms=6, mec="white")
        axes.annotate(label, points[-1], (7, 0), textcoords="offset points", color=color, va="center", fontsize=8)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(list(GROWTH), [f"{m}M" for m in GROWTH])
    axes.minorticks_off()
    axes.set_xlim(0.8, 400)
    axes.yaxis.set_major_formatter(mpl.ticker.FuncFormatter(lambda y, _: f"{y:g}"))
    axes.set_xlabel("rows on each side (log)")
    axes.set_ylabel("seconds (log)")
    axes.set_title("growth: backward, 1,000 keys", fontsize=10, loc="left")


def draw(results: Results, target: Path) -> None:
    """Write the figure as SVG, or as the kind that the name of `target` says."""
    mpl.rcParams.update(
        {
            "font.size": 9.5,
            "axes.edgecolor": "#bbbbbb",
            "text.color": INK,
            "axes.labelcolor": INK,
            "svg.hashsalt": "weft",
            "axes.spines.top": False,
            "axes.spines.right": False,
        }
    )
    rows = len(results["workloads"])
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(13, 1.8 + 0.32 * rows), width_ratios=(1.6, 1), layout="constrained"
    )
    ratios(left, results)
    growth(right, results)
    figure.savefig(target, metadata={"Date": None} if target.suffix == ".svg" else None, dpi=110)


if __name__ == "__main__":
    source = Path(sys.argv[1]) if len(sys.argv) > 1 else RESULTS
    draw(loaded(source), Path(sys.argv[2]) if len(sys.argv) > 2 else source.with_suffix(".svg"))
