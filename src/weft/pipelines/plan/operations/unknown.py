"""Unknown columns: continues the check of a project whose input or operation is invalid.

Before::

    input: gll        does not exist         output columns [journal_id, amount]

After::

    working set       open, with the columns journal_id and amount of unknown type

Each error is reported once, and independent errors are still reported.
"""

from __future__ import annotations

from collections.abc import Iterator

from weft.core.types import NULL, Field, Schema
from weft.errors import Code
from weft.io.datasource import PERIOD
from weft.pipelines.model.dataset import Dataset, TableDef
from weft.pipelines.model.operation import Append, Operation, Output, Update
from weft.pipelines.model.project import Project
from weft.pipelines.model.values import SYSTEM_COLUMNS
from weft.pipelines.plan.catalog import ResolvedDataset
from weft.pipelines.plan.operations.context import PlanContext
from weft.pipelines.plan.operations.resolved import WorkingSet

KEY_UNKNOWN: tuple[Code, ...] = ("W1414",)
"""Findings that result from an unknown natural key."""


def unknown_input(project: Project) -> WorkingSet:
    """Return the working set of a project with an unknown input: its table has no name, so any qualifier matches."""
    name = project.input.name
    table = TableDef(name="", columns=(), temporal_mode="snapshot")
    dataset = Dataset(id=name, name=name, version=1, status="active", main_table=table)
    schema = Schema((*SYSTEM_COLUMNS, PERIOD), case_sensitive=True)
    return WorkingSet(table="", dataset=dataset, schema=schema, open=True)


def add_mentioned_columns(working: WorkingSet, op: Operation, context: PlanContext) -> WorkingSet:
    """Return an open working set with the columns that an operation lists outside of its expressions."""
    # Expressions need no help: in an open working set any name resolves.  Lists are checked against the schema.
    own = ("", working.table, working.dataset.name)
    names: dict[str, None] = {}
    for column in _list_mentioned_columns(op, context):
        qualifier, _, name = column.removeprefix("-").rpartition(".")
        if (qualifier in own or not working.table) and working.schema.find(name) is None:
            names[name] = None
    return working.with_columns(tuple(Field(name, NULL) for name in names if name))


def _list_mentioned_columns(op: Operation, context: PlanContext) -> Iterator[str]:
    match op.arguments:
        case Output() as output:
            yield from (column.text for column in (*(output.columns or ()), *output.order_by))
        case Update() as update:
            yield from (str(j.as_of.column) for j in update.joins if j.as_of.kind == "column")
        case Append() as append:
            source = context.catalog.dataset(append.source)
            if append.columns is not None:
                yield from append.columns
            elif append.aggregation is not None:
                yield from (a.column.text for a in append.aggregation.aggregations)
                yield from (column.text.rpartition(".")[2] for column in append.aggregation.group_by)
            elif isinstance(source, ResolvedDataset):
                yield from (column.name for column in source.dataset.main_table.columns)
        case _:
            return
