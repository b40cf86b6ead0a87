"""``weft stream``: check, explain, run, start, stop and redrive streaming SQL jobs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Argument, Context, Option, Typer

from weft.cli.call import Call, check_choice, get_call
from weft.cli.envelope import FAILED, INVALID, OK, Envelope
from weft.cli.stream_call import STREAMS, DefineOption, JobArgument, JobCall, find_job, read_settings
from weft.cli.stream_text import (
    MOST_ROWS,
    Rows,
    format_batch,
    format_job,
    format_jobs,
    format_redriven,
    format_rejects,
    format_report,
    report_to_dict,
)
from weft.cli.terminal import print_stderr
from weft.core.duration import Duration
from weft.core.frozen import thaw
from weft.core.names import format_list, quote_for_shell, suggest
from weft.core.paths import name_problem
from weft.errors import Diagnostic, StreamError, WeftError, WorkspaceError

if TYPE_CHECKING:
    from weft.io.stores.store_path import Place
    from weft.streams.checkpoint.status import JobStatus
    from weft.streams.checkpoint.supervisor import SupervisorFiles
    from weft.streams.plan.resolved import JobPlan
    from weft.streams.run.report import BatchReport, JobReport, Listener

app = Typer(help="Check, run and manage streaming SQL jobs.", no_args_is_help=True)
SinkArgument = Annotated[str | None, Argument(metavar="SINK", help="Sink of one statement; all statements by default.")]
Keep = Literal["state", "offsets"]


@app.command("check")
def check(
    context: Context,
    job: JobArgument,
    *,
    strict: Annotated[bool, Option("--strict", help="Treat warnings as errors.")] = False,
    define: DefineOption = None,
) -> Envelope:
    """Check a job and report every error. Starts no JVM."""
    from weft.streams.plan.explain import explain_job

    plan = find_job(get_call(context), job, define).plan()
    explanation = explain_job(plan)
    is_invalid = strict and any(d.severity == "warning" for d in plan.warnings)
    return Envelope(
        command="stream",
        data=thaw(explanation.data),
        diagnostics=plan.warnings,
        text=explanation.text,
        exit_code=INVALID if is_invalid else OK,
    )


@app.command("explain")
def explain(context: Context, job: JobArgument, sink: SinkArgument = None, *, define: DefineOption = None) -> Envelope:
    """Explain a job: its inputs, bounds and state, and when rows are emitted."""
    from weft.streams.plan.explain import explain_job

    plan = find_job(get_call(context), job, define).plan()
    _check_sink(plan, sink)
    explanation = explain_job(plan, sink)
    return Envelope(command="stream", data=thaw(explanation.data), diagnostics=plan.warnings, text=explanation.long)


@app.command("run")
def run(
    context: Context,
    job: JobArgument,
    *,
    final: Annotated[
        bool, Option("--final", help="Read all input, emit unmatched rows and seal the checkpoint.")
    ] = False,
    available: Annotated[bool, Option("--available", help="Read all input; the default.")] = False,
    batch: Annotated[
        bool, Option("--batch", help="Run as a batch query over the same files, without a checkpoint.")
    ] = False,
    fresh: Annotated[bool, Option("--fresh", help="Start again from the beginning; replaces the output.")] = False,
    keep: Annotated[
        str | None, Option("--keep", metavar="state|offsets", help="What to keep after the job was changed.")
    ] = None,
    only: Annotated[str | None, Option("--only", metavar="SINK", help="Run only the statement of this sink.")] = None,
    to: Annotated[str | None, Option("--to", metavar="PATH", help="Folder to write to, with --batch.")] = None,
    define: DefineOption = None,
    continuous: Annotated[bool, Option("--continuous", hidden=True)] = False,
) -> Envelope:
    """Run a job until it has read all input."""
    call = get_call(context)
    mode = _choose_mode(final=final, available=available, batch=batch, continuous=continuous)
    kept = _check_keep(keep, fresh=fresh, mode=mode)
    if to is not None and mode != "batch":
        raise WorkspaceError("--to works only with --batch", code="W1803", help="add --batch")
    chosen = find_job(call, job, define)
    if mode == "continuous":
        return _run_supervised(call, chosen, only)
    plan = chosen.plan()
    _check_sink(plan, only)
    report, rows = _run(call, plan, mode=mode, fresh=fresh, keep=kept, only=only, to=to)
    return _report(chosen, plan, report, rows, mode)


def _choose_mode(**flags: bool) -> str:
    modes = [name for name, is_set in flags.items() if is_set]
    if len(modes) > 1:
        raise WorkspaceError(
            f"{format_list([f'--{name}' for name in modes])} exclude each other", code="W1803", help="use one of them"
        )
    return modes[0] if modes else "available"


def _check_keep(keep: str | None, *, fresh: bool, mode: str) -> Keep | None:
    if keep is None:
        return None
    check_choice("--keep", keep, ("state", "offsets"))
    if fresh or mode == "batch":
        other = "--fresh" if fresh else "--batch"
        raise WorkspaceError(
            f"--keep and {other} exclude each other", code="W1803", help=f"{other} keeps nothing: use one of them"
        )
    return keep  # type: ignore[return-value]  # check_choice allows these two only


def _check_sink(plan: JobPlan, sink: str | None) -> None:
    names = [s.name for s in (*plan.statements, *plan.explains)]
    if sink is not None and sink not in names:
        raise WorkspaceError(
            f"job {plan.name!r} has no sink {sink!r}", code="W1802", help=suggest(sink, names, "its sinks are", most=1)
        )


def _run(
    call: Call,
    plan: JobPlan,
    *,
    mode: Any,
    fresh: bool = False,
    keep: Keep | None = None,
    only: str | None = None,
    to: str | None = None,
    stop: Any = None,
) -> tuple[JobReport, Rows]:
    from weft.io.spark.session import session_for
    from weft.streams.run.batch import run_batch
    from weft.streams.run.job import run_job, select_statements
    from weft.streams.run.opening import find_sealed

    # Rows of console sinks go to stderr if stdout is a JSON document.
    show = print_stderr if call.json else print
    if mode != "batch":  # a sealed checkpoint is reported before Spark starts
        find_sealed(plan, select_statements(plan, only), fresh=fresh, keep=keep)
    with session_for(read_settings(plan.root).spark, plan.root, spark=call.spark) as session:
        if mode == "batch":
            folder = None if to is None else Path(to)
            report = run_batch(session.spark, plan, to=folder, only=only, show=show)
        else:
            report = run_job(
                session.spark,
                plan,
                mode=mode,
                fresh=fresh,
                keep=keep,
                only=only,
                stop=stop,
                listener=None if call.is_silent else _batch_printer(plan),
                show=show,
            )
        return report, {} if call.json else _read_few_rows(report)


def _batch_printer(plan: JobPlan) -> Listener:
    """Return a listener that prints a line on stderr for each batch with rows."""
    from weft.streams.run.report import Listener

    width = max((len(s.name) for s in plan.statements), default=0)

    class BatchPrinter(Listener):
        def on_batch(self, report: BatchReport) -> None:
            if line := format_batch(report, width):
                print_stderr(line)

    return BatchPrinter()


def _read_few_rows(report: JobReport) -> Rows:
    """Return the rows of each sink that has at most `MOST_ROWS`."""
    tables: dict[str, tuple[list[str], list[tuple[Any, ...]]]] = {}
    for query in report.queries:
        rows = report.rows(query.sink) if 0 < query.rows <= MOST_ROWS else []
        if rows:
            tables[query.sink] = (list(rows[0].__fields__), sorted((tuple(row) for row in rows), key=str))
    return tables


def _report(chosen: JobCall, plan: JobPlan, report: JobReport, rows: Rows, mode: str) -> Envelope:
    is_done = report.sealed or mode == "batch"
    return Envelope(
        command="stream",
        data=report_to_dict(report, plan),
        diagnostics=(*plan.warnings, *report.warnings),
        text=format_report(report, rows),
        next=() if is_done else (f"weft stream status {quote_for_shell(chosen.display_path)}",),
        shows_rows=bool(rows),
    )


def _run_supervised(call: Call, chosen: JobCall, only: str | None) -> Envelope:
    """Run a job until a stop is requested, and write the result where the supervisor reads it."""
    from weft.streams.checkpoint.supervisor import SupervisorFiles, is_stop_requested, write_answer

    files = SupervisorFiles(chosen.local_folder())
    try:
        plan = chosen.plan()
        report, rows = _run(call, plan, mode="continuous", only=only, stop=lambda: is_stop_requested(files))
        result = _report(chosen, plan, report, rows, "continuous")
    except WeftError as error:
        result = Envelope.from_error("stream", error)
    # A file, because stdout of this process is the log.
    write_answer(files, result.document())
    return result


@app.command("start")
def start(
    context: Context,
    job: JobArgument,
    *,
    foreground: Annotated[
        bool, Option("--foreground", help="Supervise the job in this process, not in the background.")
    ] = False,
    define: DefineOption = None,
) -> Envelope:
    """Start a job in the background. It runs until it is stopped, and is restarted after a failure."""
    from weft.streams.checkpoint.supervisor import SupervisorFiles
    from weft.streams.run.supervise import spawn, start_supervisor, supervise

    chosen = find_job(get_call(context), job, define)
    plan = chosen.plan()
    files = SupervisorFiles(chosen.local_folder())
    # Reported here: the supervisor runs in the background, and its error would only be in the log.
    _check_not_sealed(chosen.folder())
    words = ["-C", str(chosen.root), "stream"]
    if foreground:
        child = [*words, "run", *chosen.arguments(), "--continuous"]
        record = supervise(files, plan.name, lambda: spawn(child, files))
    else:
        record = start_supervisor([*words, "start", *chosen.arguments(), "--foreground"], files, plan.name)
    data = {
        "job": plan.name,
        "state": record.state,
        "pid": record.pid,
        "child": record.child_pid,
        "checkpoint": str(chosen.folder()),
        "log": str(files.log),
    }
    if record.state == "failed":
        error = dict(record.error or {})
        finding = Diagnostic(
            error.get("code", "W2201"), str(error.get("message", "the job failed")), help=str(error.get("help", ""))
        )
        return Envelope(command="stream", data=data, diagnostics=(finding,), exit_code=FAILED)
    file = chosen.display_path
    return Envelope(
        command="stream",
        data=data,
        diagnostics=plan.warnings,
        text=f"{plan.name} is {record.state}, process {record.pid}; its log is {files.log}",
        next=()
        if foreground
        else (f"weft stream status {quote_for_shell(file)}", f"weft stream stop {quote_for_shell(file)}"),
    )


def _check_not_sealed(folder: Place) -> None:
    from weft.streams.checkpoint.commit import check_open
    from weft.streams.checkpoint.status import iter_checkpoints

    for checkpoint in iter_checkpoints(folder):
        check_open(checkpoint, checkpoint.root.parent.name)


@app.command("status")
def status(
    context: Context,
    job: Annotated[str | None, Argument(metavar="JOB", help="Job; all jobs by default.")] = None,
    *,
    rejects: Annotated[
        int | None, Option("--rejects", metavar="[N]", min=1, help="Show the last N rejected rows; 20 without N.")
    ] = None,
    define: DefineOption = None,
) -> Envelope:
    """Show the status of jobs. Reads their checkpoints and starts no JVM."""
    from weft.streams.checkpoint.status import list_jobs, read_job_status

    call = get_call(context)
    if job is None:
        base = call.nearest_root() / ".weft" / STREAMS
        jobs = [read_job_status(name, base / name) for name in list_jobs(base)]
        text = format_jobs(jobs) if jobs else "no jobs have run yet"
        return _report_status(jobs, {"jobs": [s.to_dict() for s in jobs]}, text)
    found, folder, files = _find_started(call, job, define)
    report = read_job_status(found, folder, files)
    data, text = report.to_dict(), format_job(report)
    if rejects is not None:
        data["rejects"] = _read_rejects(report, rejects)
        text = f"{text}\n\n{format_rejects(data['rejects'])}"
    return _report_status([report], data, text)


def _report_status(reports: list[JobStatus], data: dict[str, Any], text: str) -> Envelope:
    problems = [problem for job in reports for problem in job.problems]
    full = [
        Diagnostic("W2209", message, help="set 'join.max_state_rows' or a smaller bound", severity="warning")
        for job in reports
        for statement in job.statements
        for message in statement.warnings
    ]
    return Envelope(
        command="stream",
        data=data,
        diagnostics=(*problems, *full),
        text=text,
        exit_code=FAILED if any(p.severity == "error" for p in problems) else OK,
        shows_rows="rejects" in data,
    )


def _find_started(call: Call, name: str, define: list[str] | None) -> tuple[str, Place, SupervisorFiles]:
    """Return the name, the checkpoint and the local files of a job that has run; its file may have been removed."""
    from weft.streams.checkpoint.supervisor import SupervisorFiles

    folder = call.nearest_root() / ".weft" / STREAMS / name
    try:
        chosen = find_job(call, name, define)
    except WorkspaceError:
        if folder.is_dir() and name_problem(name) is None:
            return name, folder, SupervisorFiles(folder)
        raise
    checkpoint = chosen.folder()
    if not checkpoint.is_dir():
        file = chosen.display_path
        raise StreamError(
            f"job {chosen.file.stem!r} has not run yet",
            code="W2215",
            help=f"run it once with `weft stream run {quote_for_shell(file)}`, "
            f"or in the background with `weft stream start {quote_for_shell(file)}`",
        )
    return chosen.file.stem, checkpoint, SupervisorFiles(chosen.local_folder())


def _read_rejects(report: JobStatus, limit: int) -> list[dict[str, Any]]:
    from weft.streams.checkpoint.folder import Checkpoint
    from weft.streams.checkpoint.rejects import read_last_rejects

    return [
        {"sink": statement.name, **row.to_dict()}
        for statement in report.statements
        for row in read_last_rejects(Checkpoint(statement.checkpoint), limit)
    ]


@app.command("stop")
def stop(
    context: Context,
    job: JobArgument,
    *,
    timeout: Annotated[
        str, Option("--timeout", metavar="DURATION", help="How long to wait for the current batch.")
    ] = "60s",
    force: Annotated[bool, Option("--force", help="Kill the process if it has not stopped by then.")] = False,
    define: DefineOption = None,
) -> Envelope:
    """Stop a job after its current batch."""
    from weft.streams.run.supervise import stop_job

    seconds = Duration.parse(timeout).microseconds / 1_000_000
    name, _, files = _find_started(get_call(context), job, define)
    how = stop_job(files, name, timeout=seconds, force=force)
    return Envelope(command="stream", data={"job": name, "stopped": how}, text=f"{name} has stopped, {how}")


@app.command("redrive")
def redrive(
    context: Context,
    job: JobArgument,
    sink: SinkArgument = None,
    *,
    reason: Annotated[
        list[str] | None,
        Option("--reason", metavar="REASON", help="Redrive these rows too; LATE is always included."),
    ] = None,
    time: Annotated[str | None, Option("--time", metavar="COLUMN", help="Event time for rows that have none.")] = None,
    dry_run: Annotated[bool, Option("--dry-run", help="Count the rows, but write nothing.")] = False,
    define: DefineOption = None,
) -> Envelope:
    """Process rejected rows again. Writes the differences to the sink as corrections."""
    from weft.io.spark.session import session_for
    from weft.streams.run.redrive import redrive_job

    call = get_call(context)
    plan = find_job(call, job, define).plan()
    _check_sink(plan, sink)
    with session_for(read_settings(plan.root).spark, plan.root, spark=call.spark) as session:
        results = redrive_job(session.spark, plan, sink, reasons=tuple(reason or ()), time_column=time, dry_run=dry_run)
    return Envelope(
        command="stream",
        data={"dry_run": dry_run, "redriven": [r.to_dict() for r in results]},
        text=format_redriven(results, dry_run=dry_run),
    )
