"""The tables that a plan opens: each once, with every column that some operation needs."""

from __future__ import annotations

from dataclasses import replace

from weft.pipelines.plan.operations.resolved import (
    LookupStep,
    ResolvedAppend,
    ResolvedOperation,
    ResolvedUpdate,
)
from weft.pipelines.plan.reads import Read


def reads_of(input: Read, operations: tuple[ResolvedOperation, ...]) -> tuple[Read, ...]:
    """Return every table that is opened; a lookup that several operations use is one read of all its columns."""
    found: dict[str, Read] = {input.name: input}
    for op in operations:
        for read in _opened(op):
            before = found.get(read.name)
            found[read.name] = read if before is None else _widened(read, before.columns)
    return tuple(found.values())


def _widened(read: Read, more: tuple[str, ...]) -> Read:
    """Return the read with more columns, declared ones in the order of their table."""
    order = {column.name: i for i, column in enumerate(read.table.columns)}
    columns = dict.fromkeys((*read.columns, *more))
    return replace(read, columns=tuple(sorted(columns, key=lambda c: order.get(c, len(order)))))


def _opened(op: ResolvedOperation) -> tuple[Read, ...]:
    lookups = () if isinstance(op, ResolvedAppend) else tuple(step.read for step in op.lookups)
    if isinstance(op, ResolvedUpdate):
        return (*lookups, *(step.read for step in op.joins))
    return (op.read,) if isinstance(op, ResolvedAppend) else lookups


def with_reads(
    operations: tuple[ResolvedOperation, ...], reads: tuple[Read, ...]
) -> tuple[ResolvedOperation, ...]:
    """Return the operations with each lookup reading all the columns that the project needs of it."""
    whole = {read.name: read for read in reads}

    def settled(steps: tuple[LookupStep, ...]) -> tuple[LookupStep, ...]:
        return tuple(replace(step, read=whole[step.read.name]) for step in steps)

    return tuple(
        op if isinstance(op, ResolvedAppend) or not op.lookups else replace(op, lookups=settled(op.lookups))
        for op in operations
    )
