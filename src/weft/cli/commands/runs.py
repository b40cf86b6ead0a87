"""``weft runs``: what ran, what became of it, and how to end or forget it; nothing is started."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli.call import Call, call_of, reading, writing
from weft.cli.envelope import Envelope
from weft.cli.said import Period, Run
from weft.cli.terminal import many, moment, table, took
from weft.core.names import format_list
from weft.errors import StoreError, WorkspaceError

if TYPE_CHECKING:
    from pathlib import Path

    from weft.pipelines.model.values import RunStatus
    from weft.pipelines.store.reader import StoreReader
    from weft.pipelines.store.records import OperationRecord, OutputRecord, RunRecord
    from weft.pipelines.store.writer import Store

app = typer.Typer(help="Show runs, end them, forget them.", invoke_without_command=True)
STOP_SECONDS = 15
"""How long `cancel` waits for the process of the run."""
STATUSES = ("queued", "running", "completed", "failed", "cancelled")
Project = Annotated[str | None, typer.Option("--project", help="Of this project.")]
Status = Annotated[str | None, typer.Option("--status", help=f"One of {', '.join(STATUSES)}.")]
Most = Annotated[int, typer.Option("-n", min=1, help="How many at most.")]


@app.callback()
def runs(
    context: typer.Context,
    *,
    project: Project = None,
    period: Period = None,
    status: Status = None,
    most: Most = 50,
) -> Envelope | None:
    """List the newest runs."""
    if context.invoked_subcommand is not None:
        return None
    return _listed(call_of(context), project, period, status, most)


@app.command("ls")
def ls(
    context: typer.Context,
    *,
    project: Project = None,
    period: Period = None,
    status: Status = None,
    most: Most = 50,
) -> Envelope:
    """List the newest runs."""
    return _listed(call_of(context), project, period, status, most)


def _listed(call: Call, project: str | None, period: str | None, status: str | None, most: int) -> Envelope:
    if status is not None and status not in STATUSES:
        raise WorkspaceError(
            f"there is no status {status!r}", code="W1803", help=f"it is one of {format_list(STATUSES)}"
        )
    wanted: RunStatus | None = status  # type: ignore[assignment]
    workspace = call.remembered()
    with reading(workspace.settings, workspace.root) as reader:
        found = () if reader is None else reader.runs(project, period, wanted, most)
        outputs = {} if reader is None else {run.id: reader.outputs(run.id) for run in found}
    data = [run.to_dict() | {"rows": _rows(outputs[run.id])} for run in found]
    text = table(
        ("RUN", "PROJECT", "PERIOD", "STATUS", "STARTED", "TOOK", "OUTPUTS"),
        [_row(run, outputs[run.id]) for run in found],
    )
    return Envelope(command="runs", data={"runs": data}, text=text if found else "nothing has run here yet")


def _row(run: RunRecord, outputs: tuple[OutputRecord, ...]) -> tuple[str, ...]:
    from weft.pipelines.store.records import short_id

    status = run.status + (" (sandbox)" if run.sandbox else "")
    written = many(_rows(outputs), "row") if any(o.state == "published" for o in outputs) else "-"
    return (
        short_id(run.id),
        run.project_name,
        run.period,
        status,
        moment(run.started_at or run.created_at),
        took(run.seconds),
        written,
    )


def _rows(outputs: tuple[OutputRecord, ...]) -> int:
    return sum(o.rows for o in outputs if o.state == "published")


@contextmanager
def _store(call: Call) -> Iterator[tuple[Store, Path]]:
    """Give the store of a workspace that has one, to change it."""
    workspace = call.remembered()
    with reading(workspace.settings, workspace.root) as reader:
        if reader is None:
            raise StoreError("nothing has run here yet", code="W1606", help="`weft run` runs a project")
    with writing(workspace.settings, workspace.root) as store:
        yield store, workspace.root


@app.command("show")
def show(
    context: typer.Context,
    run: Run,
    *,
    snapshot: Annotated[bool, typer.Option("--snapshot", help="With all it was made of.")] = False,
) -> Envelope:
    """Show a run: its operations, outputs, and why it failed."""
    from weft.pipelines.run.publish import recover

    call = call_of(context)
    with _store(call) as (store, root):
        recovered = recover(store, root)
        found = store.run(run)
        operations, outputs = store.operations(found.id), store.outputs(found.id)
        data = _document(found, operations, outputs, root)
        if snapshot:
            data["snapshot_body"] = store.snapshot(found.id)
        data["resolver_snapshot"] = store.snapshot(found.id)["resolver_snapshot"]
    return Envelope(
        command="runs",
        data=data,
        diagnostics=tuple(r.note for r in recovered),
        text=_described(found, operations, outputs, root),
        next=_next(found),
    )


def _next(run: RunRecord) -> tuple[str, ...]:
    from weft.pipelines.store.records import short_id

    short = short_id(run.id)
    again = (f"weft run --resume {short}",)
    return {"failed": again, "cancelled": again, "completed": (f"weft rerun {short}",)}.get(run.status, ())


def _document(
    run: RunRecord, operations: tuple[OperationRecord, ...], outputs: tuple[OutputRecord, ...], root: Path
) -> dict[str, Any]:
    from weft.pipelines.run.moving import format_location
    from weft.pipelines.run.report import RecordedOutput

    return run.to_dict() | {
        "operations": [op.to_dict() for op in operations],
        "outputs": [
            RecordedOutput.of(o, format_location(o.target, root), state=o.state).to_dict() for o in outputs
        ],
    }


def _described(
    run: RunRecord, operations: tuple[OperationRecord, ...], outputs: tuple[OutputRecord, ...], root: Path
) -> str:
    from weft.pipelines.run.moving import format_location

    where = " in the sandbox" if run.sandbox else ""
    lines = [
        f"run {run.id}",
        f"{run.project_name} v{run.project_version}  {run.period}  {run.status}{where}  attempt {run.attempt}",
        (
            f"started {moment(run.started_at)} by {run.triggered_by}, took {took(run.seconds)}, "
            f"known at {moment(run.known_at)}, snapshot {run.snapshot_sha[:8]}"
        ),
    ]
    if run.rerun_of is not None:
        lines.append(f"rerun of {run.rerun_of}")
    if operations:
        rows = [
            (f"{op.seq:>4}", op.name, op.type, op.status, _number(op.rows_in), _number(op.rows_out), _number(op.rows_changed), _joins(op))
            for op in operations
        ]  # fmt: skip
        lines.append(table(("SEQ ", "NAME", "TYPE", "STATUS", "IN", "OUT", "CHANGED", "JOINS"), rows))
    for o in outputs:
        dataset = f"  {o.register_as} v{o.dataset_version}" if o.dataset_version is not None else ""
        lines.append(f"{o.state} {format_location(o.target, root)} ({many(o.rows, 'row')}){dataset}")
    if run.failure is not None:
        lines.append(run.failure.detail or f"error[{run.failure.code}]: {run.failure.message}")
    return "\n".join(lines)


def _number(count: int | None) -> str:
    return "-" if count is None else f"{count:,}"


def _joins(op: OperationRecord) -> str:
    return ", ".join(f"{j.alias}: {j.matched:,} matched {j.unmatched:,} unmatched" for j in op.joins)


@app.command("cancel")
def cancel(context: typer.Context, run: Run) -> Envelope:
    """End a run that is at work and wait until its process has stopped."""
    from weft.pipelines.run.publish import discard

    with _store(call_of(context)) as (store, root):
        found = store.run(run)
        dead = any(left.id == found.id for left in store.abandoned())
        ended = store.cancel(found.id)
        # A process that lives removes what it has staged itself.
        notes = discard(store, root, ended.id) if dead else ()
        waits = not dead and _has_not_stopped(store, ended.id)
    process = f"its process {ended.pid} on {ended.host}"
    if dead:
        told = "its process had died, and what it staged is removed"
    elif waits:
        told = f"{process} has not stopped within {STOP_SECONDS} s; it stops before it can publish anything"
    else:
        told = "its process has stopped"
    return Envelope(
        command="runs",
        data=ended.to_dict(),
        diagnostics=notes,
        text=f"run {ended.id} is cancelled: nothing is published, {told}",
        next=_next(ended),
    )


def _has_not_stopped(store: Store, run_id: str) -> bool:
    """Wait some seconds for the process of a cancelled run; return whether it is still at work."""
    until = time.monotonic() + STOP_SECONDS
    while stopping := store.is_stopping(run_id):
        if time.monotonic() >= until:
            break
        time.sleep(0.2)
    return stopping


@app.command("rm")
def rm(context: typer.Context, run: Run) -> Envelope:
    """Forget a run that has ended; what it published stays."""
    from weft.pipelines.run.publish import discard, recover

    with _store(call_of(context)) as (store, root):
        recover(store, root)
        found = store.run(run)
        notes = discard(store, root, found.id) if found.is_over else ()
        store.remove_run(found.id)
    return Envelope(
        command="runs",
        data={"run_id": found.id},
        diagnostics=notes,
        text=f"run {found.id} is forgotten",
    )


def reader_of(reader: StoreReader | None) -> StoreReader:
    """Return the store, or raise when nothing was stored yet."""
    if reader is None:
        raise StoreError("nothing has run here yet", code="W1606", help="`weft run` runs a project")
    return reader
