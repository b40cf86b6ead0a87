"""run_project: a project and a period, from the files of a workspace to published outputs.

::

    recover -> admit -> plan -> fingerprint inputs -> snapshot + lock -> operations -> staged -> published

Until the snapshot is written the run does not exist, and errors are raised.  From then on
a run ends as completed, failed or cancelled, which its report shows.
"""

from __future__ import annotations

import getpass
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from weft.core import engine_version
from weft.core.calendar import Period
from weft.core.crash import crash_point
from weft.errors import Diagnostic, RunError, StoreError, WeftError
from weft.io.spark.session import Session
from weft.pipelines.model.dataset import DatasetRef
from weft.pipelines.model.project import Project
from weft.pipelines.model.workspace import Workspace
from weft.pipelines.plan.catalog import Catalog, ResolvedDataset
from weft.pipelines.plan.operations.resolved import ResolvedOutput
from weft.pipelines.plan.project import ProjectPlan
from weft.pipelines.plan.resolver.locate import measure_bytes
from weft.pipelines.plan.stages import list_stages
from weft.pipelines.run.engine import Kept, Work, execute_stages, record_row_fingerprints
from weft.pipelines.run.failing import OperationFailedError, explain_errors, explain_failure
from weft.pipelines.run.moving import Move, remove_stage
from weft.pipelines.run.prepare import Prepared, is_small, locations_of, prepare
from weft.pipelines.run.prepare import RunOptions as RunOptions  # noqa: PLC0414  # imported together with run_project
from weft.pipelines.run.progress import Progress, Silent, cancellable
from weft.pipelines.run.publish import first_of, moves_of, publish, recover, registrations
from weft.pipelines.run.report import RunReport, report_of
from weft.pipelines.run.tables import Tables
from weft.pipelines.spark.frame import RunMoment
from weft.pipelines.store.lifecycle import build_catalog
from weft.pipelines.store.locks import this_process
from weft.pipelines.store.publishing import assess_impact
from weft.pipelines.store.records import NewRun, OutputRecord, RunFailure, RunRecord
from weft.pipelines.store.records import run_id as new_run_id
from weft.pipelines.store.snapshot import build_snapshot
from weft.pipelines.store.writer import Store

STOP_SECONDS = 60
"""How long a cancelled run waits for the tasks it stopped before it removes what they wrote."""


class Opener(Protocol):
    """Opens a Spark session; with `is_small` one that starts fast, for work that is mostly the start."""

    def __call__(self, *, is_small: bool = False) -> Session:
        """Open the session."""
        ...


"""Opens the session when a run needs it: errors of a project are reported before Spark starts."""


def open_once(session: Session | Opener) -> Opener:
    """Return a function that opens a session on its first call and returns the same one afterwards."""
    opened: list[Session] = [] if callable(session) else [session]

    def open_session(*, is_small: bool = False) -> Session:
        if not opened and callable(session):
            opened.append(session(is_small=is_small))
        return opened[0]

    return open_session


def run_project(
    workspace: Workspace,
    project: Project,
    period: Period | str,
    *,
    store: Store,
    session: Session | Opener,
    options: RunOptions = RunOptions(),  # noqa: B008  # a frozen value
    progress: Progress | None = None,
) -> RunReport:
    """Run a project for a period and return its report; a draft writes into the sandbox only.

    Errors that prevent the run are raised before it exists: `ActivationError`, `ResolutionError`, `RunError`
    with W1501, W1505, W1506, W1507 or W1514.
    """
    root = workspace.root
    # Without Spark: complete what a crash left unfinished, admit the project, plan it once, fingerprint its inputs.
    prepared = prepare(workspace, project, period, store=store, options=options)
    # Only a session can complete outputs that are tables of Spark's catalog.
    opened = open_once(session)(is_small=is_small(prepared.plan, prepared.catalog, root))
    with explain_errors("starting the run"):
        recovered = recover(store, root, session=opened.spark)
        prepared = replace(prepared, warnings=(*(r.note for r in recovered), *prepared.warnings))
        # One transaction writes the snapshot and takes the lock of project and period: from here on the run exists.
        try:
            run = create_run(prepared, store, opened, options)
        except RunError as problem:
            # The holder of the lock may be a dead run whose publication waits: its note says for what.
            dead = (note for note in prepared.warnings if note.code == "W1502")
            raise RunError((*problem.diagnostics, *dead)) from None
    with open_work(prepared, run, root, store, opened, progress or Silent()) as work, record_end(work) as findings:
        # Read the inputs, chain the operations, stage every output where nobody sees it.
        outputs = run_operations(work)
        # All outputs come to their targets together; then one transaction registers datasets and completes the run.
        publish_outputs(work, outputs)
    return report_run(work, prepared, findings)


