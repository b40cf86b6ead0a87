"""The short way in which case files write a spec, turned into the form that `from_dict` reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from weft.core.names import listed
from weft.errors import CaseFileError

_TYPES = ("join", "natural", "asof", "interval", "window")
_USUAL_HOW = {"join": "inner", "natural": "inner", "asof": "left", "interval": "inner", "window": "inner"}


class SpecParts(NamedTuple):
    """A spec, the kind of join, and the projection."""

    spec: dict[str, Any]
    how: str
    project: dict[str, Any] | None


def long_form(said: object) -> SpecParts:
    """Return the parts of a spec that was written in short.

    ``keys`` holds names and pairs of names; ``order`` is a pair; a predicate is a fragment,
    a list ``[left, operator, right]`` or a mapping; ``how`` and ``project`` stand with the rest.

    >>> long_form({"type": "asof", "keys": ["sym"], "order": ["ts", "qts"]}).spec
    {'type': 'asof', 'equal_keys': [['sym', 'sym']], 'order': {'type': 'order', 'left': 'ts', 'right': 'qts'}}
    """
    if not isinstance(said, Mapping) or said.get("type") not in _TYPES:
        raise CaseFileError(
            f"'spec' must be a mapping with a type of {listed(_TYPES)}", help="spec: {type: join, ...}"
        )
    if "keys" in said and "equal_keys" in said:
        raise CaseFileError("the spec has both 'keys' and 'equal_keys'", help="leave one of them out")
    rest = dict(said)
    kind = rest.pop("type")
    how, project = rest.pop("how", _USUAL_HOW[kind]), rest.pop("project", None)
    if not isinstance(how, str):
        raise CaseFileError(f"how must be a text, not {how!r}", help="write for example how: left")
    spec: dict[str, Any] = {"type": kind}
    for name, value in rest.items():
        long_name, turn = _FIELDS.get(name, (name, _as_it_is))
        spec[long_name] = turn(value)
    if kind == "join":
        spec.setdefault("equal_keys", [])
    elif "how" in said:
        spec["how"] = how
    return SpecParts(spec, how, None if project is None else _typed(project, "projection"))


def _as_it_is(value: Any) -> Any:
    return value


def _typed(value: Any, kind: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise CaseFileError(
            f"{value!r} must be a mapping that says the {kind}", help="write it as names and values"
        )
    return {"type": kind, **value}


def _keys(value: Any) -> list[list[Any]]:
    if not isinstance(value, list):
        raise CaseFileError(f"keys must be a list, not {value!r}", help="write keys: [sym, [order_id, id]]")
    return [_key(key) for key in value]


def _key(value: Any) -> list[Any]:
    if not isinstance(value, str | list):
        raise CaseFileError(f"{value!r} is not a key", help="write a name or a pair of names")
    return [value, value] if isinstance(value, str) else value


def _order(value: Any) -> dict[str, Any]:
    if isinstance(value, list) and len(value) == 2:
        return {"type": "order", "left": value[0], "right": value[1]}
    return _typed(value, "order")


def _predicates(value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, list):
        raise CaseFileError(
            f"predicates must be a list, not {value!r}", help="write each predicate after a dash"
        )
    return [_predicate(item) for item in value]


def _predicate(value: Any) -> dict[str, Any]:
    if isinstance(value, str):
        return {"type": "expression", "expression": value}
    if isinstance(value, list) and len(value) in (3, 4):
        return {"type": "column", **dict(zip(("left", "operator", "right", "offset"), value, strict=False))}
    if isinstance(value, Mapping):
        return _typed(value, "expression" if "expression" in value else "column")
    raise CaseFileError(
        f"{value!r} is not a predicate", help="write 'right.a > 1', [left, '>=', right] or a mapping"
    )


_FIELDS: dict[str, Any] = {
    "keys": ("equal_keys", _keys),
    "equal_keys": ("equal_keys", _keys),
    "order": ("order", _order),
    "predicates": ("predicates", _predicates),
    "range_predicates": ("range_predicates", _predicates),
}
