"""Methods that share one signature: it is written once and lent to its siblings."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])


def like(model: F, name: str, summary: str, call: Callable[..., Any]) -> F:
    """Return a method called `name` with the signature of `model` that runs `call`.

    ``help()``, editors and type checkers see the whole signature, and below the summary the
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
    """Return what the docstring of the model says below its first line, about `name` instead."""
    _, _, rest = inspect.cleandoc(model.__doc__ or "").partition("\n\n")
    return rest.replace(model.__name__, name)
