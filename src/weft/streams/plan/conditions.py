"""Conditions of a join by what they say: equal keys, and what can be true of a padded row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

from weft.core.types import BOOLEAN
from weft.expr import Typed
from weft.streams.plan.resolved import ColumnSlot

_TRUE, _FALSE, _NULL, _VALUE = "true", "false", "null", "value"
Outcome = frozenset[str]
_ANYTHING: Outcome = frozenset({_TRUE, _FALSE, _NULL, _VALUE})
_ONLY_NULL: Outcome = frozenset({_NULL})
_CONDITION: Outcome = frozenset({_TRUE, _FALSE, _NULL})
_COMPARES = frozenset({"=", "<>", "<", "<=", ">", ">=", "like"})
_OF_SOURCES = ("i", "t")


@dataclass(frozen=True, slots=True, kw_only=True)
class EqualKey:
    """A conjunct ``earlier column = column of the joined source``, written in either order."""

    left: ColumnSlot
    right: ColumnSlot
    typed: Typed
    is_cast: bool = False


def sources(typed: Typed) -> frozenset[int]:
    """Return the numbers of the sources whose columns an expression reads."""
    return frozenset(s[1] for s in typed.slots if isinstance(s, tuple) and s[0] in _OF_SOURCES)


def equal_keys(conjuncts: Iterable[Typed], right: int) -> tuple[tuple[EqualKey, ...], tuple[Typed, ...]]:
    """Return the keys among the conjuncts, and the rest."""
    keys: list[EqualKey] = []
    rest: list[Typed] = []
    for part in conjuncts:
        key = _equal_key(part, right)
        if key is None:
            rest.append(part)
        elif all((key.left, key.right) != (k.left, k.right) for k in keys):
            keys.append(key)
    return tuple(keys), tuple(rest)


def _equal_key(part: Typed, right: int) -> EqualKey | None:
    if part.op != "=":
        return None
    slots = [_bare(arg) for arg in part.args]
    if None in slots:
        return None
    (one, one_cast), (other, other_cast) = (s for s in slots if s is not None)
    if (one[1] == right) == (other[1] == right):
        return None
    first, second = (other, one) if one[1] == right else (one, other)
    return EqualKey(left=first, right=second, typed=part, is_cast=one_cast or other_cast)


def _bare(typed: Typed) -> tuple[ColumnSlot, bool] | None:
    """Return the column that an operand is, and whether it was cast to meet the other one."""
    if typed.op == "cast" and typed.expr == typed.args[0].expr:
        found = _bare(typed.args[0])
        return None if found is None else (found[0], True)
    if typed.op != "ref" or not isinstance(typed.slot, tuple) or typed.slot[0] != "i":
        return None
    return cast("ColumnSlot", typed.slot), False


def is_key_expression(part: Typed, right: int) -> bool:
    """Whether a conjunct is an equality of two sides that no key can be made of."""
    if part.op != "=":
        return False
    one, other = (sources(arg) for arg in part.args)
    return bool(one and other) and ((one == {right}) != (other == {right})) and not (one & other)


def null_rejects(typed: Typed, inputs: frozenset[int]) -> bool:
    """Whether the condition cannot be true of a row in which all columns of `inputs` are NULL."""
    return bool(sources(typed) & inputs) and _TRUE not in _outcomes(typed, inputs)


def _outcomes(typed: Typed, inputs: frozenset[int]) -> Outcome:
    """Return what an expression can come to when the columns of `inputs` are NULL and others unknown."""
    match typed.op:
        case "lit":
            return _literal(typed)
        case "ref":
            slot = typed.slot
            padded = isinstance(slot, tuple) and slot[0] in _OF_SOURCES and slot[1] in inputs
            return _ONLY_NULL if padded else _unknown(typed)
    args = [_outcomes(arg, inputs) for arg in typed.args]
    match typed.op:
        case "and":
            return _both(args)
        case "or":
            return _opposite(_both([_opposite(a) for a in args]))
        case "not":
            return _opposite(args[0])
        case "is_null":
            return _is_null(args[0])
        case "COALESCE":
            return _first_value(args)
        case "case":
            return _branches(args)
        case "<=>":
            return frozenset({_TRUE}) if args[0] == args[1] == _ONLY_NULL else _unknown(typed)
        case "in":
            return _ONLY_NULL if args[0] == _ONLY_NULL else _CONDITION
        case "LABEL_SET" | "cast" | _:
            return _strict(typed, args)


def _literal(typed: Typed) -> Outcome:
    if typed.value is None:
        return _ONLY_NULL
    if typed.dtype == BOOLEAN:
        return frozenset({_TRUE if typed.value else _FALSE})
    return frozenset({_VALUE})


def _unknown(typed: Typed) -> Outcome:
    return _CONDITION if typed.dtype == BOOLEAN else frozenset({_VALUE, _NULL})


def _strict(typed: Typed, args: Sequence[Outcome]) -> Outcome:
    """Operations that are NULL when an operand is."""
    if typed.op == "LABEL_SET":
        return _ONLY_NULL if _ONLY_NULL in args[:2] else _unknown(typed)
    return _ONLY_NULL if _ONLY_NULL in args else _unknown(typed)


def _opposite(found: Outcome) -> Outcome:
    turned = {_TRUE: _FALSE, _FALSE: _TRUE}
    return frozenset(turned.get(f, f) for f in found)


def _both(args: Sequence[Outcome]) -> Outcome:
    if any(a == {_FALSE} for a in args):
        return frozenset({_FALSE})
    found = {o for a in args for o in a if o != _TRUE}
    if all(_TRUE in a for a in args):
        found.add(_TRUE)
    return frozenset(found)


def _is_null(found: Outcome) -> Outcome:
    told = {_TRUE} if _NULL in found else set()
    return frozenset(told | ({_FALSE} if found - _ONLY_NULL else set()))


def _first_value(args: Sequence[Outcome]) -> Outcome:
    found: set[str] = set()
    for arg in args:
        found |= arg - _ONLY_NULL
        if _NULL not in arg:
            return frozenset(found)
    return frozenset(found | _ONLY_NULL)


def _branches(args: Sequence[Outcome]) -> Outcome:
    found: set[str] = set()
    for condition, value in zip(args[:-1:2], args[1:-1:2], strict=True):
        if _TRUE in condition:
            found |= value
        if condition == {_TRUE}:
            return frozenset(found)
    return frozenset(found | args[-1])