def continue_run(
    prepared: Prepared,
    run: RunRecord,
    root: Path,
    store: Store,
    session: Session,
    progress: Progress,
    kept: Kept | None = None,
) -> RunReport:
    """Execute a run that exists: a rerun, or one that is resumed from what an earlier attempt kept."""
    with open_work(prepared, run, root, store, session, progress) as work, record_end(work) as findings:
        publish_outputs(work, run_operations(work, kept))
    return report_run(work, prepared, findings)


def create_run(prepared: Prepared, store: Store, session: Session, options: RunOptions) -> RunRecord:
    """Write the snapshot of a run and take its lock."""
    plan = prepared.plan
    snapshot = build_snapshot(
        plan,
        prepared.catalog,
        engine_version=engine_version(),
        session=session.described(),
        inputs=prepared.inputs,
        today=prepared.today,
        known_at=prepared.known_at,
        run_at=prepared.run_at,
    )
    if not plan.draft and prepared.rerun_of is None:
        # A rerun reads its versions from the snapshot, and a draft may read versions that still change.
        _record(plan, prepared.catalog, store)
    host, pid = this_process()
    run = store.create_run(
        NewRun(
            run_id=new_run_id(time.time_ns() // 1_000_000, os.urandom(10)),
            project=prepared.project,
            period=prepared.period,
            snapshot=snapshot,
            sandbox=plan.draft,
            known_at=prepared.known_at,
            run_at=prepared.run_at,
            trigger=options.trigger,
            triggered_by=options.triggered_by or _user(),
            host=host,
            pid=pid,
            rerun_of=prepared.rerun_of,
        )
    )
    crash_point("snapshot_written")
    return run


def _record(plan: ProjectPlan, catalog: Catalog, store: Store) -> None:
    """Record the versions that the run reads, so that they are available when their files change."""
    for pin in plan.pins:
        dataset = catalog.dataset(DatasetRef(pin.dataset_id, pin.dataset_version))
        if isinstance(dataset, ResolvedDataset) and dataset.dataset.origin == "file":
            store.record(dataset.dataset)
        resolver = catalog.resolver(pin.resolver_id)
        if resolver is not None and resolver.version == pin.resolver_version:
            store.record(resolver)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


@contextmanager
def open_work(
    prepared: Prepared, run: RunRecord, root: Path, store: Store, session: Session, progress: Progress
) -> Iterator[Work]:
    """Open a run for work: its heartbeat keeps the lock alive, and Ctrl-C cancels it."""
    with store.heartbeat(run.id) as heartbeat, cancellable(session, run.id) as interrupts:
        yield Work(
            plan=prepared.plan,
            catalog=prepared.catalog,
            root=root,
            session=session,
            store=store,
            run=run,
            rows_of=first_of(run, store),
            moment=RunMoment(
                run_id=prepared.rows_of or run.id,
                project_id=prepared.project.id,
                period=prepared.period,
                at=prepared.run_at,
                today=prepared.today,
            ),
            progress=progress,
            heartbeat=heartbeat,
            interrupts=interrupts,
            sizes={read.name: measure_bytes(read, prepared.catalog, root) for read in prepared.plan.reads},
            warnings=list(prepared.warnings),
        )


@contextmanager
def record_end(work: Work) -> Iterator[list[Diagnostic]]:
    """Record a failure or a cancellation in the store; the list holds what the run failed with.

    Errors of the store are raised, and so is W1516: such a run has not ended, and the next command completes it.
    """
    findings: list[Diagnostic] = []
    try:
        yield findings
    except KeyboardInterrupt:
        findings += _cancelled(work)
    except OperationFailedError as problem:
        cancelled = work.interrupts.count
        findings += _cancelled(work) if cancelled else _failed(work, problem.failure(), problem.error)
    except StoreError:
        raise
    except Exception as problem:
        # py4j replaces KeyboardInterrupt by an error of its own when the JVM has ended.
        if work.interrupts.count:
            findings += _cancelled(work)
        elif isinstance(problem, WeftError) and problem.code == "W1516":
            raise
        else:
            error = explain_failure(problem, "the run")
            failure = RunFailure(code=error.code, message=error.message, detail=str(error))
            findings += _failed(work, failure, error)
    finally:
        work.progress.finished()


def run_operations(work: Work, kept: Kept | None = None) -> tuple[OutputRecord, ...]:
    """Run the operations of the plan and return the staged outputs."""
    if work.run.status == "queued":
        work.store.set_running(work.run.id)
    crash_point("running")
    work.progress.opened(work.run, work.plan)
    work.progress.started(list_stages(work.plan))
    with work.session.tagged(work.run.id):
        record_row_fingerprints(work)
        return execute_stages(work, kept)


def publish_outputs(work: Work, outputs: Sequence[OutputRecord]) -> None:
    """Bring the staged outputs to their targets together; Ctrl-C waits until they are committed."""
    # A run whose locks another process took over must not touch a target.
    work.heartbeat.check()
    plan, catalog, store = work.plan, work.catalog, work.store
    modes = {op.seq: op.mode for op in plan.operations if isinstance(op, ResolvedOutput)}
    new_datasets = registrations(plan, catalog, work.run.id, work.root)
    with work.session.tagged(work.run.id), work.interrupts.held():
        publish(
            moves_of(outputs, modes, work.run, store),
            store,
            work.run.id,
            root=work.root,
            tables=Tables(plan, catalog, work.root, work.session.spark),
            registrations=new_datasets,
            merged=work.merged,
        )
        # A new catalog: the one of the plan does not have the versions that were registered just now.
        fresh = build_catalog(catalog.workspace, store) if new_datasets else catalog
        for new in new_datasets:
            newest = fresh.versions(new.dataset.id)[-1]
            work.warnings += assess_impact(newest, fresh, store).notes


def _failed(work: Work, failure: RunFailure, error: WeftError) -> tuple[Diagnostic, ...]:
    if failure.code == "W1508":
        # The disk is full: what is staged would keep it full, for other runs and for the store too.
        remove_stage(work.root, work.run.id, work.store.outputs(work.run.id))
    if failure.code != "W1502":  # another process has ended a run whose locks were lost
        work.store.fail(work.run.id, failure)
    elif work.store.run(work.run.id).status == "cancelled":
        _stopped(work)
        return tuple(replace(d, severity="warning") for d in error.diagnostics)
    return error.diagnostics


def _cancelled(work: Work) -> tuple[Diagnostic, ...]:
    """End a run that its user interrupted, or whose locks were lost."""
    try:
        work.heartbeat.check()
    except WeftError as problem:
        failure = RunFailure(code=problem.code, message=problem.message)
        return _failed(work, failure, problem)
    work.store.cancel(work.run.id)
    _stopped(work)
    return ()


def _stopped(work: Work) -> None:
    """Remove the staged data of a cancelled run, and record that its process has stopped."""
    # First whatever writes, then what was written: a task that still runs would make its folder or table again.
    work.session.stop_jobs(work.run.id, STOP_SECONDS)
    outputs = work.store.outputs(work.run.id)
    tables = Tables(work.plan, work.catalog, work.root, work.session.spark)
    tables.discard([Move(o, "append") for o in outputs])
    work.session.close()  # a query that was being planned would write again
    remove_stage(work.root, work.run.id, outputs)
    # Last: from now on the run may be resumed, also by another process.
    work.store.mark_stopped(work.run.id)


def report_run(work: Work, prepared: Prepared, diagnostics: Sequence[Diagnostic]) -> RunReport:
    """Return the report of a run from the store, with its findings."""
    return report_of(
        work.run.id,
        work.store,
        locations=locations_of(work.plan, work.root),
        warnings=tuple(dict.fromkeys(work.warnings)),
        diagnostics=tuple(diagnostics),
        identical=prepared.identical,
    )
