"""The reference engine of streams: the meaning of a planned statement, batch by batch.

It keeps every row of every input in plain lists and compares every row with every row.  It shares no logic with the
kernel; rows, batches and counts of every engine must equal those of the reference.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from weft.expr import evaluate
from weft.streams.checkpoint.ledger import COUNTS, side_name
from weft.streams.kernel.spec import FOREVER, Clock
from weft.streams.plan.clocks import compute_clocks, compute_watermark
from weft.streams.plan.resolved import Input, KernelStep, StatementPlan, TableStep, time_slot
from weft.testing.stream_items import Item, Rejected, Row, of_stream, of_table
from weft.testing.stream_join import JoinReference, is_true
from weft.testing.values import as_type, compare, microseconds

Batch = Mapping[str, Sequence[Row]]
"""The rows of one batch by the name of their stream."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceResult:
    """The result of a statement: rows with the batch that emits them, counts, rejected rows, clocks.

    `times` are the event times of the rows in microseconds, `marks` the watermark of each batch.
    """

    rows: tuple[tuple[int, Mapping[str, Any]], ...]
    ledger: Mapping[str, Mapping[str, int]]
    rejects: tuple[Rejected, ...]
    clocks: tuple[tuple[Clock, ...], ...]
    marks: tuple[int | None, ...]
    times: tuple[int | None, ...]


def run_reference(
    plan: StatementPlan,
    batches: Sequence[Batch],
    *,
    tables: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
    final: bool = True,
    wall_clock: int = 0,
    idle: Mapping[int, Collection[str]] | None = None,
) -> ReferenceResult:
    """Return the result of a statement over batches, and of the flush after them when `final`.

    `idle` maps the number of a batch to the aliases that its watermark ignores.
    """
    run = _Run(plan, tables or {})
    for number, batch in enumerate(batches):
        run.batch(number, batch, wall_clock, (idle or {}).get(number, ()))
    if final:
        run.flush(len(batches), wall_clock)
    return run.result()


