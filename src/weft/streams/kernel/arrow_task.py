"""The task of a worker: collect the rows of its keys, join them, save the state, then yield the output.

Input columns::

    __weft_route  __weft_side (0 left, 1 right, -1 tick)  __weft_hash  __weft_time  __weft_raw
    left_<child> ..  right_<child> ..

The hash of the keys is NULL for a row with a NULL key; the route, a hash by which it was sent to its task, never is.
A tick is a row for each task, so that rows also expire in tasks without new rows.  Children are top-level
columns, because Spark converts structs to Arrow at several times the cost of their fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from weft.streams.kernel.gate import Arrivals
from weft.streams.kernel.ranges import find_tasks, range_of
from weft.streams.kernel.spec import Clock, Entry, JoinTask, KernelProblem
from weft.streams.kernel.state_files import JoinFolder, open_state, save_state
from weft.streams.kernel.state_store import StateFiles
from weft.streams.kernel.transition import check_size, step

ROUTE, SIDE, HASH, TIME, RAW = "__weft_route", "__weft_side", "__weft_hash", "__weft_time", "__weft_raw"
LEFT, RIGHT = "left_", "right_"
"""Prefixes of the names of the children of a side."""
TICK = -1

Task = Callable[[Iterable[Any]], Iterator[Any]]


def arrow_task(
    task: JoinTask,
    clock: Clock,
    *,
    files: StateFiles,
    batch: int,
    state: Sequence[Entry],
    watermark: int,
    wall_clock: int,
    tasks: int,
    report: Callable[[dict[str, Any]], object],
) -> Task:
    """Return the function for ``mapInArrow``.

    `files` are those of the checkpoint, `state` what the last commit lists, `watermark` is ``NEVER`` while there is
    none, `tasks` the number of tasks that share the keys.  `report` receives what each of them wrote.
    """

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        place = JoinFolder(files, task.number)
        collected = Collector(tasks)
        # The rows of a task may be in any record batch of the partition, so all are read before the first join.
        for one in batches:
            collected.add(one)
        for number, (left, right) in collected.groups().items():
            keys = range_of(number, tasks)
            before = open_state(place, state, keys, task, left.rows.schema, right.rows.schema)
            check_size(before, left, right, tasks=tasks)
            stepped = step(task, before, left, right, clock, batch=batch, watermark=watermark, wall_clock=wall_clock)
            # Saved before the output is read.  A task that is repeated makes the same state under other names; the
            # driver commits what one of them reported.
            _, written = save_state(
                place, before, stepped.state, stepped.rejects, watermark=watermark, keys=keys, task=number
            )
            report(written)
            yield from stepped.out

    return run


class Collector:
    """Rows of one partition by task and side."""

    def __init__(self, tasks: int) -> None:
        self.tasks = tasks
        self.pieces: dict[int, tuple[list[Any], list[Any]]] = {}
        self.schemas: tuple[Any, Any] | None = None

    def add(self, batch: Any) -> None:
        """Add the rows of a record batch, without copies if all belong to one side of one task."""
        if self.schemas is None:
            self.schemas = (_child_schema(batch, LEFT), _child_schema(batch, RIGHT))
        if not batch.num_rows:
            return
        numbers = find_tasks(batch.column(ROUTE).to_numpy(zero_copy_only=False), self.tasks)
        sides = batch.column(SIDE).to_numpy(zero_copy_only=False)
        alone = bool((numbers == numbers[0]).all())  # the usual case: a partition is a task
        for number in numbers[:1] if alone else np.unique(numbers):
            here = np.ones(len(numbers), dtype=np.bool_) if alone else numbers == number
            pieces = self.pieces.setdefault(int(number), ([], []))
            for side, prefix in enumerate((LEFT, RIGHT)):
                mask = here & (sides == side)
                if mask.any():
                    children = (n for n in batch.schema.names if n.startswith(prefix))
                    mine = batch.select([ROUTE, HASH, TIME, RAW, *children])
                    pieces[side].append(mine if mask.all() else mine.filter(pa.array(mask)))

    def groups(self) -> dict[int, tuple[Arrivals, Arrivals]]:
        """Return the arrivals of each task."""
        if self.schemas is None:
            return {}
        left, right = self.schemas
        return {
            number: (_concat_pieces(pieces[0], left), _concat_pieces(pieces[1], right))
            for number, pieces in sorted(self.pieces.items())
        }


def _concat_pieces(pieces: list[Any], schema: Any) -> Arrivals:
    if not pieces:
        nothing = pa.array([], pa.int64())
        return Arrivals(hashes=nothing, times=nothing, rows=schema.empty_table())
    # Columns stay in chunks: long strings may not fit into one array.
    routes, hashes, times, raw, *children = pa.Table.from_batches(pieces).columns
    columns = [c if c.type == f.type else c.cast(f.type) for c, f in zip(children, schema, strict=True)]
    return Arrivals(
        hashes=hashes,
        times=times,
        raw=raw if raw.null_count < len(raw) else None,
        rows=pa.table(columns, schema=schema),
        routes=routes.to_numpy(),
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
