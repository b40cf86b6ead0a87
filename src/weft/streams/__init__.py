"""Streaming SQL: `run`, `run_as_batch` and `explain` from Python.

::

    import weft.streams

    report = weft.streams.run(spark, Path("streams/orders.sql"), final=True)
    report.query("order_status").ledger["left"]["unmatched"]
    report.rows("order_status")

The functions are loaded when they are first used: reading and planning SQL needs no pyspark.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weft.streams.api import (
        BatchReport,
        JobExplanation,
        JobReport,
        Listener,
        QueryReport,
        explain,
        run,
        run_as_batch,
    )

__all__ = ["BatchReport", "JobExplanation", "JobReport", "Listener", "QueryReport", "explain", "run", "run_as_batch"]


class _Streams(ModuleType):
    """The module whose `run` is the public function.

    The import system would replace the function when the package `weft.streams.run` is loaded.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name == "run" and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Streams


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(importlib.import_module("weft.streams.api"), name)
    raise AttributeError(f"module 'weft.streams' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
