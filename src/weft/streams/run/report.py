"""Reports of a streaming run: each batch to its listener while it runs, each statement when it ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar

from weft.core.documents import Document, format_micros
from weft.core.frozen import EMPTY, FrozenMap
from weft.errors import ArgumentError, Diagnostic
from weft.streams.checkpoint.ledger import SIDES, LedgerDocument, side_name
from weft.streams.checkpoint.manifest import Ledger, Manifest
from weft.streams.checkpoint.status import name_sides
from weft.streams.kernel.spec import NEVER, SideStats
from weft.streams.plan.clocks import find_lagging_side
from weft.streams.plan.resolved import KernelStep, StatementPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorStats:
    """Statistics of a join since the first batch, both sides together.

    Windows are counted from the one of the first row: those that the watermark has closed, and those up to the
    last row.  Joins without windows, and sessions, count none.
    """

    left_records_processed: int = 0
    right_records_processed: int = 0
    matches_emitted: int = 0
    missing_key_count: int = 0
    missing_time_count: int = 0
    left_store_size: int = 0
    right_store_size: int = 0
    left_evictions: int = 0
    right_evictions: int = 0
    windows_closed: int = 0
    active_windows: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinReport:
    """Statistics of one join with state."""

    number: int
    left: SideStats
    right: SideStats
    coordinator: CoordinatorStats


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchReport:
    """One committed batch: its input and output, and the ledger since the first batch."""

    statement: str
    batch: int
    rows_in: FrozenMap[str, int]
    rows_out: int
    watermark: int | None
    held_back_by: str | None
    ledger: Ledger
    joins: tuple[JoinReport, ...]
    seconds: float
    final: bool = False

    @property
    def left(self) -> SideStats:
        """The left side of the first join."""
        return self.joins[0].left if self.joins else SideStats()

    @property
    def right(self) -> SideStats:
        """The right side of the first join."""
        return self.joins[0].right if self.joins else SideStats()

    @property
    def coordinator(self) -> CoordinatorStats:
        """Both sides of the first join together."""
        return self.joins[0].coordinator if self.joins else CoordinatorStats()


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryReport(Document):
    """A statement after a run; `rows` and the ledger count from the first batch of its checkpoint on.

    `read` reads files of its sink by the options that they were written with.
    """

    DOCUMENT: ClassVar = (
        "sink", "location", "format", "rows", "ledger", "sides", "batches", "watermark", "sealed"
    )  # fmt: skip

    sink: str
    location: str
    format: str
    rows: int
    ledger: LedgerDocument | None
    sides: FrozenMap[str, str]
    batches: int
    watermark: Annotated[int, format_micros] | None
    sealed: bool
    checkpoint: Path | None
    files: tuple[Path, ...] = ()
    joins: tuple[JoinReport, ...] = ()
    read: Callable[[Sequence[str]], Any] | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobReport:
    """All statements of a job after a run."""

    queries: tuple[QueryReport, ...]
    sealed: bool
    warnings: tuple[Diagnostic, ...] = ()
    spark: Any = field(default=None, compare=False, repr=False)

    def query(self, sink: str) -> QueryReport:
        """Return the report of one sink."""
        for query in self.queries:
            if query.sink == sink:
                return query
        raise ArgumentError(f"the job has no sink {sink!r}", help=f"it has {', '.join(q.sink for q in self.queries)}")

    def rows(self, sink: str) -> list[Any]:
        """Return the rows that this checkpoint wrote to a sink of files; the values of CSV files are strings.

        Rows of files that a reader has removed are not included.
        """
        query = self.query(sink)
        paths = [str(path) for path in query.files if path.exists()]
        if not paths:
            return []
        read = query.read or self.spark.read.format(query.format).load
        rows: list[Any] = read(paths).collect()
        return rows


def batch_report(plan: StatementPlan, manifest: Manifest) -> BatchReport:
    """Return the report of a committed batch for listeners."""
    return BatchReport(
        statement=plan.name,
        batch=manifest.batch,
        rows_in=manifest.rows_in,
        rows_out=manifest.rows,
        watermark=manifest.watermark,
        held_back_by=find_lagging_side(plan, manifest.max_times),
        ledger=manifest.ledger,
        joins=join_reports(plan, manifest),
        seconds=manifest.seconds,
        final=manifest.final,
    )


def join_reports(plan: StatementPlan, manifest: Manifest) -> tuple[JoinReport, ...]:
    """Return the statistics of each join with state after a batch."""
    due = manifest.clocks or ((NEVER, NEVER),) * len(plan.kernel_steps)
    return tuple(_join_report(s, manifest, min(c)) for s, c in zip(plan.kernel_steps, due, strict=True))


def _join_report(step: KernelStep, manifest: Manifest, clock: int) -> JoinReport:
    names = [side_name(step.number, side) for side in SIDES]
    left, right = (_side_stats(manifest.stats.get(name, EMPTY)) for name in names)
    closed, active = count_windows(step, left, right, clock)
    arrived = [manifest.ledger.get(name, EMPTY).get("in", 0) for name in names]
    return JoinReport(
        number=step.number,
        left=left,
        right=right,
        coordinator=CoordinatorStats(
            left_records_processed=arrived[0],
            right_records_processed=arrived[1],
            matches_emitted=left.matches_found,
            missing_key_count=left.missing_key_count + right.missing_key_count,
            missing_time_count=left.missing_time_count + right.missing_time_count,
            left_store_size=left.current_size,
            right_store_size=right.current_size,
            left_evictions=left.records_evicted,
            right_evictions=right.records_evicted,
            windows_closed=closed,
            active_windows=active,
        ),
    )


def count_windows(step: KernelStep, left: SideStats, right: SideStats, clock: int) -> tuple[int, int]:
    """Return the number of closed windows since the first row, and of open ones up to the last row."""
    reach = step.reach
    firsts = [s.min_time for s in (left, right) if s.min_time is not None]
    lasts = [s.max_time for s in (left, right) if s.max_time is not None]
    if not reach.has_windows or not firsts or not lasts:
        return 0, 0
    slide = reach.slide or reach.size
    # The first window that contains the least time, and the last one that contains the greatest.
    first = (min(firsts) - reach.size) // slide + 1
    last = max(lasts) // slide
    closed = min(last, (clock - reach.size) // slide) - first + 1
    return max(closed, 0), last - first + 1 - max(closed, 0)


def _side_stats(document: Mapping[str, Any]) -> SideStats:
    # Not `from_dict`: commits of other versions of Weft may have more statistics, or fewer.
    return SideStats(**{name: document[name] for name in SideStats.__slots__ if name in document})


def source_names(plan: StatementPlan) -> FrozenMap[str, str]:
    """Return the source of each side of the ledger: ``left`` is ``orders``."""
    return FrozenMap(name_sides(plan) or {"left": plan.inputs[0].stream.name})


class Listener:
    """Base class of listeners; override the methods you need.

    A reported batch is already committed.  An exception in a listener stops the run and is raised unchanged.

    >>> class Counting(Listener):
    ...     rows = 0
    ...
    ...     def on_batch(self, report):
    ...         self.rows += report.rows_out
    """

    def on_batch(self, report: BatchReport) -> None:
        """Handle a committed batch, including the flush."""

    def on_sealed(self, report: QueryReport) -> None:
        """Handle the end of a statement: its input has ended and all rows are emitted."""

    def on_failed(self, error: Exception) -> None:
        """Handle the error that stops a run, before it is raised."""
