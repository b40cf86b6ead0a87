"""``weft run``: run a project for a period and publish what it makes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weft.cli.call import call_of, period_of, sessions, writing
from weft.cli.envelope import FAILED, INTERRUPTED, OK, Envelope
from weft.cli.said import Period, a_date, a_moment
from weft.cli.terminal import many, took
from weft.errors import WorkspaceError

if TYPE_CHECKING:
    from weft.pipelines.run.report import RunReport

KnownAt = Annotated[
    str | None, typer.Option("--known-at", metavar="TIME", help="What was known at that moment, in UTC.")
]
ChangedInputs = Annotated[
    bool, typer.Option("--allow-changed-inputs", help="Go on although inputs are not what they were.")
]


def run(
    context: typer.Context,
    project: Annotated[str | None, typer.Argument(help="Name or id; needed when there are several.")] = None,
    *,
    period: Period = None,
    known_at: KnownAt = None,
    today: Annotated[str | None, typer.Option("--today", metavar="DATE", help="What TODAY() gives.")] = None,
    correction: Annotated[bool, typer.Option("--correction", help="Run a period that is closed.")] = False,
    sandbox: Annotated[
        bool, typer.Option("--sandbox", help="Write into the sandbox, publish and register nothing.")
    ] = False,
    resume: Annotated[
        str | None,
        typer.Option("--resume", metavar="RUN", help="Go on with a run that failed or was cancelled."),
    ] = None,
    plan: Annotated[
        Path | None, typer.Option("--plan", metavar="FILE", help="Refuse unless this plan still holds.")
    ] = None,
    allow_changed_inputs: ChangedInputs = False,
) -> Envelope:
    """Run a project for a period: read, transform, write, publish all of it or nothing."""
    call = call_of(context)
    moment, day = a_moment(known_at, "--known-at"), a_date(today, "--today")
    if resume is not None:
        if project is not None or period is not None:
            raise WorkspaceError(
                "a run that is resumed has its project and period", code="W1803", help="leave them out"
            )
        return _resumed(context, resume, allow_changed_inputs=allow_changed_inputs)
    workspace, wanted = call.project(project)
    from weft.pipelines.plan.catalog import Catalog

    chosen = period_of(period, wanted, Catalog.of(workspace))
    from weft.pipelines.run.execute import RunOptions, run_project

    options = RunOptions(known_at=moment, today=day, correction=correction, sandbox=sandbox, plan=plan)
    with writing(workspace.settings, workspace.root) as store, sessions(call, workspace) as opener:
        report = run_project(
            workspace,
            wanted,
            chosen,
            store=store,
            session=opener,
            options=options,
            progress=call.progress(),
        )
    return told("run", report)


def _resumed(context: typer.Context, said: str, *, allow_changed_inputs: bool) -> Envelope:
    from weft.pipelines.run.resume import resume

    call = call_of(context)
    workspace = call.remembered()
    with writing(workspace.settings, workspace.root) as store, sessions(call, workspace) as opener:
        report = resume(
            said,
            root=workspace.root,
            store=store,
            session=opener,
            progress=call.progress(),
            allow_changed_inputs=allow_changed_inputs,
        )
    return told("run", report)


def told(command: str, report: RunReport) -> Envelope:
    """Return the answer of a command that ran something."""
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
        text=summary(report),
        exit_code=code,
    )


def summary(report: RunReport) -> str:
    """Return one line that says what became of a run and where its outputs are."""
    parts = [f"{report.status} in {took(report.seconds)}"]
    for output in report.outputs:
        parts.append(f"{output.location} ({many(output.rows, 'row')})")
        if output.dataset is not None:
            parts.append(f"{output.dataset} v{output.dataset_version}")
    if report.failure is not None and report.failure.operation_order is not None:
        parts.append(f"operation {report.failure.operation_order}")
    if report.identical is not None:
        parts.append("the same inputs" if report.identical else "other inputs than before")
    return " · ".join(parts)
