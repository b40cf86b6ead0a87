"""Arguments of the join methods: their checks, shared signatures, and warnings at the line of the caller."""

from __future__ import annotations

import inspect
import os
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar, cast

from weft.core.findings import ErrorCollector
from weft.core.names import find_similar, is_keyword_name, parse_name
from weft.errors import ArgumentError
from weft.joins.relation.frame import Frame
from weft.joins.relation.joining import check_stats, resolve_projection
from weft.joins.spec.asof import UNBOUNDED, AsofHow, check_column_names, read_order
from weft.joins.spec.join import JoinSpec, check_key_pairs, check_predicates, read_alias_pairs
from weft.joins.spec.values import (
    Direction,
    NearestTie,
    OrderCheck,
    Relationship,
    Statistics,
    Unmatched,
    check_bool,
    check_choice,
    check_distance,
)

Check = Callable[[Any, str], object]


def check_arguments(left: Frame, options: Mapping[str, Any], mistakes: ErrorCollector) -> None:
    """Collect an error for every option whose value is invalid.

    If the left side has a column with the name of the option, the value may be an alias: the error of
    that option then shows how to write one.
    """
    for name, value in options.items():
        hint = f"to alias column {name!r} use keys={{{name!r}: ...}}" if name in left.schema else ""
        with mistakes.collect(hint):
            # A single column may be written as a string; of a column called like the option, the string is its alias.
            is_alias = name in ("by", "keys", "order") and isinstance(value, str) and value not in left.schema
            if hint and is_alias:
                raise ArgumentError(
                    f"{name} {value!r} is not a column of the left relation", help="name a shared column"
                )
            _CHECKS[name](value, name)


def _optional(check: Check) -> Check:
    return lambda value, name: None if value is None else check(value, name)


def _word(words: Any) -> Check:
    return lambda value, name: check_choice(value, words, name)


def _tolerance(value: Any, name: str) -> None:
    if value != UNBOUNDED:
        check_distance(value, name)


def _strategy(value: Any, name: str) -> None:
    if not isinstance(value, str):
        raise ArgumentError(
            f"{name} must be a string, not {type(value).__name__}", help="weft.asof_strategies() lists the names"
        )


_CHECKS: Mapping[str, Check] = {
    "strict": check_bool,
    "project": lambda value, _: resolve_projection(value, None),
    "predicates": check_predicates,
    "suffixes": lambda value, _: resolve_projection(None, value),
    "by": _optional(check_key_pairs),
    "keys": lambda value, _: read_alias_pairs({}, value),
    "exclude_shared": check_column_names,
    "nulls_equal": check_bool,
    "relationship": _optional(_word(Relationship)),
    "unmatched": _optional(_word(Unmatched)),
    "stats": lambda value, _: check_stats(value),
    "order": read_order,
    "direction": _word(Direction),
    "tolerance": _optional(_tolerance),
    "how": _word(AsofHow),
    "allow_exact_matches": check_bool,
    "nearest_tie": _word(NearestTie),
    "tie_break": check_column_names,
    "range_predicates": check_predicates,
    "known": _optional(read_order),
    "tombstone": _optional(lambda value, name: parse_name(value, what=name)),
    "until": _optional(lambda value, name: parse_name(value, what=name)),
    "skip_nulls": check_column_names,  # also "all"
    "order_check": _word(OrderCheck),
    "strategy": _strategy,
    "statistics": _optional(_word(Statistics)),
}


_TAKEN = ("project", "suffixes", "stats")
_NATURAL = ("strict", "exclude_shared")
DIRECTED = {
    "inner": "inner_join",
    "left": "left_outer",
    "right": "right_outer",
    "full": "full_outer",
    "outer": "full_outer",
    "semi": "semi_join",
    "anti": "anti_join",
    "cross": "cross_join",
}
"""The directed join of each `how`, as Weft and other libraries write it."""
_ORDER = "order=AsofOrder('left_time', 'right_time')"
_NEEDED = {
    "JoinSpec": (),
    "AsofSpec": (_ORDER,),
    "IntervalSpec": (_ORDER, "lower='0s'", "upper='1 hour'"),
    "WindowSpec": (_ORDER, "window='tumbling'", "size='1 hour'"),
}
"""Required options of each spec, for an example that runs."""


