"""Rows of the in-process stream engine as the kernel, joins with tables and files of a sink have them."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from weft.core.frozen import FrozenMap
from weft.core.types import Decimal as DecimalType
from weft.core.types import DType, Scalar
from weft.expr import evaluate
from weft.streams.checkpoint.ledger import COUNTS
from weft.streams.checkpoint.manifest import Counts
from weft.streams.kernel.gate import Arrivals
from weft.streams.kernel.pairs import arrow_type
from weft.streams.kernel.ranges import find_tasks
from weft.streams.kernel.spec import JoinTask, Side
from weft.streams.plan.kernel_spec import Child, Layout
from weft.streams.plan.resolved import WINDOW_END, WINDOW_START, KernelStep, OutputColumn, TableStep
from weft.testing.values import EPOCH, as_type, microseconds

Values = dict[Hashable, Any]
HashOf = Callable[[tuple[Any, ...]], int]
_Routed = tuple["Flowing", int | None, int]
"""A row, the hash of its keys, and the hash by which it is distributed."""


@dataclass(slots=True, eq=False)
class Flowing:
    """A row between two steps: its values by slot, or the text of an invalid line."""

    values: Values
    unread: str | None = None


def stable_hash(values: tuple[Any, ...]) -> int:
    """Return 64 bits of a tuple of values, the same in every process.

    >>> stable_hash(("a", 1)) == stable_hash(("a", 1)), stable_hash(("a", 1)) == stable_hash(("a1",))
    (True, False)
    """
    # Not `hash`, whose seed differs between processes.
    digest = hashlib.blake2b(repr(values).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def schema_of(children: Iterable[Child]) -> Any:
    """Return the Arrow schema of one side's struct."""
    return pa.schema([(c.name, arrow_type(str(c.dtype))) for c in children])


class Packed:
    """Rows of one side of a join, by group, as the kernel takes them."""

    def __init__(self, step: KernelStep, side: Side, layout: Layout, task: JoinTask, wall_clock: int) -> None:
        self.side = side
        self.children = layout.left if side == "left" else layout.right
        self.keys = [(k.left if side == "left" else k.right, k.dtype) for k in step.keys]
        self.axis = None if step.axis is None else step.axis[0 if side == "left" else 1]
        rules = task.side(side)
        self.fills_time = rules.raw and rules.missing_event_time == "wall_clock"
        self.wall_clock = wall_clock
        self.schema = schema_of(self.children)

    def by_task(self, rows: Sequence[Flowing], tasks: int, hash_of: HashOf) -> list[Arrivals]:
        """Return the arrivals of each task in turn."""
        members: list[list[_Routed]] = [[] for _ in range(tasks)]
        for row in rows:
            key = tuple(as_type(row.values.get(slot), dtype) for slot, dtype in self.keys)
            known = row.unread is None and None not in key
            hashed = hash_of(key) if known else None
            # Rows that match nothing are spread by their content, as `weft.streams.spark.kernel_stage` does.
            route = hashed if hashed is not None else stable_hash(tuple(row.values.values()))
            members[int(find_tasks(np.array([route]), tasks)[0])].append((row, hashed, route))
        return [self._arrivals(one) for one in members]

    def _arrivals(self, rows: list[_Routed]) -> Arrivals:
        columns = [
            pa.array([self._cell(row.values, child) for row, *_ in rows], self.schema.field(child.name).type)
            for child in self.children
        ]
        times = [None if self.axis is None else row.values.get(self.axis) for row, *_ in rows]
        return Arrivals(
            hashes=pa.array([hashed for _, hashed, _ in rows], pa.int64()),
            times=pa.array(times, pa.int64()),
            raw=pa.array([row.unread for row, *_ in rows], pa.string()),
            rows=pa.table(columns, schema=self.schema),
            routes=np.array([route for *_, route in rows], dtype=np.int64),
        )

    def _cell(self, values: Values, child: Child) -> Any:
        value = values.get(child.slot)
        if child.slot[0] == "t":
            return self.wall_clock if value is None and self.fills_time and child.slot == self.axis else value
        if child.slot[0] == "w":
            return None if value is None else microseconds(value)
        return as_type(value, child.dtype)


def unpacked(batch: Any, layout: Layout) -> list[Flowing]:
    """Return the rows of a batch of the kernel's output."""
    return [_row(record, layout) for record in batch.to_pylist()]


def _row(record: Mapping[str, Any], layout: Layout) -> Flowing:
    values: Values = {}
    for side, children in (("left", layout.left), ("right", layout.right)):
        struct = record[side]
        for child in children:
            value = None if struct is None else struct[child.name]
            values[child.slot] = _instant(value) if child.slot[0] == "w" else value
    if "window_start" in record:
        values[WINDOW_START] = _instant(record["window_start"])
        values[WINDOW_END] = _instant(record["window_end"])
    return Flowing(values)


def _instant(at: int | None) -> dt.datetime | None:
    return None if at is None else EPOCH + dt.timedelta(microseconds=at)


def written(row: Mapping[str, Any]) -> str:
    """Return a row of the output as a line of JSON."""
    return json.dumps({name: _plain(value) for name, value in row.items()}, ensure_ascii=False)


def _plain(value: Any) -> Any:
    if isinstance(value, dt.date):
        return value.isoformat()
    return str(value) if isinstance(value, Decimal) else value


def read(line: str, output: Sequence[OutputColumn]) -> dict[str, Any]:
    """Return the row that `written` wrote."""
    record = json.loads(line)
    return {column.name: _typed(record[column.name], column.dtype) for column in output}


def _typed(value: Any, dtype: DType) -> Any:
    if value is None:
        return None
    if isinstance(dtype, DecimalType):
        return Decimal(value)
    if isinstance(dtype, Scalar) and dtype.name in ("timestamp", "timestamp_ntz"):
        return dt.datetime.fromisoformat(value)
    if isinstance(dtype, Scalar) and dtype.name == "date":
        return dt.date.fromisoformat(value)
    return value


def looked_up(
    step: TableStep, rows: Sequence[Flowing], table: Sequence[Values], malformed: int
) -> tuple[list[Flowing], Counts]:
    """Return the rows joined with the table, and the counts of the left side.

    `malformed` is the number of malformed rows that no earlier join has counted.
    """
    counts = dict.fromkeys(COUNTS, 0)
    counts["in"] = counts["rejected"] = malformed
    out: list[Flowing] = []
    for row in rows:
        if row.unread is not None:
            out.append(row)
            continue
        matches = [other for other in table if _meets(step, row.values, other)]
        counts["in"] += 1
        counts["matched" if matches else "unmatched"] += 1
        out.extend(Flowing({**row.values, **other}) for other in matches)
        if not matches and step.how == "left":
            out.append(row)
    return out, FrozenMap(counts)


def _meets(step: TableStep, left: Values, right: Values) -> bool:
    for key in step.keys:
        mine, other = as_type(left.get(key.left), key.dtype), as_type(right.get(key.right), key.dtype)
        if mine is None or mine != other:
            return False
    return step.residual is None or evaluate(step.residual, {**left, **right}.get) is True
