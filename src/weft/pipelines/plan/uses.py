"""What a project uses: the columns of datasets by operation, the tables that a plan opens, and its selectors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from weft.core.types import BOOLEAN, NULL
from weft.errors import Diagnostic, ExpressionError
from weft.expr import Expr, Lit, Typed, check, interpolate, parse
from weft.expr import selectors as selectors_in
from weft.pipelines.model.project import Project
from weft.pipelines.plan.failures import Failure
from weft.pipelines.plan.operations.context import PlanContext
from weft.pipelines.plan.operations.resolved import (
    LookupStep,
    ResolvedAggregate,
    ResolvedAppend,
    ResolvedOperation,
    ResolvedOutput,
    ResolvedUpdate,
    WorkingSet,
)
from weft.pipelines.plan.reads import Read
from weft.pipelines.plan.scopes import OperationScope, list_slots

Use = tuple[str, str]
"""A column: the id of its dataset and ``table.column``."""


def find_column_uses(input: Read, operations: Iterable[ResolvedOperation]) -> Mapping[Use, tuple[int, ...]]:
    """Return the seqs of the operations that read or write each declared column."""
    uses: dict[Use, dict[int, None]] = {}
    for op in operations:
        for use in _uses(op, input):
            uses.setdefault(use, {})[op.seq] = None
    return {use: tuple(seqs) for use, seqs in uses.items()}


def _uses(op: ResolvedOperation, input: Read) -> Iterator[Use]:
    # The expressions of an append are on the rows of its source, the columns it writes are those of the input.
    source = op.read if isinstance(op, ResolvedAppend) else input
    lookups = {step.alias: step for step in op.lookups}
    joins = {step.alias: step.read for step in op.joins} if isinstance(op, ResolvedUpdate) else {}
    for slot in list_slots(*_expressions(op)):
        if slot[0] == "w" and _declares(source, slot[1]):
            yield _use(source, slot[1])
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
        # A key of a nested lookup has its name during the operation, which ends in `$column`.
        yield _use(above, source.rpartition("$")[2])
        yield _use(step.read, target.rpartition("$")[2])


def _expressions(op: ResolvedOperation) -> Iterator[Typed | None]:
    yield op.selector
    if isinstance(op, ResolvedUpdate):
        yield from (a.typed for a in op.assignments)
        for step in op.joins:
            yield from (k for _, k in step.keys)
            yield step.own_filter
    elif isinstance(op, ResolvedAggregate | ResolvedAppend):
        yield from (k for _, k in op.keys or ())
        yield from (v for _, v, _ in op.values)


def _written(op: ResolvedOperation) -> tuple[str, ...]:
    if isinstance(op, ResolvedUpdate):
        return tuple(a.column for a in op.assignments)
    if isinstance(op, ResolvedAggregate):
        return tuple(name for name, _, _ in op.values)
    if isinstance(op, ResolvedAppend):
        return (*(name for name, _, _ in op.values), *(name for name, _ in op.keys or ()))
    # An output of all columns names none of them, and so does not break when one is removed.
    if isinstance(op, ResolvedOutput) and op.columns != op.before.schema.names:
        return (*op.columns, *(name for name, _ in op.order_by))
    return ()


def _declares(read: Read, name: str) -> bool:
    return any(c.name == name for c in read.table.columns)


def _use(read: Read, column: str) -> Use:
    return read.dataset.id, f"{read.table.name}.{column}"


def collect_reads(input: Read, operations: tuple[ResolvedOperation, ...]) -> tuple[Read, ...]:
    """Return the tables that are opened; a lookup used by several operations is one read with all its columns."""
    reads: dict[str, Read] = {input.name: input}
    for op in operations:
        for read in op.reads:
            before = reads.get(read.name)
            reads[read.name] = read if before is None else _widened(read, before.columns)
    return tuple(reads.values())


def _widened(read: Read, more: tuple[str, ...]) -> Read:
    """Return the read with more columns; declared columns keep the order of their table."""
    order = {column.name: i for i, column in enumerate(read.table.columns)}
    columns = dict.fromkeys((*read.columns, *more))
    return replace(read, columns=tuple(sorted(columns, key=lambda c: order.get(c, len(order)))))


def share_reads(operations: tuple[ResolvedOperation, ...], reads: tuple[Read, ...]) -> tuple[ResolvedOperation, ...]:
    """Return the operations with each lookup reading all the columns that the project needs of it."""
    by_name = {read.name: read for read in reads}

    def widen(step: LookupStep) -> LookupStep:
        return replace(step, read=by_name[step.read.name])

    return tuple(replace(op, lookups=tuple(map(widen, op.lookups))) if op.lookups else op for op in operations)


def parse_selectors(project: Project, failures: list[Failure]) -> Mapping[str, Expr]:
    """Return the parsed named selectors; an invalid one becomes NULL, so that it is reported only once."""
    trees: dict[str, Expr] = {}
    for name, text in project.selectors.items():
        try:
            trees[name] = parse(text.text, source=text.at)
        except ExpressionError as problem:
            failures += [Failure.of(d, None, named_selector=True) for d in problem.diagnostics]
            trees[name] = Lit(None, NULL)  # NULL is a valid condition wherever the selector is used
    return trees


def check_unused_selectors(
    project: Project, working: WorkingSet, context: PlanContext, failures: list[Failure]
) -> None:
    """Check the selectors that no operation uses against the columns of the input."""
    used = _used_selectors(project, context.selectors)
    scope = OperationScope(working=working, lookups=context.lookups, elsewhere=context.aliases)
    for name, tree in context.selectors.items():
        if name in used or isinstance(tree, Lit):
            continue
        try:
            typed = check(interpolate(tree, context.selectors), scope)
        except ExpressionError as problem:
            failures += [Failure.of(d, None, named_selector=True) for d in problem.diagnostics]
            continue
        if typed.dtype not in (BOOLEAN, NULL):
            finding = Diagnostic(
                "W1406",
                f"selector {name!r} is of type {typed.dtype}, not boolean",
                help="compare it with something, as in ... = 1",
                at=project.selectors[name].at,
            )
            failures.append(Failure.of(finding, None, named_selector=True))


def _used_selectors(project: Project, selectors: Mapping[str, Expr]) -> set[str]:
    texts = str([op.to_dict() for op in project.operations])
    # In the text, because an operation that is invalid has no parsed expressions and still uses its selectors.
    used = {name for name in selectors if f"{{{{{name}}}}}" in texts.replace(" ", "")}
    reached: set[str] = set()
    while used - reached:
        name = (used - reached).pop()
        reached.add(name)
        used |= {s.name for s in selectors_in(selectors[name]) if s.name in selectors}
    return used
