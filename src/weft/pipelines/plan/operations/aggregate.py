"""aggregate: group columns and aggregates, which an append takes too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weft.core.names import format_list
from weft.core.types import NULL, DType, Field
from weft.errors import Diagnostic, OperationError
from weft.expr import FUNCTIONS, Call, Ref, Typed, check, walk
from weft.io.datasource import PERIOD
from weft.pipelines.model.operation import Aggregate, Aggregation, Operation
from weft.pipelines.model.values import LocatedText
from weft.pipelines.plan.operations.context import (
    LABELS,
    PlanContext,
    checked,
    fitted,
    is_unknown,
    read,
    selector,
    writable,
)
from weft.pipelines.plan.operations.delete import operation_scope
from weft.pipelines.plan.operations.joining import lookup_steps, used_lookups
from weft.pipelines.plan.operations.resolved import OWN_NAMES, ResolvedAggregate, WorkingSet
from weft.pipelines.plan.scopes import OperationScope


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """Group columns, values with the types they are stored in, and the columns that are new."""

    keys: tuple[tuple[str, Typed], ...]
    values: tuple[tuple[str, Typed, DType], ...]
    created: tuple[Field, ...]


def resolve_grouping(
    said: Aggregate, scope: OperationScope, target: WorkingSet, context: PlanContext
) -> Grouping:
    """Return groups and aggregates over the columns of `scope`, to be stored in the columns of `target`."""
    if not said.group_by:
        context.report("W1408", "the aggregate groups by nothing", "name a column in group_by", None)
    if not said.aggregations:
        context.report("W1401", "the aggregate computes nothing", "give it an aggregation", None)
    keys = _keys(said.group_by, scope, target, context)
    names = [name for name, _ in keys]
    values: list[tuple[str, Typed, DType]] = []
    created = [Field(n, k.dtype) for n, k in keys if n not in target.schema]
    for aggregation in said.aggregations:
        name = aggregation.column.text
        value = _value(aggregation, scope, target, context)
        if name in names:
            context.report(
                "W1409",
                f"column {name!r} is written twice",
                "give each aggregation and each group column a name of its own",
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
    said: Sequence[LocatedText], scope: OperationScope, target: WorkingSet, context: PlanContext
) -> list[tuple[str, Typed]]:
    keys: list[tuple[str, Typed]] = []
    for text in said:
        typed = _key(text, scope, context)
        if typed is None or not isinstance(typed.slot, tuple):
            continue
        kind, name = typed.slot[0], typed.slot[-1]
        if name in (n for n, _ in keys):
            context.report(
                "W1409", f"{text.text!r} names the group column {name!r} again", "leave it out", text.at
            )
        elif kind == "l" and name in target.schema:
            context.report(
                "W1408",
                f"{text.text!r} would be stored in the working column {name!r}, which is another",
                "write it into a column of its own with an update before, and group by that",
                text.at,
            )
        else:
            keys.append((name, typed))
    return keys


def _key(text: LocatedText, scope: OperationScope, context: PlanContext) -> Typed | None:
    """Return a group column; None after noting why it is none."""
    tree = read(text, context)
    if tree is None:
        return None
    if not isinstance(tree, Ref):
        context.report(
            "W1408",
            f"group_by names {text.text!r}, which is no column",
            "compute it into a column with an update before",
            text.at,
        )
        return None
    found = scope.resolve(tree.qualifier, tree.name)
    if isinstance(found, Diagnostic):
        at = tree.span.place if tree.span is not None else text.at
        context.mistakes.add(OperationError(found.message, code=found.code, help=found.help, at=at))
        return None
    if tree.name in OWN_NAMES and tree.name != PERIOD.name:
        context.report(
            "W1408", f"rows cannot be grouped by {tree.name!r}", "of Weft's own columns only _period", text.at
        )
        return None
    if not found.dtype.is_orderable:
        context.report(
            "W1408",
            f"rows cannot be grouped by {tree.name!r}, which is {found.dtype}",
            "group by a column of numbers, texts or dates",
            text.at,
        )
        return None
    return check(tree, scope)


def _value(
    said: Aggregation, scope: OperationScope, target: WorkingSet, context: PlanContext
) -> tuple[Typed, DType] | None:
    good = writable(said.column, target, context)
    if said.column.text == LABELS:
        context.report(
            "W1402", "an aggregate cannot write _labels", "write to another column", said.column.at
        )
        good = False
    typed = checked(said.expression, scope, context, aggregates=True)
    if typed is None:
        return None
    if not any(isinstance(n, Call) and FUNCTIONS[n.name].aggregate for n in walk(typed.expr)):
        names = [f.name for f in FUNCTIONS.values() if f.aggregate]
        context.report(
            "W0218",
            f"the value of {said.column.text!r} has no aggregate",
            f"aggregates are {format_list(dict.fromkeys(names))}",
            said.expression.at,
        )
        return None
    if not good or is_unknown(typed):
        return None
    name = said.column.text
    existing = target.schema[name].dtype if name in target.schema else None
    return None if existing == NULL else fitted(typed, said.column, said.expression, existing, context)


def resolve_aggregate(
    op: Operation, working: WorkingSet, context: PlanContext
) -> tuple[ResolvedAggregate | None, WorkingSet]:
    """Return the aggregate on the columns at hand, None after noting mistakes, and the columns after it."""
    said = op.arguments
    assert isinstance(said, Aggregate)  # noqa: S101  # the type of an operation decides its arguments
    scope = operation_scope(op, working, context)
    chosen = selector(op.selector, scope, context)
    grouping = resolve_grouping(said, scope, working, context)
    after = working.with_columns(grouping.created)
    read = (chosen, *(k for _, k in grouping.keys), *(v for _, v, _ in grouping.values))
    lookups = () if context.mistakes else lookup_steps(used_lookups(read), working, context)[0]
    if context.mistakes:
        return None, after
    resolved = ResolvedAggregate(
        seq=op.seq,
        name=op.name,
        selector=chosen,
        lookups=lookups,
        keys=grouping.keys,
        values=grouping.values,
        include_summaries=said.include_summaries,
        before=working,
        after=after,
    )
    return resolved, after
