"""resume and rerun: continue or repeat a run from its snapshot alone.

Files of the workspace may have changed since; only the snapshot counts, and whether the input data is still the same.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from weft.errors import Diagnostic, RunError, StoreError, WeftError
from weft.io.spark.session import Session
from weft.pipelines.model.read_workspace import load_workspace
from weft.pipelines.model.workspace import Workspace
from weft.pipelines.plan.catalog import Catalog
from weft.pipelines.plan.check import check_outputs
from weft.pipelines.plan.operations.resolved import ResolvedOutput
from weft.pipelines.plan.project import ProjectPlan
from weft.pipelines.run.engine import Kept, whole_steps
from weft.pipelines.run.execute import Opener, continue_run, create_run, open_once
from weft.pipelines.run.failing import explain_errors
from weft.pipelines.run.moving import Move, move_back, verify
from weft.pipelines.run.prepare import (
    Prepared,
    RunOptions,
    check_open,
    check_targets,
    inputs_of,
    is_small,
    locations_of,
)
from weft.pipelines.run.progress import Progress, Silent
from weft.pipelines.run.publish import completed_family, recover, replay_plan
from weft.pipelines.run.report import RunReport, report_of
from weft.pipelines.spark.inputs import InputPrint, changes
from weft.pipelines.spark.read import fingerprint_rows
from weft.pipelines.store.lifecycle import build_catalog
from weft.pipelines.store.records import OutputRecord, RunRecord, short_id
from weft.pipelines.store.run_rows import not_resumable_error, stopping_error
from weft.pipelines.store.snapshot import period_from_snapshot
from weft.pipelines.store.writer import Store


def resume(
    run_id: str,
    *,
    root: Path,
    store: Store,
    session: Session | Opener,
    progress: Progress | None = None,
    allow_changed_inputs: bool = False,
) -> RunReport:
    """Continue a failed run after the last operation whose rows are on disk; it keeps its id.

    A cancelled run has kept nothing and starts over with its snapshot.  A completed run stays as it is, with a note
    in its report.  A run that is in progress, or whose process has not stopped yet, is refused (W1504).
    """
    recover(store, root)
    run = store.run(run_id)
    snapshot = store.snapshot(run.id)
    plan, catalog = replay_plan(snapshot, root)
    if run.status == "completed":
        return _as_it_is(run, plan, store, root)
    if run.status not in ("failed", "cancelled"):
        raise not_resumable_error(run)
    if store.is_stopping(run.id):
        raise stopping_error(run)
    check_outputs(plan, catalog, build_catalog(load_workspace(root).workspace, store))
    open_session, kept = open_once(session), store.inputs(run.id)
    prepared = replace(
        _prepared(plan, catalog, snapshot, root, kept, open_session, allow_changed=allow_changed_inputs),
        rerun_of=run.rerun_of,
        rows_of=origin_of(run, store),
    )
    _check_appended(prepared if prepared.identical else replace(prepared, rows_of=None), run, store)
    opened = open_session(is_small=is_small(plan, catalog, root))
    with explain_errors("resuming the run"):
        # Once more with a session: another run may wait for one to publish to its tables.
        recover(store, root, session=opened.spark)
    resumed = store.resume(run.id)
    _undo_publishing(resumed, store)
    return continue_run(
        prepared, resumed, root, store, opened, progress or Silent(), kept_of(resumed, plan, store, root)
    )


def _undo_publishing(run: RunRecord, store: Store) -> None:
    """Undo the moves of an attempt that failed while it published, before outputs are staged again."""
    for output in store.outputs(run.id):
        if output.state == "publishing":
            if output.is_files:
                # Which mode the output has does not matter on the way back.
                move_back(Move(output, "replace_period"))
            store.output_staged(replace(output, state="staged"))


def _as_it_is(run: RunRecord, plan: ProjectPlan, store: Store, root: Path) -> RunReport:
    note = Diagnostic(
        "W1503",
        f"run {short_id(run.id)} is completed and cannot be resumed",
        help=f"`weft rerun {short_id(run.id)}` repeats it",
        severity="note",
    )
    return report_of(run.id, store, locations=locations_of(plan, root), warnings=(note,))


def kept_of(run: RunRecord, plan: ProjectPlan, store: Store, root: Path) -> Kept:
    """Return the steps and outputs of an earlier attempt that are still as they were written.

    The run continues from the newest step before which every output is staged.  A merge is repeated with
    the current rows of its target.
    """
    merges = {op.seq for op in plan.operations if isinstance(op, ResolvedOutput) and op.mode == "merge"}
    outputs = tuple(o for o in store.outputs(run.id) if o.state == "staged" and o.seq not in merges and _is_staged(o))
    staged = {o.seq for o in outputs}
    needed = [op.seq for op in plan.operations if isinstance(op, ResolvedOutput) and op.seq not in staged]
    # A step behind an output that is missing is of no use: the rows of the output were those before it.
    first = min(needed, default=None)
    steps = (s for s in whole_steps(root, run.id) if first is None or s < first)
    return Kept(outputs=outputs, step=next(steps, None))


def _is_staged(output: OutputRecord) -> bool:
    if output.kind == "jdbc":  # a stage table is written again: whether it is complete cannot be checked here
        return False
    try:
        verify(Move(output, "replace_period"))
    except RunError:
        return False
    return True


def rerun(
    run_id: str,
    *,
    workspace: Workspace,
    store: Store,
    session: Session | Opener,
    options: RunOptions = RunOptions(),  # noqa: B008  # a frozen value
    progress: Progress | None = None,
    allow_changed_inputs: bool = False,
) -> RunReport:
    """Repeat a run from its snapshot and publish the same rows, under a new run id.

    Inputs that changed are refused with W1510 unless they are allowed.  With ``options.known_at`` the run
    is repeated with the data known at another moment.
    """
    root = workspace.root
    recover(store, root)
    run = store.run(run_id)
    snapshot = dict(store.snapshot(run.id))
    if options.known_at is not None:
        snapshot["known_at"] = options.known_at.astimezone(dt.UTC).isoformat()
        snapshot["run_at"] = dt.datetime.now(dt.UTC).isoformat()
    plan, catalog = replay_plan(snapshot, root)
    if not plan.draft:
        _check_period(plan, workspace, store, correction=options.correction)
    check_outputs(plan, catalog, build_catalog(workspace, store))
    check_targets(plan, root)
    open_session = open_once(session)
    # With another time of knowledge other rows are read, so the fingerprints of the run do not apply.
    kept = store.inputs(run.id) if options.known_at is None else {}
    prepared = _prepared(plan, catalog, snapshot, root, kept, open_session, allow_changed=allow_changed_inputs)
    same = prepared.identical and options.known_at is None
    prepared = replace(prepared, identical=same, rerun_of=run.id, rows_of=origin_of(run, store) if same else None)
    _check_appended(prepared, run, store)
    opened = open_session(is_small=is_small(plan, catalog, root))
    with explain_errors("starting the run"):
        recover(store, root, session=opened.spark)
        created = create_run(prepared, store, opened, options)
    return continue_run(prepared, created, root, store, opened, progress or Silent())


def _check_appended(prepared: Prepared, run: RunRecord, store: Store) -> None:
    """Raise W1515 when rows were added to a table that a run with other rows could not find again.

    The rows may have been added by the run itself or by any other that repeats the same first run.
    """
    appending = {
        op.seq: op
        for op in prepared.plan.operations
        if isinstance(op, ResolvedOutput) and op.mode == "append" and op.target.kind not in ("files", "file")
    }  # names of files contain the run
    for other in (run, *completed_family(run, store)) if appending else ():
        published = [o for o in store.outputs(other.id) if o.state == "published" and o.seq in appending]
        if published and origin_of(other, store) != prepared.rows_of:
            raise RunError(
                f"run {short_id(other.id)} added its rows to {appending[published[0].seq].target.location}, and this "
                f"{'rerun' if prepared.rerun_of else 'attempt'} computes other rows",
                code="W1515",
                help="delete the rows of the run and start a new one with `weft run`, or write with `mode: replace_period`",
            )


def origin_of(run: RunRecord, store: Store) -> str:
    """Return the id of the run that first made the rows: a rerun with the same inputs makes the same ones."""
    while run.rerun_of is not None:
        try:
            first = store.run(run.rerun_of)
            same = store.snapshot(first.id)["known_at"] == store.snapshot(run.id)["known_at"]
            same = same and _same_inputs(store.inputs(first.id), store.inputs(run.id))
        except StoreError:  # the record of the first run was removed
            return run.rerun_of
        if not same:
            break
        run = first
    return run.id


def _check_period(plan: ProjectPlan, workspace: Workspace, store: Store, *, correction: bool) -> None:
    """Raise when the calendar of the workspace has closed or locked the period since."""
    try:
        calendar = build_catalog(workspace, store).calendar(plan.calendar)
    except WeftError:
        # The calendar was removed or has errors: the one of the snapshot is used, which allowed the run.
        return
    today = None if plan.period is None else calendar.find(plan.period.identifier)
    if today is not None:
        check_open(today, correction=correction)


def _same_inputs(before: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Whether two runs read the same files, or the same rows of files that differ."""
    return before.keys() == now.keys() and all(
        _files(before[name]) == _files(now[name])
        or (before[name].get("rows") is not None and before[name]["rows"] == now[name].get("rows"))
        for name in before
    )


