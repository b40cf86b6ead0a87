"""update: joins, then the selector, then assignments that can use earlier assignments.

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

from collections.abc import Mapping
from dataclasses import replace

from weft.core.findings import ErrorCollector
from weft.core.names import fold
from weft.core.types import NULL, Field, Map, Schema
from weft.errors import OperationError, WeftError
from weft.expr import Typed
from weft.pipelines.model.operation import Assignment, Operation, Update
from weft.pipelines.plan.operations.context import (
    LABELS,
    PlanContext,
    check_expression,
    check_writable,
    convert_to_column,
    is_unknown,
    operation_scope,
    resolve_selector,
)
from weft.pipelines.plan.operations.joining import build_lookup_steps
from weft.pipelines.plan.operations.joins import JoinDraft, draft_joins, finish_join
from weft.pipelines.plan.operations.resolved import ResolvedAssignment, ResolvedJoinStep, ResolvedUpdate, WorkingSet
from weft.pipelines.plan.scopes import OperationScope, group_columns, list_slots


def resolve_update(
    op: Operation, working: WorkingSet, context: PlanContext
) -> tuple[ResolvedUpdate | None, WorkingSet]:
    """Return the resolved update, None when it has errors, and the working set after it."""
    arguments = op.arguments
    assert isinstance(arguments, Update)  # noqa: S101  # the type of an operation decides its arguments
    if not arguments.assignments:
        at = op.at.of("arguments.assignments")
        context.report("W1401", "the update has no assignments", "add one to `assignments`", at)
    drafts = draft_joins(arguments.joins, operation_scope(op, working, context), context)
    schemas = {d.alias: d.schema for d in drafts}
    chosen = resolve_selector(op.selector, operation_scope(op, working, context, schemas), context, blank=True)
    assignments, after = _assignments(op, arguments.assignments, working, schemas, context)
    late = any(slot[0] == "j" for slot in list_slots(chosen))
    _refuse_late_copies(op, drafts, context, late=late)
    slots = (*list_slots(chosen, *(a.typed for a in assignments)), *(s for d in drafts for s in d.slots))
    lookups, left = build_lookup_steps(slots, working, context)
    # A row that stays as it is needs no match, and must not fail the run because it has several.
    gated = (chosen is not None and not late) or context.may_delete
    joined = group_columns("j", slots)
    joins: list[ResolvedJoinStep] = []
    for draft in drafts:
        if not _is_resolvable(draft, left, joins):
            break
        finished = finish_join(draft, joined, left, op.seq, context, gated=gated)
        if finished is None:
            break  # later joins may depend on its columns
        joins.append(finished[0])
        left = finished[1]
    if context.errors or len(joins) < len(drafts):
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


def _refuse_late_copies(op: Operation, drafts: tuple[JoinDraft, ...], context: PlanContext, *, late: bool) -> None:
    """Report a selector on joined columns with a join that copies rows: unmatched rows must not be copied."""
    for draft in drafts:
        if late and draft.spec.on_multiple == "all":
            context.report(
                "W1209",
                f"the selector reads a joined column, and join {draft.alias!r} takes all matches",
                "put the condition into `on`, or into the selector of an operation after",
                op.selector.at if op.selector is not None else None,
            )


def _is_resolvable(draft: JoinDraft, left: Schema, before: list[ResolvedJoinStep]) -> bool:
    """Whether a join has a unique alias and reads known columns; anything else was already reported."""
    known = all(slot[0] != "w" or slot[1] in left for slot in draft.slots)
    return known and all(fold(draft.alias) != fold(step.alias) for step in before)


def _assignments(
    op: Operation,
    assignments: tuple[Assignment, ...],
    working: WorkingSet,
    joins: Mapping[str, Schema | None],
    context: PlanContext,
) -> tuple[tuple[ResolvedAssignment, ...], WorkingSet]:
    resolved: list[ResolvedAssignment] = []
    levels = Levels()
    for assignment in assignments:
        name = assignment.column.text
        good = check_writable(assignment.column, working, context)
        existing = working.schema[name].dtype if name in working.schema else None
        typed = _value(assignment, operation_scope(op, working, context, joins, "assignment"), context)
        value = None
        if typed is not None and good and not (is_unknown(typed) or existing == NULL):
            value = convert_to_column(typed, assignment.column, assignment.expression, existing, context)
        if value is not None:
            stored, dtype = value
            level = levels.next(name, {s[1] for s in list_slots(stored) if s[0] == "w"})
            resolved.append(
                ResolvedAssignment(column=name, typed=stored, dtype=dtype, creates=existing is None, level=level)
            )
            _warn_of_null_key(assignment, stored, working, context)
        # A new column exists after an invalid assignment too, with an unknown type: later ones may read it.
        if existing is None and good:
            dtype = NULL if value is None else value[1]
            working = working.with_columns((Field(name, dtype),))
    return tuple(resolved), working


def _value(assignment: Assignment, scope: OperationScope, context: PlanContext) -> Typed | None:
    """Return the typed expression; type errors of ``_labels`` are reported as W1407."""
    if assignment.column.text != LABELS:
        return check_expression(assignment.expression, scope, context)
    inner = replace(context, errors=ErrorCollector())
    typed = check_expression(assignment.expression, scope, inner)
    # A CAST, which the help for W0209 suggests, makes no map: labels get a code and a help of their own.
    wrong = typed is not None and not isinstance(typed.dtype, Map) and not is_unknown(typed)
    try:
        inner.errors.raise_all()
    except WeftError as problem:
        wrong = all(d.code == "W0209" for d in problem.diagnostics)
        if not wrong:
            context.errors.add(problem)
    if wrong:
        context.errors.add(
            OperationError(
                "_labels is a map of strings, but the expression is not a map",
                code="W1407",
                help='write LABEL_SET(_labels, "region", "EMEA"); LABEL_REMOVE removes a label',
                at=assignment.expression.at,
            )
        )
        return None
    return typed


def _warn_of_null_key(assignment: Assignment, typed: Typed, working: WorkingSet, context: PlanContext) -> None:
    name = assignment.column.text
    if typed.nullable and name in working.dataset.natural_key_columns:
        context.warn(
            "W1405",
            f"column {name!r} is part of the natural key and may become NULL",
            "wrap the value in COALESCE(..., a value)",
            assignment.expression.at,
        )


class Levels:
    """Groups assignments that can be computed together, so that each uses the results of earlier ones.

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
