"""Functions that run on workers which do not have Weft."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import TypeVar

from pyspark import cloudpickle

F = TypeVar("F", bound=Callable[..., object])


def sent_by_value(modules: Sequence[ModuleType], function: F) -> F:
    """Return `function` so that it travels with its modules instead of by their names."""
    for module in modules:
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]  # pyspark ships it untyped
    return function
