"""What the store answers when something is held, lost or over."""

from __future__ import annotations

from sqlalchemy import Connection

from weft.errors import RunError
from weft.pipelines.store.ids import short_id
from weft.pipelines.store.records import LeaseRecord, RunFailure, RunRecord
from weft.pipelines.store.run_rows import run_row


def locked(connection: Connection, holder: LeaseRecord) -> RunError:
    """Return the error for a lock that another run holds."""
    run = run_row(connection, holder.run_id)
    short = short_id(holder.run_id)
    of = "" if run is None else f" of {run.project_name} for {run.period}"
    doing = f"publishes to {holder.name.removeprefix('publish/')!r}" if _publishes(holder) else "is running"
    return RunError(
        f"run {short}{of} {doing}: started {holder.acquired_at:%Y-%m-%d %H:%M} UTC "
        f"by {holder.owner} on {holder.host} (pid {holder.pid})",
        code="W1501",
        help=f"wait until it has ended, or end it: `weft runs cancel {short}`",
    )


def _publishes(holder: LeaseRecord) -> bool:
    return holder.name.startswith("publish/")


def died(why: str) -> RunFailure:
    """Return the failure of a run whose process is gone."""
    return RunFailure(
        operation_order=None,
        code="W1502",
        message=f"the run was given up: {why}",
        detail="its lock was taken over",
    )


def lost(connection: Connection, run_id: str) -> RunError:
    """Return the error for a process that works on a run which is not its own any more."""
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
    return RunError(f"run {short} is not ours any more: it {why}", code="W1502", help=next_step)


def not_resumable(run: RunRecord) -> RunError:
    """Return the error for a run that cannot go on."""
    short = short_id(run.id)
    if run.status == "completed":
        return RunError(
            f"run {short} is {run.status} and cannot be resumed",
            code="W1503",
            help=f"`weft rerun {short}` does it again from its snapshot",
        )
    return RunError(
        f"run {short} is {run.status}: only a run that failed or was cancelled can be resumed",
        code="W1504",
        help=f"`weft runs show {short}` says how far it is",
    )


def stopping(run: RunRecord) -> RunError:
    """Return the error for a cancelled run whose process has not stopped yet."""
    return RunError(
        f"run {short_id(run.id)} is cancelled, but its process {run.pid} on {run.host} has not stopped yet",
        code="W1504",
        help="try again in some seconds; nothing of the run is published",
    )