class _Run:
    def __init__(self, plan: StatementPlan, tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        self.plan = plan
        self.tables = {t.number: [of_table(t, r) for r in tables[t.table.name]] for t in plan.tables}
        self.joins = {s.number: JoinReference(plan, s) for s in plan.kernel_steps}
        self.lookups = {s.number: dict.fromkeys(COUNTS, 0) for s in plan.steps if isinstance(s, TableStep)}
        self.malformed = 0
        self.greatest: dict[str, int | None] = {}
        self.mark: int | None = None
        self.marks: list[int | None] = []
        self.clocks: list[tuple[Clock, ...]] = []
        self.rows: list[tuple[int, Mapping[str, Any]]] = []
        self.times: list[int | None] = []
        self.rejects: list[Rejected] = []

    def batch(self, number: int, batch: Batch, wall_clock: int, idle: Collection[str]) -> None:
        """Run one batch: whether its rows are late depends on the watermark of the batches before it."""
        self.mark = compute_watermark(self.plan, self.greatest, self.mark, idle=idle)
        arrived = {
            i.number: [of_stream(i, row, number) for row in batch.get(i.stream.name, ())] for i in self.plan.inputs
        }
        self._step(number, arrived, self.mark, wall_clock)
        for source in self.plan.inputs:
            times = [i.time for i in arrived[source.number] if i.time is not None]
            times += [t for t in (self.greatest.get(source.alias),) if t is not None]
            self.greatest[source.alias] = max(times, default=None)

    def flush(self, number: int, wall_clock: int) -> None:
        """End the input of all sides."""
        nothing: dict[int, list[Item]] = {i.number: [] for i in self.plan.inputs}
        self._step(number, nothing, FOREVER, wall_clock)

    def _step(self, number: int, arrived: Mapping[int, list[Item]], mark: int | None, wall_clock: int) -> None:
        before = self.clocks[-1] if self.clocks else ()
        now = compute_clocks(self.plan, mark, before)
        self.clocks.append(now)
        self.marks.append(mark)
        flowing = list(arrived[self._first().number])
        if not self.plan.kernel_steps:
            flowing = self._readable(flowing, number)
        due = iter(now)
        for step in self.plan.steps:
            if isinstance(step, TableStep):
                flowing = self._looked_up(step, flowing)
                continue
            right = arrived.get(step.right, [])
            # A table arrives with the first batch and stays.
            if step.right in self.tables and number == 0:
                right = self.tables[step.right]
            flowing = self.joins[step.number].run(
                flowing, right, next(due), batch=number, watermark=self.mark, wall_clock=wall_clock
            )
        # WHERE comes after all joins, also where an engine filters earlier.
        for item in flowing:
            if self._passes(item):
                self.rows.append((number, self._selected(item)))
                self.times.append(self._time(item))

    def _first(self) -> Input:
        """Return the stream whose rows the first step takes from the left."""
        if not self.plan.steps:
            return self.plan.inputs[0]
        source = self.plan.source(self.plan.steps[0].left[0])
        assert isinstance(source, Input)  # noqa: S101  # the left side of the first step is a stream
        return source

    def _readable(self, items: list[Item], batch: int) -> list[Item]:
        """Return the valid rows; statements with a stateful join leave this to the join."""
        unread = [i for i in items if i.unread is not None]
        self.malformed += len(unread)
        self.rejects.extend(
            Rejected(side="left", reason="MALFORMED", time=None, watermark=None, batch=batch) for _ in unread
        )
        return [i for i in items if i.unread is None]

    def _looked_up(self, step: TableStep, items: list[Item]) -> list[Item]:
        count, out = self.lookups[step.number], []
        for item in items:
            if item.unread is not None:
                out.append(item)
                continue
            matches = [row for row in self.tables[step.right] if self._meets(step, item, row)]
            count["in"] += 1
            count["matched" if matches else "unmatched"] += 1
            out.extend(Item({**item.values, **row.values}, item.time, item.batch) for row in matches)
            if not matches and step.how == "left":
                out.append(item)
        return out

    def _meets(self, step: TableStep, item: Item, row: Item) -> bool:
        for key in step.keys:
            one, other = (as_type(i.values.get(s), key.dtype) for i, s in ((item, key.left), (row, key.right)))
            if one is None or other is None or compare(one, other) != 0:
                return False
        return step.residual is None or is_true(step.residual, {**item.values, **row.values})

    def _passes(self, item: Item) -> bool:
        return self.plan.where is None or is_true(self.plan.where, item.values)

    def _selected(self, item: Item) -> dict[str, Any]:
        values: dict[Hashable, Any] = item.values
        return {c.name: evaluate(c.typed, values.get) for c in self.plan.output}

    def _time(self, item: Item) -> int | None:
        """Return the event time of a row: as the statement defines it, else the greatest of its sources."""
        if self.plan.event_time is None:
            times = (item.values.get(time_slot(i.number)) for i in self.plan.inputs)
            return max((t for t in times if t is not None), default=None)
        value: Any = evaluate(self.plan.event_time, item.values.get)
        return value * 1000 if isinstance(value, int) else None if value is None else microseconds(value)

    def result(self) -> ReferenceResult:
        """Return the rows and counts so far."""
        ledger: dict[str, dict[str, int]] = {}
        for step in self.plan.steps:
            left = side_name(step.number, "left")
            if isinstance(step, KernelStep):
                join = self.joins[step.number]
                ledger |= {left: join.left.count, side_name(step.number, "right"): join.right.count}
                self.rejects.extend(join.rejects)
            else:
                ledger[left] = dict(self.lookups[step.number])
        if not self.plan.kernel_steps and "left" in ledger:
            for name in ("in", "rejected"):
                ledger["left"][name] += self.malformed
        return ReferenceResult(
            rows=tuple(self.rows),
            ledger=ledger,
            rejects=tuple(self.rejects),
            clocks=tuple(self.clocks),
            marks=tuple(self.marks),
            times=tuple(self.times),
        )
