"""``weft plan``: what a run would do, and what changed since the last one; starts no JVM."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Context, Option

from weft.cli.call import (
    KnownAtOption,
    PeriodOption,
    ProjectArgument,
    get_call,
    parse_period,
    parse_time,
    read_store,
    write_report,
)
from weft.cli.envelope import CHANGES, OK, Envelope
from weft.cli.terminal import format_count
from weft.core.names import quote_for_shell

if TYPE_CHECKING:
    from weft.pipelines.model.project import Project
    from weft.pipelines.plan.catalog import Catalog
    from weft.pipelines.plan.compare import Change
    from weft.pipelines.plan.explain import PlanReport
    from weft.pipelines.plan.project import ProjectPlan
    from weft.pipelines.store.reader import StoreReader
    from weft.pipelines.store.records import RunRecord

_RUN_ONLY = ("moment", "session", "engine", "inputs")
"""Parts of a snapshot that a run has and a plan has not."""


def plan(
    context: Context,
    project: ProjectArgument = None,
    *,
    period: PeriodOption = None,
    known_at: KnownAtOption = None,
    out: Annotated[
        Path | None, Option("--out", metavar="FILE", help="Save the plan for `weft run --plan FILE`.")
    ] = None,
    detailed_exitcode: Annotated[
        bool, Option("--detailed-exitcode", help="Exit with 4 if there are changes since the last run.")
    ] = False,
) -> Envelope:
    """Show what a run would do. Lists reads, joins, outputs and the changes since the last run."""
    call = get_call(context)
    time = parse_time(known_at, "--known-at")
    workspace, chosen = call.project(project)
    from weft.pipelines.plan.check import check_outputs
    from weft.pipelines.plan.explain import describe_plan
    from weft.pipelines.plan.project import resolve_project
    from weft.pipelines.plan.resolver.locate import find_missing_data, measure_bytes
    from weft.pipelines.store.lifecycle import build_catalog, resolve_status
    from weft.pipelines.store.snapshot import plan_fingerprint

    with read_store(workspace) as reader:
        catalog = build_catalog(workspace, reader)
        state = resolve_status(chosen, reader)
        resolved = resolve_project(
            chosen,
            catalog,
            period=None if period is None else parse_period(period, chosen, catalog),
            calendar=catalog.calendar(chosen.calendar),
            known_at=time,
            draft=state.status == "draft",
        )
        check_outputs(resolved, catalog)
        changes = find_changes(resolved, catalog, reader, edited=bool(state.warnings))
    sizes = {read.name: measure_bytes(read, catalog, workspace.root) for read in resolved.reads}
    missing = tuple(d for read in resolved.reads for d in find_missing_data(read, catalog, workspace.root))
    document = describe_plan(resolved, catalog=catalog, sizes=sizes)
    report = replace(
        document.report,
        status=state.status,
        changes=_new_project(resolved) if changes is None else changes,
        fingerprint=plan_fingerprint(resolved, catalog),
    )
    envelope = Envelope(
        command="plan",
        data=report.to_dict(),
        diagnostics=(*state.warnings, *resolved.warnings, *missing),
        text=f"{document.text}\n{_describe_changes(report, changes)}",
        next=(_next_step(chosen.name, period, out, edited=bool(state.warnings)),),
        exit_code=CHANGES if detailed_exitcode and report.changes else OK,
    )
    if out is not None:
        data = envelope.document()["data"]
        write_report(out, json.dumps(data, indent=2, ensure_ascii=False, default=str))
    return envelope


def _next_step(project: str, period: str | None, out: Path | None, *, edited: bool) -> str:
    step = f"weft run {quote_for_shell(project)} -p {quote_for_shell(period or 'PERIOD')}"
    saved = "" if out is None else f" --plan {quote_for_shell(out)}"
    return step + (" --sandbox" if edited else "") + saved


def _new_project(plan: ProjectPlan) -> tuple[Change, ...]:
    from weft.pipelines.plan.compare import Change

    return (Change(part="project", what=plan.project.name, before=None, after=plan.project.version),)


def _describe_changes(report: PlanReport, changes: tuple[Change, ...] | None) -> str:
    if changes is None:
        outputs = sum(op.type == "output" for op in report.operations)
        operations = format_count(len(report.operations), "operation")
        return f"new project: {operations}, {format_count(outputs, 'output')}"
    return "\n".join(map(str, changes)) or "no changes since the last run"


def find_changes(
    plan: ProjectPlan, catalog: Catalog, reader: StoreReader | None, *, edited: bool = False
) -> tuple[Change, ...] | None:
    """Return the changes since the last completed run of a project; None if it never completed.

    The last run of the same period is used if there is one.  Otherwise the period is new, and changes that
    follow from it are left out.  An active project that was `edited` is compared with its last published
    run, or with the activated version if there is none.
    """
    from weft.pipelines.plan.compare import Change, diff_snapshot
    from weft.pipelines.store.snapshot import build_snapshot

    if reader is None:
        return None
    period = None if plan.period is None else plan.period.identifier
    project = plan.project
    runs = _earlier_runs(project.id, period, reader, sandbox=plan.draft and not edited)
    if not runs:
        activated = reader.project_body(project.id, project.version) if edited else None
        return None if activated is None else _changes_since_activation(activated, project)
    before = reader.snapshot(runs[0].id)
    now = dt.datetime.now(dt.UTC)
    after = build_snapshot(
        plan, catalog, engine_version="", session={}, inputs={}, today=now.date(), known_at=now, run_at=now
    )
    is_same_period = runs[0].period == period
    ignored = _RUN_ONLY if is_same_period else (*_RUN_ONLY, "period", "locations")
    # A dataset version that the last run registered is its result, not a change of its input.
    registered = {f"{v.dataset.id}@{v.dataset.version}" for v in reader.registered()}
    unread = registered - {f"{pin.dataset_id}@{pin.dataset_version}" for pin in plan.pins}
    new_period = (
        () if period is None or is_same_period else (Change(part="period", what=period, before=None, after=period),)
    )
    return new_period + tuple(
        change
        # The stored snapshot was JSON, so the new one must be compared in the same form.
        for change in diff_snapshot(before, json.loads(json.dumps(after, default=str)))
        if change.part not in ignored and not (change.part == "datasets" and any(key in change.what for key in unread))
    )


def _earlier_runs(project_id: str, period: str | None, reader: StoreReader, *, sandbox: bool) -> tuple[RunRecord, ...]:
    """Return the completed runs to compare with, newest first; a draft may have published runs only."""
    for in_sandbox in (sandbox, False):
        for only in (period, None):
            runs = reader.runs(project_id, only, "completed", 50)
            if matches := tuple(run for run in runs if run.sandbox == in_sandbox):
                return matches
    return ()


def _changes_since_activation(activated: Mapping[str, Any], project: Project) -> tuple[Change, ...]:
    from weft.pipelines.plan.compare import diff_snapshot

    def parts(body: Mapping[str, Any]) -> dict[str, Any]:
        own = {key: body.get(key) for key in ("id", "name", "version", "status")}
        rest = {key: body.get(key) or {} for key in ("selectors", "resolver_overrides")}
        return {"project": own, "operations": body["operations"]} | rest

    return diff_snapshot(parts(activated), parts(project.to_dict()))
