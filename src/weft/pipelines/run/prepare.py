"""prepare: everything about a run that is known before Spark starts, and every reason to refuse it."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from weft.core.calendar import Period
from weft.core.names import quote_for_shell
from weft.errors import Diagnostic, RunError
from weft.pipelines.model.project import Project
from weft.pipelines.model.workspace import Workspace
from weft.pipelines.plan.catalog import Catalog
from weft.pipelines.plan.check import check_outputs
from weft.pipelines.plan.operations.resolved import ResolvedOutput
from weft.pipelines.plan.project import ProjectPlan, resolve_project
from weft.pipelines.plan.resolver.locate import measure_bytes
from weft.pipelines.run.moving import already_there, format_location
from weft.pipelines.run.publish import recover, undeclared
from weft.pipelines.spark.inputs import InputPrint, fingerprint_inputs
from weft.pipelines.store.lifecycle import admit, build_catalog
from weft.pipelines.store.records import Trigger
from weft.pipelines.store.snapshot import plan_fingerprint
from weft.pipelines.store.writer import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Options of one run.

    `known_at` is the moment up to which facts are known, `today` the value of TODAY(); both default to the
    start of the run.  `plan` is a file of ``weft plan --out`` that must still hold.
    `sandbox` writes into the sandbox and registers nothing, whatever the status of the project.
    """

    known_at: dt.datetime | None = None
    today: dt.date | None = None
    correction: bool = False
    sandbox: bool = False
    plan: Path | None = None
    trigger: Trigger = "manual"
    triggered_by: str = ""
    run_at: dt.datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A run that may start: its plan, the fingerprints of its inputs, and the other values of its snapshot.

    `rows_of` is the run id in its rows: for a rerun the run that first computed them.
    """

    project: Project
    plan: ProjectPlan
    catalog: Catalog
    period: Period
    inputs: Mapping[str, InputPrint]
    known_at: dt.datetime
    run_at: dt.datetime
    today: dt.date
    warnings: tuple[Diagnostic, ...] = ()
    rerun_of: str | None = None
    rows_of: str | None = None
    identical: bool | None = None


def prepare(
    workspace: Workspace,
    project: Project,
    period: Period | str,
    *,
    store: Store,
    options: RunOptions = RunOptions(),  # a frozen value
) -> Prepared:
    """Plan a run and fingerprint its inputs, without Spark."""
    # First of all: a run that died may hold the lock of this project, and may have published a version to read.
    recovered = recover(store, workspace.root)
    catalog = build_catalog(workspace, store)
    status = admit(project, catalog, store, sandbox=options.sandbox)
    draft = status.status == "draft" or options.sandbox
    calendar = catalog.calendar(project.calendar)
    requested = calendar.parse(period) if isinstance(period, str) else period
    if not draft:
        check_open(requested, correction=options.correction)
    run_at = options.run_at or dt.datetime.now(dt.UTC)
    known_at = options.known_at or run_at
    plan = resolve_project(project, catalog, period=requested, calendar=calendar, known_at=known_at, draft=draft)
    check_outputs(plan, catalog)
    if options.plan is not None:
        check_plan(options.plan, plan, catalog)
    check_targets(plan, workspace.root)
    return Prepared(
        project=project,
        plan=plan,
        catalog=catalog,
        period=requested,
        inputs=inputs_of(plan, catalog, workspace.root),
        known_at=known_at,
        run_at=run_at,
        today=options.today or run_at.date(),
        warnings=(*(r.note for r in recovered), *status.warnings, *plan.warnings, *undeclared(plan)),
    )


def check_open(period: Period, *, correction: bool) -> None:
    """Raise when no run is allowed for a period: a closed one allows corrections only, a locked one nothing."""
    if period.status == "locked":
        raise RunError(f"period {period} is locked", code="W1506", help="nothing can be published for it")
    if period.status == "closed" and not correction:
        raise RunError(f"period {period} is closed", code="W1505", help="pass `--correction` to run it anyway")


def check_plan(file: Path, plan: ProjectPlan, catalog: Catalog) -> None:
    """Raise W1514 when a saved plan differs from the current one."""
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
        # `weft plan --out` writes the plan alone, `weft plan --json` prints it inside a document.
        saved = document.get("data", document)["fingerprint"]
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as cause:
        raise RunError(
            f"cannot read the plan {file}: {cause}",
            code="W1514",
            help="`weft plan PROJECT -p PERIOD --out FILE` writes one",
        ) from cause
    if saved != plan_fingerprint(plan, catalog):
        raise RunError(
            f"the plan {file} is stale: files of the workspace have changed since",
            code="W1514",
            help=f"check the output of `weft plan {quote_for_shell(plan.project.name)}`, and save it again",
        )


def check_targets(plan: ProjectPlan, root: Path) -> None:
    """Raise W1507 when the target of a `fail_if_exists` output exists.

    Publishing checks it again; here the error comes before Spark starts.
    """
    for op in plan.operations:
        if isinstance(op, ResolvedOutput) and op.mode == "fail_if_exists":
            target = root / op.target.location
            if op.target.kind in ("files", "file") and target.exists():
                raise already_there(format_location(target, root))


def inputs_of(plan: ProjectPlan, catalog: Catalog, root: Path) -> dict[str, InputPrint]:
    """Return the current fingerprint of the data of each read."""
    return {read.name: fingerprint_inputs(read.locations, catalog, root) for read in plan.reads}


_SMALL_BYTES = 16_000_000


def is_small(plan: ProjectPlan, catalog: Catalog, root: Path) -> bool:
    """Whether so little is read, all of it from local files, that most of the time goes into starting Spark."""
    sizes = [measure_bytes(read, catalog, root) for read in plan.reads]
    # A merge also reads its target, of any size.
    merges = any(isinstance(op, ResolvedOutput) and op.mode == "merge" for op in plan.operations)
    return not merges and None not in sizes and sum(size or 0 for size in sizes) <= _SMALL_BYTES


def locations_of(plan: ProjectPlan, root: Path) -> dict[int, str]:
    """Return where each output goes, as users see it."""
    return {
        op.seq: format_location(root / op.target.location, root)
        if op.target.kind in ("files", "file")
        else op.target.location
        for op in plan.operations
        if isinstance(op, ResolvedOutput)
    }
