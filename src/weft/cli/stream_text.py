"""Results of stream commands: documents for programs, tables for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from textwrap import indent
from typing import TYPE_CHECKING, Any

from weft.cli.terminal import format_count
from weft.core.documents import format_micros
from weft.core.frozen import thaw
from weft.core.names import format_cell, format_table

if TYPE_CHECKING:
    from weft.streams.checkpoint.recover import RedriveReport
    from weft.streams.checkpoint.status import JobStatus, SideStatus, StatementStatus
    from weft.streams.plan.resolved import JobPlan
    from weft.streams.run.report import BatchReport, JobReport, QueryReport

COUNTS = ("in", "matched", "waiting", "unmatched", "late", "rejected", "evicted")
MOST_ROWS = 20
"""The rows of a sink with at most this many are printed."""

Rows = Mapping[str, tuple[Sequence[str], Sequence[Sequence[Any]]]]


def report_to_dict(report: JobReport, plan: JobPlan) -> dict[str, Any]:
    """Return the data of `weft stream run --json`."""
    from weft.streams.plan.explain import explain_job

    # The joins of the plan, with bounds and reasons; those of a report are statistics.
    joins = {s["sink"]: s["joins"] for s in thaw(explain_job(plan).data)["statements"]}
    checkpoints = [str(q.checkpoint.parent.parent) for q in report.queries if q.checkpoint is not None]
    return {
        "job": plan.name,
        "queries": [q.to_dict() | {"joins": joins.get(q.sink, [])} for q in report.queries],
        "sealed": report.sealed,
        "checkpoint": checkpoints[0] if checkpoints else None,
    }


def format_report(report: JobReport, rows: Rows) -> str:
    """Return the text of `weft stream run`: each sink with its ledger, and its rows if they are few."""
    return "\n\n".join(_format_query(q, rows) for q in report.queries)


def _format_query(query: QueryReport, rows: Rows) -> str:
    sealed = ", sealed" if query.sealed else ""
    file_format = f" ({query.format})" if query.format else ""
    location = f" in {query.location}{file_format}" if query.location else ""
    lines = [f"{query.sink}  {format_count(query.rows, 'row')}{location}{sealed}"]
    if query.ledger:
        lines.append(format_ledger(query.ledger, query.sides))
    if query.sink in rows:
        head, values = rows[query.sink]
        lines.append(indent(format_table(head, [list(map(format_cell, row)) for row in values]), "  "))
    return "\n".join(lines)


def format_ledger(ledger: Mapping[str, Mapping[str, int]], sides: Mapping[str, str]) -> str:
    """Return a ledger as a table with a line for each side.

    >>> print(format_ledger({"left": dict.fromkeys(COUNTS, 1)}, {"left": "orders"}))
      side    in  matched  waiting  unmatched  late  rejected  evicted
      orders   1        1        1          1     1         1        1
    """
    rows = [
        (sides.get(side, side), *(f"{counts.get(name, 0):,}" for name in COUNTS)) for side, counts in ledger.items()
    ]
    return indent(format_table(("side", *COUNTS), rows, with_numbers=True), "  ")


def format_jobs(jobs: Iterable[JobStatus]) -> str:
    """Return a table with a line for each job."""
    rows = [
        (
            s.name,
            s.state,
            str(s.pid or "-"),
            f"{sum(t.batches for t in s.statements):,}",
            f"{sum(t.rows for t in s.statements):,}",
            str(s.restarts),
            "" if s.error is None else f"{s.error.get('code')}: {s.error.get('message')}",
        )
        for s in jobs
    ]
    return format_table(("JOB", "STATE", "PID", "BATCHES", "ROWS", "RESTARTS", "LAST ERROR"), rows)


def format_job(status: JobStatus) -> str:
    """Return the status of a job as text."""
    process = f", process {status.pid}" if status.pid else ""
    supervisor = f", supervised by {status.supervisor}" if status.supervisor else ""
    restarts = f", restarted {format_count(status.restarts, 'time')}" if status.restarts else ""
    lines = [f"{status.name} is {status.state}{process}{supervisor}{restarts}"]
    if status.is_orphan:
        lines.append(
            "  its supervisor has ended: stop and start the job, otherwise it is not restarted after a failure"
        )
    if status.error is not None and status.state != "running":
        lines.append(f"error[{status.error.get('code')}]: {status.error.get('message')}")
        lines.append(f" = help: {status.error.get('help')}")
    lines.extend(_format_statement(s) for s in status.statements)
    return "\n".join(lines)


def _format_statement(status: StatementStatus) -> str:
    location = f" in {status.location}" if status.location else ""
    batches = "1 batch" if status.batches == 1 else f"{status.batches:,} batches"
    lines = ["", f"{status.name}  {status.state}, {format_count(status.rows, 'row')}{location}, {batches}"]
    if status.watermark is not None:
        lines.append(f"  watermark {format_micros(status.watermark)}")
    if status.held_back_by is not None and status.state != "sealed":
        since = (
            f", whose last rows arrived at {format_micros(status.held_since)}"
            if status.held_since
            else ", which has no rows yet"
        )
        lines.append(f"  the watermark waits for {status.held_back_by}{since}")
    lines.extend(
        f"  {side.name} is idle since {format_micros(side.idle_since)}: the watermark does not wait for it"
        for side in status.sides
        if side.idle_since is not None
    )
    if status.ledger:
        lines.append(format_ledger(status.ledger, {s.side: s.name for s in status.sides}))
    lines.extend(_format_state(side) for side in status.sides if side.state_rows or side.limit)
    return "\n".join(lines)


def _format_state(side: SideStatus) -> str:
    limit = "" if side.limit is None else f" of at most {side.limit:,} ({side.fill} %)"
    return f"  {side.name} keeps {side.state_rows:,} rows{limit}, {side.state_bytes:,} bytes"


def format_rejects(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rejected rows as a table."""
    if not rows:
        return "no rejected rows"
    keys = ("sink", "side", "reason", "event_time", "watermark", "batch", "row")
    cells = [["-" if row[key] is None else str(row[key]) for key in keys] for row in rows]
    return format_table([key.upper().replace("_", " ") for key in keys], cells)


def format_redriven(results: Sequence[RedriveReport], *, dry_run: bool) -> str:
    """Return the result of a redrive, a line for each statement."""
    verb = "would be written" if dry_run else "written"
    lines = []
    for result in results:
        corrections = f"{result.plus:,} added and {result.minus:,} retracted"
        location = f" to {result.location}" if result.location and not dry_run and result.plus + result.minus else ""
        waiting = format_count(result.undecided, "row")
        rest = f"; {waiting} may still match and remain" if result.undecided else ""
        taken = format_count(result.taken, "row")
        lines.append(f"{result.sink}  {taken} processed, {corrections} {verb}{location}{rest}")
    return "\n".join(lines)


def format_batch(report: BatchReport, width: int) -> str:
    """Return the rows in and out of a batch as one line; nothing for a batch without rows."""
    if not (report.final or report.rows_out or any(report.rows_in.values())):
        return ""
    step = "flush" if report.final else f"batch {report.batch}"
    inputs = ", ".join(f"{name} {count:,}" for name, count in report.rows_in.items() if count)
    watermark = ""
    if report.watermark is not None and not report.final:
        watermark = f"   watermark {format_micros(report.watermark)}"
        if report.held_back_by:
            watermark += f", waits for {report.held_back_by}"
    return (
        f"{report.statement:<{width}}  {step:<8}  in {inputs or '0'}   "
        f"out {format_count(report.rows_out, 'row')}{watermark}   {report.seconds:.1f} s"
    )
