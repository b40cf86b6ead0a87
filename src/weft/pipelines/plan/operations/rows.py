"""aggregate, append and delete: operations that add rows to the working set or mark rows as deleted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from weft.core.names import format_list
from weft.core.types import NULL, DType, Field, Schema
from weft.errors import Diagnostic, OperationError
from weft.expr import FUNCTIONS, Call, Ref, Typed, check, walk
from weft.io.datasource import PERIOD
from weft.pipelines.model.dataset import Dataset
from weft.pipelines.model.operation import Aggregate, Aggregation, Append, Operation
from weft.pipelines.model.values import SYSTEM_COLUMNS, LocatedText, temporal_columns
from weft.pipelines.plan.catalog import MissingDataset
from weft.pipelines.plan.operations.context import (
    LABELS,
    PlanContext,
    check_expression,
    check_writable,
    convert_for_storage,
    convert_to_column,
    is_unknown,
    missing_dataset_error,
    operation_scope,
    parse_text,
    resolve_selector,
)
from weft.pipelines.plan.operations.joining import build_lookup_steps
from weft.pipelines.plan.operations.resolved import (
    OWN_NAMES,
    ResolvedAggregate,
    ResolvedAppend,
    ResolvedDelete,
    WorkingSet,
)
from weft.pipelines.plan.scopes import OperationScope, list_slots


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """Group columns, values with the types they are stored in, and new columns."""

    keys: tuple[tuple[str, Typed], ...]
    values: tuple[tuple[str, Typed, DType], ...]
    created: tuple[Field, ...]


def resolve_grouping(arguments: Aggregate, scope: OperationScope, target: WorkingSet, context: PlanContext) -> Grouping:
    """Return the group columns and aggregates over `scope`, to be stored in the columns of `target`."""
    if not arguments.group_by:
        context.report("W1408", "the aggregate has no group columns", "list a column in `group_by`", None)
    if not arguments.aggregations:
        context.report("W1401", "the aggregate has no aggregations", "add one to `aggregations`", None)
    keys = _keys(arguments.group_by, scope, target, context)
    names = [name for name, _ in keys]
    values: list[tuple[str, Typed, DType]] = []
    created = [Field(n, k.dtype) for n, k in keys if n not in target.schema]
    for aggregation in arguments.aggregations:
        name = aggregation.column.text
        value = _value(aggregation, scope, target, context)
        if name in names:
            context.report(
                "W1409",
                f"column {name!r} is written twice",
                "give each aggregation and each group column its own name",
                aggregation.column.at,
            )
            continue
        names.append(name)
        if value is not None:
            values.append((name, *value))
        if name not in target.schema:
            created.append(Field(name, NULL if value is None else value[1]))
    return Grouping(keys=tuple(keys), values=tuple(values), created=tuple(created))


def _keys(
    texts: Sequence[LocatedText], scope: OperationScope, target: WorkingSet, context: PlanContext
) -> list[tuple[str, Typed]]:
    keys: list[tuple[str, Typed]] = []
    for text in texts:
        typed = _key(text, scope, context)
        if typed is None or not isinstance(typed.slot, tuple):
            continue
        kind, name = typed.slot[0], typed.slot[-1]
        if name in (n for n, _ in keys):
            context.report("W1409", f"{text.text!r} names the group column {name!r} again", "leave it out", text.at)
        elif kind == "l" and name in target.schema:
            context.report(
                "W1408",
                f"{text.text!r} would be stored in the working column {name!r}, which is a different column",
                "assign it to a new column in an earlier update, and group by that column",
                text.at,
            )
        else:
            keys.append((name, typed))
    return keys


def _key(text: LocatedText, scope: OperationScope, context: PlanContext) -> Typed | None:
    """Return a group column; None when it is invalid, which is reported."""
    tree = parse_text(text, context)
    if tree is None:
        return None
    if not isinstance(tree, Ref):
        context.report(
            "W1408",
            f"group_by names {text.text!r}, which is not a column",
            "assign it to a new column in an earlier update, and group by that column",
            text.at,
        )
        return None
    column = scope.resolve(tree.qualifier, tree.name)
    if isinstance(column, Diagnostic):
        at = tree.span.place if tree.span is not None else text.at
        context.errors.add(OperationError(column.message, code=column.code, help=column.help, at=at))
        return None
    if tree.name in OWN_NAMES and tree.name != PERIOD.name:
        context.report(
            "W1408",
            f"rows cannot be grouped by {tree.name!r}",
            "of Weft's own columns, only _period can be used",
            text.at,
        )
        return None
    if not column.dtype.is_orderable:
        context.report(
            "W1408",
            f"rows cannot be grouped by {tree.name!r}, which is {column.dtype}",
            "group by a column of numbers, strings or dates",
            text.at,
        )
        return None
    return check(tree, scope)


def _value(
    aggregation: Aggregation, scope: OperationScope, target: WorkingSet, context: PlanContext
) -> tuple[Typed, DType] | None:
    good = check_writable(aggregation.column, target, context)
    if aggregation.column.text == LABELS:
        context.report("W1402", "an aggregate cannot write _labels", "write to another column", aggregation.column.at)
        good = False
    typed = check_expression(aggregation.expression, scope, context, aggregates=True)
    if typed is None:
        return None
    if not any(isinstance(n, Call) and FUNCTIONS[n.name].aggregate for n in walk(typed.expr)):
        names = [f.name for f in FUNCTIONS.values() if f.aggregate]
        context.report(
            "W0218",
            f"the value of {aggregation.column.text!r} has no aggregate",
            f"aggregates are {format_list(dict.fromkeys(names))}",
            aggregation.expression.at,
        )
        return None
    if not good or is_unknown(typed):
        return None
    name = aggregation.column.text
    existing = target.schema[name].dtype if name in target.schema else None
    if existing == NULL:
        return None
    return convert_to_column(typed, aggregation.column, aggregation.expression, existing, context)


def resolve_aggregate(
    op: Operation, working: WorkingSet, context: PlanContext
) -> tuple[ResolvedAggregate | None, WorkingSet]:
    """Return the resolved aggregate, None when it has errors, and the working set after it."""
    arguments = op.arguments
    assert isinstance(arguments, Aggregate)  # noqa: S101  # the type of an operation decides its arguments
    scope = operation_scope(op, working, context)
    chosen = resolve_selector(op.selector, scope, context)
    grouping = resolve_grouping(arguments, scope, working, context)
    after = working.with_columns(grouping.created)
    # Lookups are located only for valid expressions, so that one mistake does not cause errors of resolvers too.
    read = (chosen, *(k for _, k in grouping.keys), *(v for _, v, _ in grouping.values))
    lookups = () if context.errors else build_lookup_steps(list_slots(*read), working, context)[0]
    if context.errors:
        return None, after
    resolved = ResolvedAggregate(
        seq=op.seq,
        name=op.name,
        selector=chosen,
        lookups=lookups,
        keys=grouping.keys,
        values=grouping.values,
        include_summaries=arguments.include_summaries,
        before=working,
        after=after,
    )
    return resolved, after


Values = tuple[tuple[str, Typed, DType], ...]


def build_working_set(dataset: Dataset) -> WorkingSet:
    """Return the working set of a dataset as it is read."""
    table = dataset.main_table
    fields = (*table.schema.fields, *SYSTEM_COLUMNS, *temporal_columns(table.temporal_mode))
    return WorkingSet(table=table.name, dataset=dataset, schema=Schema(fields, case_sensitive=True))


def resolve_append(
    op: Operation, working: WorkingSet, context: PlanContext
) -> tuple[ResolvedAppend | None, WorkingSet]:
    """Return the resolved append, None when it has errors, and the unchanged working set."""
    arguments = op.arguments
    assert isinstance(arguments, Append)  # noqa: S101  # the type of an operation decides its arguments
    if op.selector is not None:
        context.report(
            "W1002",
            "an append takes no selector",
            "write source_selector: a condition on the rows of the source",
            op.at.key("selector"),
        )
    resolved = context.catalog.dataset(arguments.source)
    if isinstance(resolved, MissingDataset):
        if resolved.kind != "unread":  # its file, or the project that registers it, has errors of its own
            at = arguments.source.at or op.at.of("arguments.source")
            context.errors.add(missing_dataset_error(resolved, "source dataset", at))
        return None, working
    source = build_working_set(resolved.dataset)
    scope = OperationScope(working=source)
    chosen = resolve_selector(arguments.source_selector, scope, context)
    keys: tuple[tuple[str, Typed], ...] | None = None
    if arguments.aggregation is not None:
        keys, values = _aggregated(op, arguments, scope, working, context)
    elif arguments.columns is not None:
        values = _mapped(arguments, scope, working, op, context)
    else:
        values = _unmapped(source, scope, working, op, context)
    if context.errors:
        return None, working
    table = source.dataset.main_table
    used = {slot[1] for slot in list_slots(chosen, *(k for _, k in keys or ()), *(v for _, v, _ in values))}
    if keys is None:
        # The id of an added row is derived from that of its source row; a group of rows has no such row.
        used |= {SYSTEM_COLUMNS[0].name, *(f.name for f in temporal_columns(table.temporal_mode))}
    columns = tuple(name for name in source.schema.names if name in used)
    read = context.read(f"{op.seq}.source", "append", source.dataset, table, columns, seq=op.seq, alias="source")
    if read is None:
        return None, working
    added = ResolvedAppend(
        seq=op.seq, name=op.name, read=read, selector=chosen, keys=keys, values=values, before=working
    )
    return added, working


def _aggregated(
    op: Operation, arguments: Append, scope: OperationScope, working: WorkingSet, context: PlanContext
) -> tuple[tuple[tuple[str, Typed], ...], Values]:
    assert arguments.aggregation is not None  # noqa: S101  # checked by the caller
    if arguments.columns is not None:
        context.report(
            "W1410",
            "`columns` and `aggregation` both define the columns",
            "leave `columns` out: the aggregation names its columns",
            op.at.key("arguments.columns"),
        )
    grouping = resolve_grouping(arguments.aggregation, scope, working, context)
    _refuse_extra([f.name for f in grouping.created], scope.working, op, context)
    keys: list[tuple[str, Typed]] = []
    for name, typed in grouping.keys:
        stored = _convert_source(name, typed, working, op, context) if name in working.schema else None
        if stored is not None:
            keys.append((name, stored[0]))
    return tuple(keys), grouping.values


def _mapped(
    arguments: Append, scope: OperationScope, working: WorkingSet, op: Operation, context: PlanContext
) -> Values:
    columns: Mapping[str, LocatedText] = arguments.columns or {}
    _refuse_extra([n for n in columns if not _is_working_column(n, working)], scope.working, op, context)
    values: list[tuple[str, Typed, DType]] = []
    for name, expression in columns.items():
        typed = check_expression(expression, scope, context)
        if typed is None or not _is_working_column(name, working) or is_unknown(typed):
            continue
        target = LocatedText(name, op.at.key(f"arguments.columns.{name}"))
        fits = convert_to_column(typed, target, expression, working.schema[name].dtype, context)
        if fits is not None:
            values.append((name, *fits))
    return tuple(values)


def _unmapped(
    source: WorkingSet, scope: OperationScope, working: WorkingSet, op: Operation, context: PlanContext
) -> Values:
    names = [f.name for f in source.business]
    _refuse_extra([n for n in names if not _is_working_column(n, working)], source, op, context)
    values: list[tuple[str, Typed, DType]] = []
    for name in names:
        if _is_working_column(name, working):
            stored = _convert_source(name, check(Ref(None, name), scope), working, op, context)
            if stored is not None:
                values.append((name, *stored))
    return tuple(values)


def _is_working_column(name: str, working: WorkingSet) -> bool:
    return any(f.name == name for f in working.business)


def _refuse_extra(extra: list[str], source: WorkingSet, op: Operation, context: PlanContext) -> None:
    if not extra:
        return
    names, first = ", ".join(sorted(extra)), min(extra)
    context.report(
        "W1410",
        f"{source.dataset} has columns that the working set does not have: {names}",
        f"map them: columns: {{<working column>: {first}, ...}}, or add them with an update first",
        op.at.of("arguments.columns" if op.at.values.get("arguments.columns") else "arguments.source"),
    )


def _convert_source(
    name: str, typed: Typed, working: WorkingSet, op: Operation, context: PlanContext
) -> tuple[Typed, DType] | None:
    """Return a value of the source converted to its working column; None when the types differ, which is reported."""
    expected = working.schema[name].dtype
    stored = convert_for_storage(typed, expected)
    if stored is None:
        context.report(
            "W0209",
            f"column {name!r} is {expected} here and {typed.dtype} in the source",
            f"map it: columns: {{{name}: CAST({name} AS {expected})}}",
            op.at.of("arguments.source"),
        )
    return stored


def resolve_delete(
    op: Operation, working: WorkingSet, context: PlanContext
) -> tuple[ResolvedDelete | None, WorkingSet]:
    """Return the resolved delete, None when it has errors, and the unchanged working set."""
    chosen = resolve_selector(op.selector, operation_scope(op, working, context), context)
    lookups = () if context.errors else build_lookup_steps(list_slots(chosen), working, context)[0]
    if context.errors:
        return None, working
    return ResolvedDelete(seq=op.seq, name=op.name, selector=chosen, lookups=lookups, before=working), working
