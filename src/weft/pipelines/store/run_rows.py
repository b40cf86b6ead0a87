"""The rows of a run in the store; each function is part of one transaction.

::

    queued -> running -> completed
       |         |-----> failed -> running         (resumed)
       |---------|-----> cancelled -> running      (resumed, from the first operation)

Each function is idempotent, because a connection may drop after a commit.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select, update

from weft.errors import RunError
from weft.pipelines.model.values import RunStatus
from weft.pipelines.store import tables
from weft.pipelines.store.column_types import first_of, json_text, snapshot_fingerprint
from weft.pipelines.store.locks import release
from weft.pipelines.store.records import (
    LeaseRecord,
    NewRun,
    OperationCounts,
    OutputRecord,
    RunFailure,
    RunRecord,
    short_id,
)
from weft.pipelines.store.tables import added, lease_of, output_of, run_of

RUNS, STEPS, OUTPUTS = tables.RUNS, tables.RUN_OPERATIONS, tables.RUN_OUTPUTS


def run_row(connection: Connection, run_id: str) -> RunRecord | None:
    """Return the run of that id, or None."""
    row = connection.execute(select(RUNS).where(RUNS.c.id == run_id)).first()
    return None if row is None else run_of(row)


def insert_run(connection: Connection, new: NewRun, now: dt.datetime) -> None:
    """Write a queued run, its snapshot, its operations and the fingerprints of its inputs."""
    sha = snapshot_fingerprint(new.snapshot)
    # Two runs may begin with one snapshot at the same time.
    connection.execute(added(connection, tables.RUN_SNAPSHOTS, {"sha": sha, "body": json_text(new.snapshot)}))
    connection.execute(
        insert(RUNS).values(
            id=new.run_id,
            project_id=new.project.id,
            project_name=new.project.name,
            project_version=new.project.version,
            period=new.period.identifier,
            level=new.period.level,
            status="queued",
            trigger=new.trigger,
            triggered_by=new.triggered_by,
            sandbox=new.sandbox,
            known_at=new.known_at,
            run_at=new.run_at,
            created_at=now,
            snapshot_sha=sha,
            parent_run_id=new.parent_run_id,
            rerun_of=new.rerun_of,
            attempt=1,
            host=new.host,
            pid=new.pid,
        )
    )
    steps = [
        {"run_id": new.run_id, "seq": op.seq, "name": op.name, "type": op.type, "status": "pending", "joins": []}
        for op in new.project.operations
    ]
    if steps:
        connection.execute(insert(STEPS), steps)
    prints: Mapping[str, Any] = new.snapshot.get("inputs", {})
    if prints:
        values = [{"run_id": new.run_id, "name": name, "print": seen} for name, seen in prints.items()]
        connection.execute(insert(tables.INPUTS), values)


def put_row_fingerprint(connection: Connection, run_id: str, name: str, rows: str) -> None:
    """Add the fingerprint of the rows of a read to that of its files."""
    inputs = tables.INPUTS
    mine = (inputs.c.run_id == run_id) & (inputs.c.name == name)
    known = connection.execute(select(inputs).where(mine)).first()
    if known is not None:
        fingerprint = {**known._mapping["print"], "rows": rows}  # noqa: SLF001  # a column called print
        connection.execute(update(inputs).where(mine).values(print=fingerprint))


def change_status(
    connection: Connection, run_id: str, status: RunStatus, allowed: tuple[RunStatus, ...], **values: Any
) -> None:
    """Move a run to a status from one of those allowed; it may have that status already."""
    moved = connection.execute(
        update(RUNS).where(RUNS.c.id == run_id, RUNS.c.status.in_((*allowed, status))).values(status=status, **values)
    )
    if moved.rowcount == 0:
        run = run_row(connection, run_id)
        raise transition_error(run_id, None if run is None else run.status, status)


def transition_error(run_id: str, current: str | None, wanted: str) -> RunError:
    """Return the error for an invalid transition of a run."""
    if current is None:
        return RunError(f"run {run_id!r} does not exist", code="W1606", help="`weft runs` lists the runs")
    return RunError(
        f"run {short_id(run_id)} is {current} and cannot become {wanted}",
        code="W1102",
        help=f"`weft runs show {short_id(run_id)}` shows its history",
    )


def finish_step(connection: Connection, run_id: str, counts: OperationCounts, now: dt.datetime) -> None:
    """Set an operation to completed, with its counts."""
    seq = counts.seq
    connection.execute(
        update(STEPS)
        .where(STEPS.c.run_id == run_id, STEPS.c.seq == seq)
        .values(
            status="completed",
            rows_in=counts.rows_in,
            rows_out=counts.rows_out,
            rows_changed=counts.rows_changed,
            joins=[join.to_dict() for join in counts.joins],
            started_at=first_of(STEPS.c.started_at, now),
            completed_at=now,
        )
    )
    # Operations of one action end in any order: the number only grows.
    connection.execute(
        update(RUNS)
        .where(RUNS.c.id == run_id, func.coalesce(RUNS.c.last_completed_operation, 0) < seq)
        .values(last_completed_operation=seq)
    )


def start_step(connection: Connection, run_id: str, seq: int, now: dt.datetime) -> None:
    """Set an operation to running."""
    connection.execute(
        update(STEPS)
        .where(STEPS.c.run_id == run_id, STEPS.c.seq == seq)
        .values(status="running", started_at=now, completed_at=None)
    )


def stop_operations(connection: Connection, run_id: str) -> None:
    """Set the running operations of a cancelled run back to pending."""
    at_work = (STEPS.c.run_id == run_id) & (STEPS.c.status == "running")
    connection.execute(update(STEPS).where(at_work).values(status="pending", started_at=None))


def fail_run(connection: Connection, run_id: str, failure: RunFailure, now: dt.datetime) -> None:
    """Set a run to failed; its staged data stays, so that it can be resumed."""
    change_status(connection, run_id, "failed", ("queued", "running"), error=failure.to_dict(), completed_at=now)
    unfinished = STEPS.c.status == "running"
    if failure.operation_order is not None:
        unfinished |= (STEPS.c.seq == failure.operation_order) & (STEPS.c.status != "completed")
    connection.execute(
        update(STEPS).where(STEPS.c.run_id == run_id, unfinished).values(status="failed", completed_at=now)
    )
    release(connection, run_id)


def outputs_of(connection: Connection, run_id: str) -> tuple[OutputRecord, ...]:
    """Return the outputs of a run in their order."""
    rows = connection.execute(select(OUTPUTS).where(OUTPUTS.c.run_id == run_id).order_by("seq"))
    return tuple(map(output_of, rows))


def put_output(connection: Connection, output: OutputRecord) -> None:
    """Write an output and replace its former record."""
    connection.execute(delete(OUTPUTS).where(OUTPUTS.c.run_id == output.run_id, OUTPUTS.c.seq == output.seq))
    values = asdict(output)
    values["dataset_name"] = values.pop("register_as")
    values["columns"], values["manifest"] = list(output.columns), [asdict(file) for file in output.manifest]
    connection.execute(insert(OUTPUTS).values(**values))


def set_outputs(connection: Connection, run_id: str, state: str, *, but: tuple[str, ...] = ()) -> None:
    """Move every output of a run to a state, except those in the states `but`."""
    connection.execute(
        update(OUTPUTS).where(OUTPUTS.c.run_id == run_id, OUTPUTS.c.state.not_in(but)).values(state=state)
    )


def delete_run(connection: Connection, run_id: str) -> None:
    """Remove a run and, when no other run has it, its snapshot."""
    row = connection.execute(select(RUNS.c.snapshot_sha).where(RUNS.c.id == run_id)).first()
    if row is None:
        return
    connection.execute(delete(RUNS).where(RUNS.c.id == run_id))
    if connection.execute(select(RUNS.c.id).where(RUNS.c.snapshot_sha == row.snapshot_sha)).first() is None:
        connection.execute(delete(tables.RUN_SNAPSHOTS).where(tables.RUN_SNAPSHOTS.c.sha == row.snapshot_sha))


def open_runs(connection: Connection) -> tuple[RunRecord, ...]:
    """Return the runs that have not ended, oldest first."""
    rows = connection.execute(select(RUNS).where(RUNS.c.status.in_(("queued", "running"))).order_by(RUNS.c.created_at))
    return tuple(map(run_of, rows))


def leases_of(connection: Connection, run_id: str) -> tuple[LeaseRecord, ...]:
    """Return the locks of a run."""
    rows = connection.execute(select(tables.LOCKS).where(tables.LOCKS.c.run_id == run_id).order_by("name"))
    return tuple(map(lease_of, rows))


def move_run(connection: Connection, run_id: str, host: str, pid: int) -> None:
    """Record the process that works on a run."""
    connection.execute(update(RUNS).where(RUNS.c.id == run_id).values(host=host, pid=pid))


def revive(connection: Connection, run: RunRecord, host: str, pid: int, now: dt.datetime) -> None:
    """Make a failed or cancelled run a running one again.

    Completed operations of a failed run stay completed; a cancelled run starts over.
    """
    # Cancelling removed the stage, so nothing of the earlier attempt is left to continue from.
    done = () if run.status == "cancelled" else ("completed",)
    if not done:
        connection.execute(update(RUNS).where(RUNS.c.id == run.id).values(last_completed_operation=None))
    change_status(
        connection,
        run.id,
        "running",
        ("failed", "cancelled"),
        error=None,
        completed_at=None,
        started_at=now,
        attempt=run.attempt + 1,
        host=host,
        pid=pid,
    )
    connection.execute(
        update(STEPS)
        .where(STEPS.c.run_id == run.id, STEPS.c.status.not_in(done))
        .values(status="pending", started_at=None, completed_at=None)
    )


def locked_error(connection: Connection, holder: LeaseRecord) -> RunError:
    """Return the error for a lock that another run holds."""
    run = run_row(connection, holder.run_id)
    short = short_id(holder.run_id)
    of = "" if run is None else f" of {run.project_name} for {run.period}"
    kind, _, target = holder.name.partition("/")
    doing = f"publishes to {target!r}" if kind == "publish" else "is running"
    return RunError(
        f"run {short}{of} {doing}: started {holder.acquired_at:%Y-%m-%d %H:%M} UTC "
        f"by {holder.owner} on {holder.host} (pid {holder.pid})",
        code="W1501",
        help=f"wait until it has ended, or cancel it: `weft runs cancel {short}`",
    )


def death_failure(why: str) -> RunFailure:
    """Return the failure of a run whose process is gone."""
    return RunFailure(code="W1502", message=f"the run was abandoned: {why}", detail="its lock was taken over")


def lost_error(connection: Connection, run_id: str) -> RunError:
    """Return the error for a process whose run was taken over or ended."""
    run, short = run_row(connection, run_id), short_id(run_id)
    if run is None:
        why, next_step = "was removed", "start it again"
    elif run.status == "cancelled":
        return RunError(
            f"run {short} was cancelled: its jobs are stopped and nothing is published",
            code="W1502",
            help=f"`weft run --resume {short}` starts it over with the same snapshot",
        )
    elif run.failure is not None:
        why, next_step = f"has failed meanwhile: {run.failure.message}", f"`weft run --resume {short}`"
    else:
        why, next_step = f"is {run.status} under {run.host} (pid {run.pid})", f"`weft runs show {short}`"
    return RunError(f"run {short} was taken over: it {why}", code="W1502", help=next_step)


def not_resumable_error(run: RunRecord) -> RunError:
    """Return the error for a run that cannot be resumed."""
    short = short_id(run.id)
    if run.status == "completed":
        return RunError(
            f"run {short} is {run.status} and cannot be resumed",
            code="W1503",
            help=f"`weft rerun {short}` repeats it from its snapshot",
        )
    return RunError(
        f"run {short} is {run.status}: only a run that failed or was cancelled can be resumed",
        code="W1504",
        help=f"`weft runs show {short}` shows its progress",
    )


def stopping_error(run: RunRecord) -> RunError:
    """Return the error for a cancelled run whose process has not stopped yet."""
    return RunError(
        f"run {short_id(run.id)} is cancelled, but its process {run.pid} on {run.host} has not stopped yet",
        code="W1504",
        help="try again in a few seconds; nothing of the run is published",
    )
