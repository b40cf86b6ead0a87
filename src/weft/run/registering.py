"""What an output registers: a dataset under a name, with the columns that were written and where they lie."""

from __future__ import annotations

from pathlib import Path

from weft.core.types import Schema
from weft.errors import Diagnostic
from weft.plan.catalog import Catalog, PublishedLocation
from weft.plan.operations.resolved import OWN_NAMES, ResolvedOutput, Target
from weft.plan.project import ProjectPlan
from weft.run.places import shown
from weft.spec.pipeline.dataset import ColumnDef, Dataset, TableDef
from weft.spec.pipeline.words import PERIOD, PERIOD_FROM, PUBLISHED, TemporalMode
from weft.store.ids import dataset_id_for
from weft.store.records import Registration


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
        return PublishedLocation(period=period, path=path, format=target.format, run_id=run_id, version=0)
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


def registered_dataset(op: ResolvedOutput, catalog: Catalog) -> Dataset:
    """Return the dataset that an output registers: the next version of the one that has its name.

    Weft's own columns are not declared, and a natural key is kept when all its columns are written.
    """
    name = str(op.register_as)
    known = catalog.versions(name)
    schema: Schema = op.before.schema
    columns = tuple(
        ColumnDef(column, schema[column].dtype, schema[column].nullable)
        for column in op.columns
        if column not in OWN_NAMES and not column.startswith("_")
    )
    key = known[-1].natural_key_columns if known else op.before.dataset.natural_key_columns
    written = set(op.columns)
    return Dataset(
        id=known[-1].id if known else dataset_id_for(name),
        name=known[-1].name if known else name,
        version=known[-1].version + 1 if known else 1,
        status="active",
        main_table=TableDef(
            name=op.target.table or name,
            columns=columns,
            temporal_mode=_mode(op.target, written),
        ),
        natural_key_columns=key if key and set(key) <= written else (),
        resolver_id=PUBLISHED,
        description=f"written by operation {op.seq} {op.name}",
        origin="registered",
    )


def _mode(target: Target, written: set[str]) -> TemporalMode:
    """Return how the rows are placed in time; files are of one period, rows of a table say theirs or have none."""
    if PERIOD_FROM.name in written:
        return "bitemporal"
    return "period" if PERIOD.name in written or target.kind in ("files", "file") else "snapshot"


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
