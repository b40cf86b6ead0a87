"""``weft runs``: list and show runs, cancel or remove them; starts no JVM."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

from typer import Context, Option, Typer

from weft.cli.call import (
    Call,
    PeriodOption,
    RunArgument,
    check_choice,
    get_call,
    read_store,
    require_store,
    write_store,
)
from weft.cli.envelope import Envelope
from weft.cli.terminal import format_count, format_seconds, format_time
from weft.core.names import format_table

if TYPE_CHECKING:
    from pathlib import Path

    from weft.pipelines.model.values import RunStatus
    from weft.pipelines.store.records import OperationRecord, OutputRecord, RunRecord
    from weft.pipelines.store.writer import Store

app = Typer(help="List, show, cancel and remove runs.", invoke_without_command=True)
STOP_SECONDS = 15
"""How long `cancel` waits for the process of the run."""
STATUSES = ("queued", "running", "completed", "failed", "cancelled")
ProjectOption = Annotated[str | None, Option("--project", metavar="NAME", help="Only runs of this project.")]
StatusOption = Annotated[str | None, Option("--status", metavar="STATUS", help=f"One of {', '.join(STATUSES)}.")]
LimitOption = Annotated[int, Option("-n", metavar="N", min=1, help="Maximum number of runs.")]


@app.callback()
@app.command("ls")
def ls(
    context: Context,
    project: ProjectOption = None,
    period: PeriodOption = None,
    status: StatusOption = None,
    limit: LimitOption = 50,
) -> Envelope | None:
    """List the newest runs."""
    if context.invoked_subcommand is not None:
        return None  # `weft runs` lists too, and this is called before each of its commands
    if status is not None:
        check_choice("--status", status, STATUSES)
    only: RunStatus | None = status  # type: ignore[assignment]
    workspace = get_call(context).stored_workspace()
    with read_store(workspace) as reader:
        records = () if reader is None else reader.runs(project, period, only, limit)
        outputs = {} if reader is None else {run.id: reader.outputs(run.id) for run in records}
    data = [run.to_dict() | {"rows": _published_rows(outputs[run.id])} for run in records]
    text = format_table(
        ("RUN", "PROJECT", "PERIOD", "STATUS", "STARTED", "TOOK", "OUTPUTS"),
        [_format_row(run, outputs[run.id]) for run in records],
    )
    return Envelope(command="runs", data={"runs": data}, text=text if records else "no runs yet")


def _format_row(run: RunRecord, outputs: tuple[OutputRecord, ...]) -> tuple[str, ...]:
    from weft.pipelines.store.records import short_id

    status = run.status + (" (sandbox)" if run.sandbox else "")
    is_published = any(o.state == "published" for o in outputs)
    return (
        short_id(run.id),
        run.project_name,
        run.period,
        status,
        format_time(run.started_at or run.created_at),
        format_seconds(run.seconds),
        format_count(_published_rows(outputs), "row") if is_published else "-",
    )


def _published_rows(outputs: tuple[OutputRecord, ...]) -> int:
    return sum(o.rows for o in outputs if o.state == "published")


@contextmanager
def _existing_store(call: Call) -> Iterator[tuple[Store, Path]]:
    """Open the store of a workspace for writing, but do not create it."""
    workspace = call.stored_workspace()
    # Opening a store of SQLite for writing would create the file.
    with read_store(workspace) as reader:
        require_store(reader)
    with write_store(workspace) as store:
        yield store, workspace.root


@app.command("show")
def show(
    context: Context,
    run: RunArgument,
    *,
    snapshot: Annotated[bool, Option("--snapshot", help="Include the snapshot in the --json document.")] = False,
) -> Envelope:
    """Show a run: its operations, outputs and failure."""
    from weft.pipelines.run.publish import recover

    with _existing_store(get_call(context)) as (store, root):
        # A killed publication is finished first, so that the outputs are shown as they are.
        recovered = recover(store, root)
        record = store.run(run)
        operations, outputs = store.operations(record.id), store.outputs(record.id)
        body = store.snapshot(record.id)
    data = _to_dict(record, operations, outputs, root) | {"resolver_snapshot": body["resolver_snapshot"]}
    if snapshot:
        data["snapshot_body"] = body
    return Envelope(
        command="runs",
        data=data,
        diagnostics=tuple(r.note for r in recovered),
        text=_describe(record, operations, outputs, root),
        next=_next_steps(record),
    )


def _next_steps(run: RunRecord) -> tuple[str, ...]:
    from weft.pipelines.store.records import short_id

    short = short_id(run.id)
    resume = (f"weft run --resume {short}",)
    return {"failed": resume, "cancelled": resume, "completed": (f"weft rerun {short}",)}.get(run.status, ())


def _to_dict(
    run: RunRecord, operations: tuple[OperationRecord, ...], outputs: tuple[OutputRecord, ...], root: Path
) -> dict[str, Any]:
    from weft.pipelines.run.moving import format_location
    from weft.pipelines.run.report import RecordedOutput

    return run.to_dict() | {
        "operations": [op.to_dict() for op in operations],
        "outputs": [RecordedOutput.of(o, format_location(o.target, root), state=o.state).to_dict() for o in outputs],
    }


def _describe(
    run: RunRecord, operations: tuple[OperationRecord, ...], outputs: tuple[OutputRecord, ...], root: Path
) -> str:
    from weft.pipelines.run.moving import format_location

    target = " in the sandbox" if run.sandbox else ""
    lines = [
        f"run {run.id}",
        f"{run.project_name} v{run.project_version}  {run.period}  {run.status}{target}  attempt {run.attempt}",
        (
            f"started {format_time(run.started_at)} by {run.triggered_by}, took {format_seconds(run.seconds)}, "
            f"known at {format_time(run.known_at)}, snapshot {run.snapshot_sha[:8]}"
        ),
    ]
    if run.rerun_of is not None:
        lines.append(f"rerun of {run.rerun_of}")
    if operations:
        head = ("SEQ ", "NAME", "TYPE", "STATUS", "IN", "OUT", "CHANGED", "JOINS")
        lines.append(format_table(head, [_format_operation(op) for op in operations]))
    for o in outputs:
        dataset = f"  {o.register_as} v{o.dataset_version}" if o.dataset_version is not None else ""
        lines.append(f"{o.state} {format_location(o.target, root)} ({format_count(o.rows, 'row')}){dataset}")
    if run.failure is not None:
        lines.append(run.failure.detail or f"error[{run.failure.code}]: {run.failure.message}")
    return "\n".join(lines)


def _format_operation(op: OperationRecord) -> tuple[str, ...]:
    counts = ("-" if n is None else f"{n:,}" for n in (op.rows_in, op.rows_out, op.rows_changed))
    joins = ", ".join(f"{j.alias}: {j.matched:,} matched {j.unmatched:,} unmatched" for j in op.joins)
    return (f"{op.seq:>4}", op.name, op.type, op.status, *counts, joins)


@app.command("cancel")
def cancel(context: Context, run: RunArgument) -> Envelope:
    """Cancel a run and wait until its process has stopped."""
    from weft.pipelines.run.publish import discard

    with _existing_store(get_call(context)) as (store, root):
        record = store.run(run)
        # Asked before `cancel`, which changes the status by which abandoned runs are recognized.
        is_dead = any(abandoned.id == record.id for abandoned in store.abandoned())
        cancelled = store.cancel(record.id)
        # A process that is still alive removes its staged outputs itself.
        findings = discard(store, root, cancelled.id) if is_dead else ()
        is_alive = not is_dead and _is_still_running(store, cancelled.id)
    if is_dead:
        outcome = "its process had died, and its staged outputs are removed"
    elif is_alive:
        process = f"its process {cancelled.pid} on {cancelled.host}"
        outcome = f"{process} is still running after {STOP_SECONDS} s and will stop before it publishes"
    else:
        outcome = "its process has stopped"
    return Envelope(
        command="runs",
        data=cancelled.to_dict(),
        diagnostics=findings,
        text=f"run {cancelled.id} is cancelled: nothing is published, {outcome}",
        next=_next_steps(cancelled),
    )


def _is_still_running(store: Store, run_id: str) -> bool:
    """Wait for the process of a cancelled run; return whether it is still running."""
    deadline = time.monotonic() + STOP_SECONDS
    while is_stopping := store.is_stopping(run_id):
        if time.monotonic() >= deadline:
            break
        time.sleep(0.2)
    return is_stopping


@app.command("rm")
def rm(context: Context, run: RunArgument) -> Envelope:
    """Remove the record of a run that has ended. Its published data stays."""
    from weft.pipelines.run.publish import discard, recover

    with _existing_store(get_call(context)) as (store, root):
        recover(store, root)
        record = store.run(run)
        findings = discard(store, root, record.id) if record.is_over else ()
        store.remove_run(record.id)
    return Envelope(
        command="runs", data={"run_id": record.id}, diagnostics=findings, text=f"run {record.id} is removed"
    )
