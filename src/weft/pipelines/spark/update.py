"""update on Spark: one projection for each level of assignments, rows untouched where the selector does not hold.

Before::

    selector: status = "open"        status := "done", n := n + 1

After::

    SELECT CASE WHEN a THEN 'done' ELSE status END AS status, CASE WHEN a THEN n + 1 ELSE n END AS n,
           CASE WHEN a THEN :run_at ELSE _updated_at END AS _updated_at, ...
    FROM (SELECT *, coalesce(status = 'open', false) AS a FROM working)
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, field, replace
from functools import reduce
from types import ModuleType
from typing import TYPE_CHECKING

from weft.core.types import BOOLEAN, Field
from weft.pipelines.plan.operations.resolved import (
    ACTIVE,
    LookupStep,
    ResolvedAssignment,
    ResolvedUpdate,
    join_column_name,
)
from weft.pipelines.spark.counts import JoinKeys, Key, flag_field, join_field
from weft.pipelines.spark.frame import DELETED, UPDATED_AT, Lowering, WorkingFrame, compiled, holds, nothing
from weft.pipelines.spark.joins import (
    ROW_ID,
    Joined,
    count_name,
    fan_id,
    has_match,
    number_name,
    with_join,
    with_lookup,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from weft.expr import Typed

MOST_FOLDED = 32
"""How many updates become one projection; each nests the expression of ``_updated_at`` one level deeper."""


def lower_update(frame: WorkingFrame, op: ResolvedUpdate, env: Lowering) -> WorkingFrame:
    """Return the working set after the update; no job runs."""
    F = frame.F
    flag = flag_field(op.seq)
    if _can_fold(frame, op):
        return _folded(frame, op, flag, F, env)
    frame = frame.settled()
    if not op.joins:
        rows = with_lookups(frame, op.lookups, env)
        active = active_rows(op.selector, frame, F, env)
        df = _assigned(rows.df, op.assignments, active, flag, F, env)
        return _after(frame.with_rows(df), op, env, _Marks())
    rows = with_lookups(frame, op.lookups, env, ordered=True)
    gate = active_rows(None if op.selector_after_joins else op.selector, frame, F, env)
    if gate is not None:
        rows = rows.with_column(Field(ACTIVE, BOOLEAN), gate)
    for step in op.joins:
        rows = with_join(rows, step, env)
        if step.on_multiple == "all":
            # At once, because the next join of the update may copy the rows again.
            new = F.when(has_match(step, F), fan_id(step, F)).otherwise(F.col(ROW_ID))
            rows = Joined(rows.df.withColumn(ROW_ID, new), rows.fields)
    active = None if gate is None else F.col(ACTIVE)
    if op.selector_after_joins and op.selector is not None:
        late = holds(op.selector, F, env)
        active = late if active is None else active & late
    marks = _marks(op, active, F) if env.counts is not None else _Marks()
    df = rows.df.withColumns(marks.columns) if marks.columns else rows.df
    df = _assigned(df, op.assignments, active, flag, F, env)
    return _after(frame.with_rows(df), op, env, marks)


def _can_fold(frame: WorkingFrame, op: ResolvedUpdate) -> bool:
    """Whether an update can be computed with those before it: it reads no column that is pending."""
    if op.joins or op.lookups or any(a.level > 1 for a in op.assignments):
        return False
    if frame.folded >= MOST_FOLDED:
        return False
    read = (op.selector, *(a.typed for a in op.assignments))
    slots = {
        slot[1] for typed in read for slot in (typed.slots if typed is not None else ()) if isinstance(slot, tuple)
    }
    return not slots & frame.pending.keys()


def _folded(frame: WorkingFrame, op: ResolvedUpdate, flag: Field, F: ModuleType, env: Lowering) -> WorkingFrame:
    """Return the working set with the columns of the update among those that are pending."""
    active = active_rows(op.selector, frame, F, env)
    columns: dict[str, Column] = dict(frame.pending)
    for assignment in op.assignments:
        value = compiled(assignment.typed, F, env)
        columns[assignment.column] = _where(F, active, value, assignment, columns.get(assignment.column))
    columns[UPDATED_AT] = _touched(F, active, env, columns.get(UPDATED_AT))
    if op.selector is not None and active is not None and env.counts is not None:
        columns[flag.name] = active
    return _after(replace(frame, pending=columns, folded=frame.folded + 1), op, env, _Marks())


def with_lookups(frame: WorkingFrame, steps: tuple[LookupStep, ...], env: Lowering, *, ordered: bool = False) -> Joined:
    """Return the rows of a working set with the lookups that an operation reads.

    A join needs the columns in order, also when `ordered` says that one follows.
    """
    df = frame.df.select(*frame.names) if steps or ordered else frame.df
    rows = Joined(df, (*frame.schema.fields, *frame.hidden))
    for step in steps:
        rows = with_lookup(rows, step, env)
    return rows


def active_rows(selector: Typed | None, frame: WorkingFrame, F: ModuleType, env: Lowering) -> Column | None:
    """Return which rows an operation acts on, None for all: not deleted, and the selector holds."""
    visible = ~F.col(DELETED) if frame.deleted else None
    if selector is None:
        return visible
    chosen = holds(selector, F, env)
    return chosen if visible is None else visible & chosen


def _assigned(
    df: DataFrame,
    assignments: tuple[ResolvedAssignment, ...],
    active: Column | None,
    flag: Field,
    F: ModuleType,
    env: Lowering,
) -> DataFrame:
    """Return the rows after all assignments; the flag is computed with the first level, before anything changes."""
    last = max(a.level for a in assignments)
    for level in range(1, last + 1):
        columns: dict[str, Column] = {}
        for assignment in (a for a in assignments if a.level == level):
            value = compiled(assignment.typed, F, env)
            columns[assignment.column] = _where(F, active, value, assignment)
        if level == last:
            columns[UPDATED_AT] = _touched(F, active, env)
        if level == 1 and active is not None:
            columns[flag.name] = active
        df = df.withColumns(columns)
        # Later levels use the flag: the selector would read columns that this level has changed.
        if active is not None:
            active = F.col(flag.name)
    return df


def _where(
    F: ModuleType, active: Column | None, value: Column, assignment: ResolvedAssignment, before: Column | None = None
) -> Column:
    if active is None:
        return value
    field = Field(assignment.column, assignment.dtype)
    old = nothing(F, field) if assignment.creates else F.col(assignment.column)
    old = old if before is None else before
    column: Column = F.when(active, value).otherwise(old)
    return column


def _touched(F: ModuleType, active: Column | None, env: Lowering, before: Column | None = None) -> Column:
    now = env.now(F)
    old = F.col(UPDATED_AT) if before is None else before
    column: Column = now if active is None else F.when(active, now).otherwise(old)
    return column


@dataclass(frozen=True, slots=True)
class _Marks:
    """Columns that mark the matches of the joins of an update, and what they count."""

    columns: dict[str, Column] = field(default_factory=dict)
    fields: tuple[Field, ...] = ()
    joins: JoinKeys = ()
    fan: str = ""


def _marks(op: ResolvedUpdate, active: Column | None, F: ModuleType) -> _Marks:
    made: list[tuple[Field, Column]] = []
    joins: list[tuple[str, Key, Key | None]] = []
    copies: list[Column] = []
    for index, step in enumerate(op.joins):
        prefix = join_column_name("j", step.alias)
        match = has_match(step, F)
        own = match if active is None else match & active
        matched = join_field(op.seq, index, "m")
        made.append((matched, own))
        several: Key | None = None
        if step.on_multiple != "error":
            multiple = join_field(op.seq, index, "n")
            made.append((multiple, own & (F.col(count_name(prefix)) > F.lit(1))))
            several = ("flag", multiple.name)
        if step.on_multiple == "all":
            copies.append(match & (F.col(number_name(prefix)) > F.lit(1)))
        joins.append((step.alias, ("flag", matched.name), several))
    fan = ""
    if copies:
        copy = join_field(op.seq, 0, "f")
        made.append((copy, F.coalesce(reduce(operator.or_, copies), F.lit(False))))
        fan = copy.name
    columns = {field.name: column for field, column in made}
    return _Marks(columns, tuple(field for field, _ in made), tuple(joins), fan)


def _after(frame: WorkingFrame, op: ResolvedUpdate, env: Lowering, marks: _Marks) -> WorkingFrame:
    """Return the working set with the columns after the update, and the hidden ones that are counted."""
    hidden, tally = frame.hidden, frame.tally
    if env.counts is not None:
        flag = flag_field(op.seq) if op.selector is not None else None
        hidden = (*hidden, *((flag,) if flag else ()), *marks.fields)
        tally = tally.update(op.seq, flag.name if flag else None, marks.joins, fan=marks.fan)
    after = replace(frame, schema=op.after.schema, hidden=hidden, tally=tally)
    return after.cut() if op.joins or op.lookups else after
