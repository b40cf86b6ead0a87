"""Functions that run on workers which do not have Weft."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import TypeVar

from pyspark import cloudpickle

F = TypeVar("F", bound=Callable[..., object])


def sent_by_value(module: ModuleType, function: F) -> F:
    """Return `function` so that it travels with its module instead of by the module's name."""
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]  # pyspark ships it untyped
    return function
