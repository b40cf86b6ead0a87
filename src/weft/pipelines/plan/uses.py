"""Which operations use which columns of which dataset: what a new version of the dataset may break."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from weft.expr import Typed
from weft.pipelines.plan.operations.resolved import (
    LookupStep,
    ResolvedAggregate,
    ResolvedAppend,
    ResolvedOperation,
    ResolvedOutput,
    ResolvedUpdate,
)
from weft.pipelines.plan.reads import Read

Use = tuple[str, str]
"""A column: the id of its dataset and ``table.column``."""


def column_uses(input: Read, operations: Iterable[ResolvedOperation]) -> Mapping[Use, tuple[int, ...]]:
    """Return the seqs of the operations that read or write each declared column."""
    found: dict[Use, dict[int, None]] = {}
    for op in operations:
        for use in _uses(op, input):
            found.setdefault(use, {})[op.seq] = None
    return {use: tuple(seqs) for use, seqs in found.items()}


def _uses(op: ResolvedOperation, input: Read) -> Iterator[Use]:
    if isinstance(op, ResolvedAppend):
        said = (op.selector, *(k for _, k in op.keys or ()), *(v for _, v, _ in op.values))
        yield from (_use(op.read, s[1]) for s in _slots(said) if s[0] == "w" and _declares(op.read, s[1]))
        names = [name for name, _, _ in op.values] + [name for name, _ in op.keys or ()]
        yield from (_use(input, name) for name in names if _declares(input, name))
        return
    lookups = {step.alias: step for step in op.lookups}
    joins = {step.alias: step.read for step in op.joins} if isinstance(op, ResolvedUpdate) else {}
    for slot in _slots(_expressions(op)):
        if slot[0] == "w" and _declares(input, slot[1]):
            yield _use(input, slot[1])
        elif slot[0] == "l" and slot[1] in lookups:
            yield _use(lookups[slot[1]].read, slot[2])
        elif slot[0] == "j" and slot[1] in joins and _declares(joins[slot[1]], slot[2]):
            yield _use(joins[slot[1]], slot[2])
    for step in lookups.values():
        yield from _keys_of(step, lookups, input)
    for name in _written(op):
        if _declares(input, name):
            yield _use(input, name)
    for read in joins.values():
        yield from (_use(read, name) for name in read.columns if _declares(read, name))


def _keys_of(step: LookupStep, lookups: Mapping[str, LookupStep], input: Read) -> Iterator[Use]:
    above = input if step.parent is None else lookups[step.parent].read
    for source, target in step.keys:
        yield _use(above, source.rpartition("$")[2])
        yield _use(step.read, target.rpartition("$")[2])


def _expressions(op: ResolvedOperation) -> Iterator[Typed | None]:
    if isinstance(op, ResolvedAppend):
        return
    yield op.selector
    if isinstance(op, ResolvedUpdate):
        yield from (a.typed for a in op.assignments)
        for step in op.joins:
            yield from (k for _, k in step.keys)
            yield step.own_filter
    elif isinstance(op, ResolvedAggregate):
        yield from (k for _, k in op.keys)
        yield from (v for _, v, _ in op.values)


def _written(op: ResolvedOperation) -> tuple[str, ...]:
    if isinstance(op, ResolvedUpdate):
        return tuple(a.column for a in op.assignments)
    if isinstance(op, ResolvedAggregate):
        return tuple(name for name, _, _ in op.values)
    if isinstance(op, ResolvedOutput) and op.columns != op.before.schema.names:
        return (*op.columns, *(name for name, _ in op.order_by))
    return ()


def _slots(expressions: Iterable[Typed | None]) -> Iterator[tuple[str, ...]]:
    for typed in expressions:
        for slot in typed.slots if typed is not None else ():
            if isinstance(slot, tuple):
                yield slot


def _declares(read: Read, name: str) -> bool:
    return any(c.name == name for c in read.table.columns)


def _use(read: Read, column: str) -> Use:
    return read.dataset.id, f"{read.table.name}.{column}"
