"""Distances on an order axis as users write them: texts, timedeltas or numbers."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal

from weft.core.duration import Duration
from weft.errors import ArgumentError, DurationError, JoinSpecError

Distance = str | dt.timedelta | int | Decimal
"""A stored distance: the text as written, a timedelta, or an exact number."""

_MOST_DIGITS = 1000
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?", re.ASCII)


def check_distance(value: object, what: str, *, signed: bool = False, zero: bool = True) -> Distance:
    """Return `value` in the form specs store, or raise with the accepted forms.

    >>> check_distance("5 seconds", "tolerance"), check_distance(2.50, "tolerance")
    ('5 seconds', Decimal('2.5'))
    """
    stored = _stored(value, what)
    size = size_of(stored, what, signed=True)
    if size < 0 and not signed:
        raise JoinSpecError(
            f"{what} {value!r} must not be negative",
            code="W0304",
            help=f"write {what} without the minus sign",
        )
    if size == 0 and not zero:
        raise JoinSpecError(
            f"{what} must be longer than zero", code="W0304", help=f"write for example {what}='5 seconds'"
        )
    return stored


def _stored(value: object, what: str) -> Distance:
    if isinstance(value, Duration):
        return value.to_timedelta()
    if isinstance(value, str):
        return _signed_text(value.strip())
    if isinstance(value, dt.timedelta):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise ArgumentError(
            f"{what} must be a text, a timedelta or a number, not {type(value).__name__}",
            help=f"write for example {what}='5 seconds' for times, {what}=5 for numbers",
        )
    return _exact(value, what)


def _signed_text(text: str) -> str:
    """Return the text with its sign, if it has one, directly before the rest and no plus."""
    sign, rest = text[:1], text[1:].lstrip()
    return sign.replace("+", "") + rest if sign in ("+", "-") and rest[:1] not in ("+", "-") else text


def _exact(value: float | Decimal, what: str) -> int | Decimal:
    exact = Decimal(str(value)) if isinstance(value, float) else Decimal(value)
    if not exact.is_finite() or not -_MOST_DIGITS < exact.adjusted() < _MOST_DIGITS:
        raise JoinSpecError(
            f"{what} {exact:.6} is not a number to measure with",
            code="W0304",
            help=f"write a finite number, for example {what}=5",
        )
    if exact == exact.to_integral_value():
        return int(exact)
    # Trailing zeros go, so that equal distances are equal specs; normalize() would also round.
    return Decimal(format(exact, "f").rstrip("0"))


def is_number(stored: Distance) -> bool:
    """Whether the distance is a plain number, also when written as a text."""
    return isinstance(stored, int | Decimal) or (
        isinstance(stored, str) and _NUMBER.fullmatch(stored) is not None
    )


def size_of(stored: Distance, what: str, *, signed: bool = False) -> int | Decimal:
    """Return the number, or the microseconds of a length of time."""
    if isinstance(stored, int | Decimal):
        return stored
    if isinstance(stored, str) and is_number(stored):
        return Decimal(stored)
    try:
        return Duration.of(stored, signed=signed).microseconds
    except DurationError as cause:
        raise JoinSpecError(f"{what}: {cause.message}", code="W0304", help=cause.help) from cause


def negated(stored: Distance) -> Distance:
    """Return the distance with the other sign."""
    if isinstance(stored, Decimal):
        return stored.copy_negate()  # a minus sign would round to the precision of the context
    if isinstance(stored, str):
        return stored[1:] if stored.startswith("-") else f"-{stored}"
    return -stored
