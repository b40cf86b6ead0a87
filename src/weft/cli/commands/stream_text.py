"""What stream commands answer: documents for programs, tables for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from weft.cli.terminal import many
from weft.cli.terminal import table as terminal_table
from weft.core.documents import format_micros
from weft.core.frozen import thaw

if TYPE_CHECKING:
    from weft.streams.checkpoint.recover import RedriveReport
    from weft.streams.checkpoint.status import JobStatus, SideStatus, StatementStatus
    from weft.streams.plan.resolved import JobPlan
    from weft.streams.run.report import JobReport, QueryReport

COUNTS = ("in", "matched", "waiting", "unmatched", "late", "rejected", "evicted")
MOST_ROWS = 20
"""A sink with at most so many rows is printed."""

Rows = Mapping[str, tuple[Sequence[str], Sequence[Sequence[Any]]]]


def explained(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the explanation of a job as documents have it."""
    found: dict[str, Any] = thaw(data)
    return found


def moment(micros: int | None) -> str | None:
    """Return a time of the engine as ISO text, None when there is none."""
    return None if micros is None else format_micros(micros)


def report_data(report: JobReport, plan: JobPlan) -> dict[str, Any]:
    """Return what `weft stream run` answers to programs."""
    from weft.streams.plan.explain import explain_job

    joins = {s["sink"]: s["joins"] for s in thaw(explain_job(plan).data)["statements"]}
    checkpoints = [str(q.checkpoint.parent.parent) for q in report.queries if q.checkpoint is not None]
    return {
        "job": plan.name,
        "queries": [q.to_dict() | {"joins": joins.get(q.sink, [])} for q in report.queries],
        "sealed": report.sealed,
        "checkpoint": checkpoints[0] if checkpoints else None,
    }


def report_text(report: JobReport, rows: Rows) -> str:
    """Return what `weft stream run` answers to people: each sink, its rows when they are few, its ledger."""
    return "\n\n".join(_query_text(q, rows) for q in report.queries)


def _query_text(query: QueryReport, rows: Rows) -> str:
    sealed = ", sealed" if query.sealed else ""
    form = f" ({query.format})" if query.format else ""
    where = f" in {query.location}{form}" if query.location else ""
    lines = [f"{query.sink}  {many(query.rows, 'row')}{where}{sealed}"]
    if query.ledger:
        lines.append(ledger_text(query.ledger, query.sides))
    if query.sink in rows:
        head, found = rows[query.sink]
        shown = [["NULL" if value is None else str(value) for value in row] for row in found]
        lines.append(indented(terminal_table(head, shown)))
    return "\n".join(lines)


def ledger_text(ledger: Mapping[str, Mapping[str, int]], sides: Mapping[str, str]) -> str:
    """Return a ledger as a table, a side in each line.

    >>> print(ledger_text({"left": dict.fromkeys(COUNTS, 1)}, {"left": "orders"}))
      side    in  matched  waiting  unmatched  late  rejected  evicted
      orders   1        1        1          1     1         1        1
    """
    head = ("side", *COUNTS)
    rows = [
        (sides.get(side, side), *(f"{counts.get(name, 0):,}" for name in COUNTS))
        for side, counts in ledger.items()
    ]
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    return "\n".join(
        "  "
        + "  ".join(
            [row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))]
        )
        for row in (head, *rows)
    )


def indented(text: str) -> str:
    """Return a text two places to the right."""
    return "\n".join(f"  {line}".rstrip() for line in text.splitlines())


def jobs_text(found: Iterable[JobStatus]) -> str:
    """Return one line for each job."""
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
        for s in found
    ]
    return terminal_table(("JOB", "STATE", "PID", "BATCHES", "ROWS", "RESTARTS", "LAST ERROR"), rows)


def job_text(status: JobStatus) -> str:
    """Return how it stands with a job, for people."""
    who = f", process {status.pid}" if status.pid else ""
    watched = f", watched by {status.supervisor}" if status.supervisor else ""
    again = f", started again {many(status.restarts, 'time')}" if status.restarts else ""
    lines = [f"{status.name} is {status.state}{who}{watched}{again}"]
    if status.is_orphan:
        lines.append(
            "  its supervisor was ended: it is not started again when it falls, until it is stopped and started"
        )
    if status.error is not None and status.state != "running":
        lines.append(f"error[{status.error.get('code')}]: {status.error.get('message')}")
        lines.append(f" = help: {status.error.get('help')}")
    lines.extend(_statement_text(s) for s in status.statements)
    return "\n".join(lines)


def _statement_text(status: StatementStatus) -> str:
    where = f" in {status.location}" if status.location else ""
    batches = "1 batch" if status.batches == 1 else f"{status.batches:,} batches"
    lines = ["", f"{status.name}  {status.state}, {many(status.rows, 'row')}{where}, {batches}"]
    if status.watermark is not None:
        lines.append(f"  watermark {moment(status.watermark)}")
    if status.held_back_by is not None and status.state != "sealed":
        since = (
            f", whose last rows came {moment(status.held_since)}"
            if status.held_since
            else ", which shows no rows"
        )
        lines.append(f"  it waits for {status.held_back_by}{since}")
    lines.extend(
        f"  {side.name} is idle since {moment(side.idle_since)}: the watermark does not wait for it"
        for side in status.sides
        if side.idle_since is not None
    )
    if status.ledger:
        lines.append(ledger_text(status.ledger, {s.side: s.name for s in status.sides}))
    lines.extend(_state_text(side) for side in status.sides if side.state_rows or side.limit)
    return "\n".join(lines)


def _state_text(side: SideStatus) -> str:
    full = "" if side.limit is None else f" of at most {side.limit:,} ({side.fill} %)"
    return f"  {side.name} keeps {side.state_rows:,} rows{full}, {side.state_bytes:,} bytes"


def rejects_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rejected rows as a table."""
    if not rows:
        return "no row was rejected"
    head = ("SINK", "SIDE", "REASON", "EVENT TIME", "WATERMARK", "BATCH", "ROW")
    shown = [
        (
            str(r["sink"]),
            str(r["side"]),
            str(r["reason"]),
            str(r["event_time"] or "-"),
            str(r["watermark"] or "-"),
            str(r["batch"]),
            str(r["row"]),
        )
        for r in rows
    ]
    return terminal_table(head, shown)


def redriven_text(done: Sequence[RedriveReport], *, dry_run: bool) -> str:
    """Return what a redrive did, a line for each statement."""
    would = "would be " if dry_run else ""
    lines = []
    for one in done:
        where = f" to {one.location}" if one.location and not dry_run and one.plus + one.minus else ""
        left = f"; {many(one.undecided, 'row')} met nobody yet and stay" if one.undecided else ""
        lines.append(
            f"{one.sink}  {many(one.taken, 'row')} taken, {one.plus:,} added and {one.minus:,} taken back "
            f"{would}written{where}{left}"
        )
    return "\n".join(lines)
