"""Publishing: all outputs of a run are moved to their targets together, or none; after a crash the move is completed.

::

    staged      every output is written and verified, but not visible
    publishing  set for all outputs in one transaction; from here a run only moves forward
                folders are exchanged, tables are changed; each step can be repeated
    published   one transaction: outputs published, datasets registered, run completed, locks freed
                what was at the targets before, and the stage, are removed

`recover` is called before a run starts and before runs are shown.  It needs no JVM.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from weft.core.crash import crash_point
from weft.core.paths import resolve_outside
from weft.errors import Diagnostic, RunError, StoreError, WeftError
from weft.io.datasource import WriteMode
from weft.io.spark.database import is_out_of_reach
from weft.pipelines.plan.catalog import Catalog, PublishedLocation
from weft.pipelines.plan.check import build_registered_dataset
from weft.pipelines.plan.operations.resolved import OWN_NAMES, ResolvedOutput, Target
from weft.pipelines.plan.project import ProjectPlan, resolve_project
from weft.pipelines.run.moving import (
    OLD,
    Listing,
    Move,
    already_there,
    format_location,
    is_untouched,
    is_whole,
    keep_for_readers,
    listing,
    move_back,
    move_in,
    remove_old,
    remove_stage,
    staged_runs,
    unfinished,
    verify,
)
from weft.pipelines.run.tables import Tables
from weft.pipelines.store.records import OutputRecord, Registration, RunFailure, RunRecord, short_id
from weft.pipelines.store.snapshot import period_from_snapshot, plan_from_snapshot
from weft.pipelines.store.writer import Store


def registrations(plan: ProjectPlan, catalog: Catalog, run_id: str, root: Path) -> tuple[Registration, ...]:
    """Return what the outputs of a plan register; drafts register nothing."""
    return tuple(
        Registration(
            dataset=build_registered_dataset(op, catalog),
            location=_location(op.target, "" if plan.period is None else plan.period.identifier, run_id, root),
            seq=op.seq,
        )
        for op in plan.operations
        if isinstance(op, ResolvedOutput) and op.register_as is not None
    )


def _location(target: Target, period: str, run_id: str, root: Path) -> PublishedLocation:
    files = target.kind in ("files", "file")
    return PublishedLocation(
        period=period,
        path=format_location(root / target.location, root) if files else target.location,
        format=target.format,
        run_id=run_id,
        version=0,  # the store assigns the version when it registers the dataset
        # The datasource has the format of text files, so that they are read as they were written.
        datasource=None if files and target.format == "parquet" else target.datasource_id,
        table=None if files else target.table,
        schema=None if files else target.schema,
    )


def undeclared(plan: ProjectPlan) -> tuple[Diagnostic, ...]:
    """Return a warning for each registered output whose columns a dataset cannot declare."""
    findings = []
    for op in plan.operations:
        if not isinstance(op, ResolvedOutput) or op.register_as is None:
            continue
        hidden = [c for c in op.columns if c.startswith("_") and c not in OWN_NAMES]
        if hidden:
            findings.append(
                Diagnostic(
                    "W1017",
                    f"operation {op.seq} writes {', '.join(hidden)}, which dataset {op.register_as!r} cannot declare",
                    help="names of declared columns do not start with an underscore: rename them in an update",
                    severity="warning",
                )
            )
    return tuple(findings)


_ALL = 1_000_000
"""More runs than a project has for one period."""

Outcome = Literal["completed", "failed", "waiting"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """A run whose process died, and its outcome; a ``waiting`` one needs a Spark session to continue."""

    run_id: str
    outcome: Outcome
    note: Diagnostic


def publish(
    moves: Sequence[Move],
    store: Store,
    run_id: str,
    *,
    root: Path,
    tables: Tables,
    registrations: Iterable[Registration] = (),
    merged: Mapping[int, Listing] | None = None,
) -> RunRecord:
    """Move every staged output to its target and complete the run.

    All checks come before the first move; when one fails, nothing has changed and the outputs stay
    staged.  `merged` is the content of the target of a merge when it was read: it must be the same now.
    """
    new_datasets, read = tuple(registrations), merged or {}
    # Before `begin_publish`: from then on a stage table that is missing means that its rows were published.
    tables.verify([move for move in moves if not move.is_files])
    crash_point("before_publish")
    store.begin_publish(run_id, [move.output for move in moves])
    try:
        # Checked under the locks of the targets, so that no other run changes them between check and move.
        for move in moves:
            _check(move, read.get(move.output.seq))
        _check_inside_workspace(moves, root)
        _move_all(moves, tables)
    except WeftError as problem:
        if problem.code != "W1516":
            # Every target is as before.  As `publishing` the outputs would be completed by the next `recover`.
            for move in moves:
                store.output_staged(replace(move.output, state="staged"))
        raise
    return _complete(moves, store, run_id, root, new_datasets)


def _check(move: Move, read: Listing | None) -> None:
    if not move.is_files:
        return
    verify(move)
    if read is not None and read != listing(move.target):
        raise RunError(
            f"{move.target} was changed while output {move.output.seq} was merged with it",
            code="W1512",
            help="resume the run: it merges with what is there now",
        )
    if move.mode == "fail_if_exists" and move.target.exists():
        raise already_there(move.target)


def _check_inside_workspace(moves: Sequence[Move], root: Path) -> None:
    """Raise W1311 when a link now leads a target out of the workspace."""
    for move in moves:
        outside_path = _led_outside(move, root)
        if outside_path is not None:
            raise RunError(
                _link_sentence(move, outside_path, root),
                code="W1311",
                help="remove the link, or write an absolute path where the data may go; then resume the run",
            )


def _led_outside(move: Move, root: Path) -> Path | None:
    """Return where a link now leads a target, when that is not in the workspace."""
    return resolve_outside(root, move.target) if move.is_files and move.target.is_relative_to(root) else None


def _link_sentence(move: Move, outside_path: Path, root: Path) -> str:
    target = format_location(move.target, root)
    return f"the output {target!r} now leads out of the workspace, to {str(outside_path)!r}"


def _move_all(moves: Sequence[Move], tables: Tables) -> None:
    """Move files, then tables: an exchange can be undone, the commit of a database cannot."""
    done: list[Move] = []
    try:
        for move in moves:
            if move.is_files:
                # Listed first: a move that fails half-way has to be undone too.
                done.append(move)
                move_in(move)
        tables.publish([move for move in moves if not move.is_files])
    except WeftError as problem:
        # W1516: neither all targets are new nor all are old.  Then nothing may be undone or removed, and `recover`
        # moves forward.
        if problem.code == "W1516":
            raise
        try:
            for move in reversed(done):
                move_back(move)
        except WeftError as other:
            raise unfinished(moves[0].output.run_id, other.message) from problem
        raise


def _complete(
    moves: Sequence[Move], store: Store, run_id: str, root: Path, new_datasets: tuple[Registration, ...]
) -> RunRecord:
    # Before this commit a crash is completed by `recover`; after it the run is complete, and only data that nobody
    # reads any more is left to remove.
    crash_point("before_commit")
    run = store.complete(run_id, new_datasets)
    crash_point("after_commit")
    crash_point("before_cleanup")
    with suppress(OSError):  # the run is complete; old content that cannot be kept is removed with the stage
        for move in moves:
            if move.is_files:
                keep_for_readers(move.backup, root, run_id, move.output.seq)
    remove_stage(root, run_id, [move.output for move in moves])
    return run


def moves_of(
    outputs: Iterable[OutputRecord], modes: Mapping[int, WriteMode], run: RunRecord, store: Store
) -> tuple[Move, ...]:
    """Return the moves of outputs with their modes, and with the other runs that publish the same rows."""
    first = first_of(run, store)
    family = completed_family(run, store)
    added = {o.seq for other in family for o in store.outputs(other.id) if o.state == "published"}
    runs = tuple(dict.fromkeys((first, *(other.id for other in family))))
    return tuple(
        Move(output, modes[output.seq], rows_of=runs, again=output.seq in added)
        for output in outputs
        if output.state != "discarded"
    )


def completed_family(run: RunRecord, store: Store) -> tuple[RunRecord, ...]:
    """Return the other completed runs with the rows of a run: the first one that it repeats, and all reruns of that one.

    A run that failed has them too: one of its reruns may have been published before it is resumed.
    """
    first = first_of(run, store)
    known = store.runs(run.project_id, run.period, "completed", _ALL)
    return tuple(other for other in known if other.id != run.id and first_of(other, store) == first)


def first_of(run: RunRecord, store: Store) -> str:
    """Return the run that a rerun repeats, through all reruns in between; for any other run its own id."""
    while run.rerun_of is not None:
        try:
            run = store.run(run.rerun_of)
        except StoreError:  # its record was removed
            return run.rerun_of or run.id
    return run.id


def recover(store: Store, root: Path, *, session: Any = None) -> tuple[Recovered, ...]:
    """Complete or fail the runs whose process died, and remove data that is no longer needed.

    A run that was publishing is completed: its data is complete and verified.  Any other run fails; its staged
    data stays, so that it can be resumed.
    """
    # Recovery is repeatable: when this process dies too, the next command takes the run over again.
    results = [recovered for run in store.abandoned() if (recovered := _recover_run(run, store, root, session))]
    _sweep(store, root)
    return tuple(results)


def _recover_run(run: RunRecord, store: Store, root: Path, session: Any) -> Recovered | None:
    outputs = store.outputs(run.id)
    publishing = any(output.state == "publishing" for output in outputs)
    if publishing and session is None and any(output.kind == "table" for output in outputs):
        return _recovered(run, "waiting", "an output is a table of Spark")
    # Of several processes that recover at the same time, one takes the locks; the others leave the run to it.
    if store.take_over(run.id) is None:
        return None
    if publishing:
        return _roll_forward(run, outputs, store, root, session)
    failure = RunFailure(
        code="W1502",
        message=f"its process {run.pid} on {run.host} died",
        detail="nothing was published; its staged data is kept for a resume",
    )
    store.fail(run.id, failure)
    return _recovered(run, "failed", "its process died")


def _roll_forward(run: RunRecord, outputs: Sequence[OutputRecord], store: Store, root: Path, session: Any) -> Recovered:
    # Which mode an output has does not matter on the way back.
    staged = tuple(Move(output, "replace_period") for output in outputs if output.state != "discarded")
    if any(_led_outside(move, root) for move in staged):
        return _leave_outside(run, staged, store, root)
    try:
        plan, catalog = replay_plan(store.snapshot(run.id), root)
    except WeftError as problem:
        if all(move.is_files for move in staged):
            return _abandon(run, staged, store, problem.message)
        # It is unknown whether the database has the rows, so moving files back could separate them.
        return _recovered(run, "waiting", problem.message)
    modes = {op.seq: op.mode for op in plan.operations if hasattr(op, "mode")}
    moves = moves_of(outputs, modes, run, store)
    files = [move for move in moves if move.is_files]
    if all(is_whole(move) for move in files):
        try:
            _move_all(moves, Tables(plan, catalog, root, session))
            _complete(moves, store, run.id, root, registrations(plan, catalog, run.id, root))
        except WeftError as problem:
            if problem.code == "W1516" or is_out_of_reach(problem):
                return _recovered(run, "waiting", problem.message)
            return _abandon(run, moves, store, problem.message)
        return _recovered(run, "completed", "it was publishing")
    return _abandon(run, moves, store, "a staged file is missing or has changed")


def _leave_outside(run: RunRecord, moves: Sequence[Move], store: Store, root: Path) -> Recovered:
    """End a run with a target that a link now leads out of the workspace; nothing is written there."""
    led = [(move, outside_path) for move in moves if (outside_path := _led_outside(move, root)) is not None]
    why, first = _link_sentence(*led[0], root), "replace the link with a folder; then "
    if all(is_untouched(move) for move, _ in led):
        return _abandon(run, moves, store, why, first)
    # The old content is in the stage: it belongs where the link is now.
    return _recovered(run, "waiting", why, first)


def _abandon(run: RunRecord, moves: Sequence[Move], store: Store, why: str, first: str = "") -> Recovered:
    """End a run that cannot be published any more, with every target as before."""
    try:
        for move in reversed([m for m in moves if m.is_files]):
            move_back(move)
    except WeftError as problem:
        return _recovered(run, "waiting", problem.message)
    for move in moves:
        store.output_staged(replace(move.output, state="discarded"))
    failure = RunFailure(
        code="W1512",
        message=f"its process died while it published, and it cannot be completed: {why}",
        detail="every target is as it was before the run",
    )
    store.fail(run.id, failure)
    return _recovered(run, "failed", why, first)


_NOTES: dict[Outcome, tuple[str, str]] = {
    "completed": ("was completed: {why} when its process died", "`weft runs show {run}` shows what it published"),
    "failed": ("has failed: {why}", "`weft run --resume {run}` continues the run"),
    "waiting": ("died while it published and is not complete yet: {why}", "the next run completes it"),
}


def _recovered(run: RunRecord, outcome: Outcome, why: str, first: str = "") -> Recovered:
    short = short_id(run.id)
    text, help = (part.format(run=short, why=why) for part in _NOTES[outcome])
    note = Diagnostic(
        "W1502",
        f"run {short} of {run.project_name} for {run.period} {text}",
        help=first + help,
        severity="note" if outcome == "completed" else "warning",
    )
    return Recovered(run_id=run.id, outcome=outcome, note=note)


def replay_plan(snapshot: Mapping[str, Any], root: Path) -> tuple[ProjectPlan, Catalog]:
    """Return the plan of a run and its catalog from the snapshot alone."""
    project, catalog = plan_from_snapshot(snapshot, root)
    plan = resolve_project(
        project,
        catalog,
        period=period_from_snapshot(snapshot),
        calendar=catalog.calendar(project.calendar),
        known_at=dt.datetime.fromisoformat(snapshot["known_at"]),
        draft=snapshot["sandbox"],
    )
    return plan, catalog


def discard(store: Store, root: Path, run_id: str) -> tuple[Diagnostic, ...]:
    """Remove what a run has staged and will not be published; return a warning for what stays in a database."""
    outputs = store.outputs(run_id)
    notes: tuple[Diagnostic, ...] = ()
    staged = [o for o in outputs if o.kind == "jdbc" and o.state != "published"]
    if staged:
        plan, catalog = replay_plan(store.snapshot(run_id), root)
        try:
            Tables(plan, catalog, root).discard([Move(o, "append") for o in staged])
        except WeftError as problem:
            notes = tuple(replace(d, severity="warning") for d in problem.diagnostics)
    remove_stage(root, run_id, outputs)
    return notes


def _sweep(store: Store, root: Path) -> None:
    """Remove staged data of runs that have ended and cannot be resumed or are unknown, and old content."""
    remove_old(root / OLD)
    for run_id in staged_runs(root):
        try:
            run = store.run(run_id)
        except WeftError:
            remove_stage(root, run_id)
            continue
        # A failed run keeps its stage for a resume; a run that is queued or running uses it.
        if run.status in ("completed", "cancelled"):
            remove_stage(root, run_id, store.outputs(run_id))
