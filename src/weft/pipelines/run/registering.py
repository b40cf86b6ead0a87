"""What an output registers: a dataset under a name, with the columns that were written and where they lie."""

from __future__ import annotations

from pathlib import Path

from weft.errors import Diagnostic
from weft.pipelines.plan.catalog import Catalog, PublishedLocation
from weft.pipelines.plan.operations.resolved import OWN_NAMES, ResolvedOutput, Target
from weft.pipelines.plan.project import ProjectPlan
from weft.pipelines.plan.registered import registered_dataset
from weft.pipelines.run.places import shown
from weft.pipelines.store.records import Registration


def registrations(plan: ProjectPlan, catalog: Catalog, run_id: str, root: Path) -> tuple[Registration, ...]:
    """Return what the outputs of a plan register; drafts register nothing."""
    return tuple(
        Registration(
            dataset=registered_dataset(op, catalog),
            location=_location(
                op.target, "" if plan.period is None else plan.period.identifier, run_id, root
            ),
            seq=op.seq,
        )
        for op in plan.operations
        if isinstance(op, ResolvedOutput) and op.register_as is not None
    )


def _location(target: Target, period: str, run_id: str, root: Path) -> PublishedLocation:
    if target.kind in ("files", "file"):
        path = shown(root / target.location, root)
        # The datasource says how texts are written, so that they are read the same way.
        return PublishedLocation(
            period=period,
            path=path,
            format=target.format,
            run_id=run_id,
            version=0,
            datasource=None if target.format == "parquet" else target.datasource_id,
        )
    return PublishedLocation(
        period=period,
        path=target.location,
        format=target.format,
        run_id=run_id,
        version=0,
        datasource=target.datasource_id,
        table=target.table,
        schema=target.schema,
    )


def undeclared(plan: ProjectPlan) -> tuple[Diagnostic, ...]:
    """Return a warning for each registered output whose columns a dataset cannot declare."""
    found = []
    for op in plan.operations:
        if not isinstance(op, ResolvedOutput) or op.register_as is None:
            continue
        hidden = [c for c in op.columns if c.startswith("_") and c not in OWN_NAMES]
        if hidden:
            found.append(
                Diagnostic(
                    "W1017",
                    f"operation {op.seq} writes {', '.join(hidden)}, which dataset {op.register_as!r} cannot declare",
                    help="names of declared columns do not start with an underscore: rename them in an update",
                    severity="warning",
                )
            )
    return tuple(found)