def refuse_keywords(
    method: str, unexpected: dict[str, Any], kind: type[JoinSpec] = JoinSpec, taken: tuple[str, ...] = _TAKEN
) -> None:
    """Raise for every unexpected keyword; those that look like key aliases get one call to copy."""
    mistakes = ErrorCollector()
    options = ("predicates", *(f.name for f in fields(kind) if f.kw_only))
    aliases: dict[str, Any] = {}
    for name, value in unexpected.items():
        # A string may be the name of a right column: the keyword is then an alias, as in a natural join.
        is_option = name in (*options, *_NATURAL, "how")
        if name == "keys" or (isinstance(value, str) and not is_option):
            aliases[name] = value
        else:
            message = f"{method} takes no keyword {name}="
            mistakes.add(ArgumentError(message, help=_advice(name, value, kind, taken, options)))
    if aliases:
        keywords = ", ".join(f"{name}={value!r}" for name, value in aliases.items())
        call = ", ".join((*_from_kwargs_arguments(aliases, options), *_NEEDED[kind.__name__]))
        similar = [c for name in aliases for c in find_similar(name, (*taken, *options), most=1)]
        mistakes.add(
            ArgumentError(
                f"{method} takes its keys from a {kind.__name__}, not from keywords ({keywords})",
                help=f"write {method}(other, {kind.__name__}.from_kwargs({call}))"
                + "".join(f"\n{_suggestion(name, kind, taken)}" for name in similar),
            )
        )
    mistakes.raise_all()


def _suggestion(name: str, kind: type[JoinSpec], taken: tuple[str, ...]) -> str:
    where = "" if name in taken else f" of {kind.__name__}"
    return f"or did you mean the parameter {name}={where}?"


def _advice(name: str, value: Any, kind: type[JoinSpec], taken: tuple[str, ...], options: tuple[str, ...]) -> str:
    spec = kind.__name__
    if name in options:
        return f"put it in the {spec}: {spec}(..., {name}={value!r})"
    if name == "how":
        target = DIRECTED.get(value) if isinstance(value, str) else None
        return f"the method name decides it: call {target or ', '.join(dict.fromkeys(DIRECTED.values()))}"
    if name in _NATURAL:
        return f"only natural joins take it; leave it out, a {spec} names every key"
    close = find_similar(name, (*taken, *options), most=1)
    if close and close[0] in options:
        return f"did you mean {close[0]}=? put it in the {spec}: {spec}(..., {close[0]}={value!r})"
    if close:
        return f"did you mean the parameter {close[0]}=?"
    example = ", ".join(("[('left_column', 'right_column')]", *_NEEDED[spec]))
    return f"write the keys in the spec: {spec}({example})"


def _from_kwargs_arguments(aliases: dict[str, Any], options: tuple[str, ...]) -> list[str]:
    """Return the arguments of from_kwargs; names that cannot be keywords go into keys=."""
    keys = aliases.get("keys")
    plain = {n: v for n, v in aliases.items() if is_keyword_name(n) and n not in (*options, "keys")}
    odd = {n: v for n, v in aliases.items() if n not in plain and isinstance(v, str)}
    arguments = [f"{n}={v!r}" for n, v in plain.items()]
    if odd or keys is not None:
        arguments.append(f"keys={odd or keys!r}")
    return arguments


F = TypeVar("F", bound=Callable[..., Any])


def copy_signature(model: F, name: str, summary: str, call: Callable[..., Any]) -> F:
    """Return a method called `name` with the signature of `model` that runs `call`.

    ``help()``, editors and type checkers see the full signature, and the docstring has the
    parameters and the example of the model.
    """

    def method(self: Any, /, *args: Any, **named: Any) -> Any:
        return call(self, *args, **named)

    method.__name__ = name
    method.__qualname__ = f"Relation.{name}"
    method.__doc__ = "\n\n".join(filter(None, (summary, _shared(model, name))))
    method.__annotations__ = dict(model.__annotations__)
    method.__signature__ = inspect.signature(model)  # type: ignore[attr-defined]  # honoured by inspect
    return cast("F", method)


def _shared(model: Callable[..., Any], name: str) -> str:
    """Return the docstring of the model below its first line, with `name` in place of its name."""
    _, _, rest = inspect.cleandoc(model.__doc__ or "").partition("\n\n")
    return rest.replace(model.__name__, name)


_PACKAGE = str(Path(__file__).parents[1]) + os.sep


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warn at the first line outside this package."""
    # Counted here, because how many of our frames are above the caller depends on the method (shims call others).
    depth = 1
    frame = sys._getframe(depth)  # noqa: SLF001  # finds the caller's frame
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
        depth += 1
    warnings.warn(message, category, stacklevel=depth + 1)
