"""How the cases of ``tests/cases/streams`` are run: by the reference, and by the engine without a JVM."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from weft.errors import WeftError
from weft.streams.checkpoint.folder import Checkpoint
from weft.testing.stream_cases import Arrival, StreamCase, load_stream_cases
from weft.testing.stream_engine import run_statement
from weft.testing.stream_reference import run_reference

FOLDER = Path(__file__).parent / "cases" / "streams"
FILES = (
    *("acceptance", "chains", "emit", "interval", "late", "limits", "nulls", "peers", "self", "session"),
    *("sliding", "tables", "times", "tumbling"),
)


@dataclass(frozen=True)
class Outcome:
    """What an engine made of a case: rows with their batches, counts, rejected rows; or a code."""

    columns: tuple[str, ...] = ()
    rows: tuple[tuple[int, Mapping[str, Any]], ...] = ()
    ledger: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    rejects: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    error: str | None = None


def cases_of(*files: str) -> list[StreamCase]:
    """Return the cases of the named files."""
    return [case for file in files for case in _describe(file)]


def variants(cases: Iterable[StreamCase]) -> list[tuple[StreamCase, Arrival]]:
    """Return each case with each way in which its rows arrive."""
    return [(case, arrival) for case in cases for arrival in case.arrivals]


def named(case: StreamCase) -> str:
    """Return the id of a case, for pytest."""
    return case.id


@cache
def _describe(file: str) -> tuple[StreamCase, ...]:
    return load_stream_cases(FOLDER / f"{file}.yml")


_REFERENCES: dict[tuple[str, Arrival], Outcome] = {}


def by_reference(case: StreamCase, arrival: Arrival = "as_written") -> Outcome:
    """Run a case by the reference engine, once."""
    if (case.id, arrival) not in _REFERENCES:
        _REFERENCES[case.id, arrival] = _by_reference(case, arrival)
    return _REFERENCES[case.id, arrival]


def _by_reference(case: StreamCase, arrival: Arrival) -> Outcome:
    try:
        job = case.job()
        plan = job.statements[0]
        result = run_reference(
            plan,
            case.batches(arrival),
            tables=case.table_rows(),
            final=case.final,
            wall_clock=case.wall_clock,
            idle=case.idle,
        )
    except WeftError as cause:
        return Outcome(error=cause.code)
    return Outcome(
        columns=tuple(c.name for c in plan.output),
        rows=result.rows,
        ledger=result.ledger,
        rejects=dict(Counter(f"{r.side} {r.reason}" for r in result.rejects)),
        notes=tuple(d.code for d in job.warnings),
    )


def by_engine(case: StreamCase, arrival: Arrival, root: Path) -> Outcome:
    """Run a case by the kernel with its state and commits on disk."""
    try:
        job = case.job()
        plan = job.statements[0]
        result = run_statement(
            plan,
            case.batches(arrival),
            root=root,
            tables=case.table_rows(),
            groups=case.groups,
            final=case.final,
            wall_clock=case.wall_clock,
            idle=case.idle,
        )
    except WeftError as cause:
        return Outcome(error=cause.code)
    return Outcome(
        columns=tuple(c.name for c in plan.output),
        rows=result.rows,
        ledger={side: dict(counts) for side, counts in result.ledger.items()},
        rejects=_rejected(result.checkpoint),
        notes=tuple(d.code for d in job.warnings),
    )


def _rejected(checkpoint: Checkpoint) -> dict[str, int]:
    files = sorted(checkpoint.rejects.rglob("*.parquet"))
    rows = [row for file in files for row in pq.read_table(file).select(["side", "reason"]).to_pylist()]
    return dict(Counter(f"{row['side']} {row['reason']}" for row in rows))
