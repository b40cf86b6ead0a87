"""Which columns of each source something reads; no others travel or are kept."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from weft.core.names import fold
from weft.expr import Typed
from weft.streams.plan.resolved import Step
from weft.streams.plan.sources import FromSource
from weft.streams.sql.spec import StreamSpec


def read_columns(
    sources: Sequence[FromSource],
    steps: Sequence[Step],
    where: Typed | None,
    selected: Iterable[Typed | None],
) -> dict[int, tuple[int, ...]]:
    """Return, for each source by its number, the indices of the columns that are read, in order."""
    slots: set[Hashable] = set()
    for typed in (where, *selected, *(s.residual for s in steps)):
        slots.update(typed.slots if typed is not None else ())
    for step in steps:
        for key in step.keys:
            slots |= {key.left, key.right}
    for source in sources:
        if isinstance(source.spec, StreamSpec):
            slots.update(("i", source.number, i) for i in dedup_columns(source.spec))
    return {s.number: tuple(i for i in range(len(s.columns)) if ("i", s.number, i) in slots) for s in sources}


def dedup_columns(stream: StreamSpec) -> tuple[int, ...]:
    """Return the columns by which a stream tells duplicates, by their index."""
    wanted = {fold(name) for name in stream.dedup}
    return tuple(i for i, f in enumerate(stream.columns) if fold(f.name) in wanted)
