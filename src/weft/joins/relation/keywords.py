"""Keywords that a join by a spec does not take, each answered with what to write instead."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from weft.core.mistakes import Mistakes
from weft.core.names import is_keyword_name, near
from weft.errors import ArgumentError
from weft.joins.spec.join import JoinSpec

_TAKEN = ("project", "suffixes", "stats")
_NATURAL = ("strict", "exclude_shared")
_METHODS = {
    "inner": "inner_join",
    "left": "left_outer",
    "right": "right_outer",
    "full": "full_outer",
    "outer": "full_outer",
    "semi": "semi_join",
    "anti": "anti_join",
    "cross": "cross_join",
}
_ORDER = "order=AsofOrder('left_time', 'right_time')"
_NEEDED = {
    "JoinSpec": (),
    "AsofSpec": (_ORDER,),
    "IntervalSpec": (_ORDER, "lower='0s'", "upper='1 hour'"),
    "WindowSpec": (_ORDER, "window='tumbling'", "size='1 hour'"),
}
"""What the example of each spec says besides the keys, so that it runs."""


def refuse_keywords(
    method: str, unexpected: dict[str, Any], kind: type[JoinSpec] = JoinSpec, taken: tuple[str, ...] = _TAKEN
) -> None:
    """Raise for every keyword; those that look like key aliases share one call that runs."""
    mistakes = Mistakes()
    options = ("predicates", *(f.name for f in fields(kind) if f.kw_only))
    aliases: dict[str, Any] = {}
    for name, value in unexpected.items():
        said_elsewhere = name in (*options, *_NATURAL, "how")
        if name == "keys" or (isinstance(value, str) and not said_elsewhere):
            aliases[name] = value
        else:
            told = f"{method} takes no keyword {name}="
            mistakes.add(ArgumentError(told, help=_advice(name, value, kind, taken, options)))
    if aliases:
        told = ", ".join(f"{name}={value!r}" for name, value in aliases.items())
        call = ", ".join((*_said(aliases, options), *_NEEDED[kind.__name__]))
        meant = [c for name in aliases for c in near(name, (*taken, *options), most=1)]
        mistakes.add(
            ArgumentError(
                f"{method} takes its keys from a {kind.__name__}, not from keywords ({told})",
                help=f"write {method}(other, {kind.__name__}.from_kwargs({call}))"
                + "".join(f"\n{_meant(m, kind, taken)}" for m in meant),
            )
        )
    mistakes.raise_all()


def _meant(name: str, kind: type[JoinSpec], taken: tuple[str, ...]) -> str:
    where = "" if name in taken else f" of {kind.__name__}"
    return f"or did you mean the parameter {name}={where}?"


def _advice(
    name: str, value: Any, kind: type[JoinSpec], taken: tuple[str, ...], options: tuple[str, ...]
) -> str:
    spec = kind.__name__
    if name in options:
        return f"put it in the {spec}: {spec}(..., {name}={value!r})"
    if name == "how":
        wanted = _METHODS.get(value) if isinstance(value, str) else None
        return f"the method says how: call {wanted or ', '.join(dict.fromkeys(_METHODS.values()))}"
    if name in _NATURAL:
        return f"natural joins take it; a {spec} says every key itself, so leave it out"
    close = near(name, (*taken, *options), most=1)
    if close and close[0] in options:
        return f"did you mean {close[0]}=? put it in the {spec}: {spec}(..., {close[0]}={value!r})"
    if close:
        return f"did you mean the parameter {close[0]}=?"
    example = ", ".join(("[('left_column', 'right_column')]", *_NEEDED[spec]))
    return f"keys stand in the spec: {spec}({example})"


def _said(aliases: dict[str, Any], options: tuple[str, ...]) -> list[str]:
    """Return the arguments of from_kwargs; names that are none of its aliases go into keys=."""
    listed = aliases.get("keys")
    plain = {n: v for n, v in aliases.items() if is_keyword_name(n) and n not in (*options, "keys")}
    odd = {n: v for n, v in aliases.items() if n not in plain and isinstance(v, str)}
    told = [f"{n}={v!r}" for n, v in plain.items()]
    if odd or listed is not None:
        told.append(f"keys={odd or listed!r}")
    return told
