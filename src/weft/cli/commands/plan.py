"""``weft plan``: what a run would do, and what differs from the last one; nothing is started."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli.call import call_of, period_of, reading
from weft.cli.envelope import CHANGES, OK, Envelope
from weft.cli.said import Period, a_moment
from weft.cli.terminal import many
from weft.core.names import quote_for_shell
from weft.errors import WorkspaceError

if TYPE_CHECKING:
    from weft.pipelines.model.project import Project
    from weft.pipelines.plan.catalog import Catalog
    from weft.pipelines.plan.compare import Change
    from weft.pipelines.plan.explain import PlanReport
    from weft.pipelines.plan.project import ProjectPlan
    from weft.pipelines.store.reader import StoreReader
    from weft.pipelines.store.records import RunRecord

_NOT_OF_THE_PLAN = ("moment", "session", "engine", "inputs")


def plan(
    context: typer.Context,
    project: Annotated[str | None, typer.Argument(help="Name or id; needed when there are several.")] = None,
    *,
    period: Period = None,
    known_at: Annotated[
        str | None, typer.Option("--known-at", metavar="TIME", help="What was known at that moment, in UTC.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Save it for `run --plan`.")
    ] = None,
    detailed_exitcode: Annotated[
        bool, typer.Option("--detailed-exitcode", help="End with 4 when a run would do something new.")
    ] = False,
) -> Envelope:
    """Show what a run would do: reads, joins, outputs, and what changed since the last one."""
    call = call_of(context)
    moment = a_moment(known_at, "--known-at")
    workspace, wanted = call.project(project)
    from weft.pipelines.plan.check import check_outputs
    from weft.pipelines.plan.explain import describe_plan
    from weft.pipelines.plan.project import resolve_project
    from weft.pipelines.plan.resolver.locate import find_missing_data, measure_bytes
    from weft.pipelines.store.lifecycle import build_catalog, resolve_status
    from weft.pipelines.store.snapshot import plan_fingerprint

    with reading(workspace.settings, workspace.root) as reader:
        catalog = build_catalog(workspace, reader)
        stands = resolve_status(wanted, reader)
        chosen = None if period is None else period_of(period, wanted, catalog)
        calendar = catalog.calendar(wanted.calendar)
        made = resolve_project(
            wanted,
            catalog,
            period=chosen,
            calendar=calendar,
            known_at=moment,
            draft=stands.status == "draft",
        )
        check_outputs(made, catalog)
        changes = changed(made, catalog, reader, edited=bool(stands.warnings))
    sizes = {read.name: measure_bytes(read, catalog, workspace.root) for read in made.reads}
    missing = tuple(d for read in made.reads for d in find_missing_data(read, catalog, workspace.root))
    document = describe_plan(made, catalog=catalog, sizes=sizes)
    own = plan_fingerprint(made, catalog)
    report = replace(document.report, status=stands.status, changes=_told(made, changes), fingerprint=own)
    step = _next_step(wanted.name, period, out, edited=bool(stands.warnings))
    envelope = Envelope(
        command="plan",
        data=report.to_dict(),
        diagnostics=(*stands.warnings, *made.warnings, *missing),
        text=f"{document.text}\n{_sentence(report, changes)}",
        next=(step,),
        exit_code=CHANGES if detailed_exitcode and report.changes else OK,
    )
    if out is not None:
        _save(envelope, out)
    return envelope


def _next_step(project: str, period: str | None, out: Path | None, *, edited: bool) -> str:
    step = f"weft run {quote_for_shell(project)} -p {quote_for_shell(period or 'PERIOD')}"
    saved = "" if out is None else f" --plan {quote_for_shell(out)}"
    return step + (" --sandbox" if edited else "") + saved


def _told(plan: ProjectPlan, changes: tuple[Change, ...] | None) -> tuple[Change, ...]:
    from weft.pipelines.plan.compare import Change

    project = plan.project
    new = Change(part="project", what=project.name, before=None, after=project.version)
    return (new,) if changes is None else changes


def _sentence(report: PlanReport, changes: tuple[Change, ...] | None) -> str:
    if changes is None:
        outputs = sum(op.type == "output" for op in report.operations)
        return f"new project: {many(len(report.operations), 'operation')}, {many(outputs, 'output')}"
    return "\n".join(map(str, changes)) or "nothing has changed since the last run"


def _save(envelope: Envelope, out: Path) -> None:
    text = json.dumps(envelope.document()["data"], indent=2, ensure_ascii=False, default=str)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text + "\n", encoding="utf-8")
    except OSError as cause:
        raise WorkspaceError(
            f"{out} cannot be written: {cause.strerror}", code="W1803", help="name another file with --out"
        ) from cause


def changed(
    plan: ProjectPlan, catalog: Catalog, reader: StoreReader | None, *, edited: bool = False
) -> tuple[Change, ...] | None:
    """Return what differs from the last run of a project that completed; None when there was none.

    A run of the same period is taken when there is one; otherwise the period is new, and what follows from
    that is passed over.  An active project that was `edited` is compared with what was last published, or
    with the version that was activated when nothing was.
    """
    from weft.pipelines.plan.compare import Change, diff_snapshot
    from weft.pipelines.store.snapshot import build_snapshot

    if reader is None:
        return None
    period = None if plan.period is None else plan.period.identifier
    project = plan.project
    real = _earlier(project.id, period, reader, sandbox=plan.draft and not edited)
    if not real:
        kept = reader.project_body(project.id, project.version) if edited else None
        return None if kept is None else _since_activated(kept, project)
    before = reader.snapshot(real[0].id)
    now = dt.datetime.now(dt.UTC)
    after = build_snapshot(
        plan, catalog, engine_version="", session={}, inputs={}, today=now.date(), known_at=now, run_at=now
    )
    passed = _NOT_OF_THE_PLAN if real[0].period == period else (*_NOT_OF_THE_PLAN, "period", "locations")
    # What the last run registered itself is no change of what is done.
    made = {f"{v.dataset.id}@{v.dataset.version}" for v in reader.registered()}
    read = {f"{pin.dataset_id}@{pin.dataset_version}" for pin in plan.pins}
    first_time = (
        ()
        if plan.period is None or real[0].period == period
        else (Change(part="period", what=plan.period.identifier, before=None, after=plan.period.identifier),)
    )
    return first_time + tuple(
        change
        for change in diff_snapshot(before, json.loads(json.dumps(after, default=str)))
        if change.part not in passed
        and not (change.part == "datasets" and any(key in change.what for key in made - read))
    )


def _earlier(
    project_id: str, period: str | None, reader: StoreReader, *, sandbox: bool
) -> tuple[RunRecord, ...]:
    """Return the completed runs to compare with, newest first; drafts also have a published past."""
    for wanted in (sandbox, False):
        for of in (period, None):
            runs = reader.runs(project_id, of, "completed", 50)
            if found := tuple(run for run in runs if run.sandbox == wanted):
                return found
    return ()


def _since_activated(kept: Mapping[str, Any], project: Project) -> tuple[Change, ...]:
    from weft.pipelines.plan.compare import diff_snapshot

    def parts(said: Mapping[str, Any]) -> dict[str, Any]:
        own = {key: said.get(key) for key in ("id", "name", "version", "status")}
        return {"project": own} | {key: said.get(key) or {} for key in ("selectors", "resolver_overrides")}

    before = parts(kept) | {"operations": kept["operations"]}
    now = project.to_dict()
    return diff_snapshot(before, parts(now) | {"operations": now["operations"]})
