"""Stream joins, Weft beside Spark by hand and PyFlink: the same JSON files in, JSON files out, on one machine in one go.

Each engine runs in a process of its own: one run is checked, one warms up, the next are timed; then the engines take
a second turn in the opposite order.  The start of an engine is not counted.  No time is shown without its answer:
pairs must be the same everywhere, and where an outer join's rows stay in state the report says how many.  Another run
feeds the engines file by file at a steady pace and asks how long a pair takes from its file to the output; the last
one feeds Weft a day in batches of four minutes and asks how many rows wait.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from engines import EngineChoice, Outcome, measured
from machine import machine, source_state
from stream_data import StreamData, stream_data
from stream_report import RESULTS, write_report

from data import folder

HERE = Path(__file__).parent
ORDERS = 1_000_000
QUICK = 20_000
LIMIT = 900.0
STATE_ORDERS, STRETCHES = 100_000, 720
"""A batch takes two files of two minutes of each side."""


@dataclass(frozen=True, slots=True)
class StreamEngine(EngineChoice):
    """An engine of the streaming benchmark; PyFlink has an environment of its own."""

    @property
    def python(self) -> str:
        """The interpreter that runs it."""
        return flink_python() if self.is_peer else sys.executable


def flink_python() -> str:
    """Return the Python of PyFlink's environment; ``WEFT_BENCH_FLINK`` names another one."""
    return os.environ.get("WEFT_BENCH_FLINK") or str(HERE / ".venv-flink" / "bin" / "python")


ENGINES = {
    e.name: e
    for e in (
        StreamEngine("weft:sql", "stream_peer.py"),
        StreamEngine("weft:relation", "stream_peer.py"),
        StreamEngine("spark:hand", "stream_peer.py"),
        StreamEngine("flink:hashmap", "flink_job.py", is_peer=True),
        StreamEngine("flink:rocksdb", "flink_job.py", is_peer=True),
    )
}
PACED = {
    e.name: e
    for e in (
        StreamEngine("weft:sql", "paced_peer.py"),
        StreamEngine("spark:hand", "paced_peer.py"),
        StreamEngine("flink:hashmap", "flink_paced.py", is_peer=True),
        StreamEngine("flink:rocksdb", "flink_paced.py", is_peer=True),
    )
}


def job_of(engine: StreamEngine, data: StreamData, repeat: int, *, check: bool) -> dict[str, Any]:
    """Return the input of an engine's process."""
    return {
        **data.folders(slots=engine.is_peer),
        "rows": list(data.rows),
        "cores": 2,
        "repeat": repeat,
        "check": check,
    }


def merged(first: dict[str, Any] | None, outcome: Outcome) -> dict[str, Any]:
    """Return the record of an engine after another of its turns."""
    record = asdict(outcome)
    del record["spark"]
    if first is not None:
        record["seconds"] = first["seconds"] + record["seconds"]
        record["checksum"] = first["checksum"]
        record["peak_rss_bytes"] = max(first["peak_rss_bytes"], record["peak_rss_bytes"])
        if outcome.status != "ok":
            record |= {
                "status": "ok",
                "reason": f"its second turn: {outcome.status} {outcome.reason}".strip(),
            }
    record["median"] = statistics.median(record["seconds"]) if record["seconds"] else None
    return record


