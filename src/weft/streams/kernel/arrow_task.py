"""The task of a worker: collect the rows of its groups, join them, save the state, then yield the output.

Input columns::

    __weft_group  __weft_side (0 left, 1 right, -1 tick)  __weft_hash  __weft_time  __weft_raw
    left_<child> ..  right_<child> ..

A tick is a row for each group, so that rows also expire in groups without new rows.  Children are top-level
columns, because Spark converts structs to Arrow at several times the cost of their fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from weft.streams.kernel.gate import Arrivals
from weft.streams.kernel.spec import Clock, JoinTask, KernelProblem
from weft.streams.kernel.state_files import GroupFolder, StateStore, open_group, save_group
from weft.streams.kernel.transition import check_size, step

GROUP, SIDE, HASH, TIME, RAW = "__weft_group", "__weft_side", "__weft_hash", "__weft_time", "__weft_raw"
LEFT, RIGHT = "left_", "right_"
"""Prefixes of the names of the children of a side."""
TICK = -1

Task = Callable[[Iterable[Any]], Iterator[Any]]


def arrow_task(
    task: JoinTask,
    clock: Clock,
    *,
    root: str,
    batch: int,
    previous: int | None,
    watermark: int,
    wall_clock: int,
    groups: int,
) -> Task:
    """Return the function for ``mapInArrow``.

    `root` is the folder of the checkpoint, `previous` the batch whose state is continued (None in the first batch),
    `watermark` is ``NEVER`` while there is none.
    """

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        places = StateStore(root)
        collected = Collector()
        # The rows of a group may be in any record batch of the partition, so all are read before the first join.
        for one in batches:
            collected.add(one)
        for group, (left, right) in collected.groups().items():
            place = GroupFolder(places, task.number, group)
            state = open_group(place, previous, task, left.rows.schema, right.rows.schema)
            check_size(state, left, right, groups=groups)
            stepped = step(task, state, left, right, clock, batch=batch, watermark=watermark, wall_clock=wall_clock)
            # Saved before the output is read.  A task that is repeated continues from `previous` too and makes the
            # same state; no batch uses it before the driver commits this one.
            save_group(place, stepped.state, stepped.rejects, watermark=watermark)
            yield from stepped.out

    return run


class Collector:
    """Rows of one partition by group and side."""

    def __init__(self) -> None:
        self.pieces: dict[int, tuple[list[Any], list[Any]]] = {}
        self.schemas: tuple[Any, Any] | None = None

    def add(self, batch: Any) -> None:
        """Add the rows of a record batch, without copies if all belong to one side of one group."""
        if self.schemas is None:
            self.schemas = (_child_schema(batch, LEFT), _child_schema(batch, RIGHT))
        if not batch.num_rows:
            return
        groups = batch.column(GROUP).to_numpy(zero_copy_only=False)
        sides = batch.column(SIDE).to_numpy(zero_copy_only=False)
        alone = bool((groups == groups[0]).all())  # the usual case: a partition is a group
        for group in groups[:1] if alone else np.unique(groups):
            here = np.ones(len(groups), dtype=np.bool_) if alone else groups == group
            pieces = self.pieces.setdefault(int(group), ([], []))
            for side, prefix in enumerate((LEFT, RIGHT)):
                mask = here & (sides == side)
                if mask.any():
                    mine = batch.select([HASH, TIME, RAW, *(n for n in batch.schema.names if n.startswith(prefix))])
                    pieces[side].append(mine if mask.all() else mine.filter(pa.array(mask)))

    def groups(self) -> dict[int, tuple[Arrivals, Arrivals]]:
        """Return the arrivals of each group."""
        if self.schemas is None:
            return {}
        left, right = self.schemas
        return {
            group: (_concat_pieces(pieces[0], left), _concat_pieces(pieces[1], right))
            for group, pieces in sorted(self.pieces.items())
        }


def _concat_pieces(pieces: list[Any], schema: Any) -> Arrivals:
    if not pieces:
        nothing = pa.array([], pa.int64())
        return Arrivals(hashes=nothing, times=nothing, rows=schema.empty_table())
    # Columns stay in chunks: long strings may not fit into one array.
    hashes, times, raw, *children = pa.Table.from_batches(pieces).columns
    columns = [c if c.type == f.type else c.cast(f.type) for c, f in zip(children, schema, strict=True)]
    return Arrivals(
        hashes=hashes,
        times=times,
        raw=raw if raw.null_count < len(raw) else None,
        rows=pa.table(columns, schema=schema),
    )


def _child_schema(batch: Any, prefix: str) -> Any:
    """Return the children of a side; timestamps are UTC, whatever the time zone of the session."""
    # Every row has the columns of both sides, with NULL on the other one, and a join has at least one key.
    mine = [f for f in batch.schema if f.name.startswith(prefix)]
    if not mine:
        message = f"the input of the join has no column {prefix}.., only {', '.join(batch.schema.names)}"
        raise KernelProblem("W2201", message, "report it as a defect of Weft")
    return pa.schema([pa.field(f.name.removeprefix(prefix), _to_utc(f.type)) for f in mine])


def _to_utc(kind: Any) -> Any:
    # Spark labels timestamps with the zone of the session; the state must not change its type when that changes.
    if pa.types.is_timestamp(kind):
        return pa.timestamp(kind.unit, "UTC") if kind.tz else kind
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_to_utc(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([f.with_type(_to_utc(f.type)) for f in kind])
    if pa.types.is_map(kind):
        key, item = kind.key_field, kind.item_field
        return pa.map_(key.with_type(_to_utc(key.type)), item.with_type(_to_utc(item.type)))
    return kind
