"""Functions that run on workers which do not have Weft."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from types import ModuleType
from typing import Any, TypeVar

from pyspark import cloudpickle

from weft.joins.spark.workers import WORKERS_NEED, help_for_workers

F = TypeVar("F", bound=Callable[..., object])


class _Shipped:
    """A function on its way: unpacking it looks for the modules it needs before they are imported."""

    def __init__(self, function: Callable[..., object], needs: tuple[str, ...], advice: str) -> None:
        self.function, self.needs, self.advice = function, needs, advice

    def __call__(self, left: object, right: object) -> object:
        return self.function(left, right)

    def __reduce__(self) -> tuple[Any, ...]:
        shipped = cloudpickle.dumps(self.function)  # type: ignore[no-untyped-call]  # pyspark ships it untyped
        return unpacked, (shipped, self.needs, self.advice)


def unpacked(shipped: bytes, needs: tuple[str, ...], advice: str) -> Any:
    """Return a function that was sent, on the worker; a module that it needs and that is not there is named."""
    missing = [name for name in needs if find_spec(name) is None]
    if missing:
        message = (
            f"[W1809] the Python of Spark's workers, {sys.executable}, has no module {' and no module '.join(missing)}. "
            f"Next: {advice}"
        )
        raise ModuleNotFoundError(message)
    return cloudpickle.loads(shipped)


def sent_by_value(modules: Sequence[ModuleType], function: F) -> F:
    """Return `function` so that it travels with its modules instead of by their names.

    A worker without numpy or pyarrow fails with W1809, before Spark's own code or the function imports them.
    """
    for module in (*modules, sys.modules[__name__]):
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]  # pyspark ships it untyped
    advice = f"{help_for_workers()}; or take a plan that needs no Python: strategy='union'"
    return _Shipped(function, tuple(WORKERS_NEED), advice)  # type: ignore[return-value]  # it is called like the function
