"""``weft run`` and ``weft rerun``: run a project for a period and publish its outputs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Context, Option

from weft.cli.call import (
    KnownAtOption,
    PeriodOption,
    ProjectArgument,
    RunArgument,
    get_call,
    lazy_session,
    parse_date,
    parse_period,
    parse_time,
    write_store,
)
from weft.cli.envelope import FAILED, INTERRUPTED, OK, Envelope
from weft.cli.terminal import format_count, format_seconds
from weft.errors import WorkspaceError

if TYPE_CHECKING:
    from weft.pipelines.run.report import RunReport

CorrectionOption = Annotated[bool, Option("--correction", help="Allow a run of a closed period.")]
ChangedInputsOption = Annotated[
    bool, Option("--allow-changed-inputs", help="Continue although inputs changed since the first attempt.")
]


def run(
    context: Context,
    project: ProjectArgument = None,
    *,
    period: PeriodOption = None,
    known_at: KnownAtOption = None,
    today: Annotated[str | None, Option("--today", metavar="DATE", help="Value of TODAY() in expressions.")] = None,
    correction: CorrectionOption = False,
    sandbox: Annotated[bool, Option("--sandbox", help="Write to the sandbox; publish and register nothing.")] = False,
    resume: Annotated[str | None, Option("--resume", metavar="RUN", help="Resume a failed or cancelled run.")] = None,
    plan: Annotated[
        Path | None, Option("--plan", metavar="FILE", help="Run only if this saved plan is still up to date.")
    ] = None,
    allow_changed_inputs: ChangedInputsOption = False,
) -> Envelope:
    """Run a project for a period. Publishes all outputs or none."""
    call = get_call(context)
    # Arguments are checked before the workspace is read, and the workspace before Spark starts.
    time, day = parse_time(known_at, "--known-at"), parse_date(today, "--today")
    if resume is not None:
        if project is not None or period is not None:
            raise WorkspaceError(
                "a resumed run has its own project and period",
                code="W1803",
                help="remove PROJECT and --period, or remove --resume",
            )
        return _resume(context, resume, allow_changed_inputs=allow_changed_inputs)
    with call.waiting("reading the workspace", has_line=False):
        workspace, chosen = call.project(project)
        from weft.pipelines.plan.catalog import Catalog

        parsed = parse_period(period, chosen, Catalog.of(workspace))
        from weft.pipelines.run.execute import RunOptions, run_project

    options = RunOptions(known_at=time, today=day, correction=correction, sandbox=sandbox, plan=plan)
    with write_store(workspace) as store, lazy_session(call, workspace) as session:
        report = run_project(
            workspace, chosen, parsed, store=store, session=session, options=options, progress=call.progress()
        )
    return _report("run", report)


def _resume(context: Context, run: str, *, allow_changed_inputs: bool) -> Envelope:
    from weft.pipelines.run.resume import resume

    call = get_call(context)
    # The snapshot of the run has its specification: errors in files that were edited since do not matter.
    workspace = call.stored_workspace()
    with write_store(workspace) as store, lazy_session(call, workspace) as session:
        report = resume(
            run,
            root=workspace.root,
            store=store,
            session=session,
            progress=call.progress(),
            allow_changed_inputs=allow_changed_inputs,
        )
    return _report("run", report)


def rerun(
    context: Context,
    run: RunArgument,
    *,
    known_at: KnownAtOption = None,
    correction: CorrectionOption = False,
    allow_changed_inputs: ChangedInputsOption = False,
) -> Envelope:
    """Repeat a run from its snapshot. Publishes the same rows; refuses changed inputs."""
    call = get_call(context)
    time = parse_time(known_at, "--known-at")
    workspace = call.stored_workspace()
    from weft.pipelines.run.execute import RunOptions
    from weft.pipelines.run.resume import rerun as repeat_run

    with write_store(workspace) as store, lazy_session(call, workspace) as session:
        report = repeat_run(
            run,
            workspace=workspace,
            store=store,
            session=session,
            options=RunOptions(known_at=time, correction=correction),
            progress=call.progress(),
            allow_changed_inputs=allow_changed_inputs,
        )
    return _report("rerun", report)


def _report(command: str, report: RunReport) -> Envelope:
    """Return the result of a command that ran a project."""
    from weft.pipelines.store.records import short_id

    code = {"completed": OK, "cancelled": INTERRUPTED}.get(report.status, FAILED)
    short = short_id(report.run_id)
    if report.status == "completed":
        steps: tuple[str, ...] = (f"weft runs show {short}",)
    elif report.status == "failed":
        steps = (f"weft run --resume {short}", f"weft runs show {short}")
    else:
        steps = (f"weft run --resume {short}",)
    return Envelope(
        command=command,
        data=report.to_dict(),
        diagnostics=(*report.warnings, *report.diagnostics),
        next=steps,
        text=_summarize(report),
        exit_code=code,
    )


def _summarize(report: RunReport) -> str:
    """Return one line with the status of a run and its outputs."""
    parts = [f"{report.status} in {format_seconds(report.seconds)}"]
    for output in report.outputs:
        parts.append(f"{output.location} ({format_count(output.rows, 'row')})")
        if output.dataset is not None:
            parts.append(f"{output.dataset} v{output.dataset_version}")
    if report.failure is not None and report.failure.operation_order is not None:
        parts.append(f"operation {report.failure.operation_order}")
    if report.identical is not None:
        parts.append("the same inputs" if report.identical else "changed inputs")
    return " · ".join(parts)
