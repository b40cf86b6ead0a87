"""Conditions on pairs as prefix code for whole columns, as far as they are plain comparisons."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Literal

from weft.core.types import DType, Scalar
from weft.expr import Typed

Child = tuple[Literal["left", "right"], str]
_COMPARES = frozenset({"=", "<>", "<", "<=", ">", ">="})


def program(typed: Typed, child: Callable[[Hashable], Child]) -> tuple[Any, ...] | None:
    """Return the prefix code of a condition, or None when it needs more than comparisons.

    `child` says in which struct a column stands and under which name.
    """
    match typed.op:
        case "ref":
            return ("ref", *child(typed.slot)) if _plain(typed.dtype) else None
        case "lit":
            return ("lit", typed.value, str(typed.dtype)) if _plain(typed.dtype) else None
        case "cast" if typed.dtype.is_integer and typed.args[0].dtype.is_integer:
            return program(typed.args[0], child)
        case "is_null":
            return _all("isnull", typed.args, child)
        case "not":
            return _all("not", typed.args, child)
        case "and" | "or":
            return _nested(typed, child)
        case op if op in _COMPARES:
            return _all(op, typed.args, child)
    return None


def is_vectorised(typed: Typed) -> bool:
    """Whether a condition runs on whole columns; otherwise it is asked row by row."""
    return program(typed, lambda _: ("left", "")) is not None


def _all(op: str, args: tuple[Typed, ...], child: Callable[[Hashable], Child]) -> tuple[Any, ...] | None:
    parts = [program(arg, child) for arg in args]
    return None if None in parts else (op, *parts)


def _nested(typed: Typed, child: Callable[[Hashable], Child]) -> tuple[Any, ...] | None:
    """Return AND and OR of many as operations of two."""
    parts = [program(arg, child) for arg in typed.args]
    if None in parts:
        return None
    made: tuple[Any, ...] = parts[0] or ()
    for part in parts[1:]:
        made = (typed.op, made, part)
    return made


def _plain(dtype: DType) -> bool:
    """Whether Arrow compares values of the type as the expression language does.

    Floats are left out: NaN equals NaN here, and in Arrow it equals nothing.
    """
    if isinstance(dtype, Scalar):
        return not dtype.collation and not dtype.is_fraction and dtype.name in _SCALARS
    return not dtype.is_nested


_SCALARS = frozenset(
    {"string", "boolean", "byte", "short", "integer", "long", "date", "timestamp", "timestamp_ntz", "null"}
)
