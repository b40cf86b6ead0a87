"""One JOIN becomes a step: two streams with state, a lookup into a table, or a table that is kept."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

from weft.expr import Typed
from weft.joins.resolve.resolved import Exact, ResolvedJoin, SameWindow, Within
from weft.streams.plan.bounds import comparison, place_of
from weft.streams.plan.findings import Found
from weft.streams.plan.forms import Form, Saying, Windowed, settled_form
from weft.streams.plan.joining import JoinConditions, all_of, batch_names, resolved_join, settled_keys
from weft.streams.plan.programs import is_vectorised
from weft.streams.plan.resolved import JoinHow, KernelStep, Step, StepKey, TableStep, event_time
from weft.streams.plan.sources import FromSource
from weft.streams.plan.times import in_microseconds
from weft.streams.sql.spec import Bounds, JoinStepSpec, TableSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Joining:
    """A JOIN with everything around it that its step depends on.

    `how` is the kind of join after the sides were exchanged where FROM begins with a table; `is_last`
    says whether no join of two streams comes behind it.
    """

    join: JoinStepSpec
    how: JoinHow
    lefts: tuple[FromSource, ...]
    right: FromSource
    conditions: JoinConditions
    times: Mapping[Hashable, int]
    default: Bounds | None
    is_last: bool
    found: Found

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


def stream_step(said: Joining) -> KernelStep | None:
    """Return the join of two streams, or None after noting what is wrong with it."""
    bounds = said.conditions.bounds
    form = settled_form(
        Saying(
            join=said.join,
            bounds=bounds,
            default=said.default,
            lefts=said.lefts,
            right=said.right,
            is_misplaced=said.conditions.is_misplaced,
        ),
        said.found,
    )
    rest = said.conditions.residual
    if isinstance(form, Windowed):
        rest = (*rest, *(u for u in bounds.used if not _among(u, said.conditions.moved)))
    if form is not None:
        _note_loose_times(said, rest)
    settled = _settled(said, form, rest)
    if form is None or settled is None:
        return None
    match = settled.resolved.match
    if not isinstance(match, Within | SameWindow):
        return None
    return KernelStep(
        number=0,
        left=said.numbers,
        right=said.right.number,
        how=said.how,
        keys=settled.keys,
        match=match,
        axis=(event_time(form.left), event_time(said.right.number)),
        residual=settled.residual,
        vectorised=settled.vectorised,
        per_window=isinstance(match, SameWindow) and match.per_window,
        limits=said.join.limits,
        missing_event_time=said.join.missing_event_time,
        resolved=settled.resolved,
        gives_window=isinstance(match, SameWindow) and match.kind != "session",
        bound_from=_said_by(form, said.conditions),
    )


def _settled(said: Joining, form: Form | None, rest: Sequence[Typed]) -> _Settled | None:
    keys = settled_keys(said.join, said.conditions, said.lefts, said.right, said.found)
    needs_form = said.right.is_stream and form is None
    if needs_form or not keys or len(keys) < len(said.conditions.keys):
        return None
    residual = all_of(rest)
    names = batch_names(said.lefts, said.right)
    resolved = resolved_join(said.join, said.how, keys, form, residual, names, said.right.number, said.found)
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


def _note_loose_times(said: Joining, rest: Sequence[Typed]) -> None:
    right = said.right.number
    for part in rest:
        timed = {said.times[s] for s in part.slots if s in said.times}
        if right in timed and len(timed) > 1 and comparison(part, said.times, right) is None:
            said.found.add(
                "W2115",
                "this condition on times is asked of each pair, it bounds nothing",
                place_of(part),
                "a bound compares two event times and a fixed length, joined to the rest by AND",
                severity="note",
            )


def table_step(said: Joining) -> Step | None:
    """Return the join of a stream with a table, or None after noting what is wrong with it."""
    table = said.right.spec
    assert isinstance(table, TableSpec)  # noqa: S101  # the caller's own branch
    if said.join.form is not None:
        said.found.add(
            "W2119",
            f"{table.name!r} is a table: its rows have no time, so WITHIN and WINDOW say nothing",
            said.join.form_at or said.join.at,
            "leave it out; the keys alone decide",
        )
    settled = _settled(said, None, said.conditions.residual)
    if settled is None:
        return None
    if said.how in ("right", "full"):
        return _kept_table(said, table, settled)
    return TableStep(
        number=0,
        left=said.numbers,
        right=said.right.number,
        table=table,
        how="left" if said.how == "left" else "inner",
        keys=settled.keys,
        residual=settled.residual,
        reason=_lookup_reason(table),
        resolved=settled.resolved,
    )


def _kept_table(said: Joining, table: TableSpec, settled: _Settled) -> KernelStep | None:
    """Return the step of a join whose unmatched table rows come out at the end."""
    at = said.join.how_at or said.join.at
    word = said.join.how.upper()
    if table.reload == "batch":
        said.found.add(
            "W2119",
            f"{word} JOIN keeps the rows of {table.name!r} that no row met, but they are read again each batch",
            at,
            "write 'reload'='start' for the table, or a join that keeps the stream's rows only",
        )
        return None
    if not said.is_last:
        said.found.add(
            "W2119",
            f"{word} JOIN of the table {table.name!r} stands before a join of two streams",
            at,
            "join the streams first: write the table last",
        )
        return None
    return KernelStep(
        number=0,
        left=said.numbers,
        right=said.right.number,
        how=said.how,
        keys=settled.keys,
        match=Exact(),
        axis=None,
        residual=settled.residual,
        vectorised=settled.vectorised,
        limits=replace(said.join.limits, max_state_rows=None, max_rows_per_key=None),
        resolved=settled.resolved,
        bound_from="table",
    )


def _lookup_reason(table: TableSpec) -> str:
    if table.reload == "batch":
        return "read again for each batch: a repeated run may see other rows"
    return "read at the first start and kept with the checkpoint"
