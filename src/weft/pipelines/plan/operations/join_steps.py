"""The joins of an update once all uses are known: the columns to read, the spec, the plan."""

from __future__ import annotations

from collections.abc import Mapping

from weft.core.types import BOOLEAN, Field, Schema
from weft.errors import RuntimeJoinError, WeftError
from weft.expr import Typed
from weft.expr.render import render
from weft.pipelines.model.words import PERIOD_FROM, PERIOD_TO, SYSTEM_COLUMNS
from weft.pipelines.plan.operations.context import PlanContext
from weft.pipelines.plan.operations.joining import Built, build, column_name, right_schema
from weft.pipelines.plan.operations.joins import JoinDraft
from weft.pipelines.plan.operations.resolved import ACTIVE, HIDDEN, ResolvedJoinStep, joined_name
from weft.pipelines.plan.runtime_join import ConditionParts, compile_failure

ROW_ID = SYSTEM_COLUMNS[0]


def finish_join(
    draft: JoinDraft,
    used: Mapping[str, set[str]],
    left: Schema,
    seq: int,
    context: PlanContext,
    *,
    gated: bool,
) -> tuple[ResolvedJoinStep, Schema] | None:
    """Return the join on the columns at hand, and the columns after it; None when it is not whole.

    `used` are the columns of each alias that the operation reads.  A `gated` join is made for active
    rows alone.
    """
    dataset, table, schema, parts = draft.dataset, draft.table, draft.schema, draft.parts
    if dataset is None or table is None or schema is None or parts is None:
        return None
    needed = _needed(draft, parts, used)
    fields = tuple(f for f in schema if f.name in needed)
    fanned = (ROW_ID,) if draft.said.on_multiple == "all" else ()
    right = right_schema(joined_name("j", draft.alias), (*fields, *fanned))
    names = _key_names(draft)
    built = _built(draft, parts, names, left, right, context, gated=gated)
    if built is None:
        return None
    needed |= {slot[2] for slot in _slots(draft.own)}
    columns = (*(f.name for f in schema if f.name in needed), *(f.name for f in fanned))
    read = context.read(
        f"{seq}.{draft.alias}", "join", dataset, table, columns, seq=seq, alias=draft.alias, as_of=draft.as_of
    )
    if read is None:
        return None
    step = ResolvedJoinStep(
        alias=draft.alias,
        dataset=dataset,
        table=table,
        source=read.pin.resolver_source,
        resolver_id=read.pin.resolver_id,
        read=read,
        keys=tuple(zip(names, draft.keys, strict=True)),
        right_keys=tuple(ref.name for _, ref in parts.keys),
        on=draft.said.on.text,
        spec=built.spec,
        resolved=built.resolved,
        choice=built.choice,
        own_filter=draft.own,
        own_text="" if parts.own is None else render(parts.own),
        as_of=draft.as_of,
        on_multiple=draft.said.on_multiple,
        order_by=draft.order_by,
        broadcast=draft.said.broadcast,
        columns=tuple(f.name for f in fields),
        extension=parts.extensions,
        pinned=draft.pinned,
    )
    return step, built.resolved.schema


def _needed(draft: JoinDraft, parts: ConditionParts, used: Mapping[str, set[str]]) -> set[str]:
    """Return the columns of the joined side that stay after its own filter."""
    needed = used.get(draft.alias, set()) | {ref.name for _, ref in parts.keys}
    if draft.as_of.kind == "column":
        needed |= {PERIOD_FROM.name, PERIOD_TO.name}
    if draft.said.on_multiple == "first":
        needed |= {name for name, _ in draft.order_by}
    return needed


def _key_names(draft: JoinDraft) -> tuple[str, ...]:
    """Return the names of the working sides of the keys; what is no plain column gets one of its own."""
    return tuple(
        column_name(k.slot)
        if k.op == "ref" and isinstance(k.slot, tuple)
        else f"{HIDDEN}_k${draft.alias}${i}"
        for i, k in enumerate(draft.keys)
    )


def _built(
    draft: JoinDraft,
    parts: ConditionParts,
    names: tuple[str, ...],
    left: Schema,
    right: Schema,
    context: PlanContext,
    *,
    gated: bool,
) -> Built | None:
    prefix = joined_name("j", draft.alias)
    computed = (Field(n, k.dtype) for n, k in zip(names, draft.keys, strict=True) if n not in left)
    gate = (Field(ACTIVE, BOOLEAN),) if gated and ACTIVE not in left else ()
    wide = Schema((*left.fields, *computed, *gate), case_sensitive=True)
    keys = [(n, f"{prefix}${ref.name}") for n, (_, ref) in zip(names, parts.keys, strict=True)]
    if gated:
        keys.append((ACTIVE, prefix))
    try:
        return build(
            keys,
            wide,
            right,
            prefix=prefix,
            as_of=draft.as_of,
            residual=draft.residual,
            relationship="m:1" if draft.said.on_multiple == "error" else None,
            nulls_equal=draft.said.nulls_equal,
        )
    except WeftError as problem:
        finding = compile_failure(problem.message, problem.help, draft.said.on.at)
        context.mistakes.add(RuntimeJoinError([finding]))
        return None


def _slots(typed: Typed | None) -> tuple[tuple[str, ...], ...]:
    return tuple(s for s in (typed.slots if typed is not None else ()) if isinstance(s, tuple))
