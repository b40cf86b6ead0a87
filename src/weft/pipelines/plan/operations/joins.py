"""The joins of an update: first drafted as specified, then finished once the columns that the update uses are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from weft.core.findings import ErrorCollector
from weft.core.names import find_similar, format_list, suggest
from weft.core.types import BOOLEAN, NULL, Field, Schema
from weft.errors import OperationError, RuntimeJoinError, UnknownColumnError, WeftError
from weft.expr import Typed, check, references
from weft.expr.render import render
from weft.joins.spec.predicates import ExpressionPredicate
from weft.pipelines.model.dataset import Dataset, TableDef
from weft.pipelines.model.operation import RuntimeJoin
from weft.pipelines.model.values import PERIOD_FROM, PERIOD_TO, SYSTEM_COLUMNS, AsOfDay, temporal_columns
from weft.pipelines.plan.catalog import MissingDataset
from weft.pipelines.plan.operations.context import PlanContext, missing_dataset_error, parse_text
from weft.pipelines.plan.operations.joining import Built, as_predicate, build, column_name, right_schema
from weft.pipelines.plan.operations.resolved import ACTIVE, HIDDEN, ResolvedJoinStep, join_column_name
from weft.pipelines.plan.runtime_join import (
    ConditionParts,
    as_condition_findings,
    check_alias,
    compile_failure,
    missing_join_dataset_error,
    read_condition,
    slot_of,
)
from weft.pipelines.plan.scopes import OperationScope, Slot, list_slots


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinDraft:
    """A join with its parsed condition; `schema` is None when its dataset is unusable."""

    spec: RuntimeJoin
    dataset: Dataset | None = None
    table: TableDef | None = None
    schema: Schema | None = None
    pinned: bool = False
    parts: ConditionParts | None = None
    keys: tuple[Typed, ...] = ()
    own: Typed | None = None
    residual: ExpressionPredicate | None = None
    residual_slots: tuple[Slot, ...] = ()
    as_of: AsOfDay
    order_by: tuple[tuple[str, bool], ...] = ()

    @property
    def alias(self) -> str:
        """The name of the joined side in expressions."""
        return self.spec.alias.text

    @property
    def slots(self) -> tuple[Slot, ...]:
        """The columns in terms across both sides, including those of the alias."""
        return (*list_slots(*self.keys), *self.residual_slots)


def draft_joins(joins: Sequence[RuntimeJoin], scope: OperationScope, context: PlanContext) -> tuple[JoinDraft, ...]:
    """Return the joins of an operation as far as they are valid; errors are reported."""
    drafts: list[JoinDraft] = []
    schemas: dict[str, Schema | None] = {}
    tables = (scope.working.table, *scope.lookups)
    for join in joins:
        findings = tuple(check_alias(join, tuple(schemas), tables))
        if findings:
            context.errors.add(RuntimeJoinError(findings))
        draft = _draft_join(join, scope, context)
        schemas[draft.alias] = draft.schema
        # A condition can read the joins listed before it; for those after it, the error names the order.
        later = tuple(j.alias.text for j in joins if j.alias.text not in schemas)
        inner = replace(scope, joins=dict(schemas), later=later, where="condition")
        drafts.append(_with_condition(draft, inner, context))
    return tuple(drafts)


def _draft_join(join: RuntimeJoin, scope: OperationScope, context: PlanContext) -> JoinDraft:
    draft = JoinDraft(spec=join, as_of=join.as_of)
    resolved = context.catalog.dataset(join.dataset)
    if isinstance(resolved, MissingDataset):
        if resolved.kind != "unread":
            context.errors.add(missing_join_dataset_error(resolved, join.dataset.at or join.at.of("dataset_id")))
        return draft
    context.resolver(resolved.dataset)  # reports a missing resolver, also when the rest of the join is invalid
    chosen = _table(join, resolved.dataset, context)
    if chosen is None:
        return draft
    dataset, table = chosen
    schema = Schema((*table.schema.fields, *temporal_columns(table.temporal_mode)), case_sensitive=True)
    return replace(
        draft,
        dataset=dataset,
        table=table,
        schema=schema,
        pinned=resolved.pinned,
        as_of=_as_of(join, table, scope, context),
        order_by=_order(join, schema, context),
    )


def _table(join: RuntimeJoin, dataset: Dataset, context: PlanContext) -> tuple[Dataset, TableDef] | None:
    """Return the table that a join reads, and the dataset that locates it."""
    if join.table is None:
        return dataset, dataset.main_table
    at = join.at.of("table")
    for lookup in dataset.lookups:
        if lookup.alias == join.table and not isinstance(lookup.target, TableDef):
            resolved = context.catalog.dataset(lookup.target)
            if isinstance(resolved, MissingDataset):
                if resolved.kind != "unread":
                    what = f"lookup {lookup.alias!r} of {dataset}: dataset"
                    context.errors.add(missing_dataset_error(resolved, what, at))
                return None
            return resolved.dataset, resolved.dataset.main_table
    try:
        return dataset, dataset.table(join.table)
    except UnknownColumnError as problem:
        context.errors.add(OperationError(problem.message, code="W1213", help=problem.help, at=at))
        return None


def _as_of(join: RuntimeJoin, table: TableDef, scope: OperationScope, context: PlanContext) -> AsOfDay:
    """Return the date of a join, with its column as named in the working set; report W1211 when it is invalid."""
    as_of, at = join.as_of, join.at.of("as_of")
    if as_of.kind == "period_start":
        return as_of
    if table.temporal_mode != "bitemporal":
        context.report(
            "W1211",
            f"join {join.alias.text!r} has as_of, but table {table.name!r} is {table.temporal_mode}",
            "leave as_of out, or set `temporal_mode: bitemporal` in the table",
            at,
        )
        return AsOfDay("period_start")
    if as_of.kind != "column":
        return as_of
    qualifier, _, name = str(as_of.column).rpartition(".")
    schema = scope.working.schema
    own = qualifier in ("", scope.working.table, scope.working.dataset.name)
    field = schema[name] if own and name in schema else None
    if field is not None and (field.dtype.is_temporal or field.dtype == NULL):
        return AsOfDay("column", column=name)
    help = f"date and timestamp columns are {format_list(f.name for f in schema if f.dtype.is_temporal)}"
    message = f"as_of names {name!r}, which is {'' if field is None else field.dtype}"
    if field is None:
        close = find_similar(name, schema.names, most=1)
        message = f"as_of names {as_of.column!r}, which is not a working column"
        help = f"did you mean {close[0]!r}?" if close else help
    context.report("W1211", message, help, at)
    return AsOfDay("period_start")


def _order(join: RuntimeJoin, schema: Schema, context: PlanContext) -> tuple[tuple[str, bool], ...]:
    at = join.at.of("order_by")
    if join.on_multiple == "first" and not join.order_by:
        context.report(
            "W1003",
            f"join {join.alias.text!r} takes the first match and has no order_by",
            "write order_by: [column] or [-column] for the greatest first",
            join.at.of("on_multiple"),
        )
    order = []
    for column in join.order_by:
        qualifier, _, name = column.removeprefix("-").rpartition(".")
        if qualifier not in ("", join.alias.text) or name not in schema:
            message = f"join {join.alias.text!r} has no column {column.removeprefix('-')!r} to order by"
            context.report("W0207", message, suggest(name, schema.names, "columns are", most=1), at)
        else:
            order.append((name, not column.startswith("-")))
    return tuple(order)


def _with_condition(draft: JoinDraft, scope: OperationScope, context: PlanContext) -> JoinDraft:
    """Return the join with its condition split into terms; errors are reported as VR-006 and VR-007."""
    on = draft.spec.on
    # The codes of expressions become those of conditions, so errors of the parser are collected apart.
    inner = replace(context, errors=ErrorCollector())
    tree = parse_text(on, inner)
    if tree is None:
        with context.errors.collect():
            try:
                inner.errors.raise_all()
            except WeftError as problem:
                raise RuntimeJoinError(as_condition_findings(problem)) from problem
        return draft
    try:
        parts = read_condition(tree, draft.alias, scope, strict=context.strict)
    except RuntimeJoinError as problem:
        context.errors.add(problem)
        return draft
    residual: ExpressionPredicate | None = None
    slots: tuple[Slot, ...] = ()
    if parts.residual is not None:
        try:
            residual = as_predicate(parts.residual, draft.alias, lambda ref: slot_of(ref, scope))
        except WeftError as problem:
            finding = compile_failure(problem.message, problem.help, on.at)
            context.errors.add(RuntimeJoinError([finding]))
            return draft
        slots = tuple(slot_of(n, scope) for n in references(parts.residual))
    return replace(
        draft,
        parts=parts,
        keys=tuple(check(mine, scope) for mine, _ in parts.keys),
        own=None if parts.own is None else check(parts.own, scope),
        residual=residual,
        residual_slots=slots,
    )


ROW_ID = SYSTEM_COLUMNS[0]


def finish_join(
    draft: JoinDraft, used: Mapping[str, set[str]], left: Schema, seq: int, context: PlanContext, *, gated: bool
) -> tuple[ResolvedJoinStep, Schema] | None:
    """Return the resolved join and the schema after it; None when it is incomplete.

    `used` are the columns of each alias that the operation reads.  A `gated` join matches active rows only.
    """
    dataset, table, schema, parts = draft.dataset, draft.table, draft.schema, draft.parts
    if dataset is None or table is None or schema is None or parts is None:
        return None
    needed = _needed(draft, parts, used)
    fields = tuple(f for f in schema if f.name in needed)
    # Each copy of a row needs an id of its own, derived from the id of its match.
    fanned = (ROW_ID,) if draft.spec.on_multiple == "all" else ()
    right = right_schema(join_column_name("j", draft.alias), (*fields, *fanned))
    names = _key_names(draft)
    built = _build_join(draft, parts, names, left, right, context, gated=gated)
    if built is None:
        return None
    # Columns of the filter are read but not joined: it is applied to the right side before the join.
    needed |= {slot[2] for slot in list_slots(draft.own)}
    columns = (*(f.name for f in schema if f.name in needed), *(f.name for f in fanned))
    read = context.read(
        f"{seq}.{draft.alias}", "join", dataset, table, columns, seq=seq, alias=draft.alias, as_of=draft.as_of
    )
    if read is None:
        return None
    step = ResolvedJoinStep(
        alias=draft.alias,
        read=read,
        keys=tuple(zip(names, draft.keys, strict=True)),
        right_keys=tuple(ref.name for _, ref in parts.keys),
        on=draft.spec.on.text,
        spec=built.spec,
        resolved=built.resolved,
        choice=built.choice,
        own_filter=draft.own,
        own_text="" if parts.own is None else render(parts.own),
        as_of=draft.as_of,
        on_multiple=draft.spec.on_multiple,
        order_by=draft.order_by,
        broadcast=draft.spec.broadcast,
        columns=tuple(f.name for f in fields),
        extension=parts.extensions,
        pinned=draft.pinned,
    )
    return step, built.resolved.schema


def _needed(draft: JoinDraft, parts: ConditionParts, used: Mapping[str, set[str]]) -> set[str]:
    """Return the columns of the joined side that are needed after its own filter."""
    needed = used.get(draft.alias, set()) | {ref.name for _, ref in parts.keys}
    if draft.as_of.kind == "column":
        needed |= {PERIOD_FROM.name, PERIOD_TO.name}
    if draft.spec.on_multiple == "first":
        needed |= {name for name, _ in draft.order_by}
    return needed


def _key_names(draft: JoinDraft) -> tuple[str, ...]:
    """Return the column names of the working sides of the keys; a computed key gets a new name."""
    return tuple(
        column_name(k.slot) if k.op == "ref" and isinstance(k.slot, tuple) else f"{HIDDEN}_k${draft.alias}${i}"
        for i, k in enumerate(draft.keys)
    )


def _build_join(
    draft: JoinDraft,
    parts: ConditionParts,
    names: tuple[str, ...],
    left: Schema,
    right: Schema,
    context: PlanContext,
    *,
    gated: bool,
) -> Built | None:
    prefix = join_column_name("j", draft.alias)
    computed = (Field(n, k.dtype) for n, k in zip(names, draft.keys, strict=True) if n not in left)
    gate = (Field(ACTIVE, BOOLEAN),) if gated and ACTIVE not in left else ()
    wide = Schema((*left.fields, *computed, *gate), case_sensitive=True)
    keys = [(n, f"{prefix}${ref.name}") for n, (_, ref) in zip(names, parts.keys, strict=True)]
    if gated:
        # A key instead of a condition, so that the join stays an equi-join: inactive rows match nothing.
        keys.append((ACTIVE, prefix))
    try:
        return build(
            keys,
            wide,
            right,
            prefix=prefix,
            as_of=draft.as_of,
            residual=draft.residual,
            relationship="m:1" if draft.spec.on_multiple == "error" else None,
            nulls_equal=draft.spec.nulls_equal,
        )
    except WeftError as problem:
        finding = compile_failure(problem.message, problem.help, draft.spec.on.at)
        context.errors.add(RuntimeJoinError([finding]))
        return None
