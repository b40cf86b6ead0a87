"""Datasets that outputs register: what a run will register, and what a project may count on before that.

::

    a.yml   output 20: register_as_dataset: gl_usd     writes journal_id, amount_reporting
    b.yml   input: gl_usd                              reads amount_reporting

In a fresh clone nothing has run, and the store knows no `gl_usd`; but the files say what it will be, so
that `b` can be checked against it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from weft.core.names import shell_word
from weft.core.types import Schema
from weft.errors import Diagnostic
from weft.io.datasource import PERIOD
from weft.io.location import PUBLISHED
from weft.pipelines.model.dataset import ColumnDef, Dataset, TableDef
from weft.pipelines.model.entries import entity_id
from weft.pipelines.model.project import Project
from weft.pipelines.model.words import PERIOD_FROM, TemporalMode
from weft.pipelines.plan.catalog import Catalog
from weft.pipelines.plan.operations.resolved import OWN_NAMES, ResolvedOutput, Target
from weft.pipelines.plan.project import examined
from weft.pipelines.plan.references import dataset_references


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
        id=known[-1].id if known else entity_id("dataset", name),
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


def with_promised(catalog: Catalog) -> Catalog:
    """Return the catalog with the datasets that the projects of its workspace will register.

    One project may read what another one registers, so this goes on until nothing new comes up.  What a
    project with errors would register is `unread`: its readers are not blamed for it.
    """
    waiting = {p.id: p for p in catalog.workspace.projects if _new_names(p, catalog)}
    progress = True
    while waiting and progress:
        progress = False
        for id, project in tuple(waiting.items()):
            pending = {name for other in waiting.values() for name in _new_names(other, catalog)}
            if any(ref.said in pending for _, ref in dataset_references(project)):
                continue
            names = _new_names(project, catalog)
            made = {op.register_as: op for op in examined(project, catalog).outputs if not op.before.open}
            if set(names) <= made.keys():
                new = tuple(registered_dataset(made[name], catalog) for name in names)
                catalog = replace(catalog, promised=(*catalog.promised, *new))
            else:
                catalog = replace(catalog, unread=(*catalog.unread, *names))
            progress = True
            del waiting[id]
    return catalog


def _new_names(project: Project, catalog: Catalog) -> tuple[str, ...]:
    """Return the names that a project registers and that nothing has yet."""
    return tuple(name for name in project.registers if not catalog.versions(name))


def promised_notes(project: Project, catalog: Catalog) -> Iterator[Diagnostic]:
    """Yield a note for each dataset that a project reads and that nothing has registered yet."""
    for _, ref in dataset_references(project):
        coming = [d for d in catalog.promised if ref.said in (d.name, d.id)]
        if not coming or catalog.versions(ref.said):
            continue
        maker = next(p for p in catalog.workspace.projects if coming[0].name in p.registers)
        first = f"`weft project activate {shell_word(maker.name)}`, then " if maker.status == "draft" else ""
        yield Diagnostic(
            "W1214",
            f"dataset {ref.said!r} is not registered yet: project {maker.name!r} does so when it runs",
            help=f"{first}`weft run {shell_word(maker.name)} -p PERIOD` before {project.name!r} runs",
            severity="note",
            at=ref.at,
        )
