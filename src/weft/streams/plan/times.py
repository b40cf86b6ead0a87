"""Conditions that compare event times: there an event-time column is a time, whatever type it is declared in.

Before::

    s.b BETWEEN o.b AND o.b + 3600000                 both BIGINT, epoch_millis

After::

    time of s BETWEEN time of o AND time of o + INTERVAL '1h'

Everywhere else the column keeps its declared type.  Behind the planner such a condition computes with
the event times in microseconds that every row carries.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace

from weft.core.names import fold
from weft.core.types import BOOLEAN, INTERVAL, LONG, TIMESTAMP
from weft.errors import Diagnostic, ExpressionError
from weft.expr import Between, Binary, Column, Expr, Lit, Negate, Typed, check
from weft.expr.ast import Logic, Not, references
from weft.streams.plan.bounds import MICROSECOND, time_difference
from weft.streams.plan.resolved import column, event_time
from weft.streams.plan.scope import Named, StatementScope
from weft.streams.sql.spec import MESSAGE_TIME

_COMPARES = frozenset({"=", "<>", "<", "<=", ">", ">="})
_LONGEST = 2**63 - 1
_NUMBERS = {"time+": "+", "time-": "-", "time_diff": "-", "interval+": "+", "interval-": "-"}


@dataclass(frozen=True, slots=True)
class _Times:
    """The scope in which event-time columns are the event times themselves."""

    base: StatementScope

    def resolve(self, qualifier: str | None, name: str) -> Column | Diagnostic:
        """Return the column or the time that a reference means."""
        found = self.base.resolve(qualifier, name)
        source = self.timed(qualifier, name)
        if source is None:
            return found
        nullable = found.nullable if isinstance(found, Column) else source.padded
        return Column(event_time(source.number), TIMESTAMP, nullable)

    def names(self) -> tuple[str, ...]:
        """Return every name as it can be written."""
        return self.base.names()

    def timed(self, qualifier: str | None, name: str) -> Named | None:
        """Return the source whose event time a reference means."""
        found = self.base.resolve(qualifier, name)
        if isinstance(found, Column):
            slots: dict[Hashable, Named] = {
                column(s.number, s.time): s for s in self.base.sources if s.time is not None
            }
            return slots.get(found.slot)
        source = None if qualifier is None else self.base.find(qualifier)
        is_message_time = source is not None and source.has_message_time and fold(name) == fold(MESSAGE_TIME)
        return source if is_message_time else None


def time_condition(part: Expr, scope: StatementScope) -> Typed | None:
    """Return a condition between the event times of two sources, or None for anything else.

    A condition whose event times are all declared as TIMESTAMP reads as it stands and is none of these.
    """
    times = _Times(scope)
    said = [source for r in references(part) if (source := times.timed(r.qualifier, r.name)) is not None]
    if len({s.number for s in said}) < 2 or all(s.time_type == TIMESTAMP for s in said):
        return None
    try:
        typed = check(_measured(part, times), times, expect=BOOLEAN)
    except ExpressionError:
        return None  # the condition is read with the declared types, and that tells what is wrong
    slots: dict[Hashable, int] = {event_time(s.number): s.number for s in said}
    return typed if _compares_times(typed, slots) else None


def _compares_times(typed: Typed, slots: Mapping[Hashable, int]) -> bool:
    if typed.op in ("and", "or", "not"):
        return all(_compares_times(arg, slots) for arg in typed.args)
    if typed.op not in _COMPARES:
        return False
    return all(time_difference(arg, slots) is not None for arg in typed.args)


def _measured(part: Expr, times: _Times) -> Expr:
    """Return a condition with its whole numbers as lengths, in the unit of the times they stand with."""
    match part:
        case Logic():
            return replace(part, args=tuple(_measured(a, times) for a in part.args))
        case Not():
            return replace(part, arg=_measured(part.arg, times))
        case Binary() if part.op in _COMPARES:
            unit = _unit(part, times)
            return replace(part, left=_length(part.left, unit, times), right=_length(part.right, unit, times))
        case Between():
            unit = _unit(part, times)
            arg, low, high = (_length(e, unit, times) for e in (part.arg, part.low, part.high))
            return replace(part, arg=arg, low=low, high=high)
    return part


def _length(expr: Expr, unit: int | None, times: _Times) -> Expr:
    whole = _whole(expr)
    if whole is not None:
        fits = unit is not None and abs(whole * unit) <= _LONGEST
        return Lit(whole * (unit or 0) * MICROSECOND, INTERVAL, span=expr.span) if fits else expr
    match expr:
        case Negate():
            return replace(expr, arg=_length(expr.arg, unit, times))
        case Binary() if expr.op in ("+", "-"):
            own = _unit(expr, times) if references(expr) else unit
            return replace(expr, left=_length(expr.left, own, times), right=_length(expr.right, own, times))
    return expr


def _unit(expr: Expr, times: _Times) -> int | None:
    """Return how many microseconds the number one is beside the times of an expression, if they agree."""
    said = [times.timed(r.qualifier, r.name) for r in references(expr)]
    units = {None if s is None else s.time_unit for s in said}
    return units.pop() if len(units) == 1 else None


def _whole(expr: Expr) -> int | None:
    """Return the whole number that a constant is."""
    match expr:
        case Lit(value=int() as value) if not isinstance(value, bool):
            return value
        case Negate():
            inner = _whole(expr.arg)
            return None if inner is None else -inner
        case Binary() if expr.op in ("+", "-", "*"):
            one, other = _whole(expr.left), _whole(expr.right)
            if one is None or other is None:
                return None
            return {"+": one + other, "-": one - other, "*": one * other}[expr.op]
    return None


def in_microseconds(typed: Typed | None) -> Typed | None:
    """Return a condition whose event times are whole numbers, as rows carry them."""
    if typed is None or not any(_is_time(n) for n in typed.walk()):
        return typed
    if typed.op == "and":
        return replace(typed, args=tuple(_numbered_part(a) for a in typed.args))
    return _numbered_part(typed)


def _numbered_part(typed: Typed) -> Typed:
    """Return a conjunct with numbers for times; one that compares no event times stays as it is."""
    return _numbers(typed) if any(_is_time(n) for n in typed.walk()) else typed


def _numbers(typed: Typed) -> Typed:
    if typed.op == "ref":
        return replace(typed, dtype=LONG)
    if isinstance(typed.value, dt.timedelta):
        return replace(typed, dtype=LONG, value=typed.value // MICROSECOND)
    args = tuple(_numbers(arg) for arg in typed.args)
    if typed.op == "cast":
        return args[0]
    dtype = typed.dtype if typed.dtype == BOOLEAN else LONG
    return replace(typed, op=_NUMBERS.get(typed.op, typed.op), dtype=dtype, args=args)


def _is_time(typed: Typed) -> bool:
    return typed.op == "ref" and isinstance(typed.slot, tuple) and typed.slot[0] == "t"
