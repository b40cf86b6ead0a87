"""``weft stream``: check, explain, run, start, watch, stop and redrive jobs of streaming SQL."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from weft.cli.call import Call, call_of
from weft.cli.commands.stream_service import start, status, stop
from weft.cli.commands.stream_text import MOST_ROWS, Rows, explained, redriven_text, report_data, report_text
from weft.cli.envelope import INVALID, OK, Envelope, refused
from weft.cli.stream_call import Define, Job, JobCall, job_of, settings_of
from weft.cli.terminal import say
from weft.core.names import find_similar, format_list, quote_for_shell
from weft.errors import WeftError, WorkspaceError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from weft.streams.plan.resolved import JobPlan
    from weft.streams.run.report import JobReport

app = typer.Typer(help="Jobs of streaming SQL.", no_args_is_help=True)
Sink = Annotated[str | None, typer.Argument(metavar="SINK", help="One statement, by its sink.")]
Keep = Literal["state", "offsets"]


@app.command("check")
def check(
    context: typer.Context,
    job: Job,
    *,
    strict: Annotated[bool, typer.Option("--strict", help="Warnings are errors too.")] = False,
    define: Define = None,
) -> Envelope:
    """Tell every mistake of a job, and what its joins will do; starts nothing."""
    from weft.streams.plan.explain import explain_job

    plan = job_of(call_of(context), job, define).plan()
    told = explain_job(plan)
    wrong = strict and any(d.severity == "warning" for d in plan.warnings)
    return Envelope(
        command="stream",
        data=explained(told.data),
        diagnostics=plan.warnings,
        text=told.text,
        exit_code=INVALID if wrong else OK,
    )


@app.command("explain")
def explain(context: typer.Context, job: Job, sink: Sink = None, *, define: Define = None) -> Envelope:
    """Print all that is known of a job before it runs: inputs, bounds, state, when rows come out."""
    from weft.streams.plan.explain import explain_job

    plan = job_of(call_of(context), job, define).plan()
    _check_sink(plan, sink)
    told = explain_job(plan, sink)
    return Envelope(command="stream", data=explained(told.data), diagnostics=plan.warnings, text=told.long)


@app.command("run")
def run(
    context: typer.Context,
    job: Job,
    *,
    final: Annotated[
        bool, typer.Option("--final", help="Read all there is, let every row out, seal.")
    ] = False,
    available: Annotated[bool, typer.Option("--available", help="Read all there is; the default.")] = False,
    batch: Annotated[
        bool, typer.Option("--batch", help="The same job over the same files, as a batch.")
    ] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Begin again; replaces what was written.")] = False,
    keep: Annotated[
        str | None, typer.Option("--keep", metavar="state|offsets", help="What a changed job keeps.")
    ] = None,
    only: Annotated[str | None, typer.Option("--only", metavar="SINK", help="This statement alone.")] = None,
    to: Annotated[
        str | None, typer.Option("--to", metavar="PATH", help="With --batch: where rows go.")
    ] = None,
    define: Define = None,
    continuous: Annotated[bool, typer.Option("--continuous", hidden=True)] = False,
) -> Envelope:
    """Run a job until its input ends."""
    call = call_of(context)
    mode = _mode(final=final, available=available, batch=batch, continuous=continuous)
    kept = _kept(keep, fresh=fresh, mode=mode)
    if to is not None and mode != "batch":
        raise WorkspaceError("--to says where --batch writes", code="W1803", help="add --batch")
    chosen = job_of(call, job, define)
    if mode == "continuous":
        return _as_child(call, chosen, only)
    plan = chosen.plan()
    _check_sink(plan, only)
    report, rows = _ran(call, plan, mode=mode, fresh=fresh, keep=kept, only=only, to=to)
    return _answer(chosen, plan, report, rows, mode)


def _mode(**said: bool) -> str:
    chosen = [name for name, wanted in said.items() if wanted]
    if len(chosen) > 1:
        raise WorkspaceError(
            f"{format_list([f'--{name}' for name in chosen])} contradict each other",
            code="W1803",
            help="say one of them",
        )
    return chosen[0] if chosen else "available"


def _kept(said: str | None, *, fresh: bool, mode: str) -> Keep | None:
    if said is None:
        return None
    if said not in ("state", "offsets"):
        raise WorkspaceError(
            f"--keep {said!r} is nothing that can be kept",
            code="W1803",
            help="--keep state or --keep offsets",
        )
    if fresh or mode == "batch":
        other = "--fresh" if fresh else "--batch"
        raise WorkspaceError(
            f"--keep and {other} contradict each other",
            code="W1803",
            help=f"{other} keeps nothing: say one of them",
        )
    return said  # type: ignore[return-value]  # one of both, as was looked


def _check_sink(plan: JobPlan, said: str | None) -> None:
    names = [s.name for s in (*plan.statements, *plan.explains)]
    if said is None or said in names:
        return
    close = find_similar(said, names, most=1)
    raise WorkspaceError(
        f"no statement of {plan.name!r} writes {said!r}",
        code="W1802",
        help=f"did you mean {close[0]!r}?" if close else f"they write {format_list(names)}",
    )


def _ran(
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
    from weft.streams.run.job import select_statements
    from weft.streams.run.opening import find_sealed

    if mode != "batch":  # what keeps a job from running is told before Spark starts
        find_sealed(plan, select_statements(plan, only), fresh=fresh, keep=keep)
    with session_for(settings_of(plan.root).spark, plan.root, spark=call.spark) as session:
        report = _reported(
            call, session.spark, plan, mode, fresh=fresh, keep=keep, only=only, to=to, stop=stop
        )
        return report, {} if call.json else _few(report)


def _reported(
    call: Call,
    spark: SparkSession,
    plan: JobPlan,
    mode: Any,
    *,
    fresh: bool,
    keep: Keep | None,
    only: str | None,
    to: str | None,
    stop: Any,
) -> JobReport:
    if mode == "batch":
        from weft.streams.run.batch import run_batch

        return run_batch(spark, plan, to=None if to is None else Path(to), only=only, show=_shown(call))
    from weft.cli.stream_watch import Watching
    from weft.streams.run.job import run_job

    return run_job(
        spark,
        plan,
        mode=mode,
        fresh=fresh,
        keep=keep,
        only=only,
        stop=stop,
        listener=None if call.quiet or (call.json and not call.verbose) else Watching(plan),
        show=_shown(call),
    )


def _shown(call: Call) -> Callable[[str], None]:
    """Return who prints the rows of console sinks: stdout is the document's when there is one."""
    return say if call.json else print


