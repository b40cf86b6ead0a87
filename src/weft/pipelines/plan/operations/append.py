"""append: rows of another dataset, filtered by its own time, under the columns of the working set."""

from __future__ import annotations

from collections.abc import Mapping

from weft.core.types import DType, Schema
from weft.expr import Ref, Typed, check
from weft.pipelines.model.dataset import Dataset
from weft.pipelines.model.operation import Append, Operation
from weft.pipelines.model.values import SYSTEM_COLUMNS, LocatedText, temporal_columns
from weft.pipelines.plan.catalog import MissingDataset
from weft.pipelines.plan.operations.aggregate import resolve_grouping
from weft.pipelines.plan.operations.context import (
    PlanContext,
    checked,
    fitted,
    is_unknown,
    not_usable,
    selector,
    stored,
)
from weft.pipelines.plan.operations.resolved import ResolvedAppend, WorkingSet
from weft.pipelines.plan.operations.update import slots_of
from weft.pipelines.plan.scopes import OperationScope

Values = tuple[tuple[str, Typed, DType], ...]


def working_of(dataset: Dataset) -> WorkingSet:
    """Return the columns that rows of a dataset have when they are read."""
    table = dataset.main_table
    fields = (*table.schema.fields, *SYSTEM_COLUMNS, *temporal_columns(table.temporal_mode))
    return WorkingSet(table=table.name, dataset=dataset, schema=Schema(fields, case_sensitive=True))


def resolve_append(
    op: Operation, working: WorkingSet, context: PlanContext
) -> tuple[ResolvedAppend | None, WorkingSet]:
    """Return the append on the columns at hand, None after noting mistakes, and the columns after it."""
    said = op.arguments
    assert isinstance(said, Append)  # noqa: S101  # the type of an operation decides its arguments
    if op.selector is not None:
        context.report(
            "W1002",
            "an append takes no selector",
            "write source_selector: a condition on the rows of the source",
            op.at.key("selector"),
        )
    found = context.catalog.dataset(said.source)
    if isinstance(found, MissingDataset):
        if found.kind != "unread":
            at = said.source.at or op.at.of("arguments.source")
            context.mistakes.add(not_usable(found, "source dataset", at))
        return None, working
    source = working_of(found.dataset)
    scope = OperationScope(working=source)
    chosen = selector(said.source_selector, scope, context)
    keys: tuple[tuple[str, Typed], ...] | None = None
    if said.aggregation is not None:
        keys, values = _aggregated(op, said, scope, working, context)
    elif said.columns is not None:
        values = _mapped(said, scope, working, op, context)
    else:
        values = _as_they_are(source, scope, working, op, context)
    if context.mistakes:
        return None, working
    return _resolved(op, found.dataset, chosen, keys, values, working, context), working


def _resolved(
    op: Operation,
    dataset: Dataset,
    chosen: Typed | None,
    keys: tuple[tuple[str, Typed], ...] | None,
    values: Values,
    working: WorkingSet,
    context: PlanContext,
) -> ResolvedAppend | None:
    source = working_of(dataset)
    expressions = (chosen, *(k for _, k in keys or ()), *(v for _, v, _ in values))
    used = {slot[1] for typed in expressions for slot in slots_of(typed)}
    if keys is None:
        used |= {
            SYSTEM_COLUMNS[0].name,
            *(f.name for f in temporal_columns(dataset.main_table.temporal_mode)),
        }
    columns = tuple(name for name in source.schema.names if name in used)
    read = context.read(
        f"{op.seq}.source", "append", dataset, dataset.main_table, columns, seq=op.seq, alias="source"
    )
    if read is None:
        return None
    return ResolvedAppend(
        seq=op.seq,
        name=op.name,
        read=read,
        selector=chosen,
        keys=keys,
        values=values,
        before=working,
        after=working,
    )


def _aggregated(
    op: Operation, said: Append, scope: OperationScope, working: WorkingSet, context: PlanContext
) -> tuple[tuple[tuple[str, Typed], ...], Values]:
    assert said.aggregation is not None  # noqa: S101  # asked before
    if said.columns is not None:
        context.report(
            "W1410",
            "columns and aggregation both say which columns come in",
            "leave `columns` out: the aggregation names its columns",
            op.at.key("arguments.columns"),
        )
    grouping = resolve_grouping(said.aggregation, scope, working, context)
    _refuse_extra([f.name for f in grouping.created], scope.working, op, context)
    keys: list[tuple[str, Typed]] = []
    for name, typed in grouping.keys:
        if name not in working.schema:
            continue
        fits = stored(typed, working.schema[name].dtype)
        if fits is None:
            _does_not_fit(name, typed, working, op, context)
        else:
            keys.append((name, fits[0]))
    return tuple(keys), grouping.values


def _mapped(
    said: Append, scope: OperationScope, working: WorkingSet, op: Operation, context: PlanContext
) -> Values:
    columns: Mapping[str, LocatedText] = said.columns or {}
    _refuse_extra([n for n in columns if not _is_own(n, working)], scope.working, op, context)
    values: list[tuple[str, Typed, DType]] = []
    for name, expression in columns.items():
        typed = checked(expression, scope, context)
        if typed is None or not _is_own(name, working) or is_unknown(typed):
            continue
        target = LocatedText(name, op.at.key(f"arguments.columns.{name}"))
        fits = fitted(typed, target, expression, working.schema[name].dtype, context)
        if fits is not None:
            values.append((name, *fits))
    return tuple(values)


def _as_they_are(
    source: WorkingSet, scope: OperationScope, working: WorkingSet, op: Operation, context: PlanContext
) -> Values:
    names = [f.name for f in source.business]
    _refuse_extra([n for n in names if not _is_own(n, working)], source, op, context)
    values: list[tuple[str, Typed, DType]] = []
    for name in names:
        if not _is_own(name, working):
            continue
        typed = check(Ref(None, name), scope)
        fits = stored(typed, working.schema[name].dtype)
        if fits is None:
            _does_not_fit(name, typed, working, op, context)
        else:
            values.append((name, *fits))
    return tuple(values)


def _is_own(name: str, working: WorkingSet) -> bool:
    return any(f.name == name for f in working.business)


def _refuse_extra(extra: list[str], source: WorkingSet, op: Operation, context: PlanContext) -> None:
    if not extra:
        return
    shown = ", ".join(sorted(extra))
    first = min(extra)
    context.report(
        "W1410",
        f"{source.dataset} brings columns that the working set does not have: {shown}",
        f"map them: columns: {{<working column>: {first}, ...}}, or add them with an update first",
        op.at.of("arguments.columns" if op.at.values.get("arguments.columns") else "arguments.source"),
    )


def _does_not_fit(name: str, typed: Typed, working: WorkingSet, op: Operation, context: PlanContext) -> None:
    wanted = working.schema[name].dtype
    context.report(
        "W0209",
        f"column {name!r} is {wanted} here and {typed.dtype} in the source",
        f"map it: columns: {{{name}: CAST({name} AS {wanted})}}",
        op.at.of("arguments.source"),
    )
