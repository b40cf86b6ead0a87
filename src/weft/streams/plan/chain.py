"""Plans the joins of a statement in order: each JOIN becomes a step, with the conditions of WHERE that belong to it.

A step is a stateful join of two streams, a lookup in a table, or a join that keeps the unmatched rows of a table.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

from weft.core.duration import Duration
from weft.core.findings import Findings
from weft.expr import Typed
from weft.joins.resolve.resolved import ResolvedJoin, SameWindow, Within
from weft.joins.spec.temporal import WindowSpec
from weft.streams.kernel.spec import Emit, Reach, StreamHow
from weft.streams.plan.bounds import (
    Form,
    TimeConditions,
    Windowed,
    convert_times,
    find_bounds,
    locate,
    parse_comparison,
    resolve_form,
)
from weft.streams.plan.clocks import compute_needed
from weft.streams.plan.joining import (
    JoinConditions,
    build_batch_names,
    check_condition,
    combine_all,
    find_equal_keys,
    find_sources,
    resolve_batch_join,
    resolve_keys,
)
from weft.streams.plan.kernel_spec import is_vectorised
from weft.streams.plan.resolved import KernelStep, Step, StepKey, TableStep, time_slot
from weft.streams.plan.scope import FromSource, StatementScope, find_padded, map_time_slots
from weft.streams.sql.spec import JobSpec, JoinStepSpec, StatementSpec, TableSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Joining(TimeConditions):
    """A JOIN with everything that its step depends on.

    `how` is the kind of join after the sides are swapped where FROM begins with a table; `is_last` is true
    if no join of two streams follows.
    """

    how: StreamHow
    conditions: JoinConditions
    times: Mapping[Hashable, int]
    is_last: bool
    findings: Findings

    @property
    def numbers(self) -> tuple[int, ...]:
        """The numbers of the sources that are joined already."""
        return tuple(s.number for s in self.lefts)


@dataclass(frozen=True, slots=True, kw_only=True)
class _ResolvedParts:
    """The parts that both kinds of step have: keys, the remaining condition, the join over two schemas."""

    keys: tuple[StepKey, ...]
    residual: Typed | None
    resolved: ResolvedJoin

    @property
    def vectorised(self) -> bool:
        return self.residual is None or is_vectorised(self.residual)


def build_stream_step(joining: Joining) -> KernelStep | None:
    """Return the join of two streams, or None after adding findings."""
    form = resolve_form(joining, joining.findings)
    rest = joining.conditions.residual
    if isinstance(form, Windowed):
        # A window join has no bounds, so the comparisons of times in ON filter its pairs.
        rest = (*rest, *(u for u in joining.bounds.used if not _is_among(u, joining.conditions.moved)))
    if form is not None:
        _add_unbounding_times(joining, rest)
    parts = _resolve_parts(joining, form, rest)
    if form is None or parts is None:
        return None
    match = parts.resolved.match
    if not isinstance(match, Within | SameWindow):
        return None
    return KernelStep(
        number=0,
        left=joining.numbers,
        right=joining.right.number,
        how=joining.how,
        keys=parts.keys,
        reach=_build_reach(match),
        axis=(time_slot(form.left), time_slot(joining.right.number)),
        residual=parts.residual,
        vectorised=parts.vectorised,
        limits=joining.join.limits,
        missing_event_time=joining.join.missing_event_time,
        resolved=parts.resolved,
        bound_from=_describe_origin(form, joining),
    )


def _build_reach(match: Within | SameWindow) -> Reach:
    """Return the time condition in the form of the kernel."""
    if isinstance(match, Within):
        return Reach(kind="interval", lower=int(match.lower or 0), upper=int(match.upper or 0))
    return Reach(
        kind=match.kind, size=match.size or 0, slide=match.slide or 0, gap=match.gap or 0, per_window=match.per_window
    )


def _resolve_parts(joining: Joining, form: Form | None, rest: Sequence[Typed]) -> _ResolvedParts | None:
    is_stateful = joining.right.is_stream or joining.how in ("right", "full")
    keys = resolve_keys(
        joining.join, joining.conditions, joining.lefts, joining.right, joining.findings, is_stateful=is_stateful
    )
    needs_form = joining.right.is_stream and form is None
    if needs_form or not keys or len(keys) < len(joining.conditions.keys):
        return None
    residual = combine_all(rest)
    names = build_batch_names(joining.lefts, joining.right)
    resolved = resolve_batch_join(
        joining.join, joining.how, keys, form, residual, names, joining.right.number, joining.findings
    )
    if resolved is None:
        return None
    return _ResolvedParts(keys=keys, residual=convert_times(residual), resolved=resolved)


def _describe_origin(form: Form, joining: Joining) -> str:
    moved = [u for u in joining.bounds.used if _is_among(u, joining.conditions.moved)]
    if "ON" not in form.declared_by or not moved:
        return form.declared_by
    is_all = len(moved) == len(joining.bounds.used)
    return form.declared_by.replace("ON", "WHERE" if is_all else "ON and WHERE")


def _is_among(part: Typed, parts: Sequence[Typed]) -> bool:
    # By identity: two equal conditions may be in ON and in WHERE.
    return any(part is p for p in parts)


def _add_unbounding_times(joining: Joining, rest: Sequence[Typed]) -> None:
    right = joining.right.number
    for part in rest:
        timed = {joining.times[s] for s in part.slots if s in joining.times}
        if right in timed and len(timed) > 1 and parse_comparison(part, joining.times, right) is None:
            message = "this condition on times filters pairs but is not a bound"
            help = "a bound compares two event times and a constant, and is combined with other conditions by AND"
            joining.findings.add("W2115", message, locate(part), help, severity="note")


def build_table_step(joining: Joining) -> Step | None:
    """Return the join of a stream with a table, or None after adding findings."""
    table = joining.right.spec
    assert isinstance(table, TableSpec)  # noqa: S101  # checked by the caller
    if joining.join.form is not None:
        message = f"WITHIN and WINDOW have no effect: {table.name!r} is a table, whose rows have no event time"
        help = "remove it; rows match by the keys alone"
        joining.findings.add("W2119", message, joining.join.form_at or joining.join.at, help)
    parts = _resolve_parts(joining, None, joining.conditions.residual)
    if parts is None:
        return None
    if joining.how in ("right", "full"):
        return _build_kept_table(joining, table, parts)
    return TableStep(
        number=0,
        left=joining.numbers,
        right=joining.right.number,
        table=table,
        how="left" if joining.how == "left" else "inner",
        keys=parts.keys,
        residual=parts.residual,
        reason=_describe_lookup(table),
        resolved=parts.resolved,
    )


def _build_kept_table(joining: Joining, table: TableSpec, parts: _ResolvedParts) -> KernelStep | None:
    """Return the step of a join that emits the unmatched rows of a table at the end."""
    at = joining.join.how_at or joining.join.at
    word = joining.join.how.upper()
    if table.reload == "batch":
        message = f"{word} JOIN keeps the unmatched rows of {table.name!r}, but the table is read again for each batch"
        help = "set 'reload' = 'start' for the table, or write a join that does not keep its rows"
        joining.findings.add("W2119", message, at, help)
        return None
    if not joining.is_last:
        # Unmatched rows of the table have no time, so a later join of streams could not match them.
        message = f"{word} JOIN of the table {table.name!r} is followed by a join of two streams"
        joining.findings.add("W2119", message, at, "join the streams first and the table last")
        return None
    return KernelStep(
        number=0,
        left=joining.numbers,
        right=joining.right.number,
        how=joining.how,
        keys=parts.keys,
        reach=Reach(kind="table"),
        axis=None,
        residual=parts.residual,
        vectorised=parts.vectorised,
        # The limits are for streams: a table is finite, and each of its rows is needed until the end.
        limits=replace(joining.join.limits, max_state_rows=None, max_rows_per_key=None),
        resolved=parts.resolved,
        bound_from="table",
    )


def _describe_lookup(table: TableSpec) -> str:
    if table.reload == "batch":
        return "read again for each batch; a repeated run may read other rows"
    return "read at the first start and kept with the checkpoint"


_MIRRORED: dict[StreamHow, StreamHow] = {"inner": "inner", "left": "right", "right": "left", "full": "full"}


class Chain:
    """Plans the joins of one statement; `moved` are the conditions of WHERE that became part of a join."""

    def __init__(
        self, job: JobSpec, statement: StatementSpec, members: Sequence[FromSource], findings: Findings
    ) -> None:
        self.job = job
        self.statement = statement
        self.members = tuple(members)
        self.findings = findings
        self.times = map_time_slots(members)
        self.moved: list[Typed] = []

    def scope(self, upto: int | None = None) -> StatementScope:
        """Return the scope of SELECT and WHERE, or of the ON of join `upto`."""
        joins = self.statement.joins if upto is None else self.statement.joins[: upto - 1]
        visible = self.members if upto is None else self.members[: upto + 1]
        padded = frozenset[int]().union(*(g for p, j in enumerate(joins, start=1) for g in find_padded(j.how, p)))
        windowed = [i for i, j in enumerate(joins, start=1) if self._window(i, j) is not None]
        # The columns of the window are those of the last window join; an outer join after it may fill them with NULL.
        kind = self._window(windowed[-1], joins[windowed[-1] - 1]) if windowed else None
        after = joins[windowed[-1] :] if windowed else ()
        return StatementScope(
            sources=tuple(replace(m, padded=m.number in padded) for m in visible),
            has_window=upto is None and kind in ("tumbling", "sliding"),
            window_padded=any(j.how in ("right", "full") for j in after),
            no_window=_explain_no_window(upto, kind),
        )

    def _window(self, place: int, join: JoinStepSpec) -> str | None:
        is_window = isinstance(join.form, WindowSpec) and self._is_stream_join(place)
        return join.form.window if is_window else None  # type: ignore[union-attr]  # checked above

    def _is_stream_join(self, place: int) -> bool:
        return self.members[place].is_stream and any(m.is_stream for m in self.members[:place])

    def build_steps(self, where: Sequence[Typed] | None) -> tuple[Step, ...] | None:
        """Return the steps, or None after adding findings."""
        if not self._check_first_stream():
            return None
        steps: list[Step] = []
        for place, join in enumerate(self.statement.joins, start=1):
            step = self._build_step(place, join, where or ())
            steps += [] if step is None else [step]  # later joins are checked as well, for their errors
        self._check_order()
        return tuple(self._complete(steps)) if len(steps) == len(self.statement.joins) else None

    def _build_step(self, place: int, join: JoinStepSpec, where: Sequence[Typed]) -> Step | None:
        # `FROM table JOIN stream` is planned from the side of the stream, which is the one that drives the join.
        is_swapped = place == 1 and not self.members[0].is_stream
        lefts, right = ((1,), 0) if is_swapped else (tuple(range(place)), place)
        conditions = self._find_conditions(place, right, lefts, join, where)
        if conditions is None:
            return None
        joining = Joining(
            join=join,
            bounds=conditions.bounds,
            is_misplaced=conditions.is_misplaced,
            how=_MIRRORED[join.how] if is_swapped else join.how,
            lefts=tuple(self.members[n] for n in lefts),
            right=self.members[right],
            conditions=conditions,
            times=self.times,
            default=join.default_bound or self.job.settings.get("join.default_bound"),
            is_last=not any(self._is_stream_join(p) for p in range(place + 1, len(self.members))),
            findings=self.findings,
        )
        if not self.members[right].is_stream:
            return build_table_step(joining)
        step = build_stream_step(joining)
        if step is not None and step.reach.kind != "interval":
            # Conditions on times are not bounds of a window join, so those of WHERE remain there.
            self.moved = [m for m in self.moved if not _is_among(m, conditions.bounds.used)]
        return step

    def _check_first_stream(self) -> bool:
        if any(m.is_stream for m in self.members[:2]):
            return True
        message = "one of the first two sources of a statement must be a stream"
        help = "write the stream first in FROM and join the tables to it"
        self.findings.add("W2119", message, self.statement.first_at or self.statement.at, help)
        return False

    def _find_conditions(
        self, place: int, right: int, lefts: Sequence[int], join: JoinStepSpec, where: Sequence[Typed]
    ) -> JoinConditions | None:
        parts = check_condition(join.on, self.scope(place), self.findings)
        if parts is None:
            return None
        own_times = [p for p in parts if parse_comparison(p, self.times, right) is not None]
        # Two event times that must be equal are a bound of 0s, not a key.
        keys, rest = find_equal_keys([p for p in parts if not _is_among(p, own_times)], right)
        movable = self._find_movable(place, where)
        timed = [w for w in movable if parse_comparison(w, self.times, right) is not None]
        if not keys:
            keys, _ = find_equal_keys([w for w in movable if not _is_among(w, timed)], right)
            self.moved.extend(k.typed for k in keys)
        if not self.members[right].is_stream:
            return JoinConditions(keys=keys, residual=(*rest, *own_times))
        bounds = find_bounds((*rest, *own_times, *timed), self.times, right, order=lefts)
        moved = tuple(w for w in timed if _is_among(w, bounds.used))
        self.moved.extend(moved)
        residual = tuple(r for r in bounds.residual if not _is_among(r, timed))
        elsewhere = [w for w in where if parse_comparison(w, self.times, right) and not _is_among(w, timed)]
        return JoinConditions(keys=keys, bounds=bounds, residual=residual, moved=moved, is_misplaced=bool(elsewhere))

    def _find_movable(self, place: int, where: Sequence[Typed]) -> list[Typed]:
        """Return the conditions of WHERE that are equivalent in the ON of a join."""
        # Before an outer join the condition would only decide which rows match; after it, it removes rows.
        hows = [j.how for j in self.statement.joins]
        if any(h != "inner" for h in hows[:place]) or any(h in ("right", "full") for h in hows[place:]):
            return []
        return [w for w in where if max(find_sources(w), default=-1) == place]

    def _check_order(self) -> None:
        """Report a session before another join of streams, and what EMIT FINAL means in a chain."""
        places = [p for p in range(1, len(self.members)) if self._is_stream_join(p)]
        joins = self.statement.joins
        # A session can grow forever, so the clocks after it would never be bounded.
        for place in places[:-1]:
            if self._window(place, joins[place - 1]) == "session":
                self.findings.add(
                    "W2113",
                    "a session join is followed by another join of streams, but the length of a session is not bounded",
                    joins[place - 1].form_at or joins[place - 1].at,
                    "make it the last join of streams, or use a tumbling or sliding window",
                )
        if len(places) > 1 and self.statement.emit == "final":
            last = self.members[places[-1]].alias
            self.findings.add(
                "W2112",
                f"EMIT FINAL applies to the last join of streams, that of {last}; the joins before it emit"
                " their pairs immediately",
                self.statement.emit_at,
                "split the statement into two jobs if an earlier join must be final too",
                severity="note",
            )

    def _complete(self, steps: Sequence[Step]) -> list[Step]:
        """Return the steps with their numbers, emit policy and retention."""
        # Only the last join of streams emits finally: those before it feed it, and it needs their pairs early.
        last = max((i for i, s in enumerate(steps) if isinstance(s, KernelStep) and s.axis is not None), default=None)
        numbered: list[Step] = []
        for index, step in enumerate(steps):
            changed = replace(step, number=index + 1)
            if isinstance(changed, KernelStep) and index == last:
                changed = replace(changed, emit=self._resolve_emit(changed))
            numbered.append(changed)
        # After the policies: how long rows are kept depends on when they are emitted.
        needs = iter(compute_needed(s for s in numbered if isinstance(s, KernelStep)))
        return [self._set_retention(s, next(needs)) if isinstance(s, KernelStep) else s for s in numbered]

    def _resolve_emit(self, last: KernelStep) -> Emit:
        if self.statement.emit is not None:
            return self.statement.emit
        return "final" if last.reach.kind != "interval" else "changes"

    def _set_retention(self, step: KernelStep, needs: tuple[int, int]) -> KernelStep:
        join = self.statement.joins[max(step.right, 1) - 1]
        if join.retention is None or step.axis is None:
            return replace(step, needed=needs, retention=needs)
        # Never less than the match needs: rows would leave the state before their matches arrive.
        requested = join.retention.microseconds
        if requested < max(needs):
            self.findings.add(
                "W2107",
                f"join.retention {Duration(requested)} is less than the {Duration(max(needs))} that the join needs",
                join.retention_at or join.at,
                f"remove it, or write at least '{Duration(max(needs))}'",
            )
        return replace(step, needed=needs, retention=(max(needs[0], requested), max(needs[1], requested)))


def _explain_no_window(upto: int | None, kind: str | None) -> str:
    if upto is not None:
        return "the window of a join is available in SELECT and WHERE only"
    if kind == "session":
        return "a session has no fixed window"
    return "no join of this statement has a window"
