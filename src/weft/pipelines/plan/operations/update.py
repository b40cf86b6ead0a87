"""update: joins, then the selector, then assignments that see each other's results.

Before::

    selector: status = "open"
    joins: fx        assignments: usd := amount * fx.rate, status := "done", tax := usd * 0.2

After::

    active   status = "open", once, before anything changes
    join     fx, for active rows
    level 1  usd := amount * fx.rate    status := "done"
    level 2  tax := usd * 0.2
"""

from __future__ import annotations

from weft.core.findings import ErrorCollector
from weft.core.names import fold
from weft.core.types import NULL, Field, Map, Schema
from weft.errors import OperationError, WeftError
from weft.expr import Typed
from weft.pipelines.model.operation import Assignment, Operation, Update
from weft.pipelines.plan.operations.context import (
    LABELS,
    PlanContext,
    checked,
    fitted,
    is_unknown,
    selector,
    writable,
)
from weft.pipelines.plan.operations.joining import lookup_steps, used_lookups
from weft.pipelines.plan.operations.joins import JoinDraft, draft_joins, finish_join
from weft.pipelines.plan.operations.resolved import (
    ResolvedAssignment,
    ResolvedJoinStep,
    ResolvedUpdate,
    WorkingSet,
)
from weft.pipelines.plan.scopes import OperationScope, Where

Slots = tuple[tuple[str, ...], ...]


def resolve_update(
    op: Operation, working: WorkingSet, context: PlanContext
) -> tuple[ResolvedUpdate | None, WorkingSet]:
    """Return the update on the columns at hand, None after noting mistakes, and the columns after it."""
    said = op.arguments
    assert isinstance(said, Update)  # noqa: S101  # the type of an operation decides its arguments
    if not said.assignments:
        context.report(
            "W1401", "the update assigns nothing", "give it an assignment", op.at.of("arguments.assignments")
        )
    plain = _scope(op, working, context)
    drafts = draft_joins(said.joins, plain, context)
    chosen = selector(op.selector, _scope(op, working, context, drafts), context, blank=True)
    assignments, after = _assignments(op, said.assignments, working, drafts, context)
    late = any(slot[0] == "j" for slot in slots_of(chosen))
    _refuse_late_copies(op, drafts, context, late=late)
    read = [chosen, *(a.typed for a in assignments)]
    used = used_lookups((*read, *(k for d in drafts for k in d.keys)))
    for draft in drafts:
        for slot in draft.residual_slots:
            if slot[0] == "l":
                used.setdefault(slot[1], set()).add(slot[2])
    lookups, left = lookup_steps(used, working, context)
    gated = (chosen is not None and not late) or context.may_delete
    joined = _joined_columns(read, drafts)
    joins: list[ResolvedJoinStep] = []
    for draft in drafts:
        if not _can_be_made(draft, left, joins):
            break
        found = finish_join(draft, joined, left, op.seq, context, gated=gated)
        if found is None:
            break  # later joins may be made with its columns
        joins.append(found[0])
        left = found[1]
    if context.mistakes or len(joins) < len(drafts):
        return None, after
    resolved = ResolvedUpdate(
        seq=op.seq,
        name=op.name,
        selector=chosen,
        selector_after_joins=late,
        lookups=lookups,
        joins=tuple(joins),
        assignments=assignments,
        before=working,
        after=after,
    )
    return resolved, after


def _scope(
    op: Operation,
    working: WorkingSet,
    context: PlanContext,
    drafts: tuple[JoinDraft, ...] = (),
    where: Where = "expression",
) -> OperationScope:
    return OperationScope(
        working=working,
        lookups=context.lookups,
        joins={d.alias: d.schema for d in drafts},
        elsewhere={alias: seq for alias, seq in context.aliases.items() if seq != op.seq},
        where=where,
    )


def _refuse_late_copies(
    op: Operation, drafts: tuple[JoinDraft, ...], context: PlanContext, *, late: bool
) -> None:
    """Note a selector that would decide after rows were copied: rows it does not match must stay one."""
    for draft in drafts:
        if late and draft.spec.on_multiple == "all":
            context.report(
                "W1209",
                f"the selector reads a joined column, and join {draft.alias!r} takes all matches",
                "put the condition into `on`, or into the selector of an operation after",
                op.selector.at if op.selector is not None else None,
            )


