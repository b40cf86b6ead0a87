"""The values that options take: words of closed sets, booleans, and distances on an order axis."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from typing import Any, Literal, get_args

from weft.core.duration import Duration
from weft.core.names import find_similar
from weft.errors import ArgumentError, DurationError, JoinSpecError

How = Literal["inner", "left", "right", "full", "semi", "anti", "cross"]
Operator = Literal["=", "!=", "<", "<=", ">", ">="]
Direction = Literal["backward", "forward", "nearest"]
NearestTie = Literal["backward", "forward"]
WindowKind = Literal["tumbling", "sliding", "session"]
Relationship = Literal["1:1", "1:m", "m:1", "m:m"]
Unmatched = Literal["error", "left", "right", "both"]
RightKeys = Literal["auto", "keep", "drop"]
OrderCheck = Literal["warn", "ignore", "error"]
Statistics = Literal["sample"]


_OTHER_SPELLINGS = {"<>": "!=", "==": "=", "=<": "<=", "=>": ">="}
"""Operators as other languages write them."""


def check_choice(value: object, words: Any, what: str) -> None:
    """Raise unless `value` is one of the words of a Literal.

    >>> check_choice("backwards", Direction, "direction")
    Traceback (most recent call last):
        ...
    weft.errors.JoinSpecError: error[W0302]: direction 'backwards' is not one of 'backward', 'forward', 'nearest'
     = help: did you mean 'backward'?
    """
    allowed: tuple[str, ...] = get_args(words)
    if not isinstance(value, str):
        raise ArgumentError(
            f"{what} must be a string, not {type(value).__name__}", help=f"write one of {', '.join(map(repr, allowed))}"
        )
    if value not in allowed:
        if value == "<=>":
            raise JoinSpecError(
                f"{what} '<=>' is not one of {', '.join(map(repr, allowed))}",
                help="write ExpressionPredicate('left.a <=> right.b'); for equal keys write nulls_equal=True",
            )
        close = find_similar(_OTHER_SPELLINGS.get(value, value), allowed, most=1)
        raise JoinSpecError(
            f"{what} {value!r} is not one of {', '.join(map(repr, allowed))}",
            help=f"did you mean {close[0]!r}?" if close else f"write for example {what}={allowed[0]!r}",
        )


def check_bool(value: object, what: str) -> None:
    """Raise unless `value` is True or False."""
    if not isinstance(value, bool):
        raise ArgumentError(f"{what} must be True or False, not {value!r}", help=f"write {what}=True or {what}=False")


Distance = str | dt.timedelta | int | Decimal
"""A stored distance: the string as written, a timedelta, or an exact number."""

_MOST_DIGITS = 1000
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?", re.ASCII)


def check_distance(value: object, what: str, *, signed: bool = False, zero: bool = True) -> Distance:
    """Return `value` in the form specs store, or raise with the accepted forms.

    >>> check_distance("5 seconds", "tolerance"), check_distance(2.50, "tolerance")
    ('5 seconds', Decimal('2.5'))
    """
    stored = _stored(value, what)
    size = parse_distance(stored, what, signed=True)
    if size < 0 and not signed:
        raise JoinSpecError(
            f"{what} {value!r} must not be negative", code="W0304", help=f"write {what} without the minus sign"
        )
    if size == 0 and not zero:
        raise JoinSpecError(
            f"{what} must be greater than zero", code="W0304", help=f"write for example {what}='5 seconds'"
        )
    return stored


def _stored(value: object, what: str) -> Distance:
    if isinstance(value, Duration):
        return value.to_timedelta()
    if isinstance(value, str):
        return _signed_text(value.strip())
    if isinstance(value, dt.timedelta):
        return value
    # In Python True is an int.
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise ArgumentError(
            f"{what} must be a string, a timedelta or a number, not {type(value).__name__}",
            help=f"write for example {what}='5 seconds' for times, {what}=5 for numbers",
        )
    return _exact(value, what)


def _signed_text(text: str) -> str:
    """Return the text with its sign, if it has one, directly before the rest and no plus."""
    sign, rest = text[:1], text[1:].lstrip()
    return sign.replace("+", "") + rest if sign in ("+", "-") and rest[:1] not in ("+", "-") else text


def _exact(value: float | Decimal, what: str) -> int | Decimal:
    # 2.5, not the 50 digits of the double; a huge exponent would take gigabytes as an integer.
    exact = Decimal(str(value)) if isinstance(value, float) else Decimal(value)
    if not exact.is_finite() or not -_MOST_DIGITS < exact.adjusted() < _MOST_DIGITS:
        raise JoinSpecError(
            f"{what} {exact:.6} is not a valid distance",
            code="W0304",
            help=f"write a finite number, for example {what}=5",
        )
    if exact == exact.to_integral_value():
        return int(exact)
    # Trailing zeros go, so that equal distances are equal specs; normalize() would also round.
    return Decimal(format(exact, "f").rstrip("0"))


def is_number(stored: Distance) -> bool:
    """Whether the distance is a plain number, also when written as a string."""
    return isinstance(stored, int | Decimal) or (isinstance(stored, str) and _NUMBER.fullmatch(stored) is not None)


def parse_distance(stored: Distance, what: str, *, signed: bool = False) -> int | Decimal:
    """Return the number, or the microseconds of a length of time."""
    if isinstance(stored, int | Decimal):
        return stored
    if isinstance(stored, str) and is_number(stored):
        return Decimal(stored)
    try:
        return Duration.of(stored, signed=signed).microseconds
    except DurationError as cause:
        raise JoinSpecError(f"{what}: {cause.message}", code="W0304", help=cause.help) from cause


def negate_distance(stored: Distance) -> Distance:
    """Return the distance with the other sign."""
    if isinstance(stored, Decimal):
        return stored.copy_negate()  # a minus sign would round to the precision of the context
    if isinstance(stored, str):
        return stored[1:] if stored.startswith("-") else f"-{stored}"
    return -stored
