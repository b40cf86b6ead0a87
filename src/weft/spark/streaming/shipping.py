"""What travels to workers with a join: the kernel alone, and the expression engine where a condition needs it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import weft.codes
import weft.core
import weft.errors
import weft.expr
from weft.kernel.spec import JoinTask
from weft.spark.shipping import sent_by_value

F = TypeVar("F", bound=Callable[..., object])


def with_its_condition(task: JoinTask, function: F) -> F:
    """Return the function so that a condition that is asked row by row travels with it."""
    if task.residual is None or task.residual.rows is None:
        return function
    for module in (weft.codes, weft.errors, weft.core, weft.expr):
        sent_by_value(module, function)
    return function
