"""Temporal joins, Weft and its peers: the same Parquet in, every column out, on one machine in one go.

Each engine runs in a process of its own.  A first run is checked, another warms up, the next ones are timed; then
the engines take a second turn in the opposite order, so that a busy hour of the machine meets them all.  Results are
merged into one JSON file by workload and engine: parts may be run one by one.
"""

from __future__ import annotations

import argparse
import json
import signal
import statistics
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from engines import EngineChoice, Outcome, engines, measured, peers_python
from machine import machine, source_state
from report import write_report
from workloads import WORKLOADS, Workload

from data import folder, tables

RESULTS = Path(__file__).parent / "results" / "temporal.json"
FIRST_LIMIT = 1800.0
"""Seconds that a run may take while Weft's own time is not known."""
LEAST_LIMIT = 60.0
PEER_LIMIT = 10.0
"""After how many times Weft's time another engine is stopped."""
QUICK = 0.02


def job_of(work: Workload, repeat: int, *, check: bool) -> dict[str, Any]:
    """Return the input of an engine's process for a workload; its tables are written first."""
    left, right = tables(work)
    return {
        "workload": work.name,
        "kind": work.kind,
        "left": str(left.resolve()),
        "right": str(right.resolve()),
        "rows": [work.left_rows, work.right_rows],
        "keys": list(work.keys),
        "direction": work.direction,
        "tolerance_us": work.tolerance_us,
        "ends": list(work.ends),
        "known": work.known,
        "checked": ["rt", "known"] if work.kind == "bitemporal" else ["rt"],
        "pairs": work.pairs,
        "cores": work.cores,
        "repeat": repeat,
        "check": check,
    }


def merged(first: dict[str, Any] | None, outcome: Outcome) -> dict[str, Any]:
    """Return the record of an engine after another of its turns."""
    record = asdict(outcome)
    if first is not None:
        if outcome.status != "ok":  # what was timed before holds
            record |= {
                "status": "ok",
                "reason": f"its second turn: {outcome.status} {outcome.reason}".strip(),
            }
            record["limit_seconds"] = None
        record["seconds"] = first["seconds"] + record["seconds"]
        record["spark"] = first["spark"] + record["spark"]
        record["checksum"] = first["checksum"]
        for name in ("peak_rss_bytes", "peak_python_worker_bytes"):
            record[name] = max(first[name], record[name])
    record["median"] = statistics.median(record["seconds"]) if record["seconds"] else None
    return record


def run_workload(
    work: Workload,
    chosen: Sequence[EngineChoice],
    repeat: int,
    records: dict[str, dict[str, Any]],
    keep: Callable[[], None],
) -> None:
    """Measure the engines on a workload, turn by turn; put each record into `records` and keep it."""
    fresh: dict[str, dict[str, Any]] = {}
    for turn, times in enumerate(_turns(repeat, work.rounds)):
        for engine in chosen if turn % 2 == 0 else reversed(chosen):
            if turn and (fresh[engine.name]["status"] != "ok" or engine.is_forced):
                continue
            where, code = machine(), source_state()
            if engine.is_forced and engine.name == _chosen_plan(fresh.get("weft")):
                records.pop(engine.name, None)
                fresh[engine.name] = {"status": "same as weft"}
                continue
            outcome = measured(
                engine,
                job_of(work, times, check=turn == 0),
                _limit(work, engine.name, fresh.get("weft") or records.get("weft")),
            )
            record = merged(fresh.get(engine.name) if turn else None, outcome)
            when = datetime.now(UTC).isoformat(timespec="seconds")
            fresh[engine.name] = records[engine.name] = record | {
                "machine": where,
                "date": when,
                "cores": work.cores,
                "code": code,
            }
            keep()
            _tell(engine.name, record)


def _chosen_plan(weft: dict[str, Any] | None) -> str:
    """Return the name of the engine that forces what Weft chose by itself: it needs no time of its own."""
    return f"weft:{weft['about'].get('strategy', '')}" if weft else ""