def _files(kept: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in kept.items() if key != "rows"}


def _prepared(
    plan: ProjectPlan,
    catalog: Catalog,
    snapshot: Mapping[str, Any],
    root: Path,
    kept: Mapping[str, Any],
    open_session: Opener,
    *,
    allow_changed: bool,
) -> Prepared:
    """Return the run of a snapshot; raise W1510 when its inputs have changed and that is not allowed."""
    inputs = inputs_of(plan, catalog, root)
    changed = changed_inputs(snapshot["inputs"], inputs)
    run_at = dt.datetime.fromisoformat(snapshot["run_at"])
    reads = {read.name: read for read in plan.reads}

    # An input whose files differ is unchanged when it has the same rows: `kept` has the fingerprints of those that the
    # run read.
    def unchanged(name: str) -> bool:
        before = kept.get(name, {}).get("rows")
        if before is None or name not in reads:
            return False
        # The session starts only here: comparing the files of the inputs needs none.
        with explain_errors(f"reading {name!r}"):
            now = fingerprint_rows(open_session().spark, reads[name], catalog, root, run_at=run_at)
        return bool(now == before)

    findings = tuple(finding for name, finding in changed.items() if not unchanged(name))
    if findings and not allow_changed:
        raise RunError(findings)
    return Prepared(
        project=plan.project,
        plan=plan,
        catalog=catalog,
        period=period_from_snapshot(snapshot),
        inputs=inputs,
        known_at=dt.datetime.fromisoformat(snapshot["known_at"]),
        run_at=run_at,
        today=dt.date.fromisoformat(snapshot["today"]),
        warnings=(*plan.warnings, *(replace(d, severity="warning") for d in findings)),
        identical=not findings,
    )


def changed_inputs(before: Mapping[str, Any], now: Mapping[str, InputPrint]) -> dict[str, Diagnostic]:
    """Return a finding for every read whose files have changed, by the name of the read."""
    findings = {}
    for name, fingerprint in before.items():
        differs = changes(InputPrint.from_dict(fingerprint), now.get(name, InputPrint()))
        if differs:
            findings[name] = Diagnostic(
                "W1510",
                f"the input {name!r} has changed since the run: {'; '.join(differs)}",
                help="restore the old data, or pass --allow-changed-inputs",
            )
    return findings