def throughput(
    data: StreamData,
    chosen: list[StreamEngine],
    repeat: int,
    found: dict[str, Any],
    keep: Callable[[], None],
) -> None:
    """Time the engines in two turns, put their records into `found` and keep each."""
    turns = [n for n in ((repeat + 1) // 2, repeat // 2) if n]
    for turn, times in enumerate(turns):
        for engine in chosen if turn == 0 else reversed(chosen):
            before = found.get(engine.name) if turn else None
            if before is not None and before["status"] != "ok":
                continue
            about = machine()
            outcome = measured(engine, job_of(engine, data, times, check=turn == 0), LIMIT)
            record = merged(before, outcome)
            found[engine.name] = record | {
                "machine": about,
                "date": datetime.now(UTC).isoformat(timespec="seconds"),
                "code": source_state(),
            }
            keep()
            given = f"{record['median']:.1f} s" if record["median"] else f"{record['status']} {record['reason']}"
            print(f"  {engine.name:<15} {given}", file=sys.stderr, flush=True)


def latency(chosen: list[StreamEngine], seconds: int, found: dict[str, Any], keep: Callable[[], None]) -> None:
    """Feed the engines at a steady pace, put how long pairs took into `found` and keep each."""
    for engine in chosen:
        job = {
            "orders": "",
            "shipments": "",
            "cores": 2,
            "repeat": 0,
            "check": True,
            "paced_seconds": seconds,
        }
        outcome = measured(engine, job, LIMIT)
        found[engine.name] = {"status": outcome.status, "reason": outcome.reason, **outcome.about}
        keep()
        print(f"  {engine.name:<15} paced: {found[engine.name]}", file=sys.stderr, flush=True)


def state(found: dict[str, Any]) -> None:
    """Run a day through Weft's join in short batches and put how many rows waited into `found`."""
    data = stream_data(STATE_ORDERS, stretches=STRETCHES)
    engine = ENGINES["weft:sql"]
    outcome = measured(engine, job_of(engine, data, 0, check=True) | {"once": True}, LIMIT)
    reported = {k: outcome.about.get(k) for k in ("batches", "peak_state_rows", "peak_state_of_both")}
    found |= {"status": outcome.status, "reason": outcome.reason, "rows": list(data.rows), **reported}
    print(f"  {engine.name:<15} state: {found}", file=sys.stderr, flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engines", help=f"some of {', '.join(ENGINES)}")
    parser.add_argument("--repeat", type=int, help="timed runs (3; 1 with --quick)")
    parser.add_argument("--orders", type=int, help=f"orders ({ORDERS:,}; {QUICK:,} with --quick); results apart")
    parser.add_argument(
        "--paced", type=int, default=None, help="seconds of the paced run (60; 20 with --quick; 0: none)"
    )
    parser.add_argument("--only", choices=("throughput", "paced", "state"), help="one of the runs instead of all")
    parser.add_argument("--quick", action="store_true", help="few rows, one timed run, results apart")
    parser.add_argument("--out", type=Path, help="the JSON file of the results")
    args = parser.parse_args()
    args.orders = args.orders or (QUICK if args.quick else ORDERS)
    args.repeat = args.repeat or (1 if args.quick else 3)
    args.paced = args.paced if args.paced is not None else (20 if args.quick else 60)
    args.out = args.out or (RESULTS if args.orders == ORDERS else folder() / "streams-quick.json")
    unknown = sorted(set((args.engines or "").split(",")) - {"", *ENGINES})
    if unknown:
        parser.error(f"{', '.join(unknown)}: the engines are {', '.join(ENGINES)}")
    return args


def main() -> None:
    """Measure what the arguments ask for, and write the results and their report."""
    args = _arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    names = args.engines.split(",") if args.engines else list(ENGINES)
    chosen = [ENGINES[n] for n in ENGINES if n in names]
    if any(e.is_peer for e in chosen) and not Path(flink_python()).exists():
        sys.exit(f"{flink_python()} is not there: run `make bench-flink`, or leave PyFlink out with --engines")
    data = stream_data(args.orders)
    print(f"{data.rows[0]:,} orders x {data.rows[1]:,} shipments", file=sys.stderr, flush=True)
    results: dict[str, Any] = {"engines": {}, "paced": {}}
    if args.out.exists():
        results = json.loads(args.out.read_text(encoding="utf-8"))
    results["rows"] = list(data.rows)

    def keep() -> None:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")

    if args.only in (None, "throughput"):
        throughput(data, chosen, args.repeat, results["engines"], keep)
    if args.only in (None, "paced") and args.paced:
        latency([e for n, e in PACED.items() if n in names], args.paced, results["paced"], keep)
    if args.only == "state" or (args.only is None and "weft:sql" in names and not args.quick):
        state(results.setdefault("state", {}))
        keep()
    print(write_report(args.out))


if __name__ == "__main__":
    main()
