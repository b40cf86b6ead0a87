"""``weft rerun``: do a run again from its snapshot."""

from __future__ import annotations

from typing import Annotated

import typer

from weft.cli.call import call_of, sessions, writing
from weft.cli.commands.run import ChangedInputs, KnownAt, told
from weft.cli.envelope import Envelope
from weft.cli.said import Run, a_moment


def rerun(
    context: typer.Context,
    run: Run,
    *,
    known_at: KnownAt = None,
    correction: Annotated[bool, typer.Option("--correction", help="Run a period that is closed.")] = False,
    allow_changed_inputs: ChangedInputs = False,
) -> Envelope:
    """Do a run again as it was and publish the same rows; changed inputs are refused."""
    call = call_of(context)
    moment = a_moment(known_at, "--known-at")
    workspace = call.remembered()
    from weft.pipelines.run.execute import RunOptions
    from weft.pipelines.run.resume import rerun as again

    with writing(workspace.settings, workspace.root) as store, sessions(call, workspace) as opener:
        report = again(
            run,
            workspace=workspace,
            store=store,
            session=opener,
            options=RunOptions(known_at=moment, correction=correction),
            progress=call.progress(),
            allow_changed_inputs=allow_changed_inputs,
        )
    return told("rerun", report)