def _can_be_made(draft: JoinDraft, left: Schema, before: list[ResolvedJoinStep]) -> bool:
    """Whether a join has an alias of its own and reads columns that are known; anything else was reported."""
    known = all(slot[0] != "w" or slot[1] in left for slot in draft.slots)
    return known and all(fold(draft.alias) != fold(step.alias) for step in before)


def slots_of(typed: Typed | None) -> Slots:
    """Return the columns that an expression reads."""
    return tuple(s for s in (typed.slots if typed is not None else ()) if isinstance(s, tuple))


def _joined_columns(read: list[Typed | None], drafts: tuple[JoinDraft, ...]) -> dict[str, set[str]]:
    """Return the columns of each alias that assignments, the selector and conditions across sides read."""
    used: dict[str, set[str]] = {}
    slots = [s for typed in read for s in slots_of(typed)]
    for slot in (*slots, *(s for d in drafts for s in d.slots)):
        if slot[0] == "j":
            used.setdefault(slot[1], set()).add(slot[2])
    return used


def _assignments(
    op: Operation,
    said: tuple[Assignment, ...],
    working: WorkingSet,
    drafts: tuple[JoinDraft, ...],
    context: PlanContext,
) -> tuple[tuple[ResolvedAssignment, ...], WorkingSet]:
    found: list[ResolvedAssignment] = []
    levels = Levels()
    for assignment in said:
        name = assignment.column.text
        good = writable(assignment.column, working, context)
        existing = working.schema[name].dtype if name in working.schema else None
        typed = _value(assignment, _scope(op, working, context, drafts, "assignment"), context)
        value = None
        if typed is not None and good and not (is_unknown(typed) or existing == NULL):
            value = fitted(typed, assignment.column, assignment.expression, existing, context)
        if value is not None:
            stored, dtype = value
            level = levels.next(name, {s[1] for s in slots_of(stored) if s[0] == "w"})
            found.append(
                ResolvedAssignment(
                    column=name, typed=stored, dtype=dtype, creates=existing is None, level=level
                )
            )
            _warn_of_null_key(assignment, stored, working, context)
        if existing is None and good:
            dtype = NULL if value is None else value[1]
            working = working.with_columns((Field(name, dtype),))
    return tuple(found), working


def _value(assignment: Assignment, scope: OperationScope, context: PlanContext) -> Typed | None:
    """Return the typed expression; what is wrong with one for ``_labels`` is told in terms of labels."""
    if assignment.column.text != LABELS:
        return checked(assignment.expression, scope, context)
    inner = context.at_operation(ErrorCollector(), may_delete=context.may_delete)
    typed = checked(assignment.expression, scope, inner)
    wrong = typed is not None and not isinstance(typed.dtype, Map) and not is_unknown(typed)
    try:
        inner.mistakes.raise_all()
    except WeftError as problem:
        wrong = all(d.code == "W0209" for d in problem.diagnostics)
        if not wrong:
            context.mistakes.add(problem)
    if wrong:
        context.mistakes.add(
            OperationError(
                "_labels is a map of names to texts, and the expression gives none",
                code="W1407",
                help='write LABEL_SET(_labels, "region", "EMEA"); LABEL_REMOVE takes a label away',
                at=assignment.expression.at,
            )
        )
        return None
    return typed


def _warn_of_null_key(
    assignment: Assignment, typed: Typed, working: WorkingSet, context: PlanContext
) -> None:
    name = assignment.column.text
    if typed.nullable and name in working.dataset.natural_key_columns:
        context.warn(
            "W1405",
            f"column {name!r} is part of the natural key and may become NULL",
            "wrap the value in COALESCE(..., a value)",
            assignment.expression.at,
        )


class Levels:
    """Which assignments can be computed together so that each sees what those before it wrote.

    >>> levels = Levels()
    >>> levels.next("usd", {"amount"}), levels.next("tax", {"usd"}), levels.next("amount", {"fee"})
    (1, 2, 1)
    >>> levels.next("usd", {"fee"})  # tax read it on level 2
    2
    """

    def __init__(self) -> None:
        self._written: dict[str, int] = {}
        self._read: dict[str, int] = {}

    def next(self, column: str, reads: set[str]) -> int:
        """Return the level of an assignment that writes `column` and reads columns of the working set."""
        level = self._read.get(column, 1)
        for name in (*reads, column):
            if name in self._written:
                level = max(level, self._written[name] + 1)
        self._written[column] = level
        for name in reads:
            self._read[name] = max(self._read.get(name, 1), level)
        return level
