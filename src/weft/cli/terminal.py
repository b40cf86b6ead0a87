"""Text for people: coloured findings, counts, durations and progress bars."""

from __future__ import annotations

import datetime as dt
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from weft.errors import Diagnostic
from weft.redaction import redact

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

    from weft.pipelines.plan.project import ProjectPlan
    from weft.pipelines.plan.stages import Stage
    from weft.pipelines.spark.counts import OperationCounts
    from weft.pipelines.store.records import RunRecord

_COLOURS = {"error": "\x1b[1;31m", "warning": "\x1b[1;33m", "note": "\x1b[1;36m"}
_PLAIN = "\x1b[0m"


def has_colour(stream: TextIO) -> bool:
    """Whether a stream is a terminal that shows colours."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def format_finding(finding: Diagnostic, *, colour: bool = False) -> str:
    """Return a finding as text, its severity and code in colour if requested."""
    text = str(finding)
    mark = f"{finding.severity}[{finding.code}]"
    return text.replace(mark, f"{_COLOURS[finding.severity]}{mark}{_PLAIN}", 1) if colour else text


def print_stderr(text: str) -> None:
    """Print text that is not the result, with secrets masked."""
    sys.stderr.write(redact(text) + "\n")
    sys.stderr.flush()


def format_seconds(seconds: float | None) -> str:
    """Return a duration as minutes and seconds.

    >>> format_seconds(67.4), format_seconds(None)
    ('1:07', '-')
    """
    if seconds is None:
        return "-"
    whole = round(seconds)
    return f"{whole // 60}:{whole % 60:02}"


def format_time(time: dt.datetime | None) -> str:
    """Return a time to the minute, in UTC."""
    return "-" if time is None else time.astimezone(dt.UTC).strftime("%Y-%m-%d %H:%M")


def format_count(count: int, noun: str) -> str:
    """Return a count with its noun.

    >>> format_count(1, "error"), format_count(0, "file")
    ('1 error', '0 files')
    """
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def format_operation(counts: OperationCounts, kind: str) -> str:
    """Return the row counts of an operation as text."""
    if kind == "output":
        # An output with a selector writes only some of the rows that rows_out counts.
        return f"{counts.rows_changed:,} written"
    parts = [format_count(counts.rows_out, "row"), f"{counts.rows_changed:,} {_VERBS.get(kind, 'changed')}"]
    for join in counts.joins:
        more = f" {join.multiple:,} multiple" if join.multiple else ""
        parts.append(f"{join.alias}: {join.matched:,} matched {join.unmatched:,} unmatched{more}")
    return "   ".join(parts)


_VERBS = {"aggregate": "added", "append": "added", "delete": "deleted"}


@contextmanager
def show_waiting(text: str, *, hint: str = "", has_line: bool = True) -> Iterator[None]:
    """Show on stderr what a command is busy with: on a terminal until it is done, with the time; else one line.

    `hint` is shown on a terminal; without `has_line` nothing is shown elsewhere.
    """
    if not sys.stderr.isatty():
        if has_line:
            print_stderr(f"{text} ...")
        yield
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn(), TextColumn(hint))
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        shown.add_task(text, total=None)
        yield


class TerminalProgress:
    """Shows the progress of a run: a bar for each operation on a terminal, else a line for each that is done."""

    def __init__(self, *, bars: bool) -> None:
        self._bars: Bars | None = None
        self._has_bars = bars
        self._tasks: dict[int, TaskID] = {}
        self._kinds: dict[int, tuple[str, str]] = {}
        self._done: set[int] = set()

    def opened(self, run: RunRecord, plan: ProjectPlan) -> None:
        """Print the run and the dataset versions that it uses."""
        from weft.pipelines.plan.stages import operation_type
        from weft.pipelines.store.records import short_id

        pinned = ", ".join(dict.fromkeys(str(read.dataset) for read in plan.reads))
        target = "  into the sandbox" if plan.draft else ""
        print_stderr(f"run {short_id(run.id)}  snapshot {run.snapshot_sha[:8]}  pinned {pinned}{target}")
        self._kinds = {op.seq: (op.name, operation_type(op)) for op in plan.operations}

    def started(self, stages: tuple[Stage, ...]) -> None:
        """Show a bar for each operation."""
        del stages
        if not self._has_bars:
            return
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
        from rich.table import Column

        # On a narrow terminal only the counts wrap: the other columns keep their width.
        self._bars = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=8, table_column=Column(no_wrap=True)),
            TaskProgressColumn(table_column=Column(no_wrap=True)),
            TimeElapsedColumn(table_column=Column(no_wrap=True)),
            TextColumn("{task.fields[counted]}", markup=False, table_column=Column(no_wrap=False)),
            console=Console(stderr=True),
        )
        width = max((len(name) for name, _ in self._kinds.values()), default=0)
        for seq, (name, _) in self._kinds.items():
            label = f"{seq:>4} {name:<{width}}"
            self._tasks[seq] = self._bars.add_task(label, total=1.0, start=False, counted="")
        self._bars.start()

    def operation(self, seq: int, fraction: float, counts: OperationCounts | None) -> None:
        """Show how much of an operation is done."""
        name, kind = self._kinds.get(seq, ("", ""))
        text = "" if counts is None else format_operation(counts, kind)
        # Without bars only the end of each operation is printed, once.
        if self._bars is not None and seq in self._tasks:
            self._bars.start_task(self._tasks[seq])
            self._bars.update(self._tasks[seq], completed=fraction, counted=text)
        elif counts is not None and fraction >= 1 and seq not in self._done:
            self._done.add(seq)
            width = max(len(n) for n, _ in self._kinds.values())
            print_stderr(f"{seq:>4} {name:<{width}}  {text}")

    def finished(self) -> None:
        """Stop the bars."""
        if self._bars is not None:
            self._bars.stop()
            self._bars = None
