"""The lookups that one operation reads, as joins in the order they must be made."""

from __future__ import annotations

from collections.abc import Iterable

from weft.core.types import Schema
from weft.errors import WeftError
from weft.expr import Typed
from weft.pipelines.model.words import temporal_columns
from weft.pipelines.plan.lookups import LookupNode
from weft.pipelines.plan.operations.context import PlanContext
from weft.pipelines.plan.operations.joining import build, joined_fields, right_schema
from weft.pipelines.plan.operations.resolved import LookupStep, Working, joined_name


def used_lookups(expressions: Iterable[Typed | None]) -> dict[str, set[str]]:
    """Return the columns of each lookup that the expressions read."""
    used: dict[str, set[str]] = {}
    for typed in expressions:
        for slot in typed.slots if typed is not None else ():
            if isinstance(slot, tuple) and slot[0] == "l":
                used.setdefault(slot[1], set()).add(slot[2])
    return used


def lookup_steps(
    used: dict[str, set[str]], working: Working, context: PlanContext
) -> tuple[tuple[LookupStep, ...], Schema]:
    """Return the joins that give the used columns, and the columns the operation has after them."""
    wanted = {path: set(columns) for path, columns in used.items()}
    for path in list(wanted):
        _want_parents(path, wanted, context)
    left = working.schema
    steps: list[LookupStep] = []
    for path in sorted(wanted, key=lambda p: (p.count("."), p)):
        step = _step(context.lookups[path], wanted[path], left, context)
        if step is not None:
            steps.append(step)
            left = Schema((*left.fields, *joined_fields(step.resolved.right)), case_sensitive=True)
    return tuple(steps), left


def _want_parents(path: str, wanted: dict[str, set[str]], context: PlanContext) -> None:
    node = context.lookups[path]
    if node.parent is not None:
        wanted.setdefault(node.parent, set()).update(source for source, _ in node.conditions)
        _want_parents(node.parent, wanted, context)


def _step(node: LookupNode, columns: set[str], left: Schema, context: PlanContext) -> LookupStep | None:
    table = node.table
    assert table is not None  # noqa: S101  # a column of a lookup without a table does not resolve
    prefix = joined_name("l", node.path)
    temporal = temporal_columns(table.temporal_mode) if node.as_of.kind == "column" else ()
    needed = columns | {target for _, target in node.conditions}
    fields = (*(f for f in table.schema if f.name in needed), *temporal)
    right = right_schema(prefix, fields)
    keys = tuple(
        (
            source if node.parent is None else joined_name("l", node.parent, source),
            joined_name("l", node.path, target),
        )
        for source, target in node.conditions
    )
    if node.as_of.kind != "period_start" and table.temporal_mode != "bitemporal":
        context.mistake(
            "W1211",
            f"lookup {node.path!r} says as_of, but table {table.name!r} is {table.temporal_mode}",
            "leave as_of out, or make the table `temporal_mode: bitemporal`",
            node.at.of("as_of"),
        )
        return None
    try:
        built = build(keys, left, right, prefix=prefix, as_of=node.as_of)
    except WeftError as problem:
        context.mistake(
            "W1019", f"lookup {node.path!r}: {problem.message}", problem.help, node.at.of("join_conditions")
        )
        return None
    read = context.read(
        f"lookup.{node.path}",
        "lookup",
        node.dataset,
        table,
        tuple(f.name for f in fields),
        alias=node.path,
        as_of=node.as_of,
    )
    if read is None:
        return None
    return LookupStep(
        alias=node.path,
        dataset=node.dataset,
        table=table,
        source=read.pin.resolver_source,
        resolver_id=read.pin.resolver_id,
        read=read,
        keys=keys,
        parent=node.parent,
        on=" AND ".join(f"{source} = {node.path}.{target}" for source, target in node.conditions),
        spec=built.spec,
        resolved=built.resolved,
        choice=built.choice,
        as_of=node.as_of,
        columns=tuple(f.name for f in fields),
    )
