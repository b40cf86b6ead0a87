"""Casts to suggest where two columns of a join do not meet; each one is checked before it is said."""

from __future__ import annotations

from collections.abc import Iterator

from weft import expr
from weft.core.names import is_keyword_name, quote, shown
from weft.core.types import STRING, DType, Field, Map, Schema, common_type
from weft.errors import WeftError


def meeting_help(left: Field, right: Field) -> str:
    """Return the next step for two columns whose types do not meet: a cast that runs.

    >>> from weft.core.types import parse_type
    >>> meeting_help(Field("id", parse_type("long")), Field("key", parse_type("string")))
    'cast one side first, for example right.with_columns(key="CAST(key AS long)")'
    """
    if isinstance(left.dtype, Map) or isinstance(right.dtype, Map):
        return "maps cannot be compared: join on the values inside them"
    if left.dtype.is_nested or right.dtype.is_nested:
        return "join on the scalar values inside it"
    for calls in _ways(left, right):
        if len(calls) == 1:
            return f"cast one side first, for example {calls[0]}"
        return f"cast both sides first, for example {calls[0]} and {calls[1]}"
    return f"no cast leads from {left.dtype} to {right.dtype} or back: join on other columns"


def _ways(left: Field, right: Field) -> Iterator[tuple[str, ...]]:
    """Yield casts after which the columns meet, those of a text to the other type first."""
    one_sided = [("left", left, right.dtype), ("right", right, left.dtype)]
    one_sided.sort(key=lambda way: way[1].dtype != STRING)
    for side, field, target in one_sided:
        call = _call(side, field, target)
        if call is not None and common_type(target, target) is not None:
            yield (call,)
    texts = _call("left", left, STRING), _call("right", right, STRING)
    if texts[0] is not None and texts[1] is not None:
        yield texts[0], texts[1]


def _call(side: str, field: Field, target: DType) -> str | None:
    """Return the call that casts the column, or None when the language has no such cast."""
    for name in dict.fromkeys((shown(field.name), quote(field.name))):
        text = f"CAST({name} AS {target})"
        try:
            typed = expr.check(expr.parse(text), expr.TableScope({"": Schema((field,))}), today=False)
        except WeftError:
            continue
        if typed.dtype == target:
            return f"{side}.with_columns({_argument(field.name, text)})"
    return None


def _argument(name: str, text: str) -> str:
    quoted = repr(text) if '"' in text or "\\" in text else f'"{text}"'
    return f"{name}={quoted}" if is_keyword_name(name) else f"**{{{name!r}: {quoted}}}"