def _turns(repeat: int, rounds: int) -> list[int]:
    """Share the timed runs out between the turns, the larger share first.

    >>> _turns(5, 2), _turns(5, 1), _turns(1, 2)
    ([3, 2], [5], [1])
    """
    return [n for i in range(rounds) if (n := (repeat + rounds - 1 - i) // rounds)]


def _limit(work: Workload, engine: str, weft: dict[str, Any] | None) -> float:
    if engine == "weft" or weft is None or not weft.get("median"):
        return FIRST_LIMIT
    times = work.native_limit if engine == "spark:native" else PEER_LIMIT
    return max(LEAST_LIMIT, times * float(weft["median"]))


def _tell(name: str, record: dict[str, Any]) -> None:
    given = f"{record['median']:.2f} s" if record["median"] is not None else ""
    more = f"{record['status']} {record['reason']}".strip() if record["status"] != "ok" else ""
    plan = record["about"].get("strategy", "")
    print(f"  {name:<16} {given:>9} {plan} {more}", file=sys.stderr, flush=True)


def _loaded(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"workloads": {}}
    return found


def _kept(path: Path, results: dict[str, Any]) -> None:
    order = list(WORKLOADS)
    results["workloads"] = dict(sorted(results["workloads"].items(), key=lambda item: order.index(item[0])))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


def _picked(names: Iterable[str], patterns: str | None) -> list[str]:
    """Return the names that a list of patterns such as ``W1,uniform-*`` means; all without one."""
    if not patterns:
        return list(names)
    known = list(names)
    wanted: list[str] = []
    for pattern in patterns.split(","):
        found = [n for n in known if fnmatch(n, pattern)]
        if not found:
            sys.exit(f"{pattern!r} is none of {', '.join(known)}")
        wanted += found
    return [n for n in known if n in wanted]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="workloads, for example W1,uniform-*")
    parser.add_argument("--engines", help="engines, for example weft,weft:*,duckdb")
    parser.add_argument("--repeat", type=int, help="timed runs (5; 1 with --quick)")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK:.0%} of the rows, one timed run, results apart")
    parser.add_argument("--scale", type=float, help="share of the rows; results apart")
    parser.add_argument("--out", type=Path, help="the JSON file that results are merged into")
    parser.add_argument("--list", action="store_true", help="print workloads and engines, run nothing")
    args = parser.parse_args()
    args.scale = args.scale or (QUICK if args.quick else 1.0)
    args.repeat = args.repeat or (1 if args.quick else 5)
    args.out = args.out or (RESULTS if args.scale == 1 else folder() / "temporal-quick.json")
    return args


def main() -> None:
    """Measure what the arguments ask for, and write the results and their report."""
    args = _arguments()
    # An engine's process has a session of its own; ending in order lets us end it too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    every = engines()
    works = [WORKLOADS[n].scaled(args.scale) for n in _picked(WORKLOADS, args.only)]
    chosen = [every[n] for n in _picked(every, args.engines)]
    if args.list:
        print("\n".join([*(f"{w.name:<16} {w.title}" for w in works), "", *(e.name for e in chosen)]))
        return
    if any(e.is_peer for e in chosen) and not Path(peers_python()).exists():
        sys.exit(f"{peers_python()} is not there: run `make bench-peers`, or leave the peers out with --engines")
    for work in works:
        print(f"{work.name}: {work.left_rows:,} x {work.right_rows:,}", file=sys.stderr, flush=True)
        results = _loaded(args.out)
        entry = results["workloads"].setdefault(work.name, {"engines": {}})
        entry |= {"title": work.title, "left_rows": work.left_rows, "right_rows": work.right_rows}
        run_workload(work, chosen, args.repeat, entry["engines"], partial(_kept, args.out, results))
    print(write_report(args.out))


if __name__ == "__main__":
    main()
