"""The joins of an update as far as they can be read: dataset, table, alias, condition, day, order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weft.core.names import listed, near
from weft.core.types import NULL, Schema
from weft.errors import OperationError, RuntimeJoinError, UnknownColumnError, WeftError
from weft.expr import Column, Ref, Typed, check, references
from weft.joins.spec.predicates import ExpressionPredicate
from weft.pipelines.model.dataset import Dataset, TableDef
from weft.pipelines.model.operation import RuntimeJoin
from weft.pipelines.model.reference import AsOfSaid
from weft.pipelines.model.words import temporal_columns
from weft.pipelines.plan.catalog import Missing
from weft.pipelines.plan.operations.context import PlanContext, not_usable
from weft.pipelines.plan.operations.expressions import read
from weft.pipelines.plan.operations.joining import as_predicate
from weft.pipelines.plan.runtime_join import (
    ConditionParts,
    alias_problems,
    as_condition_findings,
    compile_failure,
    dataset_problem,
    read_condition,
)
from weft.pipelines.plan.scopes import OperationScope


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinDraft:
    """A join whose condition is read; `schema` is None when its dataset cannot be taken."""

    said: RuntimeJoin
    alias: str
    dataset: Dataset | None = None
    table: TableDef | None = None
    schema: Schema | None = None
    pinned: bool = False
    parts: ConditionParts | None = None
    keys: tuple[Typed, ...] = ()
    own: Typed | None = None
    residual: ExpressionPredicate | None = None
    residual_slots: tuple[tuple[str, ...], ...] = ()
    as_of: AsOfSaid
    order_by: tuple[tuple[str, bool], ...] = ()

    @property
    def slots(self) -> tuple[tuple[str, ...], ...]:
        """The columns that the condition reads across sides, those of the alias among them."""
        found = [s for typed in self.keys for s in typed.slots if isinstance(s, tuple)]
        return (*found, *self.residual_slots)


def draft_joins(
    joins: Sequence[RuntimeJoin], scope: OperationScope, context: PlanContext
) -> tuple[JoinDraft, ...]:
    """Return the joins of an operation as far as they can be read; mistakes are noted."""
    drafts: list[JoinDraft] = []
    schemas: dict[str, Schema | None] = {}
    tables = (scope.working.table, *scope.lookups)
    for join in joins:
        findings = tuple(alias_problems(join, tuple(schemas), tables))
        if findings:
            context.mistakes.add(RuntimeJoinError(findings))
        draft = _found(join, scope, context)
        schemas[draft.alias] = draft.schema
        names = [j.alias.text for j in joins]
        later = tuple(n for n in names if n not in schemas)
        inner = OperationScope(
            working=scope.working,
            lookups=scope.lookups,
            joins=dict(schemas),
            later=later,
            elsewhere=scope.elsewhere,
            where="condition",
        )
        drafts.append(_with_condition(draft, inner, context))
    return tuple(drafts)


def _found(join: RuntimeJoin, scope: OperationScope, context: PlanContext) -> JoinDraft:
    alias = join.alias.text
    draft = JoinDraft(said=join, alias=alias, as_of=join.as_of)
    found = context.catalog.dataset(join.dataset)
    if isinstance(found, Missing):
        if found.kind != "unread":
            context.mistakes.add(dataset_problem(found, join.dataset.at or join.at.of("dataset_id")))
        return draft
    context.resolver(found.dataset)
    chosen = _table(join, found.dataset, context)
    if chosen is None:
        return draft
    dataset, table = chosen
    schema = Schema((*table.schema.fields, *temporal_columns(table.temporal_mode)), case_sensitive=True)
    return JoinDraft(
        said=join,
        alias=alias,
        dataset=dataset,
        table=table,
        schema=schema,
        pinned=found.pinned,
        as_of=_as_of(join, table, scope, context),
        order_by=_order(join, schema, context),
    )


def _table(join: RuntimeJoin, dataset: Dataset, context: PlanContext) -> tuple[Dataset, TableDef] | None:
    """Return the table that a join reads, and the dataset that says where it lies."""
    if join.table is None:
        return dataset, dataset.main_table
    at = join.at.of("table")
    for lookup in dataset.lookups:
        if lookup.alias == join.table and not isinstance(lookup.target, TableDef):
            found = context.catalog.dataset(lookup.target)
            if isinstance(found, Missing):
                if found.kind != "unread":
                    what = f"lookup {lookup.alias!r} of {dataset}: dataset"
                    context.mistakes.add(not_usable(found, what, at))
                return None
            return found.dataset, found.dataset.main_table
    try:
        return dataset, dataset.table(join.table)
    except UnknownColumnError as problem:
        context.mistakes.add(OperationError(problem.message, code="W1213", help=problem.help, at=at))
        return None


def _as_of(join: RuntimeJoin, table: TableDef, scope: OperationScope, context: PlanContext) -> AsOfSaid:
    """Return the day of a join with its column as the working set calls it; W1211 when there is none."""
    said, at = join.as_of, join.at.of("as_of")
    if said.kind == "period_start":
        return said
    if table.temporal_mode != "bitemporal":
        context.mistake(
            "W1211",
            f"join {join.alias.text!r} says as_of, but table {table.name!r} is {table.temporal_mode}",
            "leave as_of out, or make the table `temporal_mode: bitemporal`",
            at,
        )
        return AsOfSaid("period_start")
    if said.kind != "column":
        return said
    qualifier, _, name = str(said.column).rpartition(".")
    schema = scope.working.schema
    own = qualifier in ("", scope.working.table, scope.working.dataset.name)
    field = schema[name] if own and name in schema else None
    if field is not None and (field.dtype.is_temporal or field.dtype == NULL):
        return AsOfSaid("column", column=name)
    days = [f.name for f in schema if f.dtype.is_temporal]
    if field is None:
        close = near(name, schema.names, most=1)
        message = f"as_of names {said.column!r}, which is no working column"
        help = f"did you mean {close[0]!r}?" if close else f"columns with a day are {listed(days)}"
    else:
        message = f"as_of names {name!r}, which is {field.dtype}"
        help = f"columns with a day are {listed(days)}"
    context.mistake("W1211", message, help, at)
    return AsOfSaid("period_start")


def _order(join: RuntimeJoin, schema: Schema, context: PlanContext) -> tuple[tuple[str, bool], ...]:
    at = join.at.of("order_by")
    if join.on_multiple == "first" and not join.order_by:
        context.mistake(
            "W1003",
            f"join {join.alias.text!r} takes the first match and has no order_by",
            "write order_by: [column] or [-column] for the greatest first",
            join.at.of("on_multiple"),
        )
    found = []
    for said in join.order_by:
        qualifier, _, name = said.removeprefix("-").rpartition(".")
        if qualifier not in ("", join.alias.text) or name not in schema:
            close = near(name, schema.names, most=1)
            context.mistake(
                "W0207",
                f"join {join.alias.text!r} has no column {said.removeprefix('-')!r} to order by",
                f"did you mean {close[0]!r}?" if close else f"there is {listed(schema.names)}",
                at,
            )
        else:
            found.append((name, not said.startswith("-")))
    return tuple(found)


def _with_condition(draft: JoinDraft, scope: OperationScope, context: PlanContext) -> JoinDraft:
    """Return the join with its condition split; mistakes are noted as VR-006 and VR-007."""
    said = draft.said.on
    inner = context.at_operation(type(context.mistakes)(), may_delete=context.may_delete)
    tree = read(said, inner)
    if tree is None:
        with context.mistakes.noted():
            try:
                inner.mistakes.raise_all()
            except WeftError as problem:
                raise RuntimeJoinError(as_condition_findings(problem)) from problem
        return draft
    try:
        parts = read_condition(tree, draft.alias, scope, strict=context.strict)
    except RuntimeJoinError as problem:
        context.mistakes.add(problem)
        return draft
    residual: ExpressionPredicate | None = None
    slots: tuple[tuple[str, ...], ...] = ()
    if parts.residual is not None:
        try:
            residual = as_predicate(parts.residual, draft.alias, lambda ref: _slot(ref, scope))
        except WeftError as problem:
            finding = compile_failure(problem.message, problem.help, said.at)
            context.mistakes.add(RuntimeJoinError([finding]))
            return draft
        slots = tuple(_slot(n, scope) for n in references(parts.residual))
    return JoinDraft(
        said=draft.said,
        alias=draft.alias,
        dataset=draft.dataset,
        table=draft.table,
        schema=draft.schema,
        pinned=draft.pinned,
        as_of=draft.as_of,
        order_by=draft.order_by,
        parts=parts,
        keys=tuple(check(mine, scope) for mine, _ in parts.keys),
        own=None if parts.own is None else check(parts.own, scope),
        residual=residual,
        residual_slots=slots,
    )


def _slot(ref: Ref, scope: OperationScope) -> tuple[str, ...]:
    found = scope.resolve(ref.qualifier, ref.name)
    assert isinstance(found, Column)  # noqa: S101  # the whole condition was checked before
    assert isinstance(found.slot, tuple)  # noqa: S101  # every scope of an operation has such slots
    return found.slot