def _few(report: JobReport) -> Rows:
    """Return the rows of sinks that have few."""
    found: dict[str, tuple[list[str], list[tuple[Any, ...]]]] = {}
    for query in report.queries:
        rows = report.rows(query.sink) if 0 < query.rows <= MOST_ROWS else []
        if rows:
            found[query.sink] = (list(rows[0].__fields__), sorted((tuple(row) for row in rows), key=str))
    return found


def _answer(chosen: JobCall, plan: JobPlan, report: JobReport, rows: Rows, mode: str) -> Envelope:
    next_steps = (
        () if report.sealed or mode == "batch" else (f"weft stream status {quote_for_shell(chosen.shown)}",)
    )
    return Envelope(
        command="stream",
        data=report_data(report, plan),
        diagnostics=(*plan.warnings, *report.warnings),
        text=report_text(report, rows),
        next=next_steps,
        shows_rows=bool(rows),
    )


def _as_child(call: Call, chosen: JobCall, only: str | None) -> Envelope:
    """Run a job until it is asked to stop; how it ended is left where its supervisor looks."""
    from weft.streams.checkpoint.supervisor import SupervisorFiles, is_stop_requested, write_answer

    files = SupervisorFiles(chosen.folder())
    try:
        plan = chosen.plan()
        report, rows = _ran(call, plan, mode="continuous", only=only, stop=lambda: is_stop_requested(files))
        answer = _answer(chosen, plan, report, rows, "continuous")
    except WeftError as problem:
        answer = refused("stream", problem)
    write_answer(files, answer.document())
    return answer


app.command("start")(start)
app.command("status")(status)
app.command("stop")(stop)


@app.command("redrive")
def redrive(
    context: typer.Context,
    job: Job,
    sink: Sink = None,
    *,
    reason: Annotated[
        list[str] | None, typer.Option("--reason", metavar="REASON", help="Also these; LATE rows always.")
    ] = None,
    time: Annotated[
        str | None, typer.Option("--time", metavar="COLUMN", help="The time of rows that have none.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count, and write nothing.")] = False,
    define: Define = None,
) -> Envelope:
    """Process rejected rows again and write what they change as corrections."""
    from weft.io.spark.session import session_for
    from weft.streams.run.redrive import redrive_job

    call = call_of(context)
    plan = job_of(call, job, define).plan()
    _check_sink(plan, sink)
    with session_for(settings_of(plan.root).spark, plan.root, spark=call.spark) as session:
        done = redrive_job(
            session.spark, plan, sink, reasons=tuple(reason or ()), time_column=time, dry_run=dry_run
        )
    return Envelope(
        command="stream",
        data={"dry_run": dry_run, "redriven": [one.to_dict() for one in done]},
        text=redriven_text(done, dry_run=dry_run),
    )
