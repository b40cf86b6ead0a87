"""Values of a streaming job as plain JSON that reads back equal: durations, columns, expressions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft.core.duration import Duration
from weft.core.fingerprint import decode, encode
from weft.core.frozen import FrozenMap
from weft.core.types import Field, Schema, parse_type
from weft.expr.ast import Expr
from weft.expr.read import parse
from weft.expr.render import render
from weft.joins.spec.serial import Serial, from_dict

_DURATION, _COLUMNS, _EXPR, _ENTRIES = "$duration", "$columns", "$expr", "$entries"


def plain(value: Any) -> Any:
    """Return `value` as JSON; what JSON has no type for stands under a tag.

    >>> plain((Duration.parse("90m"), FrozenMap(path="a.csv")))
    [{'$duration': '1h 30m'}, {'$entries': {'path': 'a.csv'}}]
    """
    match value:
        case Serial():
            return value.to_dict()
        case Duration():
            return {_DURATION: str(value)}
        case Schema():
            return {_COLUMNS: [[f.name, str(f.dtype), f.nullable] for f in value]}
        case Expr():
            return {_EXPR: render(value, dialect="stream")}
        case Mapping():
            return {_ENTRIES: {key: plain(v) for key, v in value.items()}}
        case list() | tuple():
            return [plain(v) for v in value]
        case _:
            return encode(value)


def valued(value: Any) -> Any:
    """Return what `plain` was given.

    >>> valued([{"$duration": "1h 30m"}, {"$entries": {"path": "a.csv"}}])
    (Duration(microseconds=5400000000), {'path': 'a.csv'})
    """
    if isinstance(value, list | tuple):
        return tuple(valued(v) for v in value)
    if not isinstance(value, Mapping):
        return value
    match dict(value):
        case {"$duration": str() as text}:
            return Duration.parse(text, signed=True)
        case {"$columns": list() as columns}:
            return Schema(
                tuple(Field(name, parse_type(dtype), nullable) for name, dtype, nullable in columns)
            )
        case {"$expr": str() as text}:
            return parse(text, dialect="stream")
        case {"$entries": Mapping() as entries}:
            return FrozenMap({key: valued(v) for key, v in entries.items()})
        case {"type": str()}:
            return from_dict(value)
        case _:
            return decode(value)
