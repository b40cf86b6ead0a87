"""``weft stream start``, ``status`` and ``stop``: jobs that run on their own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli.call import Call, call_of
from weft.cli.commands.stream_text import job_text, jobs_text, rejects_text
from weft.cli.envelope import FAILED, OK, Envelope
from weft.cli.stream_call import STREAMS, Define, Job, job_of, stream_root
from weft.core.duration import Duration
from weft.core.names import quote_for_shell
from weft.core.paths import name_problem
from weft.errors import Diagnostic, StreamError, WorkspaceError

if TYPE_CHECKING:
    from weft.streams.checkpoint.status import JobStatus


def start(
    context: typer.Context,
    job: Job,
    *,
    foreground: Annotated[bool, typer.Option("--foreground", help="Watch it here instead.")] = False,
    define: Define = None,
) -> Envelope:
    """Start a job that runs until it is stopped; it is started again when it falls."""
    from weft.streams.checkpoint.supervisor import SupervisorFiles
    from weft.streams.run.supervise import spawn, start_supervisor, supervise

    chosen = job_of(call_of(context), job, define)
    plan = chosen.plan()
    files = SupervisorFiles(chosen.folder())
    _check_open(files.job)
    words = ["-C", str(chosen.root), "stream"]
    if foreground:
        child = [*words, "run", *chosen.words(), "--continuous"]
        record = supervise(files, plan.name, lambda: spawn(child, files))
    else:
        record = start_supervisor([*words, "start", *chosen.words(), "--foreground"], files, plan.name)
    data = {
        "job": plan.name,
        "state": record.state,
        "pid": record.pid,
        "child": record.child_pid,
        "checkpoint": str(files.job),
        "log": str(files.log),
    }
    if record.state == "failed":
        error = dict(record.error or {})
        found = Diagnostic(
            error.get("code", "W2201"),
            str(error.get("message", "it failed")),
            help=str(error.get("help", "")),
        )
        return Envelope(command="stream", data=data, diagnostics=(found,), exit_code=FAILED)
    return Envelope(
        command="stream",
        data=data,
        diagnostics=plan.warnings,
        text=f"{plan.name} is {record.state}, process {record.pid}; it writes to {files.log}",
        next=()
        if foreground
        else (
            f"weft stream status {quote_for_shell(chosen.shown)}",
            f"weft stream stop {quote_for_shell(chosen.shown)}",
        ),
    )


def _check_open(folder: Path) -> None:
    from weft.streams.checkpoint.commit import check_open
    from weft.streams.checkpoint.status import iter_checkpoints

    for checkpoint in iter_checkpoints(folder):
        check_open(checkpoint, checkpoint.root.parent.name)


def status(
    context: typer.Context,
    job: Annotated[str | None, typer.Argument(metavar="JOB", help="One job; all without it.")] = None,
    *,
    rejects: Annotated[
        int | None, typer.Option("--rejects", metavar="[N]", min=1, help="Also the last N rejected rows; 20.")
    ] = None,
    define: Define = None,
) -> Envelope:
    """Tell how it stands with jobs, from their files alone."""
    from weft.streams.checkpoint.status import list_jobs, read_job_status

    call = call_of(context)
    if job is None:
        base = stream_root(call) / ".weft" / STREAMS
        found = [read_job_status(name, base / name) for name in list_jobs(base)]
        text = jobs_text(found) if found else "no job has run here yet"
        return _status_answer(found, {"jobs": [s.to_dict() for s in found]}, text)
    name, folder = _known(call, job, define)
    told = read_job_status(name, folder)
    data, text = told.to_dict(), job_text(told)
    if rejects is not None:
        rows = _rejects(told, rejects)
        data["rejects"] = rows
        text = f"{text}\n\n{rejects_text(rows)}"
    return _status_answer([told], data, text)


def _status_answer(found: list[JobStatus], data: dict[str, Any], text: str) -> Envelope:
    problems = [problem for job in found for problem in job.problems]
    full = [
        Diagnostic("W2209", sentence, help="see 'join.max_state_rows' and the bound", severity="warning")
        for job in found
        for statement in job.statements
        for sentence in statement.warnings
    ]
    return Envelope(
        command="stream",
        data=data,
        diagnostics=(*problems, *full),
        text=text,
        exit_code=FAILED if any(p.severity == "error" for p in problems) else OK,
        shows_rows="rejects" in data,
    )


def _known(call: Call, said: str, define: list[str] | None) -> tuple[str, Path]:
    """Return the name and folder of a job that has run: by its file, or by its name when the file is gone."""
    folder = stream_root(call) / ".weft" / STREAMS / said
    try:
        chosen = job_of(call, said, define)
    except WorkspaceError:
        if folder.is_dir() and name_problem(said) is None:
            return said, folder
        raise
    found = chosen.folder()
    if not found.is_dir():
        raise StreamError(
            f"the job {chosen.file.stem!r} has not run yet",
            code="W2215",
            help=f"`weft stream run {quote_for_shell(chosen.shown)}` runs it, `weft stream start {quote_for_shell(chosen.shown)}` keeps it running",
        )
    return chosen.file.stem, found


def _rejects(told: JobStatus, most: int) -> list[dict[str, Any]]:
    from weft.streams.checkpoint.folder import Checkpoint
    from weft.streams.checkpoint.rejects import read_last_rejects

    found: list[dict[str, Any]] = []
    for statement in told.statements:
        last = read_last_rejects(Checkpoint(statement.checkpoint), most)
        found.extend({"sink": statement.name, **row.to_dict()} for row in last)
    return found


def stop(
    context: typer.Context,
    job: Job,
    *,
    timeout: Annotated[str, typer.Option("--timeout", metavar="DURATION", help="How long to wait.")] = "60s",
    force: Annotated[bool, typer.Option("--force", help="Then kill its process.")] = False,
    define: Define = None,
) -> Envelope:
    """End a job after its batch."""
    from weft.streams.checkpoint.supervisor import SupervisorFiles
    from weft.streams.run.supervise import stop_job

    wait = Duration.parse(timeout).microseconds / 1_000_000
    name, folder = _known(call_of(context), job, define)
    how = stop_job(SupervisorFiles(folder), name, timeout=wait, force=force)
    return Envelope(command="stream", data={"job": name, "stopped": how}, text=f"{name} has stopped, {how}")
