"""Flat columns between the stages of a batch, one for each slot of the plan."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from types import ModuleType
from typing import Any

from pyspark.sql import Column

from weft.streams.plan.resolved import Slot


def slot_name(slot: Slot) -> str:
    """Return the name of the flat column of a slot.

    >>> slot_name(("i", 0, 3)), slot_name(("t", 1)), slot_name(("w", 0))
    ('i0_3', 't1', 'w0')
    """
    return slot[0] + "_".join(str(part) for part in slot[1:])


def lookup(F: ModuleType) -> Callable[[Hashable], Column]:
    """Return the column of a slot as expressions mean it: windows are TIMESTAMP, not microseconds."""

    def column(slot: Any) -> Column:
        found: Column = F.col(slot_name(slot))
        return F.timestamp_micros(found) if slot[0] == "w" else found

    return column
