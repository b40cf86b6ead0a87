"""Whole streaming statements in this process: the real kernel, state files and commits, without a JVM.

Sources are lists of rows, the sink is a folder of JSON lines; SELECT and WHERE are evaluated by
`weft.expr`.  A restart reads everything from disk.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from weft.core.crash import Crash, crash_point
from weft.core.frozen import FrozenMap
from weft.errors import Code, StreamError
from weft.expr import evaluate
from weft.streams.checkpoint.cached_files import open_files
from weft.streams.checkpoint.commit import STAGING, check_open, commit_batch, decide_heartbeat, seal
from weft.streams.checkpoint.earlier_state import list_state
from weft.streams.checkpoint.folder import Checkpoint, JobRecord, activate, create_checkpoint, find_checkpoint
from weft.streams.checkpoint.ledger import TaskReport, select_reports, side_name
from weft.streams.checkpoint.limits import enforce_limits
from weft.streams.checkpoint.manifest import (
    Counts,
    Heartbeat,
    Ledger,
    Manifest,
    Move,
    last_manifest,
    list_batches,
    read_manifest,
)
from weft.streams.checkpoint.recover import recover
from weft.streams.checkpoint.status import source_sides
from weft.streams.kernel.ranges import range_of
from weft.streams.kernel.spec import NEVER, Clock, KernelProblem
from weft.streams.kernel.state_files import JoinFolder, open_state, save_state
from weft.streams.kernel.transition import check_size, step
from weft.streams.plan.identity import describe_parts
from weft.streams.plan.kernel_spec import build_layout, build_task
from weft.streams.plan.resolved import KernelStep, StatementPlan, TableStep
from weft.testing.stream_arrow import Flowing, HashOf, Packed, Values, looked_up, read, stable_hash, unpacked, written
from weft.testing.stream_items import Row, of_stream, of_table

Batch = Mapping[str, Sequence[Row]]
Tables = Mapping[str, Sequence[Mapping[str, Any]]]
_DEATHS = ("heartbeat", "kernel", "staged")


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamResult:
    """The result of a statement: rows with their batch, the ledger, clocks and watermarks of each batch."""

    rows: tuple[tuple[int, Mapping[str, Any]], ...]
    ledger: Mapping[str, Mapping[str, int]]
    clocks: tuple[tuple[Clock, ...], ...]
    marks: tuple[int | None, ...]
    stats: Mapping[str, Mapping[str, Any]]
    checkpoint: Checkpoint

    @property
    def late(self) -> int:
        """The number of late rows, on all sides."""
        return sum(counts["late"] for counts in self.ledger.values())


class _DiedError(Exception):
    """The process that a CRASH in the input ends."""


def run_statement(
    plan: StatementPlan,
    batches: Sequence[Batch | Crash],
    *,
    root: Path,
    tables: Tables | None = None,
    groups: int | tuple[int, ...] = 2,
    final: bool = True,
    hash_of: HashOf = stable_hash,
    resume: bool = True,
    wall_clock: int = 0,
    idle: Mapping[int, Collection[str]] | None = None,
    seed: int = 0,
) -> StreamResult:
    """Run a statement over batches of rows by stream and return its result so far.

    A CRASH ends the attempt at the next batch before its commit; the batch is then repeated from what is on disk.
    `groups` is the number of tasks that share the keys; of several, each start takes the next one.
    Batches that the checkpoint has committed are skipped, as with Spark.  `idle` maps the number of a batch to the
    aliases that its watermark ignores.
    """
    run = _Run(
        plan=plan,
        root=root,
        tables=tables or {},
        lives=(groups,) if isinstance(groups, int) else groups,
        hash_of=hash_of,
        wall_clock=wall_clock,
        idle=idle or {},
        seed=seed,
    )
    run.open(resume=resume)
    number, deaths = 0, 0
    todo: list[Batch | Crash | None] = [*batches, None] if final else list(batches)
    dies = False
    for one in todo:
        if isinstance(one, Crash):
            dies = True
            continue
        if dies:
            run.dies_at, dies = _DEATHS[deaths % len(_DEATHS)], False
            deaths += 1
            try:
                run.batch(number, one)
            except _DiedError:
                run = run.begun_again()
        run.batch(number, one)
        number += 1
    if dies:
        run = run.begun_again()
    return read_result(plan, root)


def read_result(plan: StatementPlan, root: Path) -> StreamResult:
    """Return the rows and counts that the checkpoint below `root` has committed."""
    checkpoint = find_checkpoint(root / "streams" / plan.name)
    if checkpoint is None:
        raise StreamError(
            f"nothing has run below {str(root)!r}", code="W2215", help="run the statement first: run_statement"
        )
    rows: list[tuple[int, Mapping[str, Any]]] = []
    clocks, marks = [], []
    manifest = Manifest(batch=-1)
    for batch in list_batches(checkpoint.commits):
        manifest = read_manifest(checkpoint, batch)
        clocks.append(tuple(Clock(left=left, right=right) for left, right in manifest.clocks))
        marks.append(manifest.watermark)
        for move in manifest.sink:
            lines = move.to.read_text(encoding="utf-8").splitlines()
            rows.extend((batch, read(line, plan.output)) for line in lines)
    return StreamResult(
        rows=tuple(rows),
        ledger=manifest.ledger,
        clocks=tuple(clocks),
        marks=tuple(marks),
        stats=manifest.stats,
        checkpoint=checkpoint,
    )


@dataclass(slots=True, eq=False, kw_only=True)
class _Run:
    plan: StatementPlan
    root: Path
    tables: Tables
    lives: tuple[int, ...]
    hash_of: HashOf
    wall_clock: int
    idle: Mapping[int, Collection[str]]
    seed: int
    dies_at: str = ""
    checkpoint: Checkpoint = field(init=False)

    @property
    def groups(self) -> int:
        return self.lives[0]

    @property
    def sink(self) -> Path:
        return self.root / "sink"

    def open(self, *, resume: bool = True) -> None:
        """Find or create the checkpoint and restore it to its last commit."""
        folder = self.root / "streams" / self.plan.name
        current = find_checkpoint(folder) if resume else None
        if current is None:
            record = JobRecord(groups=self.groups, parts=describe_parts(self.plan))
            current = create_checkpoint(folder, record)
            activate(current)
        self.checkpoint = current
        check_open(current, self.plan.name)
        recover(current, self.sink / STAGING)

    def begun_again(self) -> _Run:
        """Return a run that reads everything from disk."""
        # Another seed: the repeated batch gets its rows in another order, as after a restart of Spark.
        other = replace(self, dies_at="", seed=self.seed + 1, lives=(*self.lives[1:], self.lives[0]))
        other.open()
        return other

    def batch(self, number: int, batch: Batch | None) -> None:
        """Run one batch, or the flush for None; a committed batch is skipped."""
        before = last_manifest(self.checkpoint)
        if before is not None and number <= before.batch:
            return
        if batch is None:
            crash_point("stream_flush")
        heartbeat = decide_heartbeat(
            self.checkpoint,
            self.plan,
            number,
            before,
            idle=FrozenMap({alias: {"since": 0} for alias in self.idle.get(number, ())}),
            wall_clock=self.wall_clock,
            final=batch is None,
        )
        crash_point("stream_heartbeat")
        self._may_die("heartbeat")
        try:
            rows, looked_up, reports = self._rows(number, batch or {}, heartbeat, before)
        except KernelProblem as problem:
            raise StreamError(problem.message, code=cast("Code", problem.code), help=problem.help) from problem
        crash_point("stream_kernel")
        self._may_die("kernel")
        staged = self._staged(number, rows)
        crash_point("stream_staged")
        self._may_die("staged")
        joins = [s.number for s in self.plan.kernel_steps]
        found = select_reports(self.checkpoint, number, joins, self.groups, reports)
        limited = self._limited(found, heartbeat)
        manifest = commit_batch(
            self.checkpoint,
            number,
            limited,
            staged,
            heartbeat=heartbeat,
            before=before,
            inputs=source_sides(self.plan),
            tables=looked_up,
        )
        if batch is None:
            seal(self.checkpoint, manifest)

    def _may_die(self, point: str) -> None:
        if self.dies_at == point:
            raise _DiedError

    def _rows(
        self, number: int, batch: Batch, heartbeat: Heartbeat, before: Manifest | None
    ) -> tuple[list[Mapping[str, Any]], Ledger, list[dict[str, Any]]]:
        """Return the rows of a batch for the sink, the counts of joins with tables, and the reports of the kernel."""
        mixed = random.Random(f"{self.seed} {number}")  # noqa: S311  # any order must give the same set
        arrived: dict[int, list[Flowing]] = {}
        for source in self.plan.inputs:
            items = [of_stream(source, row, number) for row in batch.get(source.stream.name, ())]
            arrived[source.number] = [Flowing(i.values, i.unread) for i in items]
            mixed.shuffle(arrived[source.number])
        for table in self.plan.tables:
            rows = self.tables[table.table.name] if number == 0 else ()
            arrived[table.number] = [Flowing(of_table(table, row).values) for row in rows]
        flowing = arrived[self.plan.steps[0].left[0] if self.plan.steps else self.plan.inputs[0].number]
        malformed = 0
        if not self.plan.kernel_steps:  # otherwise the first join with state rejects them
            malformed = sum(row.unread is not None for row in flowing)
            flowing = [row for row in flowing if row.unread is None]
        counts: dict[str, Counts] = {}
        reports: list[dict[str, Any]] = []
        due = iter(heartbeat.clocks)
        for one in self.plan.steps:
            if isinstance(one, TableStep):
                flowing, counts[side_name(one.number, "left")] = looked_up(one, flowing, self._table(one), malformed)
                malformed = 0
            else:
                left, right = next(due)
                clock = Clock(left=left, right=right)
                flowing = self._joined(one, flowing, arrived[one.right], clock, heartbeat, before, reports)
        where = self.plan.where
        kept = [r for r in flowing if where is None or evaluate(where, r.values.get) is True]
        selected: list[Mapping[str, Any]] = [
            {c.name: evaluate(c.typed, r.values.get) for c in self.plan.output} for r in kept
        ]
        return selected, FrozenMap(counts), reports

    def _joined(
        self,
        one: KernelStep,
        left: list[Flowing],
        right: list[Flowing],
        clock: Clock,
        heartbeat: Heartbeat,
        before: Manifest | None,
        reports: list[dict[str, Any]],
    ) -> list[Flowing]:
        task, children = build_task(self.plan, one, groups=self.groups), build_layout(self.plan, one)
        ours = Packed(one, "left", children, task, heartbeat.wall_clock)
        theirs = Packed(one, "right", children, task, heartbeat.wall_clock)
        place = JoinFolder(open_files(self.checkpoint.root), one.number)
        mark = NEVER if heartbeat.watermark is None else heartbeat.watermark
        entries = () if before is None else list_state(self.checkpoint, before)
        out: list[Flowing] = []
        pairs = zip(
            ours.by_task(left, self.groups, self.hash_of),
            theirs.by_task(right, self.groups, self.hash_of),
            strict=True,
        )
        for number, (mine, other) in enumerate(pairs):
            keys = range_of(number, self.groups)
            state = open_state(place, entries, keys, task, ours.schema, theirs.schema)
            check_size(state, mine, other, tasks=self.groups)
            stepped = step(
                task, state, mine, other, clock, batch=heartbeat.batch, watermark=mark, wall_clock=heartbeat.wall_clock
            )
            _, report = save_state(place, state, stepped.state, stepped.rejects, watermark=mark, keys=keys, task=number)
            reports.append(report)
            for given in stepped.out:
                out.extend(unpacked(given, children))
        return out

    def _limited(self, reports: tuple[TaskReport, ...], heartbeat: Heartbeat) -> tuple[TaskReport, ...]:
        """Return the reports after rows above the limits were evicted, which one task alone does itself."""
        if self.groups == 1:
            return reports
        joins = [build_task(self.plan, one) for one in self.plan.kernel_steps]
        mark = NEVER if heartbeat.watermark is None else heartbeat.watermark
        try:
            return enforce_limits(open_files(self.checkpoint.root), joins, reports, watermark=mark)
        except KernelProblem as problem:
            raise StreamError(problem.message, code=cast("Code", problem.code), help=problem.help) from problem

    def _table(self, one: TableStep) -> list[Values]:
        source = next(t for t in self.plan.tables if t.number == one.right)
        return [of_table(source, row).values for row in self.tables[source.table.name]]

    def _staged(self, number: int, rows: Sequence[Mapping[str, Any]]) -> tuple[Move, ...]:
        if not rows:
            return ()
        name = f"part-{number:06}-00000.jsonl"
        source = self.sink / STAGING / str(number) / name
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_text("".join(f"{written(row)}\n" for row in rows), encoding="utf-8")
        return (Move(source=source, to=self.sink / name, rows=len(rows)),)
