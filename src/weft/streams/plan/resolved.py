"""The plan of a streaming job, with names, bounds and clocks resolved: the input of every engine.

Sources of a statement are numbered in the order of FROM, tables too.  Expressions refer to columns by
slots: ``("i", source, column)`` is a column as declared, ``("w", 0)`` and ``("w", 1)`` are the start and
the end of the window, ``("t", source)`` is the event time in microseconds, which conditions read as a number.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from weft.core.frozen import EMPTY, FrozenMap
from weft.core.types import DType
from weft.errors import Diagnostic
from weft.expr import Typed
from weft.joins.resolve.resolved import ResolvedJoin
from weft.streams.kernel.spec import Emit, Limits, MissingTime, Reach, StreamHow
from weft.streams.sql.spec import SinkSpec, StatementSpec, StreamSpec, TableSpec

ColumnSlot = tuple[Literal["i"], int, int]
WindowSlot = tuple[Literal["w"], int]
TimeSlot = tuple[Literal["t"], int]
Slot = ColumnSlot | WindowSlot | TimeSlot

WINDOW_START: WindowSlot = ("w", 0)
WINDOW_END: WindowSlot = ("w", 1)


def column_slot(source: int, index: int) -> ColumnSlot:
    """Return the slot of a declared column.

    >>> column_slot(0, 2)
    ('i', 0, 2)
    """
    return ("i", source, index)


def time_slot(source: int) -> TimeSlot:
    """Return the slot of a source's event time."""
    return ("t", source)


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """A stream of the statement; `columns` are the indices of the columns that are read.

    `time` is the index of the event-time column, or None if the event time is not a declared column.
    """

    number: int
    alias: str
    stream: StreamSpec
    columns: tuple[int, ...]
    time: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableInput:
    """A table of the statement; `columns` are the indices of the columns that are read."""

    number: int
    alias: str
    table: TableSpec
    columns: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepKey:
    """Two columns that must be equal, compared as `dtype`."""

    left: ColumnSlot
    right: ColumnSlot
    dtype: DType


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelStep:
    """A stateful join: two streams, or a stream and a table whose unmatched rows are emitted.

    ``axis`` are the times that are compared, None for a table.  `reach`, `emit`, `limits` and
    `missing_event_time` are the values that the kernel gets.  `resolved` is the same join over two
    schemas whose columns are called ``<alias>__<column>``, which is the form that batch engines read.
    `needed` and `retention` are microseconds that a left and a right row stay after their own time has
    passed: what the match needs, and what is kept.
    """

    kind: Literal["kernel"] = "kernel"
    number: int
    left: tuple[int, ...]
    right: int
    how: StreamHow
    keys: tuple[StepKey, ...]
    reach: Reach
    axis: tuple[TimeSlot, TimeSlot] | None
    residual: Typed | None = None
    vectorised: bool = True
    emit: Emit = "changes"
    limits: Limits
    needed: tuple[int, int] = (0, 0)
    retention: tuple[int, int] = (0, 0)
    missing_event_time: MissingTime = "reject"
    resolved: ResolvedJoin
    bound_from: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableStep:
    """A stateless join: each row is looked up in a table; `left` are the sources joined before."""

    kind: Literal["table"] = "table"
    number: int
    left: tuple[int, ...]
    right: int
    table: TableSpec
    how: Literal["inner", "left"]
    keys: tuple[StepKey, ...]
    residual: Typed | None = None
    reason: str = ""
    resolved: ResolvedJoin


Step = KernelStep | TableStep


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputColumn:
    """A column of the sink: its name and expression."""

    name: str
    typed: Typed
    dtype: DType
    nullable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementPlan:
    """One INSERT, CREATE STREAM AS or SELECT, ready to be run by any engine.

    `output` are the columns of the sink in order; `key_columns` those marked PRIMARY KEY.
    `event_time` is the expression behind ``AS _EVENT_TIME``; without it the time of a row is the
    greatest of its sources' times.
    """

    name: str
    inputs: tuple[Input, ...]
    tables: tuple[TableInput, ...] = ()
    steps: tuple[Step, ...] = ()
    where: Typed | None = None
    output: tuple[OutputColumn, ...]
    key_columns: tuple[str, ...] = ()
    event_time: Typed | None = None
    emit: Emit = "changes"
    sink: SinkSpec
    executor: str
    reason: str
    warnings: tuple[Diagnostic, ...] = ()
    spec: StatementSpec = field(compare=False, repr=False)

    @property
    def kernel_steps(self) -> tuple[KernelStep, ...]:
        """The stateful joins, in order."""
        return tuple(s for s in self.steps if isinstance(s, KernelStep))

    @property
    def has_watermark(self) -> bool:
        """Whether a join compares times; without one no row is late and none waits."""
        return any(s.axis is not None for s in self.kernel_steps)

    def source(self, number: int) -> Input | TableInput:
        """Return the source of FROM with this number."""
        members: tuple[Input | TableInput, ...] = (*self.inputs, *self.tables)
        return next(s for s in members if s.number == number)

    def declaration(self, number: int) -> StreamSpec | TableSpec:
        """Return the stream or table behind a source."""
        source = self.source(number)
        return source.stream if isinstance(source, Input) else source.table


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPlan:
    """All statements of a job file; `explains` are those that EXPLAIN JOIN only prints."""

    name: str
    root: Path
    statements: tuple[StatementPlan, ...]
    explains: tuple[StatementPlan, ...] = ()
    settings: FrozenMap[str, Any] = EMPTY
    warnings: tuple[Diagnostic, ...] = ()
