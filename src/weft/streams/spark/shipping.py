"""Sending the kernel to workers: by value, because they need no Weft, and once for each worker.

Pickling and loading the kernel costs more than a small batch, so it is pickled once for each join, and a worker
keeps what it has loaded.
"""

from __future__ import annotations

import hashlib
import pickle
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from pyspark import cloudpickle

import weft.codes
import weft.core
import weft.errors
import weft.expr
import weft.redaction
import weft.streams.kernel
from weft.streams.kernel.arrow_task import arrow_task
from weft.streams.kernel.spec import Clock, JoinTask

_BUILT = "_weft_built"
"""Module that holds what a worker has loaded; nothing else lives as long as the worker."""


@dataclass(frozen=True, slots=True)
class ShippedJoin:
    """A pickled join: the bytes and their hash."""

    task: JoinTask
    payload: bytes
    name: str


def ship_join(task: JoinTask) -> ShippedJoin:
    """Pickle the kernel with one join; a condition that is evaluated by row needs the expressions too."""
    modules = [weft.streams.kernel]
    if task.residual is not None and task.residual.rows is not None:
        modules += [weft.codes, weft.redaction, weft.errors, weft.core, weft.expr]
    for module in (*modules, sys.modules[__name__]):
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]  # pyspark ships it untyped
    payload = cloudpickle.dumps((arrow_task, Clock, task))  # type: ignore[no-untyped-call]
    return ShippedJoin(task, payload, hashlib.sha256(payload).hexdigest())


def worker_task(join: ShippedJoin, clock: Clock, **named: Any) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Return the function for ``mapInArrow``; `named` is what `weft.streams.kernel.arrow_task` takes for a batch."""
    payload, name, left, right = join.payload, join.name, clock.left, clock.right

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        kept: Any = sys.modules.setdefault(_BUILT, ModuleType(_BUILT))
        if not hasattr(kept, name):
            setattr(kept, name, pickle.loads(payload))  # noqa: S301  # made by our own driver
        make, clock_of, task = getattr(kept, name)
        yield from make(task, clock_of(left=left, right=right), **named)(batches)

    return run
