"""The words that options take, each a closed set."""

from __future__ import annotations

from typing import Any, Literal, get_args

from weft.core.names import find_similar
from weft.errors import ArgumentError, JoinSpecError

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
"""How other languages write an operator of ours."""


def one_of(value: object, words: Any, what: str) -> None:
    """Raise unless `value` is one of the words of a Literal.

    >>> one_of("backwards", Direction, "direction")
    Traceback (most recent call last):
        ...
    weft.errors.JoinSpecError: error[W0302]: direction 'backwards' is not one of 'backward', 'forward', 'nearest'
     = help: did you mean 'backward'?
    """
    allowed: tuple[str, ...] = get_args(words)
    if not isinstance(value, str):
        raise ArgumentError(
            f"{what} must be a text, not {type(value).__name__}",
            help=f"write one of {', '.join(map(repr, allowed))}",
        )
    if value not in allowed:
        if value == "<=>":
            raise JoinSpecError(
                f"{what} '<=>' is not one of {', '.join(map(repr, allowed))}",
                help="write ExpressionPredicate('left.a <=> right.b'); for equal keys nulls_equal=True says it",
            )
        close = find_similar(_OTHER_SPELLINGS.get(value, value), allowed, most=1)
        raise JoinSpecError(
            f"{what} {value!r} is not one of {', '.join(map(repr, allowed))}",
            help=f"did you mean {close[0]!r}?" if close else f"write for example {what}={allowed[0]!r}",
        )


def a_bool(value: object, what: str) -> None:
    """Raise unless `value` is True or False."""
    if not isinstance(value, bool):
        raise ArgumentError(
            f"{what} must be True or False, not {value!r}", help=f"write {what}=True or {what}=False"
        )
