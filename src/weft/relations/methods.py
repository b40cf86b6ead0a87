"""Methods that share one signature: it is written once and lent to its siblings."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

P = ParamSpec("P")
R = TypeVar("R")


def like(model: Callable[P, R], name: str, summary: str, call: Callable[..., Any]) -> Callable[P, R]:
    """Return a method called `name` with the signature of `model` that runs `call`.

    ``help()``, editors and type checkers see the whole signature.
    """

    def method(self: Any, /, *args: Any, **named: Any) -> Any:
        return call(self, *args, **named)

    method.__name__ = name
    method.__qualname__ = f"Relation.{name}"
    method.__doc__ = summary
    method.__annotations__ = dict(model.__annotations__)
    method.__signature__ = inspect.signature(model)  # type: ignore[attr-defined]  # honoured by inspect
    return cast("Callable[P, R]", method)
