"""The joins of a statement in order: each JOIN becomes a step, with what WHERE adds to it.

A step is a join of two streams with state, a lookup into a table, or a table whose unmatched rows are kept.
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
from weft.streams.plan.bounds import bounds_of, comparison, in_microseconds, place_of
from weft.streams.plan.clocks import compute_needed
from weft.streams.plan.forms import Form, Saying, Windowed, settled_form
from weft.streams.plan.joining import (
    JoinConditions,
    all_of,
    batch_names,
    checked,
    equal_keys,
    resolved_join,
    settled_keys,
    sources,
)
from weft.streams.plan.kernel_spec import is_vectorised
from weft.streams.plan.resolved import KernelStep, Step, StepKey, TableStep, time_slot
from weft.streams.plan.scope import FromSource, StatementScope, time_slots
from weft.streams.sql.spec import Bounds, JobSpec, JoinStepSpec, StatementSpec, TableSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Joining:
    """A JOIN with everything around it that its step depends on.

    `how` is the kind of join after the sides were exchanged where FROM begins with a table; `is_last`
    says whether no join of two streams comes behind it.
    """

    join: JoinStepSpec
    how: StreamHow
    lefts: tuple[FromSource, ...]
    right: FromSource
    conditions: JoinConditions
    times: Mapping[Hashable, int]
    default: Bounds | None
    is_last: bool
    findings: Findings

    @property
    def numbers(self) -> tuple[int, ...]:
        """The sources that are joined already."""
        return tuple(s.number for s in self.lefts)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Settled:
    """What both kinds of step need: keys, the condition that is left, the join over two schemas."""

    keys: tuple[StepKey, ...]
    residual: Typed | None
    resolved: ResolvedJoin

    @property
    def vectorised(self) -> bool:
        return self.residual is None or is_vectorised(self.residual)


def stream_step(joining: Joining) -> KernelStep | None:
    """Return the join of two streams, or None after noting what is wrong with it."""
    bounds = joining.conditions.bounds
    form = settled_form(
        Saying(
            join=joining.join,
            bounds=bounds,
            default=joining.default,
            lefts=joining.lefts,
            right=joining.right,
            is_misplaced=joining.conditions.is_misplaced,
        ),
        joining.findings,
    )
    rest = joining.conditions.residual
    if isinstance(form, Windowed):
        rest = (*rest, *(u for u in bounds.used if not _among(u, joining.conditions.moved)))
    if form is not None:
        _note_loose_times(joining, rest)
    settled = _settled(joining, form, rest)
    if form is None or settled is None:
        return None
    match = settled.resolved.match
    if not isinstance(match, Within | SameWindow):
        return None
    return KernelStep(
        number=0,
        left=joining.numbers,
        right=joining.right.number,
        how=joining.how,
        keys=settled.keys,
        reach=_reach(match),
        axis=(time_slot(form.left), time_slot(joining.right.number)),
        residual=settled.residual,
        vectorised=settled.vectorised,
        limits=joining.join.limits,
        missing_event_time=joining.join.missing_event_time,
        resolved=settled.resolved,
        bound_from=_said_by(form, joining.conditions),
    )


def _reach(match: Within | SameWindow) -> Reach:
    """Return which times meet, as the kernel takes it."""
    if isinstance(match, Within):
        return Reach(kind="interval", lower=int(match.lower or 0), upper=int(match.upper or 0))
    return Reach(
        kind=match.kind,
        size=match.size or 0,
        slide=match.slide or 0,
        gap=match.gap or 0,
        per_window=match.per_window,
    )


def _settled(joining: Joining, form: Form | None, rest: Sequence[Typed]) -> _Settled | None:
    keys = settled_keys(joining.join, joining.conditions, joining.lefts, joining.right, joining.findings)
    needs_form = joining.right.is_stream and form is None
    if needs_form or not keys or len(keys) < len(joining.conditions.keys):
        return None
    residual = all_of(rest)
    names = batch_names(joining.lefts, joining.right)
    resolved = resolved_join(
        joining.join, joining.how, keys, form, residual, names, joining.right.number, joining.findings
    )
    return (
        None
        if resolved is None
        else _Settled(keys=keys, residual=in_microseconds(residual), resolved=resolved)
    )


def _said_by(form: Form, conditions: JoinConditions) -> str:
    moved = [u for u in conditions.bounds.used if _among(u, conditions.moved)]
    if "ON" not in form.said_by or not moved:
        return form.said_by
    whole = len(moved) == len(conditions.bounds.used)
    return form.said_by.replace("ON", "WHERE" if whole else "ON and WHERE")


def _among(part: Typed, parts: Sequence[Typed]) -> bool:
    return any(part is p for p in parts)


def _note_loose_times(joining: Joining, rest: Sequence[Typed]) -> None:
    right = joining.right.number
    for part in rest:
        timed = {joining.times[s] for s in part.slots if s in joining.times}
        if right in timed and len(timed) > 1 and comparison(part, joining.times, right) is None:
            joining.findings.add(
                "W2115",
                "this condition on times is asked of each pair, it bounds nothing",
                place_of(part),
                "a bound compares two event times and a fixed length, joined to the rest by AND",
                severity="note",
            )


def table_step(joining: Joining) -> Step | None:
    """Return the join of a stream with a table, or None after noting what is wrong with it."""
    table = joining.right.spec
    assert isinstance(table, TableSpec)  # noqa: S101  # the caller's own branch
    if joining.join.form is not None:
        joining.findings.add(
            "W2119",
            f"{table.name!r} is a table: its rows have no time, so WITHIN and WINDOW say nothing",
            joining.join.form_at or joining.join.at,
            "leave it out; the keys alone decide",
        )
    settled = _settled(joining, None, joining.conditions.residual)
    if settled is None:
        return None
    if joining.how in ("right", "full"):
        return _kept_table(joining, table, settled)
    return TableStep(
        number=0,
        left=joining.numbers,
        right=joining.right.number,
        table=table,
        how="left" if joining.how == "left" else "inner",
        keys=settled.keys,
        residual=settled.residual,
        reason=_lookup_reason(table),
        resolved=settled.resolved,
    )


def _kept_table(joining: Joining, table: TableSpec, settled: _Settled) -> KernelStep | None:
    """Return the step of a join whose unmatched table rows come out at the end."""
    at = joining.join.how_at or joining.join.at
    word = joining.join.how.upper()
    if table.reload == "batch":
        joining.findings.add(
            "W2119",
            f"{word} JOIN keeps the rows of {table.name!r} that no row met, but they are read again each batch",
            at,
            "write 'reload'='start' for the table, or a join that keeps the stream's rows only",
        )
        return None
    if not joining.is_last:
        joining.findings.add(
            "W2119",
            f"{word} JOIN of the table {table.name!r} stands before a join of two streams",
            at,
            "join the streams first: write the table last",
        )
        return None
    return KernelStep(
        number=0,
        left=joining.numbers,
        right=joining.right.number,
        how=joining.how,
        keys=settled.keys,
        reach=Reach(kind="table"),
        axis=None,
        residual=settled.residual,
        vectorised=settled.vectorised,
        limits=replace(joining.join.limits, max_state_rows=None, max_rows_per_key=None),
        resolved=settled.resolved,
        bound_from="table",
    )


def _lookup_reason(table: TableSpec) -> str:
    if table.reload == "batch":
        return "read again for each batch: a repeated run may see other rows"
    return "read at the first start and kept with the checkpoint"


_MIRRORED: dict[StreamHow, StreamHow] = {"inner": "inner", "left": "right", "right": "left", "full": "full"}


class Chain:
    """Plans the joins of one statement; `moved` are the conditions of WHERE that went into a join."""

    def __init__(
        self, job: JobSpec, statement: StatementSpec, members: Sequence[FromSource], findings: Findings
    ) -> None:
        self.job = job
        self.statement = statement
        self.members = tuple(members)
        self.findings = findings
        self.times = time_slots(members)
        self.moved: list[Typed] = []

    def scope(self, upto: int | None = None) -> StatementScope:
        """Return the columns that SELECT and WHERE see, or the ON of join `upto`."""
        joins = self.statement.joins if upto is None else self.statement.joins[: upto - 1]
        seen = self.members if upto is None else self.members[: upto + 1]
        padded: set[int] = set()
        for place, join in enumerate(joins, start=1):
            padded |= {place} if join.how in ("left", "full") else set()
            padded |= set(range(place)) if join.how in ("right", "full") else set()
        windowed = [i for i, j in enumerate(joins, start=1) if self._window(i, j) is not None]
        kind = self._window(windowed[-1], joins[windowed[-1] - 1]) if windowed else None
        after = joins[windowed[-1] :] if windowed else ()
        return StatementScope(
            sources=tuple(m.named(padded=m.number in padded) for m in seen),
            has_window=upto is None and kind in ("tumbling", "sliding"),
            window_padded=any(j.how in ("right", "full") for j in after),
            no_window=_no_window(upto, kind),
        )

    def _window(self, place: int, join: JoinStepSpec) -> str | None:
        is_window = isinstance(join.form, WindowSpec) and self._is_stream_join(place)
        return join.form.window if is_window else None  # type: ignore[union-attr]  # asked for above

    def _is_stream_join(self, place: int) -> bool:
        return self.members[place].is_stream and any(m.is_stream for m in self.members[:place])

    def steps(self, where: Sequence[Typed] | None) -> tuple[Step, ...] | None:
        """Return the steps, or None after noting what is wrong with them."""
        if not self._begins_with_a_stream():
            return None
        joined: list[int] = [0]
        made: list[Step | None] = []
        for place, join in enumerate(self.statement.joins, start=1):
            made.append(self._step(place, join, joined, where or ()))
            joined.append(place)
        good = [s for s in made if s is not None]
        self._check_order()
        return tuple(self._kept(good)) if len(good) == len(made) else None

    def _step(
        self, place: int, join: JoinStepSpec, joined: Sequence[int], where: Sequence[Typed]
    ) -> Step | None:
        swapped = place == 1 and not self.members[0].is_stream
        lefts, right = ((1,), 0) if swapped else (tuple(joined), place)
        conditions = self._conditions(place, right, lefts, join, where)
        if conditions is None:
            return None
        said = Joining(
            join=join,
            how=_MIRRORED[join.how] if swapped else join.how,
            lefts=tuple(self.members[n] for n in lefts),
            right=self.members[right],
            conditions=conditions,
            times=self.times,
            default=join.default_bound or self.job.settings.get("join.default_bound"),
            is_last=not any(self._is_stream_join(p) for p in range(place + 1, len(self.members))),
            findings=self.findings,
        )
        if not self.members[right].is_stream:
            return table_step(said)
        step = stream_step(said)
        if step is not None and step.reach.kind != "interval":
            # The conditions on times of a window join bound nothing, so those of WHERE stay there.
            self.moved = [m for m in self.moved if not any(m is u for u in conditions.bounds.used)]
        return step

    def _begins_with_a_stream(self) -> bool:
        if any(m.is_stream for m in self.members[:2]):
            return True
        self.findings.add(
            "W2119",
            "a statement reads at least one stream, and it stands first or second in FROM",
            self.statement.first_at or self.statement.at,
            "begin FROM with the stream and join the tables to it",
        )
        return False

    def _conditions(
        self, place: int, right: int, lefts: Sequence[int], join: JoinStepSpec, where: Sequence[Typed]
    ) -> JoinConditions | None:
        parts = checked(join.on, self.scope(place), self.findings)
        if parts is None:
            return None
        own_times = [p for p in parts if comparison(p, self.times, right) is not None]
        keys, rest = equal_keys([p for p in parts if not any(p is t for t in own_times)], right)
        movable = self._movable(place, where)
        timed = [w for w in movable if comparison(w, self.times, right) is not None]
        if not keys:
            keys, _ = equal_keys([w for w in movable if not any(w is t for t in timed)], right)
            self.moved.extend(k.typed for k in keys)
        if not self.members[right].is_stream:
            return JoinConditions(keys=keys, residual=(*rest, *own_times))
        bounds = bounds_of((*rest, *own_times, *timed), self.times, right, order=lefts)
        moved = tuple(w for w in timed if any(w is u for u in bounds.used))
        self.moved.extend(moved)
        residual = tuple(r for r in bounds.residual if not any(r is w for w in timed))
        elsewhere = [w for w in where if comparison(w, self.times, right) and not any(w is t for t in timed)]
        return JoinConditions(
            keys=keys, bounds=bounds, residual=residual, moved=moved, is_misplaced=bool(elsewhere)
        )

    def _movable(self, place: int, where: Sequence[Typed]) -> list[Typed]:
        """Return the conditions of WHERE that mean the same in the ON of a join."""
        hows = [j.how for j in self.statement.joins]
        if any(h != "inner" for h in hows[:place]) or any(h in ("right", "full") for h in hows[place:]):
            return []
        return [w for w in where if max(sources(w), default=-1) == place]

    def _check_order(self) -> None:
        """Note a session before another join of streams, and what EMIT FINAL means in a chain."""
        places = [p for p in range(1, len(self.members)) if self._is_stream_join(p)]
        joins = self.statement.joins
        for place in places[:-1]:
            if self._window(place, joins[place - 1]) == "session":
                self.findings.add(
                    "W2113",
                    "a session join stands before another join of streams: nobody knows how long it lasts",
                    joins[place - 1].form_at or joins[place - 1].at,
                    "make it the last join of streams, or use a tumbling or sliding window",
                )
        if len(places) > 1 and self.statement.emit == "final":
            last = self.members[places[-1]].alias
            self.findings.add(
                "W2112",
                f"EMIT FINAL holds for the last join of streams, that of {last}; the joins before it give"
                " their pairs at once",
                self.statement.emit_at,
                "write two jobs when an inner result has to be final first",
                severity="note",
            )

    def _kept(self, steps: Sequence[Step]) -> list[Step]:
        """Return the steps with their numbers, how they emit and how long they keep rows."""
        streams = [s for s in steps if isinstance(s, KernelStep) and s.axis is not None]
        numbered: list[Step] = []
        for number, step in enumerate(steps, start=1):
            changed = replace(step, number=number)
            if isinstance(changed, KernelStep) and step is (streams[-1] if streams else None):
                changed = replace(changed, emit=self._emit(changed))
            numbered.append(changed)
        needs = iter(compute_needed(s for s in numbered if isinstance(s, KernelStep)))
        return [self._retained(s, next(needs)) if isinstance(s, KernelStep) else s for s in numbered]

    def _emit(self, last: KernelStep) -> Emit:
        if self.statement.emit is not None:
            return self.statement.emit
        return "final" if last.reach.kind != "interval" else "changes"

    def _retained(self, step: KernelStep, needs: tuple[int, int]) -> KernelStep:
        join = self.statement.joins[max(step.right, 1) - 1]
        if join.retention is None or step.axis is None:
            return replace(step, needed=needs, retention=needs)
        said = join.retention.microseconds
        if said < max(needs):
            self.findings.add(
                "W2107",
                f"join.retention {Duration(said)} is below the {Duration(max(needs))} that the join needs",
                join.retention_at or join.at,
                f"leave it out, or write at least '{Duration(max(needs))}'",
            )
        return replace(step, needed=needs, retention=(max(needs[0], said), max(needs[1], said)))


def _no_window(upto: int | None, kind: str | None) -> str:
    if upto is not None:
        return "the window of a join is known behind it, in SELECT and WHERE"
    if kind == "session":
        return "a session has no fixed window"
    return "no join of this statement has a window"
